"""What learning costs on two cores: one process on one thread or two, or two processes on one thread each.

    python benchmarks/processes_threads.py [--out docs/results/processes_threads.csv]

Each process learns by PPO as published (100 environments, 64 decisions of each, 4 passes) with a seed of its own, after
a small one that loads compiled code. CPU seconds are those of all threads; the clock, and with it the rate, tells
something on an idle machine alone.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import subprocess
import sys
import time
from pathlib import Path

CASES = ((1, 1), (1, 2), (2, 1))  # processes, threads of each
DECISIONS = 6_400
OUT = Path(__file__).resolve().parent.parent / "docs/results/processes_threads.csv"


def main() -> None:
    """Take the cases in turn and write a row for each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--here", nargs=2, type=int, metavar=("THREADS", "SEED"), help="learn in this process, and print what it took"
    )
    parser.add_argument("--out", type=Path, default=OUT)
    given = parser.parse_args()
    if given.here:
        print(json.dumps(learn(*given.here)))
        return
    with given.out.open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["processes", "threads", "decisions", "cpu_seconds", "wall_seconds"])
        for processes, threads in CASES:
            found = side_by_side(processes, threads)
            cpu, wall = sum(one["cpu"] for one in found), max(one["wall"] for one in found)
            table.writerow([processes, threads, DECISIONS * processes, f"{cpu:.2f}", f"{wall:.2f}"])
            file.flush()


def side_by_side(processes: int, threads: int) -> list[dict[str, float]]:
    """Learn in several processes at once."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    commands = [[sys.executable, __file__, "--here", str(threads), str(seed)] for seed in range(processes)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) for command in commands]
    told = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit("a process failed")
    return [json.loads(text) for text in told]


def learn(threads: int, seed: int) -> dict[str, float]:
    """Learn on some threads, whatever the learner would set; return CPU and wall seconds."""
    import batch_ppo
    import torch
    import yaml
    from bench_batch import LEARNER

    torch.set_num_threads(threads)
    torch.set_num_threads = lambda _: None
    problem = batch_ppo.problem_of(10_000)
    values = {**yaml.safe_load(LEARNER.read_text()), "environments": 100, "n_epochs": 4, "target_kl": None}
    batch_ppo.learned(problem, values | {"n_steps": 2, "batch_size": 100}, 200, seed)
    cpu, wall = time.process_time(), time.perf_counter()
    batch_ppo.learned(problem, values | {"n_steps": DECISIONS // 100, "batch_size": 640}, DECISIONS, seed)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}


if __name__ == "__main__":
    main()
