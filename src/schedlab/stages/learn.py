"""The stage `learn`: learns one policy with one seed, from a frozen part to a checkpoint and a learning curve. It
resumes an interrupted job.
"""

from __future__ import annotations

import json
import logging
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Unpack

from schedlab.config.contract import CurvePlace, LearnPaths, Scalar
from schedlab.config.files import content_hash, file_hash, write_bytes, write_text
from schedlab.config.plugins import told_with_place
from schedlab.config.runtime.parts import MADE_BY, configuration_hash, read_part
from schedlab.config.runtime.provenance import write_provenance
from schedlab.evaluation import tables
from schedlab.learning.devices import described, find_or_processor
from schedlab.stages import studies
from schedlab.stages.policies import make_learner, missing_input, policy_spec, policy_stream

log = logging.getLogger(__name__)
INTEGERS = ("phase", "episode", "update", "decisions", "episodes", "trainings")  # keys of a point; 0 if not given


def learn(
    part: Path,
    inputs: Mapping[str, Mapping[str, Path]],
    parent: Path | None,
    checkpoint: Path,
    curve: Path,
    config_copy: Path,
    provenance: Path,
    seed: int,
) -> None:
    """Learn one policy with one seed.

    part                     frozen learn part
    inputs                   scenario -> input name -> file, for every training scenario
    parent                   checkpoint of the policy to start from, or None
    checkpoint, curve        files to write: the policy, and the table of its learning curve
    config_copy, provenance  copy of the part, and the origin (with the budget used) as JSON, in the same folder
    seed                     number of the repetition; its streams are derived from it and the part's root seed

    The folder `progress` next to the checkpoint contains the state from which a killed job resumes. It is removed at
    the end and kept if the job fails. It is emptied if it belongs to another part, other inputs, another parent or
    another seed.
    """
    values = read_part(part)
    study, spec = studies.of_part(values), policy_spec(values["policy"])
    files = {f"{scenario}/{name}": Path(path) for scenario, named in inputs.items() for name, path in named.items()}
    files |= {"parent": Path(parent)} if parent else {}
    for name, path in files.items():
        if not path.exists():
            raise missing_input(name, path)
    problems = {
        scenario: study.problem(problem, inputs.get(scenario, {})) for scenario, problem in values["problems"].items()
    }
    paths = LearnPaths(Path(parent) if parent else None, Path(checkpoint), Path(checkpoint).parent / "progress")
    part_hash, made_by = configuration_hash(values), values.get(MADE_BY)
    digests = {name: file_hash(path) for name, path in sorted(files.items())}
    _open_progress(paths.progress, [part_hash, made_by, seed, digests])
    log.info("learning %s, seed %d, on %s", spec.name, seed, ", ".join(problems))
    with CurveRecorder(paths.progress / "curve.jsonl") as recorder:
        with told_with_place(spec.target, f"learner of '{spec.name}'"):
            budget = make_learner(study, spec).learn(
                problems, spec, policy_stream(values["seed"], "learn", values["study"], seed), paths, recorder
            )
        points = recorder.points()
    if recorder.kept:
        log.info(
            "the learning was interrupted; %d of %d points of its curve were recorded before",
            recorder.kept,
            len(points),
        )
    if not paths.checkpoint.exists():
        raise RuntimeError(f"the learner of '{spec.name}' wrote no checkpoint {paths.checkpoint}")
    _write_curve(curve, {"policy": spec.name, "policy_seed": seed}, points)
    write_bytes(config_copy, Path(part).read_bytes())
    also = _device(spec.params.get("device", "cpu")) | ({"budget": asdict(budget)} if budget else {})
    write_provenance(provenance, part, [seed], files, policy=spec.name, **also)
    shutil.rmtree(paths.progress)


def _write_curve(file: Path, who: Mapping[str, Any], points: Sequence[Mapping[str, Any]]) -> None:
    """Write the table of a learning curve, with a column for each fact of its points (`of`)."""
    facts = dict.fromkeys(sorted({name for row in points for name in row["of"]}))
    kind = tables.CURVES.with_facts(dict.fromkeys(facts, "text"))
    rows = ({**who, **row, **facts, **row["of"]} for row in points)
    tables.write(kind, file, tables.build(kind, ({name: row[name] for name in kind.names} for row in rows)))


def _device(asked: Scalar) -> dict[str, Any]:
    """Return the facts of the device for the provenance; empty if the learner's setting is the processor."""
    if asked == "cpu":
        return {}
    device, _ = find_or_processor(str(asked))
    return {"device": described(str(asked), device)}


def _open_progress(folder: Path, origin: Any) -> None:
    """Create the progress folder, or empty it if it belongs to another job."""
    stamp, text = folder / "origin", content_hash(origin, 32)
    if folder.exists() and not (stamp.is_file() and stamp.read_text(encoding="utf-8") == text):
        log.info("the progress found belongs to other values; starting anew")
        shutil.rmtree(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_text(stamp, text)


class CurveRecorder:
    """Stores the points of a learning curve in a file of JSON lines, so that none is lost if the job is killed.

    Every point is passed to the operating system before the call returns. A resumed learner records again the points
    after its last saved state; a point at the same place replaces the earlier one.
    """

    PLACE = ("phase", "train_scenario", "split", "metric", "step", "episode", "update", "of")

    def __init__(self, file: Path) -> None:
        self.file, self.here = file, set[tuple]()
        kept = _complete_lines(file)
        self.known = {self._place(row): row for row in kept}
        write_bytes(file, b"".join(_line(row) for row in self.known.values()))
        self.stream = file.open("ab", buffering=0)

    def __enter__(self) -> CurveRecorder:
        return self

    def __exit__(self, *error: object) -> None:
        self.stream.close()

    def __call__(self, metric: str, value: float, **place: Unpack[CurvePlace]) -> None:
        """Record a point. Raises ValueError for a value that is not finite, and for a place that this process has
        already recorded.
        """
        given: Mapping[str, Any] = place
        row: dict[str, Any] = {name: int(given.get(name, 0)) for name in INTEGERS}
        row |= {
            "step": int(place["step"]),
            "train_scenario": place.get("scenario", ""),
            "split": place.get("split", "train"),
            "of": dict(sorted(place.get("of", {}).items())),
        }
        row |= {"metric": metric, "value": float(value)}
        key = self._place(row)
        if key in self.here or not math.isfinite(row["value"]):
            fault = "holds that place already" if key in self.here else f"cannot hold {row['value']}"
            raise ValueError(f"the learning curve {fault}: " + ", ".join(f"{name}={row[name]}" for name in self.PLACE))
        self.here.add(key)
        self.known[key] = row
        self.stream.write(_line(row))

    @property
    def kept(self) -> int:
        """Number of points that an interrupted job recorded and this process did not record again."""
        return len(self.known) - len(self.here)

    def points(self) -> list[dict[str, Any]]:
        """Return all points, one for each place."""
        return list(self.known.values())

    def _place(self, row: Mapping[str, Any]) -> tuple:
        return tuple(row[key] if key != "of" else tuple(row[key].items()) for key in self.PLACE)


def _line(row: Mapping[str, Any]) -> bytes:
    return json.dumps(row, separators=(",", ":")).encode() + b"\n"


def _complete_lines(file: Path) -> list[dict[str, Any]]:
    """Read JSON lines up to the first incomplete one."""
    rows = []
    for line in file.read_bytes().splitlines(keepends=True) if file.exists() else ():
        try:
            rows.append(json.loads(line))
        except ValueError:
            break
    return rows
