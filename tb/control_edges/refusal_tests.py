# SPDX-License-Identifier: Apache-2.0
"""layer_decode: every bit that a rule names is looked at."""

import random

from openkpu.layer.argument import ERROR_CODES, FIELDS
from openkpu.layer.pool_layer import pool_layer
from openkpu_tb.core.block_bench import block_test
from tb.layer_decode.bench import WINDOW, Bench, Case


@block_test(Bench)
async def fields_of_a_whole_map(bench: Bench) -> None:
    """A pool of the whole map has 0 in all other fields of word 6 (docs/kpu.md): each bit of them
    alone is BAD_POOL."""
    side = dict.fromkeys(("wgt_base", "bias_base", "first", "last", "parity"), 0)
    side |= {"eight_bit": 1, "index": 1}
    bits = 0
    for name in WINDOW[1:]:
        _, _, width, _, offset = FIELDS[f"pool_{name}"]
        for bit in range(width):
            arg = pool_layer((2, 9, 9), random.randint(1, 4))
            assert await bench.decode(Case(arg, side), 1.0, 0) == 0
            wrong = arg.replace(**{f"pool_{name}": offset + (1 << bit)})
            assert await bench.decode(Case(wrong, side), 1.0, 0) == ERROR_CODES["BAD_POOL"], name
            bits += 1
    assert bits == 28
