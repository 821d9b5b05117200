"""Tests of schedlab.evaluation.manifest_differences: each kind of difference is told in one sentence with its cause."""

from __future__ import annotations

import copy
import re
from pathlib import Path

import pandas as pd

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


def test_causes_are_told_each_in_a_line():
    def environment(**new):
        return told(lambda values: values["environments"]["e"].update(new)).lines

    assert environment(code="d1ff") == [
        f"other code: 0.1 c0de (commit {'a' * 12}) here, 0.1 d1ff (commit {'a' * 12}) there"
    ]
    changed = environment(code="d1ff", modified=True)
    assert changed[0].endswith(f"0.1 d1ff (commit {'a' * 12}, changed since) there")
    assert environment(python="3.12.1") == ["other Python: 3.11.7 here, 3.12.1 there"]
    assert environment(packages={"numpy": "2.5", "torch": "1"}) == [
        "other package: numpy 2.4 here, 2.5 there",
        "other package: torch none here, 1 there",
    ]
    assert told(lambda values: values["seeds"].update(s=43)).lines == ["other seed: root seed of s 42 here, 43 there"]
    assert told(lambda values: values["studies"].update(s=2)).lines == [
        "other version of the study's results: s 1 here, 2 there"
    ]
    assert told(lambda values: values["steps"]["learn"].update(seeds=[1])).lines == [
        "other seed: learn has [0] here, [1] there"
    ]
    assert told(lambda values: values["steps"]["in"].update(files={"log.csv": "f2"})).lines == [
        "other input: log.csv, read by in"
    ]
    changed = told(lambda values: values["steps"]["learn"].update(configuration={"learn.yaml": "9"})).lines
    assert changed == ["other configuration: learn.yaml"]


def test_steps_that_were_made_with_other_packages_are_named():
    def change(values):
        values["environments"]["f"] = {**values["environments"]["e"], "packages": {"numpy": "1.0"}}
        values["steps"]["learn"] |= {"environment": "f", "outputs": {"policy.parquet": "x"}}

    assert told(change).lines == [
        "other package of learn: numpy 2.4 here, 1.0 there",
        "changed file: policy.parquet: made with other packages, numpy",
    ]


def outputs(**new):
    def change(values):
        for name, digest in new.items():
            entry = values["figures"]["s/figure"] if name == "figure" else values["steps"][name]
            entry["outputs"] = dict.fromkeys(entry["outputs"], digest) if digest else {}

    return change


def test_a_changed_file_is_told_with_its_likely_cause():
    unknown = "nothing that is recorded differs: edited, damaged, or another processor or BLAS"
    assert told(outputs(learn="x")).lines == [f"changed file: policy.parquet: {unknown}"]
    lines = told(outputs(learn="x", figure="x", **{"in": "x"})).lines
    assert lines == [
        f"changed file: in.json: {unknown}",
        "changed file: policy.parquet: made from files that differ, first of all in.json",
        "changed file: figure.svg: made from files that differ, first of all in.json",
    ]

    def configured(values):
        outputs(learn="x")(values)
        values["steps"]["learn"]["configuration"] = {"learn.yaml": "9"}

    assert told(configured).lines[-1] == "changed file: policy.parquet: made from another configuration, learn.yaml"

    def seeded(values):
        outputs(learn="x")(values)
        values["steps"]["learn"]["seeds"] = [1]

    assert told(seeded).lines[-1] == "changed file: policy.parquet: made with other seeds"

    def coded(values):
        outputs(**{"in": "x"})(values)
        values["environments"]["e"]["code"] = "d1ff"

    assert told(coded).lines[-1] == "changed file: in.json: made by other code"

    def fed(values):
        outputs(**{"in": "x"})(values)
        values["steps"]["in"]["files"] = {"log.csv": "f2"}

    assert told(fed).lines == ["other input: log.csv, read by in", "changed file: in.json: made from other inputs"]


