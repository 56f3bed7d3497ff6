# SPDX-License-Identifier: Apache-2.0
"""A list whose maps do not fit the AI RAM becomes one whose maps do."""

from __future__ import annotations

import bisect
import dataclasses
import itertools

from openkpu.compiler.bands import split
from openkpu.compiler.bands.chains import BandPlan, Chain
from openkpu.compiler.bands.emit import Emitter
from openkpu.compiler.bands.graph import Layers
from openkpu.compiler.bands.plan import Planner, tall
from openkpu.compiler.bands.ports import Piece
from openkpu.compiler.lowering import place
from openkpu.compiler.lowering.device import Spec
from openkpu.compiler.lowering.lower import Unable
from openkpu.configs import Config
from openkpu.network.network import MOST_LAYERS

ATTEMPTS = 60  # plans that are tried, each with what chains of the one before needed besides
ROOM = MOST_LAYERS - 23  # layers of a list that is planned as one of several
LEAST = 8  # rows more at least
FINEST = 7  # counts of bands passed over, at most about
# of the AI RAM's rows, for a plan: what a chain needs is an estimate, and a plan for fewer rows
# may be one that can be placed
SHARES = (1, 31 / 32, 15 / 16, 7 / 8, 13 / 16, 3 / 4, 5 / 8, 1 / 2)


class TooLarge(Unable):
    """A layer whose maps do not fit, in bands neither; ``need``: rows that it takes at least, as
    estimated; ``tight``: no plan was found, though each layer by itself would fit."""

    def __init__(self, node: str, text: str, need: int = 0, *, tight: bool = False) -> None:
        super().__init__(text)
        self.node, self.need, self.tight = node, need, tight


class TooLong(TooLarge):
    """Layers for more than one list; ``lists`` has for each node the list that it ends in."""

    def __init__(self, specs: list[Spec], ends: list[tuple[int, int]], config: Config) -> None:
        """``ends``: (layers of ``specs``, layers made of them) by places where a list may end."""
        self.lists: dict[str, int] = {}
        # As few as can be, and as even: a list copies what it hands on by layers besides.
        least = _numbers(ends, ROOM)[-1]
        room = bisect.bisect_left(range(ROOM), -least, key=lambda room: -_numbers(ends, room)[-1])
        firsts = [0, *(behind for behind, _ in ends)]
        for first, (behind, _), number in zip(firsts, ends, _numbers(ends, room), strict=False):
            self.lists |= dict.fromkeys((s.node for s in specs[first:behind]), number)
        super().__init__(
            specs[-1].node,
            f"{ends[-1][1]:,} layers, a task list has {MOST_LAYERS:,}: expected a configuration"
            f" with more AI RAM than {config.name}, or a smaller input",
        )


def _numbers(ends: list[tuple[int, int]], room: int) -> list[int]:
    """The list of the layers in front of each place, where a list has ``room`` layers."""
    numbers, number, begun = [], 0, 0
    for (_, before), (_, after) in itertools.pairwise([(0, 0), *ends]):
        if after - begun > room and before > begun:
            number, begun = number + 1, before
        numbers.append(number)
    return numbers


@dataclasses.dataclass
class Banded:
    """Layers that fit, and for each old layer that the host reads the lines that new ones write."""

    specs: list[Spec]
    results: dict[int, list[Piece]]
    plan: BandPlan | None = None


def fitted(specs: list[Spec], wanted: set[int], config: Config) -> Banded:
    """The layers as they are where their maps fit, else in bands; TooLarge where that is no way,
    TooLong where it needs more than one list.

    ``wanted``: layers whose output maps the host reads.
    """
    if any(map(tall, specs)):
        return _banded(specs, wanted, config)
    try:
        place.placed_rows(specs, [], config.ai_ram_rows)
    except Unable:
        return _banded(specs, wanted, config)
    if len(specs) > MOST_LAYERS:
        raise TooLong(specs, [(n, n) for n in range(1, len(specs) + 1)], config)
    whole = {n: specs[n].dst.shape for n in wanted}
    return Banded(specs, {n: [Piece(n, (0, h), 0, c)] for n, (c, h, _) in whole.items()})


