"""The offline analyser: predictions for a job from earlier logs of similar jobs.

See docs/reference/cloud_model.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from schedlab.config.errors import UserError, did_you_mean
from schedlab.config.files import canonical_json, content_hash, write_text
from schedlab.config.readers import parse_json, read_text
from schedlab.studies.cloud.model.fit_cores import CoreFit, fit_table
from schedlab.studies.cloud.model.logs import check_training_log, read_training_log, require_columns, require_numbers
from schedlab.studies.cloud.replay.sla import is_given

if TYPE_CHECKING:
    import pandas as pd

ALIKE = 0.7  # a log is used where its similarity is above this
# Columns that predictions and means need in a log.
NEEDED = ("time_so_far", "cost_so_far", "throughput", "gpu_count", "cpu_count")
QUERY = ("model_params", "model_layers", "data_size_mb")  # facts about a job by which it is compared with logs
UNKNOWN = "unknown"  # dataset of a log that names none
Key = tuple[str, str, str]  # (model, dataset, kind of device: gpu or cpu) of a log
SHARES = (0.5, 0.3, 0.2)  # weights of parameters, layers and data size in the similarity


@dataclass(frozen=True)
class ModelFacts:
    """Facts about model and data in the first row of a log."""

    model_params: float
    model_layers: float
    data_size_mb: float = 0.0
    dataset: str = "unknown"
    data_count: float = 0.0


def read_store(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of results; an empty list without a file. Raises UserError for a damaged line."""
    if not path.exists():
        return []
    found = []
    for number, line in enumerate(read_text(path, "a store of results").splitlines(), 1):
        where = f"{path}, line {number}"
        value = parse_json(line, where, "a result")
        if not isinstance(value, dict) or not {"hash", "key", "rows"} <= set(value) or not value["rows"]:
            raise UserError(
                "is no result", where=where, expected="an object with hash, key and rows", remedy="remove the line"
            )
        if not isinstance(value["key"], list) or len(value["key"]) != 3:
            raise UserError(
                "the key is none",
                where=where,
                expected="a list of model, dataset and gpu or cpu",
                remedy="remove the line",
            )
        if content_hash(value["rows"]) != value["hash"]:
            raise UserError("the rows are not those of the hash", where=where, remedy="remove the line")
        found.append(value)
    return found


def require_query(query: Mapping[str, Any], where: str) -> dict[str, float]:
    """Return the known facts of a job (QUERY). Raises UserError for a value that is not a number of 0 or more."""
    found = {key: query[key] for key in QUERY if is_given(query.get(key))}
    for key, value in found.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) < math.inf:
            raise UserError(f"'{key}' is {value!r}", where=where, expected="a number of 0 or more")
    return found


def ratio(one: float, other: float) -> float:
    """Return the similarity of two amounts: the smaller divided by the larger, where the divisor is at least 1."""
    return min(one / max(1, other), other / max(1, one))


def similarity(query: Mapping[str, Any], facts: ModelFacts) -> float:
    """Return the similarity of a job and a logged model, from 0 to 1. If the log states the size of its data, a job
    with data of size 0 has a similarity of data of 0.
    """
    query = {key: value for key, value in query.items() if is_given(value)}
    size = query.get("data_size_mb")
    data = 1.0
    if size is not None and facts.data_size_mb > 0:
        data = min(size / facts.data_size_mb, facts.data_size_mb / size) if size > 0 else 0.0
    of_params = ratio(query.get("model_params", 0), facts.model_params)
    of_layers = ratio(query.get("model_layers", 0), facts.model_layers)
    return SHARES[0] * of_params + SHARES[1] * of_layers + SHARES[2] * data


