"""The experiment: every record of conf/ at one scale, checked against the others, and the place of each result.

The workflow asks this object for names and paths; it holds no logic of any study.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from schedlab.config import records
from schedlab.config.checks import cross_checks, unused_overrides
from schedlab.config.composition import Composed, Compositions
from schedlab.config.contract import Study
from schedlab.config.data_paths import EntrySettings, entry_of, find_data, missing_files, read_catalogue
from schedlab.config.errors import UserError, UserErrors, did_you_mean, nearest
from schedlab.config.files import content_hash, file_hash
from schedlab.config.readers import option_names
from schedlab.config.records import NAMES_OF, StudyRecords
from schedlab.config.runtime.provenance import room_hash, study_code
from schedlab.config.runtime.record_cache import RecordCache
from schedlab.config.variations import Override

T = TypeVar("T")
SCALE_ORDER = ("smoke", "small", "full", "paper")


@dataclass
class Experiment:
    """All studies at one scale.

    not_run: (study, scenario or policy, reason) of those that cannot run because their data is not on this machine
    to_get: entries of the catalogue that contain such data
    """

    folder: Path
    scale: str
    seed: int
    resources: dict[str, Any]
    theme: dict[str, Any]
    studies: dict[str, StudyRecords]
    cache: RecordCache
    variant: str = ""
    overrides: tuple[Override, ...] = ()
    not_run: list[tuple[str, str, str]] = field(default_factory=list)
    to_get: set[str] = field(default_factory=set)
    _known: dict[tuple[Any, ...], Any] = field(default_factory=dict)

    def once(self, key: tuple[Any, ...], make: Callable[[], T]) -> T:
        """Return what `make` returned at the first call with `key`, so that an experiment shows the configuration of
        one moment.
        """
        if key not in self._known:
            self._known[key] = make()
        known: T = self._known[key]
        return known

    @property
    def run(self) -> str:
        """Name of the run in paths: the scale, followed by the name of the variant, if any."""
        return f"{self.scale}-{self.variant}" if self.variant else self.scale

    @property
    def options(self) -> str:
        """The `--config` options that define this run: its scale and, for a variant, its name and values."""
        given = f"scale={self.scale}" + (f" variant={self.variant}" if self.variant else "")
        return given + (f" set={shlex.quote(' '.join(map(str, self.overrides)))}" if self.overrides else "")

    @property
    def results(self) -> str:
        """Folder of this run's results, relative to the working directory."""
        return f"results/{self.run}"

    @property
    def plots(self) -> str:
        """Folder of this run's figures."""
        return f"plots/{self.run}"

    def part_folder(self, study: str, scenario: str, part: str) -> str:
        """Folder of a prepare part's products: the scenario's own, or that of the study for a shared part."""
        if self.scenario(study, scenario)["parts"][part]["shared"]:
            return f"{self.results}/{study}/inputs/{part}-{self.part_hash(study, scenario, part)[:12]}"
        return f"{self.results}/{study}/{scenario}/inputs"

    def part_file(self, study: str, scenario: str, part: str) -> str:
        """Frozen configuration of a prepare part."""
        if self.scenario(study, scenario)["parts"][part]["shared"]:
            return f"{self.part_folder(study, scenario, part)}/config.yaml"
        return f"{self.results}/{study}/{scenario}/config/{part}.yaml"

    def part_values(self, study: str, scenario: str, part: str) -> dict[str, Any]:
        """Values of a prepare part with the study's results version and the digests of the outside files it reads."""
        record = self.scenario(study, scenario)["parts"][part]
        values = {"results_version": self.studies[study].results_version, **record["values"]}
        if record["files"]:
            values["files"] = {name: self.digest(name) for name in record["files"]}
        return values

    def part_hash(self, study: str, scenario: str, part: str) -> str:
        """Hash of a prepare part's values."""
        return self.once(("part", study, scenario, part), lambda: content_hash(self.part_values(study, scenario, part)))

    def digest(self, name: str) -> str | None:
        """SHA-256 of an outside file or of all files of a folder (None: missing), cached by path, size and time of
        change.
        """
        path = find_data(name)
        if path.is_dir():
            return content_hash(
                [[file.relative_to(path).as_posix(), self._file_digest(file)] for file in sorted(path.rglob("*"))], 64
            )
        return self._file_digest(path)

    def _file_digest(self, path: Path) -> str | None:
        if not path.is_file():
            return None
        stat = path.stat()
        return self.cache.get(f"digest:{path}:{stat.st_size}:{stat.st_mtime_ns}", lambda: file_hash(path))

    def product(self, study: str, scenario: str, part: str, name: str) -> str:
        """Path of one file that a prepare part makes for a scenario."""
        return f"{self.part_folder(study, scenario, part)}/{name}"

    def inputs(self, study: str, scenario: str) -> dict[str, str]:
        """The scenario's inputs by name, as its problem loads them."""

        def place() -> dict[str, str]:
            places = self.scenario(study, scenario)["inputs"]
            return {name: self.product(study, scenario, part, file) for name, (part, file) in places.items()}

        return self.once(("inputs", study, scenario), place)

    def scenario(self, study: str, name: str) -> dict[str, Any]:
        """Record of a scenario. Raises UserError for an unknown one and for one whose data is not on the machine."""
        known = self.studies[study].scenarios if study in self.studies else {}
        if name in known:
            return known[name]
        for where, what, reason in self.not_run:
            if (where, what) == (study, name):
                file = self.studies[study].files["scenario", name]
                raise UserError(f"scenario '{name}' cannot run here", where=file, expected=reason)
        raise self._unknown("scenario", study, name, known)

    def policy(self, study: str, name: str) -> dict[str, Any]:
        """Record of a learned policy. Raises UserError for an unknown one."""
        known = self.studies[study].policies if study in self.studies else {}
        if name not in known:
            raise self._unknown("policy", study, name, known)
        return known[name]

    def _unknown(self, what: str, study: str, name: str, known: Iterable[str]) -> UserError:
        """Return the error for a scenario or policy that is not here: its name is unknown, or it belongs to other
        scales.
        """
        others = self.studies[study].other_scales if study in self.studies else {}
        if (what, name) not in others:
            names = [*known, *(other for kind, other in others if kind == what)]
            return UserError(
                f"there is no {what} '{name}' of study '{study}' at scale {self.scale}",
                remedy=did_you_mean(name, names),
            )
        scales, below = others[what, name], name if what == "scenario" else f"policies/{name}"
        remedy = f"add {self.scale} there"
        if scales:
            remedy += f", or ask for results/{scales[0]}/{study}/{below}/... with --config scale={scales[0]}"
        told = f"{what} '{name}' is there at {', '.join(scales) or 'no scale'}, not at {self.scale}"
        return UserError(told, where=f"{self.studies[study].files[what, name]}: scales", remedy=remedy)

    def check_figure(self, study: str, name: str) -> None:
        """Raise UserError for an unknown figure, and for one that is not drawn at this scale."""
        records = self.studies[study]
        if name in records.figures:
            return
        if name not in records.not_drawn:
            remedy = did_you_mean(name, [*records.figures, *records.not_drawn])
            raise UserError(f"there is no figure '{name}' of study '{study}'", remedy=remedy)
        scales = records.not_drawn[name]["scales"]
        if self.scale in scales:
            raise UserError(
                f"figure '{name}' is not drawn",
                where=records.files["figure", name],
                expected="a scenario that runs here",
            )
        remedy = f"ask for plots/{scales[0]}/{study}/{name}.svg with --config scale={scales[0]}" if scales else ""
        what = f"figure '{name}' is drawn at {', '.join(scales) or 'no scale'}, not at {self.scale}"
        raise UserError(what, where=f"{records.files['figure', name]}: scales", remedy=remedy)

    def bundles(self, study: str, scenario: str) -> dict[str, list[str]]:
        """Evaluation jobs of a scenario: name -> rules or learned policies scored together in one process."""
        record = self.scenario(study, scenario)
        bundles = {"rules": [rule["name"] for rule in record["rules"]]} if record["rules"] else {}
        if record["policies"] and self.studies[study].settings["evaluate"] == "together":
            bundles["learned"] = record["policies"]
        else:
            bundles |= {policy: [policy] for policy in record["policies"]}
        return bundles

    def seeds_together(self, study: str) -> dict[tuple[int, ...], list[str]]:
        """Compared policies whose seeds are learned in one job at this scale, by their seeds. Policies with one seed
        are left out.
        """
        together = self.scale in self.studies[study].settings["seeds_together"]
        found: dict[tuple[int, ...], list[str]] = {}
        for policy in self.compared_policies(study) if together else ():
            seeds = tuple(self.policy(study, policy)["seeds"])
            if len(seeds) > 1:
                found.setdefault(seeds, []).append(policy)
        return found

    def compared_policies(self, study: str) -> list[str]:
        """Learned policies that some scenario compares, with their ancestors; sorted."""
        needed: set[str] = set()
        queue = [policy for record in self.studies[study].scenarios.values() for policy in record["policies"]]
        while queue:
            name = queue.pop()
            if name not in needed:
                needed.add(name)
                queue += [parent] if (parent := self.policy(study, name)["parent"]) else []
        return sorted(needed)

    def uncompared_policies(self, study: str) -> list[str]:
        """Policies of this scale that are never learned: no scenario compares them or a policy that starts from
        them.
        """
        return sorted(self.studies[study].policies.keys() - set(self.compared_policies(study)))

    def training_scenarios(self, study: str, policy: str) -> list[str]:
        """Scenarios that a policy learns on, sorted."""
        return sorted({name for phase in self.policy(study, policy)["train_on"] for name in phase["scenarios"]})


