"""`schedlab accept`: lets results of earlier code count as results of the present code, if both make the same bytes at
scale smoke.

The earlier code is that of the newest commit that the results name. Both smoke runs are made below `.schedlab/accept/`,
each in a separate checkout.
"""

from __future__ import annotations

import getpass
import os
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from schedlab.config import experiment
from schedlab.config.data_paths import CHECKOUT, DATA_VARIABLE, LOCAL_DATA
from schedlab.config.errors import UserError, counted, did_you_mean, shortened
from schedlab.config.experiment import Experiment
from schedlab.config.files import write_bytes, write_json
from schedlab.config.readers import option_names, read_json
from schedlab.config.runtime import freeze, run_lock
from schedlab.config.runtime.accepted import NAME, Acceptance, add_accepted, same_code
from schedlab.config.runtime.code import Code
from schedlab.config.runtime.freeze import StageCode
from schedlab.config.runtime.parts import MADE_BY, configuration, configuration_hash, dump, read_part
from schedlab.config.runtime.provenance import environment
from schedlab.evaluation.manifest import FigureEntry, StepEntry, build
from schedlab.stages.report import job_costs
from schedlab.stages.studies import find_study

CONF, RUN_LOCK, SCRATCH = Path("conf"), Path(".schedlab/run.lock"), Path(".schedlab/accept")
SMOKE = "smoke"
MADE = ("results", "plots", ".snakemake", ".schedlab")  # folders of a checkout without code
SHOWN = 5
START = 2.0  # CPU s that Snakemake takes to start a job
Parts = Mapping[str, Mapping[str, Any]]


def accept(studies: Sequence[str] = ()) -> int:
    """Accept the results of some studies (by default all) for the present code. Return 0 if nothing has to run again;
    return 1 if a byte of smoke differs, in which case nothing is written, or if something is not accepted.

    Raises UserError if the two codes cannot be compared.
    """
    if Path.cwd() != CHECKOUT.resolve():
        what, remedy = "the schedlab that runs is not that of this folder", f"go to {CHECKOUT}, or set PYTHONPATH=src"
        raise UserError(what, where=str(Path.cwd()), remedy=remedy)
    scales = [scale for scale in option_names(CONF / "scale") if Path("results", scale).is_dir()]
    runs = {scale: _Run.read(scale, studies) for scale in {*scales, SMOKE}}
    concerned = sorted({path.split("/")[2] for run in runs.values() for path in run.stale})
    if not concerned:
        print("nothing to accept: the code that lies here made all results that lie here")
        return 0
    commits = sorted({commit for run in runs.values() for commit in run.commits})
    if not commits:
        what, remedy = "the results name no commit whose code made them", "run snakemake again"
        raise UserError(what, where="results", expected="results of committed code", remedy=remedy)
    try:
        return _Trial(concerned, dict(sorted(runs.items())), _newest(commits)).decide()
    finally:
        shutil.rmtree(SCRATCH, ignore_errors=True)