class OfflineDataAnalyzer:
    """Collects logs and predicts resources for a job.

    A later log of the same model, dataset and kind of device (gpu or cpu) replaces the earlier one; results of runs are
    all kept.

    store  file of results, one JSON record per line, to which `update_with_result` adds; the results in it are read
           first

    Raises UserError for a damaged store.
    """

    def __init__(self, store: Path | str | None = None) -> None:
        import pandas as pd

        self.models: dict[Key, ModelFacts] = {}
        self.tables: list[pd.DataFrame] = []
        self.types: list[str] = []  # kind of device of each table: gpu or cpu
        self.store = Path(store) if store is not None else None
        self._logs: dict[Key, int] = {}  # index in the tables of each log taken by `add_log`
        self._known: set[str] = set()
        for line in read_store(self.store) if self.store is not None else ():
            self._known.add(line["hash"])
            self.add(pd.DataFrame(line["rows"]), line["key"][0], line["key"][2])

    def add_log(self, path: Path | str) -> None:
        """Add a training log; it replaces an earlier log with the same key. Raises UserErrors for mistakes in it."""
        path = Path(path)
        table = read_training_log(path).drop(columns="run")
        require_columns(table, NEEDED, path)
        self.add(require_numbers(table, NEEDED, path), path.stem)
        place = self._logs.setdefault(self._key(), len(self.tables) - 1)
        if place < len(self.tables) - 1:
            self.tables[place], self.types[place] = self.tables.pop(), self.types.pop()

    def update_with_result(self, table: pd.DataFrame, name: str, gpu_type: str | None = None) -> bool:
        """Add the log of a finished run to the tables, which `predict` and `performance` use, and to the store. Return
        False, without a change, if the same content was added before.

        gpu_type  gpu or cpu; None: gpu if a row has GPUs

        Raises UserErrors for mistakes in the log, before anything is stored.
        """
        import pandas as pd

        table = check_training_log(table, Path(name)).drop(columns="run")
        require_columns(table, NEEDED, Path(name))
        table = require_numbers(table, NEEDED, Path(name))
        rows = json.loads(table.to_json(orient="records", double_precision=15))
        digest = content_hash(rows)
        if digest in self._known:
            return False
        self._known.add(digest)
        self.add(pd.DataFrame(rows), name, gpu_type)  # as they are read back from the store
        if self.store is not None:
            line = {"hash": digest, "key": list(self._key()), "rows": rows}
            kept = self.store.read_text(encoding="utf-8") if self.store.exists() else ""
            write_text(self.store, kept + canonical_json(line) + "\n")
        return True

    def performance(
        self, model: str, gpus_per_node: int = 4, dataset: str | None = None, gpu_type: str | None = None
    ) -> CoreFit:
        """Return the performance model fitted to all rows of a model's logs, optionally only those of a dataset and of
        one kind of device (`gpu` or `cpu`). Each log is a separate run; if its column `sample` has several values, each
        value is a run. Epochs that occur in two logs are two measurements.

        Raises UserErrors if there is no such log, and for rows that cannot be fitted.
        """
        import pandas as pd

        of_type = [table for table, kind in zip(self.tables, self.types, strict=True) if gpu_type in (None, kind)]
        alike = [
            table[(table["model_name"] == model) & ((dataset is None) | (table["dataset"] == dataset))]
            for table in of_type
        ]
        numbered = [_of_sample(table, number) for number, table in enumerate(alike) if len(table)]
        rows = pd.concat(numbered, ignore_index=True) if numbered else pd.DataFrame()
        if not len(rows):
            of = (
                f"'{model}'"
                + (f" with data '{dataset}'" if dataset else "")
                + (f" on a {gpu_type}" if gpu_type else "")
            )
            raise UserError(
                f"no log is of a model {of}",
                where="offline logs",
                remedy=did_you_mean(model, {key[0] for key in self.models}),
            )
        return fit_table(rows, Path(f"logs of {model}"), gpus_per_node)

    def history(
        self, model: str | None = None, dataset: str | None = None, gpu_type: str | None = None
    ) -> list[dict[str, Any]]:
        """Return the last row of each complete run, optionally only runs of a model, on a dataset, on `gpu` or `cpu`. A
        run that ends before its `total_epochs` is not complete.
        """
        found = []
        for table, kind in zip(self.tables, self.types, strict=True):
            if gpu_type not in (None, kind):
                continue
            last = table[_run_numbers(table).diff(-1).ne(0)]
            for record in last.to_dict(orient="records"):
                whole = not is_given(record.get("total_epochs")) or record["epoch"] >= record["total_epochs"]
                if whole and model in (None, record["model_name"]) and dataset in (None, record["dataset"]):
                    found.append(record)
        return found

    def add(self, table: pd.DataFrame, name: str, gpu_type: str | None = None) -> None:
        """Add a table. name: the model of rows that name none. gpu_type: gpu or cpu; None: derived from the rows."""
        names = table["model_name"].astype(object).fillna(name).astype(str) if "model_name" in table.columns else name
        data = table["dataset"].astype(object).fillna(UNKNOWN).astype(str) if "dataset" in table.columns else UNKNOWN
        self.tables.append(table.assign(model_name=names, dataset=data))
        self.types.append(gpu_type or _type_of(table))
        first = self.tables[-1].iloc[0]
        if is_given(first.get("model_params")) and is_given(first.get("model_layers")):
            extra = {key: first[key] for key in ("data_size_mb", "dataset", "data_count") if is_given(first.get(key))}
            self.models[self._key()] = ModelFacts(float(first["model_params"]), float(first["model_layers"]), **extra)

    def _key(self) -> Key:
        """Return the key of the latest table, from its first row."""
        first = self.tables[-1].iloc[0]
        return str(first["model_name"]), str(first["dataset"]), self.types[-1]

    def analyze(self) -> dict[str, Any]:
        """Return the mean time (s) and cost ($) of all rows, and per model the rows of best throughput and best
        throughput per dollar. Raises UserError without logs.
        """
        if not self.tables:
            raise UserError("there is no log", where="offline logs", expected="one at least")
        whole = self._rows()
        best = {}
        for model, rows in whole.groupby("model_name", sort=True):
            cheap = rows["throughput"] / (rows["cost_so_far"] + 0.001)
            best[model] = {
                "throughput": rows.loc[rows["throughput"].idxmax()],
                "cost_efficiency": rows.loc[cheap.idxmax()],
            }
        return {"time": float(whole["time_so_far"].mean()), "cost": float(whole["cost_so_far"].mean()), "models": best}

    def predict(
        self, query: Mapping[str, Any], dataset: str | None = None, gpu_type: str | None = None
    ) -> dict[str, Any]:
        """Return GPUs, cores, memory (GB), batch size, estimated time (s) and cost ($) for a job, and the similarity of
        the logs that the prediction is based on.

        query  model_params, model_layers, data_size_mb; a value that is missing or None counts as 0, except that a
               missing size counts as alike

        The rows with the most similar model, dataset and kind of device are used. Of equally similar ones, those of
        `dataset` are preferred, then those of `gpu_type` (gpu or cpu), then the earliest. Raises UserError for a value
        that is not a number of 0 or more.
        """
        query = require_query(query, "job")
        scores = {key: similarity(query, facts) for key, facts in self.models.items()}
        best = max(scores, key=lambda key: (scores[key], key[1] == dataset, key[2] == gpu_type), default=None)
        if best is None or not scores[best] > ALIKE:
            return default_prediction(query)
        rows = self._rows(best)
        row = rows.loc[(rows["throughput"] / (rows["cost_so_far"] + 0.1)).idxmax()]
        used, batch = row.get("memory_used_gb"), row.get("batch_size")
        return {
            "gpu_count": int(row["gpu_count"]),
            "cpu_count": int(row["cpu_count"]),
            "memory_gb": int((float(used) if is_given(used) else 16) * 1.2),
            "batch_size": int(batch) if is_given(batch) else 64,
            "estimated_time": float(row["time_so_far"]),
            "estimated_cost": float(row["cost_so_far"]),
            "similarity_score": float(scores[best]),
        }

    def _rows(self, key: Key | None = None) -> pd.DataFrame:
        """Return the rows of all tables, or those of a key."""
        import pandas as pd

        if key is None:
            return pd.concat(self.tables, ignore_index=True)
        of_type = [table for table, kind in zip(self.tables, self.types, strict=True) if kind == key[2]]
        of_key = [table[(table["model_name"] == key[0]) & (table["dataset"] == key[1])] for table in of_type]
        return pd.concat([table for table in of_key if len(table)], ignore_index=True)


