"""Words of the study's figures, as the index of the figures explains them."""

TERMS = {
    "sequence": "the decisions of a run, a digit each: `003` takes action 0 twice and then does nothing (the highest digit)",
    "replicate": "another order of the training images after the moment of growth, of the same job; measures noise",
    "job": "an initialisation of the network with its training up to the moment of growth",
    "trunk": "the training of a job without growth, which all scenarios share",
    "regret": "what a result loses to that of the best sequence on the same replicate; 0 is best",
    "rank": "place of a sequence among all of a scenario, 1 is best; without meaning where results differ by less than the noise",
    "ceiling": "what `exhaustive` reaches: no policy can do better on the same replicate, and no policy can know it beforehand",
    "noise": "standard deviation of one result around its sequence's mean, from the differences among replicates",
    "objective": "minus log-probability of the actions taken times their advantage; falls and rises with both, so it shows no progress",
    "never": "rule: no growth",
    "always-0": "rule: grows behind block 0 at every decision; `always-1`, `always-2` behind the others",
    "constant-011": "rule: this sequence, whatever the scenario; also `constant-100`",
    "random": "rule: every action equally probable, as the exact expectation over all sequences",
    "exhaustive": "oracle: reads the table that it is scored on and takes the best sequence; the ceiling",
}
