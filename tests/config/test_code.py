"""The hash of the code that decides a result changes with what a stage reaches, and with nothing else."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

import schedlab
from schedlab.config.runtime import code
from schedlab.config.runtime.code import Code

LOADERS = ("load_object", "import_module")

SIMULATOR = '''"""A simulator."""

import numpy as np

from toy.units import SECOND

RATE = 2.0


def run(jobs):
    """Return the makespan."""
    return np.sum(jobs) * RATE * SECOND
'''


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package of four modules: a stage, the simulator that it loads by name, units, and a drawing."""
    root = tmp_path / "toy"
    files = {
        "stage.py": 'from toy.tools import load_object\n\nMAKE = load_object(\n    "toy.simulator:run"\n)\n',
        "simulator.py": SIMULATOR,
        "units.py": "SECOND = 1.0\n\n\ndef is_letter(x):\n    return x in {'a', 'b', 'c', 'd'}\n",
        "tools.py": (
            "from typing import TYPE_CHECKING\n\nif TYPE_CHECKING:\n    from toy.drawing import draw\n\n"
            "def load_object(name):\n    return name\n"
        ),
        "drawing.py": "COLOUR = 'red'\n\n\ndef draw():\n    return COLOUR\n",
    }
    root.mkdir()
    for name, text in files.items():
        (root / name).write_text(text)
    return root


def the_hash(package: Path, **values: object) -> str:
    return Code({"toy": package}).hash(["toy.stage"], **values)["code"]


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("simulator.py", "RATE = 2.0", "RATE = 2.5", False),
        ("simulator.py", "RATE * SECOND", "RATE / SECOND", False),
        ("simulator.py", "def run(jobs)", "def run(jobs, more=0)", False),
        ("units.py", "SECOND = 1.0", "SECOND = 60.0", False),
        ("units.py", "'d'}", "'e'}", False),
        ("simulator.py", "Return the makespan.", "Say how long all jobs take.", True),
        ("simulator.py", '"""A simulator."""\n', "", True),
        ("units.py", "def is_letter(x):\n", 'def is_letter(x):\n    """Return whether it is one."""\n', True),
        ("simulator.py", "RATE = 2.0", "RATE = 2.0  # jobs a second", True),
        ("simulator.py", "np.sum(jobs) * RATE * SECOND", "(\n  np.sum(jobs)\n  * RATE * SECOND\n  )", True),
        ("drawing.py", "red", "blue", True),  # imported for type checking alone
        ("tools.py", "import draw", "import COLOUR", True),
        ("tools.py", "if TYPE_CHECKING", "if not TYPE_CHECKING", False),
    ],
)  # fmt: skip
def test_what_changes_the_hash(package: Path, file: str, old: str, new: str, same: bool) -> None:
    before = the_hash(package)
    text = (package / file).read_text()
    assert old in text
    (package / file).write_text(text.replace(old, new))
    assert (the_hash(package) == before) is same


def test_a_module_that_nothing_reaches_does_not_count_and_one_that_is_added_does(package: Path) -> None:
    before = the_hash(package)
    (package / "other.py").write_text("X = 1\n")
    assert the_hash(package) == before
    (package / "units.py").write_text("from toy import other\n\nSECOND = 1.0\n")
    assert "toy.other" in Code({"toy": package}).reached(["toy.stage"])
    assert the_hash(package) != before


def test_the_code_of_what_it_builds_on_counts_in_any_order(package: Path) -> None:
    assert the_hash(package, upon=["a", "b"]) == the_hash(package, upon=["b", "a", "a"]) != the_hash(package)


def test_the_packages_that_decide_numbers_are_named_with_their_versions(package: Path) -> None:
    assert list(Code({"toy": package}).hash(["toy.stage"])["packages"]) == ["numpy", "instructions", "python"]
    assert Code({"toy": package}).hash(["toy.drawing"])["packages"].keys() == {"python"}
    assert "numba" in Code().hash(["schedlab.studies.batch.simulator.cluster"])["packages"]


