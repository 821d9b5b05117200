"""Records a finished run: checks that the present configuration and code would make its tables, and writes them as CSV
with a record of the code, configuration and packages that made them.

To keep a study's record below 2 MB, only parts of the tables are written: the whole summary and headline; the
comparisons on test units; and curves of RETURN and of the metrics in the summary, for the training scenarios in the
headline (all, if it is empty). Of each curve at most CURVE_POINTS points are written: the first, the last, and evenly
spaced ones between.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash, write_json, write_text
from schedlab.config.readers import read_json
from schedlab.config.runtime.parts import MADE_BY, configuration, configuration_hash, dump, read_part
from schedlab.evaluation import tables
from schedlab.evaluation.recorded import RECORD, TABLES, Made, StudyRecord, read_records

if TYPE_CHECKING:
    import pandas as pd

CURVE_POINTS, RETURN = 16, "return"
KINDS = {kind.name: kind for kind in (tables.SUMMARY, tables.COMPARISONS, tables.HEADLINE, tables.CURVES)}
ORIGIN = "tables.provenance.json"
Parts = Mapping[str, Mapping[str, Any]]  # path of a frozen part -> its values


def planned_made(parts: Parts, study: str) -> dict[str, Any]:
    """Return the keys of a record that follow from the frozen parts of a study: hashes, version, packages."""
    summary = next(values for path, values in parts.items() if path.endswith(f"/{study}/config/summarise.yaml"))
    scored: dict[str, dict[str, Mapping[str, Any]]] = {}
    for path, values in parts.items():
        if Path(path).name.startswith("evaluate-"):
            scored.setdefault(values["scenario"], {})[Path(path).stem] = values
    packages = {name: version for values in parts.values() for name, version in values[MADE_BY]["packages"].items()}
    scenarios = {name: _made(jobs) for name, jobs in sorted(scored.items())}
    hashes = {name: made.config_hash for name, made in scenarios.items()}
    return {
        "results_version": summary["results_version"],
        "packages": dict(sorted(packages.items())),
        "config_hash": content_hash([configuration(summary), hashes]),
        "code_hash": summary[MADE_BY]["code"],
        "scenarios": scenarios,
    }


def _made(jobs: Parts) -> Made:
    """Return the hashes for the scores of a scenario. The parts of its evaluation jobs contain the hashes of all
    earlier jobs.
    """
    return Made(
        config_hash=content_hash({name: configuration_hash(values) for name, values in jobs.items()}),
        code_hash=content_hash({name: values[MADE_BY]["code"] for name, values in jobs.items()}),
    )


def check_run(study: str, folder: Path, parts: Parts, again: str) -> None:
    """Compare the results of a study in `folder` with the present frozen parts. Raises UserError if they are not
    complete, or were made by other code or another configuration.

    again  the command that makes the results
    """
    remedy = f"run it: {again}"
    if not folder.is_dir():
        raise UserError(f"there are no results of the study '{study}'", where=str(folder), remedy=remedy)
    origins = dict(_origins(folder, parts))
    made = {path: read_json(origin, "the provenance of a job") for origin, path in origins.items() if origin.is_file()}
    for path, planned in parts.items():
        if not Path(path).is_file():
            raise UserError("the run is not finished: this part is missing", where=path, remedy=remedy)
        if Path(path).read_text(encoding="utf-8") != dump(planned):
            raise _other_part(path, read_part(path), planned, made.get(path), again)
    for origin, path in origins.items():
        if not origin.is_file():
            raise UserError("the run is not finished: this job has not run", where=str(origin), remedy=remedy)
        if what := _unlike(parts[path], read_json(origin, "the provenance of a job")):
            raise UserError(f"it was made by other {what} than is planned now", where=str(origin), remedy=remedy)
    origin = read_json(folder / ORIGIN, "the provenance of a job")
    _require_tables(folder, origin, f"`{again} --forcerun summarise` makes the tables again")
    for name, digest in origin["inputs"].items():
        if not Path(name).is_file():
            raise UserError("the tables were made from a file that is gone", where=name, remedy=remedy)
        if file_hash(name) != digest:
            raise UserError("the tables were made from another file than lies there", where=name, remedy=remedy)


def _require_tables(folder: Path, origin: Mapping[str, Any], remedy: str) -> None:
    """Raise UserError unless each recorded table has the bytes that its provenance states."""
    written = origin.get("hashes")
    if not isinstance(written, Mapping):
        what = "it lacks the hashes of the tables, as that of an earlier version"
        raise UserError(what, where=str(folder / ORIGIN), remedy=remedy)
    for name in (f"{table}.parquet" for table in TABLES):
        if not (folder / name).is_file():
            raise UserError("the run has no such table", where=str(folder / name), remedy=remedy)
        if file_hash(folder / name) != written.get(name):
            what = "the table is not as its job wrote it: it was edited or damaged"
            raise UserError(what, where=str(folder / name), remedy=remedy)


def _origins(folder: Path, parts: Parts) -> Iterator[tuple[Path, str]]:
    """Yield (provenance of a job that must have run, its part); of preparing jobs, only those with a provenance."""
    for path, values in parts.items():
        place = Path(path)
        if place.name == "learn.yaml":
            for seed in values["policy"]["seeds"]:
                yield place.parents[1] / f"seed-{seed}/provenance.json", path
        elif place.name.startswith("evaluate-"):
            bundle = place.stem.removeprefix("evaluate-")
            yield place.parents[1] / f"evaluation/{bundle}.provenance.json", path
    for origin in sorted(folder.glob("**/inputs/**/*provenance.json")):
        if (path := read_json(origin, "the provenance of a job").get("config", "")) in parts:
            yield origin, path
    yield folder / ORIGIN, next(path for path in parts if path.endswith("/config/summarise.yaml"))


def _unlike(planned: Mapping[str, Any], made: Mapping[str, Any]) -> str:
    """Return what differs between a job's provenance and its part: 'configuration', 'code' or ''."""
    if made.get("config_hash") != configuration_hash(planned):
        return "configuration"
    return "code" if made.get("code_hash") != planned[MADE_BY]["code"] else ""


