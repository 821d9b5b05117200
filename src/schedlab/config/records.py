"""Records: the values of each configuration file that the workflow needs, as plain JSON that can be cached by content.

A record is made from one composed, typed and checked file. Making one requires a Hydra composition (about 20 ms), so
records are kept in a cache whose keys hash the file itself, everything it may build on, and the code that reads it.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Literal

from schedlab.config.composition import Composed, Composer, Compositions
from schedlab.config.contract import Study
from schedlab.config.data_paths import find_resource
from schedlab.config.errors import UserError, UserErrors, did_you_mean, nearest
from schedlab.config.files import content_hash
from schedlab.config.plugins import class_mistakes, is_file_target
from schedlab.config.readers import option_names, read_yaml
from schedlab.config.runtime.provenance import room_hash
from schedlab.config.runtime.record_cache import RecordCache
from schedlab.config.schema import NoSettings, Settings, names_within, setting, validate
from schedlab.config.settings import (
    FigureSettings,
    PolicySettings,
    Resources,
    RootSettings,
    RuleSettings,
    ScenarioSettings,
    StudySettings,
    ThemeSettings,
)
from schedlab.config.variations import Override, with_value

Scale = Literal["smoke", "small", "full", "paper"]
BY_STUDY = ("learn", "evaluate", "summarise")  # rules of which a study may set the resources for its own jobs
SHARED = ("default", *BY_STUDY, "draw")  # rules with resources for all studies
FindStudy = Callable[[Mapping[str, Any]], Study]  # typed study settings as plain values -> the `Study` object
NAMES_OF = {"scenario": "scenarios", "policy": "policies", "figure": "figures"}


class Names(tuple[Any, ...]):
    """Names that other files may refer to. A name that begins with the name of a broken file counts as known, because
    it may be a member of the family in that file.
    """

    broken: tuple[str, ...]

    def __new__(cls, names: Iterable[str], broken: tuple[str, ...]) -> Names:
        made = super().__new__(cls, names)
        made.broken = broken
        return made

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (isinstance(name, str) and name.startswith(self.broken or ("\0",)))


@dataclass
class StudyRecords:
    """The records of one study. `results_version` is set by its code; `code` is a hash of that code
    (provenance.study_code).
    """

    settings: dict[str, Any]
    results_version: int
    modules: dict[str, Any] = field(default_factory=dict)
    said: dict[str, list[str]] = field(default_factory=dict)  # names of its metrics, and of deterministic learners
    code: str = ""
    scenarios: dict[str, dict[str, Any]] = field(default_factory=dict)
    policies: dict[str, dict[str, Any]] = field(default_factory=dict)
    figures: dict[str, dict[str, Any]] = field(default_factory=dict)
    not_drawn: dict[str, dict[str, Any]] = field(
        default_factory=dict
    )  # figures of other scales, or of scenarios that do not run here
    other_scales: dict[tuple[str, str], list[str]] = field(
        default_factory=dict
    )  # ("scenario" or "policy", name) -> its scales
    files: dict[tuple[str, str], str] = field(default_factory=dict)  # (group, name) -> the file that contains it
    broken: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # group -> files with a mistake
    elsewhere: dict[str, dict[str, Any]] = field(
        default_factory=lambda: defaultdict(dict)
    )  # group -> name -> short record of a file of other scales (elsewhere_record)

    def known(self, group: str) -> Names:
        """Return the names of a group for the checks: the existing ones, and those that a broken file may define."""
        return Names((*self.all(group), *self.broken[group]), tuple(self.broken[group]))

    def all(self, group: str) -> dict[str, dict[str, Any]]:
        """Return the records of a group, including the short records of other scales."""
        found: dict[str, dict[str, Any]] = getattr(self, NAMES_OF[group])
        return found | self.elsewhere[group]

    def shown_in(self, figure: Mapping[str, Any]) -> list[str]:
        """Return the scenarios that a figure shows: those that it names and that run at this scale; if it names none,
        all with `in_figures: all`.
        """
        named = figure["scenarios"] or [
            name for name, record in self.scenarios.items() if record["in_figures"] == "all"
        ]
        return [name for name in named if name in self.scenarios]


class ConfigurationFolder:
    """All files of conf/, hashed once; makes the records of studies, scenarios, policies and figures at one scale.

    errors: every mistake found so far. Raises UserError if the folder or scale does not exist, and UserErrors if the
    root or the scale, on which everything else builds, cannot be read.
    """

    def __init__(
        self,
        folder: Path,
        scale: str,
        cache: RecordCache,
        made: Compositions | None = None,
        overrides: Sequence[Override] = (),
    ) -> None:
        self.folder, self.scale, self.cache = Path(folder), scale, cache
        self.composer = Composer(folder, scale, made, overrides)
        self.overrides = self.composer.overrides
        if not (self.folder / "config.yaml").is_file():
            raise UserError(
                f"there is no {self.folder.as_posix()}/config.yaml",
                expected="a configuration folder",
                remedy="run in a checkout, or name it",
            )
        self.layout = self.composer.made.layout(cache.get)
        self.errors: list[UserError] = list(self.layout.errors)
        if scale not in option_names(self.folder / "scale"):
            raise UserError(
                f"there is no scale '{scale}'",
                where="scale",
                remedy=did_you_mean(scale, option_names(self.folder / "scale")),
            )
        if self.layout.broken & {"config.yaml", f"scale/{scale}.yaml"}:
            raise UserErrors(self.errors)

    def holds(self, name: str) -> bool:
        """Return whether there is a file of this name (relative, with its ending)."""
        return name in self.layout.hashes

    def root_seed(self) -> int:
        """Return `seed` of config.yaml, from which every random stream is derived. Raises UserErrors, because every
        file is composed with the seed.
        """
        file = self.folder / "config.yaml"
        values = dict(self.cache.get(f"root:{self.layout.hashes['config.yaml']}", lambda: read_yaml(file)))
        origins = {}
        for override in self.overrides:
            if override.keys[0] == "seed":
                values[".".join(override.keys)] = override.value
                origins[override.keys] = override.where
        with self._alone():
            return validate(RootSettings, values, Composed(values, ((file, ()),), False, origins).locate).seed

    def resources(self, studies: Mapping[str, StudyRecords], doors: Callable[[str], Study]) -> dict[str, Any]:
        """Return the resources that the jobs of each workflow rule may use at the scale (settings.resource), after a
        check of the sizes of the studies. Raises UserErrors for mistakes in either, because files are composed with the
        sizes.
        """
        file = self.folder / "scale" / f"{self.scale}.yaml"
        values, origins = read_yaml(file), {}
        for override in self.overrides:
            if override.keys[0] == "scale":
                values = with_value(values, override.keys[1:], override.value)
                origins[override.keys[1:]] = override.where
        with self._alone():
            common = scale_resources(Composed(values, ((file, ()),), False, origins), self.scale)
            errors = [error for name, study in studies.items() for error in self._size_mistakes(name, study, doors)]
            if errors:
                raise UserErrors(errors)
        return common | {
            f"{name}/{rule}" if rule in BY_STUDY else rule: asked
            for name, study in studies.items()
            for rule, asked in study.settings["resources"].get(self.scale, {}).items()
        }

    def _size_mistakes(self, name: str, study: StudyRecords, doors: Callable[[str], Study]) -> list[UserError]:
        """Return the mistakes in the sizes of a study at the scale. The types are in the `Study` object; valid sizes
        are not checked again.
        """

        def check() -> list[UserError]:
            composed = self.composer.compose("study", name)
            sizes = study.settings["sizes"].get(self.scale, {})
            if errors := _mistakes(doors(name).scale, sizes, composed, ("sizes", self.scale)):
                raise UserErrors(errors)
            return []

        try:
            given = [study.settings["sizes"].get(self.scale), room_hash(name), study.code]
            return self.cache.get(f"sizes/{name}@{self.scale}:{content_hash(given)}", check)
        except UserErrors as several:
            return list(several.errors)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Raise mistakes from which others would follow at once, together with those found before."""
        try:
            yield
        except UserErrors as several:
            raise UserErrors([*self.errors, *several.errors]) from None

    def _key(self, group: str, name: str, extra: Any) -> str:
        """Return the cache key for the records of a file. It hashes all files that the file builds on, its study's
        sizes, the overrides that may affect it, and the code that reads it.
        """
        study = group.partition("/")[2]
        behind = sorted(self.layout.below(f"{group}/{name}.yaml"))
        given = [
            [self.layout.hashes.get(file) for file in ("config.yaml", *behind)],
            self.composer.scale_of(study),
            [override.text for override in self.overrides if self._may_touch(override, group, name, behind)],
            room_hash(study or name),
            extra,
        ]
        return f"{group}/{name}@{self.scale}:{content_hash(given)}"

    def _may_touch(self, override: Override, group: str, name: str, behind: Iterable[str]) -> bool:
        """Return whether an override may set a value of a file or of one that it builds on. An override of a member may
        affect any family of the group.
        """
        if override.keys == ("seed",):
            return True
        names = set(option_names(self.folder / group)) - {name}
        if override.keys[: group.count("/") + 1] == tuple(group.split("/")) and not override.below(group, names):
            return True
        files = [Path(file).with_suffix("") for file in behind]
        return any(override.below(file.parent.as_posix(), (file.name,)) for file in files)

    def record(self, group: str, name: str, make: Callable[[Composed, str], Any], extra: Any = None) -> Any:
        """Return the record of conf/<group>/<name>.yaml, which is not a family; None if the file has a mistake."""
        return next(iter(self.records(group, name, make, extra)), None)

    def records(
        self, group: str, name: str, make: Callable[[Composed, str], Any], extra: Any = None, whole: bool = True
    ) -> list[Any]:
        """Return the record of conf/<group>/<name>.yaml, or those of the members of a family, from the cache or by
        `make`. Empty (with the mistakes added to `errors`) if one has a mistake. whole: also check files and members of
        other scales.
        """
        if f"{group}/{name}.yaml" in self.layout.broken:
            return []
        try:
            key = self._key(group, name, [extra, whole])
            return self.cache.get(key, lambda: self._made(group, name, make, whole))
        except UserErrors as several:
            self.errors.extend(several.errors)
        except UserError as error:
            self.errors.append(error)
        return []

    def _made(self, group: str, name: str, make: Callable[[Composed, str], Any], whole: bool) -> list[Any]:
        found, errors = [], dict[str, UserError]()
        for member, composed in self.composer.members(group, name, not whole):
            try:
                found.append(make(composed, member))
            except UserError as error:
                errors |= {str(one): one for one in (error.errors if isinstance(error, UserErrors) else (error,))}
        if errors:
            raise UserErrors(errors.values())
        return found


