"""The offline analyser: logs and results that it takes, what it keeps of them, and what is said where they are
wrong."""

from __future__ import annotations

import json

import pytest
from live_scripts import training_log

from schedlab.config.errors import UserError
from schedlab.studies.cloud.model.analyser import OfflineDataAnalyzer


def test_a_result_is_taken_once_kept_and_changes_what_is_known(tmp_path):
    store = tmp_path / "history.jsonl"
    analyser = OfflineDataAnalyzer(store)
    query = {"model_params": 1e6, "model_layers": 10, "data_size_mb": 50}
    assert analyser.predict(query)["similarity_score"] == 0.0
    assert analyser.update_with_result(training_log(), "net") is True
    before = analyser.predict(query)
    assert before["similarity_score"] == pytest.approx(1.0) and before["memory_gb"] == 2
    fitted = analyser.performance("net")
    assert fitted.median_error < 0.05
    content = store.read_text()
    assert (
        analyser.update_with_result(training_log(), "net") is False
        and store.read_text() == content
        and len(analyser.tables) == 1
    )
    assert analyser.update_with_result(training_log(throughput=2000.0), "net") is True
    assert analyser.performance("net").core_seconds < fitted.core_seconds
    again = OfflineDataAnalyzer(store)
    assert len(again.tables) == 2 and again.predict(query) == analyser.predict(query)
    assert again.update_with_result(training_log(), "net") is False
    assert json.loads(content)["key"] == ["net", "d", "cpu"]
    assert [round(row["time_so_far"], 3) for row in again.history()] == [
        round(row["time_so_far"], 3) for row in analyser.history()
    ]
    with pytest.raises(UserError, match="did you mean 'net'"):
        analyser.performance("nets")


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"model_params": "11M"}, "log.csv.*model_params"),
        ({"cpu_count": None}, "log.csv.*cpu_count"),
        ({"data_size_mb": "big"}, "log.csv.*data_size_mb"),
    ],
)
def test_cells_of_a_log_that_are_no_numbers_are_told(tmp_path, changed, told):
    training_log().assign(**changed).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UserError, match=told):
        OfflineDataAnalyzer().add_log(tmp_path / "log.csv")
    training_log().drop(columns="cpu_count").to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UserError, match=r"log\.csv.*'cpu_count'"):
        OfflineDataAnalyzer().add_log(tmp_path / "log.csv")


def test_an_analyser_without_logs_says_so_and_one_that_does_not_know_the_size_of_a_model_predicts_nothing_from_it():
    with pytest.raises(UserError):
        OfflineDataAnalyzer().analyze()
    analyser = OfflineDataAnalyzer()
    analyser.add(training_log().assign(model_params=float("nan")), "net")
    assert analyser.predict({"model_params": 1e6, "model_layers": 10})["similarity_score"] == 0.0


@pytest.mark.parametrize(
    "line", ["{", "[]", '{"hash": "0", "key": ["a"], "rows": [{"x": 1}]}', '{"hash": "0", "key": ["a"], "rows": []}']
)
def test_a_damaged_store_is_told_by_its_line(tmp_path, line):
    store = tmp_path / "history.jsonl"
    OfflineDataAnalyzer(store).update_with_result(training_log(), "net")
    store.write_text(store.read_text() + line + "\n")
    with pytest.raises(UserError, match="line 2"):
        OfflineDataAnalyzer(store)


WRONG_LOGS = {
    "missing": (lambda table: table.drop(columns="throughput"), "'throughput'"),
    "NaN": (lambda table: table.assign(epoch_time=[1.0, float("nan"), *[1.0] * 4]), "row 3, column epoch_time"),
    "twice": (lambda table: table.assign(epoch=1), "epoch 1"),
    "backwards": (lambda table: table.assign(time_so_far=list(range(6, 0, -1))), "time_so_far"),
    "fraction": (lambda table: table.assign(cpu_percent=250.0), "cpu_percent"),
    "no cost": (lambda table: table.drop(columns="cost_so_far"), "'cost_so_far'"),
}


@pytest.mark.parametrize("name", WRONG_LOGS)
def test_wrong_logs_are_told_by_row_or_column(tmp_path, name):
    change, told = WRONG_LOGS[name]
    change(training_log()).to_csv(tmp_path / "log.csv", index=False)
    with pytest.raises(UserError) as caught:
        OfflineDataAnalyzer().add_log(tmp_path / "log.csv")
    assert told in str(caught.value)


