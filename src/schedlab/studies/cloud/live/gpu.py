"""The GPUs as NVIDIA's command reports them; where it is not installed, items about GPUs do not apply."""

from __future__ import annotations

import os
import shutil
import subprocess

FIELDS = "index,uuid,utilization.gpu,memory.used"
PATIENCE = 10  # s that the command may take
PART = "MIG-"  # begin of the name of a part of a GPU, of which the command tells no use
UNKNOWN = (float("nan"), float("nan"))


def gpu_readings() -> dict[str, tuple[float, float]]:
    """Return number -> (utilisation in percent, memory used in GB) of every GPU that may be used; what it cannot tell
    is NaN. A part of a GPU (MIG) stands there by its name.
    """
    command = shutil.which("nvidia-smi")
    if command is None:
        return {}
    try:
        query = [command, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    found, numbers = {}, {}
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(FIELDS.split(",")):
            found[cells[0]] = (_number(cells[2]), _number(cells[3]) / 1024)
            numbers[cells[1]] = cells[0]
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return found if visible is None else {number: found.get(number, UNKNOWN) for number in _visible(visible, numbers)}


def _visible(text: str, numbers: dict[str, str]) -> list[str]:
    """The GPUs that CUDA_VISIBLE_DEVICES leaves, by number; numbers: by long names, of which the begin may stand.

    What is no GPU (as -1) ends the list; one that stands there twice leaves none, as with CUDA's own reading of it.
    """
    found: list[str] = []
    for name in (part.strip() for part in text.split(",")):
        known = [
            number
            for uuid, number in numbers.items()
            if number == name or (name.startswith("GPU-") and uuid.startswith(name))
        ]
        if name.startswith(PART):
            known = [name]
        if len(known) != 1:
            break
        found += known
    return found if len(set(found)) == len(found) else []


def gpu_numbers() -> tuple[str, ...]:
    """Return the numbers of the GPUs that may be used."""
    return tuple(gpu_readings())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
