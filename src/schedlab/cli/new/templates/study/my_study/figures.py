"""The figures. A drawing receives the study's tables and the values of its file in conf/figure/my_study/."""

from schedlab.config.contract import Drawing
from schedlab.figures import theme
from schedlab.figures.order import policy_order
from schedlab.figures.panels.axes import axis_label, key, name_rows
from schedlab.figures.panels.facets import Grid, facets
from schedlab.figures.panels.points import UNCERTAINTY, explain_uncertainty, points_with_uncertainty
from schedlab.figures.panels.timeline import boxes

LINE = {"color": "black", "linestyle": "--", "linewidth": 1}


def draw_scores(tables, spec):
    """Draw one panel for each scenario: the score of each policy, and the bound as a line."""
    from my_study.study import STUDY

    metric, styles = STUDY.leading_metric, theme.styles_of(tables.scores)
    rows = tables.summary[tables.summary["split"] == "test"]
    policies, bounds = rows[rows["kind"] != "bound"], rows[rows["kind"] == "bound"]
    order = policy_order(policies, metric)

    def panel(axes, scenario):
        points_with_uncertainty(axes, policies[policies["scenario"] == scenario], order, styles)
        for value in bounds.loc[bounds["scenario"] == scenario, "value"]:
            axes.axvline(value, **LINE)

    groups = {scenario: scenario for scenario in spec.scenarios}
    figure, _ = facets(groups, panel, Grid(x=axis_label(metric)), keys=())
    more = [key("bound", **LINE)] if len(bounds) else []
    values = {"best": order[0], **explain_uncertainty(figure, policies, tables.statistics.confidence, more=more)}
    return Drawing(figure, f"Best: {{best}}. {UNCERTAINTY}", values)


def draw_schedule(tables, spec):
    """Draw one panel for each policy: when, and on which machine, each job of the first test unit ran."""
    rows = tables.details["starts"]
    rows = rows[(rows["split"] == "test") & (rows["scenario"] == spec.scenarios[0])]
    rows = rows[(rows["unit"] == rows["unit"].min()) & (rows["policy_seed"] == rows["policy_seed"].min())]

    def panel(axes, jobs):
        places = [(job.start, job.end, job.machine - 0.4, job.machine + 0.4) for job in jobs.itertuples()]
        boxes(axes, places, [theme.colour(job) for job in jobs["job"]], edgecolor="white")
        for job in jobs.itertuples():
            axes.text((job.start + job.end) / 2, job.machine, job.job, ha="center", va="center", color="white")
        axes.set_xlim(0, rows["end"].max())
        name_rows(axes, [f"machine {number}" for number in range(rows["machine"].max() + 1)])

    figure, _ = facets(
        rows.groupby("policy"), panel, Grid(x="time (s)", most=1, row_mm=22, subplots={"sharex": True}), keys=()
    )
    return Drawing(figure, "Unit {unit} of {scenario}.", {"unit": rows["unit"].min(), "scenario": spec.scenarios[0]})
