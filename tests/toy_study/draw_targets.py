"""Draw the hidden targets of one scenario of the toy."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]):  # noqa: F821
    from pathlib import Path

    from schedlab.config.runtime.parts import read_part
    from schedlab.config.runtime.provenance import write_origin
    from schedlab.stages import studies

    studies.load("toy")  # puts the folder of the toy on the path
    from toy_study.study import draw_targets

    job = snakemake  # noqa: F821
    draw_targets(read_part(job.input.config), Path(job.output.targets))
    write_origin(job, Path(job.output.targets).with_suffix(".provenance.json"))
