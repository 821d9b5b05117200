"""The inputs of all figures of a scale: results/<scale>/manifest.json, written from the files in results/ and plots/.

A *step* is the result of one job (an input of a scenario, one policy and seed, one evaluation job, the tables of a
study), with the hashes of its frozen configuration, inputs and outputs, its seeds, and the code and packages that its
provenance names. A figure names the steps on which it depends. Paths are relative to the folder that contains results/
and plots/. The manifest names no time, host or machine, except who accepted results and when. So equal results made at
the same commit have the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash, write_json
from schedlab.config.readers import read_json
from schedlab.config.runtime.accepted import AcceptedBy, read_accepted
from schedlab.config.runtime.parts import MADE_BY, configuration_hash, read_part
from schedlab.config.runtime.provenance import NOT_OUTPUTS, code_and_packages, output_hashes, output_names, was_made_by
from schedlab.config.schema import Settings, setting, validate
from schedlab.evaluation.promises import EXACT, LEARNED, of_part, weakest

NAME = "manifest.json"
TABLES = (
    "scores.parquet",
    "curves.parquet",
    "summary.parquet",
    "comparisons.parquet",
    "headline.parquet",
)  # written by the stage summarise, in addition to details/
OTHER_CODE = "it was made by other code or packages than the frozen part that lies there now names"
NOT_MADE = (*NOT_OUTPUTS, "config.yaml")  # the manifest lists frozen parts as configuration


class EnvironmentEntry(Settings):
    """Code and packages with which steps were made, without the machine."""

    code: str = setting(doc="hash of the Python files of schedlab; 'one to another' if they were edited during the job")
    commit: str | None = setting(None, doc="commit of their repository")
    modified: bool | None = setting(None, doc="whether tracked files differed from the commit; null: no repository")
    version: str = setting("", doc="version of schedlab")
    python: str = setting("", doc="version of Python")
    packages: dict[str, str] = setting(
        doc="version of each installed package that schedlab needs, directly or indirectly"
    )
    instructions: dict[str, str] = setting(
        {}, doc="environment variables that restricted the processor instructions of libraries; none: no restriction"
    )
    c_library: str = setting("", doc="C library and its version (it computes functions such as exp)")

    def held(self) -> dict[str, str]:
        """The pinned settings under which equal code makes the same bytes on another processor; empty if libraries
        chose their instructions themselves.
        """
        others = {"C library": self.c_library, "Python": self.python, "packages": content_hash(self.packages)}
        return {**self.instructions, **others} if self.instructions else {}


class StepEntry(Settings):
    """The outputs of one job, and what they were made from."""

    promise: str = setting(
        EXACT, doc="promised agreement with the same step on another machine (schedlab.evaluation.promises)"
    )
    configuration: dict[str, str] = setting(doc="frozen part -> hash of its values")
    files: dict[str, str | None] = setting({}, doc="file outside the results -> SHA-256; null: missing")
    inputs: dict[str, str] = setting({}, doc="results that the job read: path or name -> SHA-256")
    other_code: bool = setting(False, doc=OTHER_CODE)
    seeds: tuple[int, ...] = setting((), doc="seeds of the policies")
    environment: str | None = setting(None, doc="entry of `environments` that made it; null: not recorded")
    outputs: dict[str, str] = setting(doc="file -> SHA-256")
    rests_on: tuple[str, ...] = setting((), doc="steps whose outputs this step reads")


class AcceptedEntry(AcceptedBy):
    """The steps of earlier code that count as steps of later code (`schedlab accept`)."""

    steps: tuple[str, ...] = setting(doc="the steps")


class FigureEntry(Settings):
    """One figure of a study."""

    configuration: dict[str, str] = setting(doc="frozen part -> hash of its values")
    scenarios: tuple[str, ...] = setting(doc="scenarios that the figure shows")
    policies: tuple[str, ...] = setting(doc="policies that the figure shows")
    seeds: tuple[int, ...] = setting(doc="seeds of the policies that the figure shows")
    files: dict[str, str | None] = setting({}, doc="file outside the results -> SHA-256; null: missing")
    inputs: dict[str, str] = setting({}, doc="files that the figure was drawn from: path -> SHA-256")
    other_code: bool = setting(False, doc=OTHER_CODE)
    environment: str | None = setting(None, doc="entry of `environments` that drew it; null: not recorded")
    outputs: dict[str, str] = setting(doc="file -> SHA-256")
    rests_on: tuple[str, ...] = setting(doc="steps whose outputs the figure shows")
    failed: bool = setting(False, doc="the figure could not be drawn, and contains the error message")


class Manifest(Settings):
    """The content of a manifest."""

    form: int = setting(2, doc="version of this file's format", ge=2, le=2)
    scale: str = setting(doc="scale of the results")
    seeds: dict[str, int] = setting(doc="study -> root seed of its streams")
    studies: dict[str, int] = setting(doc="study -> version of its results")
    environment: str = setting(doc="entry of `environments` that wrote this file")
    environments: dict[str, EnvironmentEntry] = setting(doc="hash -> code and packages")
    figures: dict[str, FigureEntry] = setting(doc="'study/figure' -> what the figure was made from")
    steps: dict[str, StepEntry] = setting(doc="step -> its inputs and outputs")
    accepted: tuple[AcceptedEntry, ...] = setting((), doc="acceptances of results for later code, in order")


def write_manifest(root: Path | str, scale: str) -> Path:
    """Write results/<scale>/manifest.json below `root` for all existing figures, whether their studies are complete or
    not; return its path.
    """
    path = Path(root) / "results" / scale / NAME
    write_json(path, build(root, scale).model_dump(mode="json"))
    return path


def read_manifest(path: Path | str) -> Manifest:
    """Read a manifest, or the one in a folder. Raises UserError(s) if it is missing or broken."""
    path = Path(path)
    path = path / NAME if path.is_dir() else path
    if not path.exists():
        raise UserError(
            "there is no manifest", where=str(path), remedy="run snakemake at that scale, or name another file"
        )
    values = read_json(path, "a manifest.json as a run of the workflow writes it")
    if not isinstance(values, dict) or "form" not in values:
        raise UserError(
            "is no manifest", where=str(path), expected="a manifest.json as a run of the workflow writes it"
        )
    return validate(Manifest, values, lambda keys: f"{path}: {'.'.join(map(str, keys))}")


def root_of(path: Path | str) -> Path | None:
    """Return the folder that holds a manifest's results/ and plots/; None if the manifest is not in
    results/<scale>/.
    """
    folder = Path(path).absolute()
    folder = folder if folder.is_dir() else folder.parent
    return folder.parent.parent if folder.parent.name == "results" else None


def build(root: Path | str, scale: str, studies: Collection[str] = ()) -> Manifest:
    """Return the manifest of the files below `root`: for every study with drawn figures, and for the named studies,
    however many of their files exist.
    """
    root = Path(root)
    drawn = {path.parent.name for path in (root / "plots" / scale).glob("*/figures.json")}
    book = _Book(root)
    for study in sorted({*drawn, *studies}):
        _Study(book, scale, study).add()
    return Manifest(
        scale=scale,
        seeds=book.seeds,
        studies=book.versions,
        environment=book.environment(code_and_packages()),
        environments=dict(sorted(book.environments.items())),
        figures=dict(sorted(book.figures.items())),
        steps=dict(sorted(book.steps.items())),
        accepted=tuple(_accepted(root / "results" / scale, book)),
    )


def _accepted(results: Path, book: _Book) -> Iterator[AcceptedEntry]:
    """Yield the acceptances of the results, each with the steps made by the accepted code."""
    for entry in read_accepted(results):
        earlier = set(entry.codes.values())
        steps = tuple(sorted(name for name, codes in book.codes.items() if codes & earlier))
        kept = entry.model_dump(include=set(AcceptedEntry.model_fields) - {"steps"})
        yield AcceptedEntry(**kept, steps=steps)


def _is_of_other_code(parts: Iterable[Mapping[str, Any]], origin: Mapping[str, Any]) -> bool:
    """Return whether a job's provenance (empty: there is none) names other code or packages than one of its parts."""
    return any(not was_made_by(values[MADE_BY], origin) for values in parts if MADE_BY in values and origin)


