"""The graphs of a scenario from their settings: traced, drawn or read; the prepare rule that writes them down."""

from __future__ import annotations

from pathlib import Path

from schedlab.config.contract import Part, Requirement
from schedlab.config.data_paths import find_data, find_resource
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import write_json
from schedlab.config.plugins import load_object
from schedlab.config.runtime.parts import read_part
from schedlab.config.schema import validate
from schedlab.studies.ramp.graphs.files import read_graphs, write_graphs
from schedlab.studies.ramp.graphs.generator import generated_graphs
from schedlab.studies.ramp.graphs.graph import ForwardGraph, training_graph
from schedlab.studies.ramp.graphs.settings import GraphSettings
from schedlab.studies.ramp.graphs.statistics import statistics_table

PIPEDREAM = "profiles in PipeDream's text, such as https://github.com/msr-fiddle/pipedream (profiler/*/profiles)"
PART, ARCHIVE = "trace_graphs", "graphs.zip"


def make_graphs(settings: GraphSettings) -> tuple[ForwardGraph, ...]:
    """Return the graphs, ordered by name. Costs are in milliseconds, those of files in the unit of the file. Raises
    UserError.
    """
    if settings.source == "traced":
        graphs = _traced(settings)
    elif settings.source == "generated":
        graphs = generated_graphs(settings.generator, settings.seed)
    else:
        graphs = read_graphs(find_graphs(settings.path), settings.max_files)
    known = {graph.name: graph for graph in graphs}
    for name in settings.only:
        if name not in known:
            what = f"there is no graph '{name}'"
            raise UserError(what, where=f"graphs {settings.name}: only", remedy=did_you_mean(name, known))
    return tuple(known[name] for name in sorted(settings.only or known))


def trace_graphs(part: Path, archive: Path, report: Path) -> None:
    """Write the graphs of a frozen part (zip of PipeDream's texts) and their numbers (JSON). Raises UserError."""
    settings = validate(GraphSettings, read_part(part)["graphs"])
    graphs = make_graphs(settings)
    write_graphs(archive, graphs)
    table = statistics_table([training_graph(graph) for graph in graphs])
    rows = [
        {key: list(value) if isinstance(value, tuple) else value for key, value in row.items()}
        for row in table.to_dict("records")
    ]
    device = settings.device.model_dump(mode="json") if settings.device else None
    write_json(report, {"source": settings.source, "device": device, "graphs": {row.pop("name"): row for row in rows}})


def graph_part(settings: GraphSettings, files: tuple[str, ...] = ()) -> Part:
    """Return the parts that the prepare rule reads; scenarios of the same graphs share them.

    files  further files on whose content a scenario's results depend, such as users' classes
    """
    return Part(
        {"graphs": settings.model_dump(mode="json")},
        shared=True,
        files=((settings.path,) if settings.path else ()) + files,
        made_by=f"{__name__}:trace_graphs",
    )


def graph_requirements(settings: GraphSettings) -> list[Requirement]:
    """Return the files of graphs that a run needs and that are not part of the repository."""
    shipped = settings.path.startswith("resources/")
    return (
        [Requirement(f"the graphs {settings.name}", Path(settings.path), PIPEDREAM)]
        if settings.path and not shipped
        else []
    )


def find_graphs(path: str) -> Path:
    """Return the path of a folder or file of graphs: in the checkout or installation (resources/...), or in the data
    folder.
    """
    found = find_resource(path)
    return found if found.exists() else find_data(path)


def _traced(settings: GraphSettings) -> tuple[ForwardGraph, ...]:
    try:
        models = load_object("schedlab.studies.ramp.graphs.models:MODELS")
        trace = load_object("schedlab.studies.ramp.graphs.trace:trace")
    except ImportError as error:
        what = f"models are traced with torch, which cannot be imported ({error})"
        remedy = "install schedlab[learn], or take those that we ship: source: files, path: resources/graphs/a100"
        raise UserError(what, where=f"graphs {settings.name}: source", remedy=remedy) from None
    rates = settings.device, settings.reading_rate
    return tuple(trace(entry.model, entry.batch or models[entry.model].batch, *rates) for entry in settings.models)
