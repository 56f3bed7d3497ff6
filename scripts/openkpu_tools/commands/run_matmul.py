# SPDX-License-Identifier: Apache-2.0
"""A product of two matrices on the RTL, a task list of its tiles (docs/kpu.md 1.10, 1.12).

Integers against numpy, float16 against the exact sums rounded once; every tile against the golden
model.
"""

import argparse
import dataclasses
import re
from typing import Any

import numpy as np
import numpy.typing as npt

from openkpu import files
from openkpu.arithmetic import fp16
from openkpu.configs import Config
from openkpu.network.network import MOST_LAYERS, NetworkError
from openkpu.products import matmul, matmul_deep, matmul_fp16, matmul_lists
from openkpu.products.matmul import Tile
from openkpu_tb import seeds
from openkpu_tools import report
from openkpu_tools.command import UsageError, option, writing
from openkpu_tools.commands.end_to_end import unmeasured
from openkpu_tools.commands.run_network import (
    SEED,
    Counters,
    Inference,
    check_network,
    network_summary,
    run_inferences,
    verdict,
)

# of random matrices; fp16to16: results of float16, too
TYPES = {"int8": np.int8, "uint8": np.uint8, "fp16": np.float16, "fp16to16": np.float16}
MOST = 1 << 14  # rows or columns of a random matrix
SHOWN = 16  # rows and columns of a C that is printed
Matrix = npt.NDArray[np.int8] | npt.NDArray[np.uint8] | npt.NDArray[np.float16]


def load(path: str) -> Matrix:
    """A matrix of int8, uint8 or float16 from a .npy file; NetworkError with one line."""
    found = files.read_array(path, NetworkError)
    if found.ndim != 2 or found.dtype not in (np.int8, np.uint8, np.float16) or not found.size:
        raise NetworkError(
            f"{path}: {found.dtype}{found.shape}, expected a matrix of int8, uint8 or float16"
        )
    return np.ascontiguousarray(found)


def given_matrices(given: list[str], kind: str | None) -> tuple[Matrix, Matrix, str]:
    """(A, B, where they are from): two files, or random numbers of sizes MxKxN."""
    if len(given) == 2:
        if kind and TYPES[kind] != np.float16:
            raise UsageError(f"{option('type')} is of random matrices, files have their own")
        a, b = load(given[0]), load(given[1])
        if (kind or a.dtype == np.float16 or b.dtype == np.float16) and a.dtype != b.dtype:
            raise NetworkError(f"{given[0]} is {a.dtype}, {given[1]} is {b.dtype}")
        if kind and a.dtype != np.float16:
            raise NetworkError(f"{option('type', kind)}: {given[0]} is {a.dtype}, expected float16")
        if a.shape[1] != b.shape[0]:
            raise NetworkError(f"{given[0]} is {a.shape}, {given[1]} is {b.shape}")
        return a, b, f"{given[0]} and {given[1]}"
    sizes = re.fullmatch(r"(\d{1,99})x(\d{1,99})x(\d{1,99})", given[0], re.ASCII)
    if len(given) > 2 or not sizes:
        text = " ".join(given)
        raise UsageError(
            f"{option('matmul', text)}: expected MxKxN, for example 4x36x16, or two .npy files"
        )
    m, k, n = (int(size) for size in sizes.groups())
    dtype = TYPES[kind or "int8"]
    deepest = matmul_fp16.K_MAX if dtype == np.float16 else MOST
    if not (1 <= m <= MOST and 1 <= k <= deepest and 1 <= n <= MOST):
        more = "" if deepest == MOST else f", K to {deepest}"
        raise UsageError(f"{option('matmul', given[0])}: expected sizes of 1 to {MOST}{more}")
    seed = seeds.environment()
    seed = SEED if seed is None else seed
    rng = np.random.default_rng(seed)
    if dtype == np.float16:
        a, b = (rng.normal(0, 1, s).astype(dtype) for s in ((m, k), (k, n)))
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        a, b = (rng.integers(least, most + 1, s).astype(dtype) for s in ((m, k), (k, n)))
    return a, b, f"random {kind or 'int8'}, seed {seed}"


def tiles_of(
    a: Matrix, b: Matrix, config: Config, *, wide: bool = True
) -> tuple[list[Tile], list[list[Tile]]]:
    """(all tiles of A B, the same by task lists) on a configuration; LayerError as ``plan_matmul``.

    ``wide``: float32 results of float16.
    """
    (m, k), n, rows = a.shape, b.shape[1], config.ai_ram_rows
    tiles: list[Tile]
    if a.dtype == np.float16:
        tiles = matmul_fp16.plan_fp16(m, k, n, wide=wide, ram_rows=rows)
    else:
        signs = {"signed_a": a.dtype == np.int8, "signed_b": b.dtype == np.int8}
        # a row of the weight buffer holds nine weights of a row of A
        part = min(matmul.K_MAX, 9 * config.wbuf_rows)
        if k > part:
            tiles = list(matmul_deep.plan_deep(m, k, n, part=part, ram_rows=rows, **signs))
        else:
            tiles = matmul.plan_matmul(m, k, n, ram_rows=rows, **signs)
    return tiles, matmul_lists.split_tiles(tiles)


