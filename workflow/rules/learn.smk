rule learn:
    input:
        unpack(asks(learning_inputs)),
    output:
        policy=results("{study}/policies/{policy}/seed-{seed}/policy.zip"),
        curve=results("{study}/policies/{policy}/seed-{seed}/curve.parquet"),
        config=results("{study}/policies/{policy}/seed-{seed}/config.yaml"),
        origin=results("{study}/policies/{policy}/seed-{seed}/provenance.json"),
    log:
        results("{study}/policies/{policy}/seed-{seed}/logs/learn.log"),
    benchmark:
        results("{study}/policies/{policy}/seed-{seed}/benchmarks/learn.tsv")
    priority: SECOND
    threads: resource("learn", "threads")
    resources:
        mem_mb=resource("learn", "mem_mb"),
        runtime=resource("learn", "runtime"),
        gpu=signed(learning_gpus),
    params:
        inputs=asks(learning_tables),
        parent=asks(parent_checkpoint),
    script:
        "../scripts/learn.py"
