# Platform -> workloads for it. Scenarios of one platform and workload share both.
rule generate_platform:
    input:
        config=results("hetero/inputs/generate_platform-{key}/config.yaml"),
    output:
        platform=results("hetero/inputs/generate_platform-{key}/platform.xml"),
        resources=results("hetero/inputs/generate_platform-{key}/resources.json"),
    log:
        results("hetero/inputs/generate_platform-{key}/generate_platform.log"),
    priority: FIRST
    threads: resource("generate_platform", "threads")
    resources:
        mem_mb=resource("generate_platform", "mem_mb"),
        runtime=resource("generate_platform", "runtime"),
    script:
        "../../scripts/generate_platform.py"


rule trim_workload:
    input:
        config=results("hetero/inputs/trim_workload-{key}/config.yaml"),
        resources=shared_need("trim_workload", "generate_platform", "resources.json", "hetero"),
    output:
        workloads=results("hetero/inputs/trim_workload-{key}/workloads.zip"),
        report=results("hetero/inputs/trim_workload-{key}/report.json"),
    log:
        results("hetero/inputs/trim_workload-{key}/trim_workload.log"),
    priority: FIRST
    threads: resource("trim_workload", "threads")
    resources:
        mem_mb=resource("trim_workload", "mem_mb"),
        runtime=resource("trim_workload", "runtime"),
    script:
        "../../scripts/trim_workload.py"