@dataclass
class _Run:
    """The results of a scale: the parts as planned by the present code, and those whose results were made by other
    code.

    stale: part -> hashes of the code that made its results; commits: commits that these results name
    """

    experiment: Experiment
    code: Code
    parts: Parts
    stale: dict[str, set[str]] = field(default_factory=dict)
    commits: list[str] = field(default_factory=list)

    @classmethod
    def read(cls, scale: str, studies: Sequence[str]) -> _Run:
        """Return the results of a scale. Raises UserError for an unknown study, and if the results were made with other
        packages.
        """
        loaded = experiment.load(CONF, scale, find_study, Path(f".schedlab/records-{scale}.json"))
        for name in studies:
            if name not in loaded.studies:
                raise UserError(f"there is no study '{name}'", where="STUDY", remedy=did_you_mean(name, loaded.studies))
        code = StageCode(loaded)
        run = cls(loaded, code.code, dict(freeze.frozen_parts(loaded, code=code)))
        for study in studies or loaded.studies:
            for folder in (Path(loaded.results, study), Path(loaded.plots, study)):
                for file in sorted(folder.rglob("*provenance.json")):
                    run._add(read_json(file, "the provenance of a job"))
        loaded.cache.save()
        return run

    def _add(self, origin: Mapping[str, Any]) -> None:
        config = origin.get("config", "")
        if config not in self.parts or (made := self.parts[config][MADE_BY])["code"] == origin.get("code_hash"):
            return
        if origin.get("config_hash") != configuration_hash(self.parts[config]):
            raise UserError("the results have another configuration", where=config, remedy="run snakemake again")
        for name, version in made["packages"].items():
            if (former := origin.get("computed_with", {}).get(name, version)) != version:
                what, expected = f"the results were made with {name} {former}", f"{name} {version}, which is installed"
                raise UserError(what, where=config, expected=expected, remedy=f"install {former}, or run snakemake")
        self.stale.setdefault(config, set()).add(origin.get("code_hash", ""))
        self.commits += filter(None, [origin.get("schedlab", {}).get("commit")])


