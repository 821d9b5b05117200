"""Train every sequence of growth decisions of some replicates, shared beginnings once."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.adaptation.prepare import simulate_adaptation

    job = snakemake  # noqa: F821
    device = simulate_adaptation(
        Path(job.input.config),
        int(job.wildcards.job),
        Path(job.input.data),
        Path(job.params.store),
        dict(zip(job.params.replicates, map(Path, job.output.runs), strict=True)),
    )
    for run in job.output.runs:
        write_origin(job, Path(run).with_suffix(".provenance.json"), [run], **device)
