"""Words of the study's figures, as the index of the figures explains them."""

TERMS = {
    "preference": "what the user weighs most: time, cost, use of what is paid for, or all alike (balanced)",
    "objective": "weighted sum of training time, cost (each over that of the best constant allocation for it) and waste",
    "waste": "mean share of GPUs and cores that is paid for and not used",
    "regret": "objective beyond that of the best plan, over that of random actions beyond the best plan: 0 is best, 1 is random",
    "front": "the plans that no other one beats in both training time and cost",
    "hypervolume": "area that policies cover between them and a reference point, as a share of the front's: 1 is the front itself",
    "service level": "a limit on time, cost, throughput, memory, or the use of GPUs or cores",
    "severity": "by how much a service level is violated, as a share of its limit; 0 where it is met",
    "restart": "a change of the allocation stops the job for 30 s that are paid for",
    "static_start": "rule: stays on the allocation that the job is submitted with",
    "static_max": "rule: goes to the largest allocation and stays",
    "static_min": "rule: goes to the smallest allocation that holds the job and stays",
    "static_default": "rule: goes to what the published predictor suggests for a model of this size and stays",
    "random": "rule: any action that leaves the job the memory it needs",
    "threshold": "rule: an autoscaler; a GPU more where they are busy and the job is late, one fewer where they idle",
    "horizontal": "rule: an autoscaler; as many GPUs as bring their utilisation to 80 %",
    "goodput_greedy": "rule: the neighbour of the smallest objective, were it kept to the end, by the performance model",
    "options": "rule: a step towards what the published rules of thumb offer for the preference",
    "oracle_static": "oracle: goes to the allocation that is best to go to and stay on",
    "oracle_dynamic": "oracle: the best plan, found by dynamic programming over intervals and allocations",
}
