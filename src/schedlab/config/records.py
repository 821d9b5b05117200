"""Records: what the workflow must know of each configuration file, as plain JSON values that can be cached by content.

A record is made from one composed, typed and checked file. Making one costs a Hydra composition (some 50 ms), so records are kept in a
cache whose keys hash the file itself, everything it may build on, and the code that reads it.
"""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterable, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.compose import Composed, Composer, Memo, apply_mode, bases, check_yaml, option_names
from schedlab.config.contract import Study
from schedlab.config.errors import UserError, UserErrors, did_you_mean
from schedlab.config.files import write_text
from schedlab.config.hashes import content_hash, file_hash
from schedlab.config.provenance import source_hash
from schedlab.config.schema import Settings, validate
from schedlab.config.settings import (
    NAME,
    RESERVED_NAMES,
    FigureSettings,
    PolicySettings,
    ScaleSettings,
    ScenarioSettings,
    StudySettings,
    ThemeSettings,
)

FindStudy = Callable[[Mapping[str, Any]], Study]  # typed study settings as plain values -> the study's door
OWN_GROUPS = ("scenario", "policy", "figure")  # an edit of one file in these touches that file's record only


class RecordCache:
    """Values by content hash, kept in one JSON file between runs; unreadable or foreign files are ignored."""

    def __init__(self, file: Path | None) -> None:
        self.file, self.known, self.used = file, {}, {}
        if file is not None:
            try:
                self.known = json.loads(file.read_text(encoding="utf-8"))
            except (OSError, ValueError):
                self.known = {}
        if not isinstance(self.known, dict):
            self.known = {}

    def get(self, key: str, make: Callable[[], Any]) -> Any:
        """Return the value kept under `key`, made now where there is none."""
        if key not in self.used:
            self.used[key] = self.known[key] if key in self.known else make()
        return self.used[key]

    def has(self, key: str) -> bool:
        """Tell whether `key` was kept or put; it counts as used then."""
        if key in self.known:
            self.used[key] = self.known[key]
        return key in self.used

    def save(self, prune: bool = False) -> None:
        """Write what this run added; `prune` drops what it did not use. A folder that cannot be written costs time only."""
        kept = self.used if prune else {**self.known, **self.used}
        if self.file is None or kept.keys() == self.known.keys():
            return
        try:
            write_text(self.file, json.dumps(kept, separators=(",", ":")))
        except OSError:
            return
        self.known = dict(kept)


def study_code(settings: Mapping[str, Any]) -> str:
    """Return a hash of the Python files of a study that is none of the package's, which `source_hash` does not see; else ''."""
    if not settings["module"] and (Path(schedlab.__file__).parent / "studies" / settings["name"]).is_dir():
        return ""
    installed = () if settings["module"] else entry_points(group="schedlab.studies", name=settings["name"])
    top = (settings["module"] or next((point.module for point in installed), "")).partition(".")[0]
    if not top:  # nothing to look for; the working directory itself is no study
        return ""
    place = Path(settings["path"], top)
    if not (settings["path"] and place.is_dir()):
        spec = importlib.util.find_spec(top) if top else None
        place = Path(spec.origin).parent if spec and spec.origin else place
    return content_hash([[file.relative_to(place).as_posix(), file_hash(file)] for file in sorted(place.rglob("*.py"))])


