# SPDX-License-Identifier: Apache-2.0
"""A K210 model as one task list, for a stream of inferences.

It is one where the device computes every layer between the model's input and its result: the host
uploads one map, the layers run one behind the other, and what is left is the host's arithmetic on
the result (docs/continuous.md).
"""

from __future__ import annotations

from pathlib import Path

from openkpu import kmodel
from openkpu.configs import Config
from openkpu.kmodel.errors import KmodelError
from openkpu.kmodel.program import Download, KpuLayer, Program, Upload
from openkpu.kmodel.residence.resident import keep_all
from openkpu.layer.layout import Layout
from openkpu.network.network import Network, NetworkError


def read_task_list(path: str | Path, config: Config) -> Network:
    """The task list of a K210 model with maps that stay in the AI RAM of ``config``.

    KmodelError for a file that no reader reads, and for a model whose maps the host handles
    between two layers; it names the number of runs.
    """
    file = kmodel.read_model(path)
    program = kmodel.loads_kmodel(file.data, file.name)
    return task_list_of(keep_all([program], len(file.data), config)[0][0])


def task_list_of(program: Program) -> Network:
    """The layers of a program as a network; KmodelError where the host is in the middle."""
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
    return _network(program.file, upload.layout, layers)


def _network(name: str, given: Layout, layers: list[KpuLayer]) -> Network:
    """Layers at the addresses that their compiler gave them."""
    network = Network(eight_bit=layers[0].eight_bit)
    whole = [given]  # maps that lie whole in the AI RAM
    for number, op in enumerate(layers):
        narrow = any(layout not in whole for layout in op.arg.in_layouts)
        try:
            network.add(op.arg, op.weights, op.bn, op.act, narrow=narrow)
        except NetworkError as error:
            raise KmodelError(f"{name}: layer {number}: {error}") from None
        new = op.arg.out_layout
        apart = [m for m in whole if m.base >= new.base + new.rows or m.base + m.rows <= new.base]
        whole = [*apart, new]
    return network
