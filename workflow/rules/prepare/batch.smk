# The trace whose windows are simulated. Scenarios of one workload share it.
rule make_trace:
    input:
        config=results("batch/inputs/make_trace-{key}/config.yaml"),
    output:
        trace=results("batch/inputs/make_trace-{key}/trace.swf.gz"),
        report=results("batch/inputs/make_trace-{key}/report.json"),
    log:
        results("batch/inputs/make_trace-{key}/make_trace.log"),
    priority: FIRST
    threads: resource("make_trace", "threads")
    resources:
        mem_mb=resource("make_trace", "mem_mb"),
        runtime=resource("make_trace", "runtime"),
    script:
        "../../scripts/make_trace.py"