def _other_part(
    path: str, found: Mapping[str, Any], planned: Mapping[str, Any], made: Mapping[str, Any] | None, again: str
) -> UserError:
    """Return the error for a frozen part that differs from the present one."""
    if made and not _unlike(planned, made):
        remedy = f"delete it and run snakemake, which writes it again: {again}"
        return UserError("the frozen part was edited by hand", where=path, remedy=remedy)
    if found.get("results_version") != planned.get("results_version"):
        versions = f"version {found.get('results_version')} of the study's results"
        expected = f"version {planned.get('results_version')}"
        return UserError(f"these are of {versions}", where=path, expected=expected, remedy=f"run it again: {again}")
    what = "code" if configuration(found) == configuration(planned) else "configuration"
    remedy = f"run it again: {again}"
    return UserError(f"the results were made by other {what} than is planned now", where=path, remedy=remedy)


@dataclass(frozen=True)
class Recording:
    """The data for a record: the results of a study, the folder of the record, and its content except for the tables.

    headline  whether the study has a headline, so that this table is required
    """

    results: Path
    target: Path
    record: Mapping[str, Any]
    headline: bool


def write_study_records(wanted: Sequence[Recording]) -> list[StudyRecord]:
    """Write the tables of results, and the records with their hashes. An existing record is replaced as a whole. If one
    of them may not be written, UserError is raised and none is.
    """
    folders: list[Path] = []
    try:
        for one in wanted:
            _check_target(one.target, one.record)
            one.target.parent.mkdir(parents=True, exist_ok=True)
            folders.append(Path(tempfile.mkdtemp(prefix=f".{one.target.name}.", dir=one.target.parent)))
            folders[-1].chmod(0o755)
        made = [_write(one, folder) for one, folder in zip(wanted, folders, strict=True)]
        for one, folder in zip(wanted, folders, strict=True):
            _take_place(folder, one.target)
    finally:
        for folder in folders:
            shutil.rmtree(folder, ignore_errors=True)
    return made


