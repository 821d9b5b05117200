# Regenerates every figure: `snakemake --cores all`, or `snakemake --cores all adaptation` for one study. What there is
# to run is read from conf/ (see workflow/rules/experiment.smk); the rules below are the same for every study.
from snakemake.utils import min_version

min_version("9.0")


container: "schedlab.sif"  # built from workflow/envs/; read with --software-deployment-method apptainer alone


include: "workflow/rules/experiment.smk"
include: "workflow/rules/common.smk"
include: "workflow/rules/progress.smk"


rule all:
    default_target: True
    input:
        [target for study in EXPERIMENT.studies for target in study_targets(study)],
        plots("INDEX.md"),
        results("manifest.json"),


include: "workflow/rules/inputs.smk"


report: start_of_report()


include: "workflow/rules/learn.smk"
include: "workflow/rules/evaluate.smk"
include: "workflow/rules/summarise.smk"
include: "workflow/rules/draw.smk"
include: "workflow/rules/measure.smk"
include: "workflow/rules/report.smk"
include: "workflow/rules/targets.smk"


for prepare_rules in PREPARE_RULES:

    include: prepare_rules
