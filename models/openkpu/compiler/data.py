# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of a compiled network, as arrays in the model's types and order.

Integers of the input's type are used unchanged; floats are scaled by the model's own scale and zero
point, rounded once, a tie to even.  Maps of rank 4 have the model's order, NHWC or NCHW; the
graph's is always (N, C, H, W).  A batch is a sequence of inferences.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.compiler.errors import CompileError
from openkpu.compiler.form.graph import Tensor
from openkpu.compiler.form.reference import quantised_values
from openkpu.words import option

TO_NCHW, TO_NHWC = (0, 3, 1, 2), (0, 2, 3, 1)
FLOATS = ("float16", "float32", "float64")
NAMES = {"int8": np.int8, "uint8": np.uint8, "int32": np.int32, "int64": np.int64}
Values = dict[str, npt.NDArray]


class HasInputs(Protocol):
    """A program, or any other object with inputs."""

    @property
    def inputs(self) -> list[Tensor]: ...


def model_shape(tensor: Tensor) -> tuple[int, ...]:
    """The shape of a tensor in the model's order."""
    if tensor.layout == "NHWC" and len(tensor.shape) == 4:
        return tuple(tensor.shape[a] for a in TO_NHWC)
    return tensor.shape


def inferences(program: HasInputs, given: Mapping[str, npt.NDArray], where: str) -> list[Values]:
    """The inputs of each inference, in the graph's order; CompileError for another shape,
    type or name.

    ``given``: an array for each input, of the model's shape, without its first axis, or with any
    number of inferences in it.
    """
    found: dict[str, list[npt.NDArray]] = {}
    names = [tensor.name for tensor in program.inputs]
    if other := [name for name in given if name not in names]:
        what = f"an array {other[0]!r}, the model has inputs {', '.join(names)}"
        raise CompileError(f"{what}: expected these alone", where=where)
    for tensor in program.inputs:
        if tensor.name not in given:
            raise CompileError(f"no array for the input {tensor.name!r}", where=where)
        found[tensor.name] = _each(tensor, given[tensor.name], where)
    counts = {len(v) for v in found.values()}
    if len(counts) > 1:
        raise CompileError(f"inputs of {sorted(counts)} inferences, expected as many", where=where)
    (count,) = counts
    return [{name: maps[i] for name, maps in found.items()} for i in range(count)]


def _each(tensor: Tensor, array: npt.NDArray, where: str) -> list[npt.NDArray]:
    shape = model_shape(tensor)
    rest = shape[1:] if shape and shape[0] == 1 else shape
    array = np.asarray(array)
    if array.shape == rest:
        array = array[None]
    if array.shape[1:] != rest or array.ndim != len(rest) + 1 or not len(array):
        raise CompileError(
            f"{array.dtype}{array.shape} for the input {tensor.name!r}, expected {shape},"
            f" or (n, {', '.join(map(str, rest))})",
            where=where,
        )
    array = _typed(tensor, array, where)
    maps = [one.reshape(shape) for one in array]
    if tensor.layout == "NHWC" and len(shape) == 4:
        maps = [np.ascontiguousarray(one.transpose(TO_NCHW)) for one in maps]
    return maps


def _typed(tensor: Tensor, array: npt.NDArray, where: str) -> npt.NDArray:
    kind = array.dtype.name
    if kind in FLOATS and (tensor.quantised or tensor.dtype == "float32"):
        if not np.isfinite(array).all():
            raise CompileError(f"the input {tensor.name!r} has a NaN or infinity", where=where)
        if tensor.dtype == "float32" and np.abs(array).max(initial=0) > np.finfo(np.float32).max:
            what = f"the input {tensor.name!r} has numbers of {np.abs(array).max():.3g}"
            raise CompileError(f"{what}, expected numbers that float32 holds", where=where)
        return quantised_values(array, tensor) if tensor.quantised else array.astype(np.float32)
    if kind != tensor.dtype:
        floats = f"{tensor.dtype} or float32" if tensor.quantised else tensor.dtype
        raise CompileError(
            f"{kind}{array.shape} for the input {tensor.name!r}, expected {floats}", where=where
        )
    return array.astype(np.int64)


def read_inputs(program: HasInputs, path: str | Path) -> list[Values]:
    """Inferences from a .npy file (one input) or a .npz file with an array for each."""
    data = files.read_bytes(path, CompileError)
    if data[:2] != b"PK":  # an archive, an empty one as well
        names = [t.name for t in program.inputs]
        if len(names) > 1:
            raise CompileError(
                f"one array, the model has inputs {', '.join(names)}: expected a .npz",
                where=str(path),
            )
        array = files.read_array(path, CompileError)
        return inferences(program, {names[0]: array}, str(path))
    try:
        with np.load(path, allow_pickle=False) as archive:
            files.check_unpacked(path, archive.zip, CompileError)
            given: Values = {name: archive[name] for name in archive.files}
    except CompileError:
        raise
    except Exception as error:  # any error of numpy for a damaged archive
        raise CompileError(f"not a complete .npz file: {error}", where=str(path)) from None
    short = {v: k for k, v in array_names(t.name for t in program.inputs).items()}
    named = [short.get(key, key) for key in given]
    if twice := [name for name, count in Counter(named).items() if count > 1]:
        raise CompileError(f"two arrays for the input {twice[0]!r}, expected one", where=str(path))
    return inferences(program, dict(zip(named, given.values(), strict=True)), str(path))


def random_inputs(program: HasInputs, rng: np.random.Generator, count: int) -> list[Values]:
    """Random bytes, or floats from 0 to 1."""
    found = []
    for _ in range(count):
        one: Values = {}
        for tensor in program.inputs:
            if tensor.dtype == "float32":
                one[tensor.name] = rng.random(tensor.shape).astype(np.float32)
            elif tensor.dtype in ("int8", "uint8"):
                one[tensor.name] = rng.integers(*tensor.limits, tensor.shape, endpoint=True)
            else:
                raise CompileError(
                    f"random {tensor.dtype} for {tensor.name!r}: expected {option('input')}"
                )
        found.append(one)
    return found


def result(tensor: Tensor, value: npt.NDArray) -> npt.NDArray:
    """An output in the model's type and order."""
    if tensor.layout == "NHWC" and value.ndim == 4:
        value = value.transpose(TO_NHWC)
    return np.array(value, NAMES.get(tensor.dtype, np.float32), order="C")  # of rank 0 as well


def real(tensor: Tensor, value: npt.NDArray) -> npt.NDArray:
    """The real numbers that the integers of a tensor represent; floats unchanged."""
    if tensor.scale is None:
        return np.asarray(value)
    return (np.asarray(value) - tensor.zero) * tensor.scale


def array_names(names: Iterable[str]) -> dict[str, str]:
    """By tensor the name of its array in a .npz file, which is a file in an archive; all of them
    differ (docs/networks.md).

    A name of letters, digits, ".", "_" and "-" is unchanged.  In others each further character
    becomes "_", with "_2", "_3" and so on behind it where that is taken.
    """
    plain = {n: "".join(c if c.isalnum() or c in "._-" else "_" for c in n) or "_" for n in names}
    found = {name: name for name, short in plain.items() if name == short}
    taken = set(found)
    for name, short in plain.items():
        if name not in found:
            tried = (f"{short}_{number}" for number in itertools.count(2))
            found[name] = next(t for t in itertools.chain([short], tried) if t not in taken)
            taken.add(found[name])
    return found
