"""The tables of SLA-MORL's program with a row per step (docs/reference/cloud_model.md), preceded by `episode`, `step`
and `epoch`.

`reward` is the reward of the policy. Its components are those of the vector reward, without weights (time is
`reward_performance`, waste `reward_efficiency`). Epochs repeat over episodes; join tables by episode and step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from schedlab.studies.cloud.model.allocation import Allocation, describe
from schedlab.studies.cloud.replay.observe import MET, SEVERITY
from schedlab.studies.cloud.replay.sla import ITEMS, Verdict, gpu_utilisations

if TYPE_CHECKING:
    import pandas as pd

KEY = ("episode", "step", "epoch")
COUNTS = ("epoch", *Allocation._fields)
COMPONENTS = {"cost": "reward_cost", "time": "reward_performance", "resource": "reward_efficiency", "sla": "reward_sla"}
STEP_TABLES = {
    "allocation_history": "the allocation after each action, and its reward",
    "reward_components": "the reward of each action and what it is made of",
    "sla_metrics": "which service levels are met after each interval, and how severely they are not",
    "performance_metrics": "throughput, time, money and utilisation after each interval",
    "combined_metrics": "the tables above, joined by episode and step",
    "rl_action_log": "each decision: who took it, its uncertainty, what it led to",
}


def step_tables(rows: Sequence[Mapping[str, Any]], policy: str) -> dict[str, pd.DataFrame]:
    """Return STEP_TABLES by name. rows: KEY, the values of `step_values`, and `policy_used` if it is not `policy`."""
    import pandas as pd

    whole = pd.DataFrame(rows)
    # write 2 GPUs instead of 2.0; half an epoch stays a fraction
    whole = whole.astype({name: "int64" for name in COUNTS if (whole[name] % 1 == 0).all()})
    met, severe = [f"sla_{item}_met" for item in ITEMS], [f"sla_{item}_severity" for item in ITEMS]
    held, rewards = list(Allocation._fields), ["reward", *COMPONENTS.values()]
    measured = ["throughput", "time_so_far", "cost_so_far"]
    columns = {
        "allocation_history": [*held, "action", "action_description", "reward"],
        "reward_components": rewards,
        "sla_metrics": [*met, *severe],
        "performance_metrics": [*measured, "gpu_util", "cpu_util", "memory_util"],
        "combined_metrics": [
            *held,
            "action",
            *rewards,
            "sla_time_met",
            "sla_cost_met",
            "sla_throughput_met",
            *measured,
        ],
    }
    return {
        **{name: whole[[*KEY, *wanted]] for name, wanted in columns.items()},
        "rl_action_log": _action_log(whole, policy, met),
    }


def seen_values(
    record: Mapping[str, Any], action: int, reward: float, objectives: Mapping[str, float], state: np.ndarray
) -> dict[str, Any]:
    """Return the values of an environment's step for `step_tables`. state: the 26 components after the step."""
    seen = state.tolist()
    verdicts = {
        item: Verdict(bool(met), severity) for item, met, severity in zip(ITEMS, seen[MET], seen[SEVERITY], strict=True)
    }
    return step_values(
        record,
        action,
        {"reward": reward, **{column: objectives[name] for name, column in COMPONENTS.items()}},
        verdicts,
    )


def step_values(
    record: Mapping[str, Any], action: int, rewards: Mapping[str, float], verdicts: Mapping[str, Verdict]
) -> dict[str, Any]:
    """Return the values of a step for `step_tables`: its record (with the allocation), action, reward and components,
    and verdicts. An item without a verdict is left out of the tables.
    """
    used = gpu_utilisations(record)
    return {
        **{name: float(record[name]) for name in Allocation._fields},
        "action": action,
        "action_description": describe(action),
        **rewards,
        **{f"sla_{item}_met": verdicts[item].met if item in verdicts else None for item in ITEMS},
        **{f"sla_{item}_severity": verdicts[item].severity if item in verdicts else None for item in ITEMS},
        **{name: float(record.get(name, float("nan"))) for name in ("throughput", "time_so_far", "cost_so_far")},
        "gpu_util": sum(used) / len(used) if used else float("nan"),
        "cpu_util": float(record.get("cpu_percent", float("nan"))),
        "memory_util": float(record.get("memory_used_gb", float("nan"))) / float(record["memory_gb"]),
        "uncertainty": float("nan"),  # unknown unless the policy reports it
        "critic_reset": False,
    }


def _action_log(whole: pd.DataFrame, preference: str, met: list[str]) -> pd.DataFrame:
    """Return the log of actions under its published names."""
    named = {
        "action": "rl_action_taken",
        "action_description": "rl_action_description",
        "reward": "rl_reward",
        **{name: f"rl_{name}" for name in (*Allocation._fields, *met)},
        "critic_reset": "rl_critic_reset",
        "uncertainty": "rl_uncertainty",
    }
    table = whole[[*KEY, *named]].rename(columns=named)
    table.insert(len(KEY), "rl_policy_used", whole.get("policy_used", preference))
    return table.assign(rl_cumulative_reward=whole.groupby("episode")["reward"].cumsum())
