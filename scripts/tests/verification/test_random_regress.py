# SPDX-License-Identifier: Apache-2.0
"""`make regress N=...`: what is refused, what is repeated, what the reports say, and a cluster."""

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from pathlib import Path

import pytest

from openkpu import configs
from openkpu.layer.argument import LayerArg
from openkpu_tb.runs import regress_items
from openkpu_tools.verification import random_regress, regress
from openkpu_tools.verification.regress_batch import Batch, ItemOutcome

pytestmark = [pytest.mark.check, pytest.mark.tool("regress")]


def test_seeds() -> None:
    """Item n alone, and the run from item n on, are runs of their own; no two items are alike."""
    seeds = [regress_items.seed_of(7, n) for n in range(1000)]
    assert seeds[0] == 7 and len(set(seeds)) == 1000
    assert [regress_items.seed_of(seeds[40], n) for n in range(5)] == seeds[40:45]


def test_items_are_what_their_seed_says() -> None:
    """The same twice; legal on the configuration; corners and all ways occur."""
    config = configs.load_config("small")
    first = regress_items.draw_item(config, "icarus", 5)
    again = regress_items.draw_item(config, "icarus", 5)
    assert first.case.title == again.case.title
    assert (first.case.images == again.case.images).all()
    ways, shapes, rules = set(), set(), set()
    for number in range(300):
        item = regress_items.draw_item(config, "icarus", regress_items.seed_of(1, number))
        ways.add((item.case.way, item.case.disturb))
        rules |= set(item.redrawn)
        for arg in item.case.network.layers:
            shapes |= {("width", arg.i_row_wid), ("pool", arg.pool_type), ("fc", arg.fc)}
            shapes |= {
                ("channels", arg.i_ch_num),
                ("partial", arg.o_ch_num % arg.o_ch_num_coef > 0),
            }
    assert len(ways) == 6, ways
    assert "cycles" in rules, "nothing was too much for the simulator"
    wanted = {("pool", n) for n in range(10)} | {("width", n) for n in (1, 16, 17, 32, 33, 64, 65)}
    wanted |= {("channels", 1), ("channels", 64), ("fc", 1), ("partial", True)}
    assert wanted <= shapes, wanted - shapes


def kind_of(arg: LayerArg) -> str:
    """One of regress_items.ITEM_KINDS."""
    named = {"float16": arg.fp16, "product": arg.out32, "pool": arg.pool_task}
    named["elementwise"] = arg.elementwise
    return next((name for name, value in named.items() if value), "layer")


@pytest.mark.parametrize("kind", regress_items.ITEM_KINDS)
def test_items_of_a_kind(kind: str) -> None:
    """Of the kind that is asked for, by every way, products of every pair of types."""
    config = configs.load_config("nano_fp16")
    items = [regress_items.draw_item(config, "icarus", seed, kind) for seed in range(100, 140)]
    several = kind in regress_items.LISTS
    assert {i.case.way for i in items} == set(regress_items.WAYS[several:])
    args = [arg for item in items for arg in item.case.network.layers]
    found = {kind_of(arg) for arg in args}
    if several:
        assert len(args) > len(items) and len(found) > (2 if kind == "graph" else 3)
        if kind == "list":
            assert any(arg.load_map for arg in args) and any(arg.store_map for arg in args)
    else:
        assert len(args) == len(items)
        assert found == ({kind, "float16"} if kind == "product" else {kind})
    if kind == "product":
        types = {(a.fp16, a.fp32) if a.fp16 else ("bytes", a.in_xor, a.w_xor) for a in args}
        assert len(types) == 6
    if kind == "float16":
        assert {arg.fp32 for arg in args} == {0, 1}


def test_too_big_is_drawn_again() -> None:
    """An AI RAM that is too small for most layers: no item is skipped, and the rule is printed."""
    config = dataclasses.replace(configs.load_config("nano"), ai_ram_rows=64)
    items = [regress_items.draw_item(config, "icarus", seed) for seed in range(12)]
    assert any("AI RAM" in item.redrawn or "BAD_ADDR" in item.redrawn for item in items)
    for item in items:
        for arg in item.case.network.layers:
            arg.validate(ram_rows=64, eight_bit=item.case.network.eight_bit)


def outcome(number: int, *wrong: str) -> ItemOutcome:
    seed = regress_items.seed_of(3, number)
    return ItemOutcome(number, seed, f"title <{number}>", list(wrong), {"cycles": 2}, 100, 0.5)


def test_failure_is_told_and_repeated(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Output and JUnit name the item, its seed and the commands that repeat it."""
    pieces: list[Batch] = []

    def here(batches: list[Batch], jobs: int) -> Iterator[list[ItemOutcome]]:
        pieces.extend(batches)
        for piece in reversed(batches):
            numbers = range(piece.number, piece.number + piece.count)
            yield [outcome(n, *(["storage differs"] if n == 10 else [])) for n in numbers]

    monkeypatch.setattr(random_regress, "here", here)
    monkeypatch.setattr(random_regress, "REPORTS", tmp_path)
    monkeypatch.setattr(random_regress.launch, "build_device", lambda *_: None)
    monkeypatch.setattr(random_regress.simrun, "check_tool", lambda _: None)
    assert regress.main(["--n=20", "--seed=3", "--kind=pool"]) == 1
    assert {piece.kind for piece in pieces} == {"pool"}
    assert [(piece.number, piece.count) for piece in pieces] == [(0, 8), (8, 8), (16, 4)]
    out, seed = capsys.readouterr().out, regress_items.seed_of(3, 10)
    alone = f"make regress N=1 SEED={seed} SIM=verilator CONFIG=small KIND=pool"
    behind = f"N=3 SEED={regress_items.seed_of(3, 8)} SIM=verilator CONFIG=small KIND=pool"
    assert alone in out and behind in out and "19 of 20 items passed" in out and "40 cycles" in out
    suite = ElementTree.parse(tmp_path / "junit.xml").getroot()
    assert (suite.get("tests"), suite.get("failures")) == ("20", "1")
    (failure,) = suite.iter("failure")
    assert failure.get("message") == "storage differs" and alone in (failure.text or "")
    assert f"seed {regress_items.seed_of(3, 3)}: title <3>" in {c.get("name") for c in suite}


@pytest.fixture
def scheduler() -> Iterator[str]:
    """Address of a dask scheduler with two workers, each a process of its own."""
    from distributed import LocalCluster

    where = {"host": "127.0.0.1", "dashboard_address": None}
    with LocalCluster(n_workers=2, threads_per_worker=1, **where) as cluster:
        yield cluster.scheduler_address  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.nightly
def test_cluster(
    scheduler: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:  # fmt: skip
    """The same run here and on two workers: the same items, all of them right."""
    monkeypatch.setattr(random_regress, "REPORTS", tmp_path)
    monkeypatch.setattr(random_regress, "BATCH", 1)
    words = ["--n=2", "--seed=11", "--sim=icarus", "--config=nano"]
    found: list[list[ItemOutcome]] = []
    monkeypatch.setattr(random_regress, "junit", lambda args, some, path: found.append(some))
    for more in ([], [f"--cluster={scheduler}"]):
        assert regress.main([*words, *more]) == 0, capsys.readouterr().out
    here, there = ([(o.number, o.seed, o.title, o.cycles) for o in some] for some in found)
    assert here == there and len(here) == 2
    assert all(cycles for *_, cycles in here)
