"""Files that the study adaptation reads of others, for fuzz_readers.py: valid ones, and their readers as the commands
call them.
"""

from __future__ import annotations

import gzip
import json
import struct
from pathlib import Path

IDX_IMAGES = struct.pack(">IIII", 0x803, 3, 4, 4) + bytes(range(48))
IDX_LABELS = struct.pack(">II", 0x801, 3) + bytes((7, 0, 9))


def binary_batches() -> list[bytes]:
    """CIFAR-10's binary batches."""
    return [b"\x03" + bytes(3072) + b"\x09" + bytes(range(256)) * 12, b"\x01" + bytes(3072)]


def read_binary_batch(path: Path) -> None:
    """Read a CIFAR-10 batch."""
    from schedlab.studies.adaptation.data.readers import read_cifar_binary

    read_cifar_binary(path, 10)


def idx_images() -> list[bytes]:
    """Images as MNIST has them, plain and packed."""
    return [IDX_IMAGES, gzip.compress(IDX_IMAGES, mtime=0)]


def read_idx_images(path: Path) -> None:
    """Read images with the labels beside them."""
    from schedlab.studies.adaptation.data.readers import read_idx_pair

    labels = path.with_name("labels")
    labels.write_bytes(IDX_LABELS)
    read_idx_pair(path, labels, classes=10)


def idx_labels() -> list[bytes]:
    """Labels as MNIST has them, plain and packed."""
    return [IDX_LABELS, gzip.compress(IDX_LABELS, mtime=0)]


def read_idx_labels(path: Path) -> None:
    """Read labels with the images beside them."""
    from schedlab.studies.adaptation.data.readers import read_idx_pair

    images = path.with_name("images")
    images.write_bytes(IDX_IMAGES)
    read_idx_pair(images, path, classes=10)


def digits() -> list[bytes]:
    """The digits table, some lines of it."""
    lines = [",".join([*(f"{(row * column) % 17}" for column in range(64)), f"{row}"]) for row in range(4)]
    return [("\n".join(lines) + "\n").encode(), "\n".join(line.replace(",", ".0,") for line in lines).encode()]


def read_digits(path: Path) -> None:
    """Read the digits table."""
    from schedlab.studies.adaptation.data import readers

    readers.read_digits(path)


def vocabularies() -> list[bytes]:
    """Vocabularies of layers."""
    layers = ["conv 3->32 kernel 3 stride 1 padding 0", "relu 32->32 kernel 1 stride 1 padding 0"]
    return [
        json.dumps({"version": 1, "seed": 42, "layers": layers}, indent=2).encode(),
        b'{"version": 1, "seed": 0, "layers": []}',
    ]


def read_vocabulary(path: Path) -> None:
    """Read a vocabulary and make its embedding."""
    from schedlab.studies.adaptation.learners import encoders

    encoders.read_vocabulary(path).embedding(2)


SIMULATION = b"""[runner]
seed = 42
total_episodes = 64
folder = "simulation_early2"
agent = "SimulationAgent"
save = true
[scheduler]
running_time = 400
gpu_changes = [{time = 70, change = "up"}, {time = 200, change = "down"}]
start_time = 70
[trainer]
weights = "../results/small_early2/weights.pth"
[job]
model = "ConvNet2"
dataset = "cifar10"
batchsize = 64
[agent]
device = 0
action_set_size = 4
num_actions = 3
"""
LEARNING = b"""[runner]
folder = 'simulation_early_learn2'
total_episodes = 75_000
agent = 'Agent'
[simulation]
datafile = '../results/simulation_early2/data.pkl'
[job]
model = 'ConvNet2'
dataset = 'cifar10'
[agent]
alpha = 2e-4
decay_freq = 250
learning_rate_decay = 0.98
temperature = 5.0
max_actions = 4
policyfile = '../results/simulation_late_learn2/policy_final.pth'
"""


def run_files() -> list[bytes]:
    """Run files of the published system: a simulation, and the learning of a policy."""
    return [SIMULATION, LEARNING]


def read_run_file(path: Path) -> None:
    """Read a run file, strictly and with unknown keys passed over, and say it in our words."""
    from schedlab.config.errors import UserError
    from schedlab.studies.adaptation.compat import run_file

    options = run_file.ImportOptions(("convnet2", "tiny8"), ("cifar10", "digits"))
    try:
        run, remarks = run_file.read_run_file(path)
    except UserError:
        run, remarks = run_file.read_run_file(path, keep_unknown=True)
    run_file.translate(path, run, options, remarks)
    run_file.check_sizes(str(path), run, 4)


PUBLISHED = (
    b"experiment,scenario,model,dataset,adapt_start_s,budget_s,seq,timeleft1_s,epochs,params_final,"
    b"train_epoch_s_mean,eval_s_mean,"
)
PUBLISHED += b"""train_acc_final,test_acc_final
one,early,ConvNet2,cifar10,70,400,0,328.88,27,38538,10.344,1.789,0.76558,0.7194
one,early,ConvNet2,cifar10,70,400,1,329.98,26,38538,10.432,1.953,0.77514,0.7262
one,early,ConvNet2,cifar10,70,400,2,329.98,26,38538,10.432,1.953,0.77514,0.7062
one,early,ConvNet2,cifar10,70,400,3,329.98,30,19914,9.432,1.753,0.75514,0.7012
"""
OWN = b"""scenario,job,replicate,sequence,epochs,test_accuracy
near,0,0,0,5,0.5
near,0,0,1,6,0.25
near,0,1,0,5,0.75
near,0,1,1,6,0.5
"""


def simulations() -> list[bytes]:
    """The published record of one experiment with one decision, and a table of ours."""
    return [PUBLISHED, OWN]


def rank_simulations(path: Path) -> None:
    """Do what `schedlab adaptation rank` does with a table."""
    from schedlab.studies.adaptation.compat.published_table import read_own_or_published
    from schedlab.studies.adaptation.simulator.ranking import ranking

    json.dumps(ranking(read_own_or_published(path), "test_accuracy", str(path)))
