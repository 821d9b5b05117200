"""What NVIDIA's own command tells of the GPUs; nothing where it is not installed. The items about GPUs are then not applicable."""

from __future__ import annotations

import os
import shutil
import subprocess

FIELDS = "index,utilization.gpu,memory.used"
PATIENCE = 10  # s that the command may take


def gpu_readings() -> dict[str, tuple[float, float]]:
    """Return number -> (utilisation in percent, memory used in GB) of every GPU that may be used; what it cannot tell is NaN."""
    command = shutil.which("nvidia-smi")
    if command is None:
        return {}
    try:
        query = [command, f"--query-gpu={FIELDS}", "--format=csv,noheader,nounits"]
        done = subprocess.run(query, capture_output=True, text=True, timeout=PATIENCE, check=True)
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for line in done.stdout.splitlines():
        cells = [cell.strip() for cell in line.split(",")]
        if len(cells) == len(FIELDS.split(",")):
            found[cells[0]] = (_number(cells[1]), _number(cells[2]) / 1024)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is None or any(not each.strip().isdigit() for each in visible.split(",") if each.strip()):
        return found  # nothing is hidden, or GPUs are named by their long names
    wanted = [each.strip() for each in visible.split(",") if each.strip()]
    return {number: found[number] for number in wanted if number in found}


def gpu_numbers() -> tuple[str, ...]:
    """Return the numbers of the GPUs that may be used."""
    return tuple(gpu_readings())


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
