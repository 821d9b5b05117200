"""The machinery of `make bench` on its smallest part. No time is compared with anything."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys

import pandas as pd
import pytest
import yaml

OWN = {"growth", "page_tables", "performance_page", "scale", "scale_tables", "slurm_simulation", "workflow_cost"}
ENTRY = {"study": "batch", "name": "rule[fcfs-none]", "what": "A rule", "unit": "jobs", "count": 1000, "rounds": 3}


@pytest.fixture
def bench(repository, monkeypatch):
    """The modules of benchmarks/ that need no installation."""
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    import growth
    import performance_page

    yield growth, performance_page
    for name in OWN & sys.modules.keys():
        del sys.modules[name]


@pytest.mark.slow
def test_the_suite_writes_a_record_of_one_benchmark(repository, tmp_path):
    out = tmp_path / "bench/quick.json"
    command = [
        sys.executable,
        "benchmarks/suite.py",
        "--quick",
        "--only",
        "bench_python",
        "--without-growth",
        "--out",
        str(out),
    ]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    record = json.loads(out.read_text())
    assert record["size"] == "quick" and record["machine"]["cores"] >= 1 and set(record["load"]) == {"before", "after"}
    assert record["machine"]["processor_name"]
    (one,) = record["rates"]
    assert (one["study"], one["name"], one["unit"], one["count"], one["rounds"]) == ("general", "python", "s", 1, 2)
    times = [one["seconds"][key] for key in ("min", "q1", "median", "q3", "max")]
    assert times == sorted(times) and times[0] > 0
    assert os.uname().nodename not in out.read_text()


def test_the_machine_is_told_from_the_record(bench):
    _, page = bench
    machine = {
        "system": "Linux",
        "processor": "arm",
        "cores": 8,
        "memory_gib": 31.0,
        "python": "3.12.1",
        "packages": {"numpy": "2.0"},
    }
    record = {"machine": machine, "load": {"before": 0.5, "after": 1.0}}
    rest = "Linux, arm, 31 GiB), Python 3.12.1, numpy 2.0; load average 0.5 before and 1 after."
    assert page.machine_line(record) == f"8 cores ({rest}"
    machine |= {"cores": 1, "processor_name": "Abacus 9"}
    assert page.machine_line(record) == f"1 core (Abacus 9, {rest}"


@pytest.mark.slow
def test_the_record_holds_every_benchmark_and_no_other(repository):
    command = [sys.executable, "-m", "pytest", "-q", "-c", "benchmarks/pytest.ini", "benchmarks", "--collect-only"]
    environment = {**os.environ, "PYTEST_ADDOPTS": ""}
    done = subprocess.run(command, cwd=repository, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    there = set(re.findall(r"^(?:\S*/)?bench_(\w+)\.py::bench_(\S+)$", done.stdout, flags=re.M))
    record = json.loads((repository / "docs/results/benchmarks.json").read_text())
    kept = {(one["study"], one["name"]) for one in record["rates"]}
    assert there == kept, (
        f"not measured: {sorted(there - kept)}; measured and gone: {sorted(kept - there)}; run benchmarks/suite.py"
    )


def test_a_point_of_growth_is_taken_in_a_process_of_its_own(repository):
    command = [sys.executable, "benchmarks/growth.py", "ramp_servers", "--here", "16"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    point = json.loads(done.stdout)
    assert point["size"] == 16 and point["seconds"] > 0 and point["memory_mb"] >= 0


def test_the_exponent_of_a_power_is_found_in_the_larger_half(bench):
    growth, _ = bench
    sizes = [10, 100, 1_000, 10_000]
    values = [7.0, *(3e-4 * size**1.5 for size in sizes[1:])]
    exponent, fitted_sizes, fitted = growth.fit(sizes, values)
    assert exponent == pytest.approx(1.5) and fitted_sizes == sizes[1:] and fitted == pytest.approx(values[1:])
    assert growth.fit(sizes[:2], values[:2]) is None


def test_pictures_show_the_exponent(bench, tmp_path):
    growth, _ = bench
    points = [{"size": size, "seconds": 1e-3 * size, "memory_mb": 0.1} for size in (10, 100, 1_000)]
    growth.draw({"jobs": {"label": "jobs", "what": "a simulator", "points": points}}, tmp_path)
    assert "over jobs" in (tmp_path / "jobs.txt").read_text() and (tmp_path / "jobs.png").read_bytes().startswith(
        b"\x89PNG"
    )


def test_rates_and_times_are_told_from_what_was_counted(bench):
    _, page = bench
    jobs = {**ENTRY, "seconds": {"min": 0.0005, "q1": 0.001, "median": 0.002, "q3": 0.004, "max": 0.01}}
    header, _, line = page.rate_table([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000}})
    assert header.count("|") == line.count("|")
    assert [cell.strip() for cell in line.split("|")[3:-2]] == [
        "500,000 jobs/s",
        "250,000 to 1,000,000 jobs/s",
        "2,000,000 jobs/s",
        "≥ 600,000 jobs/s",
    ]
    (told,) = page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 600_000}})
    assert "17% off" in told and "the best round reaches it" in told
    assert page.missed([jobs], {"batch/rule[fcfs-none]": {"goal": 500_000}}) == []
    seconds = {**jobs, "unit": "s", "count": 20}
    assert "100 us" in page.rate_table([seconds], {})[2]


def test_a_goal_of_what_grows_is_held_at_its_largest_size(bench):
    _, page = bench
    points = [{"size": size, "seconds": size / 40, "memory_mb": 0.1} for size in (10, 100, 1_000)]
    grown = {"scenarios": {"label": "scenarios", "what": "dry run", "points": points}}
    (told,) = page.missed_growth(grown, {"growth/scenarios": {"goal": 20}})
    assert all(part in told for part in ("dry run", "25 s", "20 s", "1,000 scenarios", "25%"))
    assert page.missed_growth(grown, {"growth/scenarios": {"goal": 25}}) == page.missed_growth(grown, {}) == []
    assert "| 25 s (≤ 20 s) |" in page.growth_table(grown, {"growth/scenarios": {"goal": 20}})[2]
    assert "| 25 s |" in page.growth_table(grown)[2]


@pytest.fixture
def slurm(bench):
    """The simulation of a Slurm partition."""
    assert bench
    import slurm_simulation

    return slurm_simulation


def test_a_slurm_partition_by_hand(slurm):
    """Two slots, submissions 1 s apart, looks every 10 s, 5 s of start: jobs of 7, 20, 3 and, behind the first, 4 s."""
    partition = slurm.Partition(slots=2, queued=3, gap=1.0, look=10.0, start=5.0)
    jobs = [slurm.Job("learn", work, after) for work, after in ((7.0, ()), (20.0, ()), (3.0, ()), (4.0, (0,)))]
    # 0: 0 to 12; 1: 1 to 26; 2: submitted at 2, waits for the slot, 12 to 20; the end of 0 is seen at 20, as is that of
    # 2; 3: 20 to 29
    found = slurm.run(jobs, partition)
    assert (found.slurm_jobs, found.makespan) == (4, 29.0)
    assert found.busy == pytest.approx(34 / (2 * 29))
    assert slurm.run(jobs, dataclasses.replace(partition, slots=3)).makespan == 29.0
    assert slurm.run(jobs, dataclasses.replace(partition, slots=3, look=0.0)).makespan == 26.0
    assert slurm.run(jobs, dataclasses.replace(partition, queued=1, look=0.0)).makespan == 12.0 + 25.0 + 8.0 + 9.0
    assert slurm.run(jobs[:1], dataclasses.replace(partition, start=0.0)).makespan == 7.0


def test_slurm_jobs_wait_for_all_that_they_need(slurm):
    jobs = slurm.jobs_of(
        slurm.Study(scenarios=3, seeds=4, learn=10.0, learn_together=5, evaluate=2.0, evaluate_together=2)
    )
    assert [(job.kind, job.work) for job in jobs] == [
        *[("learn", 50.0), ("learn", 50.0), ("learn", 20.0)],
        *[
            ("evaluate", 2.0),
            ("evaluate", 2.0),
            ("evaluate", 2.0),
            ("evaluate", 2.0),
            ("summarise", 60.0),
        ],  # two side by side
    ]
    assert [job.after for job in jobs[3:]] == [(0, 1), (1, 2), (), (), (3, 4, 5, 6)]  # seeds 0 to 7, 8 to 11 of twelve


def test_what_holds_a_partition_up_is_what_it_gains_most_without(slurm):
    cases = slurm.cases(start_a_scenario=0.0, sizes=(100,))
    told = {(one["scenarios"], one["learn_s"], one["learn_together"]): one for one in cases}
    assert told[100, 1200.0, 50]["held_up_by"] == "longest chain of Slurm jobs"  # 40 Slurm jobs for 100 slots
    for one in cases:
        assert 0 < one["busy"] <= 1 and one["hours_without"] <= one["hours"] and one["least_hours"] <= one["hours"]
    slow = {(one["learn_s"], one["learn_together"]): one for one in slurm.cases(start_a_scenario=1.0, sizes=(100,))}
    assert slow[60.0, 5]["held_up_by"] == "starts of Snakemake"
    assert slurm.profile() == slurm.Partition(slots=100, queued=100, gap=0.6, look=20.0)


def test_jobs_of_the_simulation_are_laid_out_as_the_profile_does(slurm):
    profile, study = yaml.safe_load(slurm.PROFILE.read_text()), slurm.Study(scenarios=1, seeds=1, learn=1.0)
    together = [f"learn={study.learn_together}", f"evaluate={study.evaluate_together}"]
    assert [one for one in together if one not in profile["group-components"]] == [] and study.side_by_side == profile[
        "cores"
    ]
    assert profile["resources"] == ["gpu=1"] and profile["set-resource-scopes"] == [
        "gpu=local"
    ]  # learning jobs one after another on it


def test_what_fills_a_cache_is_not_counted_with_what_is_measured(repository, tmp_path):
    heavy = "held = bytearray(300_000_000); held[:] = b'x' * len(held); print('made')"
    run = "dry_run.uncounted([sys.executable, '-c', heavy], '.')"
    for how, counted in ((run, False), ("subprocess.check_output([sys.executable, '-c', heavy], text=True)", True)):
        told = f"import resource, subprocess, sys, dry_run; heavy = {heavy!r}; print({how}, end='')"
        told += "; print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)"
        environment = {**os.environ, "PYTHONPATH": str(repository / "benchmarks")}
        done = subprocess.run(
            [sys.executable, "-c", told], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
        )
        said, megabytes = done.stdout.splitlines()
        assert said == "made"  # it ran, and to its end
        assert (float(megabytes) > 200) is counted, done.stdout + done.stderr


@pytest.mark.usefixtures("bench")
def test_what_is_worked_out_lies_on_the_line_through_the_two_largest():
    import scale_tables

    one = {"points": [{"size": 1, "seconds": 9.0}, {"size": 10, "seconds": 3.0}, {"size": 20, "seconds": 5.0}]}
    assert scale_tables.at(one, 20, "seconds") == 5.0
    assert scale_tables.at(one, 120, "seconds") == pytest.approx(25.0)
    assert scale_tables.reached(one, "seconds", 25.0) == pytest.approx(120)


@pytest.mark.usefixtures("bench")
def test_each_limit_stands_on_what_a_small_run_of_its_own_kind_takes(repository, tmp_path):
    import scale_tables

    for name in ("scale.json", "benchmarks.json", "core_starts.csv"):
        (tmp_path / name).write_text((repository / "docs/results" / name).read_text())
    rows = ["study,rule,max_rss_mib", "batch,make_trace,1000", "batch,evaluate,300", "all,,1000"]
    (tmp_path / "workflow_cost.csv").write_text("\n".join(rows))
    limits = [
        [cell.strip() for cell in line.split("|")[1:-1]]
        for line in scale_tables.scale_limits(tmp_path).splitlines()[2:]
    ]
    assert [(part, limit, small) for part, limit, _, small in limits] == [
        ("dry run of one job", "1.5 GB", "170 MB"),
        ("dry run of all with its cache", "4 GB", "170 MB"),
        ("read, cleaned, described, written", "1.5 GB", "1049 MB"),
        ("EASY", "1.5 GB", "315 MB"),
    ]
    made = json.loads((tmp_path / "scale.json").read_text())["growth"]["trace_made"]
    reached = float(limits[2][2].split()[0].replace(",", ""))
    assert scale_tables.at(made, reached, "memory_mb") == pytest.approx(
        1500 - 1000 * 2**20 / 1e6, rel=0.06
    )  # told with two digits


@pytest.mark.usefixtures("bench")
def test_files_of_a_run_are_counted_by_job(tmp_path):
    import scale

    for file in (
        *(
            f"toy/policies/hill/seed-{seed}/{name}"
            for seed in (0, 1)
            for name in ("policy.zip", "curve.parquet", "logs/learn.log")
        ),
        *(
            "toy/near/evaluation/rules.parquet",
            "toy/near/evaluation/rules.details/guesses.parquet",
            "toy/near/logs/evaluate-rules.log",
        ),
        *("toy/near/config/evaluate-rules.yaml", "toy/policies/hill/config/learn.yaml"),
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("12345")
    found = scale.files_of(tmp_path)
    assert found["learn"] == {"jobs": 2, "files": 3.0, "bytes": 15}
    assert found["evaluate"] == {"jobs": 1, "files": 3.0, "bytes": 15}
    assert found["frozen part"] == {"jobs": 2, "files": 1.0, "bytes": 5}


@pytest.mark.usefixtures("bench")
def test_the_cost_of_a_workflow_is_summed_by_rule(tmp_path, capsys, monkeypatch):
    import workflow_cost

    results = tmp_path / "results/toy-scale"
    text = "s\th:m:s\tmax_rss\tcpu_time\n{}\t0:00:01\t{}\t{}\n"
    jobs = {
        "toy/policies/hill/seed-0/benchmarks/learn.tsv": (10, 100, 8),
        "toy/policies/hill/seed-1/benchmarks/learn.tsv": (20, 300, 12),
    }
    jobs |= {"toy/inputs/make-0a/make.tsv": (5, 50, "NA")}
    for number, (file, values) in enumerate(jobs.items()):
        (results / file).parent.mkdir(parents=True)
        (results / file).write_text(text.format(*values))
        os.utime(results / file, (1000 + 10 * number, 1000 + 10 * number))
    assert workflow_cost.clock(workflow_cost.job_costs(results)) == 30.0  # from 990, where the first began, to 1020
    out = tmp_path / "cost.csv"

    def measured(*options: str) -> list[str]:
        monkeypatch.setattr(
            sys, "argv", ["workflow_cost.py", str(results), "--cores", "2", "--out", str(out), *options]
        )
        workflow_cost.main()
        return out.read_text().splitlines()

    assert measured() == [
        "study,rule,jobs,cpu_s,wall_s,longest_s,max_rss_mib,scale,cores,cpu_of_all_s,wall_of_all_s,busy,used",
        "toy,learn,2,20.0,30.0,20.0,300.0,,,,,,",
        "toy,make,1,0.0,5.0,5.0,50.0,,,,,,",
        "all,,3,20.0,35.0,20.0,300.0,toy-scale,2,,,0.583,0.333",
    ]
    assert "3 jobs, 20 CPU s in 30 s on 2 cores: busy 58%, used 33%" in capsys.readouterr().out
    assert (
        measured("--cpu", "40", "--wall", "50")[-1] == "all,,3,20.0,35.0,20.0,300.0,toy-scale,2,40.0,50.0,0.350,0.400"
    )


@pytest.mark.usefixtures("bench")
def test_how_busy_the_workflow_kept_its_cores_is_told_from_the_record(tmp_path):
    import page_tables

    def told(*of_all: str) -> str:
        rows = [
            "study,rule,jobs,scale,cores,cpu_of_all_s,wall_of_all_s,busy,used",
            "toy,learn,2,,,,,,",
            f"all,,2,small,2,{','.join(of_all)}",
        ]
        (tmp_path / "workflow_cost.csv").write_text("\n".join(rows))
        return page_tables.workflow_whole(tmp_path)

    own = "Scale `small` on 2 cores: jobs ran for 58 % of the cores' time, and their own CPU time was 33 % of it."
    assert told("", "", "0.583", "0.333") == own
    both = (
        "and CPU time, Snakemake's own included, was 40 % of it; the whole run took 1,040 CPU s and 1,300 s by the "
        "clock."
    )
    assert told("1040.0", "1300.4", "0.35", "0.4").endswith(both)


def test_a_profile_tells_parts_whose_shares_are_the_whole(repository, load_program):
    simulator = load_program("benchmarks/simulator")
    parts = {
        "/x/site-packages/batsim/batsim.py": "PyBatsim",
        "/x/src/schedlab/batsim/schedulers/easy.py": "scheduler",
        "/x/src/schedlab/batsim/resource_set.py": "decisions and hosts",
        "/x/src/schedlab/batsim/simulator/energy.py": "simulator",
        "/x/lib/python3.11/json/decoder.py": "Python and NumPy",
    }
    assert {file: simulator.part_of(file) for file in parts} == parts
    assert simulator.OURS.keys() <= {path.stem for path in repository.rglob("src/schedlab/batsim/**/*.py")}
    shares = pd.read_csv(repository / "docs/results/batsim_profile.csv")["share"]
    assert abs(shares.sum() - 1) < 0.01
