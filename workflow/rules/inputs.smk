# Input functions of the stages. Names and paths come from the experiment. The rules are in the files of their stages.
LEARNED = {
    "policy": "policy.zip",
    "curve": "curve.parquet",
    "config": "config.yaml",
    "origin": "provenance.json",
}


def learned_files(folder, seeds=("{seed}",)):
    """What is learned with each seed, below the folder of a policy."""
    return {kind: [results(f"{folder}/seed-{seed}/{name}") for seed in seeds] for kind, name in LEARNED.items()}


def learning_inputs(study, policy, seeds):
    """What a job reads that learns a policy with some seeds."""
    config = results(f"{study}/policies/{policy}/config/learn.yaml")
    if all(is_settled(study, policy, seed) for seed in seeds):
        return {"config": config}
    found = {"config": config, "scenarios": list(learning_tables(study, policy).values())}
    if parents := [parent for parent in parent_checkpoints(study, policy, seeds) if parent]:
        found["parent"] = parents
    return found


def of_learning(function, study="", seeds=()):
    """Input function of a job that learns, from a function of study, policy and seeds. What is not given here is a
    wildcard of the job.
    """
    return asks(lambda w: function(study or w.study, w.policy, seeds or [w.seed]))


def is_settled(study, policy, seed):
    """Whether the existing policy was learned from the present frozen part, which contains the hashes of all inputs.

    The inputs of such a policy are left out. Otherwise, when a deleted input is made again, the policy would be learned
    again too. (`ancient` is no solution: it fails if the file is missing, and hides a change of the part that is made
    in the same run.) The profiles keep Snakemake from comparing sets of inputs. If jobs are forced, or if sets of
    inputs are compared all the same, the answer is False.
    """
    asked = workflow.dag_settings
    if asked.forceall or asked.forcerun or "INPUT" in {trigger.name for trigger in asked.rerun_triggers}:
        return False
    part = Path(results(f"{study}/policies/{policy}/config/learn.yaml"))
    made = Path(results(f"{study}/policies/{policy}/seed-{seed}"))
    try:
        oldest = min((made / name).stat().st_mtime for name in ("policy.zip", "curve.parquet", "config.yaml"))
        return oldest >= part.stat().st_mtime and (made / "config.yaml").read_bytes() == part.read_bytes()
    except OSError:
        return False


def learning_tables(study, policy, seeds=()):
    """The inputs of all scenarios learned on, as '<scenario>/<name>' -> file, the same for all seeds."""
    scenarios = EXPERIMENT.training_scenarios(study, policy)
    return {name: path for scenario in scenarios for name, path in scenario_inputs(study, scenario).items()}


def parent_checkpoints(study, policy, seeds):
    """The checkpoint that learning starts from with each seed, or ""."""
    parent = EXPERIMENT.policy(study, policy)["parent"]
    return [results(f"{study}/policies/{parent}/seed-{seed}/policy.zip") if parent else "" for seed in seeds]


def learning_gpus(wildcards, attempt, study=""):
    """GPUs that a learning job requests from the cluster: one if its learner has `device: cuda`, but none from the
    third attempt on. With `device: auto` it requests none and uses a GPU if there is one.

    If the cluster has refused the job twice because of its GPU, the job therefore learns on the CPU.
    """
    with plain_errors():
        device = EXPERIMENT.policy(study or wildcards.study, wildcards.policy)["params"].get("device", "cpu")
    return int(device == "cuda" and attempt < 3)


def evaluation_inputs(wildcards):
    study, scenario, bundle = wildcards.study, wildcards.scenario, wildcards.bundle
    bundles = EXPERIMENT.bundles(study, scenario)
    if bundle not in bundles:
        raise UserError(
            f"scenario '{scenario}' compares no '{bundle}'",
            expected="one of " + ", ".join(bundles),
        )
    found = {
        "config": results(f"{study}/{scenario}/config/evaluate-{bundle}.yaml"),
        **scenario_inputs(study, scenario),
    }
    if bundle != "rules":
        found["policies"] = [
            results(f"{study}/policies/{policy}/seed-{seed}/policy.zip")
            for policy in bundles[bundle]
            for seed in EXPERIMENT.policy(study, policy)["seeds"]
        ]
    return found


def reported_figure(study, figure):
    """A figure as the report shows it, with the caption that its drawing wrote."""
    title = EXPERIMENT.studies[study].figures[figure]["title"]
    return reported(
        plots(f"{study}/{figure}.svg"), study, title, caption=str(Path(plots(f"{study}/{figure}.rst")).absolute())
    )


def reported(path, category, title, caption=None):
    """An output that the report shows under its title. The report is embedded in a script element; an invisible word
    joiner after each `<` prevents that a title ends this element.
    """
    return report(path, caption=caption, category=category, labels={"title": title.replace("<", "<\u2060")})


def start_of_report():
    """The report's first page: the headlines where they have been written, else what the report is."""
    page = Path(plots("report/start.rst")).absolute()
    return str(page) if page.is_file() else str(CHECKOUT / "workflow/report/workflow.rst")


# For error messages about files that no rule makes (targets.smk).
FORMS = ("svg", "pdf", "png", "txt", "rst")
RUN = EXPERIMENT.run
OTHER_SCALES = [name for name in option_names(EXPERIMENT.folder / "scale") if name != RUN]


def made_figures():
    """A regular expression that matches every file that some rule makes below plots/."""
    drawn = {study: "|".join(map(re.escape, study_figures(study))) for study in EXPERIMENT.studies}
    files = [rf"{study}/(?:(?:{names})\.(?:{'|'.join(FORMS)})|figures\.json)" for study, names in drawn.items()]
    return rf"{re.escape(RUN)}/(?:INDEX\.md|report/.*|{'|'.join(files)})"


def explain_figure(wildcards):
    """Raise UserError for a file below plots/ that no rule makes; the message suggests the intended one."""
    target = f"plots/{wildcards.unmade}"
    scale, _, rest = wildcards.unmade.partition("/")
    if scale != RUN:
        refuse_scale(target, scale)
    study, _, name = rest.partition("/")
    if study not in EXPERIMENT.studies:
        raise UserError(f"there is no study '{study}'", where=target, remedy=did_you_mean(study, EXPERIMENT.studies))
    figure, _, form = name.rpartition(".")
    EXPERIMENT.check_figure(study, figure or name)
    raise UserError(f"no figure is written as '{form}'", where=target, expected="one of " + ", ".join(FORMS))


def refuse_scale(target, scale):
    """Raise UserError for a file of another scale."""
    remedy = f"add --config scale={scale}" if scale in OTHER_SCALES else did_you_mean(scale, [RUN, *OTHER_SCALES])
    raise UserError(f"it lies at scale '{scale}', and this run is at '{RUN}'", where=target, remedy=remedy)
