"""Training scripts for tests, no torch, milliseconds an epoch; and a log as one writes it."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pandas as pd
import yaml

PLAIN = """
    import csv, glob, os, time

    batch_size = 64
    epochs = 4
    dataset_path = "./data"
    samples = 512

    def train():
        cores = int(os.environ["OMP_NUM_THREADS"])
        start = kept = 0
        if "SCHEDLAB_CHECKPOINT_IN" in os.environ:
            start = kept = int(open(os.environ["SCHEDLAB_CHECKPOINT_IN"]).read())
        with open(LOG, "w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for epoch in range(start, start + epochs):
                began = time.perf_counter()
                seconds = SECONDS
                while time.perf_counter() - began < seconds:
                    pass
                took = time.perf_counter() - began
                row = {"epoch": epoch + 1, "batch_size": batch_size, "epoch_time": took, "throughput": samples / took,
                       "data_count": samples, "model_params": 1000, "model_layers": 3, "model_name": "plain",
                       "time_so_far": took,
                       "cost_so_far": 99.0, "dataset": dataset_path, "train_loss": 1.0 / (epoch + 1)}
                writer.writerow([row[name] for name in COLUMNS])
                file.flush()
        if CHECKPOINTS:
            open(os.environ["SCHEDLAB_CHECKPOINT_OUT"], "w").write(str(start + epochs))

    if __name__ == "__main__":
        train()
"""
COLUMNS = (
    "epoch",
    "batch_size",
    "epoch_time",
    "throughput",
    "data_count",
    "model_params",
    "model_layers",
    "model_name",
    "dataset",
    "train_loss",
)


def plain_script(
    folder: Path,
    name: str = "plain.py",
    columns: tuple[str, ...] = COLUMNS,
    log: str = 'os.environ["SCHEDLAB_LOG"]',
    checkpoints: bool = True,
    seconds: str = "(0.02 + 0.0002 * batch_size) * (0.4 + 0.6 / cores)",
) -> Path:
    """Write a script whose epochs take the longer the larger the batch and the fewer its cores."""
    text = (
        textwrap.dedent(PLAIN)
        .replace("LOG,", f"{log},")
        .replace("CHECKPOINTS", str(checkpoints))
        .replace("SECONDS", seconds)
    )
    path = folder / name
    path.write_text(f"COLUMNS = {columns!r}\n" + text)
    return path


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    """Write a script of one's own."""
    path = folder / name
    path.write_text(textwrap.dedent(text))
    return path


def logging_script(log: str) -> str:
    """Return the text of a script that writes this log and does nothing else."""
    return f"import os; open(os.environ['SCHEDLAB_LOG'], 'w').write({log!r})"


def training_log(throughput: float = 500.0, name: str = "net", epochs: int = 3) -> pd.DataFrame:
    """Return a training log on a CPU: two settings of cores."""
    rows = []
    for cores in (1, 2):
        for epoch in range(1, epochs + 1):
            rate = throughput * cores**0.9
            row = {
                "epoch": epoch,
                "model_name": name,
                "model_params": 1e6,
                "model_layers": 10,
                "data_size_mb": 50,
                "dataset": "d",
            }
            row |= {
                "batch_size": 32,
                "gpu_count": 0,
                "cpu_count": cores,
                "throughput": rate,
                "epoch_time": 1000 / rate,
                "data_count": 1000,
            }
            rows.append({**row, "time_so_far": epoch * 1000 / rate, "cost_so_far": 0.01 * epoch, "memory_used_gb": 2.0})
    return pd.DataFrame(rows)


def fake_nvidia_smi(folder: Path, monkeypatch, used: tuple[float, float] = (40, 60)) -> None:
    """A command that tells of three GPUs, the last of them without utilisation; used: percent of the others."""
    command = folder / "bin" / "nvidia-smi"
    command.parent.mkdir()
    rows = f"0, GPU-aa1, {used[0]}, 1024\\n1, GPU-aa2, {used[1]}, 2048\\n2, GPU-b3, [N/A], 512\\n"
    command.write_text(f"#!/bin/sh\nprintf '{rows}'\n")
    command.chmod(0o755)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def quick_settings(folder: Path, **changed) -> Path:
    """Write a configuration file of `schedlab cloud optimize` with which little is measured and learned."""
    path = folder / "settings.yaml"
    path.write_text(
        yaml.safe_dump({"epochs": 4, "baseline_samples": 2, "rl": {"learner": "reinforce", "episodes": 128}, **changed})
    )
    return path
