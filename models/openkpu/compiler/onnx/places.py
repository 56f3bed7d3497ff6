# SPDX-License-Identifier: Apache-2.0
"""ONNX operators that read elements by places that are known: Gather, GatherND, Expand."""

from __future__ import annotations

import math

import numpy as np

from openkpu.compiler.onnx.file import RawNode
from openkpu.compiler.onnx.moves import apart, axis_of, moved_value
from openkpu.compiler.onnx.reader import Handler, OnnxReader


def gather(r: OnnxReader, node: RawNode) -> None:
    """Gather of known places along an axis."""
    value, axis = r.value(node, 0), r.attributes(node, axis=0)["axis"]
    old = r.shape_of(value)
    axis = axis_of(r, axis, len(old))
    if axis == 0 and r.file.batch > 1:
        raise apart(r)
    index = np.asarray(r.constant(node, 1, "indices"))
    if index.dtype.kind not in "iu" or not index.size:
        raise r.refuse(f"indices of {index.dtype} {index.shape}, expected whole numbers")
    if index.min() < -old[axis] or index.max() >= old[axis]:
        raise r.refuse(f"indices from {index.min()} to {index.max()}, axis {axis} has {old[axis]}")
    places = tuple(int(n) % old[axis] for n in index.reshape(-1))
    along = tuple(places if i == axis else tuple(range(n)) for i, n in enumerate(old))
    shape = [len(each) for each in along]
    found = moved_value(r, value, shape, node.outputs[0], how="take", places=along)
    if index.ndim != 1:
        into = (*old[:axis], *index.shape, *old[axis + 1 :])
        found = moved_value(r, found, into, node.outputs[0], how="reshape")
    r.put(node, found)


def gather_nd(r: OnnxReader, node: RawNode) -> None:
    """GatherND of known places: those of the first axes, as if these were one."""
    fields, value = r.attributes(node, batch_dims=0), r.value(node, 0)
    old, index = r.shape_of(value), np.asarray(r.constant(node, 1, "indices"))
    count = index.shape[-1] if index.ndim else 0
    if fields["batch_dims"] or not 1 <= count <= len(old) or index.dtype.kind not in "iu":
        what = f"indices {index.shape} of {old}, batch_dims {fields['batch_dims']}"
        raise r.refuse(f"{what}, expected places along the first axes")
    if r.file.batch > 1:
        raise apart(r)
    sizes = np.array(old[:count])
    if not index.size or (index < -sizes).any() or (index >= sizes).any():
        raise r.refuse(f"indices beyond {old[:count]}, or none")
    flat = np.ravel_multi_index(np.moveaxis(index % sizes, -1, 0), tuple(old[:count])).reshape(-1)
    name, first = node.outputs[0], math.prod(old[:count])
    lines = (first, *old[count:])
    found = moved_value(r, value, lines, name, how="reshape")
    places = (tuple(flat.tolist()), *(tuple(range(n)) for n in lines[1:]))
    found = moved_value(r, found, (len(flat), *lines[1:]), name, how="take", places=places)
    into = (*index.shape[:-1], *old[count:])
    r.put(node, moved_value(r, found, into, name, how="reshape"))


def expand(r: OnnxReader, node: RawNode) -> None:
    """Expand of a computed tensor: its elements several times."""
    r.attributes(node)
    value = r.value(node, 0)
    old, asked = r.shape_of(value), r.integers(node, 1, "shape")
    if r.file.batch > 1 and len(asked) >= len(old):
        asked[:1] = [1 if n in (1, r.file.batch) else n for n in asked[:1]]
    try:
        shape = np.broadcast_shapes(old, asked)
    except ValueError:
        raise r.refuse(f"shape {asked} does not fit {old}") from None
    own = (1,) * (len(shape) - len(old)) + old
    if own != old:
        value = moved_value(r, value, own, node.outputs[0], how="reshape")
    ends = zip(own, shape, strict=True)
    places = tuple(tuple(range(n)) if n == want else (0,) * want for n, want in ends)
    r.put(node, moved_value(r, value, shape, node.outputs[0], how="take", places=places))


HANDLERS: dict[str, Handler] = {
    "Expand": expand,
    "Gather": gather,
    "GatherND": gather_nd,
}
