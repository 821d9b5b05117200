"""Checkouts to run the workflow in, snakemake in them, and the lock of another run."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "src"))

from snakemake_starts import Starts

from schedlab.config.runtime.provenance import NOT_OUTPUTS, output_hashes
from schedlab.evaluation.manifest import NAME as MANIFEST

STARTS = Starts()
COPIED = ("Snakefile", "workflow", "profiles", "src", "resources", "tests/toy_study", "docs/results")


OWN_RULE = """class Two:
    def __init__(self, params, problem, seed): pass
    def reset(self, unit): pass
    def act(self, observation, mask): return 2.0
"""
OWN_LEARNER = """from toy_study.study import HillClimber


class Climber(HillClimber):
    pass
"""


@contextmanager
def another_run(folder: Path) -> Iterator[None]:
    """A process that holds the lock of a directory, as a run does."""
    hold = (
        "import pathlib, time; from schedlab.config.runtime import run_lock; "
        "run_lock.hold(pathlib.Path('.schedlab/run.lock'))"
    )
    holding = [sys.executable, "-c", f"{hold}; print('held', flush=True); time.sleep(300)"]
    with subprocess.Popen(holding, cwd=folder, stdout=subprocess.PIPE) as running:
        running.stdout.readline()
        try:
            yield
        finally:
            running.kill()


class Checkout:
    """A copy of the repository with a configuration, and snakemake in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def command(self, *arguments: str, cores: int = 2) -> list[str]:
        return [sys.executable, "-m", "snakemake", "--cores", str(cores), *arguments]

    def run(self, *arguments: str, cores: int = 2, status: int | None = 0, seconds: float | None = 600) -> str:
        """Run snakemake, for at most some seconds (None: as long as it takes), and return everything that it printed;
        status None: any.
        """
        ended, output = STARTS.run(self.command(*arguments, cores=cores), self.folder, seconds)
        assert status is None or ended == status, output[-4000:]
        return output

    def kill(self, started: subprocess.Popen) -> None:
        """Kill snakemake and all its jobs at once, as a power cut would."""
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()

    def rules(self, *arguments: str) -> dict[str, int]:
        """The workflow rules that a dry run would execute, with the number of their jobs."""
        output = self.run("--dry-run", *arguments)
        if "Nothing to be done" in output:
            return {}
        table = output.split("Job stats:", 1)[1].split("\ntotal", 1)[0]
        counted = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", table, flags=re.M)}
        return {rule: count for rule, count in counted.items() if rule != "all"}

    def jobs(self, *arguments: str) -> set[str]:
        """The jobs that a dry run would execute: 'rule scenario/bundle', 'rule policy/seed', 'rule study' or 'rule';
        not the targets.
        """
        found = set()
        for block in re.split(r"\n(?=(?:local)?rule )", self.run("--dry-run", *arguments).split("Job stats:", 1)[-1]):
            named = re.match(r"(?:local)?rule (\w+):", block)
            given = re.search(r"^    wildcards: (.*)$", block, flags=re.M)
            values = dict(entry.split("=") for entry in given.group(1).split(", ")) if given else {}
            of = "/".join(
                values[key] for key in ("scenario", "policy", "seed", "bundle") if key in values
            ) or values.get("study", "")
            if named and named.group(1) != "all":
                rule = re.sub(r"_\d+_\d+$", "", named.group(1))  # the replicates of a simulation
                found.add(f"{rule} {of}".strip())
        return found

    def edit(self, name: str, old: str, new: str) -> None:
        file = self.folder / name
        text = file.read_text()
        assert old in text, (name, text)
        file.unlink()  # a copy may share the file (`copied`)
        file.write_text(text.replace(old, new))

    def hashes(self, *folders: str) -> dict[str, str]:
        """SHA-256 of every result, frozen part, picture, list and manifest of runs; not of logs, times and what tells
        the machine.
        """
        skipped = [name for name in NOT_OUTPUTS if name != MANIFEST]
        found = {name: output_hashes(self.folder / name, skipped) for name in folders or ("results", "plots")}
        return {f"{folder}/{name}": digest for folder, digests in found.items() for name, digest in digests.items()}


NEVER_WRITTEN = re.compile(r"/(src|resources|\.git/objects)/")  # into its files; they are replaced


def copied(checkout: Checkout, folder: Path) -> Checkout:
    """Copy a checkout with all that was run in it; files that nobody writes into are shared, as links are quick."""

    def copy(source: str, target: str) -> None:
        (os.link if NEVER_WRITTEN.search(source) else shutil.copy2)(source, target)

    return Checkout(shutil.copytree(checkout.folder, folder, symlinks=True, copy_function=copy))


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


def own_source(checkout: Checkout) -> None:
    """Give a checkout whose source is a link to the repository's (for the compiled kernels) a copy of it, to edit."""
    link = checkout.folder / "src"
    source = link.resolve()
    link.unlink()
    shutil.copytree(source, link, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))