@dataclass
class _Book:
    """Collects a manifest."""

    root: Path
    seeds: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    environments: dict[str, EnvironmentEntry] = field(default_factory=dict)
    figures: dict[str, FigureEntry] = field(default_factory=dict)
    steps: dict[str, StepEntry] = field(default_factory=dict)
    codes: dict[str, set[str]] = field(default_factory=dict)  # step -> hashes of the code in its parts

    def environment(self, values: Mapping[str, Any]) -> str:
        """Add code and packages once; return the name of the entry."""
        entry = EnvironmentEntry(**values)
        name = content_hash(entry.model_dump(mode="json"))
        self.environments[name] = entry
        return name

    def environment_of(self, origin: Mapping[str, Any]) -> str | None:
        """Add the code and packages that a job's provenance states; return the name of the entry, or None if it states
        none.
        """
        return self.environment(code_and_packages(origin)) if "schedlab" in origin else None

    def hashes(self, *paths: str) -> dict[str, str]:
        """Return the SHA-256 of files, and of all outputs in folders; missing ones are left out."""
        found: dict[str, str] = {}
        for path in paths:
            if (self.root / path).is_dir():
                found |= {f"{path}/{name}": value for name, value in output_hashes(self.root / path, NOT_MADE).items()}
            elif (self.root / path).is_file():
                found[path] = file_hash(self.root / path)
        return dict(sorted(found.items()))

    def part(self, path: str) -> dict[str, Any]:
        """Return the values of a frozen part; empty if the part is missing."""
        return read_part(self.root / path) if (self.root / path).is_file() else {}


