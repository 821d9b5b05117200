"""The script of the prepare rule draw_jobs."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]):
    from pathlib import Path

    from schedlab.config.runtime.parts import read_part
    from schedlab.config.runtime.provenance import write_origin
    from schedlab.stages import studies

    studies.load("my_study")  # adds the folder of the study to the import path
    from my_study.problem import draw_jobs

    draw_jobs(read_part(snakemake.input.config), Path(snakemake.output.jobs))
    write_origin(snakemake, Path(snakemake.output.jobs).with_suffix(".provenance.json"))
