# The rules of one run: one scale, with or without other values.
include: "experiment.smk"
include: "common.smk"
include: "progress.smk"


TARGETS = [
    *(target for study in EXPERIMENT.studies for target in study_targets(study)),
    plots("INDEX.md"),
    results("manifest.json"),
]


include: "inputs.smk"


report: start_of_report()


include: "learn.smk"
include: "evaluate.smk"
include: "summarise.smk"
include: "draw.smk"
include: "measure.smk"
include: "fetch.smk"
include: "report.smk"
include: "targets.smk"


for prepare_rules in PREPARE_RULES:

    include: prepare_rules