def typed(kind: type[Settings], composed: Composed, name: str) -> Any:
    """Return the typed settings of a composed file in its own mode, with the file's name checked. Raises UserErrors."""
    errors = [*_name_mistakes(kind, composed, name), *_mode_mistakes(kind, composed)]
    typed_values = None
    try:
        typed_values = _in_mode(kind, composed)[0]
        if composed.values.get("reference"):
            _in_mode(kind, composed, always=True)
    except UserErrors as several:
        errors.extend(several.errors)
    if errors:
        raise UserErrors(errors)
    return typed_values


def _name_mistakes(kind: type[Settings], composed: Composed, name: str) -> Iterable[UserError]:
    """Yield a mistake if the name, or the one under `reference`, is not the file's name."""
    values, located = composed.in_mode(always=True)
    given = values.get("name")
    if "name" in kind.model_fields and isinstance(given, str) and given != name:
        expected = f"the file's name '{name}'"
        yield UserError(
            f"the name is '{given}'", where=located.locate(("name",)), expected=expected, remedy="rename either"
        )


def _mode_mistakes(kind: type[Settings], composed: Composed) -> Iterable[UserError]:
    """Yield a mistake if a scenario in mode reference has no values for it: its results would be those of the default
    under the name of the published system.

    A policy is not checked: its learner may already have the published values, as imported learners do.
    """
    if (
        issubclass(kind, ScenarioSettings)
        and composed.values.get("mode") == "reference"
        and not composed.values.get("reference")
    ):
        what, remedy = (
            "there are no values under 'reference'",
            "write them there, by the keys that they replace, or take mode: default",
        )
        yield UserError(what, where=composed.locate(("mode",)), expected="the published system's values", remedy=remedy)


