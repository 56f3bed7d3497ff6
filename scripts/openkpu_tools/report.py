# SPDX-License-Identifier: Apache-2.0
"""What a run is summarised in: one record per layer, totals, and their JSON file."""

import argparse
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from openkpu.configs import Config
from openkpu.layer.argument import LayerArg
from openkpu.layer.golden import LayerResult
from openkpu.prediction.roofline import cycles_beside, layer_bytes, roofline_cycles
from openkpu_tools.command import write_json
from openkpu_tools.variants import Variant

# pools whose windows overlap: the device may compute a line twice, and its counter counts it twice
OVERLAPPING = (8, 9)
COUNTS = {
    "layers[].cycles": "PERF_TOTAL of the layer alone, as the device counted it",
    "layers[].roofline_cycles": "multiplications (of a pooling task its reads), or bytes of"
    " weights and tables, of the layer",
    "totals.cycles": "sum of layers[].cycles: no maps on their way in and out by the host",
    "totals.roofline_cycles": "sum of layers[].roofline_cycles",
    "totals.efficiency": "totals.roofline_cycles / totals.cycles",
    "totals.model_roofline_cycles": "all multiplications and reads of pooling tasks, or all"
    " bytes of weights and tables;"
    " the same however layers are started",
    "totals.model_efficiency": "totals.model_roofline_cycles / totals.cycles",
    "totals.end_to_end": "from the first byte of an input to the last byte of its result; its"
    " roofline adds bytes of layer words, input and result, the same however layers are started",
}
STALLS = ("weights", "input", "output", "bus", "control")


@dataclasses.dataclass
class LayerRecord:
    """One layer run. Cycle fields are None when the golden model ran alone."""

    name: str
    in_shape: list[int]
    out_shape: list[int]
    cycles: int | None
    macs: int  # multiplications that the layer needs
    macs_gated: int  # multiplications that the sign gate skipped
    stalls: dict[str, int] | None  # cycles by cause
    roofline_cycles: int
    efficiency: float | None  # roofline_cycles / cycles
    mismatching_bytes: int

    @property
    def note(self) -> str:
        """One line of a table."""
        shape = f"{'x'.join(map(str, self.in_shape))} -> {'x'.join(map(str, self.out_shape))}"
        cycles = "" if self.cycles is None else f"{self.cycles:>10} cycles"
        share = "" if self.efficiency is None else f"{100 * self.efficiency:6.1f} %"
        verdict = "ok" if not self.mismatching_bytes else f"{self.mismatching_bytes} bytes differ"
        return f"{self.name:<30} {shape:<26} {cycles} {share}  {verdict}"


def layer_record(
    config: Config,
    name: str,
    arg: LayerArg,
    found: Mapping[str, Any] | LayerResult,
    *,
    eight_bit: bool,
    wrong: int = 0,
) -> LayerRecord:
    """A record from the event of a layer, or from what the golden model alone found.

    The roofline is of the layer alone, the same however it is started. ``macs``, ``macs_gated`` of
    an event: the golden model's; what was gated is taken from the device's counter. ``wrong``:
    bytes that differ by another comparison; the larger number counts.
    """
    if isinstance(found, LayerResult):  # no simulator ran
        found = {"macs": found.macs, "macs_gated": found.macs_gated}
    macs, macs_gated, counters = found["macs"], found["macs_gated"], found.get("counters")
    moved = layer_bytes(arg, eight_bit=eight_bit)
    least = roofline_cycles(config, 0 if arg.fp16 else macs, moved, cycles_beside(config, arg))
    cycles = counters["total"] if counters else None
    if counters and arg.pool_type not in OVERLAPPING:
        macs_gated = counters["macs_gated"]
    return LayerRecord(
        name=name,
        in_shape=list(arg.in_shape),
        out_shape=list(arg.out_shape),
        cycles=cycles,
        macs=macs,
        macs_gated=macs_gated,
        stalls={s: counters[f"stall_{s}"] for s in STALLS} if counters else None,
        roofline_cycles=least,
        efficiency=round(least / cycles, 4) if cycles else None,
        mismatching_bytes=max(found.get("mismatching_bytes", 0), wrong),
    )


def totals(layers: list[LayerRecord]) -> dict[str, Any]:
    """Sums over layers; cycle sums are None when any layer has none."""
    measured = [layer.cycles for layer in layers if layer.cycles is not None]
    cycles = sum(measured) if layers and len(measured) == len(layers) else None
    least = sum(layer.roofline_cycles for layer in layers)
    return {
        "layers": len(layers),
        "cycles": cycles,
        "macs": sum(layer.macs for layer in layers),
        "macs_gated": sum(layer.macs_gated for layer in layers),
        "stalls": {s: sum(layer.stalls[s] for layer in layers if layer.stalls) for s in STALLS}
        if cycles
        else None,
        "roofline_cycles": least,
        "efficiency": round(least / cycles, 4) if cycles else None,
        "mismatching_bytes": sum(layer.mismatching_bytes for layer in layers),
    }


def write_asked(args: argparse.Namespace, layers: list[LayerRecord], **more: Any) -> None:
    """Write the report that ``args`` ask for, if any, and say so; ``more`` as ``write_report``."""
    if args.report:
        simulator = "golden" if args.golden else args.sim
        write_report(args.report, args.device, simulator, layers, **more)
        print(f"report: {args.report}")


def write_report(
    path: Path, device: Variant, simulator: str, layers: list[LayerRecord], **more: Any
) -> None:
    """Write the report; ``more`` goes into totals."""
    content = {
        **device.facts,
        "ahb_width": device.config.ahb_width,
        "simulator": simulator,
        "layers": [dataclasses.asdict(layer) for layer in layers],
        "totals": {**totals(layers), **more},
        "counts": COUNTS,
    }
    write_json(path, content)
