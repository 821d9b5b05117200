# Regenerates every figure: `snakemake --cores all`, or `snakemake --cores all adaptation` for one study. What there is
# to run is read from conf/ (see workflow/rules/experiment.smk); the rules are the same for every study.
from snakemake.utils import min_version

min_version("9.0")


container: "schedlab.sif"  # built from workflow/envs/; read with --software-deployment-method apptainer alone


include: "workflow/rules/library.smk"
include: "workflow/rules/sweep.smk" if config.get("sweep") else "workflow/rules/one_run.smk"


rule all:  # here, since Snakemake takes no default target from a file that is included
    default_target: True
    input:
        TARGETS,
