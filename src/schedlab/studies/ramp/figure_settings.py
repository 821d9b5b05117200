"""The drawings of the study and their typed values (`params` of conf/figure/ramp/*.yaml)."""

from __future__ import annotations

from schedlab.config.schema import Settings, setting
from schedlab.config.settings import LONGEST, Names


class GraphsShownSettings(Settings):
    """Which graphs the figures `graphs`, `op_histograms` and `graph_table` show."""

    graphs: Names = setting((), doc="names of graphs; empty: the first `most`")
    most: int = setting(8, doc="most graphs where none are named", ge=1, le=40)
    training_steps: int = setting(1, doc="steps of the sequential completion time (graph_table)", ge=1, le=LONGEST)


class BetasSettings(Settings):
    """The figure `betas`."""

    labels: dict[str, str] = setting({}, doc="scenario -> what it is called in the figure; else its name")


FIGURE_SETTINGS: dict[str, type[Settings]] = {
    "graphs": GraphsShownSettings,
    "op_histograms": GraphsShownSettings,
    "graph_table": GraphsShownSettings,
    "betas": BetasSettings,
}
FIGURES = {
    "graphs": "schedlab.studies.ramp.figures_graphs:draw_graphs",
    "op_histograms": "schedlab.studies.ramp.figures_graphs:draw_op_histograms",
    "graph_table": "schedlab.studies.ramp.figures_graphs:draw_graph_table",
    "betas": "schedlab.studies.ramp.figures_graphs:draw_betas",
}