def _in_mode(kind: type[Settings], composed: Composed, always: bool = False) -> tuple[Any, Composed]:
    """Return the typed settings of a file in its own mode (always: in mode reference), and the object that locates
    mistakes in them.
    """
    values, located = composed.in_mode(always)
    return validate(kind, values, located.locate), located


class ScaleFile(Settings):
    """Settings of one scale that all studies share (conf/scale/<name>.yaml)."""

    name: Scale = setting(doc="equal to the file's name")
    resources: dict[str, Resources] = setting(
        {}, doc="for each workflow rule: learn, evaluate, summarise, draw; `default` applies to all others"
    )


class StudyFile(StudySettings):
    """The file of a study (conf/study/<name>.yaml): its settings for the workflow, and its sizes at each scale."""

    sizes: dict[Scale, dict[str, Any]] = setting(
        {}, doc="sizes at each scale, typed by the study; its files read them as `${scale.studies.<name>.<key>}`"
    )
    resources: dict[Scale, dict[str, Resources]] = setting(
        {}, doc="for each scale and workflow rule: learn, evaluate, summarise, or a prepare rule of the study"
    )


def study_record(composed: Composed, name: str) -> dict[str, Any]:
    """Return the record of a study file: its typed values."""
    record: dict[str, Any] = json.loads(typed(StudyFile, composed, name).model_dump_json())
    return record


