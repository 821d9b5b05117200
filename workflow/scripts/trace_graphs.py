"""Trace, draw or read the graphs of a scenario's jobs."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.provenance import write_origin
    from schedlab.studies.ramp.graphs.prepare import trace_graphs

    job = snakemake  # noqa: F821
    trace_graphs(Path(job.input.config), Path(job.output.graphs), Path(job.output.report))
    write_origin(job, Path(job.output.graphs).with_name("provenance.json"))
