"""Every mistake that a user can make in conf/ is told once, with the file, the key, and what was probably meant."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from schedlab.cli.main import main

SCENARIO, POLICY, SCALE = "scenario/adaptation/tiny.yaml", "policy/adaptation/exact-tiny.yaml", "scale/small.yaml"
STUDY, SIZES = "study/adaptation.yaml", "study/adaptation.yaml: sizes.small"
MODEL = "model/tiny8.yaml"
LEARNING, TRANSFER = "figure/adaptation/learning.yaml", "figure/adaptation/transfer.yaml"
VERSUS, MOVES = "figure/adaptation/versus.yaml", "figure/adaptation/moves.yaml"
RULES = "rules: [never, {name: always-1, target: always, params: {action: 1}}"
PHASE = "steps: 60"
FIGURE = (
    "name: {name}\nkind: {kind}\ntitle: A title\ncaption: It is seen.\nscenarios: [tiny]\npolicies: [exact-tiny, "
    "never]\nparams: {params}\n"
)
FIGURES = {  # by name: kind, parameters
    "learning": ("learning", "{metrics: [reward], window: 50}"),
    "transfer": (
        "learning",
        "{metrics: [reward], window: 50, "
        "groups: [{scenario: tiny, policies: [exact-tiny, never], jumpstart: [exact-tiny, never]}]}",
    ),
    "versus": ("versus", "{baseline: never}"),
    "moves": ("moves", "{widen: tiny, down: tiny, stay: tiny_late}"),
}
OWN_CLASS = "class Mine:\n    def reset(self, unit): pass\n    def act(self, observation, mask): return 0\n"

Edit = Callable[[Path], None]


def replaced(file: str, old: str, new: str) -> Edit:
    """An edit of a file."""

    def edit(conf: Path) -> None:
        text = (conf / file).read_text()
        assert old in text
        (conf / file).write_text(text.replace(old, new))

    return edit


def written(file: str, text: str | bytes) -> Edit:
    """A file that is new, or whose text is another one."""

    def edit(conf: Path) -> None:
        (conf / file).parent.mkdir(parents=True, exist_ok=True)
        (conf / file).write_bytes(text if isinstance(text, bytes) else text.encode())

    return edit


def moved(old: str, new: str) -> Edit:
    """A file or folder at another place."""

    def edit(conf: Path) -> None:
        (conf / new).parent.mkdir(parents=True, exist_ok=True)
        (conf / old).rename(conf / new)

    return edit


def copied(old: str, new: str) -> Edit:
    """A file that stands at a second place too."""
    return lambda conf: written(new, (conf / old).read_text())(conf)


def folder(name: str) -> Edit:
    """A folder where a file belongs."""
    return lambda conf: (conf / name).mkdir(parents=True)


def phase(params: str) -> Edit:
    """Values of a phase of the exact learner."""
    return replaced(POLICY, PHASE, f"{PHASE}, params: {params}")


def rule(entry: str) -> Edit:
    """A further rule of a scenario."""
    return replaced(SCENARIO, RULES, f"{RULES}, {entry}")


TYPOS = {
    "value of a phase": (
        phase("{learning_rte: 0.1}"),
        [f"conf/{POLICY}: train_on.0.params.learning_rte", "did you mean 'learning_rate'"],
    ),
    "impossible value of a phase": (
        phase("{learning_rate: -1.0}"),
        [f"conf/{POLICY}: train_on.0.params.learning_rate", "greater than 0"],
    ),
    "network of a phase": (
        phase("{linear: 8}"),
        [f"conf/{POLICY}: train_on.0.params.linear", "cannot change between phases"],
    ),
    "file of a vocabulary": (
        replaced(POLICY, "name: exact-tiny", "name: exact-tiny\nlearner: {encoder: vocab, vocabulary: layer.json}"),
        [f"conf/{POLICY}: learner.vocabulary", "layer.json"],
    ),
    "value of a learner under reference": (
        replaced(POLICY, "seeds:", "mode: reference\nreference: {learner: {learning_rte: 0.1}}\nseeds:"),
        [f"conf/{POLICY}: reference.learner.learning_rte", "did you mean 'learning_rate'"],
    ),
    "action of a rule under reference": (
        replaced(
            SCENARIO,
            "reference:\n",
            "mode: reference\nreference:\n  rules: [{name: all, target: always, params: {action: 9}}]\n",
        ),
        [f"conf/{SCENARIO}: reference.rules.0.params.action", "0 to 3"],
    ),
    "key under reference": (
        replaced(SCENARIO, "noop: reset", "nop: reset"),
        [f"conf/{SCENARIO}: reference.growth.nop", "mean 'noop'"],
    ),
    "value under reference": (
        replaced(SCENARIO, "noop: reset", "noop: rest"),
        [f"conf/{SCENARIO}: reference.growth.noop", "did you mean 'reset'"],
    ),
    "key under reference in mode reference": (
        replaced(SCENARIO, "reference:\n", "mode: reference\nreference:\n  budgt: 60.0\n"),
        [f"conf/{SCENARIO}: reference.budgt", "did you mean 'budget'"],
    ),
    "key of the scenario in mode reference": (
        replaced(SCENARIO, "decisions: 2", "mode: reference\ndecisons: 2"),
        [f"conf/{SCENARIO}: decisons", "did you mean 'decisions'"],
    ),
    "value of a figure": (
        replaced(LEARNING, "window", "widow"),
        [f"conf/{LEARNING}: params.widow", "did you mean 'window'"],
    ),
    "type in a figure": (replaced(LEARNING, "50", "many"), [f"conf/{LEARNING}: params.window", '"many"', "integer"]),
    "curve of a figure": (
        replaced(LEARNING, "[reward]", "[rewrd]"),
        [f"conf/{LEARNING}: params.metrics.0", "did you mean 'reward'"],
    ),
    "key of a group": (
        replaced(TRANSFER, "jumpstart", "jumpstrt"),
        [f"conf/{TRANSFER}: params.groups.0", "did you mean 'jumpstart'"],
    ),
    "policy of a group": (
        replaced(TRANSFER, "jumpstart: [exact-tiny", "jumpstart: [exact-tinny"),
        [f"conf/{TRANSFER}: params.groups.0.jumpstart.0", "did you mean 'exact-tiny'"],
    ),
    "scenario of a group": (
        replaced(TRANSFER, "scenario: tiny", "scenario: tinny"),
        [f"conf/{TRANSFER}: params.groups.0.scenario", "did you mean 'tiny'"],
    ),
    "baseline of a figure": (
        replaced(VERSUS, "baseline: never", "baseline: nevr"),
        [f"conf/{VERSUS}: params.baseline", "'never'"],
    ),
    "scenario in a figure's values": (
        replaced(MOVES, "down: tiny", "down: tinny"),
        [f"conf/{MOVES}: params.down", "did you mean 'tiny'"],
    ),
    "action of a rule": (
        replaced(SCENARIO, "action: 1", "action: 9"),
        [f"conf/{SCENARIO}: rules.1.params.action", "9", "0 to 3"],
    ),
    "value of a rule": (
        replaced(SCENARIO, "{action: 1", "{acton: 1"),
        [f"conf/{SCENARIO}: rules.1.params", "did you mean 'action'"],
    ),
    "value of a rule without any": (
        rule("{name: still, target: never, params: {action: 1}}"),
        [f"{SCENARIO}: rules.2.params.action"],
    ),
    "actions of a sequence": (
        rule('{name: nines, target: sequence, params: {sequence: "99"}}'),
        [f"conf/{SCENARIO}: rules.2.params.sequence", "'99'", "0 to 3"],
    ),
    "length of a sequence": (
        rule('{name: long, target: sequence, params: {sequence: "0123"}}'),
        [f"conf/{SCENARIO}: rules.2.params.sequence", "'0123'", "2 actions"],
    ),
    "file of a rule": (rule("{name: own, target: mien.py:Mine}"), [f"conf/{SCENARIO}: rules.2", "mien.py"]),
    "class of a rule": (
        rule("{name: own, target: mine.py:Main}"),
        [f"conf/{SCENARIO}: rules.2", "mine.py", "did you mean 'Mine'"],
    ),
    "class that is no learner": (
        replaced(POLICY, "name: exact-tiny", "name: exact-tiny\nlearner: {_target_: 'mine.py:Mine'}"),
        [f"conf/{POLICY}: learner", "mine.py", "lacks learn, load"],
    ),
    "class of a learner": (
        replaced(POLICY, "name: exact-tiny", "name: exact-tiny\nlearner: {_target_: 'mine.py:Mein'}"),
        [f"conf/{POLICY}: learner", "mine.py", "did you mean 'Mine'"],
    ),
    "baseline of a study": (
        replaced("study/adaptation.yaml", "baseline: constant-tiny", "baseline: constant-tinny"),
        ["conf/study/adaptation.yaml: statistics.baseline", "did you mean 'constant-tiny'"],
    ),
    "key of the root": (
        replaced("config.yaml", "seed:", "sed: 3\nseed:"),
        ["conf/config.yaml: sed", "did you mean 'seed'"],
    ),
    "key of the seed": (replaced("config.yaml", "seed:", "sed:"), ["conf/config.yaml: sed", "did you mean 'seed'"]),
    "folder of a study": (
        copied(SCENARIO, "scenario/adaptaton/more.yaml"),
        ["conf/scenario/adaptaton", "did you mean 'adaptation'"],
    ),
    "folder of a group": (
        copied(SCENARIO, "scenarios/adaptation/more.yaml"),
        ["conf/scenarios", "did you mean 'scenario'"],
    ),
    "scenario of no study": (
        copied(SCENARIO, "scenario/more.yaml"),
        ["conf/scenario/more.yaml", "conf/scenario/<study>/more.yaml"],
    ),
    "folder in a folder": (copied(SCENARIO, "scenario/adaptation/sub/more.yaml"), ["conf/scenario/adaptation/sub"]),
    "file beside the theme": (
        moved("figure/theme.yaml", "figure/them.yaml"),
        ["conf/figure/them.yaml", "did you mean 'theme'"],
    ),
    "file in the root": (copied("config.yaml", "confg.yaml"), ["conf/confg.yaml", "did you mean 'config'"]),
    "workflow rule": (
        replaced(SCALE, "resources:\n", "resources:\n  lern: {threads: 2}\n"),
        [f"{SCALE}: resources.lern", "did you mean 'learn'"],
    ),
    "palette": (
        replaced("figure/theme.yaml", "colorblind", "colorblnd"),
        ["theme.yaml: palette", "did you mean 'colorblind'"],
    ),
    "nothing to train on": (
        replaced(POLICY, "train_on:\n  - {scenarios: [tiny], steps: 60}\n", ""),
        [f"conf/{POLICY}: train_on", "is missing"],
    ),
    "no phases": (
        replaced(POLICY, "train_on:\n  - {scenarios: [tiny], steps: 60}", "train_on: []"),
        [f"conf/{POLICY}: train_on", "at least 1"],
    ),
    "seeds twice": (
        replaced(POLICY, "seeds: [0]", "seeds: [0, 1, 0]"),
        [f"conf/{POLICY}: seeds", "0 stands there twice"],
    ),
    "negative seed": (replaced(POLICY, "seeds: [0]", "seeds: [-1]"), [f"conf/{POLICY}: seeds", "-1", "0 or more"]),
    "seeds of a rule twice": (
        rule("{name: draws, target: random, seeds: [3, 3]}"),
        [f"conf/{SCENARIO}: rules.2.seeds", "3 stands there twice"],
    ),
    "negative seed of a scenario": (replaced(SCENARIO, "seed: ${seed}", "seed: -2"), [f"conf/{SCENARIO}: seed", "-2"]),
    "seeds of a study twice": (
        replaced(STUDY, "    seeds: [0, 1, 2]\n", "    seeds: [0, 1, 1]\n"),
        [f"{SIZES}.seeds", "1 stands there twice"],
    ),
    "negative seed of a study": (
        replaced(STUDY, "    seeds: [0, 1, 2]\n", "    seeds: [0, -1]\n"),
        [f"{SIZES}.seeds", "-1"],
    ),
    "required key": (replaced(POLICY, "seeds:", "seds:"), [f"conf/{POLICY}: seds", "did you mean 'seeds'"]),
    "required key of a phase": (
        replaced(POLICY, "steps:", "stps:"),
        [f"conf/{POLICY}: train_on.0.stps", "did you mean 'steps'"],
    ),
    "required key of a rule": (
        replaced(SCENARIO, "{action: 1", "{actions: 1"),
        [f"conf/{SCENARIO}: rules.1", "did you mean 'action'"],
    ),
}
SHARED = {  # mistakes in a model's file, on which both scenarios build
    "key of a model": (
        replaced(MODEL, "head_relu:", "head_rel:"),
        [f"conf/{MODEL}: model.head_rel", "did you mean 'head_relu'"],
    ),
    "kernel of a model": (
        replaced(MODEL, "kernel: 3", "kernel: 4"),
        [f"conf/{MODEL}: model.blocks.0", "kernel 4 is even"],
    ),
    "shapes of a model": (
        replaced(MODEL, "  - {kind: global_average_pool}\n", ""),
        [f"conf/{MODEL}: model.blocks.3", "flatten", "global_average_pool"],
    ),
    "pool of a model": (
        replaced(MODEL, "avg_pool, kernel: 2", "avg_pool, kernel: 20"),
        [f"conf/{MODEL}: model.blocks.1", "does not fit"],
    ),
    "blocks of a model in a scenario": (
        replaced(
            SCENARIO, "batch_size: 32}\n", "batch_size: 32}\nmodel: {blocks: [{kind: conv, out: 8, kernel: 4}]}\n"
        ),
        [f"conf/{SCENARIO}: model.blocks.0", "linear"],
    ),
}
LIMITS = {
    "replicates": (
        replaced(SCENARIO, "\nreplicates: 2", "\nreplicates: 1000000000"),
        [f"conf/{SCENARIO}: replicates", "1000"],
    ),
    "replicates among sizes": (
        replaced(STUDY, "    replicates: 4 ", "    replicates: 1000000000 "),
        [f"{SIZES}.replicates", "1000"],
    ),
    "decisions": (replaced(SCENARIO, "decisions: 2", "decisions: 60"), [f"conf/{SCENARIO}: decisions", "6"]),
    "decisions among sizes": (
        replaced(STUDY, "decisions: 3", "decisions: 60"),
        [f"{SIZES}.decisions", "6"],
    ),
    "budget": (
        replaced(SCENARIO, "budget: 70.0", "budget: 1.0e+12"),
        [f"conf/{SCENARIO}: budget", "less than or equal to"],
    ),
    "steps": (
        replaced(POLICY, "steps: 60", "steps: 1000000000000"),
        [f"conf/{POLICY}: train_on.0.steps", "less than or equal to"],
    ),
    "learning rate": (
        phase("{learning_rate: 1.0e+6}"),
        [f"conf/{POLICY}: train_on.0.params.learning_rate", "less than or equal to"],
    ),
    "learning rate of the networks": (
        replaced(SCENARIO, "batch_size: 32", "batch_size: 32, learning_rate: 1.0e+6"),
        [f"conf/{SCENARIO}: training.learning_rate", "less than or equal to"],
    ),
    "seeds": (replaced(POLICY, "seeds: [0]", f"seeds: {list(range(1001))}"), [f"conf/{POLICY}: seeds", "at most 1000"]),
    "seeds of a study": (
        replaced(STUDY, "    seeds: [0, 1, 2]\n", f"    seeds: {list(range(1001))}\n"),
        [f"{SIZES}.seeds", "at most 1000"],
    ),
    "jobs": (
        replaced(SCENARIO, "decisions: 2", f"decisions: 2\njobs: {list(range(1001))}"),
        [f"conf/{SCENARIO}: jobs", "at most 1000"],
    ),
    "resamples": (
        replaced("study/adaptation.yaml", "resamples: 2000", "resamples: 1000000000"),
        ["conf/study/adaptation.yaml: statistics.resamples", "less than or equal to"],
    ),
    "resources of no rule": (
        replaced(STUDY, "  small:\n    learn:", "  small:\n    tabluate:"),
        [f"{STUDY}: resources.small.tabluate", "'tabulate'"],
    ),
    "resources of a study in a scale": (
        replaced(SCALE, "  learn:", "  adaptation/learn:"),
        [f"{SCALE}: resources.adaptation/learn", "conf/study/<study>.yaml", "resources.small"],
    ),
    "sizes in a scale": (
        replaced(SCALE, "resources:", "studies: {adaptation: {decisions: 3}}\nresources:"),
        [f"{SCALE}: studies", "conf/study/<study>.yaml", "sizes.small"],
    ),
    "memory": (
        replaced(SCALE, "mem_mb: 1500", "mem_mb: 1000000000000"),
        [f"{SCALE}: resources.default.mem_mb", "less than or equal to"],
    ),
}
DAMAGED = {
    "folder named as a scenario": (
        folder("scenario/adaptation/more.yaml"),
        ["conf/scenario/adaptation/more.yaml", "is a folder"],
    ),
    "folder named as a model": (folder("model/more.yaml"), ["conf/model/more.yaml", "is a folder"]),
    "unknown base": (
        replaced(SCENARIO, "defaults:\n", "defaults:\n  - tiny_lat\n"),
        [f"conf/{SCENARIO}: defaults", "conf/scenario/adaptation/tiny_lat.yaml", "did you mean 'tiny_late'"],
    ),
    "unknown group": (
        replaced(SCENARIO, "/data: digits", "/dta: digits"),
        [f"conf/{SCENARIO}: defaults", "conf/dta", "did you mean 'data'"],
    ),
    "letters of a name": (copied(SCENARIO, "scenario/adaptation/frühstück.yaml"), ["frühstück", "small letters"]),
    "empty root": (written("config.yaml", ""), ["conf/config.yaml", "empty"]),
    "empty scenario": (written("scenario/adaptation/more.yaml", ""), ["conf/scenario/adaptation/more.yaml", "empty"]),
    "root without a scale": (written("config.yaml", "seed: 1\n"), ["conf/config.yaml: defaults", "scale"]),
    "no rules": (
        written(SCENARIO, "defaults: [tiny_late, _self_]\nname: tiny\nrules: {}\n"),
        [f"conf/{SCENARIO}: rules", "list"],
    ),
    "action without a block": (
        replaced(SCENARIO, "decisions: 2", "decisions: 2\nactions: [deepen-9]"),
        [f"conf/{SCENARIO}: actions", "block 9"],
    ),
    "two bases in a circle": (
        replaced(SCENARIO, "defaults:\n", "defaults:\n  - tiny\n"),
        [f"conf/{SCENARIO}: defaults", "builds on itself"],
    ),
    "broken study": (
        replaced("study/adaptation.yaml", "evaluate: together", "evaluate: apart"),
        ["conf/study/adaptation.yaml: evaluate"],
    ),
    "module of a study": (
        replaced("study/adaptation.yaml", "name: adaptation", "name: adaptation\nmodule: schedlab.nowhere"),
        ["conf/study/adaptation.yaml: module", "schedlab.nowhere"],
    ),
    "unknown size": (
        replaced(STUDY, "budget: 240.0", "budjet: 240.0"),
        [f"{SIZES}.budjet", "did you mean 'budget'"],
    ),
    "scale that is no YAML": (written(SCALE, "name: [small"), [SCALE, "not valid YAML"]),
    "scale that is a list": (written(SCALE, "[small]"), [SCALE, "no mapping"]),
    "root that is no YAML": (written("config.yaml", "seed: [1"), ["conf/config.yaml", "not valid YAML"]),
    "file that is no text": (written(MODEL, b"\xff\xfe\x00"), ["conf/model/tiny8.yaml", "not UTF-8"]),
    "value that is nowhere": (
        replaced(SCENARIO, "decisions: 2", "decisions: ${scale.studies.adaptation.decicions}"),
        [f"conf/{SCENARIO}: decisions", "did you mean 'decisions'"],
    ),
    "model for other data": (
        replaced(SCENARIO, "/model: tiny8", "/model: convnet2"),
        [f"conf/{SCENARIO}: model", "takes images (3, 32, 32)", "(1, 8, 8) of 10 classes"],
    ),
    "widening without a price": (
        replaced(SCENARIO, "decisions: 2", "decisions: 2\nactions: [deepen-0, widen-0]"),
        [f"conf/{SCENARIO}", "price", "gpu: flops"],
    ),
    "batch size of a timing": (
        replaced(SCENARIO, "training: {batch_size: 32}", "training: {batch_size: 32}\ntiming: {batch_size: 64}"),
        [f"conf/{SCENARIO}: training.batch_size", "32", "64"],
    ),
    "training pictures beyond the data": (
        replaced(SCENARIO, "train_size: 96", "train_size: 2000"),
        [f"conf/{SCENARIO}: data", "2000 training", "1797"],
    ),
    "scaling of other channels": (
        replaced(SCENARIO, "train_size: 96", "mean: [0.5, 0.5, 0.5], std: [1.0, 1.0, 1.0], train_size: 96"),
        [f"conf/{SCENARIO}: data", "mean and std have 3 values", "expected 1 or 1"],
    ),
    "nothing to judge by": (
        replaced(SCENARIO, "validation_size: 40", "validation_size: 0"),
        [f"conf/{SCENARIO}: reward.split", "no validation images"],
    ),
    "growth that leaves no time": (
        replaced(SCENARIO, "adapt_at: 30.0", "adapt_at: 58.0"),
        [f"conf/{SCENARIO}: adapt_at", "sequence 0 has no time"],
    ),
}
TWICE = {  # file: a line of it (written twice), what is told beside the file
    SCENARIO: ("budget: 70.0\n", "'budget' is written twice"),
    POLICY: ("seeds: [0]\n", "'seeds' is written twice"),
    SCALE: ("name: small\n", "'name' is written twice"),
    VERSUS: ("kind: versus\n", "'kind' is written twice"),
    MODEL: ("head_relu: false\n", "'head_relu' is written twice"),
    "data/digits.yaml": ("format: digits\n", "'format' is written twice"),
    "gpu/priced.yaml": ("name: priced\n", "'name' is written twice"),
    "study/adaptation.yaml": ("name: adaptation\n", "'name' is written twice"),
    "learner/adaptation/exact.yaml": ("name: exact\n", "'name' is written twice"),
    "figure/theme.yaml": ("palette: colorblind\n", "'palette' is written twice"),
    "claims/adaptation.yaml": ("name: adaptation\n", "'name' is written twice"),
    "config.yaml": ("seed: ", "'seed' is written twice"),
}


def twice(file: str, line: str) -> Edit:
    """A line that stands twice in a file."""
    return lambda conf: replaced(file, line, line + ("1\n" if not line.endswith("\n") else "") + line)(conf)


KEYS = {
    f"key twice in {file}": (twice(file, line), [f"conf/{file}, line ", told]) for file, (line, told) in TWICE.items()
}
KEYS |= {
    "key twice in a section": (
        replaced(SCENARIO, "batch_size: 32", "batch_size: 32, batch_size: 32"),
        [f"conf/{SCENARIO}, line 1", "twice"],
    ),
    "key twice in a list": (
        replaced(MODEL, "kind: insertion_point", "kind: insertion_point, kind: conv"),
        ["conf/model/tiny8.yaml, line ", "'kind' is written twice"],
    ),
    "number as a key": (replaced(SCENARIO, "budget:", "1: 2\nbudget:"), [f"conf/{SCENARIO}, line ", "'1' is no key"]),
    "number as a key of a scale": (written(SCALE, "1: 2\n"), [f"conf/{SCALE}, line 1", "'1' is no key"]),
    "list as a key": (replaced(SCENARIO, "budget:", "[a]: 2\nbudget:"), [f"conf/{SCENARIO}, line ", "is no key"]),
    "date": (replaced(SCENARIO, "budget: 70.0", "budget: 2001-13-45"), [f"conf/{SCENARIO}: budget", "a number"]),
    "date among sizes": (
        replaced(STUDY, "budget: 240.0", "budget: 2001-10-05"),
        [f"conf/{SIZES}.budget", "a number"],
    ),
    "number as a name": (replaced(SCENARIO, "name: tiny\n", "name: 3\n"), [f"conf/{SCENARIO}: name", "expected text"]),
    "name under reference": (
        replaced(SCENARIO, "reference:\n", "reference:\n  name: other\n"),
        [f"conf/{SCENARIO}: reference.name", "the name is 'other'"],
    ),
    "binary value": (
        replaced(SCENARIO, "70.0", "!!binary aGVsbG8="),
        [f"conf/{SCENARIO}, line ", "'!!binary' is no kind of value"],
    ),
    "set among sizes": (
        replaced(STUDY, "240.0", "!!set {a, b}"),
        [f"conf/{STUDY}, line ", "'!!set' is no kind of value"],
    ),
    "value that holds itself": (replaced(SCENARIO, "70.0", "&a [*a]"), [f"conf/{SCENARIO}, line ", "holds itself"]),
    "tab after a colon": (replaced(SCENARIO, "budget: ", "budget:\t"), [f"conf/{SCENARIO}, line ", "not valid YAML"]),
    "open entry of the defaults list": (
        replaced(SCENARIO, "  - /model: tiny8\n", "  -\n"),
        [f"conf/{SCENARIO}: defaults", "'/group: option'"],
    ),
    "two keys in an entry of the defaults list": (
        replaced(SCENARIO, "  - /model: tiny8\n", "  - {/model: tiny8, /gpu: priced}\n"),
        [f"conf/{SCENARIO}: defaults", "Too many keys"],
    ),
    "lists in lists without end": (
        replaced(SCENARIO, "budget: 70.0", f"budget: {'[' * 2000}{']' * 2000}"),
        [f"conf/{SCENARIO}, line ", "at most 50 levels"],
    ),
}
MISTAKES = {**TYPOS, **SHARED, **LIMITS, **DAMAGED, **KEYS}


@pytest.fixture(scope="module")
def right(checked: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout: conf/ without a mistake, a user's class, and the records that checking it leaves at scale small."""
    checkout = shutil.copytree(checked, tmp_path_factory.mktemp("right") / "checkout")
    for name, (kind, params) in FIGURES.items():
        text = FIGURE.format(name=name, kind=kind, params=params)
        written(f"figure/adaptation/{name}.yaml", text)(checkout / "conf")
    (checkout / "mine.py").write_text(OWN_CLASS)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(checkout)
        assert main(["check", "--scale", "small"]) == 0
    return checkout


