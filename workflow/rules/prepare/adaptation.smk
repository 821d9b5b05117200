# Data -> trunk (training without growth) -> simulated adaptations -> a table for each scenario. Scenarios with the same
# values share data and trunks.
rule check_data:
    input:
        config=results("adaptation/inputs/check_data-{key}/config.yaml"),
    output:
        data=results("adaptation/inputs/check_data-{key}/data.npz"),
        summary=results("adaptation/inputs/check_data-{key}/summary.json"),
    log:
        results("adaptation/inputs/check_data-{key}/check_data.log"),
    cache: CACHED
    priority: FIRST
    threads: resource("check_data", "threads")
    resources:
        mem_mb=resource("check_data", "mem_mb"),
        runtime=resource("check_data", "runtime"),
    script:
        "../../scripts/check_data.py"


rule train_trunk:
    input:
        config=results("adaptation/inputs/train_trunk-{key}/config.yaml"),
        data=shared_need("train_trunk", "check_data", "data.npz", "adaptation"),
    output:
        trunk=results("adaptation/inputs/train_trunk-{key}/trunk.parquet"),
    log:
        results("adaptation/inputs/train_trunk-{key}/train_trunk.log"),
    priority: FIRST
    threads: resource("train_trunk", "threads")
    resources:
        mem_mb=resource("train_trunk", "mem_mb"),
        runtime=resource("train_trunk", "runtime"),
    params:
        store=results("adaptation/store"),
    script:
        "../../scripts/train_trunk.py"


# The rule `simulate_adaptation`, once for each span of replicates, because a rule has a fixed number of outputs
# (docs/architecture.md).
for (first, last), spanned in adaptation_spans().items():

    rule:
        name:
            f"simulate_adaptation_{first}_{last}"
        input:
            config=part_config("simulate_adaptation", "adaptation"),
            data=part_product("check_data", "data.npz", "adaptation"),
            trunk=part_product("train_trunk", "trunk.parquet", "adaptation"),
        output:
            runs=[
                results(f"adaptation/{{scenario}}/inputs/job-{{job}}-replicate-{number}.parquet")
                for number in range(first, last + 1)
            ],
        log:
            results(f"adaptation/{{scenario}}/logs/simulate_adaptation-{{job}}-{first}-{last}.log"),
        wildcard_constraints:
            scenario="|".join(map(re.escape, spanned)),
        priority: FIRST
        threads: resource("simulate_adaptation", "threads")
        resources:
            mem_mb=resource("simulate_adaptation", "mem_mb"),
            runtime=resource("simulate_adaptation", "runtime"),
        params:
            replicates=list(range(first, last + 1)),
            store=results("adaptation/store"),
        script:
            "../../scripts/simulate_adaptation.py"


rule tabulate:
    input:
        config=part_config("tabulate", "adaptation"),
        runs=adaptation_runs,
    output:
        table=results("adaptation/{scenario}/inputs/table.parquet"),
    log:
        results("adaptation/{scenario}/logs/tabulate.log"),
    priority: FIRST
    threads: resource("tabulate", "threads")
    resources:
        mem_mb=resource("tabulate", "mem_mb"),
        runtime=resource("tabulate", "runtime"),
    script:
        "../../scripts/tabulate.py"
