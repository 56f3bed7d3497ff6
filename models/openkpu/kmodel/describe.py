# SPDX-License-Identifier: Apache-2.0
"""A look inside a model: tables of its tensors, KPU layers and CPU operations."""

from __future__ import annotations

from openkpu.kmodel.program import KpuLayer, Program


def as_dict(program: Program) -> dict:
    """Everything that the tables show, for JSON."""
    operations, index = [], 0
    for op in program.operations:
        entry = {"offset": op.offset, "operation": op.name, "detail": op.describe()}
        if isinstance(op, KpuLayer):
            arg = op.arg
            entry |= {
                "layer": index,
                "where": op.title,
                "in": arg.in_shape,
                "out": arg.out_shape,
                "kernel": arg.kernel,
                "depthwise": arg.depthwise,
                "pool": arg.pool_type,
                "loads": arg.loads,
                "weight_bytes": int(op.weights.size),
                "src_row": arg.image_src_addr,
                "dst_row": arg.image_dst_addr,
                "to_main_memory": op.main_out is not None,
                "batches": op.batches,
                "macs": op.batches * _macs(op),
            }
            index += 1
        operations.append(entry)
    return {
        "file": program.file,
        "version": program.version,
        "detail": program.detail,
        "weight_bits": 8 if program.eight_bit else 16,
        "memory": program.sizes,
        "inputs": [_tensor(t) for t in program.inputs],
        "outputs": [_tensor(t) for t in program.outputs],
        "kpu_layers": index,
        "kpu_macs": sum(op.batches * _macs(op) for op in program.kpu_layers),
        "operations": operations,
    }


def _tensor(tensor) -> dict:
    quant = tensor.quant and {"scale": tensor.quant.scale, "bias": tensor.quant.bias}
    return {
        "name": tensor.name,
        "shape": tensor.shape,
        "dtype": tensor.view.kind,
        "place": f"{tensor.view.space}+{tensor.view.start}",
        "quant": quant,
    }


def _macs(op: KpuLayer) -> int:
    _, h, w = op.arg.conv_shape
    return op.arg.weight_count * h * w


def describe_program(program: Program) -> str:
    """The text that the command prints."""
    info = as_dict(program)
    detail = f", {program.detail}" if program.detail else ""
    lines = [
        f"{program.file}: kmodel v{program.version}{detail}, {info['weight_bits']}-bit weights, "
        f"{info['kpu_layers']} KPU layers, {info['kpu_macs'] / 1e6:.1f} MMAC",
    ]
    for kind in ("inputs", "outputs"):
        for t in info[kind]:
            quant = t["quant"]
            how = f", x {quant['scale']:g} + {quant['bias']:g}" if quant else ""
            lines.append(f"  {t['name']}: {t['dtype']} {list(t['shape'])}{how}")
    lines.append("memory: " + ", ".join(f"{k} {v}" for k, v in program.sizes.items() if v))
    lines.append(f"{'offset':>9}  {'':4} {'operation':22} detail")
    for entry in info["operations"]:
        number = f"L{entry['layer']:02d}" if "layer" in entry else ""
        where = f" [{entry['where']}]" if entry.get("where") else ""
        lines.append(
            f"{entry['offset']:9x}  {number:4} {entry['operation']:22} {entry['detail']}{where}"
        )
    return "\n".join(lines)
