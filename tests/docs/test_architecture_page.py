"""The graphs on the architecture page are those of today, and imports point one way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

import shipped_conf
from schedlab.config import experiment
from schedlab.stages.studies import find_study


@pytest.fixture
def graphs(load_program: Callable[[str], ModuleType]) -> ModuleType:
    """The program that draws them."""
    return load_program("docs/graphs")


pytestmark = pytest.mark.xdist_group("shipped configuration")


def test_the_graph_of_rules_is_up_to_date(repository: Path, graphs: ModuleType, tmp_path: Path) -> None:
    """Planned with the records that the tests of this process compose, not with others of the same files."""
    experiment.load(
        shipped_conf.CONF, "smoke", find_study, tmp_path / ".schedlab/records-smoke.json", shipped_conf.COMPOSED
    )
    page = (repository / "docs/architecture.md").read_text()
    assert graphs.with_rules(page, str(tmp_path)) == page, "python docs/graphs.py brings it up to date"


@pytest.mark.parametrize("name", ["rooms", "modules"])
def test_a_graph_is_up_to_date(repository: Path, graphs: ModuleType, name: str) -> None:
    page = (repository / "docs/architecture.md").read_text()
    assert getattr(graphs, f"with_{name}")(page) == page, "python docs/graphs.py brings it up to date"


LAYERS = (
    {"config"},
    {"workloads", "platforms", "learning", "evaluation", "figures"},
    {"batsim"},
    {"studies"},
    {"stages"},
    {"cli"},
)


def test_imports_point_one_way(graphs: ModuleType) -> None:
    level = {folder: place for place, layer in enumerate(LAYERS) for folder in layer}
    graph = graphs.import_graph()
    assert {folder.partition("/")[0] for folder in graph} == set(level)
    for here, to in graph.items():
        for there in to:
            assert level[there.partition("/")[0]] <= level[here.partition("/")[0]], (here, there)
            assert not (here.startswith("studies/") and there.startswith("studies/")), (here, there)


def test_arrows_that_follow_from_others_are_left_out_and_circles_refused(graphs: ModuleType) -> None:
    graph = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set()}
    assert graphs.reduced(graph) == {"top": {"middle"}, "middle": {"bottom"}, "bottom": set()}
    with pytest.raises(AssertionError, match="circle"):
        graphs.reduced({"one": {"other"}, "other": {"one"}})
