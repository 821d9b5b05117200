# Input functions of the adaptation study; included before its rules, which stand in adaptation.smk.
def adaptation_runs(wildcards):
    """The simulated replicates of a scenario, or the published table that takes their place."""
    values = EXPERIMENT.part_values("adaptation", wildcards.scenario, "tabulate")
    if values["source"] == "published":
        return [str(find_data(values["file"]))]
    return [
        EXPERIMENT.product("adaptation", wildcards.scenario, "simulate_adaptation", f"job-{job}-replicates-{first}-{last}.parquet")
        for job in values["jobs"]
        for first, last in values["spans"]
    ]
