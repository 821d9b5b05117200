"""The state of a job of Stable-Baselines3 between two updates, as plain values and arrays. Nothing is pickled, and no
time is stored.

Stable-Baselines3's own `save` uses pickle, and its `load` resets the environments, so a resumed job would not give the
same bytes. Therefore the counters and last observations are read and set by their private names. If a release renames
one, `take_state` raises AttributeError, and the tests of interrupted jobs fail.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from stable_baselines3.common.base_class import BaseAlgorithm

from schedlab.config.seeds import derive_seed
from schedlab.learning.checkpoints import Checkpoint, grouped, load_module, module_arrays
from schedlab.learning.episode_streams import StreamEnv, not_repeated
from schedlab.learning.seeding import torch_stream

COUNTERS = (
    "num_timesteps",
    "_n_updates",
    "_n_calls",
    "_episode_num",
    "_current_progress_remaining",
    "exploration_rate",
)
BUFFER = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts")


@contextmanager
def global_streams(seed: int) -> Iterator[None]:
    """Within the block, the global generators of NumPy and torch, from which Stable-Baselines3 draws, depend on the
    seed.
    """
    before = np.random.get_state()  # noqa: NPY002  (theirs)
    with torch_stream(seed, "stable-baselines"):
        state: Any = np.random.MT19937(derive_seed(seed, "stable-baselines", "numpy")).state
        np.random.set_state(state)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(before)  # noqa: NPY002


def take_state(model: BaseAlgorithm) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return (values, arrays): the state of an algorithm between two updates, with its environments (StreamEnv).

    A problem that also learns something has the methods `take_state`, which returns such a pair, and `put_state(values,
    arrays)`.
    """
    kind, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    meta: dict[str, Any] = {
        "counters": {name: getattr(model, name) for name in COUNTERS if hasattr(model, name)},
        "numpy": [kind, int(position), int(has_gauss), float(cached)],
        "exploration": model.action_space.np_random.bit_generator.state,
        "episodes": [env.number for env in _environments(model)],
        "totals": [env.total for env in _environments(model)],
        "problems": {},
    }
    groups = {name: optimizer_arrays(optimizer) for name, optimizer in _optimizers(model).items()}
    arrays: dict[str, Any] = grouped({"policy": module_arrays(model.policy), **groups})
    arrays |= {"random/numpy": keys, "random/torch": torch.get_rng_state().numpy().copy()}
    arrays |= {"episode_starts": model._last_episode_starts}
    arrays |= _named("observation", model._last_obs)
    arrays |= {f"actions/{number}": np.array(env.actions) for number, env in enumerate(_environments(model))}
    for name, problem in _learning_problems(model).items():
        meta["problems"][name], learned = problem.take_state()
        arrays |= {f"problems/{name}/{key}": array for key, array in learned.items()}
    if buffer := getattr(model, "replay_buffer", None):
        meta["buffer"] = [buffer.pos, buffer.full]
        used = buffer.buffer_size if buffer.full else buffer.pos
        for name in BUFFER:
            arrays |= {key: array[:used] for key, array in _named(f"buffer/{name}", getattr(buffer, name)).items()}
    return meta, arrays


def put_state(model: BaseAlgorithm, kept: Checkpoint, meta: Mapping[str, Any]) -> None:
    """Restore a state except for the random streams, and continue its open episodes.

    Raises RuntimeError if an environment does not reach the same observation again.
    """
    load_module(model.policy, kept.group("policy"), kept.path)
    for name, optimizer in _optimizers(model).items():
        load_optimizer(optimizer, kept.group(name))
    for name, value in meta["counters"].items():
        setattr(model, name, value)
    model.action_space.np_random.bit_generator.state = meta["exploration"]
    model._last_episode_starts = kept.arrays["episode_starts"]
    model._last_obs = _unnamed("observation", kept)
    for number, (env, episode) in enumerate(zip(_environments(model), meta["episodes"], strict=True)):
        _require_equal(env.take_up(episode, kept.arrays[f"actions/{number}"]), model._last_obs, number, env)
        env.total = meta["totals"][number]
    for name, problem in _learning_problems(
        model
    ).items():  # last, because the problems learned again while episodes were continued
        problem.put_state(meta["problems"][name], kept.group(f"problems/{name}"))
    if buffer := getattr(model, "replay_buffer", None):
        buffer.pos, buffer.full = meta["buffer"]
        for name in BUFFER:
            _fill(getattr(buffer, name), _unnamed(f"buffer/{name}", kept))


def put_streams(kept: Checkpoint, meta: Mapping[str, Any]) -> None:
    """Restore the random streams; this must be the last step before learning continues."""
    kind, position, has_gauss, cached = meta["numpy"]
    np.random.set_state((kind, kept.arrays["random/numpy"], position, has_gauss, cached))  # noqa: NPY002
    torch.set_rng_state(torch.from_numpy(np.array(kept.arrays["random/torch"])))


def _environments(model: BaseAlgorithm) -> list[StreamEnv]:
    envs: list[StreamEnv] = model.get_env().envs
    return envs


def _learning_problems(model: BaseAlgorithm) -> dict[str, Any]:
    """Return the problems that learn something themselves, by scenario."""
    return {
        name: problem
        for name, problem in _environments(model)[0].stream.problems.items()
        if hasattr(problem, "take_state")
    }


def _optimizers(model: BaseAlgorithm) -> dict[str, torch.optim.Optimizer]:
    names = [name for name in model._get_torch_save_params()[0] if name.endswith("optimizer")]
    return {name: operator.attrgetter(name)(model) for name in names}


def optimizer_arrays(optimizer: torch.optim.Optimizer) -> dict[str, np.ndarray]:
    """Return an optimizer's state of each parameter, by the parameter's number and a name."""
    state = optimizer.state_dict()["state"]
    return {
        f"{index}/{name}": tensor.cpu().numpy().copy()
        for index, entry in state.items()
        for name, tensor in entry.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, arrays: Mapping[str, np.ndarray]) -> None:
    """Restore an optimizer's state."""
    whole = optimizer.state_dict()
    for key, array in arrays.items():
        index, _, name = key.partition("/")
        whole["state"].setdefault(int(index), {})[name] = torch.from_numpy(np.array(array))
    optimizer.load_state_dict(whole)


def _named(name: str, value: np.ndarray | Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return an array under a name, or several arrays under this prefix."""
    return {f"{name}/{key}": array for key, array in value.items()} if isinstance(value, Mapping) else {name: value}


def _unnamed(name: str, kept: Checkpoint) -> np.ndarray | dict[str, np.ndarray]:
    return kept.arrays[name] if name in kept.arrays else kept.group(name)


def _fill(target: Any, source: Any) -> None:
    """Copy an array, or arrays by name, into another one that is at least as long."""
    for key in target if isinstance(target, Mapping) else [...]:
        target[key][: len(source[key])] = source[key]


def _require_equal(found: Any, wanted: Any, number: int, env: StreamEnv) -> None:
    pairs = [(found[key], wanted[key]) for key in wanted] if isinstance(wanted, Mapping) else [(found, wanted)]
    if not all(np.array_equal(here, there[number]) for here, there in pairs):
        raise not_repeated(env.stream, env.number)
