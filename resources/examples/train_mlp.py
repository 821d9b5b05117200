"""A plain training script for `schedlab cloud optimize`: a network 784-512-512-10 on synthetic pictures, on a CPU or a
GPU.

It runs alone (`python train_mlp.py`), too. What makes it ready to be optimised: `batch_size` and `epochs` stand at
module level, a row an epoch is written to the file that SCHEDLAB_LOG names, and the state is kept where
SCHEDLAB_CHECKPOINT_OUT says, to go on from it.
"""

import csv
import os
import time
from pathlib import Path

import torch
from torch import nn

batch_size = 128
epochs = 6
samples = 6_400
learning_rate = 0.05
seed = int(os.environ.get("OPTIMIZER_RANDOM_SEED", 0))
log_path = Path(os.environ.get("SCHEDLAB_LOG", "log-mlp.csv"))
checkpoint_in = os.environ.get("SCHEDLAB_CHECKPOINT_IN")
checkpoint_out = os.environ.get("SCHEDLAB_CHECKPOINT_OUT")


def synthetic_pictures(count, generator):
    """Pictures of 28 x 28 points in ten classes: a pattern for each class, and noise."""
    patterns = torch.randn(10, 784, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(10, (count,), generator=generator)
    return patterns[labels] + 2.0 * torch.randn(count, 784, generator=generator), labels


def train():
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    pictures, labels = synthetic_pictures(samples, generator)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=learning_rate, momentum=0.9)
    first = 0
    if checkpoint_in:
        kept = torch.load(checkpoint_in, weights_only=True)
        model.load_state_dict(kept["model"])
        optimizer.load_state_dict(kept["optimizer"])
        first = kept["epoch"]
    rows, so_far = [], 0.0
    for epoch in range(first, first + epochs):
        began, total, right = time.perf_counter(), 0.0, 0
        for chosen in torch.randperm(samples, generator=generator).split(batch_size):
            inputs, wanted = pictures[chosen].to(device), labels[chosen].to(device)
            outputs = model(inputs)
            loss = nn.functional.cross_entropy(outputs, wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(chosen)
            right += (outputs.argmax(1) == wanted).sum().item()
        took = time.perf_counter() - began
        so_far += took
        row = {
            "epoch": epoch + 1,
            "model_name": "mlp",
            "model_params": sum(parameter.numel() for parameter in model.parameters()),
            "model_layers": 3,
            "dataset": "synthetic",
            "data_count": samples,
            "data_size_mb": round(pictures.nbytes / 2**20, 1),
            "data_dim": 784,
            "batch_size": batch_size,
            "device_type": device,
            "train_loss": total / samples,
            "train_accuracy": right / samples,
            "epoch_time": took,
            "time_so_far": so_far,
            "throughput": samples / took,
        }
        rows.append(row)
        with log_path.open("w", newline="") as file:
            writer = csv.DictWriter(file, row)
            writer.writeheader()
            writer.writerows(rows)
        print(f"epoch {epoch + 1}: loss {row['train_loss']:.3f}, accuracy {row['train_accuracy']:.3f}, {took:.2f} s")
    if checkpoint_out:
        torch.save(
            {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": first + epochs}, checkpoint_out
        )


if __name__ == "__main__":
    train()
