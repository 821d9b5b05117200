"""Tests of schedlab.evaluation.manifest_differences: each kind of difference is told in one sentence with its cause."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pandas as pd
import pytest

from schedlab.config.files import write_table
from schedlab.config.schema import validate
from schedlab.evaluation.manifest import Manifest
from schedlab.evaluation.manifest_differences import Side, differences, stale_steps

VALUES = {
    "form": 2,
    "scale": "small",
    "seeds": {"s": 42},
    "studies": {"s": 1},
    "environment": "e",
    "environments": {
        "e": {"code": "c0de", "commit": "a" * 40, "version": "0.1", "python": "3.11.7", "packages": {"numpy": "2.4"}}
    },
    "steps": {
        "in": {"configuration": {"in.yaml": "1"}, "files": {"log.csv": "f1"}, "outputs": {"in.json": "h1"}},
        "learn": {
            "promise": "learned",
            "configuration": {"learn.yaml": "2"},
            "inputs": {"in": "h1"},
            "seeds": [0],
            "environment": "e",
            "outputs": {"policy.parquet": "h2"},
            "rests_on": ["in"],
        },
    },
    "figures": {
        "s/figure": {
            "configuration": {"draw.yaml": "3"},
            "scenarios": ["a"],
            "policies": ["p"],
            "seeds": [0],
            "outputs": {"figure.svg": "h3"},
            "rests_on": ["in", "learn"],
        }
    },
}


def told(change, tolerant=False, roots=(None, Path("there"))):
    values = copy.deepcopy(VALUES)
    change(values)
    one, other = (validate(Manifest, entry) for entry in (VALUES, values))
    return differences(Side(one, "here", roots[0]), Side(other, "there", roots[1]), tolerant=tolerant)


def test_equal_manifests_do_not_differ():
    found = told(lambda values: None)
    assert (found.lines, found.files) == ([], 3)


def test_another_commit_of_the_same_code_is_no_difference():
    assert told(lambda values: values["environments"]["e"].update(commit="b" * 40)).lines == []


def test_code_that_results_were_accepted_for_is_no_difference_and_other_code_of_a_step_is_told():
    entry = {"by": "Ada", "when": "2026-01-01", "made_by": "a" * 40, "accepted_for": "d1ff", "steps": ["in"]}

    def accepted(values):
        values["environments"]["e"]["code"] = "d1ff"
        values["accepted"] = [entry]

    def for_others(values):
        accepted(values)
        values["environments"]["f"] = {**values["environments"]["e"]}
        values["steps"]["learn"]["environment"] = "f"

    assert told(accepted).lines == []
    assert_told(told(for_others).lines, ("other code of learn", "c0de", "d1ff"))


def assert_told(lines, *expected):
    """Each line in turn begins with a kind of difference and holds values: names, hashes, the word of its cause."""
    assert len(lines) == len(expected), lines
    for line, (kind, *values) in zip(lines, expected, strict=True):
        assert re.match(rf"{kind}\b", line) and all(value in line for value in values), (line, kind, values)


@pytest.mark.parametrize(
    ("place", "new", "expected"),
    [
        ("environments e", {"code": "d1ff"}, [("other code", "c0de", "a" * 12, "d1ff")]),
        ("environments e", {"code": "d1ff", "modified": True}, [("other code", "c0de", "d1ff", "changed since")]),
        ("environments e", {"python": "3.12.1"}, [("other Python", "3.11.7", "3.12.1")]),
        (
            "environments e",
            {"packages": {"numpy": "2.5", "torch": "1"}},
            [("other package: numpy", "2.4", "2.5"), ("other package: torch", "none", "1")],
        ),
        ("seeds", {"s": 43}, [("other seed", " s ", "42", "43")]),
        ("studies", {"s": 2}, [("other version", " s ", "1 here", "2 there")]),
        ("steps learn", {"seeds": [1]}, [("other seed: learn", "[0] here", "[1] there")]),
        ("steps in", {"files": {"log.csv": "f2"}}, [("other input: log.csv", " in")]),
        ("steps learn", {"configuration": {"learn.yaml": "9"}}, [("other configuration: learn.yaml",)]),
    ],
)
def test_each_cause_is_told_in_a_line(place, new, expected):
    def change(values):
        for key in place.split():
            values = values[key]
        values.update(new)

    assert_told(told(change).lines, *expected)


def test_steps_that_were_made_with_other_packages_are_named():
    def change(values):
        values["environments"]["f"] = {**values["environments"]["e"], "packages": {"numpy": "1.0"}}
        values["steps"]["learn"] |= {"environment": "f", "outputs": {"policy.parquet": "x"}}

    assert_told(
        told(change).lines,
        ("other package of learn", "numpy", "2.4", "1.0"),
        ("changed file: policy.parquet", "packages", "numpy"),
    )


def outputs(**new):
    def change(values):
        for name, digest in new.items():
            entry = values["figures"]["s/figure"] if name == "figure" else values["steps"][name]
            entry["outputs"] = dict.fromkeys(entry["outputs"], digest) if digest else {}

    return change


@pytest.mark.parametrize(
    ("changed", "place", "new", "cause"),
    [
        ("learn", "steps learn", {}, "policy.parquet: nothing"),
        ("learn", "steps learn", {"configuration": {"learn.yaml": "9"}}, "configuration, learn.yaml"),
        ("learn", "steps learn", {"seeds": [1]}, "seeds"),
        ("in", "environments e", {"code": "d1ff"}, "code"),
        ("in", "steps in", {"files": {"log.csv": "f2"}}, "inputs"),
    ],
)
def test_a_changed_file_is_told_with_its_likely_cause(changed, place, new, cause):
    def change(values):
        outputs(**{changed: "x"})(values)
        for key in place.split():
            values = values[key]
        values.update(new)

    lines = told(change).lines
    assert_told(lines[-1:], ("changed file", {"in": "in.json", "learn": "policy.parquet"}[changed], cause))
    assert len(lines) == 1 + bool(new)


def test_what_was_made_from_a_changed_file_names_the_first_that_changed():
    assert_told(
        told(outputs(learn="x", figure="x", **{"in": "x"})).lines,
        ("changed file: in.json: nothing",),
        ("changed file: policy.parquet", "in.json"),
        ("changed file: figure.svg", "in.json"),
    )


def test_the_files_of_one_manifest_that_lie_there_now():
    place = Path("here")
    assert_told(
        told(outputs(learn="x", figure=None), roots=(place, place)).lines,
        ("changed file: policy.parquet", "edited"),
        ("missing file: figure.svg", "only here", "`snakemake --cores all --config scale=small -- figure.svg`"),
    )


def gone(values):
    values["steps"]["learn"].update(outputs={}, seeds=[])


def test_a_missing_intermediate_file_is_told_alone_with_the_command_that_makes_it_again():
    lines = told(gone, roots=(Path("here"), Path("here"))).lines
    assert_told(lines, ("missing file: policy.parquet", "only here", "scale=small -- policy.parquet`"))
    now = copy.deepcopy(VALUES)
    now["figures"]["s/figure"]["inputs"] = {"p/seed-0": "h2"}
    gone(now)
    found, recorded = (validate(Manifest, values) for values in (now, VALUES))
    assert list(stale_steps(found, recorded)) == []
    assert len(list(stale_steps(found))) == 1, "without what was recorded nobody knows that the file is gone"


def test_a_missing_file_of_details_is_made_again_with_its_folder():
    def details(values):
        values["steps"]["in"]["outputs"] = {}

    both = copy.deepcopy(VALUES)
    both["steps"]["in"]["outputs"] = {"a/evaluation/rules.details/0/jobs.parquet": "h1"}
    sides = [
        Side(validate(Manifest, values), name, Path("here"))
        for values, name in ((both, "recorded"), (copy.deepcopy(both), "found"))
    ]
    assert differences(*sides, tolerant=False).lines == []
    details(both)
    lines = differences(sides[0], Side(validate(Manifest, both), "found", Path("here")), tolerant=False).lines
    assert_told(lines, ("missing file", "scale=small -- a/evaluation/rules.details`"))


def test_a_file_that_no_manifest_lists_yet_is_new_and_not_missing():
    def later(values):
        values["steps"]["in"]["outputs"]["second.json"] = "h9"
        values["steps"]["in"]["configuration"]["second.yaml"] = "9"

    assert_told(
        told(later, roots=(Path("here"), Path("here"))).lines,
        ("other configuration: second.yaml",),
        ("new file: second.json", "`snakemake --cores all --config scale=small`"),
    )
    assert_told(
        told(later).lines,
        ("other configuration: second.yaml", "only there"),
        ("missing file: second.json", "only there"),
    )


def test_what_is_in_one_manifest_alone_is_told():
    assert_told(
        told(lambda values: values["steps"].pop("learn")).lines,
        ("other configuration: learn.yaml", "only here"),
        ("missing file: policy.parquet", "only here", "learn"),
    )


def test_learned_values_may_differ_within_their_tolerance(tmp_path):
    roots = (tmp_path / "here", tmp_path / "there")

    def write(value: float):
        for root, number in zip(roots, (1.0, value), strict=True):
            write_table(root / "policy.parquet", pd.DataFrame({"x": [number]}))

    write(1.0 + 1e-6)
    found = told(outputs(learn="x", figure="x"), tolerant=True, roots=roots)
    assert (found.lines, found.tolerated) == ([], 2)  # and the picture that shows them
    assert len(told(outputs(learn="x", figure="x"), tolerant=False, roots=roots).lines) == 2
    write(1.5)
    assert_told(
        told(outputs(learn="x", figure="x"), tolerant=True, roots=roots).lines,
        ("changed file: policy.parquet", "'x'", "3.3e-01", "0.001", "nothing"),
        ("changed file: figure.svg", "policy.parquet"),
    )
    assert_told(told(outputs(**{"in": "x"}), tolerant=True, roots=roots).lines, ("changed file: in.json: nothing",))
    unread = told(outputs(learn="x"), tolerant=True).lines  # the files are not at hand
    assert_told(unread, ("changed file: policy.parquet", "learned"))


def test_parameters_and_curves_of_learned_policies_are_not_compared_between_machines():
    def change(values):
        values["steps"]["learn"]["outputs"] = {"policy.zip": "x"}

    both = copy.deepcopy(VALUES)
    both["steps"]["learn"]["outputs"] = {"policy.zip": "h2"}
    one, other = copy.deepcopy(both), copy.deepcopy(both)
    change(other)
    sides = [Side(validate(Manifest, values), name, None) for values, name in ((one, "here"), (other, "there"))]
    found = differences(*sides, tolerant=True)
    assert (found.lines, found.tolerated, found.not_compared) == ([], 0, 1)
    assert len(differences(*sides, tolerant=False).lines) == 1


@pytest.mark.parametrize(
    ("entry", "inputs", "stale"),
    [
        (("steps", "learn"), {"in": "h1"}, ()),
        (("steps", "learn"), {"in": "old"}, ("other input: learn", "'in'")),
        (("figures", "s/figure"), {"policy.parquet": "h2"}, ()),
        (("figures", "s/figure"), {"policy.parquet": "h1"}, ("other input: s/figure", "'policy.parquet'")),
    ],
    ids=["step", "step of another file", "figure", "figure of what lies in another place"],
)
def test_what_was_made_from_another_file_than_lies_there_now_is_told(entry, inputs, stale):
    values = copy.deepcopy(VALUES)
    values[entry[0]][entry[1]]["inputs"] = inputs
    assert_told(list(stale_steps(validate(Manifest, values))), *([stale] if stale else []))


def test_steps_that_were_held_to_the_same_instructions_have_the_same_bytes():
    one = copy.deepcopy(VALUES)
    one["environments"]["e"]["instructions"] = {"MKL_CBWR": "COMPATIBLE"}
    one["steps"]["learn"]["outputs"] = {"policy.zip": "1"}
    other = copy.deepcopy(one)
    other["steps"]["learn"]["outputs"] = {"policy.zip": "2"}
    sides = [Side(validate(Manifest, values), called, None) for values, called in ((one, "here"), (other, "there"))]
    assert_told(differences(*sides, tolerant=True).lines, ("changed file: policy.zip", "nothing that is recorded"))
    other["environments"]["e"]["instructions"] = {}
    sides[1] = Side(validate(Manifest, other), "there", None)
    found = differences(*sides, tolerant=True)
    assert found.not_compared == 1
    assert_told(found.lines, ("other instructions", "MKL_CBWR COMPATIBLE here, none there"))


def test_the_words_that_lines_begin_with_stand_in_the_documentation():
    repository = Path(__file__).parents[2]
    folder = repository / "src/schedlab/evaluation"
    sources = [(folder / name).read_text() for name in ("manifest_differences.py", "run_hashes.py")]
    words = {word for source in sources for word in re.findall(r'f"((?:other|changed|missing|new) \w+)', source)}
    assert {"other seed", "missing file", "new file", "other promise"} <= words
    assert not {word for word in words if f"`{word}`" not in (repository / "docs/notebook/reliability.md").read_text()}
