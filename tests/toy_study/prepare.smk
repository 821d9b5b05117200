# The prepare rule of the toy.
rule draw_targets:
    input:
        config=part_config("draw_targets", "toy"),
    output:
        targets=results("toy/{scenario}/inputs/targets.json"),
    log:
        results("toy/{scenario}/logs/draw_targets.log"),
    localrule: True
    script:
        "draw_targets.py"
