# SPDX-License-Identifier: Apache-2.0
"""A layer of a transformer's encoder as a graph of the intermediate form."""

from __future__ import annotations

import numpy as np

from models.tests.compiler.compiled_graphs import Maker
from openkpu.compiler.form.graph import Graph, Host, Tensor
from openkpu.compiler.form.rarer import Product


def attention(tokens: int = 10, width: int = 24, heads: int = 3) -> Graph:
    """A layer of a transformer's encoder: attention, sums, normalisation, a network of two."""
    m, each = Maker(12), width // heads

    def split(x: Tensor) -> Tensor:
        y = m.move([x], (1, tokens, heads, each), "reshape")
        return m.move([y], (1, heads, tokens, each), "transpose", axes=(0, 2, 1, 3))

    def product(a: Tensor, b: Tensor, n: int, turned: bool) -> Tensor:
        y = m.tensor(*a.shape[:-1], n)
        y.scale = float(np.float32(a.step * b.step * 60 * 60 * np.sqrt(a.shape[-1]) / 60))
        return m.node(Product, [a, b], y, clamp=y.limits, turned=turned)

    def norm(x: Tensor) -> Tensor:
        y = m.tensor(*x.shape, scale=0.03, zero=0)
        gain, shift = m.rng.uniform(0.8, 1.2, width), m.rng.uniform(-0.2, 0.2, width)
        more = {"axis": 2, "epsilon": 1e-5, "gain": gain, "offset": shift}
        return m.node(Host, [x], y, how="layernorm", **more)

    x = m.input(1, tokens, width)
    q, k, v = (split(m.dense(x, width)) for _ in range(3))
    scores = product(q, k, tokens, turned=True)
    soft = m.tensor(*scores.shape, scale=1 / 256, zero=-128)
    m.node(Host, [scores], soft, how="softmax", axis=3)
    mixed = product(soft, v, each, turned=False)
    mixed.scale = float(np.float32(v.step / 2))
    back = m.move([mixed], (1, tokens, heads, each), "transpose", axes=(0, 2, 1, 3))
    one = norm(m.both("add", x, m.dense(m.move([back], (1, tokens, width), "reshape"), width)))
    two = m.dense(m.table(m.dense(one, 40), np.maximum(np.arange(-128, 128), -20)), width)
    return m.done(norm(m.both("add", one, two)))
