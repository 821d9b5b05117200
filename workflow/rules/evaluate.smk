def evaluation_inputs(wildcards):
    study, scenario, bundle = wildcards.study, wildcards.scenario, wildcards.bundle
    bundles = EXPERIMENT.bundles(study, scenario)
    if bundle not in bundles:
        raise UserError(
            f"scenario '{scenario}' compares no '{bundle}'",
            expected="one of " + ", ".join(bundles),
        )
    found = {
        "config": results(f"{study}/{scenario}/config/evaluate-{bundle}.yaml"),
        **scenario_inputs(study, scenario),
    }
    if bundle != "rules":
        found["policies"] = [
            results(f"{study}/policies/{policy}/seed-{seed}/policy.zip")
            for policy in bundles[bundle]
            for seed in EXPERIMENT.policy(study, policy)["seeds"]
        ]
    return found


rule evaluate:
    input:
        unpack(asks(evaluation_inputs)),
    output:
        scores=results("{study}/{scenario}/evaluation/{bundle}.parquet"),
        details=directory(results("{study}/{scenario}/evaluation/{bundle}.details")),
    log:
        results("{study}/{scenario}/logs/evaluate-{bundle}.log"),
    benchmark:
        results("{study}/{scenario}/benchmarks/evaluate-{bundle}.tsv")
    threads: resource("evaluate", "threads")
    resources:
        mem_mb=resource("evaluate", "mem_mb"),
        runtime=resource("evaluate", "runtime"),
    script:
        "../scripts/evaluate.py"
