"""Score the policies of one evaluation job on one scenario."""

from schedlab.config.runtime.instructions import begin_job

begin_job()

from schedlab.config.runtime.job_log import inputs_by_scenario, job_log  # noqa: E402

with job_log(snakemake.log[0]):  # noqa: F821
    from functools import partial
    from pathlib import Path

    from schedlab.stages.earlier_outputs import make_or_take
    from schedlab.stages.evaluate import evaluate

    job = snakemake  # noqa: F821
    learned = {}
    for path in map(Path, job.input.get("policies", [])):
        learned[path.parent.parent.name, int(path.parent.name.removeprefix("seed-"))] = path
    origin = Path(job.output.scores).with_suffix(".provenance.json")
    make = partial(
        evaluate,
        Path(job.input.config),
        inputs_by_scenario(job.input.items()).get(job.wildcards.scenario, {}),
        learned,
        scores=Path(job.output.scores),
        details=Path(job.output.details),
        provenance=origin,
    )
    make_or_take(make, Path(job.input.config), [job.output.scores, job.output.details, origin], job.log[0])
