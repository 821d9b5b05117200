"""Of each study, an edit of its simulator reruns what used it, one of a drawing the figures, one of words nothing."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import schedlab
from schedlab.config import experiment
from schedlab.config.experiment import Experiment
from schedlab.config.runtime import freeze
from schedlab.config.runtime.code import Code
from schedlab.config.runtime.freeze import StageCode
from schedlab.config.runtime.options import overrides_of
from schedlab.stages.studies import find_study

pytestmark = pytest.mark.slow
JOBS = {"evaluate", "learn", "summarise", "draw"}
# study -> a module of its simulator, the prepare rules that use it or build on one that does, and those that do not
SIMULATORS = {
    "adaptation": (
        "studies/adaptation/simulator/course.py", {"train_trunk", "simulate_adaptation", "tabulate"}, {"check_data"}
    ),
    "batch": ("studies/batch/simulator/cluster.py", set(), {"make_trace"}),
    "cloud": ("studies/cloud/replay/replay.py", {"solve_oracle"}, {"fit_performance"}),
    "hetero": ("batsim/simulator/simulation.py", set(), {"generate_platform", "trim_workload"}),
    "ramp": ("studies/ramp/simulator/compiled_kernel.py", set(), {"trace_graphs"}),
}  # fmt: skip


@pytest.fixture(scope="module")
def loaded(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(repository)
        return experiment.load("conf", "smoke", find_study, tmp_path_factory.mktemp("records") / "records.json")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "schedlab"
    return Path(shutil.copytree(Path(schedlab.__file__).parent, folder, ignore=shutil.ignore_patterns("__pycache__")))


@pytest.fixture
def changed_by(loaded: Experiment, source: Path) -> Callable[[str, str], set[tuple[str, str]]]:
    """Append a line to a module; returns (study, kind of part) of all parts whose code is then another."""

    def codes() -> dict[str, str]:
        stages = StageCode(loaded, {})
        stages.code = Code({**stages.code.packages, "schedlab": source}, loaded.cache.get)
        return {path: values["made_by"]["code"] for path, values in freeze.frozen_parts(loaded, code=stages)}

    def edit(name: str, line: str) -> set[tuple[str, str]]:
        before, text = codes(), (source / name).read_text()
        (source / name).write_text(f"{text}\n{line}\n")
        after = codes()
        (source / name).write_text(text)
        return {(path.split("/")[2], _kind(path)) for path in before if before[path] != after[path]}

    return edit


def _kind(path: str) -> str:
    """The rule that reads a part: 'evaluate' of .../config/evaluate-rules.yaml, 'draw', 'train_trunk'."""
    place = Path(path)
    return place.parent.name.rpartition("-")[0] if place.stem == "config" else place.stem.partition("-")[0]


@pytest.mark.parametrize("study", SIMULATORS)
def test_a_constant_of_the_simulator_reruns_what_used_it_and_nothing_else(study: str, changed_by: Callable) -> None:
    module, using, others = SIMULATORS[study]
    changed = changed_by(module, "CHANGED = 1.0")
    assert {where for where, _ in changed} == {study}
    kinds = {kind for _, kind in changed}
    assert JOBS - {"learn"} | using <= kinds <= JOBS | using
    assert not kinds & others


@pytest.mark.parametrize("study", SIMULATORS)
def test_words_rerun_nothing_and_a_drawing_the_figures(study: str, changed_by: Callable, source: Path) -> None:
    assert changed_by(SIMULATORS[study][0], '# A comment.\n"""What nobody reads."""') == set()
    drawings = [file.relative_to(source).as_posix() for file in sorted(source.glob(f"studies/{study}/figures/*.py"))]
    changed = set().union(*(changed_by(name, "COLOUR = 'red'") for name in drawings))
    assert changed == {(study, "draw")}


def test_what_the_file_of_a_users_class_imports_reruns_what_used_it(repository: Path, tmp_path: Path) -> None:
    (tmp_path / "conf").symlink_to(repository / "conf")
    (tmp_path / "mine.py").write_text("from helper_of_mine import Placer\n\n\nclass Mine(Placer):\n    pass\n")
    helper = tmp_path / "helper_of_mine.py"
    helper.write_text("class Placer:\n    def place(self, cluster, job, split):\n        return None\n")
    given = {"variant": "mine", "set": "scenario.ramp.uniform.management.placer={_target_: 'mine.py:Mine'}"}

    def codes() -> dict[str, str]:
        loaded = experiment.load(
            "conf", "smoke", find_study, overrides=overrides_of(given, Path("conf")), variant="mine"
        )
        parts = freeze.frozen_parts(loaded, code=StageCode(loaded, {}))
        return {path: values["made_by"]["code"] for path, values in parts if "/ramp/" in path}

    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        patch.syspath_prepend(tmp_path)
        before = codes()
        helper.write_text(helper.read_text().replace("None", "[0]"))
        after = codes()
    changed = {path for path in before if before[path] != after[path]}
    assert any("/uniform/config/evaluate" in path for path in changed)
    assert not any("/tight/" in path for path in changed)