@dataclass
class _Study:
    """Adds the steps and figures of one study to a book."""

    book: _Book
    scale: str
    name: str

    def add(self) -> None:
        """Add everything that the frozen parts of the study's tables and figures name; nothing if these parts are
        missing.
        """
        self.results = f"results/{self.scale}/{self.name}"
        drawing, tables = (self.book.part(f"{self.results}/config/{part}.yaml") for part in ("draw", "summarise"))
        if not drawing or not tables:
            return
        self.book.seeds[self.name], self.book.versions[self.name] = tables["seed"], tables["results_version"]
        inputs = {
            scenario: self._inputs(scenario, values["upstream"]) for scenario, values in drawing["scenarios"].items()
        }
        learned = {policy: self._learned(policy, values, inputs) for policy, values in drawing["policies"].items()}
        scored = {
            (scenario, policy): step
            for scenario, bundles in tables["scenarios"].items()
            for bundle, policies in bundles.items()
            for step in [self._scored(scenario, bundle, policies, inputs, learned)]
            for policy in policies
        }
        everything = sorted({*scored.values(), *(step for steps in learned.values() for step in steps)})
        joined = self._step(
            f"{self.results}/tables",
            [f"{self.results}/{name}" for name in (*TABLES, "details")],
            [f"{self.results}/config/summarise.yaml"],
            origin=self._origin(f"{self.results}/tables.provenance.json"),
            rests_on=everything,
        )
        self._figures(joined, inputs, learned, scored)

    def _inputs(self, scenario: str, parts: Mapping[str, str]) -> list[str]:
        """Return the steps that prepare a scenario, one for each job. Files that no job's provenance names form one
        step for each folder.
        """
        folders = {f"{self.results}/inputs/{part}-{key[:12]}": [part] for part, key in parts.items()}
        folders = {folder: named for folder, named in folders.items() if (self.book.root / folder).is_dir()}
        shared = {part for named in folders.values() for part in named}
        if own := [part for part in parts if part not in shared]:
            folders[f"{self.results}/{scenario}/inputs"] = own
        made = {name: origin for folder in folders for name, origin in self._origins(folder).items()}
        makers = {path: name for name, origin in made.items() for path in origin["outputs"]}
        steps: list[str] = []

        def add(name: str) -> None:
            origin = made[name]
            before = sorted({makers[path] for path in origin["inputs"] if path in makers})
            for other in before:
                add(other)
            if name not in steps:
                config = Path(origin["config"])
                part = folders[config.parent.as_posix()][0] if config.parent.as_posix() in folders else config.stem
                steps.append(
                    self._step(
                        name,
                        origin["outputs"],
                        [origin["config"]],
                        promise=of_part(part),
                        origin=origin,
                        rests_on=before,
                    )
                )

        for name in made:
            add(name)
        recorded = {origin["config"] for origin in made.values()}
        for folder, named in folders.items():
            files = [
                f"{folder}/{name}"
                for name in output_names(self.book.root / folder, NOT_MADE)
                if f"{folder}/{name}" not in makers
            ]
            is_shared = folder.startswith(f"{self.results}/inputs/")
            found = (
                {f"{folder}/config.yaml"}
                if is_shared
                else {f"{self.results}/{scenario}/config/{part}.yaml" for part in named}
            )
            config = sorted(found - recorded)
            if files:
                steps.append(
                    self._step(folder, files, config, promise=weakest(map(of_part, named)), rests_on=list(steps))
                )
        return steps

    def _origins(self, folder: str) -> dict[str, dict[str, Any]]:
        """Return the provenance of the jobs that wrote into a folder (see provenance.write_origin), by the names of
        their steps.
        """
        found = {}
        for path in sorted((self.book.root / folder).glob("*provenance.json")):
            origin = read_json(path, "the provenance of a job")
            stem = path.name.removesuffix("provenance.json").removesuffix(".")
            if {"outputs", "config", "inputs"} <= origin.keys():
                found[f"{folder}/{stem}" if stem else folder] = origin
        return found

    def _learned(self, policy: str, values: Mapping[str, Any], inputs: Mapping[str, list[str]]) -> list[str]:
        """Return the steps that learn a policy, one for each seed."""
        folder, own = f"{self.results}/policies/{policy}", values["policy"]
        steps = []
        for seed in own["seeds"]:
            place = f"{folder}/seed-{seed}"
            before = [f"{self.results}/policies/{own['parent']}/seed-{seed}"] if own["parent"] else []
            before += [step for scenario in values["problems"] for step in inputs[scenario]]
            config = [f"{folder}/config/learn.yaml"]
            origin = self._origin(f"{place}/provenance.json")
            steps.append(self._step(place, [place], config, promise=LEARNED, origin=origin, rests_on=before))
        return steps

    def _scored(
        self, scenario: str, bundle: str, policies: list[str], inputs: Mapping[str, Any], learned: Mapping[str, Any]
    ) -> str:
        """Add the step of one evaluation job; return its name."""
        place = f"{self.results}/{scenario}/evaluation/{bundle}"
        before = [*inputs[scenario], *(step for policy in policies for step in learned.get(policy, ()))]
        config = [f"{self.results}/{scenario}/config/evaluate-{bundle}.yaml"]
        files = [f"{place}.parquet", f"{place}.details"]
        return self._step(place, files, config, origin=self._origin(f"{place}.provenance.json"), rests_on=before)

    def _origin(self, path: str) -> dict[str, Any]:
        """Return the provenance of a job; empty if it is missing."""
        return read_json(self.book.root / path, "the provenance of a job") if (self.book.root / path).is_file() else {}

    def _step(
        self,
        name: str,
        outputs: list[str],
        configs: list[str],
        *,
        promise: str = EXACT,
        origin: Mapping[str, Any] | None = None,
        rests_on: Iterable[str] = (),
    ) -> str:
        """Add one step and return its name. Its promise is at most as strong as those of the steps on which it
        depends.
        """
        parts = {path: self.book.part(path) for path in configs}
        outside = {file: digest for values in parts.values() for file, digest in (values.get("files") or {}).items()}
        made = origin or {}
        codes = {values[MADE_BY]["code"] for values in parts.values() if MADE_BY in values}
        self.book.codes[name] = codes
        before = tuple(sorted(set(rests_on)))
        self.book.steps[name] = StepEntry(
            promise=weakest([promise, *(self.book.steps[step].promise for step in before if step in self.book.steps)]),
            configuration={path: configuration_hash(values) for path, values in parts.items() if values},
            files=dict(sorted(outside.items())),
            inputs=dict(sorted(made.get("inputs", {}).items())),
            other_code=_is_of_other_code(parts.values(), made),
            seeds=made.get("seeds", ()),
            environment=self.book.environment_of(made),
            outputs=self.book.hashes(*outputs),
            rests_on=before,
        )
        return name

    def _figures(
        self, joined: str, inputs: Mapping[str, Any], learned: Mapping[str, Any], scored: Mapping[tuple[str, str], str]
    ) -> None:
        """Add every figure of the study with the files of its drawing."""
        config = f"{self.results}/config/draw.yaml"
        part = self.book.part(config)
        outside = {figure["name"]: figure.get("files") or {} for figure in part["figures"]}
        drawing = self._origin(f"plots/{self.scale}/{self.name}/provenance.json")
        environment = self.book.environment_of(drawing)
        for figure in self._drawn():
            stem = f"plots/{self.scale}/{self.name}/{figure['name']}"
            before = {joined, *(step for scenario in figure["scenarios"] for step in inputs.get(scenario, ()))}
            before |= {step for policy in figure["policies"] for step in learned.get(policy, ())}
            before |= {scored[pair] for pair in product(figure["scenarios"], figure["policies"]) if pair in scored}
            self.book.figures[f"{self.name}/{figure['name']}"] = FigureEntry(
                configuration={config: configuration_hash(part)},
                **{name: tuple(figure[name]) for name in ("scenarios", "policies", "seeds")},
                files=outside.get(figure["name"], {}),
                inputs=self._read_of(drawing, before),
                other_code=_is_of_other_code([part], drawing),
                environment=environment,
                outputs=self.book.hashes(*(f"{stem}.{form}" for form in ("svg", "pdf", "png", "txt"))),
                rests_on=tuple(sorted(before)),
                failed=bool(figure.get("failed")),
            )

    def _read_of(self, drawing: Mapping[str, Any], steps: Iterable[str]) -> dict[str, str]:
        """Return the outputs of some steps that the job that draws read, with their hashes."""
        shown = {path for step in steps for path in self.book.steps[step].outputs}
        return {path: digest for path, digest in drawing.get("inputs", {}).items() if path in shown}

    def _drawn(self) -> Iterator[dict[str, Any]]:
        path = self.book.root / f"plots/{self.scale}/{self.name}/figures.json"
        if path.is_file():
            yield from read_json(path, "the list of drawn figures")["figures"]
