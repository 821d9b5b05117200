# The experiment as the workflow sees it: reading the configuration, writing the frozen parts, and what is done when a
# run begins and ends.
import re
import subprocess

from schedlab.config import experiment
from schedlab.config.runtime import fork_server, freeze
from schedlab.config.errors import did_you_mean
from schedlab.config.files import check_writable, remove_leftovers, write_json, write_text_if_changed
from schedlab.config.readers import option_names
from schedlab.figures import verdicts
from schedlab.evaluation.manifest import NAME as MANIFEST, write_manifest
from schedlab.figures.index import SIZES, failures, write_index
from schedlab.stages.earlier_outputs import FORCED
from schedlab.stages.studies import find_study

FETCH = "fetch_data"  # the workflow rule that gets data
FETCHING = "SCHEDLAB_FETCHING"  # the environment variable that tells a run that it was started for this rule
DRAWN_BEFORE = {}  # path -> time of change, when the run began, of each list of figures, the page of all, and headlines


def read_experiment(scale, variant):
    """Every file of conf/ at a scale, with the values that are set for this run, composed and checked."""
    overrides = options.overrides_of(config, CONF)
    name = "-".join(filter(None, (scale, variant)))
    options.check_room(Path("results", name), sweep=False)
    cache = Path(f".schedlab/records-{name}.json")
    return experiment.load(CONF, scale, find_study, cache, overrides=overrides, variant=variant)


def fetch_missing_data():
    """Run the rule that gets the data that this run lacks, in a run of its own, because what a run plans depends on
    the data that is there. The rule prints what could not be had.
    """
    given = Path(".schedlab/fetch.json")
    write_json(given, {key: value for key, value in config.items() if key != "fetch"})
    command = [sys.executable, "-m", "snakemake", FETCH, "--snakefile", str(CHECKOUT / "Snakefile"), "--nolock"]
    command += ["--cores", "1", "--profile", "none", "--workflow-profile", "none", "--configfile", str(given)]
    subprocess.run(command, check=False, env={**os.environ, FETCHING: "1"})


def freeze_experiment():
    """Write the frozen parts that changed, and print what does not run and why. Raises UserError if another run in this
    directory uses the parts as they were.
    """
    if run_lock.is_held_elsewhere(RUN_LOCK) and freeze.differs(EXPERIMENT):
        raise run_lock.busy(RUN_LOCK, ", with a configuration that has changed since it was started")
    freeze.write_parts(EXPERIMENT)
    if FETCHING not in os.environ:
        for study, what, reason in EXPERIMENT.not_run:
            print(f"not run: {study}/{what}: {reason}", file=sys.stderr)


def draw_again(study):
    """If a figure of a study could not be drawn, return a file newer than the figures, as an input of the drawing.

    Snakemake then draws the figures again, because the mistake may have been corrected in a file that is no rule's
    input. (Deleting the figures would do the same, but even a dry run would delete them.) The content of the file
    differs each time, because Snakemake compares the content of small files as well as their times.
    """
    index = Path(EXPERIMENT.plots, study, "figures.json")
    if not failures(index):
        return []
    mark = RUN_LOCK.with_name(f"undrawn-{EXPERIMENT.run}-{study}")
    if workflow.is_main_process and not run_lock.is_held_elsewhere(RUN_LOCK):
        write_text_if_changed(mark, str(index.stat().st_mtime_ns))
    return [str(mark)] if mark.is_file() else []


def start_jobs_without_limit():
    """Take away the limit on starts of jobs where it is Snakemake's default, 100 a second.

    Snakemake 9 looks for jobs again a second after each look, as long as there is a limit, and each finished job begins
    another such chain. None means no limit in Snakemake too, but no option gives it. If a later version has no
    `job_rate_limiter`, this changes nothing.
    """
    limiter = getattr(workflow.scheduler, "job_rate_limiter", None)
    if limiter is not None and (limiter.max_jobs, limiter.timespan) == (100, 1):
        workflow.scheduler.job_rate_limiter = None


@plain_errors()
def begin_run():
    """Lock the directory until this process ends, remove what a killed run left, and write the frozen parts again,
    since another run may have changed them.

    On Linux the jobs of a killed run end with it; elsewhere this waits until they have ended.
    """
    run_lock.hold(RUN_LOCK)
    run_lock.wait_for_jobs(RUN_LOCK)
    run_lock.admit_jobs(RUN_LOCK)
    os.environ[FORCED] = "1" if workflow.dag_settings.forceall or workflow.dag_settings.forcerun else ""
    if workflow.local_exec:
        run_lock.end_after_jobs()
        start_jobs_without_limit()
        fork_server.start(RUN_LOCK.with_name("jobs.sock"), dict.fromkeys(instructions.THREADS, "1"))
    check_writable(EXPERIMENT.results, EXPERIMENT.plots)  # later Snakemake would fail with a traceback
    DRAWN_BEFORE.update(
        {
            path: path.stat().st_mtime_ns
            for path in [*drawn_lists(), page_of_figures(), *headline_tables()]
            if path.exists()
        }
    )
    remove_leftovers(EXPERIMENT.results, EXPERIMENT.plots, RUN_LOCK.parent)
    freeze.write_parts(EXPERIMENT)


