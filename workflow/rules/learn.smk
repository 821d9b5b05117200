def learning_inputs(wildcards):
    study, policy = wildcards.study, wildcards.policy
    config = results(f"{study}/policies/{policy}/config/learn.yaml")
    if is_settled(study, policy, wildcards.seed):
        return {"config": config}
    found = {"config": config, "scenarios": list(learning_tables(wildcards).values())}
    if parent := parent_checkpoint(wildcards):
        found["parent"] = parent
    return found


def is_settled(study, policy, seed):
    """Whether the policy that lies there was learned from the part that is frozen now, which names all it learns from by hash.

    Then no job that makes one of its inputs again, after a deletion, shall start the learning again: the inputs are left out.
    (`ancient` does not do: it fails where the file is missing, and hides a change of the part where it is made in the same run.)
    Snakemake must not compare sets of inputs then, as the profiles say; and whoever forces jobs wants them in their order.
    """
    asked = workflow.dag_settings
    if asked.forceall or asked.forcerun or "INPUT" in {trigger.name for trigger in asked.rerun_triggers}:
        return False
    part = Path(results(f"{study}/policies/{policy}/config/learn.yaml"))
    made = Path(results(f"{study}/policies/{policy}/seed-{seed}"))
    text, changed = EXPERIMENT.once(("part file", study, policy), lambda: (part.read_bytes(), part.stat().st_mtime))
    try:
        oldest = min((made / name).stat().st_mtime for name in ("policy.zip", "curve.parquet", "config.yaml"))
        return oldest >= changed and (made / "config.yaml").read_bytes() == text
    except OSError:
        return False


def learning_tables(wildcards):
    """The inputs of all scenarios learned on, as '<scenario>/<name>' -> file."""
    study = wildcards.study
    scenarios = EXPERIMENT.training_scenarios(study, wildcards.policy)
    return {name: path for scenario in scenarios for name, path in scenario_inputs(study, scenario).items()}


def parent_checkpoint(wildcards):
    """The checkpoint that learning starts from, or None."""
    parent = EXPERIMENT.policy(wildcards.study, wildcards.policy)["parent"]
    return results(f"{wildcards.study}/policies/{parent}/seed-{wildcards.seed}/policy.zip") if parent else None


rule learn:
    input:
        unpack(asks(learning_inputs)),
    output:
        policy=results("{study}/policies/{policy}/seed-{seed}/policy.zip"),
        curve=results("{study}/policies/{policy}/seed-{seed}/curve.parquet"),
        config=results("{study}/policies/{policy}/seed-{seed}/config.yaml"),
    log:
        results("{study}/policies/{policy}/seed-{seed}/logs/learn.log"),
    benchmark:
        results("{study}/policies/{policy}/seed-{seed}/benchmarks/learn.tsv")
    threads: resource("learn", "threads")
    resources:
        mem_mb=resource("learn", "mem_mb"),
        runtime=resource("learn", "runtime"),
    params:
        inputs=learning_tables,
        parent=parent_checkpoint,
    script:
        "../scripts/learn.py"
