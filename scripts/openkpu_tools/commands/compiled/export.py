# SPDX-License-Identifier: Apache-2.0
"""openkpu export: a network as bytes in memory, for firmware.

Writes net.bin, net.hex and net_64.hex ($readmemh), net.h, net.c and net.ld (docs/driver.md). Exit
status: 0, or 2 when the model cannot be exported; then nothing is written.
"""

import argparse
from pathlib import Path

from openkpu import configs
from openkpu.export import source, texts
from openkpu.export.image import Image, alignment, image
from openkpu.terminal import printable
from openkpu_tools import registry
from openkpu_tools.command import UsageError, check_outputs, option, writing

BASE = 0x8000_0000
MARK_WITHIN = 1024  # bytes in which a written file says by what


def parse(argv: list[str] | None) -> argparse.Namespace:
    """Arguments; UsageError names the word and what was expected."""
    args = registry.parse_command("export", argv)
    args.config = configs.load_config(args.config)
    args.base = BASE if args.base is None else args.base
    if args.base % (align := alignment(args.config)):
        raise UsageError(f"{option('base', hex(args.base))}: expected a multiple of {align}")
    if args.output and args.output.is_dir():
        given = option("output", args.output)
        raise UsageError(f"{given}: is a folder, expected the first part of the files' names")
    named = option("output", args.output) if args.output else option("model", args.model)
    args.output = args.output or Path(Path(args.model).stem)
    args.name = texts.identifier(args.output.name)
    if why := texts.taken(args.name):
        raise UsageError(f"{named}: {why}, expected another name by {option('output')}")
    args.paths = {s: args.output.parent / f"{args.name}{s}" for s in texts.SUFFIXES}
    check_outputs(list(args.paths.values()), [args.model])
    foreign = [path for path in args.paths.values() if not _ours(path, args.paths[".h"])]
    if foreign:
        raise UsageError(
            f"{foreign[0]}: exists, and no `openkpu export` wrote it; expected another name by"
            f" {option('output')}"
        )
    return args


def _ours(path: Path, header: Path) -> bool:
    """Whether a file may be written: it is empty or new, or of an earlier export. Files that have
    no comments are those of the ``header`` beside them."""
    if not path.exists() or not path.stat().st_size:
        return True
    text = path if path.suffix in (".c", ".h", ".ld") else header
    return text.is_file() and texts.MADE.encode() in text.read_bytes()[:MARK_WITHIN]


def exported(args: argparse.Namespace) -> Image:
    """The image; UsageError, or a reader's error, for what cannot be exported."""
    found = source.read_export_model(args.model, args.config)
    made = image(found.network, args.config, args.base, found.tensors, args.images or 1)
    made.before, made.after = found.before, found.after
    if args.memory is not None and made.memory > args.memory:
        raise UsageError(
            f"{option('memory', args.memory)}: expected {made.memory} bytes or more,"
            f" {made.data.size} of them for the network"
        )
    return made


def main(argv: list[str] | None = None) -> int:
    """Run the command; returns the exit status."""
    args = parse(argv)
    made = exported(args)
    for suffix, content in texts.files(made, args.name, Path(args.model).name).items():
        with writing(args.paths[suffix]) as stream:
            stream.write(content)
    for line in lines(made):
        print(line)
    print(f"files: {', '.join(str(path) for path in args.paths.values())}")
    return 0


def lines(made: Image) -> list[str]:
    """What is where."""
    free = ", or any aligned address" if made.relocatable else ""
    found = [
        f"{len(made.network.layers)} layers for configuration {made.config.name}",
        f"image   {made.base:#010x}{free}: {made.data.size} bytes",
        f"memory  {made.memory} bytes with inputs and results",
    ]
    for tensor in made.tensors:
        what = "output" if tensor.output else "input "
        shape = "x".join(map(str, tensor.shape))
        found.append(
            f"{what}  {made.base + tensor.offset:#010x}: {printable(tensor.name)},"
            f" {tensor.dtype} {shape}, {tensor.size} bytes"
            + (", by the image's table" if tensor.places is not None else "")
        )
    for when, nodes in (("before", made.before), ("after", made.after)):
        if nodes:  # one a line: an unrolled loop has hundreds
            found += [f"{when} it the processor computes", *(f"  {node}" for node in nodes)]
    return found
