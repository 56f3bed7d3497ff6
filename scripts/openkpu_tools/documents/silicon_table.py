# SPDX-License-Identifier: Apache-2.0
"""Tables of area and clock, from the records of `make fpga`, `synth` and `asic`.

``openkpu silicon`` prints those of docs/silicon.md; ``silicon_summary`` is the table of the README,
with the efficiency that `make bench` recorded. `openkpu page-tables` writes them.
"""

import json

from openkpu import configs
from openkpu_tools import registry
from openkpu_tools.benchmarks import bench, bench_tables
from openkpu_tools.benchmarks.bench_goals import END_TO_END
from openkpu_tools.families import XC7
from openkpu_tools.flows import fpga, silicon_record, synth
from openkpu_tools.flows.asic import flow as asic
from openkpu_tools.flows.asic import power

NETWORK = "yolo20"  # the README has its efficiency
# what others published: name, MACs, part, LUT, DSP, block RAM, source
PUBLISHED = [
    (
        "NVDLA nv_small",
        64,
        "XCZU9EG",
        76_169,
        "32",
        "100.5",
        "[nvdla/hw 110](https://github.com/nvdla/hw/issues/110)",
    ),
]


def fpga_table() -> list[str]:
    """A row for each configuration that was mapped whole, those counted box by box, then what
    others published."""
    known = silicon_record.load_figures(fpga.BASELINE)
    lines = [
        "| | MACs | part | LUT | DSP | block RAM | MHz | GOPS | GOPS per kLUT | at 100 MHz |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in sorted(known, key=lambda name: configs.load_config(name).macs):
        found, macs = known[name], configs.load_config(name).macs
        lut, part = found["LUT"], fpga.TARGETS[name].part
        clock = f"{'not yet' if part else ''} | |"
        if mhz := found.get("mhz", found.get("mhz_placed")):
            gops = 2 * macs * mhz / 1000
            routed = "" if "mhz" in found else ", not routed"
            clock = f"{mhz}{routed} | {gops:.1f} | {1000 * gops / lut:.2f}"
        lines.append(
            f"| `{name}` | {macs} | {fpga.PARTS[part]} | {lut:,} | "
            f"{found['DSP']} | {found['block RAM']} | {clock} | {200 * macs / lut:.2f} |"
        )
    for name, found in json.loads(synth.RECORD.read_text()).items():
        lut, macs = found["LUT"], configs.load_config(name).macs
        title = f"`{name}`, hierarchy kept, {synth.SMALL_RAM * 64 // 1024} KiB AI RAM"
        lines.append(
            f"| {title} | {macs} | {fpga.PARTS['']} | {lut:,} | "
            f"{found['DSP']} | {found['block RAM']} | | | | {200 * macs / lut:.2f} |"
        )
    for name, macs, part, lut, dsp, ram, source in PUBLISHED:
        lines.append(
            f"| {name} ({source}) | {macs} | {part} | {lut:,} | {dsp} | {ram} | | | | "
            f"{200 * macs / lut:.2f} |"
        )
    return lines


def xc7_table() -> list[str]:
    """A row for each variant that was mapped for a Xilinx 7 series, with the smallest part that it
    fits."""
    lines = [
        "| | MACs | LUT | flip-flops | DSP48 | block RAM | fits |",
        "|---|---|---|---|---|---|---|",
    ]
    for title, found in silicon_record.load_figures(fpga.XC7_RECORD).items():
        name, _, params = title.partition(" ")
        part = next((p.title for p in XC7.parts.values() if not p.excess(found)), "none")
        figures = " | ".join(f"{found[column]:,}" for column in XC7.columns)
        macs = configs.load_config(name).macs
        shown = f"`{name}`" + (f", `{params}`" if params else "")
        lines.append(f"| {shown} | {macs} | {figures} | {part} |")
    return lines if len(lines) > 2 else ["Not measured."]


def asic_table() -> list[str]:
    """A row for each configuration that was mapped to standard cells."""
    known = silicon_record.load_figures(asic.BASELINE)
    lines = ["| | MACs | NAND2 equivalents | MHz | GOPS |", "|---|---|---|---|---|"]
    for name in sorted(known, key=lambda name: configs.load_config(name).macs):
        found, macs = known[name], configs.load_config(name).macs
        gops = 2 * macs * found["mhz"] / 1000
        lines.append(f"| `{name}` | {macs} | {found['gates']:,} | {found['mhz']} | {gops:.1f} |")
    return lines


def power_table() -> list[str]:
    """A row for each circuit of the array that `make power` has measured, and one for the lanes."""
    lines = [
        "| | circuit | nJ an inference | pJ a multiplication | saved by the gate |",
        "|---|---|---|---|---|",
    ]
    known = json.loads(power.RECORD.read_text()) if power.RECORD.exists() else {}
    for name, found in known.items():
        products = found["macs_issued"] / found["images"]
        gated = found["energy"]["gated"]
        for variant, boxes in found["energy"].items():
            array = boxes["array"]["total"]
            saved = 1 - gated["array"]["total"] / array
            share = f"{100 * saved:.1f} %" if variant != "gated" else ""
            lines.append(
                f"| `{name}` | array, {variant} | {array:,.0f} | {1000 * array / products:.1f} |"
                f" {share} |"
            )
        lines.append(f"| `{name}` | post lanes | {gated['lanes']['total']:,.0f} | | |")
    return lines if known else ["Not measured."]


def silicon_summary() -> list[str]:
    """A row for each configuration on which the network was measured as a task list."""
    found = json.loads(bench.BASELINE.read_text())
    mapped, cells = (
        silicon_record.load_figures(fpga.BASELINE),
        silicon_record.load_figures(asic.BASELINE),
    )
    kept = json.loads(synth.RECORD.read_text())
    lines = [
        "| configuration | MACs | LUT, ECP5 | MHz, ECP5 | MHz, 0.18 um | efficiency |",
        "|---|---|---|---|---|---|",
    ]
    for name in bench_tables.plain_configs():
        config = configs.load_config(name)
        run = bench_tables.BenchRun("networks", name, config.ahb_width, [], NETWORK).name
        if run not in found:
            continue
        part = f"{name}_fpga"
        area = mapped.get(part) or kept.get(name)
        lut = f"{area['LUT']:,}" if area else ""
        where = f" (`{part}`)" if part in mapped else ", hierarchy kept" if area else ""
        mhz = mapped.get(part, {}).get("mhz", "")
        cycles, roofline = found[run][END_TO_END][:2]
        lines.append(
            f"| `{name}` | {config.macs} | {lut}{where} | {mhz or 'not routed'} |"
            f" {cells[name]['mhz'] if name in cells else ''} | {100 * roofline / cycles:.1f} % |"
        )
    return lines


def main(argv: list[str] | None = None) -> int:
    """Print both tables; returns the exit status."""
    registry.parse_command("silicon", argv)
    print("\n".join([*fpga_table(), "", *asic_table()]))
    return 0