def test_the_files_of_one_manifest_that_lie_there_now():
    place = Path("here")
    lines = told(outputs(learn="x", figure=None), roots=(place, place)).lines
    assert lines == [
        "changed file: policy.parquet: edited or damaged after it was made; delete it and run again",
        "missing file: figure.svg is only here; it was deleted, or its job has not ended; "
        "`snakemake --cores all --config scale=small -- figure.svg` makes it again",
    ]


def gone(values):
    values["steps"]["learn"].update(outputs={}, seeds=[])


def test_a_missing_intermediate_file_is_told_alone_with_the_command_that_makes_it_again():
    (line,) = told(gone, roots=(Path("here"), Path("here"))).lines
    assert (
        line.startswith("missing file: policy.parquet is only here")
        and "scale=small -- policy.parquet` makes it again" in line
    )
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
    (line,) = differences(sides[0], Side(validate(Manifest, both), "found", Path("here")), tolerant=False).lines
    assert "scale=small -- a/evaluation/rules.details` makes it again" in line


def test_a_file_that_no_manifest_lists_yet_is_new_and_not_missing():
    def later(values):
        values["steps"]["in"]["outputs"]["second.json"] = "h9"
        values["steps"]["in"]["configuration"]["second.yaml"] = "9"

    assert told(later, roots=(Path("here"), Path("here"))).lines == [
        "other configuration: second.yaml was written after the figures",
        "new file: second.json was made after the figures; `snakemake --cores all --config scale=small` brings it in",
    ]
    assert "missing file: second.json is only there" in told(later).lines


def test_what_is_in_one_manifest_alone_is_told():
    lines = told(lambda values: values["steps"].pop("learn")).lines
    assert lines == [
        "other configuration: learn.yaml is only here",
        "missing file: policy.parquet is only here; learn is only here",
    ]


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
    (changed, drawn) = told(outputs(learn="x", figure="x"), tolerant=True, roots=roots).lines
    assert changed.startswith(
        "changed file: policy.parquet ('x' differs by 3.3e-01 of its value, 0.001 is allowed): nothing that"
    )
    assert drawn.endswith("made from files that differ, first of all policy.parquet")
    (exact,) = told(outputs(**{"in": "x"}), tolerant=True, roots=roots).lines
    assert exact.startswith("changed file: in.json: nothing")
    (unread,) = told(outputs(learn="x"), tolerant=True).lines
    assert "bring the files of both manifests" in unread


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


def test_a_step_made_from_other_files_than_lie_there_is_told():
    assert list(stale_steps(validate(Manifest, VALUES))) == []
    values = copy.deepcopy(VALUES)
    values["steps"]["learn"]["inputs"] = {"in": "old"}
    (line,) = stale_steps(validate(Manifest, values))
    assert line == "other input: learn was made from another 'in' than lies there now; delete its outputs and run again"


def test_a_figure_drawn_from_another_file_than_lies_at_its_path_is_told():
    values = copy.deepcopy(VALUES)
    values["figures"]["s/figure"]["inputs"] = {"policy.parquet": "h2"}
    assert list(stale_steps(validate(Manifest, values))) == []
    values["figures"]["s/figure"]["inputs"] = {"policy.parquet": "h1"}  # what lies in another place
    (line,) = stale_steps(validate(Manifest, values))
    assert line.startswith("other input: s/figure was made from another 'policy.parquet' than lies there now")


def test_the_words_that_lines_begin_with_stand_in_the_documentation():
    repository = Path(__file__).parents[2]
    sources = [
        (repository / "src/schedlab/evaluation" / name).read_text() for name in ("manifest_differences.py", "record.py")
    ]
    words = {word for source in sources for word in re.findall(r'f"((?:other|changed|missing|new) \w+)', source)}
    assert {"other seed", "missing file", "new file", "other promise"} <= words
    assert not {word for word in words if f"`{word}`" not in (repository / "docs/reliability.md").read_text()}
