"""Each defect that docs/errata.md names has a command that shows it, and what the command names is there; all studies
have a ledger.
"""

from __future__ import annotations

import argparse
import ast
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import shipped_conf
from schedlab.cli import main as cli
from schedlab.evaluation.claims import read_claims
from schedlab.studies.ramp.legacy import LegacySettings

REPOSITORY = Path(__file__).parents[2]
PAGE = (REPOSITORY / "docs/errata.md").read_text()
SECTIONS = dict(re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", PAGE, flags=re.S | re.M))
TESTS = {  # section -> folders that its words are looked for in
    "Adaptation": ["tests/studies/adaptation", "tests/conformance"],
    "Batch": ["tests/studies/batch", "tests/workloads", "tests/conformance"],
    "Hetero": ["tests/studies/hetero", "tests/platforms", "tests/workloads"],
    "Ramp": ["tests/studies/ramp", "tests/conformance"],
    "Cloud": ["tests/studies/cloud", "tests/conformance"],
}


@cache
def names_of_tests(*places: str) -> list[str]:
    """'file::function' of every test in some files or folders, as pytest -k sees them (without the values of
    parameters).
    """
    files = [
        file
        for place in places
        for path in [REPOSITORY / place]
        for file in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])
    ]
    assert files, places
    found = []
    for file in files:
        functions = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.FunctionDef))
        found += [f"{file.name}::{node.name}" for node in functions if node.name.startswith("test_")]
    return found


def missing_words(expression: str, *places: str) -> list[str]:
    """The words of an expression of pytest's -k ('a or b') that no test there has in its name."""
    names = names_of_tests(*places)
    return [word for word in expression.split(" or ") if not any(word in name for name in names)]


def rows(section: str) -> Iterator[list[str]]:
    """Cells of every row of every table of defects in a section: those with a number, and those of the last table of
    cloud.
    """
    for table in re.findall(r"^\|.*\n\|[-:|]+\|\n((?:\|.*\n)+)", SECTIONS[section], flags=re.M):
        for line in table.splitlines():
            yield [cell.strip() for cell in line.strip("|").split("|")]


def numbered(section: str) -> dict[int, list[str]]:
    return {int(cells[0]): cells for cells in rows(section) if cells[0].isdigit()}


def test_reference_mode_of_ramp_turns_on_what_its_rows_say():
    """Switches that stand alone are those under `legacy:`, all of them."""
    found = {row: cells[2].replace("`", "") for row, cells in numbered("Ramp").items() if row <= 18 or 35 <= row <= 38}
    assert sorted(switch for switch in found.values() if "." not in switch) == sorted(LegacySettings.model_fields)


def test_every_study_has_a_section_and_a_ledger_with_values():
    studies = sorted(path.stem for path in (REPOSITORY / "conf/study").glob("*.yaml"))
    assert sorted(name.lower() for name in SECTIONS) == studies
    ledgers = read_claims(REPOSITORY / "conf")
    assert sorted(ledgers) == studies
    for name, ledger in ledgers.items():
        assert any(claim.status in ("reproduced", "repaired") for claim in ledger.claims), name
        assert [claim.id for claim in ledger.claims if claim.status != "open" and not claim.command] == [], name


@pytest.mark.parametrize("section", TESTS)
def test_defects_are_numbered_without_a_gap(section):
    numbers = sorted(numbered(section))
    assert numbers == list(range(1, len(numbers) + 1))


def test_words_of_the_tables_are_those_of_tests():
    """`words`, or a letter of a command, in the last column; hetero: behind the semicolon."""
    letters = set(re.findall(r"# ([a-z])$", SECTIONS["Batch"], flags=re.M))
    for section in ("Adaptation", "Batch", "Hetero", "Cloud"):
        for number, cells in numbered(section).items():
            shown = cells[-1].rpartition("; ")[2]
            if section == "Batch" and shown in letters:
                continue
            words = [word for word in re.findall(r"`([\w ]+)`", shown) if not word.endswith(".py")]
            assert words, (section, number, shown)
            for expression in words:
                assert missing_words(expression, *TESTS[section]) == [], (section, number)


def test_files_and_words_of_ramp_are_those_of_tests():
    for number, cells in numbered("Ramp").items():
        shown = re.fullmatch(r"`(\w+)` (\w+)", cells[-1])
        assert shown, (number, cells[-1])
        (file,) = (REPOSITORY / "tests").rglob(f"test_{shown[1]}.py")
        assert missing_words(shown[2], str(file.relative_to(REPOSITORY))) == [], number


def test_words_of_the_flow_around_the_published_cloud_program_are_those_of_tests():
    flow = [cells for cells in rows("Cloud") if not cells[0].isdigit()]
    assert flow
    for cells in flow:
        for word in re.findall(r"`(\w+)`", cells[-1]):
            assert missing_words(word, *TESTS["Cloud"]) == [], cells[0]


