# SPDX-License-Identifier: Apache-2.0
"""A list whose maps do not fit the AI RAM becomes one whose maps do."""

from __future__ import annotations

import dataclasses

from openkpu.compiler.bands import split
from openkpu.compiler.bands.emit import Emitter
from openkpu.compiler.bands.graph import Layers
from openkpu.compiler.bands.plan import BandPlan, Planner
from openkpu.compiler.bands.ports import Piece
from openkpu.compiler.lowering import place
from openkpu.compiler.lowering.device import Spec
from openkpu.compiler.lowering.lower import Unable
from openkpu.configs import Config
from openkpu.layer.layout import ROW_BYTES
from openkpu.network.network import MOST_LAYERS

ATTEMPTS = 60  # plans that are tried, each with what chains of the one before needed besides
LEAST = 8  # rows more at least
FINEST = 7  # counts of bands passed over, at most about


class TooLarge(Unable):
    """A layer whose maps do not fit, in bands neither."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(text)
        self.node = node


@dataclasses.dataclass
class Banded:
    """Layers that fit, and for each old layer that the host wants the lines that new ones write."""

    specs: list[Spec]
    results: dict[int, list[Piece]]
    plan: BandPlan | None = None


def fitted(specs: list[Spec], wanted: set[int], config: Config) -> Banded:
    """The layers as they are where their maps fit, else in bands; TooLarge where that is no way.

    ``wanted``: layers whose output maps the host reads.
    """
    try:
        place.placed_rows(specs, [], config.ai_ram_rows)
    except Unable:
        return _banded(specs, wanted, config)
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
    planner = Planner(layers, config, config.ai_ram_rows)
    plan: BandPlan | int = 0
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
        fits = True
        for chain, first, behind in zip(plan.chains, starts, emitter.ends, strict=False):
            over = place.reach(made[first:behind], rows) - config.ai_ram_rows
            if over > 0:
                planner.needs(chain, max(LEAST, min(over, config.ai_ram_rows // 8)))
                fits = False
        if not fits:
            continue
        if len(made) > MOST_LAYERS:
            raise TooLarge(
                made[-1].node,
                f"{len(made)} layers in bands, a task list has {MOST_LAYERS}: expected a"
                f" configuration with more AI RAM than {config.name}",
            )
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
    raise _refusal(layers, plan if isinstance(plan, int) else len(layers.specs) - 1, config)


def _refusal(layers: Layers, number: int, config: Config) -> TooLarge:
    """Which layer, how large its maps are, and what would help."""
    spec = layers.specs[number]
    maps = {p.buffer: layers.of(p).rows for p in (*layers.sources(number), spec.dst)}
    need, have = (rows * ROW_BYTES for rows in (sum(maps.values()), config.ai_ram_rows))
    why = (
        "and a band of one line does not fit either"
        if layers.bandable(number)
        else "and it needs all of its input at a time"
    )
    return TooLarge(
        spec.node,
        f"its maps take {need:,} bytes, the AI RAM of configuration {config.name} has {have:,},"
        f" {why}: expected a configuration with a larger ai_ram_rows, or a smaller input",
    )
