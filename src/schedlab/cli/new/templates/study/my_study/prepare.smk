# The prepare rules: each reads a frozen part of a scenario (`parts` in study.py) and writes its inputs (`inputs`).
rule draw_jobs:
    input:
        config=part_config("draw_jobs", "my_study"),
    output:
        jobs=results("my_study/{scenario}/inputs/jobs.json"),
    log:
        results("my_study/{scenario}/logs/draw_jobs.log"),
    localrule: True
    script:
        "draw_jobs.py"
