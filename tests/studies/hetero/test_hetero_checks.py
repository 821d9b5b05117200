"""`schedlab check` on the hetero study: each mistake is reported with its file and key, and nothing runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from schedlab.cli.main import main
from schedlab.config.errors import UserErrors
from schedlab.config.experiment import load
from schedlab.stages.studies import find_study
from small_conf import OWN_SCHEDULER, write_hetero_conf


@pytest.fixture
def conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration folder with the scenario `trio` alone; the working directory is another one."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    return write_hetero_conf(tmp_path)


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    assert re.search(old, text), text
    file.write_text(re.sub(old, new, text, count=1))


def complaint(conf: Path, capsys: pytest.CaptureFixture) -> str:
    assert main(["check", "--conf", str(conf)]) == 2
    captured = capsys.readouterr()
    assert captured.out == "" and "Traceback" not in captured.err
    return captured.err


def test_the_shipped_scenario_is_right(conf, capsys):
    assert main(["check", "--conf", str(conf)]) == 0
    assert "ok  scenario hetero/trio: 7 rules" in capsys.readouterr().out


def test_a_look_at_a_high_level_scheduler_leaves_no_file(conf):
    edit(conf / BASE, "- filler", "- {name: high, target: pybatsim, params: {scheduler: schedFcfs}}")
    assert main(["check", "--conf", str(conf)]) == 0
    assert list(Path.cwd().iterdir()) == []


TRIO, BASE = "scenario/hetero/trio.yaml", "scenario/hetero/_base.yaml"


PLATFORM = "platform/trio.yaml"
MISTAKES = [  # file, what is replaced by what, file and key that are named, nearest name or what is wrong
    (BASE, "- filler", "- filer", f"{BASE}: rules.2: ", "'filler'"),
    (BASE, "priority: f1", "priority: f11", f"{BASE}: rules.5.params.priority: ", "'f1'"),
    (BASE, "- filler", "- {name: other, target: pybatsim}", f"{BASE}: rules.2.params.scheduler: ", ""),
    (
        BASE,
        "- filler",
        "- {name: other, target: pybatsim, params: {scheduler: fillerShed}}",
        f"{BASE}: rules.2.params.scheduler: ",
        "'fillerSched'",
    ),
    (
        BASE,
        "- filler",
        "- {name: mine, target: 'nowhere/mine.py:Mine'}",
        f"{BASE}: rules.2.target: ",
        "nowhere/mine.py",
    ),
    (BASE, "/platform: trio", "/platform: tria", f"{BASE}: defaults: ", "'trio'"),
    (BASE, "processors: 48", "processors: 64", f"{BASE}: workload.lublin.processors: ", "48"),
    (BASE, "processors: 48", "processors: 48, uhi: 9", f"{BASE}: workload.lublin: ", "uhi"),
    (PLATFORM, "nodes: .*", "nodes: [4, 2]", f"{PLATFORM}: platform.synthetic: ", "nodes"),
    (BASE, "- filler", "- first-high_gflops", f"{PLATFORM}: platform.pstates.managed: ", "first-high_gflops"),
    (
        BASE,
        "- filler",
        "- {name: other, target: filler, params: {cores: low_power}}",
        f"{BASE}: rules.2.params.cores: ",
        "",
    ),
    (BASE, "- filler", "- {name: best_fixed_pair, params: {split: train}}", f"{BASE}: rules.2.params.split: ", "train"),
    (
        BASE,
        "replicates:",
        "decisions: {selection: [first-high_gflop]}\nreplicates:",
        f"{BASE}: decisions: ",
        "'high_gflops'",
    ),
    (PLATFORM, "name: trio", "name: trio\nenergy: false", f"{PLATFORM}: platform.energy: ", ""),
    (PLATFORM, "(?s)synthetic:.*", "file: gaja\n", f"{TRIO}: platform: ", "'gaia'"),
    ("workload/lublin.yaml", "slowest_core", "none", "workload/lublin.yaml: workload.batsim.walltime: ", "easy-f1"),
    ("workload/lublin.yaml", "source: lublin", "source: swf\nfile: a.swf", f"{BASE}: workload.trim: ", "count"),
]


@pytest.mark.parametrize(("file", "old", "new", "where", "near"), MISTAKES)
def test_a_mistake_is_refused_with_file_and_key(conf, capsys, file, old, new, where, near):
    edit(conf / file, old, new)
    err = complaint(conf, capsys)
    assert f"conf/{where}" in err and near in err


def test_an_unknown_type_of_a_users_own_platform(conf, capsys, tmp_path):
    mine = tmp_path / "mine.json"
    mine.write_text(
        '{"clusters": [{"id": "a", "nodes": [{"type": "gaia-2x6c-2.26GHz", "number": 1}], '
        '"local_links": {"type": "InfiniBand QDR"}}], "global_links": {"type": "InfiniBand QDR"}}'
    )
    edit(conf / "platform/trio.yaml", "(?s)synthetic:.*", f"file: {mine}\npstates: {{managed: false}}\n")
    err = complaint(conf, capsys)
    assert "trio.yaml: platform" in err and "'gaia-2x6c-2.26GHz'" in err


def test_a_users_own_scheduler_may_set_pstates_and_need_no_walltimes(conf, tmp_path, capsys):
    (tmp_path / "mine.py").write_text(OWN_SCHEDULER)
    edit(conf / BASE, "(?s)rules:.*", f"rules: [{{name: easy, target: '{tmp_path}/mine.py:LastCoreFirst'}}]\n")
    edit(conf / "platform/trio.yaml", "managed: false", "managed: true")
    edit(conf / "workload/lublin.yaml", "slowest_core", "none")
    assert main(["check", "--conf", str(conf)]) == 0
    assert "hetero/trio: 1 rule," in capsys.readouterr().out


def test_a_scenario_on_a_trace_says_what_it_needs(conf, capsys):
    edit(conf / BASE, "- /workload: lublin", "- /workload: kth")
    edit(conf / TRIO, "name: trio", "name: trio\nworkload: {trim: {count: 10}}")
    assert main(["check", "--conf", str(conf)]) == 0
    out = capsys.readouterr().out
    assert "not run  hetero/trio" in out and "KTH-SP2-1996-2.1.swf.gz" in out
    folder = Path("resources/data/traces")
    folder.mkdir(parents=True)
    (folder / "KTH-SP2-1996.swf.gz").touch()
    assert main(["check", "--conf", str(conf)]) == 0
    assert "KTH-SP2-1996.swf.gz" in capsys.readouterr().out


def test_a_real_batsim_must_be_on_the_path(conf, capsys, monkeypatch, tmp_path):
    edit(conf / TRIO, "name: trio", "name: trio\nsimulator: batsim\nbatsim: my-batsim")
    assert main(["check", "--conf", str(conf)]) == 0
    out = capsys.readouterr().out
    assert "not run  hetero/trio" in out and "'my-batsim'" in out
    (tmp_path / "my-batsim").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["check", "--conf", str(conf)]) == 0
    assert "not run  " not in capsys.readouterr().out


def test_a_figure_may_compare_with_what_its_scenarios_have_alone(conf, capsys):
    (conf / "scenario/hetero/other.yaml").write_text("defaults:\n  - _base\n  - _self_\nname: other\nrules: [sjf]\n")
    (conf / "figure/hetero").mkdir(parents=True, exist_ok=True)
    figure = "name: against\nkind: metrics\ntitle: T\ncaption: C.\nscenarios: [other]\nparams: {against: NAME}\n"
    (conf / "figure/hetero/against.yaml").write_text(figure.replace("NAME", "fcfs"))
    err = complaint(conf, capsys)
    assert "figure/hetero/against.yaml: params.against: " in err and "sjf" in err
    (conf / "figure/hetero/against.yaml").write_text(figure.replace("NAME", "sjf"))
    assert main(["check", "--conf", str(conf)]) == 0


def test_drawn_jobs_without_memory_are_refused(conf, capsys):
    edit(conf / BASE, "  lublin: ", "  batsim: {missing_memory: []}\n  lublin: ")
    assert "workload.batsim.missing_memory: " in complaint(conf, capsys)


def test_a_real_batsim_named_by_its_path_must_be_there(conf, capsys):
    edit(conf / TRIO, "name: trio", "name: trio\nsimulator: batsim\nbatsim: /nowhere/batsim")
    assert main(["check", "--conf", str(conf)]) == 0
    out = capsys.readouterr().out
    assert "not run  hetero/trio" in out and "/nowhere/batsim" in out


PHYSICS = "name: trio\nphysics: {bandwidth: fair}\nplatform: {pstates: {managed: true}}\n"
CANNOT = [  # what is added, where it is reported, and what lacks the physics
    ("simulator: compiled", f"{TRIO}: simulator: ", "compiled"),
    ("simulator: batsim", f"{TRIO}: simulator: ", "batsim"),
    ("rules: [look_ahead]", f"{TRIO}: rules.0: ", "look_ahead"),
    ("rules: [fcfs, {name: best, target: tried_pairs}]", f"{TRIO}: rules.1: ", "best"),
    ("platform: {pstates: {managed: false}}", f"{TRIO}: platform.pstates.managed: ", "managed"),
]


@pytest.mark.parametrize(("added", "where", "named"), CANNOT)
def test_physics_that_something_does_not_have_are_refused_by_both_names(conf, capsys, added, where, named):
    edit(conf / TRIO, "name: trio", PHYSICS)
    assert main(["check", "--conf", str(conf)]) == 0
    capsys.readouterr()
    kept = PHYSICS.replace("platform: {pstates: {managed: true}}", "") if "platform" in added else PHYSICS
    edit(conf / TRIO, re.escape(PHYSICS), f"{kept}{added}\n")
    err = complaint(conf, capsys)
    assert f"conf/{where}" in err and named in err and "physics.bandwidth" in err


@pytest.mark.parametrize(
    "value", ["bandwidth: prop", "power_cap: -5", "mean_time_to_failure: 0", "mean_time_to_repair: -1"]
)
def test_impossible_physics_are_refused_by_key(conf, capsys, value):
    edit(conf / TRIO, "name: trio", PHYSICS.replace("bandwidth: fair", value))
    assert f"conf/{TRIO}: physics.{value.partition(':')[0]}: " in complaint(conf, capsys)


def test_a_power_cap_must_leave_power_for_a_busy_core(conf, capsys):
    edit(conf / TRIO, "name: trio", PHYSICS.replace("bandwidth: fair", "power_cap: 10"))
    err = complaint(conf, capsys)
    assert f"conf/{TRIO}: physics.power_cap: " in err and "10 W" in err and "idle" in err


def test_schedulers_of_pybatsim_do_not_know_nodes_that_fail(conf, capsys):
    edit(conf / TRIO, "name: trio", PHYSICS.replace("bandwidth: fair", "mean_time_to_failure: 1000"))
    edit(conf / BASE, "- filler", "- {name: other, target: pybatsim, params: {scheduler: fillerSched}}")
    err = complaint(conf, capsys)
    assert f"conf/{BASE}: rules.2: " in err and "other" in err and "physics.mean_time_to_failure" in err


def test_several_mistakes_are_reported_at_once(conf):
    edit(conf / BASE, "- filler", "- shortest-high_mem_bw")
    edit(conf / BASE, "processors: 48", "processors: 64")
    with pytest.raises(UserErrors) as caught:
        load(conf, "smoke", find_study)
    assert len(caught.value.errors) == 2
