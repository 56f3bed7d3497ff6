# SPDX-License-Identifier: Apache-2.0
"""The table of a model's layers: a row each while it runs, sums at the end."""

import dataclasses
from typing import Any

from openkpu.configs import Config
from openkpu.kmodel.program import KpuLayer
from openkpu.layer.argument import LIST_BYTES
from openkpu.prediction.roofline import cycles_beside, layer_bytes, roofline_cycles
from openkpu_tools import report
from openkpu_tools.commands.end_to_end import EndToEnd, unmeasured

HEAD = " ".join(
    [f"{'layer':<6} {'what':<9} {'map':<27} {'cycles':>8} {'effic.':>7}"]
    + [f"{name:>7}" for name in report.STALLS]
    + [f"{'gated':>7}"]
)


@dataclasses.dataclass
class Layer:
    """A KPU layer of the whole model, numbered through."""

    index: int
    op: KpuLayer
    traffic: dict[str, bool]  # what has to cross the bus end to end, however layers are started

    @property
    def what(self) -> str:
        """3x3, 1x1 dw pool 1 ..."""
        arg = self.op.arg
        if arg.pool_task:
            return self.op.title or "pool task"
        kind = f"{arg.kernel}x{arg.kernel}" + (" dw" if arg.depthwise else "")
        return kind + (f" p{arg.pool_type}" if arg.pool_type else "")


class Table:
    """Records of the layers, and the lines that show them."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.records: list[report.LayerRecord] = []
        self.beside = 0  # cycles of pooling tasks, in which the array rests
        self.table_bytes = 0  # weights and tables of all layers
        self.bus_bytes = 0  # ... and layer words, the model's input and result
        self.list_bytes = 0  # layer words
        self.moved: int | None = None  # bytes of maps that the device moved, if a simulator ran
        self.moved_by_host = 0  # and the host, besides the layers
        self.end: EndToEnd | str = "no simulator ran"  # or why there is none
        self.heading: str | None = HEAD  # goes before the first row

    def add(self, prefix: str, layer: Layer, batch: int, event: dict[str, Any]) -> str:
        """Take a finished layer; its row."""
        arg = layer.op.arg
        record = report.layer_record(
            self.config,
            f"{prefix}L{layer.index:02d}" + (f".{batch}" if batch else ""),
            arg,
            event,
            eight_bit=layer.op.eight_bit,
        )
        self.records.append(record)
        self.beside += cycles_beside(self.config, arg)
        self.table_bytes += layer_bytes(arg, eight_bit=layer.op.eight_bit)
        self.bus_bytes += layer_bytes(arg, **layer.traffic)
        self.list_bytes += LIST_BYTES
        heading, self.heading = self.heading, None
        return (f"\n{heading}\n" if heading else "") + row(record, layer)

    def figures(self) -> dict[str, Any]:
        """Rooflines and efficiencies of it all: multiplications and bytes are summed first."""
        sums = report.totals(self.records)
        total = self.table_bytes + (self.moved or 0)
        least = roofline_cycles(self.config, sums["macs"], total, self.beside)
        share = round(least / sums["cycles"], 4) if sums["cycles"] else None
        end = unmeasured(self.end) if isinstance(self.end, str) else self.end.report(self.whole)
        return {"model_roofline_cycles": least, "model_efficiency": share, "end_to_end": end}

    @property
    def whole(self) -> int:
        """Roofline from end to end: with the maps that this way of running moves."""
        total = self.bus_bytes
        if self.moved is not None:
            total = self.table_bytes + self.list_bytes + self.moved + self.moved_by_host
        return roofline_cycles(self.config, sum(r.macs for r in self.records), total, self.beside)

    def summary(self) -> list[str]:
        """Lines under the table."""
        sums, own = report.totals(self.records), self.figures()
        gated = 100 * sums["macs_gated"] / max(1, sums["macs"])
        lines = [f"multiplications needed  {sums['macs']:12d}   gated (pixel <= 0) {gated:.1f} %"]
        least = own["model_roofline_cycles"]
        if sums["cycles"] is None:
            lines.append(f"roofline of the layers  {least:12d}")
        else:
            causes = ", ".join(
                f"{name} {100 * value / sums['cycles']:.1f} %"
                for name, value in sums["stalls"].items()
            )
            lines.append("layers alone: each from its start to the end of its work, summed")
            lines.append(f"  cycles                {sums['cycles']:12d}   stalls: {causes}")
            lines.append(
                f"  roofline              {least:12d}   multiplications and reads of pooling tasks,"
                " or bytes of parameters and of maps that the device moves"
            )
            lines.append(f"  efficiency            {100 * own['model_efficiency']:12.1f} %")
            if isinstance(self.end, str):
                lines.append(f"end to end: not measured, {self.end}")
            else:
                lines += self.end.lines(self.whole)
        return lines


def row(record: report.LayerRecord, layer: Layer) -> str:
    """A row under ``HEAD``: stalls as shares of the layer's cycles."""
    maps = " -> ".join("x".join(map(str, s)) for s in (record.in_shape, record.out_shape))
    cells = [f"{record.name:<6} {layer.what:<9} {maps:<27}"]
    if record.cycles is None or record.efficiency is None or record.stalls is None:
        cells.append(f"{'-':>8} {'-':>7} " + " ".join(f"{'-':>7}" for _ in report.STALLS))
    else:
        cells.append(f"{record.cycles:>8} {100 * record.efficiency:6.1f}%")
        shares = (100 * record.stalls[s] / max(1, record.cycles) for s in report.STALLS)
        cells.append(" ".join(f"{share:6.1f}%" for share in shares))
    cells.append(f"{100 * record.macs_gated / max(1, record.macs):6.1f}%")
    if record.cycles is not None:  # else it was compared with nothing
        wrong = record.mismatching_bytes
        cells.append("ok" if not wrong else f"{wrong} differ")
    return " ".join(cells)
