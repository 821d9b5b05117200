"""LEARNING agents through the launcher: examples learn, a user's file runs, models go on, mistakes are named."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from small_launch import LEARN, contents, numbers, options, run_launch, schedule, write_agent, write_case

BEST = (1, 4)  # the *-high_mem_bw pairs of the learning case
TEST = {"type": "LEARNING", "run": "test", "hidden": 16, "gamma": 0.99}
RULE = """
    from schedlab.studies.hetero.hdeeprm.agent import Agent

    class Rule(Agent):
        def decide(self, observation):
            return 0
"""
SECOND = """
    import torch
    from schedlab.studies.hetero.hdeeprm.agent import Agent

    class Mine(Agent):
        def __init__(self, gamma, hidden, action_size, observation_size):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(1))
        def decide(self, observation):
            return {action}
        def loss(self):
            return self.weight.sum() * {factor}
"""


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with the learning case of a LEARNING agent that trains."""
    monkeypatch.chdir(tmp_path)
    write_case(tmp_path, options())
    return tmp_path


@pytest.mark.parametrize("name", ["reinforce", "actor_critic"])
def test_the_examples_learn_the_placement_without_conflict(here, name):
    write_case(here, options({**LEARN, "lr": 0.01}))
    assert run_launch("-a", name, "-om", "model.pt", "-nr", "200") == 0
    rows = json.loads(Path("probs.json").read_text())
    assert (
        len(rows) == len(numbers("rewards.log")) == len(numbers("losses.log")) == len(numbers("log_probs.log")) == 200
    )
    assert sum(rows[0][action] for action in BEST) < 0.6
    assert sum(rows[-1][action] for action in BEST) > 0.95
    assert np.mean(numbers("makespans.log")[-50:]) < 5.4
    write_case(here, options(TEST))
    assert run_launch("-a", name, "-im", "model.pt") == 0
    assert schedule()["makespan"] == pytest.approx(5.25)
    assert numbers("actions.log")[-1] in BEST
    assert len(numbers("losses.log")) == 200  # a test teaches nothing


def test_a_file_written_for_hdeeprm_runs_unchanged():
    agent = write_agent("""
        import torch.nn as nn
        from hdeeprm.agent import PolicyLearningAgent, ValueLearningAgent

        class MyAgent(PolicyLearningAgent):
            def __init__(self, gamma: float, hidden: int, action_size: int, observation_size: int) -> None:
                super(MyAgent, self).__init__(gamma)
                self.input = nn.Linear(observation_size, hidden)
                self.output = nn.Linear(hidden, action_size)

            def forward_policy(self, observation):
                return nn.functional.softmax(self.output(nn.functional.leaky_relu(self.input(observation))), dim=1)
    """)
    assert run_launch("-a", agent, "-om", "out.pt", "-nr", "2") == 0
    assert len(numbers("losses.log")) == 2
    kept = torch.load("out.pt", weights_only=True)
    assert set(kept) == {"model_state_dict", "optimizer_state_dict", "episodes"}
    assert kept["model_state_dict"]["input.weight"].shape == (16, 21)


MODEL = """
            def __init__(self, gamma, hidden, action_size, observation_size):
                super().__init__(gamma)
                self.policy = nn.Linear(observation_size, action_size)
                self.value = nn.Linear(observation_size, 1)
"""