def drawn_lists():
    """The lists of what was drawn, one a study."""
    return sorted(Path(EXPERIMENT.plots).glob("*/figures.json"))


def headline_tables():
    """The tables of the answers to the questions, of each study that has one already."""
    return [file for study in EXPERIMENT.studies if (file := Path(results(f"{study}/headline.parquet"))).is_file()]


def page_of_figures():
    """The page that lists all figures of this scale."""
    return Path(EXPERIMENT.plots, "INDEX.md")


def is_of_this_run(path):
    """Whether a file was written since the run began."""
    return path.exists() and path.stat().st_mtime_ns != DRAWN_BEFORE.get(path)


def undrawn_figures():
    """A paragraph for each figure that this run could not draw: its file, why, and the log."""
    paragraphs = []
    for index in filter(is_of_this_run, drawn_lists()):
        study = index.parent.name
        for figure, reason in failures(index).items():
            log = f"{EXPERIMENT.results}/{study}/logs/draw.log"
            file = EXPERIMENT.studies[study].files["figure", figure]
            paragraphs.append(f"error: {file}: '{figure}' could not be drawn: {reason.rstrip('.')} (log: {log})")
    return "\n".join(paragraphs)


def unfetched_data():
    """A sentence about data that this run should have got and could not; "" if there is none."""
    names = ", ".join(sorted(UNFETCHED))
    return f"error: could not be fetched: {names}, and so the scenarios above did not run" if names else ""


def older(file, time):
    """Whether a file was last written before a time, or never."""
    return not file.exists() or file.stat().st_mtime < time


def end_run():
    """Update the lists over all jobs, fail if a figure could not be drawn, and notify the user."""
    end_live_line()
    try:
        with plain_errors():
            complete_lists()
        if failed := "\n".join(filter(None, [undrawn_figures(), unfetched_data()])):
            raise SystemExit(failed)
    except SystemExit:
        notify("failed")
        raise
    notify("succeeded")


def failed_run():
    """After a failure of jobs, print the figures that could not be drawn as well, and notify the user."""
    end_live_line()
    if undrawn := undrawn_figures():
        print(undrawn, file=sys.stderr)
    notify("failed")


def complete_lists():
    """Update the page of all figures and the manifest, which a run of single figures does not make. Print the answers
    that this run made and, if it drew a figure or wrote the page, the name of the page.
    """
    index = page_of_figures()
    newest = max((path.stat().st_mtime for path in drawn_lists()), default=0.0)
    if newest and older(index, newest):
        write_index(index.parent, headline_tables())
    if newest and older(Path(EXPERIMENT.results, MANIFEST), newest):
        write_manifest(Path(), EXPERIMENT.run)
    if answers := [line for table in filter(is_of_this_run, headline_tables()) for line in verdicts.lines(table)]:
        print("\n".join([*filter(None, [SIZES.get(SCALE) if SCALE == "smoke" else ""]), *answers]), file=sys.stderr)
    if any(map(is_of_this_run, [*drawn_lists(), index])):
        print(f"The figures with their captions: {index}", file=sys.stderr)


def notify(how):
    """Call the user's command, if there is one, with how the run ended, and with the run and its directory. It
    is called without a shell. If it fails, a warning is printed.
    """
    if command := str(config.get("notify") or "").split():
        try:
            subprocess.run(
                [*command, how, f"schedlab, scale {EXPERIMENT.run}, in {Path.cwd()}"], check=True, timeout=60
            )
        except (OSError, subprocess.SubprocessError) as error:
            print(f"warning: --config notify: {error}", file=sys.stderr)


run_lock.sign_jobs()
UNFETCHED = set()
with plain_errors():
    EXPERIMENT = read_experiment(SCALE, str(config.get("variant") or ""))
    if options.fetches(config) and EXPERIMENT.to_get and workflow.is_main_process:
        if workflow.output_settings.dryrun:
            print(f"would be fetched first: {', '.join(sorted(EXPERIMENT.to_get))}", file=sys.stderr)
        elif workflow.resource_settings.cores or workflow.resource_settings.nodes:  # not for --list-rules and the like
            fetch_missing_data()
            EXPERIMENT = read_experiment(SCALE, str(config.get("variant") or ""))
            UNFETCHED = EXPERIMENT.to_get
    if workflow.is_main_process:  # not in the process of a job
        freeze_experiment()

PREPARE_RULES = sorted(path.as_posix() for path in (CHECKOUT / "workflow/rules/prepare").glob("*.smk")) + [
    str(Path(study.settings["prepare"]).resolve()) for study in EXPERIMENT.studies.values() if study.settings["prepare"]
]


onstart:
    begin_run()


onsuccess:
    end_run()


onerror:
    failed_run()
