# SPDX-License-Identifier: Apache-2.0
"""A kmodel as one task list, when there is nothing for the CPU between its layers."""

from __future__ import annotations

import numpy as np

from openkpu.configs import Config
from openkpu.export.image import ExportError, Tensor
from openkpu.kmodel import KpuStep, Program
from openkpu.kmodel.program import KpuLayer
from openkpu.kmodel.residence.one_list import with_input_apart
from openkpu.kmodel.residence.resident import keep_all
from openkpu.layer import airam
from openkpu.layer.layout import AI_RAM_ROWS, ROW_BYTES, Layout
from openkpu.layer.pixels import used_layouts
from openkpu.network.network import Network


def of_kmodel(
    program: Program, content: bytes, config: Config
) -> tuple[Network, list[Tensor], list[str], list[str]]:
    """(network, tensors, operations in front, operations behind) of a model.

    CPU operations on maps that the device supports (``keep_all``) become layers. The input is the
    first layer's map; outputs are the maps for main memory. KmodelError for layers that the device
    refuses, ExportError when the CPU computes between layers.
    """
    ((program,), _) = keep_all([program], len(content), config)
    program.check_device(
        ram_rows=config.ai_ram_rows,
        weight_bits=config.weight_bits,
        weight_rows=config.wbuf_rows,
        n_z=config.n_z,
    )
    operations = program.operations
    ours = [i for i, op in enumerate(operations) if isinstance(op, KpuLayer)]
    if not ours:
        raise ExportError(f"{program.file}: no KPU layers")
    between = [op.name for op in operations[ours[0] : ours[-1]] if not isinstance(op, KpuLayer)]
    if between:
        names = ", ".join(dict.fromkeys(between))
        raise ExportError(
            f"{program.file}: the CPU works between layers ({names}), expected one task list"
        )
    steps = [
        KpuStep(i, batch, op, op.argument(batch), "nncase")
        for i, op in enumerate(program.kpu_layers)
        for batch in range(op.batches)
    ]
    network = Network(eight_bit=steps[0].eight_bit)
    for i, step in enumerate(steps):
        stored = int(step.to_main and i + 1 < len(steps))
        arg = step.arg.replace(send_data_out=0, int_en=0, store_map=stored)
        network.add(arg, step.weights, step.bn, step.act, narrow=True)
    _check_reads(program, network)
    # an application may run the list as a stream
    given, rows = network.layers[0].in_layout, config.ai_ram_rows
    _, network.layers = with_input_apart(given, network.layers, rows)
    network.validate(config.ai_ram_rows)
    first, last = network.layers[0], network.layers[-1]
    tensors = [Tensor("input", False, network.in_shape, "int8" if first.signed_in else "uint8")]
    for i, arg in enumerate(network.layers):
        if arg.store_map:
            tensors.append(Tensor(f"output of layer {i}", True, arg.out_shape, "uint8", i))
    tensors.append(Tensor("result", True, last.out_shape, "uint8"))
    return network, tensors, _names(operations[: ours[0]]), _names(operations[ours[-1] + 1 :])


def _names(operations: list) -> list[str]:
    return [op.name for op in operations if op.name not in ("upload", "download")]


def _check_reads(program: Program, network: Network) -> None:
    """ExportError for a layer that reads what neither the input is nor a layer before wrote."""
    index = np.arange(AI_RAM_ROWS * ROW_BYTES, dtype=np.int32)
    known = np.zeros(index.size, dtype=bool)

    def places(layout: Layout) -> np.ndarray:
        return airam.read_rows(index, layout)

    known[places(network.layers[0].in_layout)] = True
    for i, arg in enumerate(network.layers):
        for layout in used_layouts(arg):
            if not known[places(layout)].all():
                raise ExportError(
                    f"{program.file}: layer {i} reads a map that the CPU brings, expected one input"
                )
        known[places(arg.out_layout)] = True
