"""Get entries of the catalogue of data; a failure does not keep the others from being got."""

from schedlab.config.runtime.job_log import job_log

with job_log(snakemake.log[0]) as console:  # noqa: F821
    from pathlib import Path

    from schedlab.config.data_paths import chosen, read_catalogue
    from schedlab.config.errors import UserErrors
    from schedlab.config.runtime.download import data_folder, get_entries

    job = snakemake  # noqa: F821
    entries = chosen(read_catalogue(Path(job.params.conf)), job.params.entries)
    if failures := get_entries(entries, data_folder(), console):
        raise UserErrors(failures)
