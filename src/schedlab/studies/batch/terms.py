"""The words of the batch study's tables, for the glossary of the index."""

TERMS = {
    "bounded slowdown": "time from submission to end over run time, where a job shorter than 10 s counts as one of 10 s; at least 1",
    "window": "consecutive jobs, simulated apart",
    "fcfs": "first come, first served",
    "sjf": "the job of the shortest requested time first",
    "ljf": "the job of the longest requested time first",
    "smallest": "the job of the fewest processors first",
    "largest": "the job of the most processors first",
    "smallest_area": "the job of the smallest requested time times processors first",
    "f1": "log10(requested time) * processors + 870 * log10(submit time), lowest first; found by simulation and regression",
    "f2": "sqrt(requested time) * processors + 25600 * log10(submit time), lowest first",
    "f3": "requested time * processors + 6860000 * log10(submit time), lowest first",
    "f4": "requested time * sqrt(processors) + 530000 * log10(submit time), lowest first",
    "wfp3": "(wait / requested time)^3 * processors, highest first",
    "unicep": "wait / (log2(processors) * requested time), highest first",
    "planner": "simulates the queue as requested with each candidate first and takes the best; nothing is learned",
    **{
        f"{rule}_waiting": f"{rule} as the dissertation tested it: it waits until 128 jobs do, and the last 127 of a window never start"
        for rule in ("fcfs", "sjf", "smallest", "f1")
    },
    **{
        f"{base}_predicted": f"{what}, of what users' ended jobs let expect instead of requests; no search, no rollouts"
        for base, what in (
            ("f1", "f1's order"),
            ("shortest", "the shortest job first"),
            ("smallest_area", "the job of the least run time times processors first"),
            ("costly_per_area", "the job whose wait costs most slowdown for its run time and processors first"),
        )
    },
    "wfp3_legacy": "wfp3 as published, with a wait of -1 - submit time: upside down",
    "unicep_legacy": "unicep as published, with a wait of -1 - submit time: upside down",
}
