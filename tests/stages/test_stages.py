"""The toy study passes every stage with no edit elsewhere."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
import yaml

from schedlab.config.errors import UserError
from schedlab.config.files import content_hash, read_table
from schedlab.config.runtime.provenance import made_mark, output_hashes
from schedlab.evaluation import tables
from schedlab.figures.index import failures, write_index
from schedlab.stages.draw import draw
from schedlab.stages.evaluate import evaluate
from schedlab.stages.learn import learn
from schedlab.stages.policies import make_rule, policy_spec
from schedlab.stages.summarise import mean_budgets, summarise

if TYPE_CHECKING:
    from conftest import Toy


def learn_toy(toy: Toy, folder: Path, seed: int, part: Path | None = None, parent: Path | None = None) -> Path:
    learn(
        part or toy.learn_part(),
        toy.inputs,
        parent,
        folder / "policy.json",
        folder / "curve.parquet",
        folder / "config.yaml",
        folder / "provenance.json",
        seed,
    )
    return folder / "policy.json"


def evaluate_toy(toy: Toy, part: Path, policies: dict, folder: Path, scenario: str = "far") -> Path:
    evaluate(part, toy.inputs[scenario], policies, folder / "scores.parquet", folder, folder / "scores.provenance.json")
    return folder / "scores.parquet"


def run_all(toy: Toy, out: Path) -> None:
    """Everything from learning to the index, into `out`."""
    seeds = toy.hill["seeds"]
    checkpoints = {("hill", seed): learn_toy(toy, out / "policies" / f"seed-{seed}", seed) for seed in seeds}
    folders = []
    for scenario in ("near", "far"):
        for bundle, policies, given in (
            ("rules", toy.rules, {}),
            ("hill", [{**toy.hill, "trained_on": "near > near+far"}], checkpoints),
        ):
            part = toy.evaluate_part(scenario, policies, f"{scenario}-{bundle}")
            folders.append(out / scenario / bundle)
            evaluate_toy(toy, part, given, folders[-1], scenario)
    jobs = {"rules": [rule["name"] for rule in toy.rules], "hill": ["hill"]}
    question = {"question": "does it climb?", "metric": "cost", "scenarios": ["near", "far"], "recipe": "hill"}
    part = toy.part(
        "summarise",
        statistics={"baseline": "zero", "resamples": 200},
        scenarios={"near": jobs, "far": jobs},
        headline=[question],
    )
    summarise(
        part,
        [folder / "scores.parquet" for folder in folders],
        [out / "policies" / f"seed-{seed}" / "curve.parquet" for seed in seeds],
        {"guesses": [folder / "guesses.parquet" for folder in folders]},
        out / "summary",
        [out / "policies" / f"seed-{seed}" / "provenance.json" for seed in seeds],
    )
    figure = yaml.safe_load(Path("conf/figure/toy/costs.yaml").read_text())
    scenarios = {name: toy.problem(name) for name in ("near", "far")}
    learned = {"hill": {"policy": {**toy.hill, "parent": None}}}
    part = toy.part("draw", scale="smoke", theme={"dpi": 60}, figures=[figure], scenarios=scenarios, policies=learned)
    draw(part, out / "summary", toy.inputs, out / "plots" / "toy")
    write_index(out / "plots", [out / "summary/headline.parquet"])


@pytest.fixture(scope="module")
def finished(shared_toy: Toy) -> Path:
    run_all(shared_toy, shared_toy.folder / "out")
    return shared_toy.folder / "out"


def test_all_stages_pass(shared_toy: Toy, finished: Path) -> None:
    scores = tables.read(tables.SCORES, finished / "summary" / "scores.parquet")
    assert set(scores["policy"]) == {"zero", "three", "dice", "hill"}
    assert len(scores) == 2 * 2 * 2 * 6 * (1 + 1 + 3 + 5)  # scenarios, splits, metrics, units, seeds
    summary = tables.read(tables.SUMMARY, finished / "summary" / "summary.parquet")
    costs = summary[(summary.scenario == "far") & (summary.split == "test") & (summary.metric == "cost")].set_index(
        "policy"
    )
    targets = json.loads(shared_toy.inputs["far"]["targets"].read_text())["test"]
    assert costs.loc["three", "value"] == pytest.approx(np.mean((np.array(targets) - 3.0) ** 2), rel=1e-12)
    assert costs.loc["hill", "seeds"] == 5
    assert np.isfinite(costs.loc["hill", "ci_low"])
    assert np.isnan(costs.loc["dice", "ci_low"])  # of three seeds
    assert costs.loc["dice", "range_low"] < costs.loc["dice", "value"] < costs.loc["dice", "range_high"]
    assert (costs["trained_on"] == ["", "near > near+far", "", ""]).all()
    curves = read_table(finished / "summary" / "curves.parquet")
    assert len(curves) == 5 * 10
    guesses = read_table(finished / "summary" / "details" / "guesses.parquet")
    assert list(guesses.columns) == [*tables.DETAIL_KEY, "guess"]


def test_comparisons_with_baseline_and_best_rule(finished: Path) -> None:
    found = tables.read(tables.COMPARISONS, finished / "summary" / "comparisons.parquet")
    far = found[(found.scenario == "far") & (found.metric == "cost") & (found.split == "test")].set_index(
        ["policy", "role"]
    )
    assert far.loc[("hill", "best_rule"), "baseline"] == "three"
    assert far.loc[("hill", "baseline"), "baseline"] == "zero"
    assert far.loc[("three", "baseline"), "difference"] < 0
    assert far.loc[("three", "baseline"), "win_rate"] == 1.0
    assert ("three", "best_rule") not in far.index
    assert not ((found.role == "best_rule") & (found.split == "validation")).any()


def test_a_question_is_answered_in_each_scenario_and_over_all(finished: Path) -> None:
    found = tables.read(tables.HEADLINE, finished / "summary" / "headline.parquet")
    assert set(zip(found["scenario"], found["group"], strict=True)) == {
        (scenario, group) for scenario in ("near", "far", "near+far") for group in ("all", "rules")
    }
    far = found.set_index(["scenario", "group"]).loc["far", "all"]
    assert (far["policy"], far["rival"], far["rival_chosen_on"]) == ("hill", "three", "validation")
    summary = tables.read(tables.SUMMARY, finished / "summary" / "summary.parquet")
    costs = summary.query("scenario == 'far' and split == 'test' and metric == 'cost'").set_index("policy")
    assert far["ratio"] == pytest.approx(costs.loc["hill", "value"] / costs.loc["three", "value"])
    assert far["budget"] == costs.loc["hill", "decisions"] > 0
    assert costs["decisions"].drop("hill").to_dict() == {"dice": 12, "three": 0, "zero": 0}
    assert (costs.drop("hill")[["episodes", "trainings"]] == 0).all().all()
    assert far["rival_budget"] == 0
    assert "does it climb?" in (finished / "plots" / "INDEX.md").read_text()


def test_a_policys_budget_has_its_parents_share(tmp_path: Path) -> None:
    for name, seed, budget in [("far", 0, 10), ("far", 1, 20), ("near", 0, 1), ("near", 1, 3), ("lost", 0, None)]:
        used = {} if budget is None else {"budget": {"decisions": budget, "episodes": 2, "trainings": 0}}
        (tmp_path / f"{name}-{seed}.json").write_text(json.dumps({"policy": name, "seeds": [seed]} | used))
    files, near = sorted(tmp_path.glob("*.json")), {"decisions": 2.0, "episodes": 2.0, "trainings": 0.0}
    far = {"decisions": 17.0, "episodes": 4.0, "trainings": 0.0}
    assert mean_budgets(files, {"far": "near"}) == {"far": far, "near": near}
    assert mean_budgets(files, {"far": "lost"}) == {"near": near}


def test_figures_and_index(shared_toy: Toy, finished: Path) -> None:
    folder = finished / "plots" / "toy"
    for ending in ("svg", "pdf", "png", "txt"):
        assert (folder / f"costs.{ending}").stat().st_size > 0
    entry = json.loads((folder / "figures.json").read_text())["figures"][0]
    assert entry["scenarios"] == ["far", "near"]
    assert entry["seeds"] == [0, 1, 2, 3, 4]
    assert entry["config_hash"] == content_hash(yaml.safe_load((shared_toy.folder / "parts" / "draw.yaml").read_text()))
    text = (finished / "plots" / "INDEX.md").read_text()
    for shown in ("](toy/costs.png)", "0–4", "`hill`", "near > near+far"):  # picture, seeds, policy, its phases
        assert shown in text


def test_a_figure_that_cannot_be_drawn_says_so_in_its_place_and_the_others_are_drawn(
    shared_toy: Toy, finished: Path
) -> None:
    values = yaml.safe_load((shared_toy.folder / "parts" / "draw.yaml").read_text())
    good = values["figures"][0]
    bad = {**good, "name": "bad", "scenarios": ["near", "nowhere"]}
    odd = {**good, "name": "odd", "policies": ["nobody"]}
    part = shared_toy.folder / "parts" / "draw_bad.yaml"
    part.write_text(yaml.safe_dump({**values, "figures": [bad, good, odd]}))
    out = shared_toy.folder / "partly"
    draw(part, finished / "summary", shared_toy.inputs, out)
    for name in ("bad", "costs", "odd"):
        assert all((out / f"{name}.{ending}").stat().st_size > 0 for ending in ("svg", "pdf", "png", "txt"))
    assert (out / "costs.svg").read_bytes() == (finished / "plots/toy/costs.svg").read_bytes()
    failed = failures(out / "figures.json")
    assert set(failed) == {"bad", "odd"}
    assert failed["bad"].startswith("figure bad: scenarios: ") and "nowhere" in failed["bad"]
    assert failed["bad"] in " ".join((out / "bad.txt").read_text().split())
    assert failed["odd"].startswith("IndexError: ")
    assert failures(finished / "plots/toy/figures.json") == {} == failures(out / "nothing.json")


@pytest.mark.parametrize(
    ("scale", "of_scores", "marked"), [("smoke", True, True), ("smoke", False, False), ("small", True, False)]
)
def test_figures_of_scores_say_that_the_scale_is_one_of_tests(
    shared_toy: Toy, finished: Path, monkeypatch, scale, of_scores, marked
) -> None:
    import toy_study.figures

    shown, drawn = toy_study.figures.draw_costs, []

    def draw_costs(tables, spec):
        drawn.append(replace(shown(tables, spec), of_scores=of_scores))
        return drawn[-1]

    monkeypatch.setattr(toy_study.figures, "draw_costs", draw_costs)
    values = yaml.safe_load((shared_toy.folder / "parts" / "draw.yaml").read_text())
    part = shared_toy.folder / "parts" / f"draw_{scale}.yaml"
    part.write_text(yaml.safe_dump({**values, "scale": scale}))
    draw(part, finished / "summary", shared_toy.inputs, shared_toy.folder / f"marked_{scale}_{of_scores}")
    words = drawn[0].figure.get_suptitle()
    assert ("smoke" in words) == marked == bool(words)


def test_a_scenario_that_a_drawing_leaves_out_is_told_of(shared_toy: Toy, finished: Path, monkeypatch, caplog) -> None:
    import toy_study.figures

    shown = toy_study.figures.draw_costs
    left_out = {"far": "no policy"}
    monkeypatch.setattr(
        toy_study.figures, "draw_costs", lambda tables, spec: replace(shown(tables, spec), left_out=left_out)
    )
    out = shared_toy.folder / "left_out"
    draw(shared_toy.folder / "parts" / "draw.yaml", finished / "summary", shared_toy.inputs, out)
    (entry,) = json.loads((out / "figures.json").read_text())["figures"]
    assert entry["scenarios"] == ["near"]
    for text in (entry["caption"], (out / "costs.txt").read_text(), caplog.text):
        assert "far (no policy)" in " ".join(text.split())
    assert "far (no policy)" not in (finished / "plots/toy/costs.txt").read_text()


def test_a_figure_may_name_the_values_of_its_drawing(shared_toy: Toy, finished: Path) -> None:
    values = yaml.safe_load((shared_toy.folder / "parts" / "draw.yaml").read_text())
    named, unknown = (
        {**values["figures"][0], "name": name, "caption": f"Least: {{{name}}}."} for name in ("best", "bst")
    )
    part = shared_toy.folder / "parts" / "draw_named.yaml"
    part.write_text(yaml.safe_dump({**values, "figures": [named, unknown]}))
    out = shared_toy.folder / "named"
    draw(part, finished / "summary", shared_toy.inputs, out)
    best = json.loads((out / "figures.json").read_text())["figures"][0]["caption"].split(".")[0]
    assert best.startswith("Least: ") and best != "Least: {best}"
    failed = failures(out / "figures.json")
    assert set(failed) == {"bst"} and failed["bst"].startswith("figure bst: caption") and "best" in failed["bst"]


def test_a_figure_of_records_alone_is_listed_with_no_scenario(
    shared_toy: Toy, finished: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import toy_study.figures

    shown = toy_study.figures.draw_costs
    monkeypatch.setattr(
        toy_study.figures, "draw_costs", lambda tables, spec: replace(shown(tables, spec), of_scores=False)
    )
    out = shared_toy.folder / "of_records"
    draw(shared_toy.folder / "parts" / "draw.yaml", finished / "summary", shared_toy.inputs, out)
    (entry,) = json.loads((out / "figures.json").read_text())["figures"]
    assert [entry[name] for name in ("scenarios", "policies", "seeds", "rests_on")] == [[]] * 4
    assert "Scenarios" not in (out / "costs.rst").read_text()


def test_two_runs_give_the_same_bytes(shared_toy: Toy, finished: Path) -> None:
    run_all(shared_toy, shared_toy.folder / "again")
    assert output_hashes(finished) == output_hashes(shared_toy.folder / "again")
    assert not list(finished.rglob("progress"))


def test_config_copy_and_provenance(toy: Toy) -> None:
    part = toy.learn_part()
    folder = learn_toy(toy, toy.folder / "one", 3, part).parent
    assert (folder / "config.yaml").read_bytes() == part.read_bytes()
    origin = json.loads((folder / "provenance.json").read_text())
    assert origin["seeds"] == [3]
    assert origin["config_hash"] == content_hash(yaml.safe_load(part.read_text()))
    assert set(origin["inputs"]) == {"near/targets", "far/targets"}
    points = read_table(folder / "curve.parquet")
    assert origin["budget"] == {"decisions": points["decisions"].max(), "episodes": 0, "trainings": 0}
    assert points["decisions"].max() > points["decisions"].min() > 0


class Killed(BaseException):
    """Stands for the end of the process."""


def kill_after(monkeypatch: pytest.MonkeyPatch, points: int) -> None:
    """End the learning after some recorded points."""
    from schedlab.stages.learn import CurveRecorder

    record, count = CurveRecorder.__call__, [0]

    def dying(self: CurveRecorder, *values: object, **place: object) -> None:
        record(self, *values, **place)
        count[0] += 1
        if count[0] == points:
            raise Killed

    monkeypatch.setattr(CurveRecorder, "__call__", dying)


@pytest.mark.parametrize("points", [1, 5, 8])
def test_an_interrupted_job_resumes_to_the_same_bytes(toy: Toy, monkeypatch: pytest.MonkeyPatch, points: int) -> None:
    whole = learn_toy(toy, toy.folder / "whole", 0).parent
    with monkeypatch.context() as patch:
        kill_after(patch, points)
        with pytest.raises(Killed):
            learn_toy(toy, toy.folder / "killed", 0)
    killed = toy.folder / "killed"
    curve = killed / "progress" / "curve.jsonl"
    curve.write_bytes(curve.read_bytes() + b'{"phase":0,"ste')  # a line that was not finished
    state = killed / "progress" / "state.json"
    assert state.exists() == (points > 1)
    learn_toy(toy, killed, 0)
    assert output_hashes(killed) == output_hashes(whole)
    assert not (killed / "progress").exists()


def test_progress_of_other_values_is_not_resumed(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        kill_after(patch, 6)
        with pytest.raises(Killed):
            learn_toy(toy, toy.folder / "job", 0)
    other = toy.learn_part("other", params={"start": 2.0, "step_size": 0.1})
    learn_toy(toy, toy.folder / "job", 0, other)
    learn_toy(toy, toy.folder / "fresh", 0, other)
    assert output_hashes(toy.folder / "job") == output_hashes(toy.folder / "fresh")


def test_a_child_starts_from_its_parent(toy: Toy) -> None:
    parent = learn_toy(toy, toy.folder / "parent", 0)
    part = toy.learn_part(
        "child",
        name="child",
        parent="hill",
        train_on=[{"scenarios": ["far"], "steps": 1, "params": {"step_size": 1e-9}}],
    )
    child = learn_toy(toy, toy.folder / "child", 0, part, parent)
    guesses = [json.loads(path.read_text())["guess"] for path in (parent, child)]
    assert guesses[1] == pytest.approx(guesses[0], abs=1e-6)


def test_user_errors_pass_through(toy: Toy) -> None:
    with pytest.raises(UserError) as caught:
        learn_toy(toy, toy.folder / "job", 0, parent=toy.folder / "nowhere.json")
    assert str(toy.folder / "nowhere.json") in caught.value.where
    toy.inputs["far"]["targets"].unlink()
    with pytest.raises(UserError) as caught:
        learn_toy(toy, toy.folder / "job", 0)
    assert "far/targets" in caught.value.where
    toy._prepare("far")
    with pytest.raises(UserError) as caught:
        learn_toy(toy, toy.folder / "job", 0, toy.learn_part(target="hill_climb"))
    assert (caught.value.where, "'hill_climbing'" in caught.value.remedy) == ("hill", True)


LEARNER = """
class Nothing:
    def learn(self, problems, spec, seed, paths, curve): {body}
    def load(self, checkpoint, problem): pass
