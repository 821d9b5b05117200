"""YAML and JSON that would end the process, fill the memory or the terminal: refused with a sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

from schedlab.config.errors import LONGEST_SENTENCE, UserError
from schedlab.config.readers import MOST_VALUES, MOST_YAML_LEVELS, parse_json, read_yaml

ALIASES = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 9))
CHAIN = "a0: &a0 [x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}]\n" for n in range(1, 2 * MOST_YAML_LEVELS))


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a: " + "[" * 100_000, rf"a\.yaml, line 1: .*\b{MOST_YAML_LEVELS}\b"),
        ("a:\n  " + "- " * 50_000 + "1", rf"a\.yaml, line 2: .*\b{MOST_YAML_LEVELS}\b"),
        ('{"a":' * 50_000 + "1" + "}" * 50_000, rf"a\.yaml, line 1: .*\b{MOST_YAML_LEVELS}\b"),
        (ALIASES, rf"a\.yaml, line \d: .*\b{MOST_VALUES}\b"),
        (CHAIN, rf"a\.yaml, line \d+: .*\b{MOST_YAML_LEVELS}\b"),
        ("a: " + "1" * 5000, r"a\.yaml: .*number"),
    ],
    ids=["open brackets", "lists", "mappings", "aliases to aliases", "a chain of aliases", "digits"],
)
def test_yaml_that_no_reader_survives_is_refused(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "a.yaml").write_text(text)
    with pytest.raises(UserError, match=told):
        read_yaml(tmp_path / "a.yaml")


def test_levels_and_aliases_of_a_real_file_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "a: &a {b: [1, 2]}\nc: [*a, *a]\nd: " + "[" * (MOST_YAML_LEVELS - 1) + "]" * (MOST_YAML_LEVELS - 1)
    )
    assert read_yaml(tmp_path / "a.yaml")["c"] == [{"b": [1, 2]}] * 2


def test_a_long_sentence_is_cut_in_its_middle() -> None:
    text = str(UserError("x" * 10_000 + "end", where="file.csv", expected="a number"))
    assert len(text) < LONGEST_SENTENCE + 50
    assert text.startswith("file.csv: xxx") and text.endswith("xend; expected a number.")


@pytest.mark.parametrize(
    "text", ["[" * 150 + "]" * 150, '{"a":' * 150 + "1" + "}" * 150, '[{"a": ' * 75 + "1" + "}]" * 75]
)
def test_json_in_more_levels_than_a_walk_through_it_survives_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="f: is nested too deeply, in more than 100 levels; expected a list"):
        parse_json(text, "f", "a list")
    parse_json("[" * 100 + "]" * 100, "f", "a list")


def test_a_key_that_stands_twice_is_found_among_very_many() -> None:
    keys = [*range(200_000), 199_999]  # so many that comparing each with each would take hours
    text = "{" + ", ".join(f'"{key}": 0' for key in keys) + "}"
    with pytest.raises(UserError, match="holds the key '199999' twice in one object"):
        parse_json(text, "f", "a list")
