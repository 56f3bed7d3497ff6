# SPDX-License-Identifier: Apache-2.0
"""A computer around the device: picorv32 runs the driver of sw/ on the RTL (soc/, docs/driver.md).

The firmware is compiled for rv32imc by the clang that the package ziglang brings. Every layer's map
is compared with the golden model in the AI RAM, every result as the processor reads it. Exit status
1 when a byte differs or the firmware fails, 2 for a request that cannot be met.
"""

import argparse
import dataclasses
import importlib.util
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu.export import source, texts
from openkpu.export.image import ExportError
from openkpu_tb import seeds, simrun, verilated
from openkpu_tools import command, registry
from openkpu_tools.command import UsageError, option
from openkpu_tools.flows.soc_job import Job, job, maps, soc_header

SOURCES = ["soc/*.v", "rtl/**/*.v"]
DRIVER = [f"sw/openkpu{part}.c" for part in ("", "_image", "_layers", "_text")]
BOARD = ["soc/firmware/start.S", "soc/firmware/board.c"]
PUBLIC = """
public_flat_rd -module "ai_ram" -var "mem"
public_flat_rd -module "control" -var "layer_done"
public_flat_rd -module "control" -var "start"
"""
MACHINE = ["-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m+c", "-mabi=ilp32"]
FLAGS = ["-std=c99", "-Os", "-ffunction-sections", "-fdata-sections", "-ffreestanding"]
FLAGS += ["-fno-builtin", "-Wall", "-Wextra", "-Werror", '-DOPENKPU_PORT="board.h"']
RAM_BYTES, MOST_STORE = 1 << 17, 1 << 28
SEED, MOST_DEVICES = 44, 3
CYCLES = 20_000_000  # of a run, besides those of its layers
USERS = {"images": ("run", "stream"), "quiet": ("stream",)}  # programs that an option is of
PER_MAC = 2  # cycles that bound a run


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = registry.parse_command("soc", argv)
    args.config = configs.load_config(args.config)
    if args.bus:
        args.config = dataclasses.replace(args.config, ahb_width=args.bus)
    models = args.model or [source.DIGITS]
    if len(models) > args.devices:
        raise UsageError(
            f"{len(models)} models, expected at most {option('devices')}={args.devices}"
        )
    if args.program not in ("stream",) and args.devices > 1:
        raise UsageError(
            f"{option('devices', args.devices)} with {option('program', args.program)},"
            f" expected {option('program', 'stream')}"
        )
    for name, given in (("images", args.images), ("quiet", args.quiet or None)):
        expected = USERS[name]
        if given is not None and args.program not in expected:
            raise UsageError(
                f"{option(name, given)} with {option('program', args.program)}, expected"
                f" {option('program', ' or '.join(expected))}"
            )
    sources = [
        source.read_export_model(models[d % len(models)], args.config) for d in range(args.devices)
    ]
    own = [models[d % len(models)] == source.DIGITS for d in range(args.devices)]
    made = _job(args, sources, own)
    return run_firmware(args, made)


def _job(args: argparse.Namespace, sources: list[source.Source], own: list[bool]) -> Job:
    """Inputs, and in which order they are run; ``own``: is it the network of digits?"""
    count = {"k210": 1, "recovery": 1}.get(args.program, args.images or 4)
    repeated = [0] * 3 if args.program == "recovery" else list(range(count))
    given = seeds.environment()
    maps_in = [inputs(*pair, count, given) for pair in zip(sources, own, strict=True)]
    made = job(sources, args.config, maps_in, [repeated for _ in sources])
    if made.store_bytes > MOST_STORE:
        raise ExportError(f"{made.store_bytes} bytes of storage, expected {MOST_STORE} at most")
    return made


def inputs(one: source.Source, own: bool, count: int, seed: int | None) -> npt.NDArray:
    """Maps (n, C, H, W): held-out digits, the first ones or those of a seed, or random bytes."""
    rng = np.random.default_rng(SEED if seed is None else seed)
    if own:
        pixels = digits.load_data()[1].pixels
        if count > len(pixels):
            raise UsageError(
                f"{option('images', count)} with {option('model', source.DIGITS)}, expected"
                f" {len(pixels)} at most"
            )
        return pixels[:count] if seed is None else rng.permutation(pixels)[:count]
    return rng.integers(0, 256, (count, *one.network.in_shape), dtype=np.uint8)


def processor() -> Path:
    """The Verilog of picorv32; UsageError when its package is not there."""
    found = importlib.util.find_spec("pythondata_cpu_picorv32")
    folders = found.submodule_search_locations if found else None
    if not folders:
        raise UsageError(
            "the package pythondata-cpu-picorv32 is missing, expected make setup GROUPS=soc"
        )
    return Path(folders[0]) / "verilog" / "picorv32.v"


