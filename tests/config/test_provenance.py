"""Tests of schedlab.config.runtime.provenance."""

from __future__ import annotations

import json
import platform
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, file_hash
from schedlab.config.runtime import provenance
from schedlab.config.runtime.code import Code
from schedlab.config.runtime.parts import dump


def test_what_a_result_came_from(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)  # in a folder where no run was planned
    (tmp_path / "data").write_text("x")
    Path("part.yaml").write_text(dump({"study": "toy", "made_by": {"code": "abc", "packages": {}}}))
    provenance.write_provenance(tmp_path / "a.provenance.json", "part.yaml", [2, 1], {"data": tmp_path / "data"})
    found = json.loads((tmp_path / "a.provenance.json").read_text())
    assert found["config_hash"] == content_hash({"study": "toy"}) and found["code_hash"] == "abc"
    assert found["config"] == "part.yaml" and found["seeds"] == [2, 1]
    assert found["inputs"] == {"data": file_hash(tmp_path / "data")}
    assert found["schedlab"]["source"] == provenance.source_hash()
    assert {"numpy", "pandas"} <= set(found["packages"])
    assert found["machine"]["cores"] >= 1
    assert found["machine"]["processor"]
    assert platform.node() not in json.dumps(found) or len(platform.node()) < 4
    assert str(tmp_path) not in json.dumps(found)


