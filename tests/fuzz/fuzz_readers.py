"""Every reader of files that others wrote, with the valid files that the fuzzer makes wrong and the number of inputs
in the test suite.

A reader is called as its command calls it: with the path of a file, and on to the first thing that uses the values.
"""

from __future__ import annotations

import gzip
import io
import json
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fuzz_adaptation
import fuzz_manifests
import numpy as np

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests/data"
SUITE = 200  # inputs of a reader in the test suite


@dataclass(frozen=True)
class Reader:
    """A reader under test.

    file   name of the file that it is given, in a folder of its own
    form   what its files are made of: text, json or zip (fuzz_mutations.mutated)
    seeds  valid files; each must be read without an error
    read   reads the file at a path; UserError is the only error that it may raise
    suite  inputs in the test suite
    """

    name: str
    file: str
    form: str
    seeds: Callable[[], list[bytes]]
    read: Callable[[Path], Any]
    suite: int = SUITE


def _files(*names: str) -> list[bytes]:
    return [(ROOT / name).read_bytes() for name in names]


def _small(pattern: str, largest: int = 1300) -> list[bytes]:
    """The small ones of the recorded files."""
    return [path.read_bytes() for path in sorted(DATA.glob(pattern)) if path.stat().st_size <= largest]


SWF = b"""; Version: 2.2
; Computer: made for this test
; MaxProcs: 64
    1     0     5   100     4  90.5    -1     4   200    -1  1   3   1   2  1  1 -1 -1
    2    10    -1    30     8    -1    -1     8    60   512  1   4   1  -1  1  1 -1 -1
    3    20     0  3600    64    -1  1024    64  7200    -1  0   3   2   2  2  1  1 10
  ; a comment between
    4    20     0     0     1    -1    -1     1    -1    -1  5   3   2   2  2  1 -1 -1
"""


def _swf_seeds() -> list[bytes]:
    return [SWF, gzip.compress(SWF, mtime=0), SWF.replace(b"\n", b"\r\n")]


def _read_swf(path: Path) -> None:
    from schedlab.workloads.swf import read_swf

    read_swf(path)


def _read_platform_json(path: Path) -> None:
    from schedlab.platforms.generate import hierarchy_of
    from schedlab.platforms.settings import PlatformSettings

    hierarchy_of(PlatformSettings(file=str(path)))


def _read_platform_xml(path: Path) -> None:
    from schedlab.platforms.batsim_xml import read_platform

    platform = read_platform(path)
    hosts = platform.compute_hosts("master_host")
    platform.route(hosts[0], hosts[-1])


def _read_workload(path: Path) -> None:
    from schedlab.batsim.files.workload import read_workload

    read_workload(path, "w0")


def _read_events(path: Path) -> None:
    from schedlab.batsim.files.workload import read_events

    read_events(path, 4, forward_unknown=True)


OPTIONS = {
    "seed": 7,
    "nb_resources": 4,
    "nb_jobs": 20,
    "workload_file_path": "trace.swf",
    "platform_file_path": "learning",
    "pybatsim": {
        "log_level": "INFO",
        "env": {
            "objective": "makespan",
            "actions": {
                "selection": [{"first": ["high_gflops", "high_mem_bw"]}, {"shortest": ["random"]}],
                "void": True,
            },
            "observation": "normal",
            "queue_sensitivity": 0.05,
        },
        "agent": {"type": "LEARNING", "run": "train", "hidden": 16, "lr": 0.005, "gamma": 0.99},
    },
}


def _options_seeds() -> list[bytes]:
    older = json.loads(json.dumps(OPTIONS))
    del older["pybatsim"]["env"]["actions"]
    older["pybatsim"]["agent"] = {"type": "CLASSIC", "policy_pair": "shortest-high_mem_bw"}
    return [json.dumps(values, indent=1).encode() for values in (OPTIONS, older)]


def _read_options(path: Path) -> None:
    from schedlab.studies.hetero.hdeeprm.options import decision_settings, read_options

    decision_settings(read_options(path), compat=True)


PIPEDREAM = b"""\
node1 -- Input -- forward_compute_time=0.0, backward_compute_time=0.0, activation_size=600.0, parameter_size=0.0
node2 -- Conv2d(3, 64) -- \
forward_compute_time=1.5, backward_compute_time=3e-1, activation_size=[6.0; 2.0], parameter_size=40.0
node3 -- ReLU -- forward_compute_time=.5, backward_compute_time=1., activation_size=8, parameter_size=0.0
\tnode1 -- node2
\tnode2 -- node3 -- size=4.0
"""