def test_what_computes_with_packages_depends_on_the_instructions_that_they_are_held_to(
    package: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = Code({"toy": package}).hash(["toy.stage"])
    monkeypatch.setattr(code, "pinned", lambda: "another level")
    after = Code({"toy": package}).hash(["toy.stage"])
    assert before["packages"] != after["packages"] and before["code"] == after["code"]


def test_a_file_is_read_again_only_when_it_has_changed(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known: dict[str, object] = {}

    def remember(key: str, make):
        if key not in known:
            known[key] = make()
        return known[key]

    before = Code({"toy": package}, remember).hash(["toy.stage"])
    monkeypatch.setattr(code, "statements_of", lambda *_: pytest.fail("a file was read again"))
    assert Code({"toy": package}, remember).hash(["toy.stage"]) == before


@pytest.mark.parametrize("study", ["adaptation", "batch", "cloud", "hetero", "ramp"])
def test_no_evaluation_of_the_package_reaches_a_drawing_or_a_command(study: str) -> None:
    names = Code().reached(["schedlab.stages.evaluate", f"schedlab.studies.{study}.study"])
    assert f"schedlab.studies.{study}.problem" in names
    assert not [name for name in names if ".figures" in name or ".commands" in name or ".cli" in name]
    of_studies = [name for name in names if name.startswith("schedlab.studies.")]
    assert all(name.startswith(f"schedlab.studies.{study}") for name in of_studies)


def test_of_a_function_only_what_it_uses_of_its_module_counts(package: Path) -> None:
    text = """
        from toy.simulator import run
        from toy.units import SECOND
        HERE, THERE = 1, 2
        MORE = {}
        MORE |= {"run": run}
        def fit(part):
            return helper(part) * HERE
        def helper(part):
            return run(part)
        def solve(part):
            return SECOND + THERE
        """
    prepare = package / "prepare.py"
    prepare.write_text("\n".join(line.removeprefix("        ") for line in text.splitlines()))
    fit, solve = (Code({"toy": package}).hash([f"toy.prepare:{name}"]) for name in ("fit", "solve"))
    assert Code({"toy": package}).reached(["toy.prepare:solve"]).keys() == {"toy.prepare:solve", "toy.units"}

    def after(file: str, old: str, new: str) -> list[bool]:
        kept = (package / file).read_text()
        (package / file).write_text(kept.replace(old, new))
        now = [Code({"toy": package}).hash([f"toy.prepare:{name}"]) for name in ("fit", "solve")]
        (package / file).write_text(kept)
        return [now[0] == fit, now[1] == solve]

    assert after("prepare.py", "return run(part)", "return 2 * run(part)") == [False, True]
    assert after("prepare.py", "SECOND + THERE", "SECOND - THERE") == [True, False]
    assert after("simulator.py", "RATE = 2.0", "RATE = 3.0") == [False, True]
    assert after("units.py", "SECOND = 1.0", "SECOND = 2.0") == [False, False]


def test_imports_of_every_form_are_followed(package: Path) -> None:
    (package / "sub").mkdir()
    (package / "sub" / "__init__.py").write_text("from .. import units\n")
    forms = (
        "from . import units",
        "from .units import SECOND",
        "from toy.units import (SECOND,  # (why)\n)",
        "import os; from toy.units import SECOND",
        "try:\n    import toy.units\nexcept ImportError:\n    pass",
        "def late():\n    from toy import units",
        "load_object('toy.units:SECOND')",
        "importlib.import_module('toy.units')",
        "from toy import sub",
    )
    for form in forms:
        (package / "other.py").write_text(form + "\n")
        assert "toy.units" in Code({"toy": package}).reached(["toy.other"]), form
        (package / "other.py").write_text(f"def f():\n    return units, SECOND, toy, sub, late, os\n\n\n{form}\n")
        assert "toy.units" in Code({"toy": package}).reached(["toy.other:f"]), form
    for form in ('"""from toy.units import SECOND"""', "# load_object('toy.units:SECOND')"):
        (package / "other.py").write_text(form + "\n")
        assert "toy.units" not in Code({"toy": package}).reached(["toy.other"]), form


def test_statements_of_a_module_count_for_each_of_its_functions(package: Path) -> None:
    text = "from toy.units import SECOND\nTABLE = {}\n\n\ndef f():\n    return TABLE\n\n\nTABLE.update(a=SECOND)\n"
    (package / "other.py").write_text(text)
    before = Code({"toy": package}).hash(["toy.other:f"])
    (package / "other.py").write_text(text.replace("a=SECOND", "b=SECOND"))
    assert Code({"toy": package}).hash(["toy.other:f"]) != before
    assert "toy.units" in Code({"toy": package}).reached(["toy.other:f"])


DOORS = """
from schedlab.doors import Door, with_doors
from toy.units import SECOND

STUDY = SECOND
"""


@pytest.mark.parametrize(
    ("statement", "same"),
    [
        ("STUDY = with_doors(STUDY, rules={'fast': Door('toy.simulator:run', kind='oracle')})", True),
        ("STUDY = with_doors(STUDY, learners={'fast': Door('toy.simulator:run'), 'slow': Door('toy.tools:f')})", True),
        ("STUDY = with_doors(STUDY, rules={'fast': SECOND})", False),
        ("STUDY = with_doors(STUDY, rules=found())", False),
        ("STUDY = without_doors(STUDY, rules={})", False),
    ],
)
def test_what_a_study_offers_as_text_changes_no_result(package: Path, statement: str, same: bool) -> None:
    (package / "other.py").write_text(DOORS)
    before = Code({"toy": package}).hash(["toy.other"])
    (package / "other.py").write_text(f"{DOORS}{statement}\n")
    assert (Code({"toy": package}).hash(["toy.other"]) == before) == same
    assert Code({"toy": package}).reached(["toy.other"]).keys() == {"toy.other", "toy.units"}


def test_a_users_file_counts_with_what_it_imports(package: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from helper import FACTOR\nfrom toy.units import SECOND\n")
    (tmp_path / "helper.py").write_text("from tools.core import FACTOR\n")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools/__init__.py").write_text("")
    (tmp_path / "tools/core.py").write_text("FACTOR = 0\n")

    def hashed() -> dict:
        code = Code({"toy": package})
        return code.hash([code.add_file(tmp_path / "mine.py")])

    first = hashed()
    (tmp_path / "tools/core.py").write_text("FACTOR = 1\n")
    before = hashed()
    assert first != before, "a package beside the file"
    (tmp_path / "mine.py").write_text("from helper import FACTOR  # a comment\nfrom toy.units import SECOND\n")
    assert hashed() == before
    (tmp_path / "helper.py").write_text("FACTOR = 2\n")
    changed = hashed()
    assert changed != before
    (package / "units.py").write_text("SECOND = 60.0\n")
    assert hashed() != changed


def test_every_module_that_is_loaded_by_name_is_named_in_so_many_letters(repository: Path) -> None:
    """Else the hash cannot see it; `load_object(STUDY.rules[name])` and its like are roots of their own."""
    computed = {
        f"{path.relative_to(repository / 'src/schedlab').as_posix()}: {ast.unparse(call)}"
        for path in sorted((repository / "src/schedlab").rglob("*.py"))
        for call in ast.walk(ast.parse(path.read_text()))
        if isinstance(call, ast.Call) and getattr(call.func, "id", getattr(call.func, "attr", "")) in LOADERS
        if not isinstance(call.args[0], ast.Constant)
    }
    of_stages = {entry for entry in computed if not entry.startswith(("cli/", "doors", "config/plugins", "stages/"))}
    assert not {entry for entry in of_stages if "/commands" not in entry and "/live/" not in entry} - {
        "batsim/scheduler_loading.py: importlib.import_module(f'schedulers.{name}')",  # PyBatsim's own
        "config/runtime/fork_server.py: importlib.import_module(name)",  # packages, and no part of schedlab
        "studies/ramp/user_classes.py: importlib.import_module(module)",  # a user's class, named in a scenario
    }


def test_of_the_settings_that_all_share_only_what_is_imported_counts(tmp_path: Path) -> None:
    source = Path(shutil.copytree(Path(schedlab.__file__).parent, tmp_path / "schedlab"))
    roots = ["schedlab.stages.evaluate", "schedlab.studies.hetero.study"]
    before = Code({"schedlab": source}).hash(roots)
    for name, line, same in (
        ("settings", "ThemeSettings.more = 1", True),
        ("settings", "StatisticsSettings.more = 1", True),  # of summaries alone
        ("settings", "RuleSettings.more = 1", False),
        ("files", "def remove_more(): ...", True),
        ("files", "GROUP_ROWS = 2", False),
    ):
        file = source / f"config/{name}.py"
        text = file.read_text()
        file.write_text(f"{text}\n{line}\n")
        assert (Code({"schedlab": source}).hash(roots) == before) is same, line
        file.write_text(text)


def test_what_is_loaded_late_is_reached() -> None:
    assert "schedlab.batsim.schedulers.sjf" in Code().reached(["schedlab.studies.hetero.study"])
    assert "schedlab.studies.ramp.graphs.models" in Code().reached(
        ["schedlab.studies.ramp.graphs.prepare:trace_graphs"]
    )
    tabulate = Code().reached(["schedlab.studies.adaptation.prepare:tabulate"])
    assert "schedlab.studies.adaptation.compat.published_table" in tabulate