def load(
    folder: Path | str,
    scale: str,
    find_study: records.FindStudy,
    cache: Path | None = None,
    made: Compositions | None = None,
    overrides: Sequence[Override] = (),
    variant: str = "",
) -> Experiment:
    """Compose, type and check every file of a configuration folder at one scale. Raises UserErrors with every mistake
    found.

    made: compositions to share among loads of one folder at several scales
    overrides, variant: values of single keys for this run, and the name of the run that has them

    If config.yaml or the scale, on which every file builds, has a mistake, mistakes that may follow from it are not
    reported.
    """
    kept = RecordCache(cache)
    if cache is not None and variant:  # most files are equal to those of the scale without overrides
        kept.known = RecordCache(cache.with_name(f"records-{scale}.json")).known | kept.known
    conf = records.ConfigurationFolder(Path(folder), scale, kept, made, overrides)
    seed = conf.root_seed()
    loaded, door = _studies(conf, find_study)
    resources = conf.resources(loaded, door)
    for group in ("scenario", "policy", "figure"):
        _add_records(conf, loaded, door, group)
    theme = conf.record("figure", "theme", records.theme_record) if conf.holds("figure/theme.yaml") else {}
    experiment = Experiment(conf.folder, scale, seed, resources, theme or {}, loaded, kept, variant, tuple(overrides))
    conf.errors.extend(cross_checks(experiment.studies, scale))
    conf.errors.extend(unused_overrides(experiment.studies, conf.composer.overrides, conf.layout))
    kept.save()
    if conf.errors:
        raise UserErrors(conf.errors)
    _restrict(experiment)
    return experiment


