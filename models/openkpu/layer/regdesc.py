# SPDX-License-Identifier: Apache-2.0
"""The register description rtl/host/openkpu.rdl, compiled; needs systemrdl-compiler.

Its numbers alone are in regmap.py, which needs nothing.
"""

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from systemrdl.compiler import RDLCompiler
from systemrdl.node import AddrmapNode, FieldNode, RegNode

from openkpu.checkout import ROOT

SOURCE = ROOT / "rtl" / "host" / "openkpu.rdl"


@dataclass(frozen=True)
class Map:
    """One address map of the description."""

    node: AddrmapNode

    def registers(self) -> Iterator[RegNode]:
        for register in self.node.registers():
            assert isinstance(register, RegNode)
            yield register


def compile_map(name: str, source: Path = SOURCE) -> Map:
    """Address map ``name`` of ``source``; RDLCompileError when it is not legal SystemRDL."""
    logging.getLogger("systemrdl").setLevel(logging.ERROR)
    compiler = RDLCompiler()
    compiler.compile_file(str(source))
    return Map(compiler.elaborate(top_def_name=name).top)


def access(field: FieldNode) -> str:
    """RO, WO, RW, W1C or WC (any write clears)."""
    onwrite = field.get_property("onwrite")
    if onwrite is not None and onwrite.name in ("woclr", "wclr"):
        return {"woclr": "W1C", "wclr": "WC"}[onwrite.name]
    if field.is_sw_readable and field.is_sw_writable:
        return "RW"
    return "RO" if field.is_sw_readable else "WO"


def reset(register: RegNode) -> int:
    """Value of the register after reset; fields that cannot be read count as 0."""
    return sum(field_reset(f) << f.low for f in register.fields() if f.is_sw_readable)


def field_reset(field: FieldNode) -> int:
    """Value of a field after reset, 0 when the description has none."""
    value = field.get_property("reset")
    assert value is None or isinstance(value, int), "the description has no resets by signals"
    return value or 0
