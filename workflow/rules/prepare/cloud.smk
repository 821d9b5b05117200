# Checks the logs of a training job, if it has any, and fits its step-time model; the job's scenarios share both. Then
# computes the best plan of each scenario.
rule ingest_logs:
    input:
        config=results("cloud/inputs/ingest_logs-{key}/config.yaml"),
    output:
        steps=results("cloud/inputs/ingest_logs-{key}/step_times.parquet"),
        cores=results("cloud/inputs/ingest_logs-{key}/core_times.parquet"),
        report=results("cloud/inputs/ingest_logs-{key}/report.json"),
    log:
        results("cloud/inputs/ingest_logs-{key}/ingest_logs.log"),
    priority: FIRST
    threads: resource("ingest_logs", "threads")
    resources:
        mem_mb=resource("ingest_logs", "mem_mb"),
        runtime=resource("ingest_logs", "runtime"),
    script:
        "../../scripts/ingest_logs.py"


rule fit_performance:
    input:
        config=results("cloud/inputs/fit_performance-{key}/config.yaml"),
        steps=shared_need("fit_performance", "ingest_logs", "step_times.parquet", "cloud"),
        cores=shared_need("fit_performance", "ingest_logs", "core_times.parquet", "cloud"),
    output:
        model=results("cloud/inputs/fit_performance-{key}/model.json"),
    log:
        results("cloud/inputs/fit_performance-{key}/fit_performance.log"),
    priority: FIRST
    threads: resource("fit_performance", "threads")
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
    priority: FIRST
    threads: resource("solve_oracle", "threads")
    resources:
        mem_mb=resource("solve_oracle", "mem_mb"),
        runtime=resource("solve_oracle", "runtime"),
    script:
        "../../scripts/solve_oracle.py"
