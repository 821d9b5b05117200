# The pages of the report that are not figures. `make report` makes them and then builds the report. No other target
# needs them.
REPORTED_STUDIES = [study for study in EXPERIMENT.studies if study_targets(study)]


rule write_report_pages:
    input:
        TARGETS,
        summaries=[results(f"{study}/summary.parquet") for study in REPORTED_STUDIES],
        headlines=[results(f"{study}/headline.parquet") for study in REPORTED_STUDIES],
        comparisons=[results(f"{study}/comparisons.parquet") for study in REPORTED_STUDIES],
        curves=[results(f"{study}/curves.parquet") for study in REPORTED_STUDIES],
        details=[results(f"{study}/details") for study in REPORTED_STUDIES],
        claims=[
            str(path)
            for study in REPORTED_STUDIES
            for path in [EXPERIMENT.folder / f"claims/{study}.yaml"]
            if path.is_file()
        ],
    output:
        results=[reported(plots(f"report/{study}.html"), study, "Table of all policies") for study in REPORTED_STUDIES],
        claims=reported(plots("report/claims.html"), "overview", "Published numbers and ours"),
        benchmarks=reported(plots("report/benchmarks.html"), "overview", "Time and memory of the jobs"),
        interactive=reported(plots("report/interactive.html"), "overview", "Interactive curves and Gantt charts"),
        start=plots("report/start.rst"),
    log:
        results("logs/write_report_pages.log"),
    localrule: True
    params:
        studies=REPORTED_STUDIES,
        scale=SCALE,
        asked={study: EXPERIMENT.studies[study].settings["headline"] for study in REPORTED_STUDIES},
    script:
        "../scripts/write_report_pages.py"
