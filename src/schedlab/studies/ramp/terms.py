"""The words of the ramp study's tables, for the glossary of the index."""

TERMS = {
    "blocking rate": "blocked jobs over arrived jobs",
    "degree": "number of shards that an op is split into",
    "beta": "share of its sequential time that a job may take; a job that would take longer is blocked",
    "speed-up": "sequential time of a job over its completion time",
    "sequential": "jobs run whole, on one server as far as memory allows",
    "smallest": "two shards an op, where more than one degree is valid",
    "para_max": "as many shards as are valid: maximum parallelisation",
    "para_min": "as few shards as the job's limit asks for, taking the speed-up for the number of shards",
    "random": "any valid number of shards",
    "sip_ml": "as many shards as are valid, at most a cap; a cap that is not valid rejects the job",
    "afterstate": "accepts a job, or not, by the value of the cluster afterwards: whether it is accepted plus a learned value",
    "table": "a degree for each degree that a limit needs, short and long jobs apart, tuned on training episodes",
    "rollouts": "plays each action on with drawn jobs under a base and takes the one that accepts most on average",
    "pac_ml": "the published learned agent, a graph network",
    "fixed": "always the same number of shards, or as far below as is valid",
}
