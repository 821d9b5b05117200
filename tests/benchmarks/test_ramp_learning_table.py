"""The benchmark that tabulates blocking rates, by hand: what it plays, and its lines."""

import pandas as pd
import pytest

from schedlab.config import experiment
from schedlab.config.contract import Budget
from schedlab.config.runtime import freeze
from schedlab.config.schema import validate
from schedlab.config.seeds import derive_seed
from schedlab.stages.studies import find_study
from schedlab.studies.ramp.graphs.files import read_graphs
from schedlab.studies.ramp.learners.afterstate.learner import Training
from schedlab.studies.ramp.learners.afterstate.policy import AfterstatePolicy, Candidate, learned_for, save
from schedlab.studies.ramp.learners.settings import AfterstateSettings
from schedlab.studies.ramp.problem import RampProblem
from schedlab.studies.ramp.rules import RULE_MAKERS
from schedlab.studies.ramp.scenario import RampScenario, published_scenario
from schedlab.studies.ramp.simulator.compiled import fixed_table


@pytest.fixture(scope="module")
def script(load_program):
    return load_program("benchmarks/ramp_learning")


def test_a_line_for_each_policy_with_its_seeds(script):
    rows = [
        ("afterstate", "learned", seed, unit, 0.1 + 0.01 * seed + 0.02 * unit) for seed in range(5) for unit in range(3)
    ]
    rows += [("para_max", "rule", 0, unit, 0.3) for unit in range(3)]
    table = pd.DataFrame(rows, columns=["policy", "kind", "policy_seed", "unit", "value"])
    table["unit"] = table["block"] = "test-" + table["unit"].astype(str)
    made = script.blocking(table.assign(scenario="published_a", weight=1.0))
    assert made["policy"].tolist() == ["afterstate", "para_max"]
    learned = made.iloc[0]
    assert (learned["seeds"], learned["episodes"], learned["blocking_rate"]) == (5, 3, pytest.approx(0.14))
    assert learned["by_seed"] == "0.1200 0.1300 0.1400 0.1500 0.1600"
    assert learned["low"] < 0.14 < learned["high"]
    assert "speedup" not in made  # of the compiled cluster


def test_a_line_has_the_speedups_of_the_exact_cluster(script):
    rows = [("table", "learned", seed, f"test-{unit}", 2.0 + seed + 4 * unit) for seed in range(2) for unit in range(3)]
    rows += [("lp_bound", "oracle", 0, f"test-{unit}", float("nan")) for unit in range(3)]
    table = pd.DataFrame(rows, columns=["policy", "kind", "policy_seed", "unit", "speedup"])
    table["value"] = table["policy"].map({"table": 0.3, "lp_bound": 0.1})
    made = script.blocking(table.assign(block=table["unit"], scenario="published_a", weight=1.0)).set_index("policy")
    assert made.loc["table", "speedup"] == pytest.approx(6.5)
    assert made.loc["table", "speedup_by_seed"] == "6.000 7.000"
    assert made["speedup"].isna().to_dict() == {"lp_bound": True, "table": False}


@pytest.fixture(scope="module")
def problem(shared_data):
    """The published setting as the workflow has it, with two test episodes."""
    return RampProblem(published_scenario("C", compat=True, episodes={"test": 2}), read_graphs(shared_data / "graphs"))


def test_scores_are_those_of_the_exact_cluster(script, problem, tmp_path):
    (tables, outlook), unit = problem.compiled, problem.units("test")[1]
    kept = Candidate("table", fixed_table(tables, 6))
    path = tmp_path / "table-published-c/seed-3/policy.zip"
    path.parent.mkdir(parents=True)
    save(path, kept, tables.actions, learned_for(problem.simulation))
    scores = problem.rollout(AfterstatePolicy(kept, tables, outlook, 3), unit).scores
    tables_of_scores = [
        script.score("C", *script.setting("C", 1, first=1), tmp_path, exact).set_index("policy")
        for exact in (False, True)
    ]
    compiled, exact = (found["value"].to_dict() for found in tables_of_scores)
    assert compiled == pytest.approx(exact)  # every fixed degree as well
    for found in tables_of_scores:
        assert set(found["unit"]) == {"test-001"}
        assert found.loc["table", ["scenario", "kind", "policy_seed"]].tolist() == ["published_c", "learned", 3]
        assert found.loc["table", "value"] == found.loc["fixed-6", "value"] == pytest.approx(scores["blocking_rate"])
        assert found.loc["lp_bound", "value"] < found.drop("lp_bound")["value"].min()
        assert found["value"].nunique() == len(found) - 1
    assert tables_of_scores[1].loc["table", "speedup"] == pytest.approx(scores["speedup"])


@pytest.mark.slow
@pytest.mark.usefixtures("shared_data")
def test_a_root_seed_draws_the_episodes_of_the_workflow(script):
    """At scale full the scenario is there only with its graphs, which are other people's."""
    values = freeze.problem_part(experiment.load("conf", "full", find_study), "ramp", "published_c")
    scenario = validate(RampScenario, {key: value for key, value in values.items() if key in RampScenario.model_fields})
    problem, units = script.setting("C", 2, root=scenario.seed)
    assert units == RampProblem(scenario, problem.graphs).units("test")[:2]
    different = {"name", "mode", "episodes", "graphs"}  # mode: the label of the defects that `legacy` has
    assert problem.scenario.model_dump(exclude=different) == scenario.model_dump(exclude=different)
    assert [unit.seed for unit in script.setting("C", 2)[1]] != [unit.seed for unit in units]
    repaired = script.setting("C", 2, compat=False)[0].scenario.legacy.model_dump()
    assert set(repaired.values()) == {False} != set(scenario.legacy.model_dump().values())


def test_baselines_are_those_of_the_exact_cluster(script, problem):
    found = script.score_rules("C", *script.setting("C", 1, first=1)).set_index("policy")["value"]
    wanted = {
        name: problem.rollout(RULE_MAKERS[name]({}, problem, 0), problem.units("test")[1]).scores["blocking_rate"]
        for name in found.index
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
    learner = Training(problem, settings, 5, lambda *_, **__: None, Budget())
    apart = [learner._episode(derive_seed(problem.scenario.seed, "ramp", "apart", number)) for number in range(2)]
    wanted = [learner._blocking(learner._player(kept), apart) for kept in learner.candidates(1)]
    assert found["apart"].to_list() == pytest.approx(wanted)
    assert (found["apart"] != found["validation"]).all()
