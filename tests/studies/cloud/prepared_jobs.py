"""The prepare rules of a training job, called as the workflow calls them."""

from __future__ import annotations

from pathlib import Path

import yaml

from schedlab.studies.cloud import prepare
from schedlab.studies.cloud.scenario import CloudScenario


def model_of(scenario: CloudScenario, folder: Path) -> Path:
    """Ingest a job's logs, if it has any, and write its step-time model."""
    for name, part in prepare.parts(scenario).items():
        (folder / f"{name}.yaml").write_text(yaml.safe_dump(dict(part.values)))
    tables = [folder / name for name in ("step_times.parquet", "core_times.parquet")] if scenario.job.logs else []
    if tables:
        prepare.ingest_logs(folder / "ingest_logs.yaml", *tables, folder / "report.json")
    prepare.fit_performance(folder / "fit_performance.yaml", folder / "model.json", *tables)
    return folder / "model.json"
