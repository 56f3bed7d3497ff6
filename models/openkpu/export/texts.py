# SPDX-License-Identifier: Apache-2.0
"""The files of an exported network: C, linker script and words for $readmemh."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from openkpu.export.image import NOWHERE, Image, Tensor, config_word

LICENCE = "/* SPDX-License-Identifier: Apache-2.0 */"
MADE = "/* written by `openkpu export`: do not edit */"
WORDS_OF_A_LINE = 8
MOST_ALIGNED = 64  # bytes: a line of a cache
SUFFIXES = (".bin", ".hex", "_64.hex", ".h", ".c", ".ld")

DRIVER = "openkpu"  # how names of the driver's files and macros begin
HEADERS = (  # of C
    "assert complex ctype errno fenv float inttypes iso646 limits locale math setjmp signal stdarg"
    " stdbool stddef stdint stdio stdlib string tgmath time uchar wchar wctype"
)


def taken(name: str) -> str:
    """Whose files or macros those of a network of this name would hide; empty: nobody's."""
    if name.startswith(DRIVER):
        return f"the driver's begin with {DRIVER}"
    return f"{name}.h is a header of C" if name in HEADERS.split() else ""


def identifier(name: str) -> str:
    """A name of C that is like ``name``."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII).strip("_").lower() or "network"
    return f"n{found}" if found[0].isdigit() else found


def hexadecimal(data: npt.NDArray[np.uint8], bits: int) -> str:
    """A word of ``bits`` a line, as $readmemh reads it."""
    size = bits // 8
    padded = np.pad(data, (0, -data.size % size)).reshape(-1, size)[:, ::-1]
    return "\n".join(row.tobytes().hex() for row in padded) + "\n"


def c_header(image: Image, name: str, source: str) -> str:
    """The C header: where everything lies."""
    upper, lines = name.upper(), [LICENCE, MADE]
    lines += [f"/* {_plain(source)} for configuration {image.config.name} */"]
    lines += [f"#ifndef {upper}_H", f"#define {upper}_H", "", "#include <stdint.h>", ""]

    def define(what: str, value: int, text: str) -> None:
        lines.append(f"#define {upper}_{what} {value:#x}u /* {text} */")

    define("BASE", image.base, "address of the image" + (", or any other" * image.relocatable))
    define("IMAGE_BYTES", image.data.size, "that are loaded there")
    define("MEMORY_BYTES", image.memory, "from BASE on, with inputs and results")
    define("CONFIG", config_word(image.config), f"AI_CONFIG of {image.config.name}")
    define("COUNT", image.count, "inputs and results that there is room for")
    define("INPUT", image.base + image.input, "address of the first input map")
    define("INPUT_BYTES", image.input_bytes, "of a map")
    define("INPUT_STRIDE", image.input_stride, "from one input to the next")
    define("RESULT", image.base + image.result, "address of the first result")
    define("RESULT_BYTES", image.result_bytes, "of a result")
    define("RESULT_STRIDE", image.result_stride, "from one result to the next")
    for number, tensor in enumerate(image.tensors):
        lines += ["", *_tensor(image, tensor, number, upper)]
    for what, nodes in (("before", image.before), ("after", image.after)):
        if nodes:
            names = ",\n   ".join(map(_plain, nodes))
            lines += ["", f"/* left to the processor {what} the device's run:\n   {names} */"]
    if image.written:
        lines += ["", "/* not constant: it holds maps of inputs or outputs beside the first */"]
    lines += ["", f"extern {_type(image)} {name}_image[{upper}_IMAGE_BYTES / 4];", "", "#endif"]
    return "\n".join(lines) + "\n"


def _tensor(image: Image, tensor: Tensor, number: int, upper: str) -> list[str]:
    what = "output" if tensor.output else "input"
    order = "in order" if tensor.places is None else "places by the image's table"
    padding = tensor.places is not None and not tensor.output
    padding = padding and bool((tensor.places == NOWHERE).any())
    text = f"{what} {_plain(tensor.name)}: {tensor.dtype} {'x'.join(map(str, tensor.shape))}"
    shape = "x".join(map(str, tensor.map_shape))
    lines = [f"/* {text}; map {shape}, {order}{', with padding' * padding} */"]
    prefix = f"{upper}_T{number}"
    lines += [f"#define {prefix}_ADDRESS {image.base + tensor.offset:#x}u"]
    lines += [f"#define {prefix}_MAP_BYTES {tensor.size}u"]
    lines += [f"#define {prefix}_ELEMENTS {tensor.elements}u"]
    lines += [f"#define {prefix}_ADD {tensor.add} /* stored byte less integer */"]
    if tensor.scale is not None:
        lines += [f"#define {prefix}_SCALE {float(tensor.scale)!r}"]
        lines += [f"#define {prefix}_ZERO {int(tensor.zero)}"]
    return lines


def _plain(text: str) -> str:
    """Text that ends no comment."""
    return re.sub(r"[^\x20-\x7e]", "?", text).replace("*/", "*?").replace("/*", "?*")


def _type(image: Image) -> str:
    return "uint32_t" if image.written else "const uint32_t"


def source(image: Image, name: str) -> str:
    """The C file: the image as words, in a section of its own, aligned as the base is."""
    align = min(MOST_ALIGNED, image.base & -image.base or MOST_ALIGNED)
    words = image.data.view("<u4")
    rows = [words[i : i + WORDS_OF_A_LINE] for i in range(0, words.size, WORDS_OF_A_LINE)]
    body = "\n".join("    " + ", ".join(f"0x{int(w):08X}" for w in row) + "," for row in rows)
    return f"""{LICENCE}
{MADE}
#include "{name}.h"

#ifdef __GNUC__
__attribute__((section(".openkpu.{name}"), aligned({align})))
#endif
{_type(image)} {name}_image[{name.upper()}_IMAGE_BYTES / 4] = {{
{body}
}};
"""


def linker(image: Image, name: str) -> str:
    """The linker script: the section at its address, and room behind it that nothing loads.

    Both have an address each, for which a chip's script with MEMORY needs no region; the chip's
    own sections go on where they were.
    """
    base, end = f"{image.base:#x}", f"{image.base + image.data.size:#x}"
    room = f"{image.memory - image.data.size:#x}"
    return f"""{LICENCE}
{MADE}
/* for GNU ld, before the chip's own script, which has a .text: -T {name}.ld -T chip.ld */
SECTIONS
{{
  openkpu_resume.{name} = .;
  .openkpu.{name} {base} : AT({base}) {{ KEEP(*(.openkpu.{name})) }}
  .openkpu_room.{name} {end} (NOLOAD) : AT({end}) {{ . = . + {room}; }}
  . = openkpu_resume.{name};
}}
INSERT AFTER .text;
"""


def files(image: Image, name: str, origin: str) -> dict[str, bytes]:
    """All files by their suffix."""
    contents = [
        image.data.tobytes(),
        *(hexadecimal(image.data, bits).encode() for bits in (32, 64)),
        *(c_header(image, name, origin).encode(), source(image, name).encode()),
        linker(image, name).encode(),
    ]
    return dict(zip(SUFFIXES, contents, strict=True))
