# The graphs of training jobs. Scenarios of one set of graphs share them.
rule trace_graphs:
    input:
        config=results("ramp/inputs/trace_graphs-{key}/config.yaml"),
    output:
        graphs=results("ramp/inputs/trace_graphs-{key}/graphs.zip"),
        report=results("ramp/inputs/trace_graphs-{key}/report.json"),
    log:
        results("ramp/inputs/trace_graphs-{key}/trace_graphs.log"),
    cache: CACHED
    priority: FIRST
    threads: resource("trace_graphs", "threads")
    resources:
        mem_mb=resource("trace_graphs", "mem_mb"),
        runtime=resource("trace_graphs", "runtime"),
    script:
        "../../scripts/trace_graphs.py"
