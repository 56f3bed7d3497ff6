# SPDX-License-Identifier: Apache-2.0
"""Writes rtl/include/openkpu_fields.vh from rtl/include/fields.toml.

Every field becomes a macro PREFIX_NAME, to be used as an index: ``desc[`DESC_MODE]``. A vector's
width is PREFIX_BITS. ``--check`` compares instead of writing.
"""

import textwrap
import tomllib
from pathlib import Path

from openkpu.checkout import ROOT
from openkpu_tools import registry
from openkpu_tools.documents import generated

SOURCE = ROOT / "rtl" / "include" / "fields.toml"
LINE = 120  # characters
HEADER = ROOT / "rtl" / "include" / "openkpu_fields.vh"
TOP = """\
// SPDX-License-Identifier: Apache-2.0
//
// Fields of the packed vectors that travel between modules. Written by `openkpu fields` from
// fields.toml; change that.
`ifndef OPENKPU_FIELDS_VH
`define OPENKPU_FIELDS_VH
"""

Field = tuple[str, int | str, str]  # name, width, meaning


def load(path: Path = SOURCE) -> dict[str, tuple[str, list[Field]]]:
    """Vector -> (what it is, its fields from bit 0 on)."""
    found = {}
    for name, table in tomllib.loads(path.read_text()).items():
        if name == "constants":
            continue
        found[name] = (table["about"], [tuple(f) for f in table["fields"]])
    return found


def constants(path: Path = SOURCE) -> tuple[str, list[tuple[str, str, str]]]:
    """What they are; name, Verilog value, meaning."""
    table = tomllib.loads(path.read_text())["constants"]
    return table["about"], [tuple(v) for v in table["values"]]


def _sum(widths: list[int | str]) -> str:
    """Widths added up, constants into one number."""
    names = [w for w in widths if isinstance(w, str)]
    number = sum(w for w in widths if isinstance(w, int))
    parts = [str(number)] if number or not names else []
    return "+".join(parts + names)


def _comment(text: str) -> list[str]:
    """Lines of a Verilog comment."""
    return [f"// {line}" for line in textwrap.wrap(text, 94)]


def define(macro: str, meaning: str) -> list[str]:
    """A macro with its meaning behind it, or above where the line would be too long."""
    line = f"{macro}  // {meaning}"
    return [line] if len(line) <= LINE else [*_comment(meaning), macro]


def header() -> str:
    """Text of the Verilog header."""
    about, values = constants()
    out = [TOP, *_comment(about)]
    for name, value, meaning in values:
        out += define(f"`define {name.upper()} {value}", meaning)
    out.append("")
    for name, (about, fields) in load().items():
        fixed = all(isinstance(width, int) for _, width, _ in fields)
        out += _comment(about)
        before: list[int | str] = []
        for field, width, meaning in fields:
            macro = f"`define {name.upper()}_{field.upper()}"
            low = _sum(before)
            if width == 1:
                where = low if fixed else f"({low})"
            elif fixed:
                where = f"{int(low) + int(width) - 1}:{low}"
            else:
                where = f"({low})+:({width})"
            out += define(f"{macro} {where}", meaning)
            before.append(width)
        total = _sum(before)
        out.append(f"`define {name.upper()}_BITS {total if fixed else f'({total})'}")
        out.append("")
    return "\n".join([*out, "`endif", ""])


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 with --check when the header is stale."""
    check = registry.parse_command("fields", argv).check
    return generated.write_or_compare("openkpu fields", {HEADER: header()}, check)
