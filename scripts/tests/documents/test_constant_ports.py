# SPDX-License-Identifier: Apache-2.0
"""Ports that docs/integration.md calls constant: they have that value, on each top."""

import re
from pathlib import Path

import pytest

from openkpu.checkout import ROOT
from scripts.tests.checkouts import ran

PAGE = (ROOT / "docs" / "integration.md").read_text()
ROW = re.compile(r"^\| `(m_\w+)` \| out \| (\d+) \| constant ([01]+)\b", re.MULTILINE)


def constants() -> dict[str, str]:
    """Port -> value in binary, as wide as the port."""
    return {name: value.zfill(int(width)) for name, width, value in ROW.findall(PAGE)}


@pytest.mark.check
@pytest.mark.parametrize(
    ("top", "prefix", "count"),
    [("openkpu_top", "m_ahb_", 2), ("openkpu_apb", "m_ahb_", 2), ("openkpu_axi", "m_axi_", 8)],
)
def test_constant_ports(top: str, prefix: str, count: int, tmp_path: Path) -> None:
    """What Icarus sees at the ports, whatever the inputs are."""
    wanted = {name: value for name, value in constants().items() if name.startswith(prefix)}
    assert len(wanted) == count
    nets = [f"wire [{len(value) - 1}:0] {name};" for name, value in wanted.items()]
    shown = [f'$display("{name} %b", {name});' for name in wanted]
    ports = ", ".join(f".{name}({name})" for name in wanted)
    bench = [*nets, f"{top} u_device ({ports});", "initial begin #1;", *shown, "$finish; end"]
    (tmp_path / "bench.v").write_text("\n".join(["module bench;", *bench, "endmodule", ""]))
    files = sorted(map(str, ROOT.glob("rtl/**/*.v")))
    build = ["iverilog", "-g2005", "-s", "bench", f"-I{ROOT / 'rtl/include'}", "-o", "bench"]
    for command in ([*build, "bench.v", *files], ["vvp", "-n", "bench"]):
        done = ran(*command, cwd=tmp_path)
    lines = [line.split() for line in done.stdout.splitlines() if line.startswith("m_")]
    assert {words[0]: words[1] for words in lines} == wanted