def _of_sample(table: pd.DataFrame, number: int) -> pd.DataFrame:
    """Return a table marked as one of several logs: `number` distinguishes its runs from theirs (logs.check_rows)."""
    own = table["sample"].astype(str) if "sample" in table.columns else ""
    return table.assign(sample=f"{number}." + own)


def _type_of(table: pd.DataFrame) -> str:
    """Return the kind of device of a log: gpu or cpu."""
    return "gpu" if "gpu_count" in table.columns and (table["gpu_count"] > 0).any() else "cpu"


def _run_numbers(table: pd.DataFrame) -> pd.Series:
    """Return the number of each row's run. A run begins where the epoch does not rise, or where sample or model
    changes.
    """
    begins = table["epoch"].diff().fillna(1) <= 0
    for name in {"sample", "model_name"} & set(table.columns):
        begins |= table[name].ne(table[name].shift().fillna(table[name]))
    return begins.cumsum()


def default_prediction(query: Mapping[str, Any]) -> dict[str, Any]:
    """Return the prediction for a job without a similar log; a missing value or None in its query counts as 0."""
    query = {key: value for key, value in query.items() if is_given(value)}
    params, size = query.get("model_params", 0), query.get("data_size_mb", 0)
    gpus, cores, memory = (1, 4, 8) if params < 10_000_000 else (2, 8, 16) if params < 50_000_000 else (4, 16, 32)
    if size > 1000:
        gpus, memory = min(gpus + 1, 8), memory + 8
    time = params / 1_000_000 * (size / 100) * 600
    return {
        "gpu_count": gpus,
        "cpu_count": cores,
        "memory_gb": memory,
        "batch_size": 32 * gpus,
        "estimated_time": time,
        "estimated_cost": time / 3600 * (gpus * 2.5 + cores * 0.1 + memory * 0.02),
        "similarity_score": 0.0,
    }
