"""The text of a user's mistake: one paragraph of whole sentences, of a length that a terminal shows."""

from __future__ import annotations

import pytest

from schedlab.config.errors import MOST_NAMES, WHOLE_LIST, UserError, did_you_mean


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UserError("no such file."), "no such file."),
        (
            UserError("a negative number", where="--job", expected="0, 1, 2, ..."),
            "--job: a negative number; expected 0, 1, 2, ...",
        ),
        (UserError("it stops ...", remedy="try again;"), "it stops ...; try again."),
        (
            UserError("unknown", expected="a key.", remedy="did you mean 'name'?"),
            "unknown; expected a key; did you mean 'name'?",
        ),
    ],
)
def test_sentences_are_joined_and_three_dots_stay(error, text):
    assert str(error) == text


def test_a_long_list_of_names_is_cut_and_says_how_many_are_left():
    told = did_you_mean("zzzz", [f"scenario-{number:03d}" for number in range(1000)])
    assert told.count("scenario-") == MOST_NAMES
    assert told.endswith(f"and {1000 - MOST_NAMES} more")
    assert len(told) < 300


def test_a_list_that_a_person_reads_is_told_whole():
    names = [f"rule-{number:02d}" for number in range(WHOLE_LIST)]
    assert did_you_mean("zzzz", names) == f"valid: {', '.join(names)}"
    assert did_you_mean("zzzz", [*names, "rule-zz"]).endswith(f"and {WHOLE_LIST + 1 - MOST_NAMES} more")


def test_what_would_steer_a_terminal_is_shown_as_a_question_mark():
    error = UserError(
        "the value is \x1b[31m\x00\u202e", where="a\tb.csv", remedy="Straße, 漢字, 10 %\nand a second line"
    )
    assert str(error) == "a?b.csv: the value is ?[31m??; Straße, 漢字, 10 %\nand a second line."
    assert error.what.endswith("\u202e"), "as it was given"