def firmware(
    program: str,
    made: Job,
    folder: Path,
    *,
    disturb: bool = True,
    ram_bytes: int = RAM_BYTES,
    header: str = "",
) -> bytes:
    """Compile a program of soc/firmware with the driver; its bytes from address 0 on.

    ``header``: job.h, that of the job unless it is given.
    """
    if importlib.util.find_spec("ziglang") is None:
        raise UsageError("the package ziglang is missing, expected make setup GROUPS=soc")
    (folder / "job.h").write_text(header or soc_header(made))
    linked = folder / "soc.ld"
    linked.write_text((ROOT / "soc/firmware/soc.ld").read_text().replace("128K", str(ram_bytes)))
    elf = folder / "firmware.elf"
    includes = [f"-I{p}" for p in (folder, ROOT / "soc/firmware", ROOT / "sw", ROOT / "include")]
    files = [str(ROOT / f) for f in (*BOARD, f"soc/firmware/{program}.c", *DRIVER)]
    words = [sys.executable, "-m", "ziglang", "cc", *MACHINE, *FLAGS, *includes, *files]
    words += [f"-DJOB_DISTURB={int(disturb)}", "-nostdlib", "-Wl,--gc-sections"]
    words += ["-T", str(linked), "-o", str(elf)]
    _step(words, "the firmware")
    data = _flat(elf.read_bytes())
    if len(data) > ram_bytes:
        raise UsageError(f"{len(data)} bytes of firmware, expected {ram_bytes} at most")
    return data


def _flat(elf: bytes) -> bytes:
    """What an ELF file of 32 bits loads, from address 0 on."""
    (at,), (size, count) = struct.unpack_from("<I", elf, 28), struct.unpack_from("<2H", elf, 42)
    found = bytearray()
    for i in range(count):
        kind, offset, _, place, stored = struct.unpack_from("<5I", elf, at + i * size)
        if kind == 1 and stored:  # PT_LOAD
            found.extend(bytes(max(0, place + stored - len(found))))
            found[place : place + stored] = elf[offset : offset + stored]
    return bytes(found)


def _step(words: list[str], what: str) -> None:
    done = subprocess.run(words, capture_output=True, text=True)
    if done.returncode:
        said = "\n".join((done.stdout + done.stderr).splitlines()[-simrun.LOG_TAIL :])
        raise simrun.SimError(f"{what} could not be made:\n{said}")


def simulator(config: configs.Config, devices: int, store_bytes: int, *, axi: bool) -> Path:
    """The program that runs the computer; one of three devices serves for two.

    ``axi``: the devices are openkpu_axi.
    """
    devices = 1 if devices == 1 else MOST_DEVICES
    params = {**config.parameters, "DEVICES": devices, "STORE_BYTES": store_bytes}
    params |= {"RAM_BYTES": RAM_BYTES, "AXI": int(axi)}
    sources = [*SOURCES, processor()]
    folder = verilated.model("soc", sources, params, control=PUBLIC, flags=["--vpi"])
    scopes = {"DEVICE": "g_axi.u_axi.u_device.u_openkpu" if axi else "g_ahb.u_openkpu"}
    scopes["AI_RAM"] = "u_cache.u_ai_ram"
    flags = [f'-D{name}_SCOPE="{scope}"' for name, scope in scopes.items()]
    return verilated.program(folder, "soc", ["soc/main.cpp"], "soc_main", flags)


def run_firmware(args: argparse.Namespace, made: Job) -> int:
    """Build and run; the exit status."""
    macs = sum(run_.macs for runs in made.golden for run_ in runs)
    limit = CYCLES + PER_MAC * macs + 100 * sum(i.input_bytes for i in made.images)
    said = f"computer with {args.devices} device(s), configuration {args.config.name}"
    said += ", AXI" if args.axi else ""
    print(f"{said}, program {args.program}", flush=True)
    program = simulator(args.config, args.devices, made.store_bytes, axi=args.axi)
    with tempfile.TemporaryDirectory(prefix="openkpu_soc_") as tmp:
        folder = Path(tmp)
        code = firmware(args.program, made, folder, disturb=not args.quiet)
        bits = args.config.ahb_width
        contents = {
            "ram.hex": texts.hexadecimal(np.frombuffer(code, np.uint8), bits).encode(),
            "store.hex": texts.hexadecimal(made.store, bits).encode(),
            "maps": maps(made),
        }
        for name, content in contents.items():
            (folder / name).write_bytes(content)
        words = [str(program), str(limit), "maps", "+ram=ram.hex", "+store=store.hex"]
        print(f"firmware {len(code)} bytes, storage {made.store_bytes} bytes", flush=True)
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(done.stdout, end="")
    wrong = result_differences(made, done.stdout)
    for line in wrong:
        print(line)
    good = done.returncode == 0 and not wrong
    if done.returncode:
        print(f"exit status {done.returncode} {done.stderr.strip()}")
    print("PASS: every map and result as in the golden model" if good else "FAIL")
    return 0 if good else command.MISMATCH


def result_differences(made: Job, said: str) -> list[str]:
    """Results that the processor printed and that are not the golden model's, or are missing."""
    found = {}
    for line in said.splitlines():
        if match := re.fullmatch(r"result (\d) (\d+): ([0-9a-f]{8})((?: [0-9a-f]{2})*)", line):
            data = bytes.fromhex(match[4])
            found[int(match[1]), int(match[2])] = (int(match[3], 16), data)
    wrong = []
    for key, (crc, y) in made.results().items():
        if found.get(key) != (crc, y[:16].tobytes()):
            wrong.append(
                f"device {key[0]}, inference {key[1]}: {found.get(key)}, expected {crc:08x}"
            )
    return wrong
