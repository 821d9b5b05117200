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

OWN = {"growth", "scale", "slurm_simulation", "workflow_cost"}


@pytest.fixture
def bench(repository, monkeypatch):
    """The modules of benchmarks/ that need no installation."""
    monkeypatch.syspath_prepend(str(repository / "benchmarks"))
    import growth

    yield growth
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