@pytest.mark.parametrize(
    "methods",
    [
        """
            def forward_policy(self, observation):
                return nn.functional.softmax(self.policy(observation), dim=1)
            def decide(self, observation):
                return self.get_action(self(observation))
        """,
        """
            def forward(self, observation):
                return nn.functional.softmax(self.policy(torch.from_numpy(observation).float().unsqueeze(0)), dim=1)
        """,
        """
            def forward_policy(self, observation):
                return nn.functional.softmax(self.policy(observation), dim=1)
            def forward_value(self, observation):
                return self.value(observation)
            def decide(self, observation):
                self.save_value(ValueLearningAgent.forward(self, observation))
                return self.get_action(self(observation))
        """,
        """
            def forward_policy(self, observation):
                return nn.functional.softmax(self.policy(observation), dim=1)
            def forward(self, *inp):
                pass
        """,
        """
            def forward_policy(self, observation):
                return nn.functional.softmax(self(observation), dim=1)
            def forward(self, batch):
                return self.policy(batch)
        """,
    ],
    ids=["0.3, calls the agent", "0.3, own forward", "0.3, both bases", "0.2, forward does nothing", "a net of torch"],
)
def test_an_agent_may_process_by_the_methods_of_either_version(methods: str):
    head = """
        import torch
        import torch.nn as nn
        from hdeeprm.agent import PolicyLearningAgent, ValueLearningAgent

        class Mine(PolicyLearningAgent, ValueLearningAgent):"""
    agent = write_agent(head + MODEL + methods)
    assert run_launch("-a", agent, "-nr", "2") == 0
    assert len(numbers("losses.log")) == 2
    assert all(abs(sum(row) - 1) < 1e-5 for row in json.loads(Path("probs.json").read_text()))


def test_the_first_agent_of_a_file_with_the_published_constructor_and_its_neighbours(here):
    write_agent("FACTOR = 2", "beside.py")
    agent = write_agent("""
        import logging
        from beside import FACTOR
        from schedlab.studies.hetero.hdeeprm.agent import Agent

        class Helper:
            pass

        class Zebra(Agent):
            def __init__(self, gamma, hidden, action_size, observation_size):
                super().__init__()
                self.calls = []
                logging.warning("made with %s %s %s %s", gamma, hidden, action_size, observation_size)
            def observe(self, environment):
                self.calls.append("observe")
                return environment.observation()
            def decide(self, observation):
                self.calls.append("decide")
                assert observation.shape == (21,)
                return FACTOR
            def alter(self, action, environment):
                self.calls.append("alter")
                environment.step(action)
            def rewarded(self, environment):
                self.calls.append("rewarded")
                logging.warning("%s %s", " ".join(self.calls), environment.reward())

        class Antelope(Agent):
            pass
    """)
    write_case(here, options(TEST))
    assert run_launch("-a", agent) == 0
    assert schedule()["makespan"] == pytest.approx(7.0)  # action 2: low_power
    lines = Path("insights.log").read_text().splitlines()
    assert lines == ["WARNING made with 0.99 16 5 21", "WARNING observe decide alter rewarded 6.0"]


def test_the_last_action_is_rewarded_too(here):
    write_case(here, options(), jobs=[{"subtime": number, "res": 4} for number in range(5)])
    assert run_launch("-a", "reinforce") == 0  # the base class would refuse rewards that do not go with the decisions
    assert len(numbers("actions.log")) == len(numbers("log_probs.log")) >= 5


def test_greedy_and_sampling_evaluation(here):
    write_case(here, options(TEST))
    assert run_launch("-a", "reinforce", "-nr", "12") == 0
    assert len(set(numbers("actions.log"))) == 1
    write_case(here, options({**TEST, "acting": "sample"}))
    assert run_launch("-a", "reinforce", "-nr", "12") == 0
    assert len(set(numbers("actions.log")[12:])) > 1
    assert not Path("losses.log").exists()


def test_an_untrained_network_is_told_once_and_a_rule_never(here, caplog):
    write_case(here, options(TEST))
    assert run_launch("-a", "reinforce", "-nr", "3") == 0
    assert caplog.text.count("no -im") == 1
    caplog.clear()
    assert run_launch("-a", write_agent(RULE)) == 0
    assert "no -im" not in caplog.text