class ConfigurationFolder:
    """All files of conf/, hashed once; makes the records of studies, scenarios, policies and figures at one scale."""

    def __init__(self, folder: Path, scale: str, cache: RecordCache, memo: Memo | None = None) -> None:
        self.folder, self.scale, self.cache = Path(folder), scale, cache
        self.composer = Composer(folder, scale, memo)
        if not (self.folder / "config.yaml").is_file():
            raise UserError(
                f"there is no {self.folder.as_posix()}/config.yaml",
                expected="a configuration folder",
                remedy="run in a checkout, or name it",
            )
        self.hashes = {path.relative_to(self.folder).as_posix(): file_hash(path) for path in sorted(self.folder.rglob("*.yaml"))}
        self.errors: list[UserError] = []
        if scale not in option_names(self.folder / "scale"):
            raise UserError(f"there is no scale '{scale}'", where="scale", remedy=did_you_mean(scale, option_names(self.folder / "scale")))
        self._refuse_stray_files()
        shared = {name: digest for name, digest in self.hashes.items() if not self._is_own(name) and not name.startswith("claims/")}
        self.ground = content_hash([shared, scale, source_hash()])

    def _is_own(self, name: str) -> bool:
        parts = name.split("/")
        return parts[0] in OWN_GROUPS and len(parts) == 3 and not parts[-1].startswith("_")

    def _refuse_stray_files(self) -> None:
        for path in sorted(self.folder.rglob("*.yml")):
            self.errors.append(
                UserError("the ending is .yml", where=f"conf/{path.relative_to(self.folder).as_posix()}", remedy="rename it to .yaml")
            )
        folded: dict[str, str] = {}
        for name in self.hashes:
            if self._is_own(name) and folded.setdefault(name.lower(), name) != name:
                self.errors.append(
                    UserError(f"duplicate of conf/{folded[name.lower()]}", where=f"conf/{name}", remedy="rename one of them")
                )

    def root_seed(self) -> int:
        """Return `seed` of config.yaml, the root of every random stream; a mistake in it is kept as an error."""
        import yaml

        try:
            check_yaml(self.folder / "config.yaml")
            seed = (yaml.load((self.folder / "config.yaml").read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}).get("seed")
        except UserError as error:
            self.errors.append(error)
            return 0
        if type(seed) is not int or seed < 0:
            self.errors.append(UserError(f"'seed' is {seed!r}", where="conf/config.yaml: seed", expected="a whole number, 0 or more"))
            return 0
        return seed

    def _own_and_bases(self, name: str, before: tuple[str, ...] = ()) -> list[str]:
        """Hashes of a file and of all it builds on in its own folder, since a scenario may build on another one."""
        own, folder = self.hashes[name], name.rpartition("/")[0]
        named = [f"{folder}/{base}.yaml" for base in self.cache.get(f"bases/{name}:{own}", lambda: bases(self.folder / name))]
        line = (*before, name)
        return [own, *(found for base in named if base in self.hashes and base not in line for found in self._own_and_bases(base, line))]

    def record(self, group: str, name: str, make: Callable[[Composed], Any], extra: Any = None) -> Any:
        """Return the record of conf/<group>/<name>.yaml, from the cache or by `make`; None (and an error kept) where it is wrong."""
        own = self._own_and_bases(f"{group}/{name}.yaml")

        def compose_and_make() -> Any:
            check_yaml(self.folder / group / f"{name}.yaml")
            with self.composer.open():
                return make(self.composer.compose(group, name))

        try:
            return self.cache.get(f"{group}/{name}@{self.scale}:{content_hash([own, self.ground, extra])}", compose_and_make)
        except UserErrors as several:
            self.errors.extend(several.errors)
        except UserError as error:
            self.errors.append(error)
        return None


def typed(kind: type[Settings], composed: Composed, name: str) -> Any:
    """Return the typed settings of a composed file in its own mode, with the file's name checked. Raises UserErrors."""
    errors: list[UserError] = []
    values = composed.values
    if "name" in kind.model_fields and values.get("name", name) != name:
        errors.append(
            UserError(
                f"the name is '{values['name']}'",
                where=composed.locate(("name",)),
                expected=f"the file's name '{name}'",
                remedy="rename either",
            )
        )
    if not re.match(NAME, name) or name in RESERVED_NAMES:
        errors.append(
            UserError(
                f"'{name}' cannot be a name", where=composed.locate(()), expected="small letters, digits, . _ -, and no reserved word"
            )
        )
    typed_values = None
    try:
        typed_values = validate(kind, apply_mode(values), composed.locate)
        if values.get("reference"):
            validate(kind, apply_mode(values, always=True), composed.locate)
    except UserErrors as several:
        errors.extend(several.errors)
    if errors:
        raise UserErrors(errors)
    return typed_values


def study_record(composed: Composed, name: str) -> dict[str, Any]:
    """Return the record of a study file: its typed values."""
    return json.loads(typed(StudySettings, composed, name).model_dump_json())


def scale_settings(folder: Path, scale: str, studies: Mapping[str, Study]) -> dict[str, Any]:
    """Check conf/scale/<scale>.yaml against the sections of the studies and return its values. Raises UserErrors."""
    import yaml

    file = folder / "scale" / f"{scale}.yaml"
    check_yaml(file)
    values = yaml.load(file.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader) or {}
    composed = Composed(values, ((file, ()),))
    settings = typed(ScaleSettings, composed, scale)
    errors: list[UserError] = []
    for study, given in settings.studies.items():
        if study not in studies:
            errors.append(
                UserError(f"unknown study '{study}'", where=composed.locate(("studies", study)), remedy=did_you_mean(study, studies))
            )
            continue
        try:
            validate(studies[study].scale, given, lambda path, study=study: composed.locate(("studies", study, *path)))
        except UserErrors as several:
            errors.extend(several.errors)
    if errors:
        raise UserErrors(errors)
    return json.loads(settings.model_dump_json())


