"""Tables of many jobs: joined in pieces they have the bytes of the whole, and what is held at once does not grow with
their number.
"""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest
import yaml

from schedlab.config import files
from schedlab.config.files import common_schema, read_table, table_writer, write_table
from schedlab.evaluation import tables
from schedlab.stages import summarise as stage
from schedlab.stages.summarise import summarise
from schedlab.studies.cloud.study import STUDY

POLICIES = {"never": ("rule", 1), "ask": ("rule", 1), "learned": ("learned", 5)}


def scores(scenario: str, units: int = 12) -> pd.DataFrame:
    """Made-up scores of a scenario of the cloud study."""
    common = {
        "scenario": scenario,
        "trained_on": "",
        "mode": "default",
        "unit_kind": "run",
        "weight": 1.0,
        "config_hash": "0",
    }
    return tables.build(
        tables.SCORES,
        (
            {**common, "policy": policy, "kind": kind, "policy_seed": seed, "split": split, "metric": metric}
            | {"unit": f"{split}-{unit}", "block": f"{split}-{unit}", "unit_seed": unit}
            | {"value": ((hash_of(scenario) + 7 * seed + 3 * unit + len(policy)) % 11) / 8 + (metric == "cost")}
            for policy, (kind, seeds) in POLICIES.items()
            for seed in range(seeds)
            for split in ("validation", "test")
            for unit in range(units)
            for metric in ("regret", "cost")
        ),
    )


def hash_of(text: str) -> int:
    return sum(ord(sign) * place for place, sign in enumerate(text, 1))


def study(folder: Path, count: int) -> tuple[Path, list[Path], dict[str, list[Path]]]:
    """The part, the scores and the details of a study of some scenarios."""
    folder.mkdir()
    names = [f"s{number:03d}" for number in range(count)]
    for name in names:
        write_table(folder / f"{name}.parquet", scores(name))
        rows = {
            "scenario": name,
            "policy": "never",
            "policy_seed": 0,
            "split": "test",
            "unit": "test-0",
            "step": range(200),
        }
        write_table(folder / f"{name}-details.parquet", pd.DataFrame(rows | {"note": f"of {name}"}))
    values = {"study": "cloud", "results_version": 1, "seed": 3, "statistics": {"baseline": "never", "resamples": 100}}
    part = folder / "part.yaml"
    part.write_text(yaml.safe_dump(values | {"scenarios": {name: {"all": list(POLICIES)} for name in names}}))
    details = {"allocation_history": [folder / f"{name}-details.parquet" for name in reversed(names)]}
    return part, [folder / f"{name}.parquet" for name in reversed(names)], details


def test_a_table_written_in_pieces_has_the_bytes_of_the_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "GROUP_ROWS", 100)
    whole = scores("near", units=10)
    write_table(tmp_path / "whole.parquet", whole)
    for size in (1, 33, 100, 250):
        with table_writer(tmp_path / "pieces.parquet") as add:
            for start in range(0, len(whole), size):
                add(whole.iloc[start : start + size])
        assert (tmp_path / "pieces.parquet").read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    pd.testing.assert_frame_equal(read_table(tmp_path / "whole.parquet"), whole)
    write_table(tmp_path / "empty.parquet", whole.iloc[:0])
    assert list(read_table(tmp_path / "empty.parquet").columns) == list(whole.columns)


def test_what_fails_on_the_way_leaves_no_table(tmp_path):
    with pytest.raises(RuntimeError), table_writer(tmp_path / "a.parquet") as add:
        add(pd.DataFrame({"a": [1]}))
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []


def test_columns_that_some_tables_lack_are_joined_as_pandas_does(tmp_path):
    frames = [
        pd.DataFrame({"a": [1, 2], "text": ["x", "y"]}),
        pd.DataFrame({"a": [3], "b": [4], "c": [1]}),
        pd.DataFrame({"text": ["z"], "a": [5], "b": [6], "c": [0.5]}),
    ]
    for number, frame in enumerate(frames):
        write_table(tmp_path / f"{number}.parquet", frame)
    write_table(tmp_path / "joined.parquet", pd.concat(frames, ignore_index=True))
    with table_writer(
        tmp_path / "pieces.parquet", common_schema([tmp_path / f"{number}.parquet" for number in range(3)])
    ) as add:
        for frame in frames:
            add(frame)
    assert (tmp_path / "pieces.parquet").read_bytes() == (tmp_path / "joined.parquet").read_bytes()


def test_tables_are_grouped_by_a_column(tmp_path):
    for number, name in enumerate(("b", "a", "b")):
        write_table(tmp_path / f"{number}.parquet", pd.DataFrame({"name": [name]}))
    write_table(tmp_path / "3.parquet", pd.DataFrame({"name": pd.Series(dtype="str")}))
    paths = [tmp_path / f"{number}.parquet" for number in range(4)]
    assert tables.grouped(paths, "name") == {"a": [paths[1]], "b": [paths[0], paths[2]]}
    with pytest.raises(ValueError, match=r"0\.parquet: lacks the column 'place'"):
        tables.grouped(paths, "place")
    write_table(paths[3], pd.DataFrame({"name": ["a", "c"]}))
    with pytest.raises(ValueError, match=r"3\.parquet: several values of 'name': a, c"):
        tables.grouped(paths, "name")


def test_the_table_that_is_wrong_is_named(tmp_path):
    good, bad = tmp_path / "good.parquet", tmp_path / "bad.parquet"
    write_table(good, scores("near"))
    for wrong in (
        scores("far").assign(weight=0.0),
        scores("far").drop(columns="unit"),
        scores("far").assign(value=float("nan")),
    ):
        write_table(bad, wrong)
        with pytest.raises(ValueError, match=r"bad\.parquet: "):
            tables.read_joined(tables.SCORES, [good, bad])
    with pytest.raises(ValueError, match="more than one row"):
        tables.read_joined(tables.SCORES, [good, good])


@pytest.mark.slow
def test_a_study_summed_up_in_batches_has_the_bytes_of_the_whole_and_memory_does_not_grow_with_its_scenarios(
    tmp_path, monkeypatch
):
    few, many = study(tmp_path / "few", 4), study(tmp_path / "many", 24)

    def run(part, scores, details, out) -> Path:
        summarise(part, scores, [], details, tmp_path / out)
        return tmp_path / out

    run(*few, "first")  # imports
    whole = run(*many, "whole")
    monkeypatch.setattr(stage, "TABLES_AT_ONCE", 3)
    batches = run(*many, "batches")
    written = sorted(path.relative_to(whole) for path in whole.rglob("*.parquet"))
    assert {file.stem for file in written if file.parent.name == "details"} == set(STUDY.details)
    assert [file for file in written if (whole / file).read_bytes() != (batches / file).read_bytes()] == []
    found = read_table(whole / "details/allocation_history.parquet")
    assert len(found) == 24 * 200 and found["scenario"].is_monotonic_increasing
    monkeypatch.setattr(files, "GROUP_ROWS", 500)
    less, more = peak_of(lambda: run(*few, "less")), peak_of(lambda: run(*many, "more"))
    assert more < 2 * less
    for file in written:
        pd.testing.assert_frame_equal(read_table(tmp_path / "more" / file), read_table(whole / file))


def peak_of(work) -> int:
    """The most bytes that Python, numpy and Arrow held while some work was done."""
    before, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.default_memory_pool())
    tracemalloc.start()
    pa.set_memory_pool(pool)
    try:
        work()
        return tracemalloc.get_traced_memory()[1] + pool.max_memory()
    finally:
        pa.set_memory_pool(before)
        tracemalloc.stop()