def test_a_result_of_code_that_was_edited_since_the_run_was_planned_is_refused(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    roots = ["schedlab.studies.ramp.network.topology"]
    right = {"made_by": {**Code().hash(roots, ["x"]), "of": roots, "upon": ["x"]}}
    wrong = {"made_by": {**right["made_by"], "code": "0" * 16}}
    provenance.require_planned_code(wrong)  # nothing says what was planned
    Path(".schedlab").mkdir()
    Path(provenance.PLANNED_SOURCE).write_text(provenance.source_hash())
    provenance.require_planned_code(wrong)  # nothing was edited
    Path(provenance.PLANNED_SOURCE).write_text("the hash of other sources")
    provenance.require_planned_code(right)  # an edit that this stage does not reach
    provenance.require_planned_code(wrong, [right["made_by"]["code"]])  # code that was accepted as the part's
    with pytest.raises(UserError) as refused:
        provenance.require_planned_code(wrong)
    assert refused.value.where == roots[0]
    monkeypatch.setattr(provenance, "source_now", lambda: "the hash of other sources")
    with pytest.raises(UserError):  # edited when this process began, and edited back since
        provenance.require_planned_code(right)


def test_the_source_hash_changes_with_the_source(tmp_path: Path, monkeypatch) -> None:
    import schedlab

    (tmp_path / "__init__.py").write_text("")
    (tmp_path / "module.py").write_text("a = 1\n")
    monkeypatch.setattr(schedlab, "__file__", str(tmp_path / "__init__.py"))
    first = provenance.source_now()
    assert provenance.source_now() == first
    (tmp_path / "module.py").write_text("a = 2\n")
    second = provenance.source_now()
    (tmp_path / "module.py").rename(tmp_path / "other.py")
    assert len({first, second, provenance.source_now()}) == 3
    (tmp_path / "gone.py").symlink_to(tmp_path / "nowhere.py")  # as where a checkout is being changed
    assert provenance.source_now()


def test_code_that_was_edited_while_a_job_ran_is_told_as_it_was_at_both_ends(monkeypatch) -> None:
    provenance.source_hash.cache_clear()  # of another test, before which a file may have been edited
    same = provenance.environment()["schedlab"]
    assert same["source"] == provenance.source_now() and "source_at_end" not in same
    assert provenance.code_and_packages()["code"] == same["source"]
    monkeypatch.setattr(provenance, "source_hash", lambda: "0123456789abcdef")  # taken when the job began
    found = provenance.environment()
    assert (found["schedlab"]["source"], found["schedlab"]["source_at_end"]) == ("0123456789abcdef", same["source"])
    assert provenance.code_and_packages(found)["code"] == f"0123456789abcdef to {same['source']}"


def test_a_package_outside_git_has_no_commit(tmp_path: Path, monkeypatch) -> None:
    import schedlab

    (tmp_path / "__init__.py").write_text("")
    monkeypatch.setattr(schedlab, "__file__", str(tmp_path / "__init__.py"))
    assert provenance._git_state.__wrapped__() == {"commit": None}


def test_results_alone_are_listed(tmp_path: Path) -> None:
    for name in (
        "b/scores.parquet",
        "a.yaml",
        "a.provenance.json",
        "manifest.json",
        ".hidden/x",
        "progress/x",
        "logs/a.log",
        "store/n.sqlite",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    assert provenance.output_hashes(tmp_path) == {
        name: file_hash(tmp_path / name) for name in ("a.yaml", "b/scores.parquet")
    }


def test_a_manifest_keeps_code_and_packages_and_no_machine() -> None:
    kept = provenance.code_and_packages()
    assert kept.keys() == {"code", "commit", "modified", "version", "python", "packages", "instructions", "c_library"}
    assert kept["code"] == provenance.source_hash() and kept["python"] == platform.python_version()
    assert "numpy" in kept["packages"] and not {"pytest", "ruff"} & kept["packages"].keys()


def test_packages_that_are_needed_by_others_are_told_as_the_requirements_pin_them(repository: Path) -> None:
    lines = [line.split("==") for line in (repository / "requirements.txt").read_text().splitlines() if "==" in line]
    pinned = {re.sub(r"[-_.]+", "-", name).lower(): version.strip() for name, version in lines}
    found = provenance.package_versions()
    assert found.keys() <= pinned.keys() and {"llvmlite", "pydantic-core", "jinja2"} <= found.keys()
    assert {name: version.partition("+")[0] for name, version in found.items()} == {
        name: pinned[name] for name in found
    }


def test_packages_of_tools_of_other_systems_and_of_extras_are_not_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {
        "schedlab": ["numpy", 'site-maker; extra == "docs"', "linter>=2; extra == 'dev'", 'torch; extra == "learn"'],
        "numpy": [
            'colorama; platform_system == "Windows"',
            'threads; sys_platform != "win32"',
            "plots; extra == 'all'",
        ],
        "torch": ['greenlet; platform_machine == "x86_64" or platform_machine == "win32"'],
    }
    monkeypatch.setattr(provenance.metadata, "requires", lambda name: asked.get(name))
    monkeypatch.setattr(provenance.metadata, "version", lambda _name: "1.0")
    found = provenance.package_versions.__wrapped__()
    assert list(found) == ["greenlet", "numpy", "threads", "torch"]


def test_the_origin_of_a_job_names_what_it_read_and_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "results/s/config/join.yaml": "seed: 1\n",
        "results/s/a.parquet": "a",
        "results/s/a.details/jobs.parquet": "b",
        "results/s/a.details/.hidden": "c",
        "results/s/out.json": "d",
    }
    for name, text in files.items():
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(text)

    class Files(list):
        config = "results/s/config/join.yaml"

    read = Files([Files.config, "results/s/a.parquet", "results/s/a.details", "/far/away.csv"])
    path = Path("results/s/out.provenance.json")
    provenance.write_origin(SimpleNamespace(input=read, output=["results/s/out.json"]), path)
    found = json.loads(path.read_text())
    assert found["outputs"] == ["results/s/out.json"] and found["config"] == Files.config
    assert found["config_hash"] == content_hash({"seed": 1})
    read_files = ("results/s/a.parquet", "results/s/a.details/jobs.parquet")
    assert found["inputs"] == {name: file_hash(tmp_path / name) for name in read_files}
    assert found["schedlab"]["source"] == provenance.source_hash()
