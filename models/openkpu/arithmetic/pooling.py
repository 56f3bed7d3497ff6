# SPDX-License-Identifier: Apache-2.0
"""The ten pools of the KPU on activated maps (docs/kpu.md 1.5), unsigned and signed."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BYPASS, MAX_2_S2, MEAN_2_S2, MAX_4_S4, MEAN_4_S4 = 0, 1, 2, 3, 4
LEFT_TOP_2_S2, RIGHT_TOP_2_S2, LEFT_TOP_4_S4, MEAN_2_S1, MAX_2_S1 = 5, 6, 7, 8, 9

POOL_STRIDE = {0: 1, 1: 2, 2: 2, 3: 4, 4: 4, 5: 2, 6: 2, 7: 4, 8: 1, 9: 1}
# Pools that only pick one pixel of each window: (column offset); the row offset is always 0.
PICKS = {LEFT_TOP_2_S2: 0, RIGHT_TOP_2_S2: 1, LEFT_TOP_4_S4: 0}


def pooled_size(pool: int, height: int, width: int) -> tuple[int, int]:
    """(oh, ow): integer division by the stride; 0 when no window fits."""
    stride = POOL_STRIDE[pool]
    return height // stride, width // stride


def pool_map(pool: int, a: npt.NDArray) -> npt.NDArray:
    """Pooled map of ``a`` (O, H, W), uint8 or int8; result (O, oh, ow) of the same dtype.

    Means divide by an arithmetic shift: truncation for unsigned bytes, floor for signed ones.
    Picking pools (5, 6, 7) are here for completeness; ``golden`` computes only the kept pixels.
    """
    height, width = a.shape[1:]
    oh, ow = pooled_size(pool, height, width)
    stride = POOL_STRIDE[pool]
    if pool == BYPASS:
        return a
    if pool in PICKS:
        return a[:, : oh * stride : stride, PICKS[pool] : ow * stride : stride]
    if pool in (MEAN_2_S1, MAX_2_S1):
        # the window reaches one row down and one column right; the edge is replicated
        a = np.pad(a, ((0, 0), (0, 1), (0, 1)), mode="edge")
        windows = [a[:, dy : dy + oh, dx : dx + ow] for dy in (0, 1) for dx in (0, 1)]
    else:
        kept = a[:, : oh * stride, : ow * stride]
        windows = [kept[:, dy::stride, dx::stride] for dy in range(stride) for dx in range(stride)]
    if pool in (MAX_2_S2, MAX_4_S4, MAX_2_S1):
        best = windows[0].copy()
        for window in windows[1:]:
            np.maximum(best, window, out=best)
        return best
    total = windows[0].astype(np.int16)  # 16 * 255 = 4080 fits
    for window in windows[1:]:
        total += window
    return (total >> (4 if stride == 4 else 2)).astype(a.dtype)
