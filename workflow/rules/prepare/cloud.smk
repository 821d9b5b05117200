# The step-time model of a training job (shared by its scenarios), and what the best plan reaches in each scenario.
rule fit_performance:
    input:
        config=results("cloud/inputs/fit_performance-{key}/config.yaml"),
    output:
        model=results("cloud/inputs/fit_performance-{key}/model.json"),
    log:
        results("cloud/inputs/fit_performance-{key}/fit_performance.log"),
    benchmark:
        results("cloud/inputs/fit_performance-{key}/fit_performance.tsv")
    priority: FIRST
    resources:
        mem_mb=resource("fit_performance", "mem_mb"),
        runtime=resource("fit_performance", "runtime"),
    script:
        "../../scripts/fit_performance.py"


rule solve_oracle:
    input:
        config=part_config("solve_oracle", "cloud"),
        model=part_product("fit_performance", "model.json", "cloud"),
    output:
        oracle=results("cloud/{scenario}/inputs/oracle.json"),
    log:
        results("cloud/{scenario}/logs/solve_oracle.log"),
    benchmark:
        results("cloud/{scenario}/benchmarks/solve_oracle.tsv")
    priority: FIRST
    resources:
        mem_mb=resource("solve_oracle", "mem_mb"),
        runtime=resource("solve_oracle", "runtime"),
    script:
        "../../scripts/solve_oracle.py"
