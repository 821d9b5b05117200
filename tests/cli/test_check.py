"""`schedlab check` and `schedlab claims`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from schedlab.cli.main import main
from schedlab.config.composition import Composer
from schedlab.config.errors import UserErrors
from schedlab.config.files import file_hash, write_json
from schedlab.config.schema import validate
from schedlab.evaluation.claims import ClaimsSettings, agree, read_claims
from small_conf import write_conf

ANSWERS = (("a", "all"), ("b", "all"), ("a+b", "rules"), ("a+b", "all"))


@pytest.fixture
def conf(checked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small configuration folder in a copy of its checkout, in which a test then is."""
    checkout = shutil.copytree(checked, tmp_path / "checkout")
    monkeypatch.chdir(checkout)
    return checkout / "conf"


def test_a_line_for_each_scenario_policy_and_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    conf = write_conf(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert main(["check", "--conf", str(conf)]) == 0
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        "ok  scenario adaptation/tiny",
        "ok  scenario adaptation/tiny_late",
        "ok  policy   adaptation/constant-tiny",
        "ok  policy   adaptation/exact-tiny",
        "ok  claims   adaptation",
        "all right",
    ]
    assert lines[0].startswith("ok  scenario adaptation/tiny: ") and lines[2].endswith(", 1 seed  [small paper]")
    assert lines[-1].startswith("all right")
    assert lines[0].endswith("[small paper]")
    assert captured.err == ""
    assert list(Path.cwd().iterdir()) == []


