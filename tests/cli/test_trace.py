"""The commands `schedlab trace` and `schedlab platform`: what they write and print, and how mistakes are told."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from schedlab.cli.main import main
from schedlab.platforms.hierarchy import read_hierarchy
from schedlab.workloads.batsim_file import read_batsim
from schedlab.workloads.swf import read_swf


@pytest.fixture
def shipped(repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A trace, and a working directory of its own."""
    monkeypatch.chdir(tmp_path)
    return str(repository / "tests/data/batch/lab-128.swf.gz")


def run(capsys: pytest.CaptureFixture, *arguments: str) -> str:
    """Run a command that works; returns what it printed."""
    assert main(arguments) == 0
    return capsys.readouterr().out


def test_describe(shipped, capsys):
    text = run(capsys, "trace", "describe", shipped)
    assert "run_zero                    8" in text
    found = json.loads(run(capsys, "trace", "describe", shipped, "--json", "--processors", "256"))
    assert (found["jobs"], found["processors"], found["oddities"]["run_negative"]) == (1500, 256, 10)
    run(capsys, "trace", "describe", shipped, "--pictures", "pictures/lab")
    assert sorted(path.name for path in Path("pictures").iterdir()) == ["lab.pdf", "lab.png", "lab.svg", "lab.txt"]


def test_clean(shipped, capsys):
    text = run(capsys, "trace", "clean", shipped, "out.swf.gz", "--profile", "rlscheduler", "--report", "report.json")
    assert text.startswith("1492 of 1500 jobs kept\n")
    assert json.loads(Path("report.json").read_text())["rules"]["zero_run"] == {"jobs": 8, "action": "drop"}
    whole, cleaned = read_swf(shipped), read_swf("out.swf.gz")
    assert len(cleaned.jobs) == 1492
    assert cleaned.comments[:-1] == whole.comments
    assert run(capsys, "trace", "clean", shipped, "b.swf", "--set", "profile=none").startswith(
        "1500 of 1500 jobs kept\n"
    )
    for size, options in ((64, ()), (32, ("--set", "machine_processors=32"))):
        run(capsys, "trace", "clean", shipped, "small.swf", "--processors", "64", *options)
        small = read_swf("small.swf")
        assert small.processors == size and 0 < len(small.jobs) < 1492 and small.jobs["procs_requested"].max() <= size
    text = run(capsys, "trace", "clean", shipped, "killed.swf", "--set", "overrun=kill", "--shift")
    killed = read_swf("killed.swf")
    assert (killed.jobs["run"] <= killed.jobs["time_requested"]).all()
    assert killed.jobs["submit"].iloc[0] == 0
    assert (killed.starts_at - whole.starts_at).total_seconds() == cleaned.jobs["submit"].iloc[0]


def test_a_count_beyond_the_trace_is_warned_of(shipped, capsys, caplog):
    run(capsys, "trace", "trim", shipped, "a.swf", "--count", "1000000")
    assert "of --count 1000000 jobs" in caplog.text


def test_trim(shipped, capsys):
    assert run(capsys, "trace", "trim", shipped, "a.swf", "--users", "1,2", "--count", "20").startswith(
        "20 jobs, offered load "
    )
    assert set(read_swf("a.swf").jobs["user"]) == {1, 2}
    text = run(
        capsys,
        "trace",
        "trim",
        shipped,
        "b.swf",
        "--start",
        "1000",
        "--first",
        "3",
        "--count",
        "50",
        "--keep-times",
        "--scale-load",
        "0.5",
    )
    assert "offered load 0.5" in text
    assert read_swf("b.swf").jobs["submit"].iloc[0] >= 1000


def test_lublin_and_to_batsim(shipped, capsys):  # noqa: ARG001
    lublin = (
        "trace",
        "lublin",
        "l.swf",
        "--jobs",
        "300",
        "--processors",
        "64",
        "--load",
        "0.8",
        "--seed",
        "5",
        "--estimates",
        "menu",
    )
    assert run(capsys, *lublin).startswith("300 jobs on 64 processors, offered load 0.8")
    first = Path("l.swf").read_bytes()
    run(capsys, *lublin)
    assert Path("l.swf").read_bytes() == first
    convert = (
        "trace",
        "to-batsim",
        "l.swf",
        "w.json",
        "--platform",
        "das2",
        "--missing-memory",
        "100,200",
        "--limits",
        "limits.json",
    )
    text = run(capsys, *convert, "--jobs", "100", "--report", "report.json")
    assert text.startswith("100 of ")
    assert len(read_batsim("w.json").jobs) == 100
    assert json.loads(Path("limits.json").read_text())["max_mem"] == 200
    assert json.loads(Path("report.json").read_text())["conversion"]["written"] == 100
    assert "too_large" in run(
        capsys, "trace", "to-batsim", "l.swf", "v.json", "--platform", "learning", "--missing-memory", "100"
    )


