"""Frozen parts: the values that each stage reads, in a YAML file that is an input of its workflow rule.

A file is written only if its text differs, so an unchanged configuration reruns nothing. A part contains everything on
which its results depend: the values themselves, the study's results version, the hashes of the parts that made its
inputs (`upstream`), and the hash of the code that reads it, including the code of its inputs, with the versions of the
packages used (`made_by`). So results never depend on when a file was written, and a policy is not learned again because
a table was made again with the same bytes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import schedlab
from schedlab.config.data_paths import find_resource
from schedlab.config.experiment import Experiment
from schedlab.config.files import content_hash, write_text_if_changed
from schedlab.config.plugins import is_file_target, target_file
from schedlab.config.runtime.accepted import same_code
from schedlab.config.runtime.code import DRAWING, Code
from schedlab.config.runtime.parts import MADE_BY, dump, require_unedited
from schedlab.config.runtime.provenance import PLANNED_SOURCE, made_mark, source_hash, study_folder
from schedlab.config.runtime.record_cache import RecordCache

MOST_DIGESTS = 4000  # of modules and functions
# Keys of a record that only the checks or the tables read, and files, because parts contain their digests.
UNFROZEN = ("scales", "where", "names", "files", "file", "recipe", "varied")


def frozen_parts(
    experiment: Experiment, only: str = "", code: StageCode | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (path relative to the working directory, values) of every part of the experiment, or of one study. A shared
    part is yielded once.
    """
    seen: set[str] = set()
    code = code or StageCode(experiment)
    for study, records in experiment.studies.items():
        if only not in ("", study):
            continue
        for scenario, record in records.scenarios.items():
            for part in record["parts"]:
                path = experiment.part_file(study, scenario, part)
                if path not in seen:
                    seen.add(path)
                    values = experiment.part_values(study, scenario, part)
                    yield path, {**values, MADE_BY: code.of_part(study, scenario, part)}
            for bundle, names in experiment.bundles(study, scenario).items():
                yield (
                    f"{experiment.results}/{study}/{scenario}/config/evaluate-{bundle}.yaml",
                    {
                        **evaluate_part(experiment, study, scenario, names),
                        MADE_BY: code.of_evaluation(study, scenario, names),
                    },
                )
        for policy in experiment.compared_policies(study):
            yield (
                f"{experiment.results}/{study}/policies/{policy}/config/learn.yaml",
                {**learn_part(experiment, study, policy), MADE_BY: code.of_learning(study, policy)},
            )
        if records.scenarios:
            summarised, drawn = code.of_summary(study), code.of_figures(study)
            folder = f"{experiment.results}/{study}/config"
            yield f"{folder}/summarise.yaml", {**summarise_part(experiment, study), MADE_BY: summarised}
            yield f"{folder}/draw.yaml", {**draw_part(experiment, study), MADE_BY: drawn}
    code.save()


def parts_of_tables(experiment: Experiment, study: str) -> dict[str, dict[str, Any]]:
    """Return path -> values of all frozen parts on which the tables of a study depend: all except the part of its
    figures.
    """
    parts = {path: values for path, values in frozen_parts(experiment, study) if not path.endswith("/config/draw.yaml")}
    experiment.cache.save()
    return parts


