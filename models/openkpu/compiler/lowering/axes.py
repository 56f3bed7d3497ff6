# SPDX-License-Identifier: Apache-2.0
"""One axis of a convolution: which pixel of the map each tap of each output reads, and which of
them the window of the device sees from a place.  ``lower_conv`` says what is made of it."""

from __future__ import annotations

import dataclasses

from openkpu.compiler.form.graph import Conv
from openkpu.compiler.lowering.device import Geometry


@dataclasses.dataclass(frozen=True)
class Axis:
    """One axis of a convolution, as its map lies."""

    taps: int
    dilation: int
    stride: int
    top: int  # pixels in front of the tensor that the first window covers; negative: skipped
    size: int  # of the tensor
    start: int  # first pixel of the map that belongs to it
    whole: int  # of the map
    outputs: int

    @classmethod
    def of(cls, node: Conv, axis: int, geometry: Geometry, whole: int) -> Axis:
        """Of axis 0 (lines) or 1; turned around where the map is."""
        step, taps = geometry.step[axis], node.kernel[axis]
        stride, dilation, top = node.strides[axis], node.dilation[axis], node.pads[axis]
        outputs = node.out_size(*geometry.size)[axis]
        size, stride, top = (geometry.size[axis] - 1) * step + 1, stride * step, top * step
        if geometry.turned[axis]:
            top = (outputs - 1) * stride + (taps - 1) * dilation + 1 - size - top
        return cls(taps, dilation, stride, top, size, geometry.start[axis], whole, outputs)

    @property
    def reads(self) -> tuple[int, int]:
        """First and last pixel that a tap reads, from the tensor's first one."""
        last = (self.outputs - 1) * self.stride + (self.taps - 1) * self.dilation - self.top
        return -self.top, last

    @property
    def outside(self) -> bool:
        """Does a tap read outside of the tensor where the map continues?"""
        first, last = self.reads
        return (first < 0 and self.start > 0) or (
            last >= self.size and self.start + self.size < self.whole
        )

    def place(self, anchor: int) -> int:
        """Pixel of the map at which output 0 is computed."""
        return self.start + anchor

    def anchors(self) -> list[int]:
        """Those whose outputs all lie on the map."""
        span = (self.taps - 1) * self.dilation
        last = (self.outputs - 1) * self.stride
        wanted = range(-self.top - 1, max(span - self.top, 0) + 2)
        return [a for a in wanted if self.place(a) >= 0 and self.place(a) + last < self.whole]

    def cover(self, anchor: int, reach: int, far: int = 1) -> dict[int, dict[int, int]] | None:
        """Copies that bring every tap into reach: moved by t, {t: {tap of the device: k}}.

        ``reach``: taps of the device on each side; ``far``: pixels from one to the next.
        """
        first = self.place(anchor)
        last = first + (self.outputs - 1) * self.stride
        left = {k * self.dilation - self.top - anchor: k for k in range(self.taps)}
        found: dict[int, dict[int, int]] = {}

        def sees(t: int, at: int) -> bool:
            """Does the device pad exactly the positions outside of the map?"""
            if at < 0 and first < far:
                return t <= 0
            if at > 0 and last >= self.whole - far:
                return t >= 0
            return True

        while left:
            least = min(left)
            options = []
            for at in range(-reach, reach + 1):
                t = least - at * far
                seen = {n: t + n * far for n in range(-reach, reach + 1) if sees(t, n)}
                taps = {n: left[e] for n, e in seen.items() if e in left}
                if at in taps and t not in found:
                    options.append((len(taps), -abs(t), t, taps))
            if not options:
                return None
            _, _, t, taps = max(options, key=lambda o: o[:3])
            found[t] = taps
            for at in taps:
                del left[t + at * far]
        return found