def scenario_records(
    folder: Path | str, scale: str, find_study: records.FindStudy, cache: Path | None = None
) -> dict[str, dict[str, Any]]:
    """Return study -> scenario -> record of every scenario, whatever its scales and data. Policies and figures are not
    checked.

    scale: scale at which the files are composed. Raises UserErrors with every mistake found.
    """
    conf = records.ConfigurationFolder(Path(folder), scale, RecordCache(cache))
    loaded, door = _studies(conf, find_study)
    _add_records(conf, loaded, door, "scenario", whole=True)
    if conf.errors:
        raise UserErrors(conf.errors)
    return {name: study.scenarios for name, study in loaded.items()}


def missing_data(record: Mapping[str, Any]) -> list[str]:
    """Return the data that a scenario needs and this machine lacks, with where it should lie and where to get it."""
    return [f"{what} ({near}{_source(need)})" for need, what, near in _lacking(record)]


def _lacking(record: Mapping[str, Any]) -> Iterator[tuple[Mapping[str, Any], str, str]]:
    """Yield each requirement of a scenario that is not fulfilled here, a description of the missing data, and a hint at
    a file with a similar name.
    """
    for need in record["requires"]:
        if need.get("program") and "/" not in need["path"]:
            if not shutil.which(need["path"]):
                yield need, f"{need['name']}, '{need['path']}' on the PATH", ""
            continue
        path = find_data(need["path"])
        if not path.exists():
            near = nearest(path.name, (file.name for file in path.parent.iterdir())) if path.parent.is_dir() else ""
            yield need, f"{need['name']} at {path}", f"there is {near}; " if near else ""
        elif missing := missing_files(path, need["files"]):
            what = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
            yield need, f"{need['name']} at {path}, where {what}", ""