def test_the_lines_of_a_study_scenario_or_policy_alone(conf: Path, capsys: pytest.CaptureFixture) -> None:
    (conf / "scenario/adaptation/tiny_late.yaml").write_text(
        (conf / "scenario/adaptation/tiny_late.yaml").read_text() + "scales: [full]\n"
    )
    policy = conf / "policy/adaptation/constant-tiny.yaml"
    (conf / "policy/adaptation/spare.yaml").write_text(policy.read_text().replace("name: constant-tiny", "name: spare"))
    assert main(["check", "--conf", str(conf)]) == 0
    everything = capsys.readouterr().out.splitlines()
    assert main(["check", "adaptation", "--conf", str(conf)]) == 0
    assert capsys.readouterr().out.splitlines() == everything
    for name, lines in (
        ("tiny", 1),
        ("spare", 2),
        ("tiny_late", 0),
    ):  # a scenario, a policy with a hint, a scenario of no scale here
        assert main(["check", f"adaptation/{name}", "--conf", str(conf)]) == 0
        *told, last = capsys.readouterr().out.splitlines()
        assert told == [
            line for line in everything if f"adaptation/{name}:" in line or f"adaptation/{name}.yaml" in line
        ]
        assert len(told) == lines and last == everything[-1]
    assert main(["check", "adaptation/tini", "--conf", str(conf)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and "'adaptation/tini'" in err and "'adaptation/tiny'" in err


BATCHES = [f"data_batch_{number}.bin" for number in range(1, 6)]


@pytest.mark.parametrize(
    ("there", "missing"),
    [
        ([], [*BATCHES, "test_batch.bin"]),
        (["data_batch_1", "test_batch"], [*BATCHES, "test_batch.bin"]),
        ([*BATCHES[:3], *BATCHES[4:], "test_batch.bin"], ["data_batch_4.bin"]),
        ([f"cifar-10-batches-bin/{name}" for name in BATCHES], ["cifar-10-batches-bin/test_batch.bin"]),
        ([*(f"{name}.gz" for name in BATCHES), "test_batch.bin"], []),
    ],
    ids=lambda names: str(len(names)),
)
def test_a_folder_of_data_counts_only_whole(
    conf: Path, capsys: pytest.CaptureFixture, monkeypatch: pytest.MonkeyPatch, there: list[str], missing: list[str]
) -> None:
    monkeypatch.delenv("SCHEDLAB_DATA", raising=False)
    scenario = conf / "scenario" / "adaptation" / "tiny_late.yaml"
    scenario.write_text(
        scenario.read_text().replace("/data: digits", "/data: cifar10").replace("/model: tiny8", "/model: coloured")
    )
    model = (conf / "model" / "tiny8.yaml").read_text()
    (conf / "model" / "coloured.yaml").write_text(
        model.replace("channels: 1, height: 8, width: 8", "channels: 3, height: 32, width: 32")
    )
    folder = Path("resources", "data", "cifar10")
    for name in ("read me", *there):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 0
    told = [line for line in capsys.readouterr().out.splitlines() if "tiny_late" in line]
    if not missing:
        assert told == ["ok  scenario adaptation/tiny_late: 4 rules, 2 policies  [small]"]
    else:
        where = (
            f"needs the data set cifar10 at {folder}, where {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing ("
        )
        assert [line.split(where)[0] for line in told] == ["--  not run  adaptation/tiny_late: "]


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("scenario/adaptation/tiny.yaml", "decisions:", "decisons:", "tiny.yaml: decisons: unknown key 'decisons'"),
        ("scenario/adaptation/tiny.yaml", "name: tiny", "name: tine", "the name is 'tine'"),
        ("scenario/adaptation/tiny.yaml", "/model: tiny8", "/model: tiny9", "did you mean 'tiny8'"),
        ("scenario/adaptation/tiny.yaml", "[exact-tiny, ", "[exakt-tiny, ", "did you mean 'exact-tiny'"),
        ("scenario/adaptation/tiny.yaml", "rules: [never", "rules: [newer", "did you mean 'never'"),
        ("scenario/adaptation/tiny.yaml", "budget: 70.0", "budget: 35.0", "expected"),
        ("scenario/adaptation/tiny.yaml", "name:", "{name:", "not valid YAML"),
        ("policy/adaptation/exact-tiny.yaml", "[tiny]", "[tidy]", "did you mean 'tiny'"),
        (
            "policy/adaptation/exact-tiny.yaml",
            "seeds:",
            "parent: exact-tiny\nseeds:",
            "cycle: exact-tiny -> exact-tiny",
        ),
        ("model/tiny8.yaml", "kernel: 3", "kernel: 4", "tiny8"),
        ("model/tiny8.yaml", "out: 8, kernel: 3", "out: 8, kernel: 9", "tiny8"),
        ("gpu/priced.yaml", "base:", "bass:", "bass"),
        ("figure/theme.yaml", "dpi:", "dpis:", "did you mean 'dpi'"),
        (
            "claims/adaptation.yaml",
            "paper: a paper",
            "papier: a paper",
            "claims/adaptation.yaml: claims.0.papier: unknown key 'papier'",
        ),
    ],
)
def test_a_mistake_names_file_and_key(
    conf: Path, capsys: pytest.CaptureFixture, file: str, old: str, new: str, told: str
) -> None:
    text = (conf / file).read_text()
    assert old in text
    (conf / file).write_text(text.replace(old, new))
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert told in captured.err
    assert "nothing was run" in captured.err
    assert "Traceback" not in captured.err


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("note: noise", "status: differs", "conf/claims/adaptation.yaml: claims.1.status"),
        ("note: noise", "closes_with: a run", "claims.1.closes_with"),
        ("computed_in: adaptation_claims.csv,", "", "claims.0.closes_with"),
        ("computed_in: adaptation_claims.csv", "computed_in: adoption_claims.csv", "claims.0.computed_in"),
        ("id: accuracy", "id: precision", "claims.0.computed_in"),
        ("note: noise", "ours_reference: 0.7", "claims.1.ours_reference"),
        ("id: sequence", "id: accuracy", "the claim 'accuracy' stands there twice"),
        ("name: adaptation", "name: adoption", "the name is 'adoption'"),
        ("claims:", "clams:", "did you mean 'claims'"),
        ("claims:", "claims: 3 #", "not valid YAML"),
    ],
)
def test_a_mistake_in_a_ledger(conf: Path, old: str, new: str, told: str) -> None:
    file = conf / "claims/adaptation.yaml"
    file.write_text(file.read_text().replace(old, new))
    with pytest.raises(UserErrors) as caught:
        read_claims(conf)
    assert told in str(caught.value)


def test_a_question_beside_a_claim_that_there_is_not(conf: Path, capsys: pytest.CaptureFixture) -> None:
    file = conf / "study/adaptation.yaml"
    question = {"question": "how much?", "metric": "regret", "scenarios": ["tiny"], "recipe": "exact-tiny"}
    values = yaml.safe_load(file.read_text()) | {"headline": [question | {"published": ["accurate"]}]}
    file.write_text(yaml.safe_dump(values))
    assert main(["check", "--conf", str(conf)]) == 2
    error = capsys.readouterr().err
    assert "adaptation.yaml: headline.0.published" in error and "'accuracy'" in error


