"""What the text of a script tells of it, what it is told, and commands instead of scripts."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import pytest
from live_scripts import fake_nvidia_smi, logging_script, script

from schedlab.cli.main import main
from schedlab.config.errors import UserError
from schedlab.studies.cloud.live.process import ScriptFailed, available_cpus
from schedlab.studies.cloud.live.run import LiveRequest, run_script
from schedlab.studies.cloud.live.script import command_facts, script_facts
from schedlab.studies.cloud.model.allocation import Allocation


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("# A ResNet on CIFAR-10\ndef train_it():\n    device = 'cuda'", ("resnet", "cifar", True, "train_it")),
        ("epochs = 7\nbatch_size = 32", ("unknown", "unknown", False, None)),
        ("import bert\ndef main():\n    pass\nmain()", ("bert", "unknown", False, None)),
    ],
)
def test_the_text_of_a_script_names_model_data_and_function(tmp_path, text, facts):
    found = script_facts(script(tmp_path, text))
    assert (found.model_type, found.dataset_type, found.gpu_support, found.function) == facts


def test_the_words_of_a_command_name_model_and_data():
    found = command_facts(["torchrun", "main.py", "--arch", "resnet18", "--data=/data/ImageNet"])
    assert (found.model_type, found.dataset_type, found.gpu_support) == ("resnet", "imagenet", False)


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


ASKS = """
    import os
    size = int(os.environ{asked})
    with open(os.environ["SCHEDLAB_LOG"], "w") as log:
        log.write(f"epoch,batch_size,epoch_time,throughput\\n1,{{size}},0.001,100\\n")
"""


def ran(path: Path, folder: Path, batch: int | None = None, **more):
    return run_script(LiveRequest(path, Allocation(0, 1, 1), 1, batch, seconds=60.0, **more), folder / "run")


@pytest.mark.parametrize(("given", "used"), [(None, 48), (16, 16)])
def test_a_script_is_told_the_batch_that_is_given_and_else_has_its_default(tmp_path, given, used):
    path = script(tmp_path, ASKS.format(asked='.get("OPTIMIZER_BATCH_SIZE", 3 * len("x" * 16))'))
    assert ran(path, tmp_path, given).summary["batch_size"] == used


def test_a_script_that_needs_a_batch_is_refused_by_the_option_that_gives_one(tmp_path):
    path = script(tmp_path, ASKS.format(asked='["OPTIMIZER_BATCH_SIZE"]'))
    with pytest.raises(ScriptFailed, match="--batch_size"):
        ran(path, tmp_path)


def test_a_log_without_a_batch_needs_one_that_is_given(tmp_path):
    path = script(tmp_path, "batch_size = 24\n" + logging_script("epoch,epoch_time,throughput\n1,0.001,100\n"))
    with pytest.raises(ScriptFailed, match="--batch_size"):
        ran(path, tmp_path / "none")
    assert ran(path, tmp_path, 8).summary["batch_size"] == 8


COMMAND = """
    import os, sys
    batch, epochs, gpus, cores, rest = sys.argv[1:]
    assert len(os.sched_getaffinity(0)) == int(cores) and os.environ["OPTIMIZER_EPOCHS"] == epochs
    with open(os.environ["SCHEDLAB_LOG"], "w") as log:
        log.write("epoch,model_name,batch_size,epoch_time,throughput\\n")
        for epoch in range(int(epochs)):
            log.write(f"{epoch + 1},{gpus}:{rest},{batch},0.001,100\\n")
"""


def words(path: Path) -> tuple[str, ...]:
    return (sys.executable, str(path), "{batch}", "{epochs}", "{gpus}", "{cores}", "--lr={rate}")


def test_a_command_gets_the_values_of_its_placeholders_and_keeps_the_limits(tmp_path):
    path = script(tmp_path, COMMAND)
    run = ran(path, tmp_path, 32, command=words(path))
    assert run.how == "done" and run.table[["batch_size", "model_name"]].to_numpy().tolist() == [[32, "0:--lr={rate}"]]


def test_a_command_without_a_batch_for_its_placeholder_is_refused(tmp_path):
    with pytest.raises(UserError, match="--batch_size"):
        ran(tmp_path / "x.py", tmp_path, command=("python", "x.py", "{batch}"))


def test_a_program_that_is_not_there_fails_with_its_name(tmp_path):
    with pytest.raises(ScriptFailed, match="no-such-program"):
        ran(Path("no-such-program"), tmp_path, command=("no-such-program", "--x"))


def test_a_command_that_runs_out_of_memory_broke_that_limit(tmp_path):
    path = script(tmp_path, "x = bytearray(1 << 32)")
    assert ran(path, tmp_path, command=(sys.executable, str(path))).how == "memory"


TORCHRUN = """#!{python}
# As torchrun does, start processes of a script with their ranks.
import os, subprocess, sys
option, number, *words = sys.argv[1:]
assert option == "--nproc_per_node"
ranks = [dict(os.environ, RANK=str(rank), WORLD_SIZE=number) for rank in range(int(number))]
started = [subprocess.Popen([sys.executable, *words], env=each) for each in ranks]
sys.exit(max(process.wait() for process in started))
"""
RANKED = """
    import os
    seen = os.environ["CUDA_VISIBLE_DEVICES"], os.environ["WORLD_SIZE"], os.environ["OMP_NUM_THREADS"]
    open(f"rank-{os.environ['RANK']}", "w").write(";".join(seen))
    if os.environ["RANK"] == "0":
        with open(os.environ["SCHEDLAB_LOG"], "w") as log:
            log.write("epoch,batch_size,epoch_time,data_count\\n")
            for epoch in range(int(os.environ["OPTIMIZER_EPOCHS"])):
                log.write(f"{epoch + 1},32,{0.1 / int(os.environ['WORLD_SIZE'])},3200\\n")
"""


@pytest.fixture
def launcher(tmp_path, monkeypatch) -> tuple[str, ...]:
    """The words that call a stand-in for torchrun, which is on the path of a machine with three GPUs."""
    fake_nvidia_smi(tmp_path, monkeypatch)
    program = tmp_path / "bin" / "torchrun"
    program.write_text(TORCHRUN.format(python=sys.executable))
    program.chmod(0o755)
    return "torchrun", "--nproc_per_node", "{gpus}"


def test_a_launcher_starts_a_process_for_each_gpu_which_share_the_cores(tmp_path, launcher):
    path, cores = script(tmp_path, RANKED), len(available_cpus())
    request = LiveRequest(path, Allocation(2, cores, 1), 2, seconds=60.0, command=(*launcher, str(path)))
    run = run_script(request, tmp_path / "run")
    assert run.how == "done" and run.table["epoch_time"].tolist() == [0.05, 0.05]
    for rank in range(2):
        assert (tmp_path / "run" / f"rank-{rank}").read_text() == f"0,1;2;{max(1, cores // 2)}"


def test_a_launched_training_is_measured_and_planned_on_instances(tmp_path, launcher, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    script(tmp_path, RANKED)
    header = "type,gpus,gpu_kind,cores,memory_gb,price,spot_price,interruption_rate\n"
    Path("instances.csv").write_text(header + "one,1,T4,4,32,1,,\nthree,3,T4,4,32,2,,\n")
    words = ("--epochs", "400", "--json", "--instances", "instances.csv", "--deadline", "25")
    assert main(["cloud", "plan", *words, "--", *launcher, "script.py"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["plan"]["instance"] == "three" and found["plan"]["gpus"] == 3  # 400 epochs of a thirtieth of a second
    assert found["plan"]["time_s"] == pytest.approx(40 / 3, rel=0.2)
