"""What `--config` says of a run: its keys, and the runs of a sweep."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.config.errors import UserError
from schedlab.config.runtime.options import check_keys, check_room, sweep_of

CONF = Path(__file__).resolve().parents[2] / "conf"
RATE = "scenario.ramp.uniform.jobs.interarrival.value"


def test_a_sweep_is_a_run_for_each_value() -> None:
    sweep = sweep_of({"sweep": f"{RATE}=50,1e3", "variant": "dense"})
    assert [run.name for run in sweep.runs] == ["50", "1000"]
    assert [run.values for run in sweep.runs] == [{RATE: 50}, {RATE: 1000.0}]
    given = {"sweep": "...", "scale": "smoke", "set": "seed=3"}
    first = sweep.config_of(sweep.runs[0], given)
    assert first == {"scale": "smoke", "variant": "dense-50", "set": ["seed=3", f"{RATE}=50"]}


@pytest.mark.parametrize("text", ["a.b=1,2 seed=range(0,3)", "a.b=1,2,seed=0,1,2", ["a.b=1,2", "seed=0,1,2"]])
def test_several_keys_make_every_combination(text: str | list[str]) -> None:
    runs = sweep_of({"sweep": text}).runs
    assert [run.name for run in runs] == ["1-0", "1-1", "1-2", "2-0", "2-1", "2-2"]
    assert runs[3].texts == ("a.b=2", "seed=0") and runs[3].values == {"a.b": 2, "seed": 0}


def test_a_sweep_without_a_name_is_called_by_its_keys() -> None:
    assert sweep_of({"sweep": f"{RATE}=1,2 seed=1"}).name == "interarrival-value-seed"


def test_words_and_lists_name_their_runs() -> None:
    runs = sweep_of({"sweep": "a.b='Best Fit',[4,8],true"}).runs
    assert [run.name for run in runs] == ["best-fit", "4-8", "true"]
    assert [run.values["a.b"] for run in runs] == ["Best Fit", [4, 8], True]


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("seed", "sweep: seed"),
        (5, "sweep: 5"),
        ("seed=1,1", "--config: sweep"),
        ("seed=1 seed=2", "--config: sweep"),
        ("a.b='*',2", "set: a.b='*'"),
    ],
)
def test_a_sweep_that_makes_no_runs_is_refused(text: str | int, where: str) -> None:
    with pytest.raises(UserError) as raised:
        sweep_of({"sweep": text})
    assert raised.value.where == where


def test_keys_that_are_none_are_refused_with_the_nearest() -> None:
    check_keys(("scale", "seed", "sweep", "scenario", "learner", "gpu"), CONF)
    for key, meant in (
        ("scael", "'scale'"),
        ("scenari", "'scenario'"),
        ("scenario.ramp.uniform.seed", "set="),
        ("adaptation.budget", 'set="scenario.adaptation.'),
    ):
        with pytest.raises(UserError) as raised:
            check_keys([key], CONF)
        assert raised.value.where == "--config" and meant in raised.value.remedy


def test_a_sweep_and_a_single_run_do_not_share_a_folder(tmp_path: Path) -> None:
    for sweep, there in ((False, "sweep.yaml"), (True, "summarise.yaml")):
        folder = tmp_path / there
        check_room(folder, sweep)
        (folder / "ramp/config").mkdir(parents=True)
        (folder / "ramp/config" / there).touch()
        check_room(folder, not sweep)
        with pytest.raises(UserError):
            check_room(folder, sweep)
