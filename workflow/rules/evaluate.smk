rule evaluate:
    input:
        unpack(asks(evaluation_inputs)),
    output:
        scores=results("{study}/{scenario}/evaluation/{bundle}.parquet"),
        details=directory(results("{study}/{scenario}/evaluation/{bundle}.details")),
    log:
        results("{study}/{scenario}/logs/evaluate-{bundle}.log"),
    threads: resource("evaluate", "threads")
    resources:
        mem_mb=resource("evaluate", "mem_mb"),
        runtime=resource("evaluate", "runtime"),
    script:
        "../scripts/evaluate.py"
