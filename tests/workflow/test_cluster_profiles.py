"""The profiles of clusters ask their batch system for what they should; a stub stands in for it and notes what it is
asked.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest
from checkouts import Checkout

pytestmark = pytest.mark.slow

STUB = {
    "sbatch": "#!{python}\nimport json, pathlib, sys\npathlib.Path('asked.json').write_text(json.dumps(sys.argv[1:]))\n"
    "made = pathlib.Path('results/measured/device_speed/{device}.json')\nmade.parent.mkdir(parents=True, "
    "exist_ok=True)\n"
    "made.write_text('{{}}')\nprint('7')\n",
    "sacct": "#!/bin/sh\ncase \"$*\" in *Account*) echo guessed;; *) echo '7|COMPLETED';; esac\n",
    "squeue": "#!/bin/sh\necho '7|COMPLETED'\n",
    "sinfo": "#!/bin/sh\n",
    "sacctmgr": "#!/bin/sh\necho guessed\n",
    "sshare": "#!/bin/sh\n",
    "scancel": "#!/bin/sh\n",
    "scontrol": "#!/bin/sh\necho 'MinJobAge = 300 sec'\n",
}
ASKED = {
    "archer2": ("cpu", {"--partition=standard", "--qos=standard", "--cpus-per-task=16", "--time=60"}),
    "cirrus-cpu": ("cpu", {"--partition=standard", "--qos=standard", "--cpus-per-task=16", "--time=60"}),
    "cirrus-gpu": ("cuda", {"--partition=gpu", "--qos=gpu", "--gres=gpu:1", "--cpus-per-task=1", "--time=60"}),
}


@pytest.mark.parametrize("profile", ASKED)
def test_a_profile_submits_the_speed_test_as_one_task_with_sane_threads(
    toy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    device, expected = ASKED[profile]
    install(
        tmp_path / "bin",
        {name: text.format(python=os.sys.executable, device=device) for name, text in STUB.items()},
        monkeypatch,
    )
    soon = (
        "--slurm-init-seconds-before-status-checks",
        "1",
        "--seconds-between-status-checks",
        "1",
        "--latency-wait",
        "5",
    )
    toy.run("--profile", f"profiles/{profile}", *soon, f"results/measured/device_speed/{device}.json", cores=64)
    asked = json.loads((toy.folder / "asked.json").read_text())
    given = {re.sub(r"^(--[\w-]+)[= ]", r"\1=", one) for one in _joined(asked)}
    assert expected <= given, given
    assert not any(one.startswith(("--ntasks=2", "--nodes=2")) for one in given)
    assert "measure_device_speed" in asked[-1]


def install(folder: Path, programs: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Put programs that stand in for Slurm's before everything else on the path."""
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


# Runs a job where it is submitted; refuses what asks for a GPU, as a cluster without one does.
WORKING_SBATCH = """#!{python}
import json, pathlib, subprocess, sys
with pathlib.Path('asked.jsonl').open('a') as file:
    file.write(json.dumps(sys.argv[1:]) + chr(10))
if any(one.startswith('--gpus') for one in sys.argv):
    sys.exit('sbatch: error: Requested node configuration is not available')
wrapped = next(one.removeprefix('--wrap=') for one in sys.argv if one.startswith('--wrap='))
done = subprocess.run(['sh', '-c', wrapped], capture_output=True, text=True)
pathlib.Path('job.out').write_text(done.stdout + done.stderr)
print('7')
"""
WORKING_SRUN = '#!/bin/sh\nwhile case "$1" in -*) true;; *) false;; esac; do shift; done\nexec "$@"\n'
ON_A_GPU = """from toy_study.study import HillClimber
from schedlab.learning.devices import device_or_processor


class Climber(HillClimber):
    def learn(self, problems, spec, seed, paths, curve):
        print('learns on', device_or_processor(spec.params['device']).type)
        super().learn(problems, spec, seed, paths, curve)
"""


def test_a_learner_on_a_gpu_asks_for_one_and_learns_on_the_processor_where_there_is_none(
    fresh_toy: Checkout, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The request, its refusal, and the attempt without: in the log stands what it was learned on."""
    (fresh_toy.folder / "climber.py").write_text(ON_A_GPU)
    own = "{_target_: 'climber.py:Climber', device: cuda, start: 0.0, step_size: 0.5}"
    fresh_toy.edit("conf/policy/toy/hill.yaml", "{name: hill_climbing, step_size: 0.4}", own)
    working = {**STUB, "sbatch": WORKING_SBATCH.replace("{python}", os.sys.executable), "srun": WORKING_SRUN}
    install(tmp_path / "bin", working, monkeypatch)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    soon = (
        "--slurm-init-seconds-before-status-checks",
        "1",
        "--seconds-between-status-checks",
        "1",
        "--latency-wait",
        "5",
    )
    made = "results/small/toy/policies/hill/seed-0"
    fresh_toy.run("--profile", "profiles/slurm", *soon, f"{made}/policy.zip", f"{made[:-1]}1/policy.zip")
    asked = [json.loads(line) for line in (fresh_toy.folder / "asked.jsonl").read_text().splitlines()]
    gpus = [[one for one in each if one.startswith("--gpus")] for each in asked]
    assert gpus == [["--gpus=1"], ["--gpus=1"], []]  # of two seeds, one after the other
    minutes = [int(each[each.index("-t") + 1]) for each in asked]
    assert minutes == [2 * 60, 2 * 120, 240]  # the last of two side by side
    memory = [int(each[each.index("--mem") + 1]) for each in asked]
    assert memory == [memory[0], 2 * memory[0], 2 * 4 * memory[0]]
    cores = [[one for one in each if one.startswith("--cpus")] for each in asked]
    assert cores == [
        ["--cpus-per-task=1"],
        ["--cpus-per-task=1"],
        ["--cpus-per-task=2"],
    ]  # which is why they take turns
    log = (fresh_toy.folder / made / "logs/learn.log").read_text()
    assert "no CUDA device" in log and "learns on cpu" in log


def _joined(arguments: list[str]) -> list[str]:
    """Options with their values: ['-p', 'gpu'] as '--partition=gpu', ['--qos', 'x'] as '--qos=x'."""
    long = {"-p": "--partition", "-t": "--time", "-A": "--account"}
    joined: list[str] = []
    for one in arguments:
        if joined and joined[-1].startswith("--") and "=" not in joined[-1] and not one.startswith("-"):
            joined[-1] += f"={one}"
        else:
            joined.append(long.get(one, one))
    return joined