def commands(text: str) -> list[str]:
    """Lines of the code blocks of a text, without comments behind them, and commands within sentences."""
    lines = [
        line for block in re.findall(r"^```\w*\n(.*?)^```", text, flags=re.S | re.M) for line in block.splitlines()
    ]
    inline = re.findall(
        r"`((?:python|schedlab|snakemake) [^`]+)`",
        re.sub(r"\s*\n", " ", re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)),
    )
    return [re.sub(r" +# .*$", "", line) for line in lines] + inline


def test_every_test_that_a_command_names_is_there():
    found = [command for command in commands(PAGE) if "pytest" in command]
    assert found
    for command in found:
        places = [word for word in command.split() if word.startswith("tests/")]
        words = re.search(r'-k "?([a-z0-9_ ]+)"?', command)
        if places:
            assert missing_words(words[1] if words else "test_", *places) == [], command


def test_every_scenario_and_script_that_a_command_names_is_there():
    seen = 0
    for command in commands(PAGE):
        for study, names in re.findall(r"results/\w+/(\w+)/(?!policies)([\w,{}]+)/", command):
            for name in names.strip("{}").split(","):
                assert name in shipped_conf.names(f"scenario/{study}"), command
                seen += 1
        for script in re.findall(r"python (benchmarks/\S+)", command):
            assert (REPOSITORY / script).is_file(), command
    assert seen


def subcommands(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    return next((action.choices for action in parser._actions if isinstance(action, argparse._SubParsersAction)), {})


def test_every_command_of_schedlab_that_it_names_is_there():
    named = {match for command in commands(PAGE) for match in re.findall(r"schedlab ([a-z]+) ?([a-z]*)", command)}
    assert named
    for first, second in named:
        known = subcommands(cli._parser(first))
        assert first in known, first
        if second and (inner := subcommands(known[first])):
            assert second in inner, (first, second)


def test_every_command_in_a_block_can_be_given():
    """schedlab's are parsed with their options, tests and scripts are there with every option that is named, targets
    are a scenario's.
    """
    kinds = {"schedlab": 0, "pytest": 0, "snakemake": 0, "script": 0}
    for line in [line for section in SECTIONS.values() for line in commands(section) if re.search(r" [-\w./{]", line)]:
        for command in re.split(r"; (?:do )?", re.sub(r"; done\b", "", line)):
            words = shlex.split(
                re.sub(r"\$LUBLIN", "--trace no.swf", re.sub(r"\$backfill", "easy", re.sub(r"\$warm", "", command)))
            )
            if words[:1] == ["schedlab"] and not {"WORDS", "NAME"} & set(words):
                kinds["schedlab"] += 1
                parse(words[1:], command)
            elif words[:3] == ["python", "-m", "pytest"]:
                kinds["pytest"] += 1
                places = [word for word in words if word.startswith("tests/")]
                assert all((REPOSITORY / place).exists() for place in places), command
            elif words[:1] == ["snakemake"]:
                kinds["snakemake"] += 1
                targets = [word for word in words if word.startswith("results/")]
                assert targets and re.fullmatch(r"results/(smoke|small|full|paper)/\S+\.parquet", targets[0]), command
                assert f"scale={targets[0].split('/')[1]}" in words, command
            elif words[:1] == ["python"]:
                kinds["script"] += 1
                script = (REPOSITORY / words[1]).read_text()
                assert [word for word in words if word.startswith("--") and f'"{word}"' not in script] == [], command
    assert min(kinds.values()) >= 1, kinds


def parse(arguments: list[str], command: str) -> None:
    """Parse what follows `schedlab`; a command in a sentence may leave out what the parser wants, but names no option
    that is not there.
    """
    try:
        cli._parser(arguments[0]).parse_args(arguments)
    except SystemExit:
        known = cli._parser(arguments[0])
        for word in arguments:
            known = subcommands(known).get(word, known)
        options = {option for action in known._actions for option in action.option_strings}
        assert {word for word in arguments if word.startswith("--")} <= options, command
        assert f"`{command}" in re.sub(r"\s*\n", " ", PAGE), f"{command}: the parser refuses it"


def test_the_options_of_the_batch_commands_are_read(capsys):
    """A trace that is not there is told with its name, which only happens behind the options."""
    lines = [
        line for line in commands(SECTIONS["Batch"]) if "schedlab batch" in line and "--" in line and "|" not in line
    ]
    found = [
        match
        for line in lines
        for match in re.findall(r"schedlab batch (?:evaluate|latency) (?:\$LUBLIN|--trace)[^;]*", line)
    ]
    assert found
    for line in found:
        text = line.replace("$LUBLIN", "--trace no.swf --cleaning rlscheduler").replace("$HPC2N", "no.swf")
        arguments = text.replace("$backfill", "easy").replace("$warm", "--warm-start").split()[1:]
        assert cli.main(arguments) == 2
        assert "no.swf" in capsys.readouterr().err, line