class StageCode:
    """The code that makes the result of each part: `Code.hash` of its stage and of the modules that the stage loads for
    it, with the code of its inputs and the names of the hashed modules.

    accepted: later code -> the earlier code to which it counts as equal; None: read accepted.json in the results
    """

    def __init__(self, experiment: Experiment, accepted: Mapping[str, str] | None = None) -> None:
        self.experiment = experiment
        self.accepted = same_code(experiment.results) if accepted is None else accepted
        folders = filter(None, (study_folder(records.settings) for records in experiment.studies.values()))
        self.code = Code({folder.name: folder for folder in folders}, self._remember)
        self.known: dict[tuple[str, ...], dict[str, Any]] = {}

    @cached_property
    def digests(self) -> RecordCache:
        """Cache of the hashes of the package's code for all working directories and scales: a file next to its byte
        code.
        """
        return RecordCache(Path(schedlab.__file__).parent / "__pycache__/code.json")

    def _remember(self, key: str, make: Callable[[], Any]) -> Any:
        return self.experiment.cache.get(key, lambda: self.digests.get(key, make))

    def save(self) -> None:
        """Write the cached hashes of code if the package's folder is writable; remove those of old code when there are
        too many.
        """
        if "digests" in vars(self):
            self.digests.save(prune=len(self.digests.known) > MOST_DIGESTS)

    def _once(self, key: tuple[str, ...], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        if key not in self.known:
            self.known[key] = make()
        return self.known[key]

    def of_part(self, study: str, scenario: str, part: str) -> dict[str, Any]:
        """The code of a prepare rule."""
        return self._once((study, scenario, part), lambda: self._of_part(study, scenario, part))

    def _of_part(self, study: str, scenario: str, part: str) -> dict[str, Any]:
        record = self.experiment.scenario(study, scenario)["parts"][part]
        roots = [record["made_by"]] if record["made_by"] else self._doors(study)
        roots += [self.code.add_file(file) for file in map(Path, record["files"]) if _is_users_code(file)]
        return self._made(roots, [self.of_part(study, scenario, need) for need in record["needs"]])

    def of_learning(self, study: str, policy: str) -> dict[str, Any]:
        """The code of one policy's learning, with that of its parent."""
        return self._once((study, policy), lambda: self._of_learning(study, policy))

    def _of_learning(self, study: str, policy: str) -> dict[str, Any]:
        record = self.experiment.policy(study, policy)
        scenarios = self.experiment.training_scenarios(study, policy)
        before = [made for scenario in scenarios for made in self._inputs(study, scenario)]
        before += [self.of_learning(study, record["parent"])] if record["parent"] else []
        return self._made(["schedlab.stages.learn", *self._acting(study, "learners", record)], before)

    def of_evaluation(self, study: str, scenario: str, names: list[str]) -> dict[str, Any]:
        """The code of one evaluation job."""
        rules = {rule["name"]: rule for rule in self.experiment.scenario(study, scenario)["rules"]}
        roots, before = ["schedlab.stages.evaluate"], self._inputs(study, scenario)
        for name in names:
            if name in rules:
                roots += self._acting(study, "rules", {**rules[name], "target": rules[name]["target"] or name})
            else:
                roots += self._acting(study, "learners", self.experiment.policy(study, name))
                before.append(self.of_learning(study, name))
        return self._made(roots, before)

    def of_summary(self, study: str) -> dict[str, Any]:
        """The code of a study's summary."""
        before = [
            self.of_evaluation(study, scenario, names)
            for scenario in self.experiment.studies[study].scenarios
            for names in self.experiment.bundles(study, scenario).values()
        ]
        return self._made(["schedlab.stages.summarise"], before)

    def of_figures(self, study: str) -> dict[str, Any]:
        """The code of a study's figures."""
        drawings = self.experiment.studies[study].modules["figures"]
        named = [drawings[figure["kind"]] for figure in self.experiment.studies[study].figures.values()]
        return self._made([DRAWING, *self._doors(study), *named], [self.of_summary(study)])

    def _made(self, roots: list[str], before: list[dict[str, Any]]) -> dict[str, Any]:
        upon = sorted({made_mark(made["code"], made["packages"]) for made in before})
        made = self.code.hash(roots, upon)
        return {**made, "code": self.accepted.get(made["code"], made["code"]), "of": sorted(set(roots)), "upon": upon}

    def _inputs(self, study: str, scenario: str) -> list[dict[str, Any]]:
        return [self.of_part(study, scenario, part) for part in self.experiment.scenario(study, scenario)["parts"]]

    def _doors(self, study: str) -> list[str]:
        """Return the module that defines the study's `STUDY`, and the one that makes its problems."""
        return list(self.experiment.studies[study].modules["doors"])

    def _acting(self, study: str, kind: str, record: Mapping[str, Any]) -> list[str]:
        """Return the study's modules (`_doors`), the module of a rule or learner, and the user's own files that it
        names.
        """
        module = self.experiment.studies[study].modules[kind].get(record["target"], "")
        own = filter(None, map(_own_file, (record["target"], *record["params"].values())))
        return [*self._doors(study), *filter(None, [module]), *map(self.code.add_file, own)]


def _own_file(value: Any) -> Path | None:
    """Return the file that a value names as FILE.py or FILE.py:CLASS, if it exists."""
    named = re.fullmatch(r"(.+\.py)(:\w+)?", value) if isinstance(value, str) else None
    return Path(named[1]) if named and Path(named[1]).is_file() else None


def _is_users_code(file: Path) -> bool:
    return file.suffix == ".py" and file.is_file() and "site-packages" not in file.parts


def write_parts(experiment: Experiment, directory: Path | str = ".") -> int:
    """Write the frozen parts whose text differs from their files; return how many were written. Raises UserError,
    before any is written, if one was edited by hand.

    A file that was written from the same values, and whose size and time of change have not changed since, is not read
    again.
    """
    written = 0
    write_text_if_changed(Path(directory, PLANNED_SOURCE), source_hash())
    for file, values, values_hash in list(_unlike_their_files(experiment, directory)):
        written += write_text_if_changed(file, dump(values))
        experiment.cache.get(_state(file, values_hash), lambda: True)
    experiment.cache.save(prune=True)
    return written


def differs(experiment: Experiment, directory: Path | str = ".") -> bool:
    """Return whether a frozen part is missing, or differs from its file."""
    changed = _unlike_their_files(experiment, directory)
    return any(not file.is_file() or file.read_bytes() != dump(values).encode() for file, values, _ in changed)


def _unlike_their_files(experiment: Experiment, directory: Path | str) -> Iterator[tuple[Path, dict[str, Any], str]]:
    for path, values in frozen_parts(experiment):
        file, values_hash = Path(directory) / path, content_hash(values, 32)
        if not experiment.cache.has(_state(file, values_hash)):
            if file.is_file():
                require_unedited(file.read_text(encoding="utf-8", errors="replace"), file, to_replace=True)
            yield file, values, values_hash


def _state(file: Path, values_hash: str) -> str:
    try:
        found = file.stat()
    except OSError:
        return f"frozen:{file}:missing"
    return f"frozen:{file}:{values_hash}:{found.st_size}:{found.st_mtime_ns}"


def upstream(experiment: Experiment, study: str, scenario: str) -> dict[str, str]:
    """Hashes of the parts that make a scenario's inputs."""
    return {part: experiment.part_hash(study, scenario, part) for part in experiment.scenario(study, scenario)["parts"]}


def problem_part(experiment: Experiment, study: str, scenario: str) -> dict[str, Any]:
    """The scenario as its problem reads it: name, mode, root seed, the study's own values, and the hashes of the parts
    that made its inputs.
    """
    record = experiment.scenario(study, scenario)
    identity = {"name": scenario, "mode": record["mode"], "seed": record["seed"]}
    return {**identity, **record["problem"], "upstream": upstream(experiment, study, scenario)}


def _identity(experiment: Experiment, study: str) -> dict[str, Any]:
    """Name and version of a study, and the place of its code if it is not part of schedlab."""
    settings = experiment.studies[study].settings
    place = {key: settings[key] for key in ("module", "path") if settings.get(key)}
    return {"study": study, **place, "results_version": experiment.studies[study].results_version}


def learn_part(experiment: Experiment, study: str, policy: str) -> dict[str, Any]:
    """The values that the learning of one policy reads, the same for all seeds. They contain the hash of the parent's
    part.
    """
    record = experiment.policy(study, policy)
    scenarios = experiment.training_scenarios(study, policy)
    part = {
        **_identity(experiment, study),
        "seed": experiment.seed,
        "policy": {key: value for key, value in record.items() if key not in UNFROZEN},
        "problems": {scenario: problem_part(experiment, study, scenario) for scenario in scenarios},
    }
    if record["parent"]:
        part["parent_hash"] = learn_hash(experiment, study, record["parent"])
    if code := _own_code(experiment, record["target"]):
        part["code"] = code
    if record["files"]:
        part["files"] = {name: experiment.digest(str(find_resource(name).absolute())) for name in record["files"]}
    return part


def learn_hash(experiment: Experiment, study: str, policy: str) -> str:
    """Hash of the part from which one policy is learned."""
    return experiment.once(("learn", study, policy), lambda: content_hash(learn_part(experiment, study, policy)))


def _own_code(experiment: Experiment, target: str) -> str | None:
    """SHA-256 of the file of a user's own class, so that an edit of it counts like one of the configuration; None for
    other targets.
    """
    return experiment.digest(str(target_file(target).absolute())) if is_file_target(target) else None


def evaluate_part(experiment: Experiment, study: str, scenario: str, names: list[str]) -> dict[str, Any]:
    """The values that one evaluation job of a scenario reads: the problem, and the rules or policies of its bundle."""
    record = experiment.scenario(study, scenario)
    rules = {rule["name"]: rule for rule in record["rules"]}
    policies = []
    for name in names:
        if name in rules:
            target = rules[name]["target"] or name
            policies.append({"mode": record["mode"], "trained_on": "", **rules[name], "target": target})
            if code := _own_code(experiment, target):
                policies[-1]["code"] = code
            continue
        policy = experiment.policy(study, name)
        keep = ("name", "kind", "mode", "target", "params", "seeds")
        trained_on = trained_on_text(experiment, study, name)
        learned = {"trained_on": trained_on, "learn_hash": learn_hash(experiment, study, name)}
        policies.append({**{key: policy[key] for key in keep}, **learned})
    return {
        **_identity(experiment, study),
        "seed": experiment.seed,
        "scenario": scenario,
        "problem": problem_part(experiment, study, scenario),
        "policies": policies,
    }


def trained_on_text(experiment: Experiment, study: str, policy: str) -> str:
    """The scenarios of a policy's phases in order, after those of its ancestors: 'late > middle+early'."""
    record = experiment.policy(study, policy)
    phases = ["+".join(phase["scenarios"]) for phase in record["train_on"]]
    before = [trained_on_text(experiment, study, record["parent"])] if record["parent"] else []
    return " > ".join([*before, *phases])


def summarise_part(experiment: Experiment, study: str) -> dict[str, Any]:
    """The values that the summary of a study reads: its scenarios with their evaluation jobs, the statistics, and the
    facts.
    """
    records = experiment.studies[study]
    certain = records.said["deterministic"]
    compared = {name: experiment.policy(study, name) for name in experiment.compared_policies(study)}
    return {
        **_identity(experiment, study),
        "seed": experiment.seed,
        "statistics": records.settings["statistics"],
        "scenarios": {scenario: experiment.bundles(study, scenario) for scenario in records.scenarios},
        "policies": {name: record["seeds"] for name, record in compared.items()},
        "parents": {name: record["parent"] for name, record in compared.items() if record["parent"]},
        "deterministic": [name for name, record in compared.items() if record["target"] in certain],
        "headline": [_question(asked) for asked in records.settings["headline"]],
        "facts": _facts(experiment, study),
    }


def _question(asked: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a question that the summary reads, without those that only the report reads."""
    return {key: value for key, value in asked.items() if key not in ("published", "note")}


def _facts(experiment: Experiment, study: str) -> dict[str, Any]:
    """The facts of scenarios, learned policies and rules for the tables (evaluation/facts.py)."""
    scenarios = experiment.studies[study].scenarios
    policies = {}
    for name in experiment.compared_policies(study):
        record = experiment.policy(study, name)
        origin = {"recipe": record["recipe"] or record["file"], "trained_on": trained_on_text(experiment, study, name)}
        policies[name] = {**record["varied"], **origin}
    called = {
        name: {rule["name"]: {"recipe": rule["target"]} for rule in record["rules"] if rule["target"]}
        for name, record in scenarios.items()
    }
    return {
        "scenarios": {name: {**record["varied"], **record["facts"]} for name, record in scenarios.items()},
        "policies": policies,
        "rules": {name: rules for name, rules in called.items() if rules},
    }


def draw_part(experiment: Experiment, study: str) -> dict[str, Any]:
    """The values that the figures of a study read: their own values, the theme, and facts of each scenario and
    policy.
    """
    records = experiment.studies[study]
    figures = []
    for record in records.figures.values():
        figure = {key: value for key, value in record.items() if key not in UNFROZEN}
        figure["scenarios"] = records.shown_in(record)
        if record["files"]:
            figure["files"] = {name: experiment.digest(str(find_resource(name).absolute())) for name in record["files"]}
        figures.append(figure)
    return {
        **_identity(experiment, study),
        "scale": experiment.scale,
        **({"run": experiment.run, "options": experiment.options} if experiment.variant else {}),
        "theme": experiment.theme,
        "statistics": records.settings["statistics"],
        "figures": figures,
        "scenarios": {scenario: problem_part(experiment, study, scenario) for scenario in records.scenarios},
        "policies": {policy: learn_part(experiment, study, policy) for policy in experiment.compared_policies(study)},
    }
