# The experiment table, path helpers and targets. Everything here is asked of schedlab.config; no rule knows a study's details.
import os
import sys
from contextlib import contextmanager
from inspect import signature
from pathlib import Path

# The checkout's own package, here and in the scripts of all jobs, whether or not it is installed.
SOURCE = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.getenv("PYTHONPATH")])))

from schedlab.config import experiment, freeze, run_lock
from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError, did_you_mean
from schedlab.figures.index import write_index
from schedlab.stages.studies import find_study

RUN_LOCK = Path(".schedlab/run.lock")


@contextmanager
def plain_errors():
    """A user's mistake ends the run with its paragraph alone; Snakemake would set it among lines of code."""
    try:
        yield
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


with plain_errors():
    for key in config.keys() - {"scale", "conf"}:
        raise UserError(f"unknown key '{key}'", where="--config", remedy=did_you_mean(key, ("scale", "conf")))
    SCALE = str(config.get("scale", "small"))
    CONF = Path(config.get("conf") or ("conf" if Path("conf").is_dir() else Path(workflow.basedir) / "conf"))
    EXPERIMENT = experiment.load(CONF, SCALE, find_study, cache=Path(f".schedlab/records-{SCALE}.json"))
    if workflow.is_main_process:
        if run_lock.is_held_elsewhere(RUN_LOCK) and freeze.differs(EXPERIMENT):
            raise run_lock.busy(RUN_LOCK, ", with a configuration that has changed since it was started")
        freeze.write_parts(EXPERIMENT)
        for study, what, reason in EXPERIMENT.not_run:
            print(f"not run: {study}/{what}: {reason}", file=sys.stderr)


onstart:
    with plain_errors():
        run_lock.hold(RUN_LOCK)
        freeze.write_parts(EXPERIMENT)  # again, in case another run came and went since the first time


onsuccess:
    index, drawn = Path(plots("INDEX.md")), Path(plots("")).glob("*/figures.json")
    newest = max((path.stat().st_mtime for path in drawn), default=0.0)
    if newest and (not index.exists() or index.stat().st_mtime < newest):  # single figures were asked for, not the page that lists all
        write_index(index.parent)
    if index.exists():
        print(f"The figures with their captions: {index}", file=sys.stderr)


PREPARE_RULES = sorted(path.as_posix() for path in (Path(workflow.basedir) / "workflow/rules/prepare").glob("*.smk")) + [
    str(Path(study.settings["prepare"]).resolve()) for study in EXPERIMENT.studies.values() if study.settings["prepare"]
]


wildcard_constraints:
    study="[a-z0-9_]+",
    scenario="[a-z0-9][a-z0-9._-]*",
    policy="[a-z0-9][a-z0-9._-]*",
    bundle="[a-z0-9][a-z0-9._-]*",
    seed=r"\d+",
    key="[0-9a-f]{12}",


def results(path):
    """Path below this scale's results; wildcards stay as they are."""
    return f"{EXPERIMENT.results}/{path}"


def plots(path):
    """Path below this scale's figures."""
    return f"{EXPERIMENT.plots}/{path}"


def scenario_inputs(study, scenario):
    """A scenario's inputs as '<scenario>/<name>' -> file, for the names of a rule's inputs; job_log.inputs_by_scenario reads them back."""
    return {f"{scenario}/{name}": path for name, path in EXPERIMENT.inputs(study, scenario).items()}


def signed(function):
    """Give a function its signature as a value: Snakemake asks for it at every call and would have it worked out each time."""
    function.__signature__ = signature(function)
    return function


def asks(function):
    """An input function that may name a scenario or policy which is not there: its UserError becomes a plain message."""

    def ask(wildcards):
        with plain_errors():
            return function(wildcards)

    return signed(ask)


def resource(rule_name, key):
    """Resource of a workflow rule from conf/scale/, growing with each attempt where that can help."""
    known = EXPERIMENT.scale_values["resources"]
    value = known.get(rule_name, known.get("default", {})).get(key, {"mem_mb": 2000, "runtime": 60, "threads": 1, "gpus": 0}[key])
    if key in ("mem_mb", "runtime"):
        return signed(lambda wildcards, attempt: value * 2 ** (attempt - 1))
    return value


def part_product(part, name, study):
    """Input function: a file that a prepare part makes for the scenario in the wildcards."""
    return asks(lambda w: EXPERIMENT.product(study, w.scenario, part, name))


def part_config(part, study):
    """Input function: the frozen configuration of a scenario's own prepare part."""
    return asks(lambda w: EXPERIMENT.part_file(study, w.scenario, part))


def shared_need(part, need, name, study):
    """Input function: what a shared part reads of another shared part, found through any scenario that has both."""

    def find(wildcards):
        folder = results(f"{study}/inputs/{part}-{wildcards.key}")
        for scenario in EXPERIMENT.studies[study].scenarios:
            parts = EXPERIMENT.scenario(study, scenario)["parts"]
            if part in parts and EXPERIMENT.part_folder(study, scenario, part) == folder:
                return EXPERIMENT.product(study, scenario, need, name)
        raise UserError(f"no scenario of study '{study}' uses {folder}")

    return asks(find)


def study_figures(study):
    """Names of the figures that a study draws at this scale."""
    return list(EXPERIMENT.studies[study].figures)


def study_targets(study):
    """What a study makes in the end: its summary, its figures, and the scores, so that those of a deleted scenario are made again."""
    if not EXPERIMENT.studies[study].scenarios:
        return []
    figures = [plots(f"{study}/{figure}.{form}") for figure in study_figures(study) for form in ("svg", "pdf", "png")]
    return [results(f"{study}/summary.parquet"), *figures, *evaluations(study, ".parquet")]


def evaluations(study, name):
    """One output of every evaluation job of a study."""
    return [
        results(f"{study}/{scenario}/evaluation/{bundle}{name}")
        for scenario in EXPERIMENT.studies[study].scenarios
        for bundle in EXPERIMENT.bundles(study, scenario)
    ]


def learned(study, name):
    """One output of every learning job of a study."""
    return [
        results(f"{study}/policies/{policy}/seed-{seed}/{name}")
        for policy in EXPERIMENT.compared_policies(study)
        for seed in EXPERIMENT.policy(study, policy)["seeds"]
    ]