def test_learning_goes_on_from_a_model_as_if_it_had_never_stopped(tmp_path, monkeypatch):
    for name, runs in (("once", [6]), ("twice", [2, 4])):
        write_case(tmp_path / name, options())
        monkeypatch.chdir(tmp_path / name)
        for count in runs:
            assert run_launch("-a", "actor_critic", "-im", "model.pt", "-om", "model.pt", "-nr", str(count)) == 0
    once, twice = contents(tmp_path / "once"), contents(tmp_path / "twice")
    assert once == twice
    assert torch.load(tmp_path / "once/model.pt", weights_only=True)["episodes"] == 6


def test_an_agent_may_draw_from_any_global_generator_and_stays_repeatable(tmp_path, monkeypatch):
    for name in ("first", "second"):
        write_case(tmp_path / name, options())
        monkeypatch.chdir(tmp_path / name)
        agent = write_agent(
            SECOND.format(
                action="(random.randrange(5) + np.random.randint(5) + int(torch.randint(5, (1,)))) % 5", factor=1
            )
        )
        text = Path(agent).read_text()
        Path(agent).write_text("import random\nimport numpy as np\n" + text)
        before = np.random.get_state()[1].tolist()  # noqa: NPY002
        assert run_launch("-a", agent, "-om", "out.pt", "-nr", "8") == 0
        assert np.random.get_state()[1].tolist() == before  # noqa: NPY002
    assert contents(tmp_path / "first") == contents(tmp_path / "second")
    assert len(set(numbers("actions.log"))) > 1


def test_the_learning_rate_is_that_of_the_options_not_of_the_model(here):
    agent = write_agent(SECOND.format(action=0, factor=1))
    assert run_launch("-a", agent, "-om", "first.pt") == 0
    write_case(here, options({**LEARN, "lr": 0.25}))
    assert run_launch("-a", agent, "-im", "first.pt", "-om", "second.pt") == 0
    weight = [
        torch.load(name, weights_only=True)["model_state_dict"]["weight"].item() for name in ("first.pt", "second.pt")
    ]
    assert weight == pytest.approx([1 - 0.005, 1 - 0.005 - 0.25], abs=1e-5)


class Malicious:
    """Creates a file when it is unpickled."""

    def __reduce__(self):
        return Path.touch, (Path("harm"),)


def refused_model(name: str) -> None:
    """Write a file that is no model for the network."""
    if name == "malicious":
        torch.save({"model_state_dict": Malicious()}, "in.pt")
    elif name == "old pickle":
        Path("in.pt").write_bytes(pickle.dumps(Malicious()))
    elif name == "text":
        Path("in.pt").write_text("weights: 1\n")
    elif name == "list":
        torch.save([1, 2], "in.pt")
    elif name == "not finite":
        values = torch.load("good.pt", weights_only=True)
        next(iter(values["model_state_dict"].values()))[:] = float("nan")
        torch.save(values, "in.pt")
    elif name == "memory":
        values = torch.load("good.pt", weights_only=True)
        values["optimizer_state_dict"]["state"][0]["exp_avg"] = torch.zeros(3)
        torch.save(values, "in.pt")


@pytest.mark.parametrize("name", ["malicious", "old pickle", "text", "list", "not finite", "memory", "missing"])
def test_a_model_that_is_none_is_refused(capsys, name):
    assert run_launch("-a", "reinforce", "-om", "good.pt") == 0
    refused_model(name)
    assert run_launch("-a", "reinforce", "-im", "in.pt") == 2
    error = capsys.readouterr().err
    assert "in.pt" in error and "Traceback" not in error
    assert not Path("harm").exists()
    assert len(numbers("makespans.log")) == 1


def test_a_model_of_another_shape_is_refused(here, capsys):
    assert run_launch("-a", "reinforce", "-om", "in.pt") == 0
    write_case(here, options({**LEARN, "hidden": 8}))
    assert run_launch("-a", "reinforce", "-im", "in.pt") == 2
    error = capsys.readouterr().err
    assert "in.pt" in error and "policy.0.bias" in error
    write_case(here, options())
    assert run_launch("-a", "actor_critic", "-im", "in.pt") == 2
    assert "in.pt" in capsys.readouterr().err
    assert not list(Path().glob("partial_*"))


