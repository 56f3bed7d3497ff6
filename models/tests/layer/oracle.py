# SPDX-License-Identifier: Apache-2.0
"""A slow second opinion: docs/kpu.md 1.2-1.5 in Python integers, no numpy, no shortcut.

It shares no code with the golden model.  Extensions as documented: signed pixels are gated, signed
outputs clamp to signed bytes, a fully connected layer is one long window; alu and v wrap at 36
bits.
"""

from __future__ import annotations

POOLS = {  # code: (filter, stride, rule)
    0: (1, 1, "first"),
    1: (2, 2, "max"),
    2: (2, 2, "mean"),
    3: (4, 4, "max"),
    4: (4, 4, "mean"),
    5: (2, 2, "first"),
    6: (2, 2, "second"),
    7: (4, 4, "first"),
    8: (2, 1, "mean"),
    9: (2, 1, "max"),
}


def signed(value: int, bits: int) -> int:
    """Two's complement value of the low bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> (bits - 1) else value


def carry_shift(value: int, s: int, rounding: str = "nncase") -> int:
    """docs/kpu.md 1.2 (nncase), 1.3 (v01, trunc)."""
    if s == 0:
        return value
    whole, frac, half = value >> s, value & ((1 << s) - 1), 1 << (s - 1)
    sign = -1 if value < 0 else 1
    if rounding == "trunc" or frac < half:
        return whole
    if rounding == "v01" or frac > half:
        return whole + sign
    return whole + sign if whole % 2 else whole


def activate(v: int, act: list[tuple[int, int, int, int]], rounding: str, is_signed: bool) -> int:
    """One value through 16 (start, mul, shift, add byte)."""
    chosen = 0
    for i in range(15, -1, -1):
        start = act[i][0]
        if v > start or (rounding == "v01" and v == start):
            chosen = i
            break
    start, mul, shift, add = act[chosen]
    z = carry_shift((v - start) * mul, shift, rounding)
    if is_signed:
        return max(-128, min(127, z + signed(add, 8)))
    return max(0, min(255, z + add))


def run(layer: dict, x: list, weights: list[int], bn: list, act: list, rounding: str) -> dict:
    """One layer.

    layer: c, h, w, o, kernel, pool, depthwise, fc, signed_in, signed_out, pad, arg_x, shr_x, arg_w,
    shr_w, arg_add.  x[c][y][x] bytes; weights in memory order; bn (mul, shift, add) per channel.
    layer.dilation (default 1): pixels between the taps of a window (docs/kpu.md 1.16).
    Returns y as nested lists of bytes, macs and macs_gated.
    """
    c_in, height, width, k = layer["c"], layer["h"], layer["w"], layer["kernel"]
    apart = layer.get("dilation", 1)
    _, stride, rule = POOLS[layer["pool"]]
    picks = layer["pool"] in (5, 6, 7)
    column = 1 if rule == "second" else 0
    macs = gated = 0

    def pixel(c: int, y: int, x_: int) -> int:
        inside = 0 <= y < height and 0 <= x_ < width
        p = x[c][y][x_] if inside else layer["pad"]
        return max(0, signed(p, 8)) if layer["signed_in"] else p

    def window(o: int, y: int, x_: int) -> list[tuple[int, int]]:
        """(pixel, weight) pairs of one output."""
        if layer["fc"]:
            places = [(c, a, b) for c in range(c_in) for a in range(height) for b in range(width)]
            size = len(places)
            return [(pixel(*at), weights[o * size + i]) for i, at in enumerate(places)]
        pairs = []
        channels = [o] if layer["depthwise"] else range(c_in)
        for n, c in enumerate(channels):
            for ky in range(k):
                for kx in range(k):
                    index = ((o * len(channels) + n) * k + ky) * k + kx
                    at = y + (ky - k // 2) * apart, x_ + (kx - k // 2) * apart
                    pairs.append((pixel(c, *at), weights[index]))
        return pairs

    rows, columns = (1, 1) if layer["fc"] else (height, width)
    a = []
    for o in range(layer["o"]):
        plane = []
        for y in range(rows):
            line = []
            for x_ in range(columns):
                pairs = window(o, y, x_)
                s = sum(p * q for p, q in pairs)
                sx = sum(p for p, _ in pairs)
                sw = sum(q for _, q in pairs)
                n = 1 if layer["depthwise"] or layer["fc"] else c_in
                alu = s + ((layer["arg_x"] * sx) >> layer["shr_x"])
                alu += ((layer["arg_w"] * sw) >> layer["shr_w"]) + layer["arg_add"] * n
                alu = signed(alu, 36)
                mul, shift, add = bn[o]
                v = signed(((alu * mul) >> shift) + add, 36)
                line.append(activate(v, act, rounding, layer["signed_out"]))
                # windows that are not whole are dropped; a pick uses one pixel of each window
                kept = y // stride < rows // stride and x_ // stride < columns // stride
                if picks:
                    kept = kept and y % stride == 0 and x_ % stride == column
                if kept:
                    macs += len(pairs)
                    gated += sum(p <= 0 for p, _ in pairs)
            plane.append(line)
        a.append(plane)
    y = [[[v & 0xFF for v in line] for line in pool(plane, layer["pool"])] for plane in a]
    return {"y": y, "macs": macs, "macs_gated": gated}


def pool(a: list[list[int]], code: int) -> list[list[int]]:
    """docs/kpu.md 1.5 on one plane."""
    size, stride, rule = POOLS[code]
    height, width = len(a), len(a[0])
    out = []
    for oy in range(height // stride):
        line = []
        for ox in range(width // stride):
            cells = [
                a[min(oy * stride + dy, height - 1)][min(ox * stride + dx, width - 1)]
                for dy in range(size)
                for dx in range(size)
            ]
            if rule == "first":
                line.append(cells[0])
            elif rule == "second":
                line.append(cells[1])
            elif rule == "max":
                line.append(max(cells))
            else:
                line.append(sum(cells) // len(cells))  # floor: the arithmetic shift
        out.append(line)
    return out