def scale_resources(composed: Composed, scale: str) -> dict[str, Any]:
    """Check the values of conf/scale/<scale>.yaml and return its resources by workflow rule. Raises UserErrors."""
    if "studies" in composed.values:
        remedy = f"write the sizes of a study into conf/study/<study>.yaml, under sizes.{scale}"
        raise UserErrors([UserError("unknown key 'studies'", where=composed.locate(("studies",)), remedy=remedy)])
    record: dict[str, Any] = json.loads(typed(ScaleFile, composed, scale).model_dump_json())
    if unknown := [rule for rule in record["resources"] if rule not in SHARED]:
        raise UserErrors(
            UserError(
                f"studies share no workflow rule '{rule}'",
                where=composed.locate(("resources", rule)),
                remedy=f"write it into conf/study/<study>.yaml, under resources.{scale}; {did_you_mean(rule, SHARED)}",
            )
            for rule in unknown
        )
    return dict(record["resources"])


def _mistakes(kind: type[Settings], values: Any, composed: Composed, under: tuple[Any, ...]) -> tuple[UserError, ...]:
    """Return the mistakes in a section of a composed file, checked with the type `kind`."""
    try:
        validate(kind, values, lambda path: composed.locate((*under, *path)))
    except UserErrors as several:
        return several.errors
    return ()


def elsewhere_record(composed: Composed, name: str) -> dict[str, Any]:
    """Return the short record of a scenario, policy or figure of another scale: the names that other files may refer
    to. Its values are not checked.
    """
    rules, policies = (
        value if isinstance(value := composed.values.get(key), list) else [] for key in ("rules", "policies")
    )
    named = [rule.get("name") if isinstance(rule, Mapping) else rule for rule in rules]
    return {
        "name": name,
        "elsewhere": True,
        "scales": composed.values["scales"],
        "rules": [{"name": rule} for rule in named if isinstance(rule, str)],
        "policies": [policy for policy in policies if isinstance(policy, str)],
        "recipe": str(composed.values.get("recipe") or ""),
    }