def test_a_mistake_of_one_scale_names_the_scale(conf: Path, capsys: pytest.CaptureFixture) -> None:
    policy = conf / "policy/adaptation/exact-tiny.yaml"
    text = policy.read_text()
    policy.write_text(text.replace("steps: 60", 'steps: "${scale.studies.adaptation.exact_updates}"'))
    study = conf / "study/adaptation.yaml"
    study.write_text(study.read_text().replace("exact_updates: 300", "exact_updates: -300", 1))
    assert main(["check", "--conf", str(conf)]) == 2
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors and all(line.endswith(" [small]") for line in errors)


def test_reference_values_count_only_in_mode_reference(conf: Path, capsys: pytest.CaptureFixture) -> None:
    model = (conf / "model/tiny8.yaml").read_text()
    own = model.replace("out: 10, deepen: false", "out: 10, activation: tanh").replace("tiny8", "own")
    (conf / "model/own.yaml").write_text(own)
    scenario = conf / "scenario/adaptation/tiny_late.yaml"
    text = scenario.read_text().replace("/model: tiny8", "/model: own")
    scenario.write_text(text)
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 0, capsys.readouterr().err
    scenario.write_text(text + "mode: reference\n")
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 2
    assert "conf/model/own.yaml: model.blocks.5" in capsys.readouterr().err


def test_every_mistake_is_told_at_once(conf: Path, capsys: pytest.CaptureFixture) -> None:
    for file, old in (("scenario/adaptation/tiny.yaml", "budget:"), ("policy/adaptation/exact-tiny.yaml", "seeds:")):
        (conf / file).write_text((conf / file).read_text().replace(old, "x" + old))
    (conf / "claims/adaptation.yaml").write_text("name: adaptation\nclaims: 3\n")
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 2
    err = capsys.readouterr().err
    for told in ("unknown key 'xbudget'", "unknown key 'xseeds'", "claims/adaptation.yaml: claims"):
        assert told in err


def test_a_folder_that_is_none_and_a_scale_that_is_none(conf: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["check", "--conf", "nowhere"]) == 2
    assert main(["check", "--conf", str(conf), "--scale", "smal"]) == 2
    err = capsys.readouterr().err
    assert "nowhere/config.yaml" in err
    assert "did you mean 'small'" in err


def test_the_records_of_the_workflow_are_written_and_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    conf = write_conf(tmp_path)
    monkeypatch.chdir(tmp_path)
    composed = []
    members = Composer.members
    monkeypatch.setattr(
        Composer, "members", lambda self, group, name, *rest: composed.append(name) or members(self, group, name, *rest)
    )
    assert main(["check", "--scale", "small"]) == 0
    assert sorted(path.name for path in Path(".schedlab").iterdir()) == ["records-small.json"]
    assert {"tiny", "tiny_late", "exact-tiny", "constant-tiny"} <= set(composed)
    composed.clear()
    assert main(["check", "--scale", "small"]) == 0 and composed == []
    (conf / "scenario/adaptation/tiny.yaml").write_text("name: 3\n")
    assert main(["check", "--scale", "small"]) == 2 and composed == ["tiny"]