@dataclass
class _Trial:
    """Two checkouts, of the earlier code and of the present code, with their parts and their smoke runs.

    runs: scale -> results in this folder, including smoke
    """

    studies: Sequence[str]
    runs: Mapping[str, _Run]
    commit: str
    before: Path = SCRATCH / "before"
    now: Path = SCRATCH / "now"
    parts: dict[str, Parts] = field(default_factory=dict)  # scale -> parts as planned by the earlier code

    def decide(self) -> int:
        """Make both smoke runs, compare them, and write the acceptances."""
        shutil.rmtree(SCRATCH, ignore_errors=True)
        _clone(self.commit, self.before)
        _copy(self.now)
        for scale in self.runs:
            self.parts[scale] = self._parts_before(scale)
        self._require_makers()
        # in the trial, all code counts as equal, so that tables that name the code can have the same bytes
        codes = self._codes(SMOKE, self.parts[SMOKE])
        write_json(self.now / "results" / SMOKE / NAME, [self._acceptance(codes, 1, ()).model_dump(mode="json")])
        print(_how_long(self.studies), file=sys.stderr)
        for folder in (self.before, self.now):
            print(f"making smoke with the code of {self._called(folder)}", file=sys.stderr, flush=True)
            _snakemake(folder, SMOKE, "--", *self.studies)
        one, other = (build(folder, SMOKE, self.studies) for folder in (self.before, self.now))
        if first := _first_unlike(one.steps, other.steps):
            print(
                "not accepted: at scale smoke, today's code does not make the bytes of the earlier code; the first are"
            )
            print("\n".join([*first[:SHOWN], *([f"and {len(first) - SHOWN} more"] if len(first) > SHOWN else [])]))
            return 1
        pictures = _unlike(_outputs(one.figures), _outputs(other.figures))
        return self._write(len(_outputs(one.steps)), {name.split("/")[2] for name in pictures})

    def _called(self, folder: Path) -> str:
        return f"commit {self.commit[:12]}" if folder == self.before else "today"

    def _parts_before(self, scale: str) -> Parts:
        """Return the parts as planned by the earlier code. Raises UserError if their configuration differs."""
        accepted = Path("results", scale, NAME)
        if accepted.is_file():
            write_bytes(self.before / accepted, accepted.read_bytes())
        _snakemake(self.before, scale, "--list-rules")
        found = {}
        for path, part in self.runs[scale].parts.items():
            if path.split("/")[2] in self.studies:
                file = self.before / path
                found[path] = read_part(file) if file.is_file() else {}
                if dump(configuration(found[path])) != dump(configuration(part)):
                    what = f"today's code reads another configuration than that of commit {self.commit[:12]}"
                    raise UserError(what, where=path, remedy="run snakemake again")
        return found

    def _require_makers(self) -> None:
        """Print which results were not made by the code of the commit. Raises UserError if none were."""
        stale = [(scale, path, made) for scale, run in self.runs.items() for path, made in run.stale.items()]
        others = [path for scale, path, made in stale if made != {self.parts[scale][path][MADE_BY]["code"]}]
        if len(others) == len(stale):
            what = f"the results were made by other code than that of commit {self.commit[:12]}, which they name"
            raise UserError(what, where=others[0], expected="results of committed code", remedy="run snakemake again")
        if others:
            print(f"made by yet other code, and to be made again: {shortened(others)}")

    def _codes(self, scale: str, parts: Parts) -> dict[str, str]:
        """Return present code -> the earlier code to which it then counts as equal, for parts of a scale. Parts that
        depend on others without such earlier code are left out.
        """
        run = self.runs[scale]
        known, codes = same_code(run.experiment.results), dict[str, str]()
        while True:  # repeated, because accepting a part may change those that depend on it
            before = len(codes)
            for path, planned in freeze.frozen_parts(run.experiment, code=StageCode(run.experiment, known | codes)):
                made, former = planned[MADE_BY], parts[path][MADE_BY] if path in parts else {}
                if former and made["code"] != former["code"] and _alike(made, former):
                    codes.setdefault(made["code"], former["code"])
            if len(codes) == before:
                return codes

    def _write(self, files: int, redrawn: Collection[str]) -> int:
        """Write the acceptances next to the results of each scale, and the parts again. `redrawn`: studies whose
        figures differ. Return 1 if something will run again.
        """
        executed = set().union(*self._changed(SMOKE).values())
        left, without = list[str](), set[str]()
        run_lock.hold(RUN_LOCK)
        for scale, run in self.runs.items():
            results, parts = run.experiment.results, self.parts[scale]
            changed = self._changed(scale)
            shown = {f"{results}/{study}/config/draw.yaml" for study in redrawn}
            covered = {path for path in parts.keys() - shown if changed[path] <= executed}
            if not run.stale:
                continue
            if codes := self._codes(scale, {path: parts[path] for path in covered}):
                modules = set().union(*(changed[path] for path in covered))
                add_accepted(results, self._acceptance(codes, files, sorted(modules)))
                freeze.write_parts(run.experiment)
            final = dict(freeze.frozen_parts(run.experiment))
            left += [path for path in parts if final[path][MADE_BY] != parts[path][MADE_BY]]
            without |= set().union(*changed.values()) - executed
        what = f"{counted(files, 'file')} of smoke have the same bytes: accepted for {', '.join(self.studies)}"
        print(f"{what}, made with commit {self.commit[:12]}")
        if without:
            print(f"not run by smoke, and so not accepted: {shortened(sorted(without))}")
        if redrawn:
            print(f"figures of smoke differ, and are drawn again: {', '.join(sorted(redrawn))}")
        if left:
            print(f"made again by the next run: {shortened(left)}")
        return int(bool(left))

    def _changed(self, scale: str) -> dict[str, set[str]]:
        """Return part -> the modules that its stage reaches, before or now, and that differ."""
        now, here = self.runs[scale].code, Path.cwd()
        places = {name: place.absolute() for name, place in now.packages.items()}
        former = Code({n: self.before / p.relative_to(here) for n, p in places.items() if p.is_relative_to(here)})
        changed = {}
        for path, part in self.parts[scale].items():
            roots = self.runs[scale].parts[path][MADE_BY]["of"]
            pairs = now.reached(roots).items() ^ former.reached(part[MADE_BY]["of"]).items()
            changed[path] = {name for name, _ in pairs}
        return changed

    def _acceptance(self, codes: Mapping[str, str], files: int, modules: Sequence[str]) -> Acceptance:
        code = environment()["schedlab"]
        return Acceptance(
            by=_git("config", "user.name").decode().strip() or getpass.getuser(),
            when=datetime.now(UTC).isoformat(timespec="seconds"),
            made_by=self.commit,
            accepted_for=code["source"],
            commit=None if code.get("modified") else code.get("commit"),
            modules=tuple(modules),
            files=files,
            codes=dict(codes),
        )


