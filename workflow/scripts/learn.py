"""Learn one policy with one seed."""

from schedlab.config.job_log import job_log, one_thread

one_thread()
with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.stages.learn import learn

    job = snakemake  # noqa: F821
    learn(
        Path(job.input.config),
        {scenario: {name: Path(path) for name, path in files.items()} for scenario, files in job.params.inputs.items()},
        Path(job.input.parent) if job.input.get("parent") else None,
        seed=int(job.wildcards.seed),
        checkpoint=Path(job.output.policy),
        curve=Path(job.output.curve),
        config_copy=Path(job.output.config),
        provenance=Path(job.output.provenance),
    )
