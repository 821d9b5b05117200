"""The experiment: every record of conf/ at one scale, checked against each other, and where each result lies.

The workflow asks this object for names and paths; it holds no logic of any study.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import schedlab
from schedlab.config import records
from schedlab.config.composition import Composed, Compositions
from schedlab.config.contract import Study
from schedlab.config.data_paths import find_data, missing_files
from schedlab.config.errors import UserError, UserErrors, did_you_mean, nearest
from schedlab.config.files import content_hash, file_hash
from schedlab.config.plugins import class_mistakes, is_file_target
from schedlab.config.readers import option_names

if TYPE_CHECKING:
    pass

STAGES = ("learn", "evaluate", "summarise", "draw")
BY_STUDY = STAGES[:3]  # rules whose jobs name their study: resources may be of one study


def cross_checks(experiment: Experiment, files: Mapping[str, Mapping[str, list[str]]]) -> Iterable[UserError]:
    """Yield every mistake between the records of an experiment. files: study -> group -> names of the files there
    are.
    """
    for name, study in experiment.studies.items():
        scenarios, policies = files[name]["scenario"], files[name]["policy"]
        complete = len(study.scenarios) == len(scenarios)  # else there may be rules that are not known here
        rules = {rule["name"] for record in study.scenarios.values() for rule in record["rules"]}
        for record in study.scenarios.values():
            yield from _scenario_checks(record, policies)
        for policy, record in study.policies.items():
            yield from _policy_checks(study, policy, record, scenarios, policies)
        known = {"scenario": [*scenarios], "policy": [*policies, *rules]}
        for record in study.figures.values():
            yield from _figure_checks(record, known if complete else {"scenario": known["scenario"]})
            if complete:
                yield from _shown_checks(record, study.scenarios, known["policy"])
        baseline = study.settings["statistics"]["baseline"]
        if complete and study.scenarios and baseline and baseline not in known["policy"]:
            where = f"conf/study/{name}.yaml: statistics.baseline"
            yield UserError(
                f"unknown policy or rule '{baseline}'", where=where, remedy=did_you_mean(baseline, known["policy"])
            )
    if all(len(study.scenarios) == len(files[name]["scenario"]) for name, study in experiment.studies.items()):
        yield from _resource_checks(experiment)


def _scenario_checks(record: Mapping[str, Any], policies: Iterable[str]) -> Iterable[UserError]:
    for policy in record["policies"]:
        if policy not in policies:
            yield UserError(
                f"unknown policy '{policy}'", where=record["where"]["policies"], remedy=did_you_mean(policy, policies)
            )
    names = [rule["name"] for rule in record["rules"]] + record["policies"]
    for twice in sorted({entry for entry in names if names.count(entry) > 1}):
        yield UserError(f"'{twice}' is named twice", where=record["where"]["rules"], remedy="remove one of them")
    for number, rule in enumerate(record["rules"]):
        if is_file_target(rule["target"]):
            yield from class_mistakes(rule["target"], "rule", f"{record['where']['rules']}.{number}.target")


def _policy_checks(
    study: StudyRecords, policy: str, record: Mapping[str, Any], scenarios: Iterable[str], policies: Iterable[str]
) -> Iterable[UserError]:
    where = record["where"]
    if is_file_target(record["target"]):
        yield from class_mistakes(record["target"], "learner", where["learner"])
    for phase in record["train_on"]:
        for scenario in phase["scenarios"]:
            if scenario not in scenarios:
                yield UserError(
                    f"unknown scenario '{scenario}'", where=where["train_on"], remedy=did_you_mean(scenario, scenarios)
                )
    parent, line = record["parent"], [policy]
    while parent is not None:
        if parent not in policies:
            if len(line) == 1:  # else it is told with the policy that names it
                yield UserError(
                    f"unknown policy '{parent}'", where=where["parent"], remedy=did_you_mean(parent, policies)
                )
            return
        if parent in line:
            if parent == min(line[line.index(parent) :]) == policy:  # once for all policies of the cycle
                cycle = " -> ".join([*line, parent])
                remedy = "start one of them from nothing (parent: null)"
                yield UserError(f"the parents form a cycle: {cycle}", where=where["parent"], remedy=remedy)
            return
        line.append(parent)
        above = study.policies.get(parent)
        if above is None:
            return
        missing = set(record["seeds"]) - set(above["seeds"])
        if missing and len(line) == 2:
            yield UserError(f"seeds {sorted(missing)} are not seeds of the parent '{parent}'", where=where["seeds"])
        parent = above["parent"]


def _figure_checks(record: Mapping[str, Any], known: Mapping[str, list[str]]) -> Iterable[UserError]:
    """Names under `scenarios` and `policies` of a figure and in its own values."""
    named = [(record["where"]["scenarios"], "scenario", name) for name in record["scenarios"]]
    named += [(record["where"]["policies"], "policy", name) for name in record["policies"]]
    for where, what, name in [*named, *record["names"]]:
        if what in known and name not in known[what]:
            yield UserError(f"unknown {what} '{name}'", where=where, remedy=did_you_mean(name, known[what]))


def _shown_checks(record: Mapping[str, Any], scenarios: Mapping[str, Any], known: Iterable[str]) -> Iterable[UserError]:
    """Rules and policies that a figure's own values name and that none of its scenarios has; unknown names are told
    elsewhere.
    """
    shown = [scenarios[name] for name in record["scenarios"] if name in scenarios]
    had = {
        name for scenario in shown for name in [*(rule["name"] for rule in scenario["rules"]), *scenario["policies"]]
    }
    for where, what, name in record["names"] if shown else ():
        if what == "policy" and name in known and name not in had:
            text = f"'{name}' is no rule or policy of {', '.join(record['scenarios'])}"
            yield UserError(text, where=where, remedy=did_you_mean(name, had))


def _resource_checks(experiment: Experiment) -> Iterable[UserError]:
    parts = {
        part for study in experiment.studies.values() for record in study.scenarios.values() for part in record["parts"]
    }
    # Whoever takes a shipped study out need not edit scales: its name stays valid, and so does what may be a rule of
    # its own.
    shipped = {file.parent.name for file in (Path(schedlab.__file__).parent / "studies").glob("*/study.py")}
    taken_out = shipped - experiment.studies.keys()
    rules, studies = ["default", *STAGES, *parts], [*experiment.studies, *shipped]
    for name in experiment.scale_values["resources"]:
        study, slash, rule = name.rpartition("/")
        where = f"conf/scale/{experiment.scale}.yaml: resources.{name}"
        if slash and study not in studies:
            yield UserError(f"unknown study '{study}'", where=where, remedy=did_you_mean(study, experiment.studies))
        elif slash and rule not in BY_STUDY:
            yield UserError(
                f"'{rule}' is no rule that several studies share", where=where, remedy=did_you_mean(rule, BY_STUDY)
            )
        elif not slash and rule not in rules and not (taken_out and not nearest(rule, rules)):
            yield UserError(
                f"no scenario needs a workflow rule '{rule}'", where=where, remedy=did_you_mean(rule, rules)
            )


SCALE_ORDER = ("smoke", "small", "full", "paper")


@dataclass
class StudyRecords:
    """The records of one study; `results_version` comes from its code, of which `code` is a hash
    (records.study_code).
    """

    settings: dict[str, Any]
    results_version: int
    code: str = ""
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_drawn: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # figures of other scales, or of scenarios that are not here
    other_scales: dict[tuple[str, str], list[str]] = field(
        default_factory=dict
    )  # ("scenario" or "policy", name) -> where it is instead

    def shown_in(self, figure: Mapping[str, Any]) -> list[str]:
        """Return the scenarios that a figure shows: those that it names and that are here, or all that want to be in
        such figures.
        """
        named = figure["scenarios"] or [
            name for name, record in self.scenarios.items() if record["in_figures"] == "all"
        ]
        return [name for name in named if name in self.scenarios]


@dataclass
class Experiment:
    """All studies at one scale. `not_run` lists (study, scenario or policy, reason) of what lacks its data on this
    machine.
    """

    folder: Path
    scale: str
    seed: int
    scale_values: dict[str, Any]
    theme: dict[str, Any]
    studies: dict[str, StudyRecords]
    cache: records.RecordCache
    not_run: list[tuple[str, str, str]] = field(default_factory=list)
    _known: dict[tuple, Any] = field(default_factory=dict)

    def once(self, key: tuple, make: Callable[[], Any]) -> Any:
        """Return what `make` gave for `key` the first time: an experiment is the view of one moment."""
        if key not in self._known:
            self._known[key] = make()
        return self._known[key]

    @property
    def results(self) -> str:
        """Folder of this scale's results, relative to the working directory."""
        return f"results/{self.scale}"

    @property
    def plots(self) -> str:
        """Folder of this scale's figures."""
        return f"plots/{self.scale}"

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
        """SHA-256 of an outside file or of all files of a folder (None: missing), remembered by path, size and time of
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
                raise UserError(
                    f"scenario '{name}' cannot run here", where=f"conf/scenario/{study}/{name}.yaml", expected=reason
                )
        raise self._unknown("scenario", study, name, known)

    def policy(self, study: str, name: str) -> dict[str, Any]:
        """Record of a learned policy. Raises UserError for an unknown one."""
        known = self.studies[study].policies if study in self.studies else {}
        if name not in known:
            raise self._unknown("policy", study, name, known)
        return known[name]

    def _unknown(self, what: str, study: str, name: str, known: Iterable[str]) -> UserError:
        """The mistake of asking for a scenario or policy that is not here: a name that is none, or one of other
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
        return UserError(told, where=f"conf/{what}/{study}/{name}.yaml: scales", remedy=remedy)

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
                where=f"conf/figure/{study}/{name}.yaml",
                expected="a scenario that runs here",
            )
        remedy = f"ask for plots/{scales[0]}/{study}/{name}.svg with --config scale={scales[0]}" if scales else ""
        what = f"figure '{name}' is drawn at {', '.join(scales) or 'no scale'}, not at {self.scale}"
        raise UserError(what, where=f"conf/figure/{study}/{name}.yaml: scales", remedy=remedy)

    def bundles(self, study: str, scenario: str) -> dict[str, list[str]]:
        """Evaluation jobs of a scenario: name -> rules or learned policies scored together in one process."""
        record = self.scenario(study, scenario)
        bundles = {"rules": [rule["name"] for rule in record["rules"]]} if record["rules"] else {}
        if record["policies"] and self.studies[study].settings["evaluate"] == "together":
            bundles["learned"] = record["policies"]
        else:
            bundles |= {policy: [policy] for policy in record["policies"]}
        return bundles

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
        """Policies of this scale that no scenario compares, nor one that starts from them: nothing learns them."""
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
) -> Experiment:
    """Compose, type and check every file of a configuration folder at one scale. Raises UserErrors with every mistake
    found.

    made: compositions to share among loads of one folder at several scales
    A mistake in config.yaml or in the scale, on which every file builds, is told without what follows from it.
    """
    kept = records.RecordCache(cache)
    conf = records.ConfigurationFolder(Path(folder), scale, kept, made)
    seed = conf.root_seed()
    loaded, door = _studies(conf, find_study)
    scale_values = conf.scale_values(lambda: {name: door(name) for name in loaded})
    for group in ("scenario", "policy", "figure"):
        _add_records(conf, loaded, door, group)
    theme = (
        conf.record("figure", "theme", lambda c: records.theme_record(c, "theme"))
        if conf.holds("figure/theme.yaml")
        else {}
    )
    experiment = Experiment(conf.folder, scale, seed, scale_values, theme or {}, loaded, kept)
    files = {
        name: {group: option_names(conf.folder / group / name) for group in ("scenario", "policy")} for name in loaded
    }
    conf.errors.extend(cross_checks(experiment, files))
    if conf.errors:
        raise UserErrors(conf.errors)
    _restrict(experiment)
    kept.save()
    return experiment