def scenario_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a scenario: name, mode, rules, policies, parts of its prepare rules, problem, inputs and
    required data.
    """
    scenario = checked_scenario(composed, name, study)
    with _placed(composed):
        parts = study.parts(scenario)
    return {
        "name": scenario.name,
        "mode": scenario.mode,
        "seed": scenario.seed,
        "scales": list(scenario.scales),
        "in_figures": scenario.in_figures,
        "where": {key: composed.locate((key,)) for key in ("rules", "policies")},
        "rules": [_rule_record(rule, study) for rule in scenario.rule_settings()],
        "policies": list(scenario.policies),
        "parts": {
            part: {
                "values": dict(given.values),
                "shared": given.shared,
                "needs": list(given.needs),
                "files": list(given.files),
                "spread": dict(given.spread),
                "made_by": given.made_by,
            }
            for part, given in parts.items()
        },
        "problem": dict(study.problem_part(scenario)),
        "facts": dict(study.facts(scenario)) if study.facts else {},
        "inputs": {key: list(place) for key, place in study.inputs(scenario).items()},
        "requires": [json.loads(json.dumps(asdict(need), default=Path.as_posix)) for need in study.requires(scenario)],
    }


def _rule_record(rule: RuleSettings, study: Study) -> dict[str, Any]:
    record: dict[str, Any] = json.loads(rule.model_dump_json())
    return {**record, "kind": rule.kind or study.kinds.get(rule.target or rule.name, "rule")}


def checked_scenario(composed: Composed, name: str, study: Study) -> Any:
    """Return the typed scenario of a file after all checks of its rules and its study, in the file's own mode. Raises
    UserErrors.
    """
    try:
        scenario: Any = typed(study.scenario, composed, name)
    except UserErrors as several:
        raise UserErrors([*several.errors, *_named_rule_mistakes(composed, study)]) from None
    assert isinstance(scenario, ScenarioSettings)
    given, located = _in_mode(study.scenario, composed)
    if errors := [*_rule_mistakes(given, located, study)]:
        raise UserErrors([*errors, *_class_mistakes(given, located)])
    with _placed(located):
        if errors := list(study.check(given) if study.check else ()):
            raise UserErrors(errors)
    return scenario


def _rule_mistakes(scenario: ScenarioSettings, composed: Composed, study: Study) -> Iterable[UserError]:
    """Yield unknown rules, and values that a rule does not accept. A user's own class may take any values."""
    for index, rule in enumerate(scenario.rule_settings()):
        target = rule.target or rule.name
        if is_file_target(target):
            continue
        if target not in study.rules:
            yield UserError(
                f"unknown rule '{target}'", where=composed.locate(("rules", index)), remedy=_rule_meant(target, study)
            )
        else:
            yield from _mistakes(
                study.rule_settings.get(target, NoSettings), rule.params, composed, ("rules", index, "params")
            )


def _rule_meant(target: str, study: Study) -> str:
    """Return a hint at the most similar rule; if that rule needs values, the hint shows how to write them."""
    near = nearest(target, study.rules)
    needed = [
        key for key, field in study.rule_settings.get(near, NoSettings).model_fields.items() if field.is_required()
    ]
    if not needed:
        return did_you_mean(target, study.rules)
    params = ", ".join(f"{key}: ..." for key in needed)
    return (
        f"did you mean '{near}'? It needs values of its own: {{name: {near}-1, target: {near}, params: {{{params}}}}}"
    )


def _class_mistakes(scenario: ScenarioSettings, composed: Composed) -> Iterable[UserError]:
    """Yield the mistakes in the user's own rules of a scenario that has other mistakes. In scenarios without mistakes,
    checks.py looks for them.
    """
    for index, rule in enumerate(scenario.rule_settings()):
        if is_file_target(rule.target or ""):
            yield from class_mistakes(rule.target, "rule", composed.locate(("rules", index, "target")))


def _named_rule_mistakes(composed: Composed, study: Study) -> Iterable[UserError]:
    """Yield unknown rules of a file that is not valid, so that its other mistakes do not hide them."""
    values, located = composed.in_mode()
    rules = values.get("rules")
    for index, entry in enumerate(rules if isinstance(rules, list | tuple) else ()):
        target = (entry.get("target") or entry.get("name")) if isinstance(entry, Mapping) else entry
        if isinstance(target, str) and is_file_target(target):
            yield from class_mistakes(target, "rule", located.locate(("rules", index, "target")))
        elif isinstance(target, str) and target not in study.rules:
            yield UserError(
                f"unknown rule '{target}'", where=located.locate(("rules", index)), remedy=_rule_meant(target, study)
            )


@contextmanager
def _placed(composed: Composed) -> Iterator[None]:
    """Add the file to each mistake whose `where` is a key ('test_replicates') or empty."""
    try:
        yield
    except UserError as error:
        errors = error.errors if isinstance(error, UserErrors) else (error,)
        raise UserErrors(_with_file(error, composed) for error in errors) from None


