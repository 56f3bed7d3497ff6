# SPDX-License-Identifier: Apache-2.0
"""Files that an integrator's tools read: rtl/openkpu.f, openkpu.core, data of tb/first_layer.

They follow from the tree, configs.toml and the golden model (docs/integration.md 11).
"""

import tomllib
from pathlib import Path

import numpy as np

from openkpu.checkout import ROOT
from openkpu.generators.generate import random_layer
from openkpu.layer import airam
from openkpu.layer.layout import ROW_BYTES
from openkpu_tb.core.registers import AI, AI_RAM, EIGHT_BIT_MODE, INTERRUPT_MASK, Kpu
from openkpu_tools import registry
from openkpu_tools.documents import generated
from openkpu_tools.flows.eda import bridge_sources, rtl_sources

FIRST = "tb/first_layer"
TABLES = 0x100  # where the layer's tables lie in the storage
HEAD = "SPDX-License-Identifier: Apache-2.0"
WRITTEN = "Written by `openkpu integration`, which `make lint` compares."


def file_list() -> str:
    """rtl/openkpu.f: the RTL, relative to the root of the checkout."""
    return "\n".join(["+incdir+rtl/include", *rtl_sources()]) + "\n"


def _words(*pairs: tuple[int, ...]) -> str:
    return "".join("".join(f"{value:08x}" for value in pair) + "\n" for pair in pairs)


def first_layer() -> dict[str, str]:
    """Text of each data file of tb/first_layer: a 3x3 layer of 4 channels, as the host runs it."""
    layer = random_layer(
        np.random.default_rng(1), c=4, h=6, w=9, o=4, kernel=3, pool=0, depthwise=False, fc=False,
        eight_bit=True, src=0, dst=64,
    )  # fmt: skip
    at, blob, where = TABLES, [np.zeros(TABLES, np.uint8)], []
    for part in (layer.weights, layer.bn.view(np.uint8), layer.act.view(np.uint8)):
        where.append(at)
        blob.append(np.pad(part, (0, -part.size % 8)))
        at += blob[-1].size
    arg = layer.arg.replace(
        para_start_addr=where[0], bwsx_base_addr=where[1], active_addr=where[2],
        int_en=1, send_data_out=0,
    )  # fmt: skip

    def rows(layout, data) -> np.ndarray:
        ram = np.zeros(layout.rows * ROW_BYTES, np.uint8)
        airam.pack_map(ram, 0, data)
        return ram.view("<u4")

    def place(layout, index) -> int:
        return AI_RAM + layout.base * ROW_BYTES + 4 * index

    before, after = arg.in_layout, arg.out_layout
    given = rows(before, layer.x)
    kept = rows(after, np.full_like(layer.y, 0xFF))
    writes = [(INTERRUPT_MASK, int(Kpu.ALMOST_EMPTY | Kpu.ALMOST_FULL)), (INTERRUPT_MASK + 4, 0)]
    writes += [(EIGHT_BIT_MODE, 1), (EIGHT_BIT_MODE + 4, 0)]
    writes += [(place(before, i), int(word)) for i, word in enumerate(given)]
    for word in arg.encode():
        writes += [(0, int(word) & 0xFFFFFFFF), (4, int(word) >> 32)]
    reads = [(AI["AI_ID"], 0xFFFFFFFF, 0x55504B4F)]
    reads += [
        (place(after, i), int(mask), int(word))
        for i, (mask, word) in enumerate(zip(kept, rows(after, layer.y), strict=True))
        if mask
    ]
    storage = [(int(word),) for word in np.concatenate(blob).view("<u4")]
    sizes = [f"// {HEAD}", f"// {WRITTEN}"]
    for name, rows_of in (("WRITES", writes), ("READS", reads), ("STORAGE", storage)):
        sizes.append(f"`define FIRST_LAYER_{name} {len(rows_of)}")
    return {
        f"{FIRST}/host_writes.hex": _words(*writes),
        f"{FIRST}/host_reads.hex": _words(*reads),
        f"{FIRST}/storage.hex": _words(*storage),
        f"{FIRST}/first_layer_sizes.vh": "\n".join(sizes) + "\n",
    }


def _entries(files: list[str], indent: int = 6) -> list[str]:
    return [f"{' ' * indent}- {file}" for file in files]