def scenario_records(
    folder: Path | str, scale: str, find_study: records.FindStudy, cache: Path | None = None
) -> dict[str, dict[str, Any]]:
    """Return study -> scenario -> record of every scenario, for whatever scales and data; policies and figures are not
    looked at.

    scale: at which the files are composed. Raises UserErrors with every mistake found.
    """
    conf = records.ConfigurationFolder(Path(folder), scale, records.RecordCache(cache))
    loaded, door = _studies(conf, find_study)
    _add_records(conf, loaded, door, "scenario")
    if conf.errors:
        raise UserErrors(conf.errors)
    return {name: study.scenarios for name, study in loaded.items()}


def missing_data(record: Mapping[str, Any]) -> list[str]:
    """Return what a scenario needs and this machine lacks, with where it should lie and where to get it."""
    told = []
    for need in record["requires"]:
        if need.get("program") and "/" not in need["path"]:
            told += (
                []
                if shutil.which(need["path"])
                else [f"{need['name']}, '{need['path']}' on the PATH ({need['source']})"]
            )
            continue
        path = find_data(need["path"])
        if not path.exists():
            near = nearest(path.name, (file.name for file in path.parent.iterdir())) if path.parent.is_dir() else ""
            told.append(f"{need['name']} at {path} ({f'there is {near}; ' if near else ''}{need['source']})")
        elif missing := missing_files(path, need["files"]):
            told.append(
                f"{need['name']} at {path}, where {', '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing "
                f"({need['source']})"
            )
    return told


