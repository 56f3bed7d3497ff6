# SPDX-License-Identifier: Apache-2.0
"""Samples the functional coverage model with cocotb-coverage; files of bins, and their merge.

The points and crosses of ``model`` become those of the library, under ``openkpu``. One XML file per
simulation; ``merge`` adds the files of many.
"""

import ast
import contextlib
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

from cocotb_coverage.coverage import CoverCross, CoverPoint, coverage_db, merge_coverage

from openkpu_tb.coverage.model import Bin, Cross, crosses

TOP = "openkpu"
Hits = dict[str, dict[Bin, int]]  # cross -> bin -> how often


class BinsError(ValueError):
    """A file of bins that is not of this model, or none at all."""


def _sampler(cross: Cross) -> Callable[..., None]:
    """A function of the cross's values, one argument per point, that samples them."""

    def sample(*_values: str) -> None: ...

    names = [f"{TOP}.{cross.name}.{point}" for point in cross.points]
    every: list[CoverPoint | CoverCross] = [
        CoverPoint(name, xf=lambda *values, at=at: values[at], bins=list(values))
        for at, (name, values) in enumerate(zip(names, cross.points.values(), strict=True))
    ]
    every.append(
        CoverCross(f"{TOP}.{cross.name}.cross", items=names, ign_bins=sorted(cross.excluded))
    )
    function: Callable[..., None] = sample
    for item in reversed(every):  # the outermost is sampled first: points, then the cross
        function = item(function)
    return function


class Sampler:
    """All crosses of the model in this process."""

    def __init__(self) -> None:
        self._sample = {cross.name: _sampler(cross) for cross in crosses()}

    def __call__(self, cross: str, bin: Bin) -> None:
        """Count a bin; what is not in the model (an excluded or unknown value) counts nothing."""
        self._sample[cross](*bin)

    def save(self, path: Path) -> None:
        """Write the file of bins."""
        coverage_db.export_to_xml(str(path))


def read_bins(path: Path) -> Hits:
    """Counts of every bin in a file; BinsError when they are not the model's."""
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        raise BinsError(f"{path.name}: not a file of bins: {error}") from None
    found: Hits = {}
    for cross in crosses():
        items = root.findall(f"./{TOP}/{cross.name}/cross/*")
        counts = [(i.get("bin"), i.get("hits")) for i in items]
        found[cross.name] = {ast.literal_eval(b): int(n) for b, n in counts if b and n}
        if list(found[cross.name]) != cross.bins:
            raise BinsError(f"{path.name}: its bins of {cross.name} are not those of the model")
    return found


def merge(paths: Sequence[Path], target: Path) -> Hits:
    """Add the files of many simulations; the sum is written to ``target`` too.

    BinsError when there is none, or one of another model.
    """
    if not paths:
        raise BinsError("no simulation has left functional coverage")
    for path in paths:
        read_bins(path)
    with open(os.devnull, "w") as silent, contextlib.redirect_stdout(silent):
        merge_coverage(lambda _: None, str(target), *map(str, paths))
    return read_bins(target)


def missing(hits: dict[Bin, int]) -> Iterable[Bin]:
    """Bins that were never hit."""
    return (bin for bin, count in hits.items() if not count)
