"""The profiles of clusters ask their batch system for what they should; a stub stands in for it and notes what it is asked."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path

import pytest

STUB = {
    "sbatch": "#!{python}\nimport json, pathlib, sys\npathlib.Path('asked.json').write_text(json.dumps(sys.argv[1:]))\n"
    "made = pathlib.Path('results/measured/device_speed/{device}.json')\nmade.parent.mkdir(parents=True, exist_ok=True)\n"
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
    for name, text in STUB.items():
        stub = tmp_path / "bin" / name
        stub.parent.mkdir(exist_ok=True)
        stub.write_text(text.format(python=os.sys.executable, device=device))
        stub.chmod(stub.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")
    soon = ("--slurm-init-seconds-before-status-checks", "1", "--seconds-between-status-checks", "1", "--latency-wait", "5")
    toy.run("--profile", f"profiles/{profile}", *soon, f"results/measured/device_speed/{device}.json", cores=64)
    asked = json.loads((toy.folder / "asked.json").read_text())
    given = {re.sub(r"^(--[\w-]+)[= ]", r"\1=", one) for one in _joined(asked)}
    assert expected <= given, given
    assert not any(one.startswith(("--ntasks=2", "--nodes=2")) for one in given)
    assert "measure_device_speed" in asked[-1]


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