def _write(wanted: Recording, folder: Path) -> StudyRecord:
    for name in TABLES:
        if name != "headline" or wanted.headline or (wanted.results / "headline.parquet").is_file():
            write_text(folder / f"{name}.csv", csv_text(_shown(name, wanted.results)))
    hashes = {path.name: file_hash(path) for path in sorted(folder.glob("*.csv"))}
    made = StudyRecord(**wanted.record, tables=hashes)
    write_json(folder / RECORD, made.model_dump(mode="json"))
    return made


def _check_target(target: Path, record: Mapping[str, Any]) -> None:
    for name, other in read_records(target.parent).items() if target.parent.is_dir() else ():
        if (other.study, other.options) == (record["study"], record["options"]) and name != target.name:
            what = f"{target.parent / name / RECORD} records this run of the study '{other.study}', too"
            raise UserError(what, where=str(target / RECORD), expected="one record of a run", remedy="delete it first")
    known = {RECORD, *(f"{name}.csv" for name in TABLES)}
    if target.exists() and (others := sorted({path.name for path in target.iterdir()} - known)):
        remedy = "move it elsewhere: the folder of a record is replaced as a whole"
        raise UserError("is no part of a record", where=str(target / others[0]), remedy=remedy)


def _take_place(new: Path, target: Path) -> None:
    """Put the folder `new` in the place of `target`; if that fails, restore the previous folder."""
    if not target.exists():
        new.rename(target)
        return
    old = Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target.parent))
    target.replace(old)
    try:
        new.rename(target)
    except BaseException:
        old.replace(target)
        raise
    shutil.rmtree(old)


def _table(folder: Path, name: str) -> pd.DataFrame:
    path = folder / f"{name}.parquet"
    try:
        return tables.read(KINDS[name], path)
    except FileNotFoundError:
        raise UserError("the run has no such table", where=str(path), remedy="run snakemake again") from None
    except (ValueError, OSError) as error:
        what = f"the table is of another version of schedlab, or broken: {error}"
        raise UserError(what, where=str(path), remedy="delete it and run snakemake again") from None


def _shown(name: str, folder: Path) -> pd.DataFrame:
    """Return the part of a table that is recorded."""
    table = _table(folder, name)
    if name == "comparisons":
        return table[table["split"] == "test"]
    if name == "curves":
        measures, asked = {RETURN, *_table(folder, "summary")["metric"]}, set(_table(folder, "headline")["scenario"])
        shown = table["metric"].isin(measures) & (table["train_scenario"].isin(asked) | (not asked))
        return thinned(table[shown])
    return table


def thinned(curves: pd.DataFrame, most: int = CURVE_POINTS) -> pd.DataFrame:
    """Return at most `most` points of each curve: the first, the last, and evenly spaced ones between."""
    import numpy as np

    along = {"step", "episode", "update", "value", "decisions", "episodes", "trainings"}
    groups = curves.groupby([name for name in curves if name not in along], sort=False, dropna=False)
    place, size = groups.cumcount().to_numpy(), groups["value"].transform("size").to_numpy()
    steps = np.maximum(size - 1, most - 1)  # a point is kept where the integer part of its scaled position increases
    return curves[(place == 0) | (place * (most - 1) // steps > (place - 1) * (most - 1) // steps)]


def csv_text(table: pd.DataFrame) -> str:
    """Return a table as CSV with ten significant digits, so that equal tables have equal bytes."""
    text: str = table.to_csv(index=False, float_format="%.10g", lineterminator="\n")
    return text