def test_the_ledger_as_a_table_and_as_json(conf: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["claims", "--conf", str(conf)]) == 0
    total, *origin, gap, header, first, second, end = capsys.readouterr().out.splitlines()
    assert f"{conf.as_posix()}/claims/adaptation.yaml" in " ".join(origin)
    assert (gap, end) == ("", "")
    assert header.split() == [
        "claim",
        "table/figure",
        "quantity",
        "published",
        "reference",
        "repaired",
        "tolerance",
        "status",
    ]
    assert first.split() == ["accuracy", "-", "accuracy", "0.7391", "0.73912", "-", "0.0001", "reproduced"]
    assert second.split()[-4:] == ["011", "-", "-", "differs"]
    assert "1 reproduced" in total and "1 differs" in total
    assert main(["claims", "--conf", str(conf), "--json", "--study", "adaptation"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [(row["id"], row["published"], row["note"]) for row in rows] == [
        ("accuracy", 0.7391, ""),
        ("sequence", "110", "noise"),
    ]
    assert main(["claims", "--conf", str(conf), "--study", "adoption"]) == 2
    assert "did you mean 'adaptation'" in capsys.readouterr().err


def test_the_shipped_ledgers_fit_a_terminal(repository: Path, capsys: pytest.CaptureFixture) -> None:
    assert main(["claims", "--conf", str(repository / "conf")]) == 0
    counts, _, table = (block.splitlines() for block in capsys.readouterr().out.split("\n\n")[:3])
    ledgers = read_claims(repository / "conf")
    assert counts[0].startswith(f"{sum(len(ledger.claims) for ledger in ledgers.values())} published claims: ")
    assert [line.split(":")[0].strip() for line in counts[1 : 1 + len(ledgers)]] == sorted(ledgers)
    assert max(map(len, table)) <= 140
    ledger = ledgers["adaptation"]
    assert sum(line.endswith(("reproduced", "repaired", "differs", "open")) for line in table) == len(ledger.claims)


def test_the_recorded_answer_stands_above_the_table(conf: Path, capsys: pytest.CaptureFixture) -> None:
    place = conf.parent / "docs/results/adaptation"
    place.mkdir(parents=True, exist_ok=True)
    names = "question,scenario,metric,recipe,group,rival,verdict,ratio,ci_low,ci_high,share_won,ratio_to_hindsight,"
    names += "ratio_to_bound,budget,rival_budget,budget_unit\n"
    rows = [
        f"sooner?,{scenario},loss,{scenario}-p,{group},r,better,0.9,,,1,,,,,episodes\n" for scenario, group in ANSWERS
    ]
    (place / "headline.csv").write_text(names + "".join(rows))
    record = {"study": "adaptation", "scale": "full", "run": "full", "options": "", "results_version": 1, "python": "3"}
    record |= {"config_hash": "c", "code_hash": "k", "scenarios": {}, "packages": {}, "date": "2026-12-01"}
    digest = file_hash(place / "headline.csv")
    record |= {"form": 1, "machine": {}, "cpu_seconds": {}, "tables": {"headline.csv": digest}}
    write_json(place / "record.json", record)
    assert main(["claims", "--conf", str(conf)]) == 0
    printed = capsys.readouterr().out
    shown = {name: name in printed for name in (" a-p", " b-p", " a+b-p", "sooner?", "better")}
    assert list(shown.values()) == [False, False, True, True, True]
    (place / "headline.csv").write_text(names)
    assert main(["claims", "--conf", str(conf)]) == 2
    assert "adaptation/headline.csv" in capsys.readouterr().err


def test_no_ledger_is_no_mistake(conf: Path, capsys: pytest.CaptureFixture) -> None:
    shutil.rmtree(conf / "claims")
    assert main(["claims", "--conf", str(conf)]) == 0
    assert capsys.readouterr().out == "no claims yet\n"


def test_a_copy_of_conf_alone_is_checked_without_recorded_tables(
    conf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture
) -> None:
    copy = shutil.copytree(conf, tmp_path / "copy of conf")
    monkeypatch.chdir(tmp_path)
    assert main(["check", "--conf", str(copy)]) == 0
    assert "all right" in capsys.readouterr().out
    assert main(["claims", "--conf", str(copy)]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("error: ") == 1 and "docs/results" in err
    file = copy / "claims/adaptation.yaml"
    file.write_text(file.read_text().replace("paper:", "papier:"))
    assert main(["check", "--conf", str(copy)]) == 2
    assert "claims.0.papier" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("published", "ours", "tolerance", "expected"),
    [
        (0.5, 0.5, None, True),
        (0.5, 0.51, None, False),
        (0.5, 0.51, 0.01, True),
        (0.5, 0.5100001, 0.01, False),
        ("011", "011", None, True),
        ("011", 11.0, 100.0, False),
        ("0.01 to 0.15", 0.15, None, True),
        ("1e-6 to 1e-5", 2e-5, None, False),
        ("1e-6 to 1e-5", 2e-5, 1e-4, True),
        (None, None, 1.0, False),
    ],
)
def test_when_values_agree(published: object, ours: object, tolerance: float | None, expected: bool) -> None:
    assert agree(published, ours, tolerance) is expected


def test_the_shipped_ledgers_are_right(repository: Path) -> None:
    for name, ledger in read_claims(repository / "conf").items():
        assert ledger.name == name
        assert ledger.claims


def test_values_of_a_claim_are_strict() -> None:
    claim = {"id": "a", "paper": "p", "quantity": "q"}
    assert validate(ClaimsSettings, {"name": "x", "claims": [{**claim, "published": 3}]}).claims[0].published == 3
    for wrong in ({"published": True}, {"tolerance": -1}, {"tolerance": "0.1"}, {"id": "A b"}, {"status": "open"}):
        with pytest.raises(UserErrors):
            validate(ClaimsSettings, {"name": "x", "claims": [claim | wrong]})