def test_logs_are_analysed(tmp_path):
    training_log().to_csv(tmp_path / "log.csv", index=False)
    analyser = OfflineDataAnalyzer()
    analyser.add_log(tmp_path / "log.csv")
    found = analyser.analyze()
    assert found["cost"] == pytest.approx(0.02) and found["models"]["net"]["throughput"]["cpu_count"] == 2


def test_a_later_log_of_the_same_name_takes_the_place_of_the_earlier_one(tmp_path):
    """Of the same model, data and kind of device, that is; finished runs that were taken as results stay, each
    of them."""
    tables = {
        "first": training_log(),
        "other": training_log(name="wide"),
        "large": training_log().assign(dataset="large"),
        "gpu": training_log().assign(gpu_count=1),
    }
    tables |= {
        "again": training_log(throughput=800.0, epochs=2).assign(cost_so_far=3.0),
        "unnamed": training_log().drop(columns="model_name"),
    }
    for name, table in tables.items():
        table.to_csv(tmp_path / f"{name}.csv", index=False)
    analyser = OfflineDataAnalyzer()
    assert analyser.update_with_result(training_log(throughput=300.0), "net")
    for name in tables:
        analyser.add_log(tmp_path / f"{name}.csv")
    assert [len(table) for table in analyser.tables] == [6, 4, 6, 6, 6, 6], (
        "the result, again, other, large, gpu, unnamed"
    )
    assert sorted({row["throughput"] for row in analyser.history("net", "d", "cpu")}) == pytest.approx(
        sorted([300.0, 300.0 * 2**0.9, 800.0, 800.0 * 2**0.9])
    )
    assert analyser.types == ["cpu", "cpu", "cpu", "cpu", "gpu", "cpu"]
    of_data_d = [(name, "d", "cpu") for name in ("net", "wide", "unnamed")]
    assert set(analyser.models) == {*of_data_d, ("net", "large", "cpu"), ("net", "d", "gpu")}
    alone = OfflineDataAnalyzer()
    for name in ("first", "again"):
        alone.add_log(tmp_path / f"{name}.csv")
    assert alone.analyze()["cost"] == 3.0
    (tmp_path / "unnamed.csv").write_text(training_log(throughput=900.0).drop(columns="model_name").to_csv(index=False))
    analyser.add_log(tmp_path / "unnamed.csv")
    assert len(analyser.tables) == 6 and analyser.tables[-1]["throughput"].iloc[0] == 900.0


def test_runs_of_other_data_or_on_another_kind_of_device_are_kept_apart(tmp_path):
    store = tmp_path / "history.jsonl"
    analyser = OfflineDataAnalyzer(store)
    on_gpu = training_log(throughput=4000.0).assign(gpu_count=1)
    for table in (
        training_log(),
        training_log(throughput=2000.0).assign(dataset="large"),
        on_gpu,
        training_log().drop(columns="dataset"),
    ):
        assert analyser.update_with_result(table, "net")
    for known in (analyser, OfflineDataAnalyzer(store)):
        assert known.types == ["cpu", "cpu", "gpu", "cpu"]
        counts = [
            len(known.history("net", *key))
            for key in ((), ("d",), ("large",), ("d", "cpu"), ("d", "gpu"), ("unknown",))
        ]
        assert counts == [8, 4, 2, 2, 2, 2]
        assert [row["throughput"] for row in known.history("net", "large")] == pytest.approx([2000.0, 2000.0 * 2**0.9])
        assert (
            known.performance("net", dataset="large").core_seconds
            < known.performance("net", dataset="d", gpu_type="cpu").core_seconds
        )
        with pytest.raises(UserError, match=r"'net'.*'small'"):
            known.performance("net", dataset="small")
    store.write_text(store.read_text().replace('"key":["net","d","gpu"]', '"key":["net"]'))
    with pytest.raises(UserError, match=r"history\.jsonl.*key"):
        OfflineDataAnalyzer(store)


WRONG_RESULTS = {
    "one column": training_log()[["epoch"]],
    "no throughput": training_log().drop(columns="throughput"),
    "no numbers": training_log().assign(throughput=float("nan")),
    "no rows": training_log().iloc[:0],
}


