"""The benchmark that tabulates blocking rates, by hand: what it plays, and its lines."""

import pandas as pd
import pytest

from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.studies.ramp.afterstate_policy import AfterstatePolicy, Kept, save
from schedlab.studies.ramp.fast import fixed_table
from schedlab.studies.ramp.graph_files import read_graphs
from schedlab.studies.ramp.learner_afterstate import Training
from schedlab.studies.ramp.learner_settings import AfterstateSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.published import published_scenario
from schedlab.studies.ramp.rule_policies import RULE_MAKERS


@pytest.fixture(scope="module")
def script(load_program):
    return load_program("benchmarks/ramp_learning")


def test_a_line_for_each_policy_with_its_seeds(script):
    rows = [("afterstate", "learned", seed, unit, 0.1 + 0.01 * seed + 0.02 * unit) for seed in range(5) for unit in range(3)]
    rows += [("para_max", "rule", 0, unit, 0.3) for unit in range(3)]
    table = pd.DataFrame(rows, columns=["policy", "kind", "policy_seed", "unit", "value"])
    table["unit"] = table["block"] = "test-" + table["unit"].astype(str)
    made = script.blocking(table.assign(scenario="published_a", weight=1.0))
    assert made["policy"].tolist() == ["afterstate", "para_max"]
    learned = made.iloc[0]
    assert (learned["seeds"], learned["episodes"], learned["blocking_rate"]) == (5, 3, pytest.approx(0.14))
    assert learned["by_seed"] == "0.1200 0.1300 0.1400 0.1500 0.1600"
    assert 0.11 < learned["low"] < 0.14 < learned["high"] < 0.17


@pytest.fixture(scope="module")
def problem(shared_data):
    """The published setting as the workflow has it, with two test episodes."""
    return RampProblem(published_scenario("C", compat=True, episodes={"test": 2}), read_graphs(shared_data / "graphs"))


def test_scores_are_those_of_the_exact_cluster(script, problem, tmp_path):
    (tables, outlook), unit = problem.fast, problem.units("test")[1]
    kept = Kept("table", fixed_table(tables, 6))
    path = tmp_path / "table-published-c/seed-3/policy.zip"
    path.parent.mkdir(parents=True)
    save(path, kept, tables.actions)
    wanted = problem.rollout(AfterstatePolicy(kept, tables, outlook, 3), unit).scores["blocking_rate"]
    tables_of_scores = [script.score("C", tmp_path, episodes=1, first=1, exact=exact).set_index("policy") for exact in (False, True)]
    compiled, exact = (found["value"].to_dict() for found in tables_of_scores)
    assert compiled == pytest.approx(exact)  # every fixed degree as well
    for found in tables_of_scores:
        assert set(found["unit"]) == {"test-001"}
        assert found.loc["table", ["scenario", "kind", "policy_seed"]].tolist() == ["published_c", "learned", 3]
        assert found.loc["table", "value"] == found.loc["fixed-6", "value"] == pytest.approx(wanted)
        assert found.loc["lp_bound", "value"] < found.drop("lp_bound")["value"].min()
        assert found["value"].nunique() == len(found) - 1


def test_baselines_are_those_of_the_exact_cluster(script, problem):
    found = script.score_rules("C", episodes=1, first=1).set_index("policy")["value"]
    wanted = {
        name: problem.rollout(RULE_MAKERS[name]({}, problem, 0), problem.units("test")[1]).scores["blocking_rate"] for name in found.index
    }
    assert list(wanted) == ["para_max", "para_min", "random"]
    assert found.to_dict() == wanted
    assert wanted["para_max"] < wanted["para_min"] < wanted["random"]


def test_a_folder_that_is_not_there_is_told(script, monkeypatch):
    monkeypatch.setattr("sys.argv", ["ramp_learning.py", "none/such"])
    with pytest.raises(SystemExit, match="none/such: no such folder"):
        script.main()


def test_candidates_of_a_recipe_are_compared_apart_from_validation(load_program, problem):
    tiny = {"degrees": [4], "tables": False, "validation_episodes": 1, "trial_samples": 1, "samples": 2, "horizon": 8}
    tiny |= {"generations": 1, "population": 4, "episodes": 1, "hidden": 4, "epochs": 1}
    settings = validate(AfterstateSettings, tiny)
    found = load_program("benchmarks/ramp_recipe").rates(problem, settings, seed=5, training=1, episodes=2)
    assert found[["form", "number"]].to_numpy().tolist() == [["network", 1], ["linear", 1]]
    learner = Training(problem, settings, 5, lambda *_, **__: None)
    apart = [learner._episode(derive_seed(problem.scenario.seed, "ramp", "apart", number)) for number in range(2)]
    wanted = [learner._blocking(learner._player(kept), apart) for kept in learner.candidates(1)]
    assert found["apart"].to_list() == pytest.approx(wanted)
    assert (found["apart"] != found["validation"]).all()