def scenario_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a scenario: identity, rules, policies, the parts of its prepare rules, its problem, inputs and needs."""
    scenario: Any = typed(study.scenario, composed, name)
    assert isinstance(scenario, ScenarioSettings)
    errors = [*_unknown_rules(scenario, composed, study), *_own_checks(scenario, composed, study)]
    if errors:
        raise UserErrors(errors)
    parts = study.parts(scenario)
    return {
        "name": scenario.name,
        "mode": scenario.mode,
        "seed": scenario.seed,
        "scales": list(scenario.scales),
        "in_figures": scenario.in_figures,
        "rules": [json.loads(rule.model_dump_json()) for rule in scenario.rule_settings()],
        "policies": list(scenario.policies),
        "parts": {
            part: {"values": dict(given.values), "shared": given.shared, "needs": list(given.needs), "files": list(given.files)}
            for part, given in parts.items()
        },
        "problem": dict(study.problem_part(scenario)),
        "inputs": {key: list(place) for key, place in study.inputs(scenario).items()},
        "requires": [{"name": need.name, "path": need.path.as_posix(), "source": need.source} for need in study.requires(scenario)],
    }


def _unknown_rules(scenario: ScenarioSettings, composed: Composed, study: Study) -> Iterable[UserError]:
    for index, rule in enumerate(scenario.rule_settings()):
        target = rule.target or rule.name
        if target not in study.rules and ".py:" not in target:
            yield UserError(f"unknown rule '{target}'", where=composed.locate(("rules", index)), remedy=did_you_mean(target, study.rules))


def _own_checks(scenario: ScenarioSettings, composed: Composed, study: Study) -> Iterable[UserError]:
    """The study's own checks, each mistake with the file that holds its key."""
    try:
        for error in (study.check(scenario) if study.check else ()) or ():
            yield _placed(error, composed)
    except UserErrors as several:
        yield from (_placed(error, composed) for error in several.errors)
    except UserError as error:
        yield _placed(error, composed)


def _placed(error: UserError, composed: Composed) -> UserError:
    """An error that names a key of the scenario as `where` ('test_replicates'), with the file in front; others as they are."""
    if error.where and not re.fullmatch(r"[\w.]+", error.where):
        return error
    where = composed.locate(tuple(error.where.split(".")) if error.where else ())
    return UserError(error.what, where=where, expected=error.expected, remedy=error.remedy)


def policy_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a learned policy, its learner's values typed by the study (a user's own class: as they stand)."""
    policy: PolicySettings = typed(PolicySettings, composed, name)
    learner = dict(policy.learner)
    target = learner.pop("_target_", "") or learner.pop("name", "")
    if ".py:" not in str(target):
        if target not in study.learners:
            raise UserErrors(
                [
                    UserError(
                        f"unknown learner '{target}'",
                        where=composed.locate(("learner", "name")),
                        remedy=did_you_mean(str(target), study.learners),
                    )
                ]
            )
        kind = study.learner_settings[target]
        locate = lambda path: composed.locate(("learner", *path))  # noqa: E731
        learner = json.loads(validate(kind, learner, locate).model_dump_json())
    return {
        "name": policy.name,
        "kind": policy.kind,
        "mode": policy.mode,
        "target": target,
        "params": learner,
        "seeds": list(policy.seeds),
        "train_on": json.loads(policy.model_dump_json())["train_on"],
        "parent": policy.parent,
        "scales": list(policy.scales),
    }


def figure_record(composed: Composed, name: str, study: Study) -> dict[str, Any]:
    """Return the record of a figure: its typed values, its drawing known to the study."""
    figure: FigureSettings = typed(FigureSettings, composed, name)
    if figure.kind not in study.figures:
        raise UserErrors(
            [
                UserError(
                    f"unknown drawing '{figure.kind}'", where=composed.locate(("kind",)), remedy=did_you_mean(figure.kind, study.figures)
                )
            ]
        )
    return json.loads(figure.model_dump_json())


def theme_record(composed: Composed, name: str) -> dict[str, Any]:
    """Return the values of conf/figure/theme.yaml."""
    del name
    return json.loads(validate(ThemeSettings, composed.values, composed.locate).model_dump_json())
