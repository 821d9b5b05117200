for drawn_study in EXPERIMENT.studies:

    rule:
        name:
            f"draw_{drawn_study}"
        input:
            **{
                name: path
                for scenario in EXPERIMENT.studies[drawn_study].scenarios
                for name, path in scenario_inputs(drawn_study, scenario).items()
            },
            config=results(f"{drawn_study}/config/draw.yaml"),
            scores=results(f"{drawn_study}/scores.parquet"),
            curves=results(f"{drawn_study}/curves.parquet"),
            summary=results(f"{drawn_study}/summary.parquet"),
            comparisons=results(f"{drawn_study}/comparisons.parquet"),
            details=results(f"{drawn_study}/details"),
            again=draw_again(drawn_study),
        output:
            shown=[reported_figure(drawn_study, figure) for figure in study_figures(drawn_study)],
            figures=[
                plots(f"{drawn_study}/{figure}.{form}")
                for figure in study_figures(drawn_study)
                for form in ("pdf", "png", "txt", "rst")
            ],
            index=plots(f"{drawn_study}/figures.json"),
        log:
            results(f"{drawn_study}/logs/draw.log"),
        threads: resource("draw", "threads")
        resources:
            mem_mb=resource("draw", "mem_mb"),
            runtime=resource("draw", "runtime"),
        script:
            "../scripts/draw.py"

    rule:
        name:
            drawn_study
        input:
            study_targets(drawn_study),


rule index_figures:
    input:
        [plots(f"{study}/figures.json") for study in EXPERIMENT.studies if study_targets(study)],
        headlines=[results(f"{study}/headline.parquet") for study in EXPERIMENT.studies if study_targets(study)],
    output:
        index=plots("INDEX.md"),
        manifest=results("manifest.json"),
    log:
        results("logs/index_figures.log"),
    localrule: True
    script:
        "../scripts/index_figures.py"
