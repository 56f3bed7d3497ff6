# SPDX-License-Identifier: Apache-2.0
"""Mutant schemata: which mutations are drawn, and sources that hold all of them at once.

In a mutated file each place is a choice on the number of a mutant, which every mutated module reads
from the plusarg ``mutant`` when the simulation starts; number 0 is the original. A module that
holds the chosen mutant says so, so that a simulation without it cannot pass for a survivor.
"""

import hashlib
import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from openkpu_tools.mutation.mutate_places import LOGIC, Mutation

REGISTER = "mutant_number"
MOST = 65535  # numbers that the register takes


def order(
    mutations: Sequence[Mutation], seed: int, wanted: Sequence[str] = LOGIC
) -> list[Mutation]:
    """The mutations of a module as they are drawn: the kinds in turn, each in random order.

    More of them are wanted: those drawn before stay, others are added.
    """
    name = mutations[0].module if mutations else ""
    generator = random.Random(f"{seed} {name}")
    kinds = list(wanted)
    generator.shuffle(kinds)
    piles = {
        kind: [m for m in mutations if kind in m.kinds and (kind == m.kind or m.kind not in kinds)]
        for kind in kinds
    }
    for pile in piles.values():
        generator.shuffle(pile)
    drawn = []
    while any(piles.values()):
        drawn += [piles[kind].pop() for kind in kinds if piles[kind]]
    return drawn


def draw_mutations(
    modules: Mapping[str, Sequence[Mutation]], count: int, seed: int, wanted: Sequence[str] = LOGIC
) -> list[Mutation]:
    """``count`` mutations of kinds ``wanted``: of each module as many, as far as it has them."""
    orders = {name: order(found, seed, wanted) for name, found in modules.items()}
    names = sorted(orders)
    random.Random(seed).shuffle(names)  # who gets what does not divide evenly
    taken = dict.fromkeys(names, 0)
    left = min(count, sum(map(len, orders.values())))
    while left:
        for name in names:
            if left and taken[name] < len(orders[name]):
                taken[name] += 1
                left -= 1
    drawn = [m for name in names for m in orders[name][: taken[name]]]
    return sorted(drawn, key=lambda m: (m.file, m.start, m.end, m.after))


def _edits(mutation: Mutation) -> Sequence[tuple[int, int, str]]:
    return mutation.edits or ((mutation.start, mutation.end, mutation.after),)


def schemata(data: bytes, numbered: Iterable[tuple[int, Mutation]]) -> bytes:
    """The file with all of these mutations, each chosen by its number."""
    chosen = sorted(numbered, key=lambda pair: (pair[1].start, -pair[1].end, pair[0]))
    if any(pair[0] > MOST or pair[0] < 1 for pair in chosen):
        raise ValueError(f"mutants are numbered from 1 to {MOST}")
    places: dict[tuple[int, int], list[tuple[int, Mutation, str]]] = {}
    for number, mutation in chosen:
        for start, end, after in _edits(mutation):
            places.setdefault((start, end), []).append((number, mutation, after))
    declared = dict.fromkeys(m.declares for _, m in chosen if m.declares)
    for at, _ in declared:
        places.setdefault((at, at), [])
    ranges = sorted(places, key=lambda place: (place[0], -place[1]))

    def render(start: int, end: int, at: int) -> tuple[bytes, int]:
        """Bytes from start to end, with the places from ranges[at] on; the next place."""
        parts, here = [], start
        while at < len(ranges) and ranges[at][0] < end:
            first, last = place = ranges[at]
            if last > end:
                raise ValueError("two places overlap")
            inside, at = render(first, last, at + 1)
            for number, mutation, after in places[place]:
                inside = _choice(number, mutation, after, inside)
            inside += b"".join(text.encode() for at, text in declared if (at, at) == place)
            parts += [data[here:first], inside]
            here = last
        return b"".join([*parts, data[here:end]]), at

    head = _header_end(data)
    body = render(head, len(data), 0)[0]
    return data[:head] + _selector(chosen).encode() + body


def _choice(number: int, mutation: Mutation, after: str, inside: bytes) -> bytes:
    which = f"{REGISTER} == 16'd{number}".encode()
    if mutation.statement:
        return b"begin if (!(" + which + b")) begin " + inside + b" end end"
    return b"(" + which + b" ? " + after.encode() + b" : " + inside + b")"


def _selector(chosen: Sequence[tuple[int, Mutation]]) -> str:
    """The register with the number, and the word that this module holds the mutant."""
    numbers = [number for number, _ in chosen]
    held = " || ".join(f"{REGISTER} == 16'd{number}" for number in sorted(numbers))
    return f"""
  reg [15:0] {REGISTER};
  initial begin
    if (!$value$plusargs("mutant=%d", {REGISTER})) {REGISTER} = 16'd0;
    if ({held}) begin
      $display("MUTANT %0d is in %m", {REGISTER});
      $fflush;
    end
  end
"""


def _header_end(data: bytes) -> int:
    """Behind the semicolon of the module's header."""
    at, depth = data.index(b"\nmodule ") + 1, 0
    while True:
        if data[at : at + 2] == b"//":
            at = data.index(b"\n", at)
        elif data[at : at + 2] == b"/*":
            at = data.index(b"*/", at)
        elif data[at : at + 1] == b";" and not depth:
            return at + 1
        depth += {b"(": 1, b")": -1}.get(data[at : at + 1], 0)
        at += 1


def write_mutants(root: Path, folder: Path, mutants: Sequence[Mutation]) -> Path:
    """Mutated copies of the files that hold them, numbered from 1 in this order; their folder.

    The folder is ``folder``/<hash of all of it>, laid out like ``root``.
    """
    files: dict[str, list[tuple[int, Mutation]]] = {}
    for number, mutation in enumerate(mutants, 1):
        files.setdefault(mutation.file, []).append((number, mutation))
    made = {name: schemata((root / name).read_bytes(), own) for name, own in files.items()}
    digest = hashlib.sha256()
    for name, data in sorted(made.items()):
        digest.update(name.encode() + b"\0" + data)
    place = folder / digest.hexdigest()[:12]
    for name, data in made.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_bytes(data)
    return place