@pytest.mark.parametrize("action", ["5", "-1", "'first'", "1.5", "True", "None"])
def test_an_invalid_action_is_told_with_the_agents_file(capsys, action):
    agent = write_agent(SECOND.format(action=action, factor=1))
    assert run_launch("-a", agent) == 1
    error = capsys.readouterr().err
    assert "mine.py" in error and "first-high_mem_bw" in error
    assert Path("partial_jobs.csv").exists()
    assert not Path("out_jobs.csv").exists()


def test_an_agent_that_raises_keeps_what_was_finished(here, capsys):
    agent = write_agent("""
        from schedlab.studies.hetero.hdeeprm.agent import Agent

        class Mine(Agent):
            def decide(self, observation):
                if observation[-21] > 0.9:
                    raise RuntimeError("no idea")
                return 1
    """)
    write_case(here, options(TEST), profile={"req_time": 5})
    good = write_agent(
        RULE,
        "good.py",
    )
    assert run_launch("-a", good) == 0
    kept = contents(here)
    capsys.readouterr()
    assert run_launch("-a", agent) == 1
    told = capsys.readouterr()
    assert "mine.py:7: " in told.err and "RuntimeError: no idea" in told.err
    assert "Traceback" not in told.err
    assert told.out == ""
    now = contents(here)
    assert {name: now[name] for name in kept if name != "insights.log"} == {
        name: kept[name] for name in kept if name != "insights.log"
    }
    assert Path("partial_schedule.csv").exists()
    assert "no idea" in Path("insights.log").read_text()


ACTING = SECOND.format(action=0, factor=1)
BAD_FILES = [  # the agent's file, the exit status, the line that is named, and what else
    ("class Mine:\n    pass\n", 2, "mine.py: ", "Agent"),
    ("", 2, "mine.py: ", "Agent"),
    ("def f(:\n", 2, "mine.py:1: ", "SyntaxError"),
    ("import nonsense_of_mine\n", 2, "mine.py:1: ", "ModuleNotFoundError"),
    (SECOND.format(action=0, factor="undefined"), 1, "mine.py:12: ", "NameError"),
    (SECOND.format(action=0, factor="float('nan')"), 1, "mine.py: ", "nan"),
    (ACTING.replace("self.weight.sum() * 1", "(self.weight.sum() - 1).sqrt()"), 1, "mine.py: ", "gradient"),
    (SECOND.format(action="__import__('sys').exit(3)", factor=1), 1, "mine.py:10: ", "SystemExit"),
    (ACTING.replace("super().__init__()", "1 / 0"), 1, "mine.py:7: ", "ZeroDivisionError"),
    (
        ACTING.replace("super().__init__()", "pass").replace("torch.nn.Parameter(torch.ones(1))", "1"),
        1,
        "mine.py: ",
        "super().__init__",
    ),
    (ACTING.replace("def loss", "def lost"), 2, "mine.py: ", "loss"),
    (ACTING.replace("torch.nn.Parameter(torch.ones(1))", "1"), 2, "mine.py: ", "parameters"),
    (
        ACTING.replace("def decide", "def alter(self, action, environment): pass\n        def decide"),
        1,
        "mine.py: ",
        "alter",
    ),
    (
        ACTING.replace(
            "def decide",
            "def alter(self, action, environment): [environment.step(0) for _ in 'ab']\n        def decide",
        ),
        1,
        "mine.py: ",
        "step",
    ),
    ("[0 for _ in iter(int, 1)]\n", 2, "mine.py:1: ", "--agent-limit"),
    (SECOND.format(action="[0 for _ in iter(int, 1)]", factor=1), 1, "mine.py:10: ", "Mine.decide"),
]


