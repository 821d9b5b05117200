# Input functions of the adaptation study; included before its rules in adaptation.smk.
import re

from schedlab.config.data_paths import find_data


def adaptation_runs(wildcards):
    """The simulated replicates of a scenario, or the published table that takes their place."""
    values = EXPERIMENT.part_values("adaptation", wildcards.scenario, "tabulate")
    if values["source"] == "published":
        return [str(find_data(values["file"]))]
    return [
        EXPERIMENT.product(
            "adaptation", wildcards.scenario, "simulate_adaptation", f"job-{job}-replicate-{replicate}.parquet"
        )
        for job in values["jobs"]
        for replicate in range(values["replicates"])
    ]


def adaptation_spans():
    """(first, last) replicate of a simulation job -> the scenarios that have such a job."""
    found = {}
    for scenario, record in (
        EXPERIMENT.studies["adaptation"].scenarios.items() if "adaptation" in EXPERIMENT.studies else ()
    ):
        if "simulate_adaptation" in record["parts"]:
            for first, last in record["parts"]["simulate_adaptation"]["spread"]["spans"]:
                found.setdefault((first, last), []).append(scenario)
    return found
