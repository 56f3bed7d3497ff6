# SPDX-License-Identifier: Apache-2.0
"""Networks that fit the AI RAM in bands neither: the layer, and the rows that are enough
(docs/compiler.md 7)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import pytest

from models.tests.bands.test_bands import dilated, graph_of, on
from models.tests.compiler.compiled_graphs import Maker
from openkpu import configs
from openkpu.compiler import room
from openkpu.compiler.errors import CompileError, RoomError
from openkpu.compiler.form.graph import Graph, Tensor
from openkpu.compiler.program import Program

pytestmark = pytest.mark.fixed  # the same with every seed


def fitting(graph: Graph, rows: int, name: str = "nano_fpga") -> Program:
    """The same; the error where maps do not fit has the least rows."""
    return room.fitting_program(
        graph, dataclasses.replace(configs.load_config(name), ai_ram_rows=rows)
    )


def named_rows(error: Exception) -> int:
    return int(str(error).split("ai_ram_rows of ")[1].split(" or more")[0].replace(",", ""))


def dense(m: Maker) -> list[Tensor]:
    x = m.conv(m.input(1, 2, 40, 40), 8, (3, 3))
    return [m.dense(m.move([x], (1, 8 * 1600), "reshape"), 10)]


def wide(m: Maker) -> list[Tensor]:
    return [m.conv(m.input(1, 2, 961, 961), 2, (3, 3))]


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            dense,
            # 12,800 bytes of map are 320 rows of 40 pixels; ten numbers take three more, and bands
            # of the map in front some lines of it
            r"'n2' \(Dense\): its maps take 22,016 bytes, the AI RAM of configuration nano_fpga has"
            r" 12,800, and it needs all of its input at a time: expected a configuration with"
            r" ai_ram_rows of 344 or more, not 200",
        ),
        (wide, r"a map \(2, 961, 961\), expected up to 960 pixels"),
    ],
)
def test_refused(make: Callable[[Maker], list[Tensor]], text: str) -> None:
    """The layer, its bytes, and what would help."""
    m = Maker(3)
    with pytest.raises(CompileError, match=text):
        fitting(m.done(*make(m)), 200)


def thick(m: Maker) -> list[Tensor]:
    """The middle one of three maps is too thick, though the first layers have more pixels."""
    x = m.conv(m.input(1, 4, 8, 8), 4, (3, 3))
    return [m.conv(m.conv(m.conv(x, 512, (1, 1)), 4, (1, 1)), 4, (3, 3))]


def broad(m: Maker) -> list[Tensor]:
    x = m.conv(m.input(1, 4, 6, 300), 4, (1, 1))
    return [m.conv(m.conv(x, 64, (3, 3)), 4, (1, 1))]


def averaged(m: Maker) -> list[Tensor]:
    x = m.conv(m.input(1, 4, 30, 30), 300, (1, 1))
    return [m.conv(m.pool(x, "average", (30, 30)), 4, (1, 1))]


def late(m: Maker) -> list[Tensor]:
    """Everything fits in bands but the fully connected layer at the end."""
    x = m.pool(m.conv(m.input(1, 2, 40, 40), 8, (3, 3)), "max", (2, 2), (2, 2))
    return [m.dense(m.move([m.conv(x, 8, (3, 3))], (1, 3200), "reshape"), 4)]


@pytest.mark.parametrize(
    ("make", "node", "rows"),
    # rows of what it reads and writes at least: groups of channels times rows of a line
    [
        (thick, "n1", 1 + 128),  # a line of 4 and one of 512 channels, 4 of them in a row
        (broad, "n1", 5 * 4 * 3 + 5 * 64 * 3),  # three lines of 5 rows for each channel
        (averaged, "n1", 300 + 75),  # a part of the channels of 30 lines, and their averages
        (late, "n4", 80 + 1),  # 400 rows in which four lines lie, and a row of results
        (dilated, "n0", 220),
    ],
)
def test_refusal_names_the_layer(
    make: Callable[[Maker], list[Tensor]], node: str, rows: int
) -> None:
    """On any size below, the same layer; the rows that it names are enough."""
    for there in (rows - 1, rows // 2, 16):
        m = Maker(3)
        with pytest.raises(RoomError, match=rf"'{node}'.* take .*more ai_ram_rows than {there:,}"):
            on(m.done(*make(m)), there)
    m = Maker(3)
    graph = m.done(*make(m))
    with pytest.raises(CompileError, match=rf"'{node}'.* take .*not {rows - 1:,}, or") as error:
        fitting(graph, rows - 1)
    need = named_rows(error.value)
    assert rows <= need <= rows + rows // 4, str(error.value)
    assert f"its maps take {need * 64:,} bytes" in str(error.value)
    assert on(graph, need).layers


@pytest.mark.parametrize("there", [60, 70])
def test_rows_that_are_enough(there: int) -> None:
    """Where layers need more than is estimated: the network fits these rows, and no fewer."""
    with pytest.raises(RoomError) as few:
        on(graph_of("constant_first"), there)
    with pytest.raises(CompileError) as error:
        fitting(graph_of("constant_first"), there)
    need = named_rows(error.value)
    assert few.value.need < need and on(graph_of("constant_first"), need).layers
    with pytest.raises(RoomError):
        on(graph_of("constant_first"), need - 1)


def test_no_rows_are_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is said then names no number to try; here of a device that has 300 at most."""
    monkeypatch.setattr(room, "AI_RAM_ROWS", 300)
    for rows in (200, 300):
        m = Maker(3)
        with pytest.raises(
            CompileError, match=r"'n2' .* of no device, which has up to 300 r"
        ) as no:
            fitting(m.done(*dense(m)), rows)
        assert "ai_ram_rows" not in str(no.value)


def test_words_of_a_search() -> None:
    error = RoomError("nano", 1280, 1281, "in bands", node="n1", operator="Conv", where="net")
    assert str(error.least(3120, 3119)) == (
        "net: node 'n1' (Conv): its maps take 199,680 bytes, the AI RAM of configuration nano has"
        " 81,920, in bands: expected a configuration with ai_ram_rows of 3,120 or more, not 1,280,"
        " or a smaller input"
    )
    assert "ai_ram_rows of 3,120 or more (3,000 are too few), not 1,280" in str(
        error.least(3120, 3000)
    )


@pytest.mark.parametrize("least", [1281, 1282, 2000, 4096, 32767, 32768])
@pytest.mark.parametrize("guess", [1281, 3000, 32768])
def test_search(least: int, guess: int) -> None:
    """The least number, in some tens of trials; what is known when the time is over."""
    tried: list[int] = []

    def fits(rows: int) -> bool:
        tried.append(rows)
        return rows >= least

    assert room.least_rows(fits, 1280, guess) == (least, least - 1)
    assert len(tried) <= 32
    tried.clear()
    rows, few = room.least_rows(fits, 1280, guess, lambda: len(tried) >= 5)
    assert few < least <= rows and (len(tried) == 5 or rows - few == 1)
