"""What an edit of one key of each configuration group reruns, three studies side by side: all that reads it, and
nothing else.

The groups that other studies alone read are edited in the tests of their runs.
"""

from __future__ import annotations

import pytest
import test_cloud_run
import test_ramp_run

pytestmark = pytest.mark.slow

SMOKE = ("--config", "scale=smoke")
FIGURES = {"draw_adaptation", "index_figures"}
END = {"summarise adaptation", *FIGURES}
RULES = {"evaluate early/rules", "evaluate late/rules"}
LEARNED = {"evaluate early/learned", "evaluate late/learned"}
EXACT = {"learn exact-all/0", *LEARNED, *END}
LATE = {"simulate_adaptation late", "tabulate late", "evaluate late/rules"}
EARLY = {"simulate_adaptation early", "tabulate early", "evaluate early/rules"}
FROM_THE_TRUNK = {"train_trunk", *EARLY, *LATE, "learn best-constant/0", *EXACT}
TOY_END = {"summarise toy", "draw_toy", "index_figures"}
TOY_LEARNED = {"learn hill/0", "evaluate near/hill", *TOY_END}
SCHEDULED = {"evaluate trio/rules", "summarise hetero", "draw_hetero", "index_figures"}
DECIDED = {"evaluate learning/rules", "evaluate learning/learned", "learn reinforce-learning/0"}

# the file below the checkout, old text, new text, the jobs that run again
EDITS = {
    "study": ("conf/study/adaptation.yaml", "confidence: 0.95", "confidence: 0.9", END),
    "scenario: when": ("conf/scenario/adaptation/late.yaml", "adapt_at: 190.0", "adapt_at: 180.0", {*LATE, *EXACT}),
    "scenario: a rule": ("conf/scenario/adaptation/_base.yaml", "  - never\n", "", {*RULES, *END}),
    "policy: a seed": (
        "conf/policy/adaptation/exact-all.yaml",
        "seeds: ${scale.studies.adaptation.seeds}",
        "seeds: [0, 1]",
        {"learn exact-all/1", *EXACT},
    ),
    "sizes": ("conf/study/adaptation.yaml", "exact_updates: 20", "exact_updates: 21", EXACT),
    "scale: resources": ("conf/scale/smoke.yaml", "mem_mb: 1500", "mem_mb: 1600", set()),
    "sizes: replicates": (
        "conf/study/adaptation.yaml",
        "    replicates: 2\n",
        "    replicates: 3\n",
        FROM_THE_TRUNK - {"train_trunk"},
    ),
    "sizes: replicates a job": ("conf/study/adaptation.yaml", "replicates_per_job: 3", "replicates_per_job: 1", set()),
    "model": (
        "conf/model/tiny8.yaml",
        "out: 8, kernel: 3}\n  - {kind: avg",
        "out: 7, kernel: 3}\n  - {kind: avg",
        FROM_THE_TRUNK,
    ),
    "model: of no scenario": ("conf/model/large_convnet.yaml", "out: 32", "out: 31", set()),
    "gpu": ("conf/gpu/priced.yaml", "base: 8.5", "base: 8.4", FROM_THE_TRUNK),
    "data": ("conf/data/digits.yaml", "split_seed: 1", "split_seed: 2", {"check_data", *FROM_THE_TRUNK}),
    "platform": ("conf/platform/trio.yaml", "seed: 36", "seed: 37", {"generate_platform", "trim_workload", *SCHEDULED}),
    "platform: of no scenario": ("conf/platform/hundred.yaml", "seed: 1", "seed: 2", set()),
    "workload": ("conf/workload/lublin.yaml", "load: 0.9", "load: 0.8", {"trim_workload", *SCHEDULED}),
    "scheduler": ("conf/scenario/hetero/_base.yaml", "priority: f1", "priority: wfp3", SCHEDULED),
    "learner": ("conf/learner/adaptation/exact.yaml", "time_code: sine_cosine", "time_code: sine", EXACT),
    "figure": ("conf/figure/adaptation/figures.yaml", "title: Best", "title: The best", FIGURES),
    "theme": ("conf/figure/theme.yaml", "dpi: 200", "dpi: 201", {*FIGURES, "draw_toy", "draw_hetero"}),
    "claims": ("conf/claims/adaptation.yaml", "published: 0.7391", "published: 0.7392", set()),
    "download": ("conf/download/hpc2n.yaml", "licence: free", "licence: is free", set()),
    "vocabulary": ("words.json", '"seed": 42', '"seed": 43', EXACT),
    "code: simulator of adaptation": (
        "src/schedlab/studies/adaptation/simulator/timing.py",
        "MICROSECONDS = 1_000_000",
        "MICROSECONDS = 1_000_001",
        FROM_THE_TRUNK,
    ),
    "code: simulator of hetero": (
        "src/schedlab/studies/hetero/simulator/resources.py",
        "GIGA = 1e9",
        "GIGA = 1.1e9",
        {"trim_workload", *SCHEDULED, *DECIDED},
    ),
    "own rule": ("own.py", "return 2.0", "return 2.5", {"evaluate near/rules", *TOY_END}),
    "own learner": ("climber.py", "    pass", "    patience = 1", TOY_LEARNED),
    "own study": (
        "tests/toy_study/study.py",
        "results_version=1",
        "results_version=2",
        {"draw_targets near", "evaluate near/rules", *TOY_LEARNED},
    ),
}


def test_every_group_is_edited_somewhere(repository):
    tables = (EDITS, test_cloud_run.EDITS, test_ramp_run.EDITS)
    edited = {name.split("/")[1] for table in tables for name, *_ in table.values() if name.startswith("conf/")}
    assert edited >= {folder.name for folder in (repository / "conf").iterdir() if folder.is_dir()}


@pytest.mark.parametrize("group", EDITS)
def test_an_edit_of_a_group_reruns_what_reads_it(smoke, group):
    name, old, new, expected = EDITS[group]
    smoke.edit(name, old, new)
    jobs = smoke.jobs("all", *SMOKE)
    assert jobs == expected


def test_the_root_seed_reruns_all_that_is_random(smoke):
    smoke.edit("conf/config.yaml", "seed: 42", "seed: 43")
    jobs = smoke.jobs("all", *SMOKE)
    assert jobs == {*FROM_THE_TRUNK, "evaluate near/rules", *TOY_LEARNED, "trim_workload", *SCHEDULED, *DECIDED}


def test_a_users_own_class_that_is_gone_is_told_with_the_file_that_names_it(smoke):
    (smoke.folder / "own.py").unlink()
    output = smoke.run("all", "--dry-run", *SMOKE, status=1)
    assert "conf/scenario/toy/near.yaml" in output and "own.py" in output and "no such file" in output