def test_to_batsim_as_published_shares_profiles(shipped, capsys):  # noqa: ARG001
    job = "{} 0 -1 60 1 -1 -1 1 100 5000 1 -1 -1 -1 -1 -1 -1 -1\n"
    Path("t.swf").write_text("; MaxProcs: 4\n" + "".join(job.format(number) for number in range(1, 101)))
    assert "6 profiles" in run(capsys, "trace", "to-batsim", "t.swf", "a.json", "--platform", "learning", "--compat")
    run(capsys, "trace", "to-batsim", "t.swf", "b.json", "--platform", "learning")
    assert len(read_batsim("b.json").profiles) > 30


def test_platforms(shipped, capsys):  # noqa: ARG001
    assert "mixed           32    641        1548  10002" in run(capsys, "platform", "describe")
    assert json.loads(run(capsys, "platform", "describe", "gaia", "--json"))["cores"] == 2280
    assert run(capsys, "platform", "generate", "das2", "p.xml", "--resources", "r.json").startswith(
        "das2: 1 clusters, 72 nodes, 144 cores"
    )
    assert sum(host.get("id").startswith("cor_") for host in ElementTree.parse("p.xml").iter("host")) == 144
    assert read_hierarchy("r.json").cores == 144
    assert json.loads(run(capsys, "platform", "describe", "r.json", "--json")) == json.loads(
        run(capsys, "platform", "describe", "das2", "--json")
    )
    run(capsys, "platform", "generate", "learning", "c.xml", "--compat")
    assert 'routing="None"' in Path("c.xml").read_text()
    run(
        capsys,
        "platform",
        "generate",
        "learning",
        "c.xml",
        "--compat",
        "--set",
        "pstates.idle_power=1e-1",
        "--resources",
        "c.json",
    )
    assert [(state.power, state.model_power) for state in read_hierarchy("c.json").states[2:]] == [
        (0.25, 0.15),
        (0.1, 0.1),
    ]
    drawn = ("--set", "synthetic.nodes=[2,2]", "--set", "synthetic.clusters=3", "--set", "pstates.idle_power=0.5")
    assert "3 clusters, 6 nodes" in run(capsys, "platform", "generate", "synthetic", "s.xml", *drawn)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("trace", "describe", "none.swf"), "none.swf: there is no such file"),
        (("trace", "describe", "cut.swf.gz"), "cut.swf.gz: after line"),
        (("trace", "describe", "bad.swf"), "bad.swf: line 2: 3 fields"),
        (("trace", "clean", "good.swf", "o.swf", "--profile", "rl"), "--profile"),
        (("trace", "clean", "good.swf", "o.swf", "--set", "overun=kill"), "did you mean 'overrun'"),
        (("trace", "clean", "good.swf", "o.swf", "--set", "overrun"), "KEY=VALUE"),
        (("trace", "clean", "nameless.swf", "o.swf"), "MaxProcs"),
        (("trace", "trim", "good.swf", "o.swf", "--load", "0.5"), "needs count"),
        (("trace", "trim", "good.swf", "o.swf", "--users", "99"), "no job is left"),
        (("trace", "trim", "good.swf", "o.swf", "--scale-load", "0"), "expected a number above 0"),
        (("trace", "trim", "good.swf", "o.swf", "--scale-load", "nan"), "expected a number above 0"),
        (("trace", "trim", "late.swf", "o.swf", "--start", "5"), "which is no date"),
        (("trace", "clean", "late.swf", "o.swf", "--shift"), "which is no date"),
        (("trace", "lublin", "o.swf", "--jobs", "0"), "--jobs"),
        (("trace", "lublin", "o.swf", "--estimates", "wrong"), "--estimates"),
        (("trace", "to-batsim", "good.swf", "o.json", "--platform", "gaja"), "did you mean 'gaia'"),
        (("trace", "to-batsim", "good.swf", "o.json", "--platform", "gaia"), "--missing-memory 1000,2000"),
        (
            ("trace", "to-batsim", "good.swf", "o.json", "--platform", "gaia", "--missing-memory=-5"),
            "values of 0 or more",
        ),
        (("trace", "clean", "good.swf", "folder"), "folder: Is a directory; expected a path where a file can lie"),
        (("trace", "lublin", "good.swf/o.swf", "--jobs", "5"), "good.swf/o.swf: "),
        (("platform", "generate", "none.json", "o.xml"), "none.json: there is no such file"),
        (("platform", "generate", "gaia", "o.xml", "--set", "nams=bare"), "did you mean 'names'"),
        (
            ("platform", "generate", "synthetic", "o.xml", "--set", "synthetic.cluster=3"),
            "--set synthetic.cluster: unknown key",
        ),
        (("platform", "generate", "gaia", "o.xml", "--set", "names=[bare"), "--set names: '[bare' cannot be read"),
        (("platform", "generate", "gaia", "o.xml", "--set", "names=!!binary aGk="), "'!!binary' is no kind of value"),
        (("platform", "generate", "gaia", "o.xml", "--set", "names=&a [*a]"), "the value holds itself"),
        (("platform", "generate", "gaia", "o.xml", "--nodes", "none.json"), "none.json"),
    ],
)
def test_mistakes_end_with_status_2_one_paragraph_and_no_file(tmp_path, monkeypatch, capsys, arguments, told):
    monkeypatch.chdir(tmp_path)
    job = "1 0 -1 60 1 -1 -1 1 100 -1 1 1 -1 -1 -1 -1 -1 -1\n"
    Path("good.swf").write_text(f"; MaxProcs: 4\n{job}")
    Path("nameless.swf").write_text(job)
    Path("late.swf").write_text(
        f"; MaxProcs: 4\n; StartTime: Fri Dec 31 23:59:59 9999\n{job.replace(' 0 ', ' 10000000000 ', 1)}"
    )
    Path("bad.swf").write_text(f"{job}1 2 3\n")
    Path("cut.swf.gz").write_bytes(gzip.compress(job.encode() * 100)[:-6])
    Path("folder").mkdir()
    before = sorted(tmp_path.rglob("*"))
    assert main(arguments) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert told in shown.err
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("arguments", [("--processors", "0"), ("--processors", "many")])
def test_numbers_that_are_none_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(("trace", "describe", "any.swf", *arguments))
    assert ended.value.code == 2
    assert "no whole number above 0" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        "trace clean own.swf out.swf --report out.swf",
        "trace clean own.swf out.swf --report own.swf",
        "trace clean own.swf out.swf --report folder",
        "trace to-batsim own.swf out.json --platform gaia --missing-memory 1000 --limits out.json",
        "trace to-batsim own.swf folder --platform gaia --missing-memory 1000 --report report.json",
        "platform generate learning out.xml --resources ./out.xml",
        "batch evaluate --trace own.swf --policy fcfs --starts own.swf",
        "batch evaluate --trace own.swf --policy fcfs --starts out.csv --usage out.csv",
        "ramp episode --policy para_min --end 1 --steps out.parquet --jobs out.parquet",
    ],
)
def test_no_result_is_written_over_another_file_of_the_command(shipped, capsys, arguments):
    Path("folder").mkdir()
    Path("own.swf").write_bytes(gzip.decompress(Path(shipped).read_bytes()))
    before = Path("own.swf").read_bytes()
    assert main(arguments.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and "error: " in err
    assert Path("own.swf").read_bytes() == before
    assert sorted(path.name for path in Path().iterdir()) == ["folder", "own.swf"]


def test_a_load_that_is_not_reached_is_told(shipped, caplog):
    for arguments, reached in (
        (("lublin", "a.swf", "--jobs", "200", "--load", "0.5"), True),
        (("lublin", "a.swf", "--jobs", "1", "--load", "0.5"), False),
        (("lublin", "a.swf", "--jobs", "200", "--load", "1e9"), False),
        (("trim", shipped, "a.swf", "--count", "300", "--scale-load", "0.7"), True),
        (("trim", shipped, "a.swf", "--count", "300", "--scale-load", "1e300"), False),
    ):
        caplog.clear()
        assert main(["trace", *arguments]) == 0
        assert ("the offered load" not in caplog.text) == reached, arguments


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        ("trace clean {} out.swf --set duplicates=drop", "--set duplicates"),
        ("trace clean {} out.swf --profile defaults", "--profile"),
        ("trace to-batsim {} out.json --platform gaia --cleaning defaults", "--cleaning"),
        ("trace lublin out.swf --estimates factor --factor 0.5", "--factor"),
        ("trace lublin out.swf --estimates factors", "--estimates"),
    ],
)
def test_a_mistake_names_the_option_that_was_given(shipped, capsys, arguments, option):
    assert main(arguments.format(shipped).split()) == 2
    assert capsys.readouterr().err.startswith(f"error: {option}: ")
