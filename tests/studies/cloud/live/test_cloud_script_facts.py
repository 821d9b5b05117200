"""What the text of a script tells of its settings, and that it is told its batch size whether or not one is given."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

import pytest
from live_scripts import logging_script, script

from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.run import LiveRequest, run_script, script_environment
from schedlab.studies.cloud.live.script import UNKNOWN_BATCH, script_facts
from schedlab.studies.cloud.model.allocation import Allocation

WRITTEN = {
    "plain": "batch_size = 32\nepochs = 7",
    "a key of a literal config": "config = {'lr': 0.1, 'batch_size': 32, 'epochs': 7}",
    "a key that is set": "config = load()\nconfig['batch_size'] = 32\nCONFIG['epochs'] = 7",
    "in a try": (
        "try:\n    import yaml\n    batch_size = 32\nexcept ImportError:\n    batch_size = 16\nfinally:\n    epochs = 7"
    ),
    "in an except": "try:\n    batch_size = given()\nexcept ValueError:\n    batch_size = 32\n    epochs = 7",
    "in an if": (
        "import os\nif os.name == 'nt':\n    pass\nelse:\n    if True:\n        batch_size = 32\n    epochs: int = 7"
    ),
    "in a with": "with open('x'):\n    batch_size = BATCH_SIZE = 32\n    epochs = 7",
    "in a match": "match mode:\n    case 1:\n        batch_size = 32\n    case _:\n        epochs = 7",
    "in the environment": (
        "import os\nbatch_size = int(os.environ.get('OPTIMIZER_BATCH_SIZE', 32))\n"
        "def train():\n    epochs = int(os.getenv('OPTIMIZER_EPOCHS', '7'))"
    ),
    "worked out": "batch_size = 4 * 2 ** 3\nepochs = 9 - 2",
    "by names": "BASE = 16\ndef train():\n    pass\nbatch_size = BASE * 2\nTURNS: int = 7\nepochs = int(TURNS)",
    "a default by its name": (
        "import os\nDEFAULT = '32'\nTURNS = 6\nsize = int(os.environ.get('OPTIMIZER_BATCH_SIZE', default=DEFAULT))\n"
        "for epoch in range(int(os.getenv('OPTIMIZER_EPOCHS') or str(TURNS + 1))):\n    pass"
    ),
    "before a loop": (
        "batch_size = 32\nwhile batch_size < grown():\n    batch_size = 64\nfor _ in runs:\n    epochs = 7"
    ),
}


@pytest.mark.parametrize("name", WRITTEN)
def test_settings_are_read_wherever_they_get_other_values(tmp_path, name):
    facts = script_facts(script(tmp_path, WRITTEN[name]))
    assert (facts.batch_size, facts.epochs) == (32, 7)


NOT_TOLD = {
    "computed": "batch_size = 4 * len(x)\nepochs = count()",
    "of names with two values": (
        "base = 16\nif small:\n    base = 8\nbatch_size = base\nfor turns in (1, 2):\n    epochs = turns"
    ),
    "of names that others set": (
        "from mine import base\ndef train(turns=1):\n    pass\nbatch_size = base\nepochs = turns"
    ),
    "of names in a circle": "base = start\nstart = base\nbatch_size = base\nepochs = 1 // 0",
    "too large to hold": "batch_size = 9 ** 9 ** 9\nepochs = 10 ** 18 * 10",
    "within a while": "while more():\n    batch_size = 32\n    epochs = 7",
    "a chain without end": "x0 = 1\n"
    + "\n".join(f"x{i + 1} = x{i}" for i in range(500))
    + "\nbatch_size = x500\nepochs = x499",
    "in a function": "def train():\n    batch_size = 32\n    epochs = 7",
    "of a class": "class Job:\n    batch_size = 32\n    epochs = 7",
    "of something else": "import os\nsettings['batch_size'] = 32\nx = os.environ.get('BATCHES', 32)",
    "of an environment alone": "import os\nepochs = os.environ.get('OPTIMIZER_EPOCHS')",
    "no whole number above 0": "batch_size = True\nepochs = 0\nconfig = {'batch_size': 1.5, 'epochs': '7'}",
    "a default that is none": (
        "import os\nx = os.environ.get('OPTIMIZER_BATCH_SIZE', 'all')\nepochs = os.getenv('OPTIMIZER_EPOCHS', 0)"
    ),
    "a default without end": f"import os\nbatch_size = os.getenv('OPTIMIZER_BATCH_SIZE', '{'1' * 5000}')",
    "declared alone": "batch_size: int\nepochs: int",
}


@pytest.mark.parametrize("name", NOT_TOLD)
def test_what_the_text_does_not_tell_is_not_guessed(tmp_path, name):
    facts = script_facts(script(tmp_path, NOT_TOLD[name]))
    assert (facts.batch_size, facts.epochs) == (None, None)


TOO_DEEP = {  # beyond the parser's own stack, whatever limit of recursion the process has
    "signs": "x = " + "-" * 100_000 + "1",
    "sums": "x = 1" + " + 1" * 50_000,
    "branches": "if a: pass\n" + "elif b: pass\n" * 20_000,
}


@pytest.mark.parametrize("limit", [1000, 10_000])
@pytest.mark.parametrize("text", TOO_DEEP.values(), ids=TOO_DEEP)
def test_a_script_that_no_parser_can_hold_is_refused(tmp_path, request, text, limit):
    request.addfinalizer(partial(sys.setrecursionlimit, sys.getrecursionlimit()))
    sys.setrecursionlimit(limit)
    with pytest.raises(UserError, match=r"script\.py"):
        script_facts(script(tmp_path, text))


def told_batch(path: Path, batch: int | None = None) -> str | None:
    return script_environment(LiveRequest(path, Allocation(0, 1, 1), 1, batch), path.parent).get("OPTIMIZER_BATCH_SIZE")


def test_the_batch_size_is_told_where_no_script_has_another_default(tmp_path):
    """The one that is given, else the script's own, else that of a script of which nothing is known."""
    own, computed = (
        script(tmp_path, "batch_size = 32", "own.py"),
        script(tmp_path, "batch_size = count()", "computed.py"),
    )
    assert (told_batch(own, 8), told_batch(own)) == ("8", "32")
    assert (told_batch(computed, 8), told_batch(computed)) == ("8", str(UNKNOWN_BATCH))
    assert told_batch(script(tmp_path, "train the net", "no_python.py")) == str(UNKNOWN_BATCH), (
        "the run itself says what is wrong"
    )


