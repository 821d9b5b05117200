"""What the objectives of the hetero study favour, and what the queue's variation tells: python
benchmarks/hetero_choices.py

300 jobs on Gaia, as in benchmarks/hetero.py. First table: for each objective the pair (of all 36, each played
throughout) with the largest time-weighted sum of rewards, and what users and operators get from it. Second table: for
each queue sensitivity the share of decisions at which the variation of the queue is 0.5 (as long as before), at an end
(0 or 1), and how many values it takes.
"""

from __future__ import annotations

from hetero import PAIRS, inputs

from schedlab.studies.hetero.env.objectives import OBJECTIVES
from schedlab.studies.hetero.env.settings import ALL_PAIRS, DecisionSettings
from schedlab.studies.hetero.simulator.episode import Cluster, Episode, Jobs

JOBS = 300
SENSITIVITIES = (0.01, 0.05, 0.2, 1.0, 5.0)
HOUR, GIGA = 3600.0, 1e9


def main() -> None:
    """Print both tables."""
    cluster, jobs = inputs("gaia", JOBS)
    print(f"{'objective':20} {'best pair':24} {'slowdown':>9} {'wait h':>8} {'makespan h':>11} {'energy GJ':>10}")
    for objective in OBJECTIVES:
        found = {pair: play(cluster, jobs, pair, objective) for pair in ALL_PAIRS}
        best = max(found, key=lambda pair: found[pair][0])
        scores = found[best][1]
        told = (
            scores["mean_slowdown"],
            scores["mean_waiting_time"] / HOUR,
            scores["makespan"] / HOUR,
            scores["consumed_joules"] / GIGA,
        )
        print("{:20} {:24} {:9.1f} {:8.1f} {:11.0f} {:10.2f}".format(objective, best, *told), flush=True)
    print(f"\n{'sensitivity':>11} {'at 0.5':>7} {'at 0 or 1':>10} {'values':>7}")
    for sensitivity in SENSITIVITIES:
        seen = variations(cluster, jobs, sensitivity)
        ends, same = (sum(value in wanted for value in seen) / len(seen) for wanted in ((0.0, 1.0), (0.5,)))
        print(f"{sensitivity:11} {same:7.0%} {ends:10.0%} {len(set(seen)):7}", flush=True)


def play(cluster: Cluster, jobs: Jobs, pair: str, objective: str) -> tuple[float, dict[str, float]]:
    """Return the time-weighted sum of rewards of a pair and Batsim's totals."""
    episode = Episode(
        cluster, jobs, DecisionSettings(selection=(pair,), void=False, objective=objective, time_weighted=True), 0
    )
    while episode.advance():
        episode.decide(0)
    return sum(episode.history.rewards), episode.scores()


def variations(cluster: Cluster, jobs: Jobs, sensitivity: float) -> list[float]:
    """Return the variation of the queue at each decision."""
    settings = DecisionSettings(selection=PAIRS[:1], void=False, observation="minimal", queue_sensitivity=sensitivity)
    episode, seen = Episode(cluster, jobs, settings, 0), []
    while episode.advance():
        seen.append(float(episode.observe()[-1]))
        episode.decide(0)
    return seen


if __name__ == "__main__":
    main()