@pytest.mark.parametrize(
    ("text", "status", "where", "what"), BAD_FILES, ids=[str(number) for number in range(len(BAD_FILES))]
)
def test_a_bad_agent_is_refused_with_its_line(capsys, text, status, where, what):
    agent = write_agent(text)
    assert run_launch("-a", agent, "--agent-limit", "1") == status
    error = capsys.readouterr().err
    assert where in error and what in error and "Traceback" not in error


def test_an_agent_is_needed_and_must_be_there(capsys):
    assert run_launch() == 2
    assert "options.json: pybatsim.agent.type" in capsys.readouterr().err
    assert run_launch("-a", "reinforse") == 2
    assert "-a: " in capsys.readouterr().err


def test_void_is_masked_where_nothing_else_can_happen_except_as_published(here):
    selection = {"selection": [{"first": ["high_mem_bw"]}], "void": True}
    write_case(here, options({**TEST, "acting": "sample"}, actions=selection))
    assert run_launch("-a", "reinforce", "-nr", "10") == 0
    assert set(numbers("actions.log")) == {0.0}
    assert run_launch("-a", "reinforce", "-nr", "10", "--compat") == 0
    assert 1.0 in numbers("actions.log")


def test_probabilities_that_are_none_are_told(capsys):
    agent = write_agent("""
        import torch
        from schedlab.studies.hetero.hdeeprm.agent import PolicyLearningAgent

        class Mine(PolicyLearningAgent):
            def __init__(self, gamma, hidden, action_size, observation_size):
                super().__init__(gamma)
                self.layer = torch.nn.Linear(observation_size, action_size)
            def forward_policy(self, observation):
                return self.layer(observation) / 0
    """)
    assert run_launch("-a", agent) == 1
    error = capsys.readouterr().err
    assert "mine.py: " in error and "ValueError" in error


STOPPED = """
    import os, signal
    from pathlib import Path
    from schedlab.studies.hetero.hdeeprm.agents.reinforce import Reinforce

    class Mine(Reinforce):
        def decide(self, observation):
            if Path("rewards.log").exists() and len(Path("rewards.log").read_text().splitlines()) == 2:
                {stop}
            return super().decide(observation)
"""


@pytest.mark.parametrize(
    ("stop", "status"),
    [("raise KeyboardInterrupt", 130), ("os.kill(os.getpid(), signal.SIGTERM)", 143), ("raise ValueError", 1)],
)
def test_however_a_launch_ends_tables_and_model_of_what_was_finished_are_written(stop, status):
    agent = write_agent(STOPPED.format(stop=stop))
    assert run_launch("-a", agent, "-om", "model.pt", "-nr", "4") == status
    assert len(numbers("makespans.log")) == len(numbers("losses.log")) == 2
    assert schedule()["makespan"] == pytest.approx(numbers("makespans.log")[1], abs=1e-6)
    assert torch.load("model.pt", weights_only=True)["episodes"] == 2
    assert Path("partial_schedule.csv").exists()
    good = write_agent(STOPPED.format(stop="pass"))
    assert run_launch("-a", good, "-im", "model.pt", "-om", "model.pt", "-nr", "2") == 0
    assert torch.load("model.pt", weights_only=True)["episodes"] == 4
    assert not list(Path().glob("partial_*"))


def test_an_episode_without_a_decision_teaches_nothing(here):
    write_case(here, options(), jobs=[{"res": 5}])
    assert run_launch("-a", "reinforce", "-om", "model.pt") == 0
    assert schedule()["nb_jobs_rejected"] == 1
    assert not Path("losses.log").exists()
    assert not Path("model.pt").exists()


def test_the_model_must_not_be_a_directory(here, capsys):
    (here / "models").mkdir()
    assert run_launch("-a", "reinforce", "-om", "models") == 2
    assert "-om: " in capsys.readouterr().err