def _how_long(studies: Collection[str]) -> str:
    """Return a sentence with the time of two smoke runs, estimated from the jobs that ran here at that scale."""
    costs = job_costs(Path("results", SMOKE))
    jobs = [
        job["cpu_time"] + job["earlier"] for (study, _), found in costs.items() if study in studies for job in found
    ]
    taken = 2 * (sum(jobs) + START * (len(jobs) + 1))
    known = f"about {taken:.0f} s of CPU time" if jobs else "a few minutes"
    return f"scale smoke of {', '.join(studies)} is made twice, which takes {known}"


def _alike(made: Mapping[str, Any], former: Mapping[str, Any]) -> bool:
    return all(made[key] == former[key] for key in ("packages", "upon"))


def _outputs(entries: Mapping[str, StepEntry] | Mapping[str, FigureEntry]) -> dict[str, str]:
    return {file: digest for entry in entries.values() for file, digest in entry.outputs.items()}


def _unlike(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return sorted(file for file in one.keys() | other.keys() if one.get(file) != other.get(file))


def _first_unlike(steps: Mapping[str, StepEntry], others: Mapping[str, StepEntry]) -> list[str]:
    """Return the files that differ, of those steps that depend on no other such step."""
    unlike = {
        name: files
        for name in steps.keys() | others.keys()
        if (files := _unlike(*(_outputs({name: side[name]} if name in side else {}) for side in (steps, others))))
    }
    before = {name: set((steps.get(name) or others[name]).rests_on) for name in unlike}
    return sorted(file for name, files in unlike.items() if not before[name] & unlike.keys() for file in files)


def _newest(commits: Sequence[str]) -> str:
    """Return the last of some commits. A child is later than its parent, even within the same second."""
    found = _git("rev-list", "--topo-order", "--max-count=1", "--ignore-missing", *commits).decode().strip()
    return found or commits[0]


def _git(*words: str) -> bytes:
    return subprocess.run(["git", *words], capture_output=True, check=False).stdout


def _clone(commit: str, folder: Path) -> None:
    """Check out a commit in a folder, with the configuration and the data of this checkout. Raises UserError if the
    commit does not exist.
    """
    _git("clone", "--quiet", "--shared", "--no-checkout", ".", str(folder))
    _git("-C", str(folder), "checkout", "--quiet", "--detach", commit)
    if not (folder / "Snakefile").is_file():
        what = f"commit {commit[:12]}, whose code made the results, is not in this repository"
        raise UserError(what, where=str(Path.cwd()), remedy="fetch it, or run snakemake again")
    shutil.rmtree(folder / CONF)
    shutil.copytree(CONF, folder / CONF)
    _link_data(folder)


def _copy(folder: Path) -> None:
    """Copy the present files that git tracks or would add."""
    listed = _git("ls-files", "-z", "--cached", "--others", "--exclude-standard").decode().split("\0")
    for name in filter(None, listed):
        if Path(name).is_file() and Path(name).parts[0] not in MADE:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(name, folder / name, follow_symlinks=False)
    _link_data(folder)


def _link_data(folder: Path) -> None:
    for path in LOCAL_DATA.iterdir() if LOCAL_DATA.is_dir() else ():
        if not (place := folder / path).exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            place.symlink_to(path.absolute())


def _snakemake(folder: Path, scale: str, *words: str) -> None:
    """Run Snakemake in a folder. Raises UserError if it fails."""
    if data := os.environ.get(DATA_VARIABLE):
        os.environ[DATA_VARIABLE] = str(Path(data).absolute())
    command = [sys.executable, "-m", "snakemake", "--cores", "all", "--config", f"scale={scale}", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        said = "; ".join(([line for line in lines if line.startswith("error:")] or lines)[-SHOWN:])
        raise UserError(f"scale {scale} cannot be made with the code of '{folder.name}': {said}", where=str(folder))
