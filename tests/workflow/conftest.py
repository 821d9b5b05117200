"""Checkouts to run the workflow in: the toy study alone (a run takes seconds), or the shipped configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from checkouts import Checkout, commit, copied, smoke_checkout, toy_checkout


@pytest.fixture(scope="session")
def secret() -> str:
    """A word that stands in the environment of the finished toy run, and that none of its files may hold."""
    return "hush-hush-0815"


@pytest.fixture(scope="session")
def finished_toy(repository: Path, tmp_path_factory: pytest.TempPathFactory, secret: str) -> Checkout:
    """A finished run of the toy, of committed code; tests copy it and never write into it."""
    checkout = toy_checkout(
        repository, tmp_path_factory.mktemp("toy") / "a checkout"
    )  # the space in the path is on purpose
    commit(checkout.folder)
    with pytest.MonkeyPatch.context() as patch:
        for name in ("SCHEDLAB_TEST_SECRET", "AWS_SECRET_ACCESS_KEY", "GITHUB_TOKEN", "SLURM_JWT"):
            patch.setenv(name, secret)
        checkout.run("all", cores=2)
    return checkout


@pytest.fixture
def toy(finished_toy: Checkout, tmp_path: Path) -> Checkout:
    """An own copy of the finished toy run, in another place."""
    return copied(finished_toy, tmp_path / "copy")


@pytest.fixture
def fresh_toy(repository: Path, tmp_path: Path) -> Checkout:
    """The toy before its first run, at the commit of the finished one."""
    checkout = toy_checkout(repository, tmp_path / "fresh")
    commit(checkout.folder)
    return checkout


@pytest.fixture(scope="session")
def finished_smoke(repository: Path, tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A finished run of three studies at scale smoke; tests copy it and never write into it."""
    checkout = smoke_checkout(repository, tmp_path_factory.mktemp("smoke") / "checkout")
    checkout.run("all", "--config", "scale=smoke")
    return checkout


@pytest.fixture
def smoke(finished_smoke: Checkout, tmp_path: Path) -> Checkout:
    """An own copy of the finished smoke run, in another place."""
    return copied(finished_smoke, tmp_path / "copy")