class _Doors:
    """Imports a study at the first record that is not in the cache, and not at all where all are."""

    def __init__(self, loaded: Mapping[str, StudyRecords], find_study: records.FindStudy) -> None:
        self.loaded, self.find_study = loaded, find_study
        self.doors: dict[str, Any] = {}

    def __call__(self, name: str) -> Study:
        if name not in self.doors:
            self.doors[name] = self.find_study(self.loaded[name].settings)
        return self.doors[name]


def _studies(
    conf: records.ConfigurationFolder, find_study: records.FindStudy
) -> tuple[dict[str, StudyRecords], _Doors]:
    """The studies, without their scenarios, policies and figures, and their doors; mistakes are kept in conf.errors."""
    settings = {
        name: conf.record("study", name, partial(records.study_record, name=name)) for name in conf.layout.studies
    }
    loaded = {name: StudyRecords(record, 0) for name, record in settings.items() if record}
    door = _Doors(loaded, find_study)
    for name in list(loaded):
        code = loaded[name].code = records.study_code(loaded[name].settings)
        key = f"results_version/{name}:{conf.ground}{code}"
        try:
            loaded[name].results_version = conf.cache.get(key, partial(_results_version, door, name))
        except UserError as error:  # its module cannot be imported
            conf.errors.append(error)
            del loaded[name]
    return loaded, door


