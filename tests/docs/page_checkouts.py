"""Pages in a checkout of their own: the files that a page prints, saved under the names it gives, and its commands, run
as they stand.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

from small_conf import without_questions

BLOCK = re.compile(r"(?:`(?P<saved>[^`\n]+)`:\n\n)?```(?P<language>\w+)\n(?P<text>.*?)```", flags=re.S)
NAMED = re.compile(r"# (\S+\.\w+)\n")
# What a checkout keeps of conf/: to compose and check all of it would take most of a test's time.
KEPT = {
    "adaptation": (
        "study/adaptation.yaml",
        "scenario/adaptation/_base.yaml",
        "scenario/adaptation/early.yaml",
        "policy/adaptation/best-constant.yaml",
        "model/*",
        "data/*",
        "gpu/*",
        "learner/adaptation/*",
    ),
    "hetero": ("study/hetero.yaml", "scenario/hetero/_base.yaml", "platform/*", "workload/*"),
    "batch": ("study/batch.yaml", "scenario/batch/_base.yaml"),
    "ramp": ("study/ramp.yaml", "scenario/ramp/_base.yaml", "scenario/ramp/_load.yaml", "graph/*", "gpu/*"),
    "cloud": ("study/cloud.yaml", "scenario/cloud/_base.yaml", "training_job/*", "prices/*", "learner/cloud/*"),
}


class Page:
    """A page's files by name, and its command lines in order."""

    def __init__(self, path: Path) -> None:
        self.files: dict[str, str] = {}
        self.commands: list[list[str]] = []
        for block in BLOCK.finditer(path.read_text()):
            first = NAMED.match(block["text"])
            if block["language"] == "console":
                self.commands += [shlex.split(line, comments=True) for line in block["text"].splitlines()]
            elif name := first[1] if first else block["saved"]:
                assert name not in self.files, name
                self.files[name] = block["text"]
        assert self.commands, path

    def follow(self, checkout: Path) -> str:
        """Save the files and run the commands in a checkout; returns what they printed."""
        for name, text in self.files.items():
            assert not (checkout / name).exists(), name
            (checkout / name).parent.mkdir(parents=True, exist_ok=True)
            (checkout / name).write_text(text)
        printed = ""
        # A pytest among the commands would delete the folders that earlier runs of pytest left, which takes minutes.
        environment = os.environ | {"PYTEST_DEBUG_TEMPROOT": str(checkout)}
        for program, *arguments in self.commands:
            if program == "cd":
                checkout /= arguments[0]
                continue
            module = {"schedlab": "schedlab.cli.main", "snakemake": "snakemake", "pytest": "pytest"}[program]
            command = [sys.executable, "-m", module, *arguments]
            done = subprocess.run(command, cwd=checkout, env=environment, capture_output=True, text=True, timeout=900)
            printed += done.stdout + done.stderr
            assert done.returncode == 0, (program, arguments, printed[-4000:])
        return printed


def checkout_with(repository: Path, folder: Path, *studies: str) -> Path:
    """A copy of the repository with few shipped studies, of which it keeps what the pages build on, and without their
    figures.
    """
    for name in ("workflow", "profiles", "resources"):
        shutil.copytree(repository / name, folder / name)
    (folder / "src").symlink_to(repository / "src")
    shutil.copy(repository / "Snakefile", folder)
    for pattern in (
        "config.yaml",
        "scale/s*.yaml",
        "figure/theme.yaml",
        *(pattern for study in studies for pattern in KEPT[study]),
    ):
        for file in sorted((repository / "conf").glob(pattern)):
            target = folder / "conf" / file.relative_to(repository / "conf")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    for study in (folder / "conf").glob("study/*.yaml"):  # without questions about what is not here
        study.write_text(without_questions(study.read_text()))
    for base in (folder / "conf").glob("scenario/adaptation/_base.yaml"):
        base.write_text(re.sub(r"(?<=^policies:\n)(  - .*\n)+", "  - best-constant\n", base.read_text(), flags=re.M))
    for policy in (folder / "conf").glob("policy/adaptation/best-constant.yaml"):
        policy.write_text(re.sub(r"(?<=scenarios: )\[[^]]*\]", "[early]", policy.read_text()))
    return folder