def amount(tiles: list[Tile], lists: list[list[Tile]]) -> str:
    """The number of layers, and of lists unless there is one layer only."""
    layers = sum(map(matmul_lists.layers_of, tiles))
    if layers == 1:
        return "1 layer"
    text = f"{layers} layers in {len(lists)} list{'s' * (len(lists) > 1)}"
    if len(lists) > 1:
        text += f" (one has at most {MOST_LAYERS} layers, {matmul_lists.STORAGE >> 20} MiB)"
    return text


def sim_matmul(args: argparse.Namespace) -> bool:
    """Multiply; True when C, and every byte on the way, is right."""
    a, b, source = given_matrices(args.matmul, args.type)
    (m, k), n = a.shape, b.shape[1]
    floats, wide = a.dtype == np.float16, args.type != "fp16to16"
    tiles, lists = tiles_of(a, b, args.config, wide=wide)
    print(
        f"{m}x{k} by {k}x{n}, {source}: {amount(tiles, lists)},"
        f" configuration {args.config.name} ({args.config.macs} MACs)"
    )
    c = np.zeros((m, n), dtype=np.int32 if not floats else np.float32 if wide else np.float16)
    records: list[report.LayerRecord] = []
    figures: dict[str, Any] = {"end_to_end": unmeasured("several lists, or no simulator")}
    good, total = True, 0
    for number, part in enumerate(lists):
        found, counters, right, more = _list(args, part, a, b, c)
        if len(lists) > 1:
            found = [dataclasses.replace(r, name=f"list{number}/{r.name}") for r in found]
        records += found
        good &= right
        total += sum(count["total"] for count in counters)
        figures = more if more and len(lists) == 1 else figures
    if len(lists) > 1 and total:
        busy = m * k * n / total / args.config.macs
        print(f"\ncycles of all lists       {total:10d}   MAC utilisation {100 * busy:.1f} %")
    wrong, what = _differences(a, b, c)
    print(f"C: {f'{wrong} of {c.size} elements differ from' if wrong else 'as'} {what}")
    if max(c.shape) <= SHOWN:
        shown = "{:>6}" if c.dtype == np.int32 else "{:>12.6g}"
        print("\n".join(" ".join(map(shown.format, row)) for row in c))
    if args.output:
        with writing(args.output) as stream:
            np.save(stream, c)
        print(f"results: {args.output}")
    report.write_asked(args, records, **figures)
    return good and not wrong


def _differences(a: Matrix, b: Matrix, c: npt.NDArray) -> tuple[int, str]:
    """(number of wrong elements of C, name of the reference)."""
    if a.dtype != np.float16:
        product = (a.astype(np.int64) @ b.astype(np.int64)).astype(np.int32)  # modulo 2^32
        return int((c != product).sum()), "numpy's A @ B"
    expected = fp16.multiply(a, b, c.dtype == np.float32)
    bits = np.uint32 if c.dtype == np.float32 else np.uint16
    return int((c.view(bits) != expected.view(bits)).sum()), "the exact sums, rounded once"


def _list(
    args: argparse.Namespace, tiles: list[Tile], a: Matrix, b: Matrix, c: npt.NDArray
) -> tuple[list[report.LayerRecord], Counters, bool, dict[str, Any]]:
    """Run a list and put its sums into ``c``: records, counters, everything matched, figures."""
    network = matmul_lists.network_of(tiles, a, b)
    check_network(network, args.config)
    image = matmul_lists.input_of(tiles, a, b)

    def describe(done: Inference) -> str:
        matmul_lists.put(c, tiles, done.stored, done.y)
        return "\n".join(lines(tiles, done))

    found, counters, right = run_inferences(args, network, image[None], describe)
    more = network_summary(args, network, found, counters) if counters else {}
    return found, counters, right, more


def lines(tiles: list[Tile], done: Inference) -> list[str]:
    """A line for each tile of a list: its rows and columns, cycles, how many bytes differ.

    The last tile has the remainder of the total cycles, including the store of its result.
    """
    wrong = [layer.mismatching_bytes for layer in done.layers[:-1]]
    wrong.append(done.wrong - sum(wrong))
    cycles: list[int | None] = [layer.cycles for layer in done.layers[:-1]]
    last = done.cycles
    cycles.append(last if last is None else last - sum(count or 0 for count in cycles))
    text, at = [], 0
    for tile, end in zip(tiles, matmul_lists.results_of(tiles), strict=True):
        took, differ = cycles[at : end + 1], sum(wrong[at : end + 1])
        at = end + 1
        total = None if None in took else sum(count or 0 for count in took)
        text.append(
            f"rows {tile.m.start}-{tile.m.stop - 1}, columns {tile.n.start}-{tile.n.stop - 1}"
            f"{verdict(total, differ)}"
        )
    return text
