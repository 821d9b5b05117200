# The policies whose seeds one job learns, which the rule of a single seed leaves to that job's.
TOGETHER = {study: EXPERIMENT.seeds_together(study) for study in EXPERIMENT.studies}
LEARNED_TOGETHER = "|".join(
    re.escape(f"{study}/policies/{policy}")
    for study, by_seeds in TOGETHER.items()
    for policies in by_seeds.values()
    for policy in policies
)


rule learn:
    input:
        unpack(of_learning(learning_inputs)),
    output:
        **learned_files("{study}/policies/{policy}"),
    log:
        results("{study}/policies/{policy}/seed-{seed}/logs/learn.log"),
    wildcard_constraints:
        study=f"(?!(?:{LEARNED_TOGETHER or '(?!)'})/)[a-z0-9_]+",
    priority: SECOND
    threads: resource("learn", "threads")
    resources:
        mem_mb=resource("learn", "mem_mb"),
        runtime=resource("learn", "runtime"),
        gpu=signed(learning_gpus),
    params:
        inputs=of_learning(learning_tables),
        parents=of_learning(parent_checkpoints),
        seeds=lambda w: [int(w.seed)],
    script:
        "../scripts/learn.py"


for learned_study, seeds_of_study in TOGETHER.items():
    for number, (learned_seeds, learned_policies) in enumerate(seeds_of_study.items()):

        rule:
            name:
                f"learn_{learned_study}{f'_{number}' if number else ''}"
            input:
                unpack(of_learning(learning_inputs, learned_study, learned_seeds)),
            output:
                **learned_files(f"{learned_study}/policies/{{policy}}", learned_seeds),
            log:
                results(f"{learned_study}/policies/{{policy}}/logs/learn.log"),
            wildcard_constraints:
                policy="|".join(map(re.escape, learned_policies)),
            priority: SECOND
            threads: resource("learn", "threads", learned_study)
            resources:
                mem_mb=resource("learn", "mem_mb", learned_study),
                runtime=resource("learn", "runtime", learned_study),
                gpu=signed(partial(learning_gpus, study=learned_study)),
            params:
                inputs=of_learning(learning_tables, learned_study, learned_seeds),
                parents=of_learning(parent_checkpoints, learned_study, learned_seeds),
                seeds=list(learned_seeds),
            script:
                "../scripts/learn.py"
