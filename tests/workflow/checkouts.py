"""Checkouts to run the workflow in, and snakemake in them."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import yaml

from small_conf import write_conf

COPIED = ("Snakefile", "workflow", "profiles", "src", "resources", "tests/toy_study")
BYTES = (".parquet", ".zip", ".svg", ".pdf", ".png", ".npz")  # what must be the same in every run; logs and provenance hold times

PUBLISHED = (
    "published*",
    "exact-published*",
    "constant-published*",
    "convnet2_*",
    "defect_*",
)  # the published system's many files only slow the composition


class Checkout:
    """A copy of the repository with a configuration, and snakemake in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments]

    def run(self, *arguments: str, cores: int = 2, status: int | None = 0) -> str:
        """Run snakemake and return everything that it printed; status None: any."""
        done = subprocess.run(self.command(*arguments, cores=cores), cwd=self.folder, capture_output=True, text=True, timeout=600)
        output = done.stdout + done.stderr
        assert status is None or done.returncode == status, output[-4000:]
        return output

    def kill(self, started: subprocess.Popen) -> None:
        """Kill snakemake and all its jobs at once, as a power cut would."""
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()

    def run_and_kill(self, seconds: float, *arguments: str) -> bool:
        """Start snakemake and kill it with all its jobs after some seconds; False if it was done before."""
        started = subprocess.Popen(
            self.command(*arguments), cwd=self.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        try:
            started.wait(seconds)
            return False
        except subprocess.TimeoutExpired:
            self.kill(started)
            return True

    def rules(self, *arguments: str) -> dict[str, int]:
        """The workflow rules that a dry run would execute, with the number of their jobs."""
        output = self.run("--dry-run", *arguments)
        if "Nothing to be done" in output:
            return {}
        table = output.split("Job stats:", 1)[1].split("\ntotal", 1)[0]
        counted = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, flags=re.M)}
        return {rule: count for rule, count in counted.items() if rule != "all"}

    def jobs(self, *arguments: str) -> set[str]:
        """The jobs that a dry run would execute, as 'rule scenario', 'rule scenario/bundle', 'rule policy' or 'rule'."""
        found = set()
        for block in re.split(r"\n(?=(?:local)?rule )", self.run("--dry-run", *arguments).split("Job stats:", 1)[-1]):
            named = re.match(r"(?:local)?rule (\w+):", block)
            given = re.search(r"^    wildcards: (.*)$", block, flags=re.M)
            values = dict(entry.split("=") for entry in given.group(1).split(", ")) if given else {}
            of = "/".join(values[key] for key in ("scenario", "policy", "bundle") if key in values)
            if named and named.group(1) not in ("all", "index_figures"):
                found.add(f"{named.group(1)} {of}".strip())
        return found

    def pretend(self, *arguments: str) -> None:
        """Lay an empty file where each job would write its output, all of one time: a finished run as far as times tell."""
        listed = re.findall(r"^    output: (.*)$", self.run("--dry-run", *arguments), flags=re.M)
        outputs = [self.folder / name for line in listed for name in line.split(", ")]
        for path in outputs:
            path.mkdir(parents=True, exist_ok=True) if path.suffix == ".details" or path.name == "details" else _empty(path)
            if path.name == "config.yaml":  # the part that a policy was learned from, which is kept beside it
                shutil.copy(path.parent.parent / "config/learn.yaml", path)
        now = time.time()
        for path in outputs:
            os.utime(path, (now, now))
        assert "Nothing to be done" in self.run("--dry-run", *arguments)

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text()
        assert old in text, (name, text)
        file.write_text(text.replace(old, new))

    def hashes(self, *folders: str) -> dict[str, str]:
        """SHA-256 of all files that must not depend on when or how often they were made."""
        found = [path for name in folders or ("results", "plots") for path in sorted((self.folder / name).rglob("*"))]
        return {
            path.relative_to(self.folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in found
            if path.suffix in BYTES and path.is_file()
        }


def _empty(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch()


def copy_repository(repository: Path, folder: Path) -> Checkout:
    folder.mkdir(parents=True)
    for name in COPIED:
        source, target = repository / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
        else:
            shutil.copy(source, target)
    return Checkout(folder)


def toy_checkout(repository: Path, folder: Path) -> Checkout:
    """A checkout whose configuration holds the toy study and no other."""
    checkout = copy_repository(repository, folder)
    conf = folder / "conf"
    shutil.copytree(repository / "tests/toy_study/conf", conf)
    shutil.copy(repository / "conf/config.yaml", conf)
    (conf / "scale").mkdir()
    for name in ("smoke", "small"):
        (conf / f"scale/{name}.yaml").write_text(yaml.safe_dump({"name": name}))
    shutil.copy(repository / "conf/figure/theme.yaml", conf / "figure/theme.yaml")
    return checkout


def adaptation_checkout(repository: Path, folder: Path) -> Checkout:
    """A checkout with two tiny scenarios of the adaptation study that build on one file, and two policies."""
    checkout = copy_repository(repository, folder)
    conf = write_conf(folder)
    for file in (conf / "scenario/adaptation").glob("*.yaml"):
        name, adapt_at = (re.search(rf"^{key}: .*$", file.read_text(), flags=re.M).group() for key in ("name", "adapt_at"))
        base = file.with_name("_base.yaml")
        base.write_text(file.read_text().replace(f"{name}\n", "").replace(f"{adapt_at}\n", ""))
        file.write_text(f"defaults:\n  - _base\n  - _self_\n{name}\n{adapt_at}\n")
    checkout.edit("conf/policy/adaptation/exact-tiny.yaml", "steps: 60", 'steps: "${scale.studies.adaptation.exact_updates}"')
    return checkout


def shipped_checkout(repository: Path, folder: Path) -> Checkout:
    """A checkout with the shipped configuration, less the published system's files."""
    checkout = copy_repository(repository, folder)
    shutil.copytree(repository / "conf", folder / "conf")
    for group in ("scenario", "policy", "figure"):
        for pattern in PUBLISHED:
            for file in (folder / "conf" / group / "adaptation").glob(pattern):
                file.unlink()
    return checkout
