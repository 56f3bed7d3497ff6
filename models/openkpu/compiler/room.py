# SPDX-License-Identifier: Apache-2.0
"""The least AI RAM that holds a network which does not fit (docs/compiler.md 7).

What bands need is known when they are planned, and layers for a larger AI RAM may be others: so the
network is compiled for larger ones.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

from openkpu.compiler.build import build_program
from openkpu.compiler.errors import CompileError, RoomError
from openkpu.compiler.form.graph import Graph
from openkpu.compiler.program import Program
from openkpu.configs import Config
from openkpu.layer.layout import AI_RAM_ROWS

SECONDS = 20.0  # of a search; then the fewest rows that were found
STEP = 4  # a size that is too small is followed by one that is larger by a part of so many


def fitting_program(graph: Graph, config: Config, one_list: bool = False) -> Program:
    """As ``build_program``; where maps do not fit, the error has the least ``ai_ram_rows``."""
    try:
        return build_program(graph, config, one_list)
    except RoomError as error:
        raise with_least(error, graph, config, one_list) from None


def with_least(error: RoomError, graph: Graph, config: Config, one_list: bool) -> CompileError:
    """The error with the fewest rows that hold the network, or that none do."""

    def fits(rows: int) -> bool:
        try:
            build_program(graph, dataclasses.replace(config, ai_ram_rows=rows), one_list)
        except RoomError:
            return False
        except CompileError:  # another fault: none of the rows
            return True
        return True

    if error.have >= AI_RAM_ROWS or not fits(AI_RAM_ROWS):
        return error.never(AI_RAM_ROWS)
    end = time.process_time() + SECONDS
    return error.least(*least_rows(fits, error.have, error.need, lambda: time.process_time() > end))


def least_rows(
    fits: Callable[[int], bool],
    few: int,
    guess: int,
    late: Callable[[], bool] = lambda: False,
    rows: int = AI_RAM_ROWS,
) -> tuple[int, int]:
    """(the fewest rows that fit, the most that do not), with one between them where ``late`` is
    true before they are found.

    ``few`` do not fit, ``rows`` do; ``guess``: rows that are tried first.
    """
    tried = max(guess, few + 1)
    while tried < rows and not late():
        if fits(tried):
            rows = tried
            break
        few, tried = tried, tried + max(tried // STEP, 1)
    middle = rows - 1  # the guess is often right
    while rows - few > 1 and not late():
        if fits(middle):
            rows = middle
        else:
            few = middle
        middle = (few + rows) // 2
    return rows, few