def _results_version(door: _Doors, name: str) -> int:
    return door(name).results_version


def _made(
    make: Callable[..., dict[str, Any]], option: str, door: _Doors, name: str, composed: Composed
) -> dict[str, Any]:
    """The record of one file, by the door of its study, which is loaded where the record is not in the cache."""
    return make(composed, option, door(name))


def _add_records(
    conf: records.ConfigurationFolder, loaded: Mapping[str, StudyRecords], door: _Doors, group: str
) -> None:
    """Add the records of a group to their studies; mistakes are kept in conf.errors."""
    make = getattr(records, f"{group}_record")
    for name, study in loaded.items():
        extra = content_hash([study.settings, study.code])
        target = {"scenario": study.scenarios, "policy": study.policies, "figure": study.figures}[group]
        for option in option_names(conf.folder / group / name):
            record = conf.record(f"{group}/{name}", option, partial(_made, make, option, door, name), extra)
            if record:
                target[option] = record


def _restrict(experiment: Experiment) -> None:
    """Keep what belongs to the scale and has its data; note the rest in `not_run`."""
    for name, study in experiment.studies.items():
        for what, there in (("scenario", study.scenarios), ("policy", study.policies)):
            others = {
                (what, key): record["scales"]
                for key, record in there.items()
                if experiment.scale not in record["scales"]
            }
            study.other_scales |= others
        at_scale = {key: record for key, record in study.scenarios.items() if experiment.scale in record["scales"]}
        absent: dict[str, str] = {}
        for key, record in at_scale.items():
            if needs := missing_data(record):
                absent[key] = "; ".join(f"needs {need}" for need in needs)
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
        study.not_drawn = {key: record for key, record in study.figures.items() if key not in drawn}
        study.figures = {key: record for key, record in study.figures.items() if key in drawn}


def _with_their_scenarios(
    policies: Mapping[str, dict[str, Any]], scenarios: Mapping[str, Any]
) -> dict[str, dict[str, Any]]:
    """Policies whose training scenarios run here, and whose ancestors do so too."""

    def runs(name: str) -> bool:
        record = policies.get(name)
        if record is None or any(
            scenario not in scenarios for phase in record["train_on"] for scenario in phase["scenarios"]
        ):
            return False
        return record["parent"] is None or runs(record["parent"])

    return {name: record for name, record in policies.items() if runs(name)}