def parameters(top: str = "openkpu_top") -> list[tuple[str, int, str]]:
    """Name, default and meaning of each parameter of a top, from its comments."""
    found, about = [], ""
    text = (ROOT / "rtl" / f"{top}.v").read_text()
    for line in text[text.index("#(") : text.index("// clock and")].splitlines():
        line = line.strip()
        if line.startswith("//"):
            about = line[2:].strip()
        elif line.startswith("parameter"):
            name, _, value = line.removeprefix("parameter").rstrip(",").partition("=")
            found.append((name.strip(), int(value), about))
    return found


def core() -> str:
    """openkpu.core, CAPI2 of FuseSoC."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    values = parameters()
    bridges = bridge_sources()
    device = [file for file in rtl_sources() if file not in bridges]
    headers = [
        str(path.relative_to(ROOT))
        for path in sorted((ROOT / "rtl").rglob("*.vh"))
        if not path.stem.endswith("_props")
    ]
    data = [name for name in first_layer() if name.endswith(".hex")]
    bridged = parameters("openkpu_axi")
    values += [one for one in bridged if one[0] not in {name for name, _, _ in values}]
    lines = [
        "CAPI=2:",
        f"# {HEAD}",
        f"# {WRITTEN}",
        f"name: openkpu:ip:openkpu:{version}",
        "description: A CNN coprocessor, bit-exact to the K210 KPU",
        "filesets:",
        "  rtl:",
        "    files:",
    ]
    lines += [f"      - {name}: {{is_include_file: true}}" for name in headers]
    lines += _entries(device)
    lines += ["    file_type: verilogSource-2005", "  bridges:", "    files:", *_entries(bridges)]
    lines += ["    file_type: verilogSource-2005"]
    lines += ["  waivers:", "    files:", "      - lint/waivers.vlt: {file_type: vlt}"]
    lines += ["  constraints:", "    files:", "      - rtl/openkpu.sdc: {file_type: SDC}"]
    lines += ["  first_layer:", "    files:"]
    lines += [f"      - {FIRST}/first_layer_sizes.vh: {{is_include_file: true}}"]
    lines += [f"      - {name}: {{file_type: user, copyto: {Path(name).name}}}" for name in data]
    lines += [f"      - {FIRST}/first_layer_tb.v", "    file_type: verilogSource-2005"]
    chosen, chosen_axi = (
        f"    parameters: [{', '.join(name for name, _, _ in found)}]"
        for found in (parameters(), bridged)
    )
    lint = ["    default_tool: verilator", "    tools:", "      verilator:"]
    lint += ["        mode: lint-only", "        verilator_options: [-Wall]"]
    # a core that depends on this one gets this target, whatever it asks for
    lines += ["targets:", "  default:", "    filesets: [rtl, bridges]", "    toplevel: openkpu_top"]
    lines += [
        chosen,
        "  bridges:",
        "    filesets: [rtl, bridges]",
        "    toplevel: openkpu_axi",
        chosen_axi,
    ]
    lines += ["  lint:", "    filesets: [rtl, bridges, waivers]", "    toplevel: openkpu_top"]
    lines += [chosen, *lint]
    lines += ["  lint_axi:", "    filesets: [rtl, bridges, waivers]", "    toplevel: openkpu_axi"]
    lines += [chosen_axi, *lint]
    lines += ["  sim:", "    filesets: [rtl, first_layer]", "    toplevel: first_layer_tb"]
    lines += ["    parameters: [N_Y, N_Z]", "    default_tool: icarus", "    tools:"]
    lines += ["      icarus:", "        iverilog_options: [-g2005]"]
    lines += ["  synth:", "    filesets: [rtl, constraints]", "    toplevel: openkpu_top", chosen]
    lines += ["    default_tool: yosys", "    tools:", "      yosys:", "        arch: ecp5"]
    lines += ["        output_format: json", "parameters:"]
    for name, _, about in values:
        lines += [f"  {name}:", "    datatype: int", "    paramtype: vlogparam"]
        lines += [f'    description: "{about}"']
    return "\n".join(lines) + "\n"


def files() -> dict[str, str]:
    """Text of each file by its name."""
    return {"rtl/openkpu.f": file_list(), "openkpu.core": core(), **first_layer()}


def main(argv: list[str] | None = None) -> int:
    """Exit status 1 with --check when a file is stale."""
    check = registry.parse_command("integration", argv).check
    texts = {ROOT / name: text for name, text in files().items()}
    return generated.write_or_compare("openkpu integration", texts, check)