def _source(need: Mapping[str, Any]) -> str:
    """How to get missing data: the command if the catalogue contains it, else its source."""
    entry = _entry(need)
    return f"schedlab data get {entry}" if entry else str(need["source"])


def _entry(need: Mapping[str, Any]) -> str | None:
    """The entry of the catalogue that contains the needed data, if any."""
    return entry_of(_catalogue(Path("conf").resolve()), need["path"])


@cache
def _catalogue(conf: Path) -> dict[str, EntrySettings]:
    return read_catalogue(conf)


class _Doors:
    """Finds the `Study` object of a study when a record first needs it; if all records are in the cache, no study is
    imported.
    """

    def __init__(self, loaded: Mapping[str, StudyRecords], find_study: records.FindStudy) -> None:
        self.loaded, self.find_study = loaded, find_study
        self.doors: dict[str, Study] = {}

    def __call__(self, name: str) -> Study:
        if name not in self.doors:
            self.doors[name] = self.find_study(self.loaded[name].settings)
        return self.doors[name]


def _studies(
    conf: records.ConfigurationFolder, find_study: records.FindStudy
) -> tuple[dict[str, StudyRecords], _Doors]:
    """Return the studies, without their scenarios, policies and figures, and their `Study` objects. Mistakes are added
    to conf.errors.
    """
    settings = {name: conf.record("study", name, records.study_record) for name in conf.layout.studies}
    loaded = {name: StudyRecords(record, 0) for name, record in settings.items() if record}
    door = _Doors(loaded, find_study)
    for name in list(loaded):
        conf.composer.sizes[name] = loaded[name].settings["sizes"].get(conf.scale)
        code = loaded[name].code = study_code(loaded[name].settings)
        key = f"door/{name}:{room_hash(name)}{code}"
        try:
            loaded[name].results_version, loaded[name].modules, loaded[name].said = conf.cache.get(
                key, partial(_of_door, door, name)
            )
        except UserError as error:  # the study's module cannot be imported
            conf.errors.append(error)
            del loaded[name]
    return loaded, door


def _of_door(door: _Doors, name: str) -> list[Any]:
    """Return what is cached of a `Study` object: its version of results, the modules that it names (for the hashes of
    their code), and the names of its metrics and deterministic learners.
    """
    study = door(name)
    named = {"rules": study.rules, "learners": study.learners, "figures": study.figures}
    modules = {kind: {key: text.partition(":")[0] for key, text in table.items()} for kind, table in named.items()}
    settings = door.loaded[name].settings
    doors = sorted({settings["module"] or f"schedlab.studies.{name}.study", study.problem.__module__})
    said = {"metrics": [metric.name for metric in study.metrics], "deterministic": list(study.deterministic)}
    return [study.results_version, {"doors": doors, **modules}, said]