"""


@pytest.mark.parametrize(
    ("body", "kind", "told"),
    [
        ("pass", RuntimeError, "'hill'.*checkpoint"),
        ("curve('cost', float('nan'), step=1)", UserError, r"mine\.py:3: .*'hill'.*ValueError.*nan.*step=1"),
        ("[curve('cost', 1.0, step=1) for _ in range(2)]", UserError, r"mine\.py:3: .*'hill'.*ValueError.*step=1"),
    ],
)
def test_a_faulty_learner_is_told_and_progress_stays(toy: Toy, body: str, kind: type, told: str) -> None:
    (toy.folder / "mine.py").write_text(LEARNER.format(body=body))
    part = toy.learn_part(target="mine.py:Nothing")
    with pytest.raises(kind, match=told):
        learn_toy(toy, toy.folder / "job", 0, part)
    assert (toy.folder / "job" / "progress").is_dir()


def test_a_job_finds_its_own_progress_and_no_other(toy: Toy) -> None:
    """Each run leaves a letter and fails; a run of other values finds none."""
    (toy.folder / "mine.py").write_text(LEARNER.format(body="[open(paths.progress / 'runs', 'a').write('x'), 1 / 0]"))
    for start, found in ((1.0, "x"), (1.0, "xx"), (2.0, "x")):
        part = toy.learn_part(target="mine.py:Nothing", params={"start": start})
        with pytest.raises(UserError):
            learn_toy(toy, toy.folder / "job", 0, part)
        assert (toy.folder / "job/progress/runs").read_text() == found


RULE = """
class Four:
    def __init__(self, params, problem, seed): self.guess = params["guess"]
    def reset(self, unit): pass
    def act(self, observation, mask): return self.guess
