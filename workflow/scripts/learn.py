"""Learn one policy with one seed."""

from schedlab.config.runtime.instructions import begin_job
from schedlab.config.runtime.job_log import inputs_by_scenario, job_log

begin_job()
with job_log(snakemake.log[0]):  # noqa: F821
    from functools import partial
    from pathlib import Path

    from schedlab.stages.earlier_outputs import make_or_take
    from schedlab.stages.learn import learn

    job = snakemake  # noqa: F821
    make = partial(
        learn,
        Path(job.input.config),
        inputs_by_scenario(job.params.inputs.items()),
        Path(job.params.parent) if job.params.parent else None,
        seed=int(job.wildcards.seed),
        checkpoint=Path(job.output.policy),
        curve=Path(job.output.curve),
        config_copy=Path(job.output.config),
        provenance=Path(job.output.origin),
    )
    make_or_take(make, Path(job.input.config), job.output, job.log[0])
