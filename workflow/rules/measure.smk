# Measurements of a machine: asked for by name alone, never by a study's target. They differ from run to run.
rule measure_device_speed:
    output:
        "results/measured/device_speed/{device}.json",
    log:
        "results/measured/device_speed/{device}.log",
    wildcard_constraints:
        device="cpu|cuda|mps",
    threads: 1  # swept in powers of two from 1 on; a profile sets more (set-threads)
    resources:
        mem_mb=resource("default", "mem_mb"),
        runtime=resource("default", "runtime"),
    script:
        "../scripts/measure_device_speed.py"
