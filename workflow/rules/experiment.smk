# The experiment as the workflow sees it: what it is read from, its freezing, and what is done when a run begins and ends.
import os
import sys
from contextlib import contextmanager
from pathlib import Path

# The checkout's own package, here and in the scripts of all jobs, whether or not it is installed.
SOURCE = str(Path(workflow.basedir) / "src")
sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.getenv("PYTHONPATH")])))

from schedlab.config import experiment, freeze, run_lock
from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import remove_leftovers
from schedlab.figures.index import write_index
from schedlab.stages.studies import find_study

RUN_LOCK = Path(".schedlab/run.lock")
OPTIONS = ("scale", "conf")  # of --config


@contextmanager
def plain_errors():
    """A user's mistake ends the run with its paragraph alone; Snakemake would set it among lines of code."""
    try:
        yield
    except UserError as error:
        raise SystemExit(f"error: {error}") from None


def read_experiment(scale):
    """Every file of conf/ at a scale, composed and checked."""
    for key in config.keys() - set(OPTIONS):
        raise UserError(f"unknown key '{key}'", where="--config", remedy=did_you_mean(key, OPTIONS))
    own = "conf" if Path("conf").is_dir() else Path(workflow.basedir) / "conf"
    return experiment.load(config.get("conf") or own, scale, find_study, cache=Path(f".schedlab/records-{scale}.json"))


def freeze_experiment():
    """Write the parts that changed, unless another run in this directory works with others; say what does not run, and why."""
    if run_lock.is_held_elsewhere(RUN_LOCK) and freeze.differs(EXPERIMENT):
        raise run_lock.busy(RUN_LOCK, ", with a configuration that has changed since it was started")
    freeze.write_parts(EXPERIMENT)
    for study, what, reason in EXPERIMENT.not_run:
        print(f"not run: {study}/{what}: {reason}", file=sys.stderr)


def begin_run():
    """Hold the directory until this process ends, clean up behind a killed run, and freeze again: another may have come and gone."""
    run_lock.hold(RUN_LOCK)
    remove_leftovers(EXPERIMENT.results, EXPERIMENT.plots)
    freeze.write_parts(EXPERIMENT)


def end_run():
    """Bring the page that lists all figures up to date where single figures were asked for, and name it."""
    index, drawn = Path(EXPERIMENT.plots, "INDEX.md"), Path(EXPERIMENT.plots).glob("*/figures.json")
    newest = max((path.stat().st_mtime for path in drawn), default=0.0)
    if newest and (not index.exists() or index.stat().st_mtime < newest):
        write_index(index.parent)
    if index.exists():
        print(f"The figures with their captions: {index}", file=sys.stderr)


SCALE = str(config.get("scale", "small"))
with plain_errors():
    EXPERIMENT = read_experiment(SCALE)
    if workflow.is_main_process:  # not in the process of a job
        freeze_experiment()

PREPARE_RULES = sorted(path.as_posix() for path in (Path(workflow.basedir) / "workflow/rules/prepare").glob("*.smk")) + [
    str(Path(study.settings["prepare"]).resolve()) for study in EXPERIMENT.studies.values() if study.settings["prepare"]
]


onstart:
    with plain_errors():
        begin_run()


onsuccess:
    end_run()