@pytest.mark.parametrize("wrong", WRONG_RESULTS)
def test_a_result_with_mistakes_is_told_and_not_kept(tmp_path, wrong):
    store = tmp_path / "history.jsonl"
    analyser = OfflineDataAnalyzer(str(store))
    with pytest.raises(UserError):
        analyser.update_with_result(WRONG_RESULTS[wrong], "net")
    assert not store.exists() and not analyser.tables
    assert analyser.update_with_result(training_log(), "net") and len(OfflineDataAnalyzer(str(store)).tables) == 1


def log_of(dataset: str, size: float, rate: float, gpus: int, cost: float = 0.01, **columns):
    """A log of the net on data of a size (MB)."""
    table = training_log(throughput=rate).assign(dataset=dataset, data_size_mb=size, gpu_count=gpus, **columns)
    return table.assign(cost_so_far=cost * table["epoch"])


def test_a_job_is_answered_by_rows_of_the_data_that_it_is_like(tmp_path):
    """Facts, and the rows of which one answers, are those of a model, its data and a kind of device; none hides
    another's.
    """
    small, large = log_of("small", 150, 5000.0, 1), log_of("large", 150_000, 300.0, 8, cost=50.0)
    for first, second in ((small, large), (large, small)):
        analyser = OfflineDataAnalyzer()
        for table in (first, second):
            table.to_csv(tmp_path / "log.csv", index=False)
            analyser.add_log(tmp_path / "log.csv")
        query = {"model_params": 1e6, "model_layers": 10}
        for size, gpus, costs in ((150, 1, small["cost_so_far"]), (150_000, 8, large["cost_so_far"])):
            found = analyser.predict({**query, "data_size_mb": size})
            assert (found["gpu_count"], found["similarity_score"]) == (gpus, pytest.approx(1.0)) and found[
                "estimated_cost"
            ] in set(costs)
        assert analyser.predict(query)["gpu_count"] == first["gpu_count"].iloc[0], (
            "which, the query does not tell: the first"
        )
        assert [analyser.predict(query, dataset=name)["gpu_count"] for name in ("small", "large")] == [1, 8]


def test_among_logs_that_are_as_like_those_of_the_kind_of_device_answer():
    analyser = OfflineDataAnalyzer()
    for gpus in (0, 2):
        assert analyser.update_with_result(log_of("d", 50, 500.0 + gpus, gpus), "net")
    query = {"model_params": 1e6, "model_layers": 10, "data_size_mb": 50}
    assert [analyser.predict(query, gpu_type=kind)["gpu_count"] for kind in ("gpu", "cpu")] == [2, 0]


@pytest.mark.parametrize("names", [None, 50])
def test_models_whose_names_are_lacking_or_numbers_are_predicted_from(tmp_path, names):
    store = tmp_path / "history.jsonl"
    analyser = OfflineDataAnalyzer(store)
    assert analyser.update_with_result(training_log().assign(model_name=names), "net")
    for known in (analyser, OfflineDataAnalyzer(store)):
        assert known.predict({"model_params": 1e6, "model_layers": 10})["similarity_score"] == pytest.approx(1.0)
        assert known.performance("net" if names is None else "50").settings == 2


def epochs(numbers, rate: float):
    """A log of epochs on a GPU."""
    table = training_log(throughput=rate, epochs=len(numbers)).query("cpu_count == 1")
    return table.assign(gpu_count=1, epoch=list(numbers))


@pytest.mark.parametrize("runs", [(range(3), range(1, 4)), ((1,), (1,)), ((1, 2, 3), (1,), (2, 3))])
def test_results_of_one_setting_are_fitted_together(runs):
    """Each is a run of its own, whatever epochs it has in common with another."""
    analyser = OfflineDataAnalyzer()
    for number, numbers in enumerate(runs):
        assert analyser.update_with_result(epochs(numbers, 500.0 + number), "net")
    fitted = analyser.performance("net")
    assert fitted.settings == 1 and fitted.median_error < 0.05


def test_of_each_sample_of_a_baseline_the_first_epoch_warms_up():
    kept = OfflineDataAnalyzer()
    assert kept.update_with_result(epochs((1, 2, 1, 2), 500.0).assign(sample=[0, 0, 1, 1]), "net")
    assert kept.performance("net").rows == 2
