"""What is kept of a run (schedlab.evaluation.run_hashes) holds later runs to what they promise, and to no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from schedlab.cli.main import main
from schedlab.config.files import file_hash, write_json, write_table
from schedlab.evaluation import tables

ROW = {
    **{column.name: "x" for column in tables.SUMMARY.columns if column.type == "text"},
    **{column.name: 3 for column in tables.SUMMARY.columns if column.type == "integer"},
    **{column.name: 1.5 for column in tables.SUMMARY.columns if column.type == "number"},
    "ci_low": None,
}
ROW_NAME = "/".join("x" for _ in tables.SUMMARY.key)
ANSWER = {column.name: 1 if column.type == "integer" else "x" for column in tables.HEADLINE.columns} | {
    column.name: 1.5 for column in tables.HEADLINE.columns if column.type == "number"
}
SUMMARY, TRACE, POLICY, FIGURE = "s/summary.parquet", "s/trace.swf", "s/policy.zip", "figure.svg"
HEADLINE = "s/headline.parquet"


@pytest.fixture
def run(tmp_path: Path, monkeypatch):
    """Write the files of a run and its manifest into results/smoke; returns what writes them anew."""
    monkeypatch.chdir(tmp_path)
    folder = Path("results/smoke")

    def write(
        value: float = 1.5,
        trace: str = "1 2 3",
        policy: str = "p",
        figure: str = "f",
        promise: str = "learned",
        held: dict[str, str] | None = None,
        ratio: float | None = None,
        code: str = "c",
    ) -> None:
        for name, text in ((TRACE, trace), (POLICY, policy), (FIGURE, figure)):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
        write_table(folder / SUMMARY, tables.build(tables.SUMMARY, [ROW | {"value": value}]))
        answers = [HEADLINE] if ratio is not None else []
        if answers:
            row = ANSWER | {"ratio": ratio, "code_hash": code}
            write_table(folder / HEADLINE, tables.build(tables.HEADLINE, [row]))

        def made(*names: str) -> dict:
            return {"configuration": {}, "outputs": {f"{folder}/{name}": file_hash(folder / name) for name in names}}

        steps = {
            "trace": {"promise": "exact", **made(TRACE)},
            "tables": {"promise": promise, **made(SUMMARY, POLICY, *answers)},
        }
        drawn = {**made(FIGURE), "scenarios": [], "policies": [], "seeds": [], "rests_on": []}
        environment = {"code": "c", "python": "3", "packages": {}, "instructions": held or {}}
        environments = {"environment": "e", "environments": {"e": environment}}
        head = {"form": 2, "scale": "smoke", "seeds": {}, "studies": {}, **environments}
        write_json(folder / "manifest.json", head | {"steps": steps, "figures": {"s/f": drawn}})

    return write


@pytest.fixture
def kept(run, tmp_path: Path, capsys) -> str:
    """A record of that run."""
    run()
    assert main(["manifest", "record", "results/smoke"]) == 0
    (tmp_path / "kept.json").write_text(capsys.readouterr().out)
    return "kept.json"


def check(kept: str, capsys) -> tuple[int, list[str]]:
    status = main(["manifest", "check", "results/smoke", "--against", kept])
    return status, capsys.readouterr().out.splitlines()


def test_a_run_agrees_with_its_own_record(kept, capsys):
    status, (line,) = check(kept, capsys)
    assert status == 0 and kept in line
    assert [int(number) for number in re.findall(r"\b\d+\b", line)] == [1, 1, 2]  # by bytes, by values, only there


def test_a_record_holds_hashes_of_what_is_exact_alone(kept):
    found = json.loads(Path(kept).read_text())
    assert {path for path, file in found["files"].items() if "sha256" in file} == {f"results/smoke/{TRACE}"}
    assert found["files"][f"results/smoke/{FIGURE}"] == {"promise": "drawn"}
    assert found["summaries"] == {f"results/smoke/{SUMMARY}": {ROW_NAME: 1.5}}


def test_what_another_machine_may_do_is_no_difference(run, kept, capsys):
    run(value=1.5 * (1 + 5e-4), policy="q", figure="g")
    assert check(kept, capsys)[0] == 0


def test_a_headline_is_compared_by_its_ratios_and_not_by_the_code_that_it_names(run, capsys):
    pins = {"MKL_CBWR": "COMPATIBLE"}
    run(held=pins, ratio=1.0)
    main(["manifest", "record", "results/smoke"])
    Path("kept.json").write_text(capsys.readouterr().out)
    run(held=pins, ratio=1.0, code="d")
    assert check("kept.json", capsys)[0] == 0
    run(held=pins, ratio=1.01)
    status, (first, *_) = check("kept.json", capsys)
    assert status == 1 and first.startswith(f"changed file: results/smoke/{HEADLINE}")


def test_runs_that_were_held_to_the_same_instructions_have_the_same_bytes(run, capsys):
    pins = {"MKL_CBWR": "COMPATIBLE"}
    run(held=pins)
    main(["manifest", "record", "results/smoke"])
    Path("kept.json").write_text(capsys.readouterr().out)
    run(held=pins, policy="q", figure="g")
    status, (first, *_) = check("kept.json", capsys)
    assert status == 1 and first.startswith(f"changed file: results/smoke/{POLICY}")
    run(held={}, policy="q", figure="g")
    assert check("kept.json", capsys)[0] == 0


@pytest.mark.parametrize(
    ("changed", "kind", "values"),
    [
        ({"value": 2.0}, f"changed file: results/smoke/{SUMMARY}", (f"'{ROW_NAME}'", "2.5e-01", "0.001")),
        ({"trace": "1 2 4"}, f"changed file: results/smoke/{TRACE}", ()),
        ({"promise": "fitted"}, f"other promise: results/smoke/{POLICY}", ("'fitted' here", "'learned' recorded")),
    ],
)
def test_each_difference_is_told_in_a_line(run, kept, capsys, changed, kind, values):
    run(**changed)
    status, (first, *_, last) = check(kept, capsys)
    assert status == 1 and first.startswith(kind) and all(value in first for value in values)
    assert kept in last


def test_files_and_rows_that_are_gone_or_new_are_told(kept, capsys):
    values = json.loads(Path(kept).read_text())
    del values["files"][f"results/smoke/{POLICY}"]
    values["files"]["results/smoke/gone.json"] = {"promise": "exact"}
    values["summaries"][f"results/smoke/{SUMMARY}"]["y"] = 2.0
    Path(kept).write_text(json.dumps(values))
    gone, new, changed, _ = check(kept, capsys)[1]
    assert gone.startswith("missing file: results/smoke/gone.json ")
    assert new.startswith(f"new file: results/smoke/{POLICY} ")
    assert changed.startswith(f"changed file: results/smoke/{SUMMARY} ('y' ")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("{", "JSON"),
        ('{"record": 2, "scale": "smoke"}', "'record' is 2"),
        ('{"record": 1, "scale": 3}', "'scale' is 3"),
    ],
)
def test_what_is_no_record_is_refused(kept, capsys, text, told):
    Path(kept).write_text(text)
    assert main(["manifest", "check", "results/smoke", "--against", kept]) == 2
    assert told in capsys.readouterr().err


def test_a_record_cannot_be_compared_exactly(kept, capsys):
    assert main(["manifest", "check", "results/smoke", "--against", kept, "--exact"]) == 2
    assert "--exact: " in capsys.readouterr().err


def test_a_manifest_away_from_its_files_is_sent_to_them(kept, capsys):
    Path("away").mkdir()
    Path("results/smoke/manifest.json").rename("away/manifest.json")
    told = {}
    for name, arguments in {"files": (), "record": ("--against", kept)}.items():
        assert main(["manifest", "check", "away", *arguments]) == 2
        told[name] = capsys.readouterr().err
    assert main(["manifest", "record", "away"]) == 2
    assert "--against" in told["files"] and "--against" not in told["record"]
    assert capsys.readouterr().err == told["record"]


def test_a_record_of_another_scale_is_told(kept, capsys):
    Path(kept).write_text(Path(kept).read_text().replace('"scale": "smoke"', '"scale": "small"'))
    first = check(kept, capsys)[1][0]
    assert first.startswith("other scale: ") and "smoke here" in first and "small recorded" in first


def test_the_record_of_the_smoke_run_is_held_in_the_checks(repository: Path):
    assert (
        "schedlab manifest check results/smoke --against docs/results/smoke.json"
        in (repository / ".ci/run").read_text()
    )
    record = json.loads((repository / "docs/results/smoke.json").read_text())
    studies = {path.split("/")[2] for path in record["files"] if path.startswith("results/")}
    assert studies == {"adaptation", "batch", "cloud", "hetero", "ramp"}
