# SPDX-License-Identifier: Apache-2.0
"""Data of the page besides the device: network, scans, names of registers, rows of the probe."""

import base64
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import digits
from openkpu.arithmetic.integers import ceil_div
from openkpu.configs import Config
from openkpu.export import source
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg
from openkpu.layer.fields import FIELDS
from openkpu.layer.layout import ROW_BYTES, Layout, map_bytes
from openkpu.layer.regmap import COUNTERS, OFFSETS
from openkpu.network.network import Network, Storage, alignment
from openkpu_tb.device import trace
from openkpu_tools.commands.stalls import COLOURS

STREAM = 6  # images of continuous mode
# model -> what the page calls it
NETWORKS = {
    source.DIGITS: "plain CNN, 4 layers",
    str(digits.FOLDER / "residual_int8.tflite"): "residual CNN, 15 layers",
}
POOLS = {1: "max 2x2", 3: "max 4x4", 5: "each second pixel"}


def page_data(config: Config) -> dict[str, Any]:
    """For JSON: everything that the scripts of web/ read."""
    test = digits.load_data()[1]
    return {
        "config": {
            "name": config.name,
            "n_y": config.n_y,
            "n_z": config.n_z,
            "macs": config.macs,
            "weight_bits": config.weight_bits,
        },
        "networks": [_network(path, title, config) for path, title in NETWORKS.items()],
        "scans": _text(test.images),
        "labels": "".join(map(str, test.labels)),
        "scale": digits.PIXEL_SCALE,
        "probe": _places(trace.FIELDS),
        "row_words": ceil_div(sum(trace.FIELDS.values()), 32),
        "units": trace.UNITS,
        "counters": COUNTERS,
        "registers": {str(offset): name for name, offset in OFFSETS.items()},
        "colours": COLOURS,
    }


def _network(path: str, title: str, config: Config) -> dict[str, Any]:
    """A network that reads a scan and gives ten scores of a byte."""
    found = source.read_export_model(path, config)
    network, (entry, answer) = found.network, found.tensors
    blank = np.zeros((STREAM, *network.in_shape), dtype=np.uint8)
    align = alignment(config)
    one, many = (network.storage(blank[:n], align=align) for n in (1, STREAM))
    first = one.registers["AI_PIX_ADR"]
    assert bytes(one.data[:first]) == bytes(many.data[:first])
    order = range(blank[0].size) if entry.places is None else entry.places
    return {
        "title": title,
        "store": _text(one.data[:first]),
        "single": _plan(network, one),
        "stream": {**_plan(network, many), "count": STREAM},
        "order": [int(place) for place in order],
        "signed": int(network.layers[-1].signed_out),
        "add": answer.add,
        "layers": [_layer(arg) for arg in network.layers],
    }


def _text(data: npt.NDArray[np.uint8]) -> str:
    return base64.b64encode(np.ascontiguousarray(data, dtype=np.uint8).tobytes()).decode()


def _plan(network: Network, storage: Storage) -> dict[str, int]:
    """struct openkpu_network of sw/openkpu.h, in its order."""
    at = storage.registers
    return {
        "list": at["AI_LIST_ADR"],
        "layers": at["AI_LIST_LEN"],
        "weights": at["AI_WGT_ADR"],
        "biases": at["AI_BIAS_ADR"],
        "eight_bit": at["eight_bit_mode"],
        "input": at["AI_PIX_ADR"],
        "input_bytes": map_bytes(network.in_shape),
        "input_stride": at["AI_PIX_STRIDE"],
        "result": at["AI_RES_ADR"],
        "result_bytes": map_bytes(network.out_shape),
        "result_stride": at["AI_RES_STRIDE"],
    }


def _layer(arg: LayerArg) -> dict[str, Any]:
    """A layer: its words and fields, and where its input map lies in the AI RAM."""
    shapes = [list(arg.in_shape), list(arg.out_shape)]
    first, places = _bytes(arg.in_layout)
    words = [int(word) for word in arg.encode()]
    return {
        "title": " to ".join("x".join(map(str, shape)) for shape in shapes) + f": {_kind(arg)}",
        "in": shapes[0],
        "signed_in": arg.signed_in,
        "first": first,
        "bytes": arg.in_layout.rows * ROW_BYTES,
        "places": places,
        "words": [f"{word:016x}" for word in words],
        "fields": _fields(arg, words),
    }


def _kind(arg: LayerArg) -> str:
    """What a layer computes, in a few words."""
    if arg.fc:
        return "fully connected"
    if arg.elementwise:
        return "sum of two maps"
    window = f"{'depthwise ' * arg.depth_wise_layer}{'3x3' if arg.kernel_type else '1x1'}"
    pool = POOLS.get(arg.pool_type, f"pool {arg.pool_type}")
    return f"{window}, {pool}" if arg.pool_type else window


def _bytes(layout: Layout) -> tuple[int, list[int]]:
    """First byte of a map in the AI RAM; the places of its bytes from there on, dense order."""
    first = layout.base * ROW_BYTES
    index = np.arange(first + layout.rows * ROW_BYTES, dtype=np.int64)
    shape = (layout.channels, layout.height, layout.width)
    places = airam.unpack_map(index, layout.base, shape).reshape(-1) - first
    return first, places.tolist()


def _fields(arg: LayerArg, words: list[int]) -> list[list[list[Any]]]:
    """For each word the fields in it that are not zero, [name, value]."""
    found: list[list[list[Any]]] = [[] for _ in words]
    for name, (word, low, width, *_) in FIELDS.items():
        if words[word] >> low & ((1 << width) - 1):
            found[word].append([name, int(getattr(arg, name))])
    return found


def _places(fields: dict[str, int]) -> dict[str, list[int]]:
    """Lowest bit and width of every signal in a row of the probe."""
    found, low = {}, 0
    for name, width in fields.items():
        found[name] = [low, width]
        low += width
    return found
