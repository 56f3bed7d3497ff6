# SPDX-License-Identifier: Apache-2.0
"""A K210 model as one task list, for a stream of inferences.

It is one where the device computes every layer between the model's input and its result: the host
uploads one map, the layers run one behind the other, and what is left is the host's arithmetic on
the result (docs/continuous.md).
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from openkpu import kmodel
from openkpu.configs import Config
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import Download, KpuLayer, Program, Upload
from openkpu.kmodel.residence.resident import keep_all
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import Layout
from openkpu.network import kept
from openkpu.network.network import Network, NetworkError


def read_task_list(path: str | Path, config: Config) -> Network:
    """The task list of a K210 model with maps that stay in the AI RAM of ``config``.

    KmodelError for a file that no reader reads, and for a model whose maps the host handles
    between two layers; it names the number of runs.
    """
    file = kmodel.read_model(path)
    program = kmodel.loads_kmodel(file.data, file.name)
    return task_list_of(keep_all([program], len(file.data), config)[0][0], config.ai_ram_rows)


def task_list_of(program: Program, ram_rows: int) -> Network:
    """The layers of a program as a network; KmodelError where the host is in the middle.

    The input map lies apart from the others if the AI RAM has room (``with_input_apart``).
    """
    runs = program.segments()
    uploads = [op for op in program.operations if isinstance(op, Upload)]
    if len(runs) != 1 or len(uploads) != 1:
        raise KmodelError(
            f"{program.file}: a stream is one task list with one input map; this model has"
            f" {len(runs)} runs of layers and {len(uploads)} uploads"
        )
    (layers,), (upload,) = runs, uploads
    last = layers[-1]
    read = [op.layout for op in program.operations if isinstance(op, Download)]
    others = [op for op in layers[:-1] if op.main_out is not None]
    if others or any(layout != last.arg.out_layout for layout in read):
        raise KmodelError(f"{program.file}: a stream has one result, this model has several")
    if upload.src.shape[0] != 1 or any(op.batches != 1 for op in layers):
        raise KmodelError(f"{program.file}: a stream has one map an inference, this is a batch")
    given, args = with_input_apart(upload.layout, [op.arg for op in layers], ram_rows)
    return _network(program.file, given, layers, args)


def with_input_apart(
    given: Layout, args: list[LayerArg], ram_rows: int
) -> tuple[Layout, list[LayerArg]]:
    """The input map and the layers with that map in rows that no other map uses.

    A compiler for single runs puts later maps on its rows, so that the next image of a stream could
    come only after them. As they are where nothing lies on the input, where a layer reads a part
    of it or what later maps left of it, and where no rows are left.
    """
    over = next((n for n, arg in enumerate(args) if _meet(arg.out_layout, given)), None)
    base, count = kept.spare_rows(args, ram_rows)
    if over is None or count < given.rows:
        return given, args
    readers = args[: over + 1]
    if any(_meet(m, given) and m != given for arg in readers for m in arg.in_layouts):
        return given, args
    left = set(_rows(given))  # rows of the input that no map has been written over
    for number, arg in enumerate(args):
        if number > over and any(left.intersection(_rows(m)) for m in arg.in_layouts):
            return given, args
        left.difference_update(_rows(arg.out_layout))
    moved = []
    for arg in readers:
        names = ("image_src_addr", "image_src2_addr")
        fields = {n: base for n, m in zip(names, arg.in_layouts, strict=False) if m == given}
        moved.append(arg.replace(**fields))
    return dataclasses.replace(given, base=base), [*moved, *args[over + 1 :]]


def _rows(layout: Layout) -> range:
    return range(layout.base, layout.base + layout.rows)


def _meet(one: Layout, other: Layout) -> bool:
    return one.base < other.base + other.rows and other.base < one.base + one.rows


def _network(name: str, given: Layout, layers: list[KpuLayer], args: list[LayerArg]) -> Network:
    """Layers with their tables at the addresses of ``args``."""
    network = Network(eight_bit=layers[0].eight_bit)
    whole = [given]  # maps that lie whole in the AI RAM
    for number, (op, arg) in enumerate(zip(layers, args, strict=True)):
        narrow = any(layout not in whole for layout in arg.in_layouts)
        try:
            network.add(arg, op.weights, op.bn, op.act, narrow=narrow)
        except NetworkError as error:
            raise KmodelError(f"{name}: layer {number}: {error}") from None
        whole = [*(m for m in whole if not _meet(m, arg.out_layout)), arg.out_layout]
    return network