def _banded(specs: list[Spec], wanted: set[int], config: Config) -> Banded:
    ordered = split.split_order(specs, wanted)
    # what only brings a map of the host's: each band brings its own lines of it
    brings = {n for n, s in ordered if s.loads and s.src == s.dst and n not in wanted}
    staged = {spec.src.buffer: spec.loads for n, spec in ordered if n in brings}
    ordered = [(n, spec) for n, spec in ordered if n not in brings]
    old = [number for number, _ in ordered]
    layers = Layers([spec for _, spec in ordered], {old.index(n) for n in wanted}, staged)
    first: TooLarge | None = None
    for share in SHARES:
        planner = Planner(layers, config, int(share * config.ai_ram_rows))
        try:
            return _planned(planner, old, wanted)
        except TooLong:
            raise
        except TooLarge as error:
            first = first or error
        if not first.tight:
            break
    assert first is not None
    raise first


def _planned(planner: Planner, old: list[int], wanted: set[int]) -> Banded:
    """The layers in bands, as a planner finds them; ``old`` has their numbers."""
    layers, config = planner.layers, planner.config
    plan: BandPlan | int = 0
    over: dict[Chain, int] = {}  # rows of chains in a plan beyond the AI RAM's
    for _ in range(ATTEMPTS):
        plan = planner.found(plan if isinstance(plan, BandPlan) else None)
        if isinstance(plan, int):
            if planner.finer > FINEST or not planner.extra:
                break
            planner.refine()
            continue
        emitter = Emitter(planner, plan)
        made = emitter.run()
        rows = place.tightest(made, config.ai_ram_rows)
        starts = [0, *emitter.ends]
        over = {}
        for chain, first, behind in zip(plan.chains, starts, emitter.ends, strict=False):
            over[chain] = place.reach(made[first:behind], rows) - config.ai_ram_rows
            if over[chain] > 0:
                planner.needs(chain, max(LEAST, min(over[chain], config.ai_ram_rows // 8)))
        if max(over.values()) > 0:
            continue
        if len(made) > MOST_LAYERS:
            behind = [chain.behind for chain in plan.chains]
            raise TooLong(layers.specs, list(zip(behind, emitter.ends, strict=True)), config)
        numbers = {id(spec): n for n, spec in enumerate(made)}
        results = {
            old[number]: [
                Piece(numbers[id(spec)], lines, channel, spec.dst.shape[0])
                for lines, spec, channel in pieces
            ]
            for number, pieces in emitter.results.items()
            if old[number] in wanted
        }
        return Banded(made, results, plan)
    raise _refusal(planner, plan if isinstance(plan, int) else -1, over)


def _refusal(planner: Planner, reached: int, over: dict[Chain, int]) -> TooLarge:
    """Which layer does not fit, how much it needs at least, and why.

    ``reached``: the first layer that no chain held, or -1; ``over``: rows that chains of the last
    plan needed beyond the available ones.
    """
    layers, have = planner.layers, planner.config.ai_ram_rows
    alone = [planner.least(n) for n in range(len(layers.specs))]
    number = max(range(len(alone)), key=lambda n: alone[n])
    tight = alone[number] <= have
    if (need := alone[number]) > have:
        why = "and a band of one line does not fit either"
        if not layers.bandable(number):
            why = "and it needs all of its input at a time"
    elif over and max(over.values()) > 0:
        chain = max(over, key=lambda c: over[c])
        number = max(range(chain.first, chain.behind), key=lambda n: alone[n])
        need, why = have + over[chain], "in bands, together with maps that wait for later layers"
    else:
        number = max(reached, 0)
        need = max(planner.least(number, waiting=True), have + 1)
        why = "in bands of one line, together with maps that wait for later layers"
    return TooLarge(layers.specs[number].node, why, need, tight=tight)