"""


def test_a_users_own_rule(toy: Toy) -> None:
    (toy.folder / "mine.py").write_text(RULE)
    entry = {**toy.rules[0], "name": "four", "target": "mine.py:Four", "params": {"guess": 4.0}}
    rule = {**toy.rules[1], "name": "other", "params": {"guess": 4.0}}
    path = evaluate_toy(toy, toy.evaluate_part("far", [entry, rule]), {}, toy.folder / "scores")
    scores = tables.read(tables.SCORES, path).pivot_table(
        index=["split", "unit", "metric"], columns="policy", values="value"
    )
    assert (scores["four"] == scores["other"]).all()


def test_an_oracle_may_be_a_rule_or_learned(toy: Toy) -> None:
    entry = {**toy.rules[1], "kind": "oracle"}
    learned = {**toy.hill, "kind": "oracle"}
    given = {("hill", 2): learn_toy(toy, toy.folder / "hill", 2)}
    path = evaluate_toy(toy, toy.evaluate_part("far", [entry, learned]), given, toy.folder / "scores")
    scores = tables.read(tables.SCORES, path)
    assert set(scores["kind"]) == {"oracle"}
    assert set(zip(scores["policy"], scores["policy_seed"], strict=True)) == {("three", 0), ("hill", 2)}


def test_mode_of_scenario_or_policy(toy: Toy) -> None:
    part = toy.evaluate_part("far", [toy.rules[0]], problem=toy.problem("far", "reference"), splits=["test"])
    scores = tables.read(tables.SCORES, evaluate_toy(toy, part, {}, toy.folder / "scores"))
    assert set(scores["mode"]) == {"reference"}
    assert set(scores["split"]) == {"test"}


def test_evaluate_refuses_what_was_not_declared(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = type(toy.study.problem({}, toy.inputs["far"]))
    rollout = problem.rollout
    part = toy.evaluate_part("far", [toy.rules[0]])
    for scores, error in (({"coast": 1.0}, "'coast'"), ({"cost": float("inf")}, "cost.* inf")):
        outcome = type(
            rollout(problem({"test": [0.0]}), make_rule(toy.study, policy_spec(toy.rules[0]), None, 0), _unit())
        )(scores)
        monkeypatch.setattr(problem, "rollout", lambda *_, outcome=outcome: outcome)
        with pytest.raises(ValueError, match=error):
            evaluate_toy(toy, part, {}, toy.folder / "scores")


def test_a_failing_rollout_is_told_with_rule_and_unit(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise UserError("the scheduler raised KeyError", remedy="mend it")

    monkeypatch.setattr(type(toy.study.problem({}, toy.inputs["far"])), "rollout", fail)
    with pytest.raises(UserError, match=r"the scheduler raised KeyError.*mend it") as caught:
        evaluate_toy(toy, toy.evaluate_part("far", [toy.rules[0]]), {}, toy.folder / "scores")
    assert re.fullmatch(r"zero on \S+-00", caught.value.where)


OWN = """
class Own:
    def __init__(self, params, problem, seed):
        self.guess = params["guess"]

    def reset(self, unit):
        pass

    def act(self, observation, mask):
        raise IndexError("out of range")
