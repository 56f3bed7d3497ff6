# SPDX-License-Identifier: Apache-2.0
"""A layer for every bin of the functional coverage model's crosses of layers."""

import numpy as np

from openkpu.arithmetic.pooling import POOL_STRIDE
from openkpu.configs import Config
from openkpu.layer.elementwise import OPERATIONS
from openkpu.layer.pool_tasks import KINDS
from openkpu.network.network import Network
from openkpu_tb.coverage.model import (
    BITS,
    DILATED,
    LOADS,
    MAPS,
    OPERANDS,
    POOLS,
    WIDTHS,
    WINDOWS,
    Bin,
    crosses,
)
from openkpu_tb.runs.random_cases import case_of, draw_layer, images_of
from openkpu_tb.runs.requests import RandomCase

CROSSES = ("layer", "dilation", "elementwise", "pooling", "product")
WAYS = ("host", "tasks", "stream")


def layer_bins() -> list[tuple[str, Bin]]:
    """(cross, bin) of the bins that count, in order."""
    found = {cross.name: cross.bins for cross in crosses()}
    return [(name, bin) for name in CROSSES for bin in found[name]]


def bin_case(config: Config, cross: str, bin: Bin, seed: int, way: str) -> RandomCase:
    """A random layer that falls into ``bin``, as a case.

    Sizes within the class of the width are drawn; what else a layer has is as in random_layer.
    """
    rng = np.random.default_rng(seed)
    n = lambda least, most: int(rng.integers(least, most + 1))  # noqa: E731
    width = bin[2] if cross == "layer" else bin[-1] if cross != "dilation" else "2-16"
    pool = {"layer": 1, "dilation": 2, "elementwise": 2}.get(cross)
    code = 0 if pool is None else POOLS.index(bin[pool])
    stride = POOL_STRIDE[code]
    widths = list(WIDTHS)
    narrowest = 1 + (WIDTHS[widths[widths.index(width) - 1]] if width != "1" else 0)

    def two_maps(_rng: np.random.Generator) -> dict[str, int | bool]:
        w = n(max(narrowest, stride), WIDTHS[width])
        return {
            **{"elementwise": True, "op": OPERATIONS.index(bin[0]), "one": bin[1] == MAPS[0]},
            **{"c": n(1, 2 if w > 64 else 12), "h": n(stride, stride + (2 if w > 64 else 9))},
            **{"w": w, "pool": code, "ram_rows": config.ai_ram_rows},
        }

    def layer_of(_rng: np.random.Generator) -> dict[str, int | bool]:
        kernel, _, _, bits, loads = bin
        w = n(max(narrowest, stride), WIDTHS[width])
        few = w > 64 or kernel == "fc"
        count = 1 + LOADS.index(loads) + (n(0, 2) if loads == LOADS[-1] else 0)
        per_load = n(1, 2 if few else 5)
        # the last load may be smaller than the others
        o = per_load * (count - 1) + n(1, per_load)
        c = n(1, 3 if few else 12)
        if kernel.endswith("dw"):
            c, o = (max(c, o),) * 2
        return {
            **{"c": c, "o": o, "w": w, "h": n(stride, stride + (2 if few else 9))},
            **{"kernel": 3 if kernel.startswith("3x3") else 1, "pool": code},
            **{"depthwise": kernel.endswith("dw"), "fc": kernel == "fc"},
            **{"eight_bit": bits == BITS[0], "per_load": per_load},
            "ram_rows": config.ai_ram_rows,
        }

    def apart(_rng: np.random.Generator) -> dict[str, int | bool]:
        far, kind, _ = bin
        c = n(1, 12)
        o = {"o": c if kind == DILATED[1] else n(1, 12)}
        extra = {"product": True} if kind == DILATED[2] else {"pool": code, "fc": False, **depth}
        return {
            **{"c": c, "h": n(stride, 20), "w": n(stride, 70), "kernel": 3, "dilation": int(far)},
            **{**o, **extra, "ram_rows": config.ai_ram_rows},
        }

    depth = {"depthwise": bin[1] == DILATED[1]}

    def pools(_rng: np.random.Generator) -> dict[str, int | bool | tuple[int, int, int, int]]:
        kind = next(kind for kind, name in KINDS.items() if name == bin[0])
        w, padded = n(narrowest, WIDTHS[width]), bin[1] == WINDOWS[1]
        return {
            **{"pooling": True, "kind": kind, "whole": bin[1] == WINDOWS[2], "padded": padded},
            **{"c": n(1, 2 if w > 64 else 12), "h": n(1, 9), "w": w},
            "ram_rows": config.ai_ram_rows,
        }

    def products(_rng: np.random.Generator) -> dict[str, int | bool]:
        signs, w = OPERANDS.index(bin[1]), n(narrowest, WIDTHS[width])
        return {
            **{"product": True, "kernel": 3 if bin[0] == "3x3" else 1},
            **{"signed_b": bool(signs & 1), "signed_a": bool(signs & 2)},
            **{"c": n(1, 3 if w > 64 else 12), "o": n(1, 3 if w > 64 else 12)},
            **{"h": n(1, 2 if w > 64 else 9), "w": w, "ram_rows": config.ai_ram_rows},
        }

    shapes = {"layer": layer_of, "elementwise": two_maps, "pooling": pools, "product": products}
    shapes["dilation"] = apart
    layer = draw_layer(rng, shapes[cross])
    images = layer.x.view(np.uint8)[None]
    if way != "host":
        images = np.concatenate([images, images_of(rng, layer.arg.in_shape, 1)])
    return case_of(config, "/".join(bin), way, Network.single(layer), images, rng)


def bin_cases(config: Config, seed: int, part: int, parts: int) -> list[RandomCase]:
    """Every ``parts``-th bin from number ``part`` on, the ways of running in turn."""
    bins = list(enumerate(layer_bins()))[part::parts]
    return [
        bin_case(config, *bin, seed + number, WAYS[(number // parts + part) % len(WAYS)])
        for number, bin in bins
    ]