def _read_graph(path: Path) -> None:
    from schedlab.studies.ramp.graphs.files import read_graphs
    from schedlab.studies.ramp.graphs.graph import training_graph

    for graph in read_graphs(path):
        training_graph(graph)


def _zipped(members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), content, compress_type=compression)
    return made.getvalue()


def _graph_archives() -> list[bytes]:
    members = {"first.txt": PIPEDREAM, "second.txt": PIPEDREAM.replace(b"600.0", b"500.0")}
    return [_zipped(members), _zipped(members, zipfile.ZIP_DEFLATED)]


WORKLOAD = (
    b'{"nb_res": 4, "jobs": [{"id": 1, "subtime": 0, "res": 1, "profile": "p"}], "profiles": {"p": {"type": '
    b'"delay", "delay": 3}}}'
)


def _workload_archives() -> list[bytes]:
    return [_zipped({"test-0.json": WORKLOAD}), _zipped({"test-0.json": WORKLOAD}, zipfile.ZIP_DEFLATED)]


def _extract_workload(path: Path) -> None:
    from schedlab.studies.hetero.prepare import extract_workload

    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        _read_workload(extract_workload(path, "test-0", folder))


STEP_TIMES = b"""placement,local_bsz,step_time,sync_time
1,32,0.1,0.0
2,32,0.12,0.02
44,64,0.3,0.1
"""
TRAINING_LOG = b"""\
epoch,model_name,batch_size,cpu_count,gpu_count,cpu_percent,\
epoch_time,time_so_far,throughput,data_count,gpu_utilization_0
1,resnet18,128,8,2,70.5,50.0,50.0,1000.0,50000,80.0
2,resnet18,128,8,2,71.5,40.0,90.0,1250.0,50000,82.0
1,resnet18,256,8,1,,25.0,,2000.0,50000,
"""


def _training_logs() -> list[bytes]:
    return [TRAINING_LOG, STEP_TIMES, b"\n".join(_files("tests/data/cloud/similarity_logs.csv")[0].split(b"\n")[:8])]


def _read_log(path: Path) -> None:
    from schedlab.studies.cloud.model.fit_report import read_logs

    read_logs([path])


INSTANCES = b"""\
type,gpus,gpu_kind,cores,memory_gb,price,spot_price,interruption_rate,speed
t4-1,1,T4,8,32,0.6,0.2,0.1,1
a100-4,4,A100,48,480,16,6.4,0.2,6
cpu-16,0,,16,64,0.8,,,
"""
OF_SKYPILOT = b"""\
InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,AvailabilityZone
g4,T4,1.0,4.0,16.0,0.5,0.3,us,us-a
g4,T4,1.0,4.0,16.0,0.5,,us,us-b
,A100,1.0,,,2.0,1.0,us,us-a
"""


def _read_instances(path: Path) -> None:
    from schedlab.studies.cloud.model.instances import kind_speeds, offers_of, read_instances

    types = read_instances(path)
    offers_of(types, 0.1)
    kind_speeds(types, ["T4"], None, "--gpu-kind")


LIMITS = {
    "resource": {
        "gpu_count_max": 8,
        "gpu_count_min": 1,
        "cpu_count_max": 64,
        "cpu_count_min": 1,
        "memory_max": 256,
        "memory_min": 4,
    },
    "sla": {
        "time_max": 600.0,
        "cost_max": 0.3,
        "throughput_min": 1800.0,
        "memory_max": 64.0,
        "gpu_util_min": 80.0,
        "cpu_util_min": 70.0,
    },
}
RECORDS = [
    {
        "epoch": 1,
        "time_so_far": 900.0,
        "cost_so_far": 0.9,
        "throughput": 800.0,
        "memory_used_gb": 10.0,
        "cpu_percent": 75.0,
    },
    {
        "epoch": 2,
        "time_so_far": 100.0,
        "cost_so_far": 0.1,
        "throughput": 1000.0,
        "memory_used_gb": 20.0,
        "gpu_utilization_0": 20.0,
    },
]
REWARD = {
    "preference": "cost",
    "action": 26,
    "history": RECORDS,
    "allocation": {"gpu_count": 2, "cpu_count": 8, "memory_gb": 16},
}
CLOUD_KINDS = ("actions", "change", "cost", "reward", "similarity", "sla")


def _cloud_cases(kind: str) -> list[bytes]:
    """The first cases of each list of the recorded file, or a reward, of which none is recorded."""
    if kind == "reward":
        return [json.dumps({**LIMITS, "cases": [REWARD]}).encode()]
    values = json.loads((DATA / f"cloud/{kind}.json").read_bytes())
    return [
        json.dumps({key: value[:2] if isinstance(value, list) else value for key, value in values.items()}).encode()
    ]


