# SPDX-License-Identifier: Apache-2.0
"""Rows of tb_probe as arrays: one value a cycle and signal."""

from pathlib import Path

import numpy as np
import numpy.typing as npt

from openkpu_tb.core.backdoor import Backdoor

DUMP_TRACE = 8
# name -> width, from bit 0 of a row on; tb_probe.v packs them in this order
FIELDS = {
    **dict.fromkeys(("reset", "flush", "busy", "start", "rr_start", "pw_start", "run_start"), 1),
    **dict.fromkeys(("layer_done", "inf_done", "inf_next", "irq", "issued"), 1),
    # grants of the AI RAM: tile fill, write-back, pixel writer, result reader, host
    **dict.fromkeys(("fill", "write_back", "pixel_write", "result_read", "host_access"), 1),
    # words taken out of the FIFOs, put into them
    **dict.fromkeys(("list_out", "bias_out", "weight_out", "pixel_out"), 1),
    **dict.fromkeys(("list_in", "bias_in", "weight_in", "pixel_in"), 1),
    # the bus: a beat ended well, it is (was) a write, data phase, address phase
    **dict.fromkeys(("beat", "write", "data_phase", "address_phase"), 1),
    **dict.fromkeys(("boundary", "wb_fifo_full", "weight_full", "bias_full", "pixel_full"), 1),
    **dict.fromkeys(("fc_reached", "npix_taken", "again", "keep", "pw_busy", "rr_busy"), 1),
    "_unused": 12,
    "layer": 8,
    "mode": 2,
    "_unused2": 6,
    "inf_left": 16,
    "haddr": 32,
    "beat_addr": 32,
    "pix_adr": 32,
    "npix_adr": 32,
    # row of the AI RAM that is read, written in this cycle (with one of the grants)
    "read_row": 16,
    "write_row": 16,
}
# what a time line shows -> the signal; "write" counts with a beat
UNITS = {
    "list read": "list_in",
    "weights read": "weight_in",
    "biases read": "bias_in",
    "pixels read": "pixel_in",
    "pixels to AI RAM": "pixel_write",
    "tile fill": "fill",
    "MAC array": "issued",
    "write-back": "write_back",
    "result written": "write",
}
Values = npt.NDArray[np.int64]


class Trace:
    """A recorded window; ``trace.issued`` is an array with a value for every cycle."""

    def __init__(self, rows: list[int]) -> None:
        self.rows = rows
        self._fields: dict[str, Values] = {}

    def __len__(self) -> int:
        return len(self.rows)

    def __getattr__(self, name: str) -> Values:
        if name not in FIELDS:
            raise AttributeError(name)
        if name not in self._fields:
            names = list(FIELDS)
            low = sum(FIELDS[n] for n in names[: names.index(name)])
            mask = (1 << FIELDS[name]) - 1
            self._fields[name] = np.array([row >> low & mask for row in self.rows], dtype=np.int64)
        return self._fields[name]

    def at(self, name: str) -> Values:
        """Cycles in which a signal is high."""
        return np.nonzero(getattr(self, name))[0]

    def beats(self, low: int, high: int, write: int = 0) -> Values:
        """Cycles of the beats with an address in low .. high - 1."""
        hit = (self.beat == 1) & (self.write == write)
        return np.nonzero(hit & (self.beat_addr >= low) & (self.beat_addr < high))[0]

    def save(self, path: Path) -> None:
        """Keep the rows for another process."""
        path.write_text("\n".join(f"{row:x}" for row in self.rows))

    @classmethod
    def load(cls, path: Path) -> "Trace":
        """What ``save`` wrote."""
        return cls([int(line, 16) for line in path.read_text().split()])


async def read_trace(back: Backdoor) -> Trace:
    """All rows since ``trace_on`` was set; unknown bits read as 0."""
    count = int(back.tb.trace_count.value)
    if not count:
        raise AssertionError("nothing was traced: is the bench built with PROBE=1?")
    await back.command(DUMP_TRACE, 0, count - 1)
    # one simulator puts comments with addresses between the rows
    lines = Path("trace_out.hex").read_text().lower().splitlines()
    digits = [line.strip() for line in lines if line and not line.startswith(("//", "@"))]
    table = str.maketrans("xz", "00")
    return Trace([int(line.translate(table), 16) for line in digits[:count]])
