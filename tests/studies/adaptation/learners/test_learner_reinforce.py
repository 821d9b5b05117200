from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import yaml
from small_tables import SCENARIOS, learn, published, ranks

from schedlab.config.contract import Phase
from schedlab.config.errors import UserError
from schedlab.config.schema import validate
from schedlab.config.seeds import generator
from schedlab.studies.adaptation.example import example_problem
from schedlab.studies.adaptation.learners import reinforce as learner_reinforce
from schedlab.studies.adaptation.learners.policy_network import Inputs, build_network, encoding_of
from schedlab.studies.adaptation.learners.reinforce import ReinforceLearner
from schedlab.studies.adaptation.learners.settings import LEARNER_SETTINGS, ReinforceSettings

CONF = Path(__file__).parents[4] / "conf/learner/adaptation"
SMALL = {"episodes_per_update": 8, "save_every": 16, "record_every": 1}


def published_form() -> dict:
    values = yaml.safe_load((CONF / "reinforce_published.yaml").read_text())
    del values["name"]
    return values


@pytest.fixture(scope="module")
def examples() -> dict:
    return {f"at-{start:g}": example_problem(start) for start in (60.0, 190.0)}


@pytest.mark.parametrize("path", sorted(CONF.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_shipped_settings_are_valid(path: Path) -> None:
    values = yaml.safe_load(path.read_text())
    validate(LEARNER_SETTINGS[values.pop("name")], values)


def test_the_published_form_takes_the_published_step(shared_data: Path, tmp_path: Path) -> None:
    problem = published(shared_data / "cases/adaptation/simulations.csv")["early"]
    seed = 5
    learned = learn(
        ReinforceLearner(), {"early": problem}, (Phase(("early",), 1),), tmp_path, seed, params=published_form()
    )
    settings = validate(ReinforceSettings, published_form())
    encoding = encoding_of(settings)
    network = build_network(settings, 4, encoding, seed)
    assert sum(parameter.numel() for parameter in network.parameters()) == 54_980

    uniforms = generator(seed, "policy-sample", 0, 0).random((1024, 3))[0]
    decisions, prefix, logs = problem.decisions(0), "", []
    for uniform in uniforms:
        state = problem.tree.prefixes.index(prefix)
        log = network(Inputs(encoding([decisions[state]])))[0].log_softmax(-1)
        action = int((uniform >= log.detach().double().exp().cumsum(0)[:-1].numpy()).sum())
        logs.append(log[action])
        prefix += str(action)
    accuracy = problem.view.reward[0, problem.tree.index(prefix)]
    reward = 100 * np.tan(accuracy * np.pi / 2)
    loss = torch.stack([-log * reward for log in logs]).mean()
    curves = {metric: value for metric, value, *_ in learned.curves}
    assert curves["accuracy"] == accuracy
    assert curves["objective"] == pytest.approx(loss.item(), rel=1e-5)
    optimizer = torch.optim.Adam(network.parameters(), 1e-4)
    loss.backward()
    optimizer.step()
    policy = ReinforceLearner().load(learned.checkpoint, problem)
    for name, parameter in policy.network.named_parameters():
        gap = (parameter - dict(network.named_parameters())[name]).abs()
        assert gap.max() < 3e-5 and gap.mean() < 1e-6, (
            name
        )  # Adam's first step is 1e-4 in each; signs of vanishing gradients may differ


@pytest.mark.slow
def test_the_published_form_saturates_on_what_it_met_early(shared_data: Path, tmp_path: Path) -> None:
    problem = published(shared_data / "cases/adaptation/simulations.csv")["late"]
    learned = learn(
        ReinforceLearner(),
        {"late": problem},
        (Phase(("late",), 800),),
        tmp_path,
        0,
        params={**published_form(), "learning_rate": 1e-3},
    )
    accuracy = [value for metric, value, *_ in learned.curves if metric == "accuracy"]
    assert len(accuracy) == 800
    assert (
        len(set(accuracy[:100])) > 30 > 22 > len(set(accuracy[-100:]))
    )  # no baseline and a reward that is always positive
    objective = np.abs([value for metric, value, *_ in learned.curves if metric == "objective"])
    assert np.median(objective[-100:]) < 0.8 * np.median(objective[:100])


@pytest.mark.slow
def test_the_repaired_form_comes_near_the_ceiling_of_all_five(shared_data: Path, tmp_path: Path) -> None:
    problems = published(shared_data / "cases/adaptation/simulations.csv")
    learned = learn(ReinforceLearner(), problems, (Phase(SCENARIOS, 30_000),), tmp_path)
    assert np.mean(list(ranks(ReinforceLearner(), learned.checkpoint, problems).values())) <= 3


class Killed(Exception):
    pass


@pytest.mark.parametrize(("form", "after"), [("repaired", 11), ("published", 29), ("one group an update", 1)])
def test_an_interrupted_job_goes_on_to_the_same_bytes(
    examples: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str, after: int
) -> None:
    params = {"repaired": SMALL, "one group an update": {**SMALL, "episodes_per_update": 1}}.get(form) or {
        **published_form(),
        "returns": "plain",
        "save_every": 16,
    }
    one, other = examples
    every = 8 // params["episodes_per_update"]
    phases = (Phase((one,), 80), Phase((one, other), 120, {"temperature": 10.0}), Phase((other,), 40))
    whole = learn(ReinforceLearner(), examples, phases, tmp_path / "whole", 3, params=params)
    original, count = learner_reinforce._Learning.step, 0

    def killed(self, *arguments) -> None:
        nonlocal count
        count += 1
        if count > after * every:
            raise Killed
        original(self, *arguments)

    monkeypatch.setattr(learner_reinforce._Learning, "step", killed)
    with pytest.raises(Killed):
        learn(ReinforceLearner(), examples, phases, tmp_path / "cut", 3, params=params)
    monkeypatch.setattr(learner_reinforce._Learning, "step", original)
    cut = learn(ReinforceLearner(), examples, phases, tmp_path / "cut", 3, params=params)
    assert cut.checkpoint.read_bytes() == whole.checkpoint.read_bytes()
    assert cut.curves == whole.curves and cut.budget == whole.budget


def test_a_resumed_job_does_not_begin_anew(examples: dict, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, count = learner_reinforce._Learning.step, 0
    phases = (Phase(tuple(examples), 160),)

    def counted(self, *arguments) -> None:
        nonlocal count
        count += 1
        if count == 15:
            raise Killed
        original(self, *arguments)

    monkeypatch.setattr(learner_reinforce._Learning, "step", counted)
    with pytest.raises(Killed):
        learn(ReinforceLearner(), examples, phases, tmp_path, params=SMALL)
    learn(ReinforceLearner(), examples, phases, tmp_path, params=SMALL)
    assert count == 15 + 6  # 14 of 20 updates were done and saved


@pytest.mark.parametrize("what", ["other seed", "damaged"])
def test_progress_of_another_job_or_a_damaged_one_is_not_taken_up(examples: dict, tmp_path: Path, what: str) -> None:
    phases = (Phase(tuple(examples), 64),)
    whole = learn(ReinforceLearner(), examples, phases, tmp_path / "whole", 1, params=SMALL)
    learn(ReinforceLearner(), examples, phases, tmp_path / "cut", 2 if what == "other seed" else 1, params=SMALL)
    progress = tmp_path / "cut/progress/learning.zip"
    assert progress.exists()
    if what == "damaged":
        progress.write_bytes(progress.read_bytes()[:-40])
    again = learn(ReinforceLearner(), examples, phases, tmp_path / "cut", 1, params=SMALL)
    assert again.checkpoint.read_bytes() == whole.checkpoint.read_bytes()


def test_a_transferred_policy_starts_from_the_parent_and_saves_its_own(examples: dict, tmp_path: Path) -> None:
    one, other = examples
    parent = learn(ReinforceLearner(), examples, (Phase((one,), 320),), tmp_path / "parent", params=SMALL)
    child = learn(
        ReinforceLearner(), examples, (Phase((other,), 8),), tmp_path / "child", params=SMALL, start=parent.checkpoint
    )
    scratch = learn(ReinforceLearner(), examples, (Phase((other,), 8),), tmp_path / "scratch", params=SMALL)
    jobs = {"child": child, "scratch": scratch}
    first = {name: next(v for m, v, *_ in job.curves if m == "probability_best") for name, job in jobs.items()}
    problem = examples[other]
    best = int(problem.view.reward[list(problem.rows("train"))].mean(0).argmax())
    assert first["child"] == pytest.approx(chance(parent.checkpoint, problem, best), rel=1e-4)
    assert first["child"] != pytest.approx(first["scratch"], rel=1e-2)
    assert child.checkpoint.read_bytes() != parent.checkpoint.read_bytes()


def chance(checkpoint: Path, problem, sequence: int) -> float:
    policy = ReinforceLearner().load(checkpoint, problem)
    decisions = problem.decisions(0)
    tree = problem.tree
    return float(
        np.prod(
            [policy.decide(decisions[s])[a] for s, a in zip(tree.states[sequence], tree.choices[sequence], strict=True)]
        )
    )


def test_scenarios_take_turns_and_curves_name_them(examples: dict, tmp_path: Path) -> None:
    learned = learn(ReinforceLearner(), examples, (Phase(tuple(examples), 32),), tmp_path, params=SMALL)
    rewards = [(dict(at)["scenario"], dict(at)["episode"]) for metric, _, *at in learned.curves if metric == "reward"]
    assert sorted(rewards, key=lambda point: point[1]) == [(list(examples)[e % 2], e + 1) for e in range(32)]
    binned = learn(
        ReinforceLearner(), examples, (Phase(tuple(examples), 32),), tmp_path / "b", params={**SMALL, "record_every": 8}
    )
    points = [value for metric, value, *at in binned.curves if metric == "reward" and dict(at)["scenario"] == "at-60"]
    single = [value for metric, value, *at in learned.curves if metric == "reward" and dict(at)["scenario"] == "at-60"]
    np.testing.assert_allclose(points, np.reshape(single, (2, 8)).mean(1), rtol=1e-12)


def test_the_tangent_of_a_loss_is_refused(examples: dict, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"learner\.returns"):
        learn(ReinforceLearner(), examples, (Phase(tuple(examples), 8),), tmp_path, params={"returns": "tangent"})


def test_sampled_sequences_are_trainings_once(examples: dict, tmp_path: Path) -> None:
    whole = sum(problem.view.reward[list(problem.rows("train"))].size for problem in examples.values())
    found = [
        learn(ReinforceLearner(), examples, (Phase(tuple(examples), steps),), tmp_path / str(steps), params=SMALL)
        for steps in (8, 800)
    ]
    assert [(one.budget.episodes, one.budget.decisions) for one in found] == [
        (steps, steps * examples["at-60"].tree.decisions) for steps in (8, 800)
    ]
    rows = {name: len(problem.rows("train")) for name, problem in examples.items()}
    assert found[0].budget.trainings <= 4 * sum(rows.values())
    assert found[0].budget.trainings < found[1].budget.trainings <= whole
    counts = [dict(at)["trainings"] for metric, _, *at in found[1].curves if metric == "reward"]
    assert counts == sorted(counts) and counts[-1] == found[1].budget.trainings
