# Data of others that scenarios of this scale need and this machine lacks: `snakemake fetch_data`, and with
# `--config fetch=true` at the begin of every run.
rule fetch_data:
    log:
        results("logs/fetch_data.log"),
    localrule: True
    params:
        entries=sorted(EXPERIMENT.to_get),
        conf=str(EXPERIMENT.folder),
    script:
        "../scripts/fetch_data.py"
