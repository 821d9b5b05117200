"""`schedlab new study`: creates a directory with a small study that can be run at once."""

from __future__ import annotations

import keyword
import re
import shlex
import shutil
import sys
from collections.abc import Collection
from importlib.metadata import packages_distributions
from pathlib import Path

from schedlab.config.data_paths import SHIPPED
from schedlab.config.errors import UserError
from schedlab.config.files import write_text
from schedlab.config.readers import read_value
from schedlab.config.settings import RESERVED_NAMES

TEMPLATE = Path(__file__).with_name("templates") / "study"
NAME = "my_study"  # in the template's files and in their names
FOLDERS = ("conf", "plots", "profiles", "resources", "results", "workflow")  # that a run reads or writes
SHARED = ("config.yaml", "figure/theme.yaml", "scale/*.yaml")  # files that every conf/ contains


def new_study(name: str, folder: Path, taken: Collection[str]) -> int:
    """Write the directory of a study and print how to run it; return 0. Raises UserError for an invalid name and for a
    directory that is not empty, and OSError.
    """
    _check_name(name, taken)
    if folder.exists() and not folder.is_dir():
        raise UserError("it is a file", where=str(folder), expected="an empty or new directory")
    if folder.is_dir() and any(folder.iterdir()):
        remedy = f"name another one: schedlab new study {name} DIR"
        raise UserError("the directory is not empty", where=str(folder), remedy=remedy)
    snakefile = SHIPPED.resolve() / "Snakefile"
    for file in sorted(path for path in TEMPLATE.rglob("*") if path.is_file() and "__pycache__" not in path.parts):
        text = file.read_text(encoding="utf-8").replace(NAME, name).replace("SHIPPED/Snakefile", str(snakefile))
        target = folder / str(file.relative_to(TEMPLATE)).replace(NAME, name)
        write_text(target, text)
    for file in sorted(file for pattern in SHARED for file in (SHIPPED / "conf").glob(pattern)):
        target = folder / file.relative_to(SHIPPED)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    print(f"written: {folder}/ (README.md says what is in it)\nrun it:")
    print(f"  cd {shlex.quote(str(folder))}\n  schedlab run --config scale=smoke")
    print(f"the same: snakemake -s {shlex.quote(str(snakefile))} -d . --cores all --config scale=smoke")
    return 0


def _check_name(name: str, taken: Collection[str]) -> None:
    """Raise UserError for an invalid name: it must suit a study, a Python package, and a target of the workflow."""
    where, remedy = "NAME", "choose another name"
    if not re.fullmatch("[a-z][a-z0-9_]*", name) or keyword.iskeyword(name):
        expected = "a name of a Python package: small letters, digits and _, no digit first, no keyword of Python"
        raise UserError(f"'{name}' cannot be the name of a study", where=where, expected=expected)
    if name in taken:
        raise UserError(f"there is a study or a command of schedlab called '{name}'", where=where, remedy=remedy)
    if name in _workflow_names():
        raise UserError(f"the workflow uses the name '{name}' for something else", where=where, remedy=remedy)
    if name in FOLDERS:
        what = f"the folder '{name}' of a study's directory holds something else than its Python package"
        raise UserError(what, where=where, remedy=remedy)
    if read_value(name, where) != name:
        raise UserError(f"YAML does not read '{name}' as text", where=where, remedy=remedy)
    if name in {*sys.stdlib_module_names, "test"} or name in packages_distributions():
        raise UserError(f"there is an installed Python package '{name}'", where=where, remedy=remedy)


def _workflow_names() -> set[str]:
    """Return the names of workflow rules, which are targets like a study, and of folders in results/ and plots/."""
    files = [SHIPPED / "Snakefile", *(SHIPPED / "workflow/rules").rglob("*.smk")]
    rules = {name for file in files for name in re.findall(r"^\s*rule (\w+):", file.read_text("utf-8"), re.MULTILINE)}
    return {*RESERVED_NAMES, *rules, "report", "measured"}