"""


@pytest.mark.parametrize(
    ("params", "line", "told"), [({}, 4, "KeyError: 'guess'"), ({"guess": 2.0}, 10, "IndexError: out of range")]
)
def test_what_goes_wrong_in_a_file_of_the_users_is_told_with_its_line(
    toy: Toy, params: dict, line: int, told: str
) -> None:
    Path("own.py").write_text(f"{OWN}# {line}\n")  # a module is run once for each content
    part = toy.evaluate_part("far", [{**toy.rules[0], "name": "own", "target": "own.py:Own", "params": params}])
    with pytest.raises(UserError, match=rf"own\.py:{line}: .*'own'.*{told}"):
        evaluate_toy(toy, part, {}, toy.folder / "scores")


def test_what_goes_wrong_elsewhere_is_no_mistake_of_the_users(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    Path("own.py").write_text(OWN)

    def fail(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(type(toy.study.problem({}, toy.inputs["far"])), "rollout", fail)
    part = toy.evaluate_part("far", [{**toy.rules[0], "name": "own", "target": "own.py:Own", "params": {"guess": 2.0}}])
    with pytest.raises(KeyError, match="ours"):
        evaluate_toy(toy, part, {}, toy.folder / "scores")


FAILING_LEARNER = """
class Own:
    def learn(self, problems, spec, seed, paths, curve):
        raise IndexError("none left")

    def load(self, checkpoint, problem):
        raise OSError("unreadable")
