"""docs/notebook/scale.md and the cost of the workflow: what is worked out from measured points."""

from __future__ import annotations

import json

import pytest
from page_parts import REPOSITORY

import page_tables  # isort: skip
import scale_tables  # isort: skip


def test_what_is_worked_out_lies_on_the_line_through_the_two_largest():
    one = {"points": [{"size": 1, "seconds": 9.0}, {"size": 10, "seconds": 3.0}, {"size": 20, "seconds": 5.0}]}
    assert scale_tables.at(one, 20, "seconds") == 5.0
    assert scale_tables.at(one, 120, "seconds") == pytest.approx(25.0)
    assert scale_tables.reached(one, "seconds", 25.0) == pytest.approx(120)


def test_each_limit_stands_on_what_a_small_run_of_its_own_kind_takes(tmp_path):
    for name in ("scale.json", "benchmarks.json", "core_starts.csv"):
        (tmp_path / name).write_text((REPOSITORY / "docs/results" / name).read_text())
    rows = ["study,rule,max_rss_mib", "batch,make_trace,1000", "batch,evaluate,300", "all,,1000"]
    (tmp_path / "workflow_cost.csv").write_text("\n".join(rows))
    limits = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in scale_tables.scale_limits(tmp_path).splitlines()[2:]
    ]
    assert [(part, limit, small) for part, limit, _, small in limits] == [
        ("dry run of one job", "1.5 GB", "170 MB"),
        ("dry run of the whole workflow, warm cache", "4 GB", "170 MB"),
        ("read, cleaned, described, written", "1.5 GB", "1049 MB"),
        ("EASY", "1.5 GB", "315 MB"),
    ]
    made = json.loads((tmp_path / "scale.json").read_text())["growth"]["trace_made"]
    reached = float(limits[2][2].split()[0].replace(",", ""))
    assert scale_tables.at(made, reached, "memory_mb") == pytest.approx(
        1500 - 1000 * 2**20 / 1e6, rel=0.06
    )  # told with two digits


def test_how_busy_the_workflow_kept_its_cores_is_told_from_the_record(tmp_path):
    def sentence(*of_all: str) -> str:
        rows = [
            "study,rule,jobs,scale,cores,cpu_of_all_s,wall_of_all_s,busy,used",
            "toy,learn,2,,,,,,",
            f"all,,2,small,2,{','.join(of_all)}",
        ]
        (tmp_path / "workflow_cost.csv").write_text("\n".join(rows))
        return page_tables.workflow_whole(tmp_path)

    own = "Scale `small` ran on 2 cores. Jobs ran for 58 % of the cores' time, and their own CPU time was 33 % of it."
    assert sentence("", "", "0.583", "0.333") == own
    both = (
        "Scale `small` ran on 2 cores and took 1,040 CPU s and 1,300 s by the clock. Jobs ran for 35 % of the cores' "
        "time, and CPU time, Snakemake's own included, was 40 % of it."
    )
    assert sentence("1040.0", "1300.4", "0.35", "0.4") == both