def _with_file(error: UserError, composed: Composed) -> UserError:
    if error.where and not re.fullmatch(r"[\w.]+", error.where):
        return UserError(
            f"{error.where}: {error.what}", where=composed.locate(()), expected=error.expected, remedy=error.remedy
        )
    path = tuple(int(step) if step.isdigit() else step for step in error.where.split(".")) if error.where else ()
    return UserError(error.what, where=composed.locate(path), expected=error.expected, remedy=error.remedy)


def policy_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a learned policy. The study types the learner's values; those of a user's own class are kept
    unchanged.
    """
    policy: PolicySettings = typed(PolicySettings, composed, name)
    target, learner, files = _learner(*_in_mode(PolicySettings, composed), study)
    return {
        "name": policy.name,
        "recipe": policy.recipe,
        "kind": policy.kind or study.kinds.get(target, "learned"),
        "mode": policy.mode,
        "target": target,
        "params": learner,
        "files": files,
        "seeds": list(policy.seeds),
        "train_on": json.loads(policy.model_dump_json())["train_on"],
        "parent": policy.parent,
        "scales": list(policy.scales),
        "where": {key: composed.locate((key,)) for key in ("learner", "train_on", "parent", "seeds")},
    }


def _learner(policy: PolicySettings, composed: Composed, study: Study) -> tuple[str, dict[str, Any], list[str]]:
    """Return the target of a policy's learner, its typed values, and the files that it reads, after checking every
    phase. Raises UserErrors.
    """
    learner = dict(policy.learner)
    target = str(learner.pop("_target_", "") or learner.pop("name", ""))
    if is_file_target(target):
        return target, learner, []
    if target not in study.learners:
        where = composed.locate(("learner", "name"))
        remedy = did_you_mean(target, study.learners)
        raise UserErrors([UserError(f"unknown learner '{target}'", where=where, remedy=remedy)])
    kind = study.learner_settings[target]
    typed_learner = validate(kind, learner, lambda path: composed.locate(("learner", *path)))
    for number, phase in enumerate(policy.train_on):
        validate(kind, {**learner, **phase.params}, partial(_locate_in_phase, composed, number, phase.params))
    with _placed(composed):
        if errors := list(study.check_policy(policy, typed_learner) if study.check_policy else ()):
            raise UserErrors(errors)
    return (
        target,
        json.loads(typed_learner.model_dump_json()),
        list(study.policy_files(typed_learner) if study.policy_files else ()),
    )


def _locate_in_phase(composed: Composed, number: int, own: Mapping[str, Any], path: tuple[Any, ...]) -> str:
    """Return the place of a value that a phase learns with: in the phase's own values, or under `learner`."""
    return composed.locate(("train_on", number, "params", *path) if path and path[0] in own else ("learner", *path))


def figure_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a figure: its typed values, after checking that the study knows its kind of drawing.
    `names`: names in its values, to be checked.
    """
    figure: FigureSettings = typed(FigureSettings, composed, name)
    if figure.kind not in study.figures:
        where, remedy = composed.locate(("kind",)), did_you_mean(figure.kind, study.figures)
        raise UserErrors([UserError(f"unknown drawing '{figure.kind}'", where=where, remedy=remedy)])
    kind = study.figure_settings.get(figure.kind, NoSettings)
    params = validate(kind, figure.params, lambda path: composed.locate(("params", *path)))
    names = [[composed.locate(("params", *path)), what, given] for path, what, given in names_within(params)]
    places = {key: composed.locate((key,)) for key in ("scenarios", "policies")}
    files = list(study.figure_files(params) if study.figure_files else ())
    if missing := next((name for name in files if not find_resource(name).is_file()), None):
        where = composed.locate(("params",))
        raise UserErrors([UserError(f"there is no file '{missing}'", where=where, expected="a recorded measurement")])
    return {**json.loads(figure.model_dump_json()), "files": files, "names": names, "where": places}


def theme_record(composed: Composed, name: str) -> dict[str, Any]:
    """Return the values of conf/figure/theme.yaml."""
    del name
    record: dict[str, Any] = json.loads(validate(ThemeSettings, composed.values, composed.locate).model_dump_json())
    return record
