"""Learn one policy with one seed, or with several, one after the other."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import inputs_by_scenario, job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from functools import partial
    from pathlib import Path

    from schedlab.stages.earlier_outputs import make_or_take
    from schedlab.stages.learn_each import learn_each

    job = snakemake  # noqa: F821
    make = partial(
        learn_each,
        Path(job.input.config),
        inputs_by_scenario(job.params.inputs.items()),
        job.params.seeds,
        job.params.parents,
        job.output.policy,
        job.output.curve,
        job.output.config,
        job.output.origin,
    )
    make_or_take(make, Path(job.input.config), job.output, job.log[0])
