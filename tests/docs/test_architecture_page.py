"""The graph of modules on the architecture page is that of today, and imports point one way as the page says."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture
def module_graph(repository: Path) -> ModuleType:
    """The program that draws the graph."""
    spec = importlib.util.spec_from_file_location("module_graph", repository / "docs/module_graph.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_graph_is_up_to_date(repository: Path, module_graph: ModuleType) -> None:
    page = (repository / "docs/architecture.md").read_text()
    assert module_graph.with_graph(page) == page, "python docs/module_graph.py brings it up to date"


def test_imports_point_one_way_as_the_page_says(repository: Path, module_graph: ModuleType) -> None:
    page = (repository / "docs/architecture.md").read_text()
    layers = [set(re.findall(r"\w+", names)) for names in re.search(r"Imports point one way: (.*?)\.", page)[1].split("←")]
    assert sum(map(len, layers)) == 10
    level = {folder: place for place, layer in enumerate(layers) for folder in layer}
    graph = module_graph.import_graph()
    assert {folder.partition("/")[0] for folder in graph} == set(level)
    for here, to in graph.items():
        for there in to:
            assert level[there.partition("/")[0]] <= level[here.partition("/")[0]], (here, there)
            assert not (here.startswith("studies/") and there.startswith("studies/")), (here, there)


def test_arrows_that_follow_from_others_are_left_out_and_circles_refused(module_graph: ModuleType) -> None:
    graph = {"top": {"middle", "bottom"}, "middle": {"bottom"}, "bottom": set()}
    assert module_graph.reduced(graph) == {"top": {"middle"}, "middle": {"bottom"}, "bottom": set()}
    with pytest.raises(AssertionError, match="circle"):
        module_graph.reduced({"one": {"other"}, "other": {"one"}})
