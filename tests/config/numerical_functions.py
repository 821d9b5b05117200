"""A hash of what each numerical function gives that results may rest on, a line each, under the pinned instructions.

    python tests/config/numerical_functions.py
    qemu-x86_64 -cpu Haswell $(realpath .venv/bin/python) tests/config/numerical_functions.py   # on another processor

Equal lines on two processors: the function has the same bytes there. The emulator is QEMU's for user programs (10 or
newer: older ones fail at AVX2); PYTHONPATH then names src and the packages.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from schedlab.config.runtime.instructions import begin_job

SIZES = (1, 3, 16, 17, 64, 130, 400)
UNARY = ["exp", "expm1", "sin", "cos", "tan", "tanh", "sinh", "cosh"]
POSITIVE = ["log", "log2", "log10", "log1p", "sqrt", "reciprocal"]


def digest(*values: Any) -> str:
    """Return 16 hexadecimal digits over the bytes of arrays, tensors and numbers."""
    import numpy as np

    arrays = (value.detach().numpy() if hasattr(value, "detach") else value for value in values)
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:16]


def plain() -> Iterator[tuple[str, str]]:
    """Python's own, which are the C library's."""
    import numpy as np

    values = np.random.default_rng(3).uniform(-20, 20, 20_000).tolist()
    for name in (*UNARY, "atan", "erf"):
        yield f"math.{name}", digest([getattr(math, name)(value) for value in values])
    for name in ("log", "log2", "log10", "log1p", "lgamma"):
        yield f"math.{name}", digest([getattr(math, name)(abs(value)) for value in values])
    yield "math.pow", digest([abs(value) ** 1.7 for value in values])


def of_numpy() -> Iterator[tuple[str, str]]:
    import numpy as np

    draws = np.random.default_rng(3)
    for kind in (np.float64, np.float32):
        a = draws.uniform(-20, 20, 5001).astype(kind)
        p = np.abs(a) + kind(0.01)
        rounded = np.round(a)
        for name in UNARY:
            yield f"numpy.{name}.{kind.__name__}", digest(getattr(np, name)(a))
        for name in POSITIVE:
            yield f"numpy.{name}.{kind.__name__}", digest(getattr(np, name)(p))
        yield f"numpy.power.{kind.__name__}", digest(p ** kind(1.7))
        yield f"numpy.sum.{kind.__name__}", digest(a.sum(), a.std(), a.reshape(3, -1).sum(0), np.cumsum(a), a.prod())
        yield f"numpy.sort.{kind.__name__}", digest(np.argsort(rounded), np.argpartition(rounded, 50), np.sort(a))
        for size in SIZES:
            m, v = draws.standard_normal((size, size)).astype(kind), draws.standard_normal(size).astype(kind)
            products = (m @ m, m @ v, v @ v, np.einsum("ij,jk->ik", m, m))
            yield f"numpy.matmul.{size}.{kind.__name__}", digest(*products)
        m, v = m[:130, :130], v[:130]
        solved = (np.linalg.solve(m, v), np.linalg.svd(m)[1], np.linalg.eigh(m @ m.T)[0], np.linalg.qr(m)[0])
        yield f"numpy.linalg.{kind.__name__}", digest(*solved)
    yield "numpy.random", digest(draws.standard_normal(999), draws.gamma(2.3, size=999), draws.permutation(999))


def of_numba() -> Iterator[tuple[str, str]]:
    import numba
    import numpy as np

    @numba.njit
    def kernel(a, p):  # a sum step by step, products that could be fused, functions of the C library
        out, total = np.zeros((6, a.size)), 0.0
        for i in range(a.size):
            total += a[i] * p[i]
            out[0, i], out[1, i], out[2, i] = math.exp(a[i]), math.log(p[i]), p[i] ** 1.7
            out[3, i], out[4, i], out[5, i] = math.tanh(a[i]), total, a[i] * a[i] - p[i] * p[i]
        return out, np.mean(a), np.argsort(a)

    a = np.random.default_rng(5).uniform(-20, 20, 5001)
    yield "numba", digest(*kernel(a, np.abs(a) + 0.01))


def of_scipy_and_sklearn() -> Iterator[tuple[str, str]]:
    import numpy as np
    from scipy import linalg, optimize, special, stats
    from sklearn import ensemble, linear_model

    draws = np.random.default_rng(7)
    m, y = draws.standard_normal((40, 6)), draws.standard_normal(40)

    def error(w):
        return ((m @ w - y) ** 2).sum() + np.exp(w).sum()

    for method in ("L-BFGS-B", "SLSQP", "Nelder-Mead"):
        yield f"scipy.{method}", digest(optimize.minimize(error, np.zeros(6), method=method).x)
    yield "scipy.least_squares", digest(optimize.least_squares(lambda w: np.tanh(m @ w) - y, np.zeros(6)).x)
    yield "scipy.nnls", digest(optimize.nnls(m, y)[0])
    yield "scipy.linalg", digest(linalg.cho_factor(m.T @ m)[0], linalg.expm(m[:6]))
    yield "scipy.special", digest(special.erf(y), special.gammaln(np.abs(y)), special.ndtr(y), special.softmax(y))
    yield "scipy.stats", digest(stats.t.ppf(0.9, 3), stats.rankdata(y), stats.spearmanr(m[:, 0], y)[0])
    for name, model in (
        ("forest", ensemble.RandomForestRegressor(10, random_state=1)),
        ("boosting", ensemble.GradientBoostingRegressor(random_state=1)),
        ("ridge", linear_model.Ridge()),
    ):
        yield f"sklearn.{name}", digest(model.fit(m, y).predict(m))


def of_torch() -> Iterator[tuple[str, str]]:
    import torch

    torch.set_num_threads(1)
    for kind in (torch.float32, torch.float64):
        torch.manual_seed(0)
        name = str(kind).removeprefix("torch.")
        x = torch.empty(5001, dtype=torch.float64).uniform_(-20, 20).to(kind)
        for function in (*UNARY, "atan", "erf", "sigmoid"):
            yield f"torch.{function}.{name}", digest(getattr(torch, function)(x))
        for function in (*POSITIVE, "rsqrt", "lgamma"):
            yield f"torch.{function}.{name}", digest(getattr(torch, function)(x.abs() + 0.01))
        z = x[:5000].reshape(50, 100)
        yield f"torch.softmax.{name}", digest(torch.softmax(z, 1), torch.log_softmax(z, 0), torch.logsumexp(z, 1))
        yield f"torch.sum.{name}", digest(x.sum(), z.sum(0), z.mean(1), z.std(1), x.cumsum(0), x.norm())
        yield f"torch.sort.{name}", digest(z.sort().indices, z.topk(5).indices)
        for size in SIZES:
            m, w = torch.randn(size, size, dtype=kind), torch.randn(size, 33, dtype=kind)
            yield f"torch.matmul.{size}.{name}", digest(m @ m, m.T @ w, m @ w[:, 0], torch.addmm(w, m, w))
        drawn = (torch.randn(999), torch.empty(99).exponential_(), torch.multinomial(torch.softmax(z, 1), 3))
        yield f"torch.random.{name}", digest(*drawn)
        yield f"torch.orthogonal.{name}", digest(torch.nn.init.orthogonal_(torch.empty(64, 64, dtype=kind)))
        for trained, made in networks(kind, z):
            yield f"torch.{trained}.{name}", made


def networks(kind: Any, rows: Any) -> Iterator[tuple[str, str]]:
    """Networks after some steps of an optimiser: dense, convolutional, recurrent, attention."""
    import torch
    from torch import nn

    images, sequences, optim = torch.randn(32, 3, 16, 16, dtype=kind), rows.reshape(50, 5, 20), torch.optim
    dense = nn.Sequential(
        nn.Linear(100, 64), nn.Tanh(), nn.LayerNorm(64), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 9)
    )
    convolutional = nn.Sequential(
        nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 40, 3, 2), nn.Flatten()
    )
    recurrent = nn.LSTM(20, 32, batch_first=True, bidirectional=True)
    attention = nn.MultiheadAttention(20, 4, batch_first=True)
    cases: tuple[tuple[str, Any, Any, Callable[[Any], Any]], ...] = (
        ("dense", dense, optim.Adam, lambda net: net(rows)),
        ("convolutional", convolutional, optim.SGD, lambda net: net(images)),
        ("recurrent", recurrent, optim.RMSprop, lambda net: net(sequences)[0]),
        ("attention", attention, optim.Adam, lambda net: net(sequences, sequences, sequences)[0]),
    )
    for name, net, optimiser, forward in cases:
        steps = optimiser(net.to(kind).parameters(), lr=0.01)
        for _ in range(5):
            steps.zero_grad()
            torch.log_softmax(forward(net), -1).square().mean().backward()
            nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            steps.step()
        yield name, digest(*net.parameters())


def main() -> int:
    """Print a line for each function; returns 0."""
    begin_job()
    for part in (plain, of_numpy, of_numba, of_scipy_and_sklearn, of_torch):
        for name, made in part():
            print(name, made, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
