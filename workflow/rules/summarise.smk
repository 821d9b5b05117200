rule summarise:
    input:
        config=results("{study}/config/summarise.yaml"),
        scores=lambda w: evaluations(w.study, ".parquet"),
        details=lambda w: evaluations(w.study, ".details"),
        curves=lambda w: learned(w.study, "curve.parquet"),
        origins=lambda w: learned(w.study, "provenance.json"),
    output:
        scores=results("{study}/scores.parquet"),
        curves=results("{study}/curves.parquet"),
        summary=results("{study}/summary.parquet"),
        comparisons=results("{study}/comparisons.parquet"),
        headline=results("{study}/headline.parquet"),
        details=directory(results("{study}/details")),
    log:
        results("{study}/logs/summarise.log"),
    threads: resource("summarise", "threads")
    resources:
        mem_mb=resource("summarise", "mem_mb"),
        runtime=resource("summarise", "runtime"),
    script:
        "../scripts/summarise.py"
