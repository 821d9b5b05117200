"""The tracker of the API writes the tables of a live run, and refuses what it cannot write; a log's table is
judged in the two ways there are.
"""

from __future__ import annotations

import pandas as pd
import pytest

from schedlab.config.errors import UserError
from schedlab.studies.cloud.replay.sla import ITEMS, Verdict
from schedlab.studies.cloud.slamorl import api

RECORD = {
    "epoch": 1,
    "throughput": 900.0,
    "time_so_far": 60.0,
    "cost_so_far": 0.1,
    "cpu_percent": 60.0,
    "memory_used_gb": 4.0,
}
HELD = {"gpu_count": 1, "cpu_count": 4, "memory_gb": 8}


def test_the_tracker_writes_the_tables(tmp_path):
    tracker = api.RLMetricsTracker("cost")
    verdicts = dict.fromkeys(ITEMS, Verdict(True, 0.0))
    with pytest.raises(UserError):
        tracker.tables()
    for _ in range(2):
        tracker.begin_episode()
        for epoch in (1, 2):
            record = {**RECORD, **HELD, "epoch": epoch}
            tracker.track(record, 13, 0.5, verdicts, {"cost": 0.25, "sla": 0.25}, critic_reset=epoch == 2)
    tracker.write(tmp_path)
    log_of_actions = pd.read_csv(tmp_path / "rl_action_log.csv")
    assert log_of_actions[["episode", "step"]].to_numpy().tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert log_of_actions["rl_cumulative_reward"].tolist() == [0.5, 1.0, 0.5, 1.0]
    assert log_of_actions["rl_critic_reset"].tolist() == [False, True, False, True]
    assert log_of_actions["rl_uncertainty"].isna().all(), "nobody told any"
    assert len(pd.read_csv(tmp_path / "combined_metrics.csv")) == 4 and len(list(tmp_path.glob("*.csv"))) == 6


def test_an_item_without_a_verdict_leaves_its_cells_empty(tmp_path):
    tracker = api.RLMetricsTracker()
    tracker.track({**RECORD, **HELD}, 13, 0.5, {})
    tracker.track({**RECORD, **HELD, "epoch": 2}, 13, 0.5, {"time": Verdict(False, 0.25)})
    tracker.write(tmp_path)
    levels = pd.read_csv(tmp_path / "sla_metrics.csv")
    assert levels["sla_cost_met"].isna().all() and levels["sla_cost_severity"].isna().all()
    assert (
        pd.isna(levels["sla_time_met"][0])
        and str(levels["sla_time_met"][1]) == "False"
        and levels["sla_time_severity"][1] == 0.25
    )


@pytest.mark.parametrize(
    ("record", "given", "told"),
    [
        ({**RECORD, **HELD}, {"verdicts": {"tme": Verdict(True, 0.0)}}, "did you mean 'time'"),
        ({**RECORD, **HELD}, {"components": {"costs": 1.0}}, "did you mean 'cost'"),
        (HELD, {}, "'epoch'"),
        ({**RECORD, "gpu_count": 1, "cpu_count": 4}, {}, "'memory_gb'"),
        ({**RECORD, **HELD}, {"action": 27}, "action 27"),
        ({**RECORD, **HELD, "memory_gb": 0}, {}, "'memory_gb' is 0"),
        ({**RECORD, **HELD, "memory_gb": float("nan")}, {}, "'memory_gb' is nan"),
        ({**RECORD, **HELD, "memory_gb": None}, {}, "'memory_gb' is None"),
        ({**RECORD, **HELD, "gpu_count": "1"}, {}, "'gpu_count' is '1'"),
    ],
)
def test_a_step_that_cannot_be_written_is_refused_and_not_kept(record, given, told):
    tracker = api.RLMetricsTracker()
    with pytest.raises(UserError, match=told):
        tracker.track(**{"record": record, "action": 13, "reward": 0.5, "verdicts": {}, **given})
    assert tracker.rows == [] and tracker.step == 0


def test_a_way_of_judging_a_table_that_there_is_not_is_refused():
    table = pd.DataFrame([RECORD, {**RECORD, "throughput": 100.0}])
    sla = api.SLAConfig(throughput_min=200.0)
    assert sla.check(table)["throughput"].verdict.met and not sla.check(table, "last")["throughput"].verdict.met
    for check in (sla.check, lambda table, how: api.check_table(table, sla, how)):
        with pytest.raises(UserError, match="did you mean 'last'"):
            check(table, "lst")
