# SPDX-License-Identifier: Apache-2.0
"""python -m openkpu.kmodel FILE: what is in a model, and what it says about a picture."""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path
from typing import NoReturn

import numpy as np

from openkpu import kmodel_options
from openkpu.files import parted
from openkpu.kmodel import KmodelError, load_functions, load_kmodel, run_kmodel
from openkpu.kmodel.describe import as_dict, describe_program
from openkpu.kmodel.images import image_input, input_shape, open_image
from openkpu.kmodel.program import Program
from openkpu.kmodel.results.results import Box, draw_boxes, hint, load_detector, report, span
from openkpu.terminal import any_text

FOR_IMAGES = ("image", "bgr", "scale", "bias", "detector", "png")


def main(arguments: list[str] | None = None) -> int:
    """Exit status: 0, or 2 with one line on stderr for bad input."""
    parser = Parser(prog="openkpu kmodel", description=__doc__)
    kmodel_options.add_kmodel_options(parser)
    any_text()
    try:
        options = parser.parse_args(arguments)
        check(options)
        if options.functions:
            if options.numbering is not None:
                raise KmodelError("--numbering is of the CPU's code, --functions leaves it out")
            programs = load_functions(options.file)
            _print(options.json, [as_dict(p) for p in programs], map(describe_program, programs))
            return 0
        program = load_kmodel(options.file, options.numbering)
        info, lines = as_dict(program), [describe_program(program)]
        if options.image:
            info["result"], more = _run(program, options)
            lines += more
        _print(options.json, info, lines)
    except KmodelError as err:
        print(f"error: {err}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader of the output has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class _Once(argparse.Action):
    """Store a value; a second one would replace the first without a word."""

    def __call__(self, parser, namespace, values, option_string=None) -> None:
        if option_string and getattr(namespace, self.dest) is not None:
            raise argparse.ArgumentError(self, "given twice, expected once")
        setattr(namespace, self.dest, values)


class Parser(argparse.ArgumentParser):
    """argparse whose complaint is one line; an option is given once, by its whole name."""

    def __init__(self, **names) -> None:
        super().__init__(allow_abbrev=False, **names)
        self.register("action", None, _Once)

    def error(self, message: str) -> NoReturn:
        raise KmodelError(message)


def check(options: argparse.Namespace) -> None:
    """KmodelError for options that do not go together."""
    given = [name for name in FOR_IMAGES if getattr(options, name) not in (None, False)]
    if given and options.functions:
        raise KmodelError(f"--{given[0]} and --functions together: functions run on no picture")
    if given and not options.image:
        raise KmodelError(f"--{given[0]} without --image, expected a picture to use it with")
    read = [parted(options.file)[0], options.image, options.detector]
    if options.png and any(name and _same(options.png, name) for name in read):
        raise KmodelError(f"{options.png}: would be read and written")
    if options.png and os.path.exists(options.png) and not os.path.isfile(options.png):
        raise KmodelError(f"{options.png}: expected a file, or a name that is free")


def _same(one: str, other: str) -> bool:
    try:
        return Path(one).samefile(other)
    except (OSError, ValueError):  # one that is not there
        return False


def _print(as_json: bool, info, lines) -> None:
    print(json.dumps(info, indent=1) if as_json else "\n".join(lines), flush=True)


def _run(program: Program, options: argparse.Namespace) -> tuple[dict, list[str]]:
    """Result for JSON and as lines."""
    image = open_image(options.image)
    if len(program.inputs) != 1:
        raise KmodelError(f"{program.file}: a picture cannot be {len(program.inputs)} inputs")
    tensor = program.inputs[0]
    for name, value in (("--scale", options.scale), ("--bias", options.bias)):
        if value is not None and np.dtype(tensor.dtype).kind != "f":
            raise KmodelError(f"{name}: the input of {program.file} is {tensor.dtype}, not float")
    how = {} if options.scale is None else {"scale": options.scale}
    array, note = image_input(image, tensor, bias=options.bias or 0.0, bgr=options.bgr, **how)
    detector = load_detector(options.detector) if options.detector else None
    result = run_kmodel(program, array)
    _, height, width = input_shape(tensor)
    outputs = list(result.outputs.values())
    kind, found, assumed = report(outputs, width, height, detector, program)
    lines = [f"{options.image}: {note or 'as it is'}", *assumed]
    info: dict = {"note": note, "kind": kind, "assumed": assumed}
    if outputs:
        info["shape"] = outputs[0].shape
    if kind == "tensor":
        lines += [f"output {span(output)}" for output in outputs]
        if outputs and outputs[0].size:
            info |= {"min": float(outputs[0].min()), "max": float(outputs[0].max())}
        if text := hint(outputs, program):
            lines.append(text)
            info["hint"] = text
    elif kind == "classes":
        lines += [f"{name}: {score:.4f}" for _, name, score in found]
        info["classes"] = found
    else:
        lines += [str(box) for box in found] or ["nothing found"]
        info["boxes"] = [vars(box) for box in found]
    if options.png:
        boxes = [box for box in found or [] if isinstance(box, Box)]
        _save(draw_boxes(image, boxes), options.png)
        lines.append(f"wrote {options.png}")
    return info, lines


def _save(image, path: str) -> None:
    if Path(path).suffix.lower() != ".png":
        raise KmodelError(f"{path}: expected a name that ends in .png")
    try:
        image.save(path)
    except OSError as err:
        raise KmodelError(f"{path}: {err.strerror or err}") from None


if __name__ == "__main__":
    sys.exit(main())
