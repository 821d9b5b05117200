# Several runs that differ in single values (--config sweep="KEY=VALUE,VALUE"), in one graph of jobs. Each is the
# workflow of one run, used as a module under its name. At the end, a table and a figure over all runs are made.
from schedlab.config.files import write_text_if_changed
from schedlab.config.runtime.parts import dump
from schedlab.figures.index import failures, write_index

with plain_errors():
    options.check_keys(config, CONF)
    SWEEP = options.sweep_of(config)
    options.check_room(Path(f"results/{SCALE}-{SWEEP.name}"), sweep=True)


for swept_run in SWEEP.runs:
    MODULE, PREFIX = f"{SWEEP.name}-{swept_run.name}", f"{swept_run.name}_"

    module:
        name: MODULE
        snakefile:
            str(CHECKOUT / "Snakefile")
        config:
            SWEEP.config_of(swept_run, config)

    use rule * from MODULE exclude unmade_figure, other_scale, measure_device_speed, fetch_data as PREFIX*


RUNS = [globals()[f"{SWEEP.name}-{swept_run.name}"] for swept_run in SWEEP.runs]
SWEPT = f"{SCALE}-{SWEEP.name}"
SWEPT_STUDIES = [study for study in RUNS[0].EXPERIMENT.studies if RUNS[0].study_targets(study)]


def swept_tables(study, table):
    """One table of a study in each run."""
    return [run.results(f"{study}/{table}.parquet") for run in RUNS]


def write_sweep_parts():
    """Freeze what the table and the figure of each study read."""
    for study in SWEPT_STUDIES:
        part = options.sweep_part(SWEEP, [run.EXPERIMENT for run in RUNS], study)
        write_text_if_changed(Path(f"results/{SWEPT}/{study}/config/sweep.yaml"), dump(part))


if workflow.is_main_process:
    with plain_errors():
        write_sweep_parts()


TARGETS = [
    *(target for run in RUNS for target in run.TARGETS),
    *(f"plots/{SWEPT}/{study}/figures.json" for study in SWEPT_STUDIES),
]


for swept_study in SWEPT_STUDIES:

    rule:
        name:
            f"sweep_{swept_study}"
        input:
            config=f"results/{SWEPT}/{swept_study}/config/sweep.yaml",
            scores=swept_tables(swept_study, "scores"),
            summary=swept_tables(swept_study, "summary"),
        output:
            scores=f"results/{SWEPT}/{swept_study}/scores.parquet",
            summary=f"results/{SWEPT}/{swept_study}/summary.parquet",
            figures=[f"plots/{SWEPT}/{swept_study}/sweep.{form}" for form in ("svg", "pdf", "png", "txt", "rst")],
            index=f"plots/{SWEPT}/{swept_study}/figures.json",
        log:
            f"results/{SWEPT}/{swept_study}/logs/sweep.log",
        threads: RUNS[0].resource("draw", "threads")
        resources:
            mem_mb=RUNS[0].resource("draw", "mem_mb"),
            runtime=RUNS[0].resource("draw", "runtime"),
        script:
            "../scripts/sweep.py"

    rule:
        name:
            swept_study
        input:
            [target for run in RUNS for target in run.study_targets(swept_study)],
            f"plots/{SWEPT}/{swept_study}/figures.json",


def index_of_sweep():
    """The page that lists the figures over the sweep."""
    return Path(f"plots/{SWEPT}/INDEX.md")


def end_sweep():
    """End each run, bring the page of the figures over the sweep up to date, and fail for one that was not drawn."""
    for run in RUNS:
        run.end_run()
    page = index_of_sweep()
    lists = sorted(page.parent.glob("*/figures.json"))
    if lists:
        write_index(page.parent)
        print(f"The figures over the sweep: {page}", file=sys.stderr)
    if failed := [f"{index}: {why}" for index in lists for why in failures(index).values()]:
        raise SystemExit("\n".join(f"error: the figure over the sweep could not be drawn: {line}" for line in failed))


onstart:
    for run in RUNS:
        run.begin_run()


onsuccess:
    end_sweep()


onerror:
    for run in RUNS:
        run.failed_run()