def _replay_cloud(path: Path) -> None:
    from schedlab.studies.cloud.slamorl.case_files import replay

    if path.stem == "similarity":
        path.with_name("similarity_logs.csv").write_bytes((DATA / "cloud/similarity_logs.csv").read_bytes())
    json.dumps(replay(path, compat=False), allow_nan=False)


def _ramp_cases() -> list[bytes]:
    """Small recorded runs; of their results only what the reader looks at."""
    found = []
    for name in ("c30_memory_too_big", "c27_reject_all", "c02_chain_degree2"):
        values = json.loads((DATA / f"ramp/{name}.json").read_bytes())
        kept = ("partition_degrees", "max_partition_degree", "placement")
        jobs = {
            number: {key: job[key] for key in kept if key in job}
            for number, job in (values["expected"].get("jobs") or {}).items()
        }
        values["expected"] = {"jobs": jobs}
        found.append(json.dumps(values).encode())
    return found


def _read_ramp_case(path: Path) -> None:
    from schedlab.studies.ramp.compat.case_file import read_case
    from schedlab.studies.ramp.legacy import LegacySettings

    read_case(path, LegacySettings())


@cache
def _checkpoints() -> list[bytes]:
    from schedlab.learning.checkpoints import write_checkpoint

    arrays = {
        "network/weight": np.arange(6, dtype=np.float32).reshape(2, 3),
        "network/bias": np.zeros(2),
        "mask": np.array([True, False]),
    }
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "policy.zip")
        write_checkpoint(path, {"kind": "fuzz", "digest": "a" * 12, "values": {"rate": 0.1, "sizes": [2, 3]}}, arrays)
        stored = path.read_bytes()
    with zipfile.ZipFile(io.BytesIO(stored)) as archive:
        packed = _zipped({name: archive.read(name) for name in archive.namelist()}, zipfile.ZIP_DEFLATED)
    return [stored, packed]


def _read_checkpoint(path: Path) -> None:
    from schedlab.learning.checkpoints import read_checkpoint, read_progress

    read_progress(path, "fuzz", "a" * 12)
    read_checkpoint(path, "fuzz").group("network")


def _compare_checkpoint(path: Path) -> None:
    fuzz_manifests.compare(path, _checkpoints()[0])


@cache
def _agent_models() -> list[bytes]:
    """A model before it has learned, and one with the optimizer's memory."""
    from schedlab.studies.hetero.hdeeprm.agent_models import model_of, write_model

    network, optimizer = _agent()
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for episodes in (0, 1):
            if episodes:
                network.forward(network.weight.detach()[:, :3]).sum().backward()
                optimizer.step()
            write_model(Path(folder, "model.pt"), model_of(network, optimizer, episodes), optimizer)
            made.append(Path(folder, "model.pt").read_bytes())
    return made


def _agent() -> tuple[Any, Any]:
    """A network and its optimizer."""
    import torch

    torch.manual_seed(0)
    network = torch.nn.Linear(3, 2)
    return network, torch.optim.Adam(network.parameters())


def _read_agent_model(path: Path) -> None:
    from schedlab.studies.hetero.hdeeprm.agent_models import put_memory, put_weights, read_model

    model = read_model(path)
    network, optimizer = _agent()
    put_weights(network, model)
    put_memory(optimizer, model)


def _yaml_seeds() -> list[bytes]:
    return _files(
        "conf/scenario/hetero/trio.yaml",
        "conf/scenario/batch/lublin.yaml",
        "conf/scenario/adaptation/early.yaml",
        "conf/gpu/a100.yaml",
    )


def _read_yaml(path: Path) -> None:
    from schedlab.config.readers import read_yaml

    read_yaml(path)


class _Configuration:
    """A configuration folder of one scenario, for this process. What no input changes is read and composed once.

    records  cached records of everything but the scenarios that are tried; put back before each of them, as valid
             ones would be added
    made     Hydra's compositions
    """

    scenario = ("scenario/hetero", "trio")

    def __init__(self) -> None:
        sys.path.append(str(ROOT / "tests"))
        from schedlab.config.composition import Compositions
        from small_conf import write_hetero_conf

        self.place = tempfile.TemporaryDirectory(prefix="fuzzed-conf-")
        self.folder = write_hetero_conf(Path(self.place.name))
        self.made, self.records = Compositions(self.folder), Path(self.place.name, "records.json")
        self.check((self.folder / "/".join(self.scenario)).with_suffix(".yaml").read_bytes())
        self.kept = self.records.read_bytes()

    def check(self, scenario: bytes) -> None:
        """Put a file in the place of the scenario and do what `schedlab check` does."""
        from schedlab.config import experiment
        from schedlab.stages.studies import find_study

        name = "/".join(self.scenario)
        (self.folder / f"{name}.yaml").write_bytes(scenario)
        self.made._made.pop(self.scenario, None)
        self.made._layout = None
        experiment.load(self.folder, "smoke", find_study, self.records, self.made)


