"""Words of the study's figures, as the index of the figures explains them."""

TERMS = {
    "workload": "jobs that are submitted to the empty cluster one after the other; the unit that is scored, each with jobs of its own",
    "bounded slowdown": "turnaround time over run time of a job, at least 1; jobs shorter than 10 s count as 10 s long",
    "turnaround time": "from the submission of a job to its end",
    "makespan": "from the first submission to the last end",
    "utilisation": "share of the cores' time until the last end that jobs occupy, whether or not their slowest core lets them compute",
    "energy": "of all cores until the last end: a share of the full power while idle, more in proportion to what is computed",
    "energy-delay product": "energy times makespan",
    "pair": "a job policy and a core policy, as in shortest-high_mem_bw; the decision system starts jobs by it until one does not fit",
    "over-subscribed memory bandwidth": "the jobs on a processor want more than it has; then all of its busy cores run at 75 %",
    "best_fixed_pair": "rule: the pair that did best on the validation workloads, played throughout",
    "best_fixed_pair-equal": "rule: the same, found on the training workloads in as many episodes as a learner has",
    "easy-high_mem_bw": "rule: EASY backfilling, whose jobs get the cores of the processors with the most free memory bandwidth",
    "easy-sjf-high_mem_bw": "rule: the same, with the shortest requested time first",
    "fcfs": "rule: first come, first served; a job that does not fit holds all behind it",
    "sjf": "rule: shortest requested time first; a job that does not fit holds all behind it",
    "filler": "rule: in the order of arrival, every job that fits",
    "easy": "rule: EASY backfilling; jobs overtake where they cannot delay the first one",
    "easy-sjf": "rule: EASY backfilling with the shortest requested time first; `easy-f1`: with the smallest published score F1 first",
    "conservative": "rule: conservative backfilling; jobs overtake where they delay none",
}
