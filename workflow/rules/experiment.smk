# The experiment as the workflow sees it: what it is read from, its freezing, and what is done when a run begins and ends.
import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

# Where this file lies; workflow.basedir is another workflow's folder where that one takes this as a module.
CHECKOUT = Path(workflow.current_basedir.get_path_or_uri(secret_free=True)).parents[1]

# The checkout's own package, here and in the scripts of all jobs, whether or not it is installed.
SOURCE = str(CHECKOUT / "src")
sys.path.insert(0, SOURCE)
os.environ.update(PYTHONPATH=os.pathsep.join(filter(None, [SOURCE, os.getenv("PYTHONPATH")])))

from schedlab.config import experiment, freeze, run_lock
from schedlab.config.data_paths import find_data
from schedlab.config.errors import UserError, did_you_mean, disk_trouble
from schedlab.config.files import check_writable, remove_leftovers
from schedlab.evaluation.manifest import NAME as MANIFEST, write_manifest
from schedlab.figures.index import failures, write_index
from schedlab.stages.studies import find_study

RUN_LOCK = Path(".schedlab/run.lock")
OPTIONS = ("scale", "conf", "notify")  # of --config
DRAWN_BEFORE = {}  # the lists of figures that there were when the run began, with their dates


@contextmanager
def plain_errors():
    """A user's mistake, or a full disk, ends the run with its paragraph alone; Snakemake would set it among lines of code."""
    try:
        yield
    except UserError as error:
        raise SystemExit(f"error: {error}") from None
    except OSError as error:
        if trouble := disk_trouble(error, str(Path.cwd())):
            raise SystemExit(f"error: {trouble}") from None
        raise


def read_experiment(scale):
    """Every file of conf/ at a scale, composed and checked."""
    for key in config.keys() - set(OPTIONS):
        raise UserError(f"unknown key '{key}'", where="--config", remedy=did_you_mean(key, OPTIONS))
    own = "conf" if Path("conf").is_dir() else CHECKOUT / "conf"
    return experiment.load(config.get("conf") or own, scale, find_study, cache=Path(f".schedlab/records-{scale}.json"))


def freeze_experiment():
    """Write the parts that changed, unless another run in this directory works with others; say what does not run, and why.

    Figures that could not be drawn are drawn again, with the others of their study, as what was wrong may be mended in a file that no
    rule knows; so the pictures in their place are taken away.
    """
    elsewhere = run_lock.is_held_elsewhere(RUN_LOCK)
    if elsewhere and freeze.differs(EXPERIMENT):
        raise run_lock.busy(RUN_LOCK, ", with a configuration that has changed since it was started")
    freeze.write_parts(EXPERIMENT)
    for index in [] if elsewhere else drawn_lists():
        for figure in failures(index):
            for form in ("svg", "pdf", "png", "txt", "rst"):
                index.with_name(f"{figure}.{form}").unlink(missing_ok=True)
    for study, what, reason in EXPERIMENT.not_run:
        print(f"not run: {study}/{what}: {reason}", file=sys.stderr)


def begin_run():
    """Hold the directory until this process ends, clean up behind a killed run, and freeze again: another may have come and gone.

    Jobs of a killed run end with it where the system can see to that; those that do not are waited for.
    """
    run_lock.hold(RUN_LOCK)
    run_lock.wait_for_jobs(RUN_LOCK)
    run_lock.admit_jobs(RUN_LOCK)
    check_writable(EXPERIMENT.results, EXPERIMENT.plots)  # here, as Snakemake would end in a traceback
    DRAWN_BEFORE.update({path: path.stat().st_mtime_ns for path in drawn_lists()})
    remove_leftovers(EXPERIMENT.results, EXPERIMENT.plots, RUN_LOCK.parent)
    freeze.write_parts(EXPERIMENT)


def drawn_lists():
    """The lists of what was drawn, one a study."""
    return sorted(Path(EXPERIMENT.plots).glob("*/figures.json"))


def undrawn_figures():
    """A paragraph for each figure that this run could not draw: its file, why, and the log."""
    paragraphs = []
    for index in (path for path in drawn_lists() if path.stat().st_mtime_ns != DRAWN_BEFORE.get(path)):
        study = index.parent.name
        for figure, reason in failures(index).items():
            log = f"{EXPERIMENT.results}/{study}/logs/draw.log"
            paragraphs.append(f"error: conf/figure/{study}/{figure}.yaml: could not be drawn: {reason.rstrip('.')} (log: {log})")
    return "\n".join(paragraphs)


def older(file, time):
    """Whether a file was last written before a time, or never."""
    return not file.exists() or file.stat().st_mtime < time


def end_run():
    """Bring the page that lists all figures and the manifest up to date where single figures were asked for, name the page, and fail for
    figures not drawn."""
    index = Path(EXPERIMENT.plots, "INDEX.md")
    newest = max((path.stat().st_mtime for path in drawn_lists()), default=0.0)
    if newest and older(index, newest):
        write_index(index.parent)
    if newest and older(Path(EXPERIMENT.results, MANIFEST), newest):
        write_manifest(Path(), EXPERIMENT.scale)
    if index.exists():
        print(f"The figures with their captions: {index}", file=sys.stderr)
    if failed := undrawn_figures():
        raise SystemExit(failed)


def notify(how):
    """Call the user's command, if there is one, with how the run ended and where: no shell, and its failure is a line on the console."""
    if command := str(config.get("notify") or "").split():
        try:
            subprocess.run([*command, how, f"schedlab, scale {EXPERIMENT.scale}, in {Path.cwd()}"], check=True, timeout=60)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"warning: --config notify: {error}", file=sys.stderr)


SCALE = str(config.get("scale", "small"))
run_lock.sign_jobs()
with plain_errors():
    EXPERIMENT = read_experiment(SCALE)
    if workflow.is_main_process:  # not in the process of a job
        freeze_experiment()

PREPARE_RULES = sorted(path.as_posix() for path in (CHECKOUT / "workflow/rules/prepare").glob("*.smk")) + [
    str(Path(study.settings["prepare"]).resolve()) for study in EXPERIMENT.studies.values() if study.settings["prepare"]
]


onstart:
    with plain_errors():
        begin_run()


onsuccess:
    try:
        with plain_errors():
            end_run()
    except SystemExit:
        notify("failed")
        raise
    notify("succeeded")


onerror:
    if undrawn := undrawn_figures():
        print(undrawn, file=sys.stderr)
    notify("failed")