def _made(
    make: Callable[..., dict[str, Any]], door: _Doors, name: str, file: str, composed: Composed, option: str
) -> dict[str, Any]:
    """Return the record of one scenario, policy or figure, made with the `Study` object of its study. For a file of
    other scales, it contains only the names that other files may refer to.
    """
    record = records.elsewhere_record(composed, option) if composed.elsewhere else make(composed, option, door(name))
    return {**record, "file": file, "varied": dict(composed.varied)}


def _add_records(
    conf: records.ConfigurationFolder, loaded: Mapping[str, StudyRecords], door: _Doors, group: str, whole: bool = False
) -> None:
    """Add the records of a group to their studies. Mistakes are added to conf.errors. whole: also read files of other
    scales, which are otherwise not checked.
    """
    make = getattr(records, f"{group}_record")
    for name, study in loaded.items():
        extra = [study.settings["module"], study.settings["path"], study.code]
        files = option_names(conf.folder / group / name)
        for file in files:
            made = conf.records(f"{group}/{name}", file, partial(_made, make, door, name, file), extra, whole)
            if not made:
                study.broken[group].append(file)
            for record in made:
                own, where = record["name"], f"conf/{group}/{name}/{file}.yaml"
                target = study.elsewhere[group] if record.get("elsewhere") else getattr(study, NAMES_OF[group])
                if (group, own) in study.files:
                    first, second = sorted((study.files[group, own], where), key=lambda path: Path(path).stem != own)
                    conf.errors.append(UserError(f"'{own}' is also in {first}", where=second, remedy="rename it"))
                target[own], study.files[group, own] = record, where


def _restrict(experiment: Experiment) -> None:
    """Keep the scenarios, policies and figures that belong to the scale and have their data; list the others in
    `not_run`.
    """
    for name, study in experiment.studies.items():
        study.other_scales = {
            (group, key): record["scales"]
            for group in ("scenario", "policy")
            for key, record in study.all(group).items()
            if experiment.scale not in record["scales"]
        }
        at_scale = {key: record for key, record in study.scenarios.items() if experiment.scale in record["scales"]}
        absent: dict[str, str] = {}
        for key, record in at_scale.items():
            if needs := missing_data(record):
                absent[key] = "; ".join(f"needs {need}" for need in needs)
                experiment.to_get |= {entry for need, _, _ in _lacking(record) if (entry := _entry(need))}
        study.scenarios = {key: record for key, record in at_scale.items() if key not in absent}
        experiment.not_run += [(name, key, reason) for key, reason in absent.items()]
        policies = {key: record for key, record in study.policies.items() if experiment.scale in record["scales"]}
        study.policies = _with_their_scenarios(policies, study.scenarios)
        dropped = sorted(policies.keys() - study.policies.keys())
        experiment.not_run += [
            (name, key, "is trained on a scenario that does not run here") for key in dropped if absent
        ]
        for key, record in study.scenarios.items():
            kept = [policy for policy in record["policies"] if policy in study.policies]
            study.scenarios[key] = {**record, "policies": kept}
        drawn = {
            key
            for key, record in study.figures.items()
            if experiment.scale in record["scales"] and study.shown_in(record)
        }
        study.not_drawn = {key: record for key, record in study.all("figure").items() if key not in drawn}
        study.figures = {key: record for key, record in study.figures.items() if key in drawn}


def _with_their_scenarios(
    policies: Mapping[str, dict[str, Any]], scenarios: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Return the policies whose training scenarios, and those of their ancestors, run here."""

    def runs(name: str) -> bool:
        record = policies.get(name)
        if record is None or any(
            scenario not in scenarios for phase in record["train_on"] for scenario in phase["scenarios"]
        ):
            return False
        return record["parent"] is None or runs(record["parent"])

    return {name: record for name, record in policies.items() if runs(name)}
