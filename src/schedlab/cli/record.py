"""`schedlab record`: writes the tables of a finished run, and the record of their origin, into
docs/results/<study>/.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, did_you_mean, shortened

if TYPE_CHECKING:
    from schedlab.config.experiment import Experiment
    from schedlab.evaluation.recording import Recording

SIZE_LIMIT = 2_000_000  # bytes of a study's record; a larger one is reported


def add_record_command(commands: Any, conf: argparse.ArgumentParser) -> None:
    """Add `schedlab record` to the parser's commands."""
    record = commands.add_parser("record", parents=[conf], help="record the tables of a finished run in docs/results/")
    record.add_argument("scale", metavar="SCALE", help="scale of the run")
    record.add_argument("studies", nargs="*", metavar="STUDY", help="default: every study with results of this run")
    record.add_argument(
        "--config",
        nargs="+",
        default=[],
        metavar="KEY=VALUE",
        help="the --config of the run, if it was a variant: variant, set",
    )
    record.add_argument("--to", default="docs/results", metavar="DIR", help="default: docs/results")
    record.add_argument("--smoke", action="store_true", help="allow scale smoke, whose numbers have no meaning")
    record.add_argument(
        "--uncommitted", action="store_true", help="record although files differ from the commit; the record lists them"
    )
    record.set_defaults(run=run)


def run(chosen: argparse.Namespace) -> int:
    """Check all studies, then write a record of each; return 0. If it raises UserError, nothing was written."""
    from schedlab.config.runtime.provenance import uncommitted_files
    from schedlab.evaluation.recording import write_study_records

    if chosen.scale == "smoke" and not chosen.smoke:
        raise UserError("numbers of scale smoke mean nothing", where="SCALE", remedy="record full, or add --smoke")
    changed = uncommitted_files()
    if changed and not chosen.uncommitted:
        what = f"a record names the commit of its code, and {shortened(changed)} differ from it"
        raise UserError(what, remedy="commit them, or add --uncommitted")
    loaded = _experiment(chosen.scale, Path(chosen.conf), chosen.config)
    wanted = [_recording(loaded, study, Path(chosen.to), changed) for study in _studies(loaded, chosen.studies)]
    refuse_to_replace([one.target for one in wanted], chosen.scale)
    for one, made in zip(wanted, write_study_records(wanted), strict=True):
        size = sum((one.target / name).stat().st_size for name in made.tables)
        print(f"{one.target}: {', '.join(made.tables)}, {size / 1e3:,.0f} kB")
        if size > SIZE_LIMIT:
            print(f"warning: {one.target}: more than {SIZE_LIMIT / 1e6:g} MB", file=sys.stderr)
    return 0


def refuse_to_replace(targets: list[Path], scale: str) -> None:
    """Raise UserError if a record would replace one of another scale."""
    from schedlab.evaluation.recorded import RECORD, read_study_record

    for target in targets:
        if (target / RECORD).is_file() and (known := read_study_record(target)).scale != scale:
            what = f"there is a record of scale {known.scale}, which one of scale {scale} would replace"
            raise UserError(what, where=str(target), remedy="name another folder with --to, or delete this one")


def _experiment(scale: str, conf: Path, words: list[str]) -> Experiment:
    from schedlab.cli.check import kept_records
    from schedlab.config import experiment
    from schedlab.config.runtime.options import overrides_of
    from schedlab.stages.studies import find_study

    if wrong := [word for word in words if "=" not in word]:
        raise UserError(f"'{wrong[0]}' sets nothing", where="--config", expected="KEY=VALUE")
    given = dict(word.split("=", 1) for word in words)
    variant = given.get("variant", "")
    cache = kept_records(conf, f"{scale}-{variant}" if variant else scale)
    return experiment.load(conf, scale, find_study, cache, overrides=overrides_of(given, conf), variant=variant)


def _studies(loaded: Experiment, named: list[str]) -> list[str]:
    """Return the named studies; by default, those with results of this run. Raises UserError."""
    for name in named:
        if name not in loaded.studies:
            raise UserError(f"there is no study '{name}'", where="STUDY", remedy=did_you_mean(name, loaded.studies))
        if not loaded.studies[name].scenarios:
            raise UserError(f"the study '{name}' has no scenario that runs here at {loaded.run}", where="STUDY")
    there = [name for name, study in loaded.studies.items() if study.scenarios and Path(loaded.results, name).is_dir()]
    if not named and not there:
        remedy = f"snakemake --cores all --config {loaded.options}"
        raise UserError("there are no results of this run", where=loaded.results, remedy=remedy)
    return named or there


def _recording(loaded: Experiment, study: str, to: Path, changed: list[str]) -> Recording:
    """Return the data for the record of a study. Raises UserError if the run differs from the present plan."""
    from datetime import UTC, datetime

    from schedlab.config.readers import read_json
    from schedlab.config.runtime.freeze import parts_of_tables
    from schedlab.config.runtime.provenance import environment
    from schedlab.evaluation.recording import ORIGIN, Recording, check_run, planned_made
    from schedlab.stages.report import job_costs

    folder = Path(loaded.results, study)
    parts = parts_of_tables(loaded, study)
    check_run(study, folder, parts, f"snakemake --cores all {study} --config {loaded.options}")
    origin = read_json(folder / ORIGIN, "the provenance of a job")
    costs = {
        rule: round(sum(job["cpu_time"] + job["earlier"] for job in jobs), 1)
        for (of, rule), jobs in job_costs(Path(loaded.results)).items()
        if of == study
    }
    made = planned_made(parts, study)
    run = {"study": study, "scale": loaded.scale, "run": loaded.run, "options": loaded.options, "cpu_seconds": costs}
    code = {"commit": environment()["schedlab"]["commit"], "uncommitted": tuple(changed)}
    date = datetime.now(UTC).date().isoformat()
    known = {name: origin[name] for name in ("python", "machine", "instructions") if name in origin}
    record = {**made, **run, **code, **known, "date": date}
    target = to / (f"{study}-{loaded.variant}" if loaded.variant else study)
    return Recording(folder, target, record, headline=bool(loaded.studies[study].settings.get("headline")))