_configuration = cache(_Configuration)


def _check_scenario(path: Path) -> None:
    configuration = _configuration()
    configuration.records.write_bytes(configuration.kept)
    configuration.check(path.read_bytes())


READERS = {
    reader.name: reader
    for reader in (
        Reader("swf", "trace.swf", "text", _swf_seeds, _read_swf),
        Reader(
            "platform-json",
            "platform.json",
            "json",
            lambda: _files(
                "resources/platforms/learning.json", "resources/platforms/gaia.json", "resources/platforms/pik.json"
            ),
            _read_platform_json,
        ),
        Reader("platform-xml", "platform.xml", "text", lambda: _small("batsim/*/platform.xml"), _read_platform_xml),
        Reader("workload-json", "workload.json", "json", lambda: _small("batsim/*/workload.json"), _read_workload),
        Reader("events", "events.txt", "text", lambda: _small("batsim/*/events.txt"), _read_events),
        Reader("options-json", "options.json", "json", _options_seeds, _read_options),
        Reader(
            "pipedream",
            "graph.txt",
            "text",
            lambda: [PIPEDREAM, *_files("resources/graphs/a100/alexnet.txt")],
            _read_graph,
        ),
        Reader("cost-graph", "graph.pbtxt", "text", lambda: _files("tests/data/graphs/cost_graph.pbtxt"), _read_graph),
        Reader("graph-archive", "graphs.zip", "zip", _graph_archives, _read_graph),
        Reader("workload-archive", "workloads.zip", "zip", _workload_archives, _extract_workload),
        Reader("training-log", "log.csv", "text", _training_logs, _read_log),
        Reader("instances", "instances.csv", "text", lambda: [INSTANCES, OF_SKYPILOT], _read_instances),
        *(
            Reader(
                f"cloud-case-{kind}",
                f"{kind}.json",
                "json",
                lambda kind=kind: _cloud_cases(kind),
                _replay_cloud,
                -(-SUITE // 6),
            )
            for kind in CLOUD_KINDS
        ),
        Reader("ramp-case", "case.json", "json", _ramp_cases, _read_ramp_case),
        Reader("checkpoint", "policy.zip", "zip", _checkpoints, _read_checkpoint),
        Reader(
            "cifar-binary",
            "data_batch_1.bin",
            "text",
            fuzz_adaptation.binary_batches,
            fuzz_adaptation.read_binary_batch,
        ),
        Reader("idx-images", "images", "text", fuzz_adaptation.idx_images, fuzz_adaptation.read_idx_images),
        Reader("idx-labels", "labels", "text", fuzz_adaptation.idx_labels, fuzz_adaptation.read_idx_labels),
        Reader("digits", "digits.csv", "text", fuzz_adaptation.digits, fuzz_adaptation.read_digits),
        Reader("vocabulary", "words.json", "json", fuzz_adaptation.vocabularies, fuzz_adaptation.read_vocabulary),
        Reader("run-file", "run.toml", "text", fuzz_adaptation.run_files, fuzz_adaptation.read_run_file),
        Reader("simulations", "table.csv", "text", fuzz_adaptation.simulations, fuzz_adaptation.rank_simulations),
        Reader("agent-model", "model.pt", "zip", _agent_models, _read_agent_model),
        Reader("manifest", "manifest.json", "json", fuzz_manifests.manifests, fuzz_manifests.check_manifest),
        Reader("record", "record.json", "json", fuzz_manifests.records, fuzz_manifests.check_record),
        Reader("compared-json", "model.json", "json", fuzz_manifests.results, fuzz_manifests.compare_json),
        Reader("compared-archive", "policy.zip", "zip", _checkpoints, _compare_checkpoint),
        Reader("yaml", "scenario.yaml", "text", _yaml_seeds, _read_yaml),
        Reader("scenario-yaml", "trio.yaml", "text", lambda: _files("conf/scenario/hetero/trio.yaml"), _check_scenario),
    )
}
