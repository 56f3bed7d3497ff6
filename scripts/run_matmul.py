# SPDX-License-Identifier: Apache-2.0
"""A product of two matrices on the RTL, tile by tile (docs/kpu.md 1.10, 1.12).

Integers against numpy, float16 against the exact sums rounded once.
"""

import argparse
import re
from typing import Any

import numpy as np
import numpy.typing as npt
from openkpu.models import fp16, matmul, matmul_fp16
from openkpu.models.matmul import Tile, operands
from openkpu.models.network import Network, NetworkError
from openkpu.scripts import report
from openkpu.scripts.command import UsageError
from openkpu.scripts.end_to_end import unmeasured
from openkpu.scripts.run_network import SEED, check, golden_records, simulated, summary
from openkpu.tb import seeds

# of random matrices; fp16to16: results of float16, too
TYPES = {"int8": np.int8, "uint8": np.uint8, "fp16": np.float16, "fp16to16": np.float16}
MOST = 1 << 14  # rows or columns of a random matrix
Matrix = npt.NDArray[np.int8] | npt.NDArray[np.uint8] | npt.NDArray[np.float16]


def load(path: str) -> Matrix:
    """A matrix of int8, uint8 or float16 from a .npy file; NetworkError with one line."""
    try:
        with open(path, "rb") as stream:
            found = np.lib.format.read_array(stream, allow_pickle=False)
    except OSError as error:
        raise NetworkError(f"{path}: {error.strerror or error}") from None
    except (ValueError, EOFError, MemoryError, OverflowError, SyntaxError) as error:
        raise NetworkError(f"{path}: not a complete .npy file: {error}") from None
    if found.ndim != 2 or found.dtype not in (np.int8, np.uint8, np.float16) or not found.size:
        raise NetworkError(
            f"{path}: {found.dtype}{found.shape}, expected a matrix of int8, uint8 or float16"
        )
    return np.ascontiguousarray(found)


def matrices(given: list[str], kind: str | None) -> tuple[Matrix, Matrix, str]:
    """(A, B, where they are from): two files, or random numbers of sizes MxKxN."""
    if len(given) == 2:
        if kind and TYPES[kind] != np.float16:
            raise UsageError("TYPE is for random matrices, files have a type of their own")
        a, b = load(given[0]), load(given[1])
        if (kind or a.dtype == np.float16 or b.dtype == np.float16) and a.dtype != b.dtype:
            raise NetworkError(f"{given[0]} is {a.dtype}, {given[1]} is {b.dtype}")
        if kind and a.dtype != np.float16:
            raise NetworkError(f"TYPE={kind}: {given[0]} is {a.dtype}, expected float16")
        if a.shape[1] != b.shape[0]:
            raise NetworkError(f"{given[0]} is {a.shape}, {given[1]} is {b.shape}")
        return a, b, f"{given[0]} and {given[1]}"
    sizes = re.fullmatch(r"(\d{1,5})x(\d{1,5})x(\d{1,5})", given[0], re.ASCII)
    if len(given) > 2 or not sizes:
        text = " ".join(given)
        raise UsageError(f"MATMUL={text}: expected MxKxN, for example 4x36x16, or two .npy files")
    m, k, n = (int(size) for size in sizes.groups())
    dtype = TYPES[kind or "int8"]
    deepest = (matmul_fp16 if dtype == np.float16 else matmul).K_MAX
    if not (1 <= m <= MOST and 1 <= k <= deepest and 1 <= n <= MOST):
        raise UsageError(f"MATMUL={given[0]}: expected sizes of 1 to {MOST}, K to {deepest}")
    seed = seeds.environment()
    seed = SEED if seed is None else seed
    rng = np.random.default_rng(seed)
    if dtype == np.float16:
        a, b = (rng.normal(0, 1, s).astype(dtype) for s in ((m, k), (k, n)))
    else:
        least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
        a, b = (rng.integers(least, most + 1, s).astype(dtype) for s in ((m, k), (k, n)))
    return a, b, f"random {kind or 'int8'}, seed {seed}"


def run(args: argparse.Namespace) -> bool:
    """Multiply; True when C, and every byte on the way, is right."""
    a, b, source = matrices(args.matmul, args.type)
    (m, k), n = a.shape, b.shape[1]
    floats = a.dtype == np.float16
    wide = args.type != "fp16to16"
    if floats:
        tiles = matmul_fp16.plan(m, k, n, wide=wide, ram_rows=args.config.ai_ram_rows)
    else:
        signs = {"signed_a": a.dtype == np.int8, "signed_b": b.dtype == np.int8}
        tiles = matmul.plan(m, k, n, ram_rows=args.config.ai_ram_rows, **signs)
    print(
        f"{m}x{k} by {k}x{n}, {source}: {len(tiles)} layer{'s' * (len(tiles) > 1)},"
        f" configuration {args.config.name} ({args.config.macs} MACs)"
    )
    c = np.zeros((m, n), dtype=np.int32 if not floats else np.float32 if wide else np.float16)
    records: list[report.LayerRecord] = []
    figures: dict[str, Any] = {"end_to_end": unmeasured("several layers, or no simulator")}
    good, total = True, 0
    for tile in tiles:
        found, counters, right = _tile(args, tile, a, b, c)
        records += found
        good &= right
        total += sum(count["total"] for count in counters)
        if len(tiles) == 1 and counters:
            figures = summary(args, _network(tile, a), found, counters)
    if len(tiles) > 1 and total:
        busy = m * k * n / total / args.config.macs
        print(f"\ncycles of all layers      {total:10d}   MAC utilisation {100 * busy:.1f} %")
    if floats:
        expected, what = fp16.multiply(a, b, wide), "the exact sums, rounded once"
        bits = np.uint32 if wide else np.uint16
        wrong = int((c.view(bits) != expected.view(bits)).sum())
    else:
        expected, what = a.astype(np.int64) @ b.astype(np.int64), "numpy's A @ B"
        wrong = int((c != expected).sum())
    print(f"C: {f'{wrong} of {c.size} elements differ from' if wrong else 'as'} {what}")
    if args.output:
        np.save(args.output, c)
        print(f"results: {args.output}")
    if args.report:
        simulator = "golden" if args.golden else args.sim
        report.write(args.report, args.config, simulator, records, **figures)
        print(f"report: {args.report}")
    return good and not wrong


def _network(tile: Tile, a: Matrix) -> Network:
    return (matmul_fp16 if tile.arg.fp16 else matmul).network_of(tile, a)


def _tile(
    args: argparse.Namespace, tile: Tile, a: Matrix, b: Matrix, c: npt.NDArray
) -> tuple[list[report.LayerRecord], list[dict[str, int]], bool]:
    """Run a tile and put its sums into ``c``: records, counters, everything matched."""
    network = _network(tile, a)
    check(network, args.config)
    image = operands(tile, a, b)[1]
    title = f"rows {tile.m.start}-{tile.m.stop - 1}, columns {tile.n.start}-{tile.n.stop - 1}"

    def told(_number: int, y: npt.NDArray[np.uint8], cycles: int | None, wrong: int) -> str:
        c[tile.m, tile.n] = y.view(c.dtype).reshape(tile.arg.o_ch_num, -1)
        took = "" if cycles is None else f"  {cycles:>8} cycles"
        return f"{title}{took}  {f'{wrong} bytes differ' if wrong else 'ok'}"

    if args.golden:
        one = network.run(image)
        print(told(0, one.stored, None, 0))
        return golden_records(args, network, [one]), [], True
    return simulated(args, network, image[None], told)