@pytest.fixture
def conf(right: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The small configuration folder in a copy of the checkout, in which a test then is."""
    checkout = shutil.copytree(right, tmp_path / "checkout")
    monkeypatch.chdir(checkout)
    return checkout / "conf"


def test_the_folder_that_is_edited_has_no_mistake(conf: Path, capsys: pytest.CaptureFixture) -> None:
    for hidden in ("scenario/adaptation/.#tiny.yaml", ".checkpoints/scenario/tiny.yaml"):  # an editor's own files
        written(hidden, "no: [mapping")(conf)
    assert main(["check", "--conf", str(conf)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda name: name.replace(" ", "-"))
def test_a_mistake_is_told_once_with_file_and_key(mistake: str, conf: Path, capsys: pytest.CaptureFixture) -> None:
    edit, words = MISTAKES[mistake]
    edit(conf)
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 2
    told = capsys.readouterr().err
    assert [word for word in words if word not in told] == [], told
    assert told.endswith("1 mistake; nothing was run\n"), told
    assert "Traceback" not in told


def test_a_policy_that_no_scenario_compares_is_no_mistake_but_told(conf: Path, capsys: pytest.CaptureFixture) -> None:
    copied(POLICY, "policy/adaptation/exact-more.yaml")(conf)
    replaced("policy/adaptation/exact-more.yaml", "name: exact-tiny", "name: exact-more")(conf)
    assert main(["check", "--conf", str(conf)]) == 0
    hints = [line for line in capsys.readouterr().out.splitlines() if line.startswith("hint")]
    assert len(hints) == 1
    assert "conf/policy/adaptation/exact-more.yaml" in hints[0]
    assert "not learned" in hints[0]


def test_what_a_plan_of_many_replicates_costs_is_not_asked_before_its_limit(
    conf: Path, capsys: pytest.CaptureFixture
) -> None:
    replaced(SCENARIO, "\nreplicates: 2", "\nreplicates: 10000000000000000000")(conf)
    assert main(["check", "--conf", str(conf), "--scale", "small"]) == 2
    assert "replicates" in capsys.readouterr().err