"""


def test_what_goes_wrong_in_a_learner_of_the_users_is_told_with_its_line(toy: Toy) -> None:
    Path("own.py").write_text(FAILING_LEARNER)
    with pytest.raises(UserError, match=r"^own\.py:4: .*'hill'.*IndexError: none left"):
        learn_toy(toy, toy.folder / "learned", 0, toy.learn_part(target="own.py:Own"))
    (toy.folder / "policy").write_text("")
    part = toy.evaluate_part("far", [{**toy.hill, "trained_on": "near", "target": "own.py:Own"}])
    with pytest.raises(UserError, match=r"own\.py:7: .*'hill'.*OSError: unreadable"):
        evaluate_toy(toy, part, {("hill", 0): toy.folder / "policy"}, toy.folder / "scores")


def _unit() -> object:
    from schedlab.config.contract import Unit

    return Unit("test-00", "target", "test", "b", 0)


def test_evaluate_needs_the_checkpoints(toy: Toy) -> None:
    with pytest.raises(ValueError, match=r"checkpoint.*'hill'"):
        evaluate_toy(toy, toy.evaluate_part("far", [{**toy.hill, "trained_on": "near"}]), {}, toy.folder / "scores")


def test_summarise_refuses_scores_that_other_code_made(toy: Toy) -> None:
    made = {"code": "a" * 16, "packages": {"numpy": "2.0"}, "of": ["toy_study.study"], "upon": []}
    config = toy.evaluate_part("far", toy.rules[:1], made_by=made)
    scores = toy.folder / "rules.parquet"
    evaluate(config, toy.inputs["far"], {}, scores, toy.folder, toy.folder / "rules.provenance.json")

    def summarise_upon(code: str, packages: dict[str, str]) -> None:
        upon = {**made, "upon": [made_mark(code, packages)]}
        part = toy.part("summarise", scenarios={"far": {"rules": ["zero"]}}, statistics={}, made_by=upon)
        summarise(part, [scores], [], {}, toy.folder / "summary")

    summarise_upon("a" * 16, {"numpy": "2.0"})
    for code, packages in (("b" * 16, {"numpy": "2.0"}), ("a" * 16, {"numpy": "2.1"})):
        with pytest.raises(UserError) as refused:
            summarise_upon(code, packages)
        assert refused.value.where == str(scores)


def test_summarise_misses_a_policy(toy: Toy) -> None:
    path = evaluate_toy(toy, toy.evaluate_part("far", toy.rules[:1]), {}, toy.folder / "scores")
    part = toy.part("summarise", scenarios={"far": {"rules": ["zero", "three"]}}, statistics={})
    with pytest.raises(ValueError, match=r"'far'.*three"):
        summarise(part, [path], [], {}, toy.folder / "summary")
