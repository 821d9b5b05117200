# What all rules share: names in paths, targets, input functions, resources. EXPERIMENT (experiment.smk) answers all
# questions about studies, so no rule depends on the details of one.
from functools import partial
from inspect import signature

from schedlab.config.settings import resource as asked_for


# Names in paths.
wildcard_constraints:
    study="[a-z0-9_]+",
    scenario="[a-z0-9][a-z0-9._-]*",
    policy="[a-z0-9][a-z0-9._-]*",
    bundle="[a-z0-9][a-z0-9._-]*",
    seed=r"\d+",
    key="[0-9a-f]{12}",


def results(path):
    """Path below this scale's results; wildcards stay as they are."""
    return f"{EXPERIMENT.results}/{path}"


def plots(path):
    """Path below this scale's figures."""
    return f"{EXPERIMENT.plots}/{path}"


# Targets: what a study makes in the end.
def study_figures(study):
    """Names of the figures that a study draws at this scale."""
    return list(EXPERIMENT.studies[study].figures)


def study_targets(study):
    """What a study makes in the end: its summary and headline, its figures, and its scores. The scores are targets, so
    those in a deleted folder of a scenario are made again.
    """
    if not EXPERIMENT.studies[study].scenarios:
        return []
    figures = [
        plots(f"{study}/{figure}.{form}") for figure in study_figures(study) for form in ("svg", "pdf", "png", "rst")
    ]
    tables = [results(f"{study}/{table}.parquet") for table in ("summary", "headline")]
    return [*tables, *figures, *evaluations(study, ".parquet")]


def evaluations(study, name):
    """One output of every evaluation job of a study."""
    return [
        results(f"{study}/{scenario}/evaluation/{bundle}{name}")
        for scenario in EXPERIMENT.studies[study].scenarios
        for bundle in EXPERIMENT.bundles(study, scenario)
    ]


def learned(study, name):
    """One output of every learning job of a study."""
    return [
        results(f"{study}/policies/{policy}/seed-{seed}/{name}")
        for policy in EXPERIMENT.compared_policies(study)
        for seed in EXPERIMENT.policy(study, policy)["seeds"]
    ]


# Input functions: files that a job asks for by the wildcards of its outputs.
def signed(function):
    """Store a function's signature in it. Snakemake inspects it at each of thousands of calls, which otherwise takes
    longer than most of the functions.
    """
    function.__signature__ = signature(function)
    return function


def asks(function):
    """Return the input function with its UserErrors, as for an unknown scenario or policy, shown as a plain message."""

    def ask(wildcards):
        with plain_errors():
            return function(wildcards)

    return signed(ask)


def scenario_inputs(study, scenario):
    """A scenario's inputs as '<scenario>/<name>' -> file, for the names of a rule's inputs; job_log.inputs_by_scenario
    reads them back.
    """
    return {f"{scenario}/{name}": path for name, path in EXPERIMENT.inputs(study, scenario).items()}


def part_product(part, name, study):
    """Input function: a file that a prepare part makes for the scenario in the wildcards."""
    return asks(lambda w: EXPERIMENT.product(study, w.scenario, part, name))


def part_config(part, study):
    """Input function: the frozen configuration of a scenario's own prepare part."""
    return asks(lambda w: EXPERIMENT.part_file(study, w.scenario, part))


def shared_need(part, need, name, study):
    """Input function: what a shared part reads of another shared part, found through any scenario that has it; nothing
    where that scenario has no such need.
    """

    def find(wildcards):
        folder = results(f"{study}/inputs/{part}-{wildcards.key}")
        for scenario in EXPERIMENT.studies[study].scenarios:
            parts = EXPERIMENT.scenario(study, scenario)["parts"]
            if part in parts and EXPERIMENT.part_folder(study, scenario, part) == folder:
                return EXPERIMENT.product(study, scenario, need, name) if need in parts else []
        raise UserError(f"no scenario of study '{study}' uses {folder}")

    return asks(find)


# Priorities. Jobs that most others wait for run first: inputs, then learning, whose jobs are the longest. The scores
# of rules, for which only a summary waits, use the cores that are left.
FIRST, SECOND = 2, 1


# Shared between workflows, with `--cache`: products of rules that read nothing but their frozen part. (A plain `True`
# would have Snakemake warn at every start without the option.)
CACHED = workflow.workflow_settings.cache is not None


# Resources.
def resource(rule_name, key, study=""):
    """Input function: a resource of a workflow rule from conf/scale/ and conf/study/, for the study given or in the
    wildcards, if there is one. Memory and run time double with each attempt.
    """
    asked = EXPERIMENT.resources

    def ask(wildcards, attempt):
        value = asked_for(asked, rule_name, key, study or wildcards.get("study", ""))
        return value * 2 ** (attempt - 1) if key in ("mem_mb", "runtime") else value

    return signed(ask)
