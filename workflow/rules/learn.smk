def learning_inputs(wildcards):
    study, policy = wildcards.study, wildcards.policy
    # `ancient`: the frozen part names what made each input by its hash, so a table that is made again with the same bytes
    # does not start the learning again, and one that would differ does.
    found = {
        "config": results(f"{study}/policies/{policy}/config/learn.yaml"),
        "scenarios": [
            ancient(path)
            for scenario in EXPERIMENT.training_scenarios(study, policy)
            for path in EXPERIMENT.inputs(study, scenario).values()
        ],
    }
    parent = EXPERIMENT.policy(study, policy)["parent"]
    if parent:
        found["parent"] = ancient(results(f"{study}/policies/{parent}/seed-{wildcards.seed}/policy.zip"))
    return found


rule learn:
    input:
        unpack(asks(learning_inputs)),
    output:
        policy=results("{study}/policies/{policy}/seed-{seed}/policy.zip"),
        curve=results("{study}/policies/{policy}/seed-{seed}/curve.parquet"),
        config=results("{study}/policies/{policy}/seed-{seed}/config.yaml"),
        provenance=results("{study}/policies/{policy}/seed-{seed}/provenance.json"),
    log:
        results("{study}/policies/{policy}/seed-{seed}/logs/learn.log"),
    benchmark:
        results("{study}/policies/{policy}/seed-{seed}/benchmarks/learn.tsv")
    threads: resource("learn", "threads")
    resources:
        mem_mb=resource("learn", "mem_mb"),
        runtime=resource("learn", "runtime"),
    params:
        inputs=lambda w: {scenario: EXPERIMENT.inputs(w.study, scenario) for scenario in EXPERIMENT.training_scenarios(w.study, w.policy)},
    script:
        "../scripts/learn.py"
