"""benchmarks/batch_ppo.py: the variants are those of the policies, and what is measured is written."""

from __future__ import annotations

import sys
from pathlib import Path

import pandas as pd
import pytest

import shipped_conf
from schedlab.studies.batch.problem import RulePolicy

REPOSITORY = Path(__file__).parents[2]
sys.path.append(str(REPOSITORY / "benchmarks"))

import batch_ppo  # noqa: E402

POLICIES = {
    "kernel, cloned from f1": "ppo-kernel-clone-lublin",
    "attention": "ppo-attention-lublin",
    "value network rows": "ppo-value-rows",
    "value network small": "ppo-value-small",
    "value network large": "ppo-value-large",
    "value network deep": "ppo-value-deep",
    "actor_kernel": "ppo-network-actor-kernel",
    "mlp_v1": "ppo-network-mlp-v1",
    "kernel, windows kept by range": "ppo-kept-range",
}


def test_variants_change_what_the_policies_change():
    apart = {
        "kernel",
        "kernel, adversary",
        "kernel, curriculum",
        "kernel, plans in the view",
    }  # told by words of their own
    assert POLICIES.keys() == batch_ppo.ALL_VARIANTS.keys() - apart
    for variant, policy in POLICIES.items():
        found, own = (shipped_conf.values("policy/batch", name)["learner"] for name in ("ppo-kernel-lublin", policy))
        changed = {key: value for key, value in own.items() if value != found.get(key)}
        assert changed == {key: own[key] for key in batch_ppo.ALL_VARIANTS[variant]}, policy


@pytest.mark.slow
def test_learn_writes_the_planner_and_a_row_a_seed(tmp_path, monkeypatch):
    monkeypatch.setattr(batch_ppo, "JOBS", 6000)
    monkeypatch.setattr(
        batch_ppo, "learned", lambda problem, params, steps, seed: (RulePolicy(["ljf", "sjf"][seed]), 1.4, [])
    )
    rows = {}
    for drawn_seed in (1, 2):
        batch_ppo.learn({"name": "maskable_ppo"}, 512, 2, drawn_seed, tmp_path / "runs.csv")
        rows[drawn_seed] = pd.read_csv(tmp_path / "runs.csv")
    found = rows[1]
    assert found["policy"].tolist() == ["planner", "maskable_ppo", "maskable_ppo"]
    assert found["seed"].tolist()[1:] == [0, 1] and found["decisions"].tolist() == [0, 512, 512]
    assert found["ratio"].tolist() == pytest.approx((found["mean"] / found["baseline_mean"]).tolist(), rel=1e-3)
    assert found["ratio"][1] > found["ratio"][2] >= found["hindsight_mean"][2] / found["baseline_mean"][2] * 0.9999
    assert (
        rows[2]["baseline_mean"][0] != found["baseline_mean"][0]
        and rows[2]["configuration"][0] != found["configuration"][0]
    )


@pytest.mark.slow
def test_recipes_are_compared_with_a_rule_and_with_the_first_of_them(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(batch_ppo, "FEWER_JOBS", 6000)
    learned = {"a": RulePolicy("ljf"), "b": RulePolicy("sjf")}
    monkeypatch.setattr(batch_ppo, "learned", lambda problem, params, steps, seed: (learned[params["name"]], 1.4, []))
    for name in learned:
        (tmp_path / f"recipe_{name}.yaml").write_text(f"name: {name}\n")
    arguments = [
        "learners",
        *(str(tmp_path / f"recipe_{name}.yaml") for name in learned),
        "--seeds",
        "2",
        "--steps",
        "512",
    ]
    monkeypatch.setattr(
        sys, "argv", ["batch_ppo.py", *arguments, "--drawn-seed", "3", "--out", str(tmp_path / "learners.csv")]
    )
    assert batch_ppo.main() == 0
    (told,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("test windows: fcfs ")]
    found = pd.read_csv(tmp_path / "learners.csv")
    assert f"ljf {found['mean'][0]:,.1f}, " in told and ", planner " in told  # recipe_a is that rule
    assert found["variant"].tolist() == ["recipe_a", "recipe_b", "recipe_b"]
    assert found["against"].tolist()[2] == "recipe_a" and set(found["against"][:2]) <= set(batch_ppo.CORRECT_RULES)
    assert (
        found["mean"][2] == found["mean"][1] and found["baseline_mean"][2] == found["mean"][0] and found["ratio"][2] < 1
    )
    assert set(found["seeds"]) == {2} and set(found["decisions"]) == {512} and set(found["drawn_seed"]) == {3}
    assert len(pd.read_csv(tmp_path / "learners-windows.csv")) == 4
    monkeypatch.setattr(batch_ppo, "learned", None)  # a measurement that is done learns nothing again
    assert batch_ppo.main() == 0


def test_one_recipe_is_all_that_the_other_measurements_take(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["batch_ppo.py", "networks", "a.yaml", "b.yaml"])
    with pytest.raises(SystemExit):
        batch_ppo.main()
    assert "networks takes one file" in capsys.readouterr().err