def commit(folder: Path) -> None:
    """Commit all of a folder but what runs make, as a separate repository; the same files are the same commit."""
    git = ["git", "-C", str(folder), "-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run([*git, "init", "-q"], check=True)
    (folder / ".git/info/exclude").write_text("/results\n/plots\n/.snakemake\n/.schedlab\n__pycache__\n")
    subprocess.run([*git, "add", "-A"], check=True)
    dates = dict.fromkeys(("GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"), "2026-01-01T00:00:00+0000")
    subprocess.run([*git, "commit", "-q", "-m", "A state"], check=True, env=os.environ | dates)
    subprocess.run([*git, "gc", "-q"], check=True)  # a thousand files fewer in each copy


def toy_checkout(repository: Path, folder: Path) -> Checkout:
    """A checkout whose configuration holds the toy study and no other."""
    checkout = copy_repository(repository, folder)
    write_toy_conf(repository, folder)
    return checkout


def one_seed_checkout(repository: Path, folder: Path) -> Checkout:
    """The toy study with one scenario, one policy and one seed: a job of each rule, two of them at once."""
    checkout = toy_checkout(repository, folder)
    for name in ("conf/scenario/toy/far.yaml", "conf/policy/toy/hill_further.yaml"):
        (folder / name).unlink()
    for name in ("conf/figure/toy/costs.yaml", "conf/policy/toy/hill.yaml"):
        checkout.edit(name, "[near, far]", "[near]")
    checkout.edit("conf/policy/toy/hill.yaml", "seeds: [0, 1]", "seeds: [0]")
    checkout.edit("conf/scenario/toy/near.yaml", "[hill, hill_further]", "[hill]")
    return checkout


def write_toy_conf(repository: Path, folder: Path) -> None:
    """Make conf/ with the toy study and no other in a folder."""
    conf = folder / "conf"
    shutil.copytree(repository / "tests/toy_study/conf", conf)
    shutil.copy(repository / "conf/config.yaml", conf)
    (conf / "scale").mkdir()
    for name in ("smoke", "small"):
        (conf / f"scale/{name}.yaml").write_text(yaml.safe_dump({"name": name}))
    shutil.copy(repository / "conf/figure/theme.yaml", conf / "figure/theme.yaml")
    checkout = Checkout(folder)
    checkout.edit("conf/policy/toy/hill.yaml", "seeds: [0, 1, 2, 3, 4]", "seeds: [0, 1]")
    checkout.edit("conf/policy/toy/hill_further.yaml", "seeds: [0, 1, 2]", "seeds: [0]")


def shipped_checkout(repository: Path, folder: Path) -> Checkout:
    """A checkout with the shipped configuration."""
    checkout = copy_repository(repository, folder)
    shutil.copytree(repository / "conf", folder / "conf")
    return checkout


def without(checkout: Checkout, study: str) -> None:
    """Take a study out of a configuration."""
    conf = checkout.folder / "conf"
    for group in ("scenario", "figure", "policy", "learner"):
        shutil.rmtree(conf / group / study, ignore_errors=True)
    for group in ("study", "claims"):
        (conf / group / f"{study}.yaml").unlink(missing_ok=True)


def smoke_checkout(repository: Path, folder: Path) -> Checkout:
    """The shipped configuration cut to two scenarios and two policies at scale smoke, and the toy beside it with the
    user's own classes.
    """
    checkout = shipped_checkout(repository, folder)
    for study in (
        "batch",
        "cloud",
        "ramp",
    ):  # compiling them anew in each checkout takes long; each has a run of its own
        without(checkout, study)
    for group in ("prices", "training_job"):  # which the study cloud alone reads
        shutil.rmtree(folder / "conf" / group)
    shutil.copytree(repository / "tests/toy_study/conf", folder / "conf", dirs_exist_ok=True)
    base = folder / "conf/scenario/adaptation/_base.yaml"
    base.write_text(
        re.sub(r"(?<=^policies:\n)(  - .*\n)+", "  - best-constant\n  - exact-all\n", base.read_text(), flags=re.M)
    )
    checkout.edit("conf/study/adaptation.yaml", "    replicates: 1\n", "    replicates: 2\n")
    checkout.edit("conf/scenario/adaptation/late.yaml", "adapt_at: 190.0", "adapt_at: 190.0\nscales: [smoke]")
    for policy, trained_on in (("exact-all", "[early, late]"), ("best-constant", "[early]")):
        file = folder / f"conf/policy/adaptation/{policy}.yaml"
        file.write_text(re.sub(r"(?<=scenarios: )\[[^]]*\]", trained_on, file.read_text()))
    figures = folder / "conf/figure/adaptation/figures.yaml"
    kept = yaml.safe_load(figures.read_text())
    del kept["for_each"]["transfer"]  # of policies that are cut above
    figures.write_text(yaml.safe_dump(kept, sort_keys=False))
    shutil.copy(folder / "resources/vocabularies/layers.json", folder / "words.json")
    checkout.edit(
        "conf/policy/adaptation/exact-all.yaml", "seeds:", "learner: {encoder: vocab, vocabulary: words.json}\nseeds:"
    )
    for name in ("conf/scenario/toy/far.yaml", "conf/policy/toy/hill_further.yaml"):
        (folder / name).unlink()
    checkout.edit("conf/figure/toy/costs.yaml", "[near, far]", "[near]")
    checkout.edit("conf/policy/toy/hill.yaml", "[near, far]", "[near]")
    checkout.edit("conf/policy/toy/hill.yaml", "seeds: [0, 1, 2, 3, 4]", "seeds: [0]")
    checkout.edit(
        "conf/policy/toy/hill.yaml",
        "{name: hill_climbing, step_size: 0.4}",
        "{_target_: 'climber.py:Climber', start: 0.0, step_size: 0.5}",
    )
    checkout.edit("conf/scenario/toy/near.yaml", "[hill, hill_further]", "[hill]")
    checkout.edit("conf/scenario/toy/near.yaml", "rules:\n", "rules:\n  - {name: two, target: 'own.py:Two'}\n")
    (folder / "own.py").write_text(OWN_RULE)
    (folder / "climber.py").write_text(OWN_LEARNER)
    return checkout