ASKS = "import os\nsize = int(os.environ.get('OPTIMIZER_BATCH_SIZE', {}))\n"
UNTOLD = {
    "a name": ("DEFAULT = 256\n" + ASKS.format("DEFAULT"), "256"),
    "arithmetic": (ASKS.format("4 * 32"), "128"),
    "another than the setting": ("batch_size = 32\n" + ASKS.format("batch_size * 8"), "256"),
    "nobody knows": (ASKS.format("count()"), None),
    "two of them": (ASKS.format(32) + ASKS.format(64), None),
    "one twice": (ASKS.format(32) * 2, "32"),
    "one of a condition": (
        "import os\nsize = int(os.environ['OPTIMIZER_BATCH_SIZE']) if 'OPTIMIZER_BATCH_SIZE' in os.environ else 9",
        None,
    ),
    "one of an exception": (
        "import os\ntry:\n    size = os.environ['OPTIMIZER_BATCH_SIZE']\nexcept KeyError:\n    size = 9",
        None,
    ),
    "none, and it has to be there": ("import os\nsize = int(os.environ['OPTIMIZER_BATCH_SIZE'])", "64"),
}


@pytest.mark.parametrize("name", UNTOLD)
def test_a_script_trains_with_the_default_that_it_has_beside_the_variable(tmp_path, name):
    text, told = UNTOLD[name]
    path = script(tmp_path, text)
    assert (told_batch(path), told_batch(path, 16)) == (told, "16")


@pytest.mark.parametrize("default", ["48", "3 * len('x' * 16)"])
def test_a_run_without_a_batch_has_the_default_of_the_script(tmp_path, default):
    path = script(
        tmp_path,
        ASKS.format(default) + "open(os.environ['SCHEDLAB_LOG'], 'w').write("
        "f'epoch,batch_size,epoch_time,throughput\\n1,{size},0.001,100\\n')",
    )
    run = run_script(LiveRequest(path, Allocation(0, 1, 1), 1, seconds=60.0), tmp_path / "run")
    assert run.summary["batch_size"] == 48


@pytest.mark.parametrize(("given", "used"), [(None, 48), (16, 16)])
def test_a_script_that_asks_its_environment_trains_with_the_batch_that_it_is_told(tmp_path, given, used):
    text = """
        import os
        size = int(os.environ.get("OPTIMIZER_BATCH_SIZE", 48))
        with open(os.environ["SCHEDLAB_LOG"], "w") as log:
            log.write(f"epoch,batch_size,epoch_time,throughput\\n1,{size},0.001,100\\n")
    """
    run = run_script(LiveRequest(script(tmp_path, text), Allocation(0, 1, 1), 1, given, seconds=60.0), tmp_path / "run")
    assert run.summary["batch_size"] == used


def test_a_key_that_is_set_in_a_block_is_the_batch_of_a_log_without_one(tmp_path):
    text = "import os\nconfig = dict(lr=0.1)\nif True:\n    config['batch_size'] = 24\n"
    path = script(tmp_path, text + logging_script("epoch,epoch_time,throughput\n1,0.001,100\n"))
    assert (
        run_script(LiveRequest(path, Allocation(0, 1, 1), 1, seconds=60.0), tmp_path / "run").summary["batch_size"]
        == 24
    )
