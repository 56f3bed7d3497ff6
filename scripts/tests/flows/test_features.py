# SPDX-License-Identifier: Apache-2.0
"""`make features`: a mapping for each setting, kept as it is finished, and the table of them."""

import json
from pathlib import Path

import pytest

from openkpu import configs
from openkpu_tools import design
from openkpu_tools.families import Family
from openkpu_tools.flows import eda, features, fpga, silicon_record
from openkpu_tools.variants import BESIDE, KEYS, Variant, variant

pytestmark = pytest.mark.fixed  # the same with every seed
NANO = configs.load_config("nano_fpga")


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[str]:
    """Settings that were mapped, of a mapper that gives a LUT for each pooling lane and 40 more;
    counters are ten flip-flops. Reports and records lie in a folder of the test."""
    found: list[str] = []

    def mapped(device: Variant, folder: Path, family: Family | None = None) -> Path:
        found.append(device.words)
        luts = 40 + device.parameters["POOL_LANES"]
        cells = {f"u_a.l{n}": {"type": "LUT4"} for n in range(luts)}
        if device.parameters.get("PERF", 1):
            cells |= {f"u_host.u_perf.f{n}": {"type": "TRELLIS_FF"} for n in range(10)}
        file = folder / "netlist.json"
        file.write_text(json.dumps({"modules": {"openkpu_top": {"cells": cells}}}))
        return file

    monkeypatch.setattr(fpga, "mapped", mapped)
    monkeypatch.setattr(features, "REPORTS", tmp_path)
    monkeypatch.setattr(features, "RECORD", tmp_path / "record.json")
    monkeypatch.setattr(
        features, "predicted_cycles", lambda _c: dict.fromkeys(features.NETWORKS, 7)
    )
    return found


def test_every_parameter_has_settings() -> None:
    """One that is added is in the table, or is of the device's size."""
    assert {*features.SETTINGS} | {*features.SIZES} == {*KEYS, "GATE"}
    assert not {*features.SETTINGS} & {*features.SIZES} and {*BESIDE} - {"GATE"} == {
        "ROUNDING",
        "PRIVILEGED",
    }


@pytest.mark.parametrize("name", ["nano_fpga", "lite_fpga", "compact_fpga"])
def test_settings(name: str) -> None:
    """Each once, legal, and none that the configuration has."""
    config = configs.load_config(name)
    first, *others = features.devices(config)
    assert first.config == config and not first.words
    words = [device.words for device in others]
    assert len(set(words)) == len(words) > 10
    parameters = [device.parameters for device in (first, *others)]
    assert all(parameters.count(one) == 1 for one in parameters)
    assert ("POOL_LANES=0" in words) == (config.pool_lanes > 0)
    assert ("OUT32=1" in words) == ("PERF=1" in words) == (name == "lite_fpga")
    assert "FLAT_MAPS=1" not in words and "POST_SHARE=4" not in words  # of larger arrays
    assert {"KEEP_WEIGHTS=1", "SUM_PLANES=1", "FP16_LANES=8", "GATE=0", "MUL_BITS=17"} <= set(words)


def test_goes_on(asked: list[str], monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    """What is finished is not mapped again, until the RTL changes."""
    begin, words = fpga.mapped, ["--config=nano_fpga", "--params", "POOL_LANES=4", "PERF=0"]

    def fails(device: Variant, folder: Path) -> Path:
        if device.words == "PERF=0":
            raise eda.ToolError("yosys: no memory")
        return begin(device, folder)

    monkeypatch.setattr(fpga, "mapped", fails)
    assert features.main(words) == 1 and asked == ["", "POOL_LANES=4"]
    out = capsys.readouterr().out
    assert "3 mappings, 0 of them are there\n" in out and "FAIL yosys: no memory\n" in out
    assert "nano_fpga, PERF=0: 1 to go, about 0 min ...\n" in out
    monkeypatch.setattr(fpga, "mapped", begin)
    asked.clear()
    assert features.main(words) == 0 and asked == ["PERF=0"]
    out = capsys.readouterr().out
    assert "3 mappings, 2 of them are there\n" in out
    assert "| as it is | 41 | 10 | 0 | 0 | 7 | 7 | 7 |" in out
    assert "| `POOL_LANES=4` | +3 |  |  |  |  |  |  |" in out
    assert "| `PERF=0` |  | -10 |  |  |  |  |  |" in out
    asked.clear()
    assert features.main(words) == 0 and not asked
    monkeypatch.setattr(design, "rtl_digest", lambda _root: "other")
    assert features.main(words) == 0 and asked == ["", "POOL_LANES=4", "PERF=0"]


def test_other_parameters_are_mapped_again() -> None:
    """A table of configs.toml that is changed, another mapper's option."""
    one = features.digest(Variant(NANO), "x")
    assert one == features.digest(Variant(NANO), "x") != features.digest(Variant(NANO), "y")
    for change in (("TILE_ROWS", 64), ("GATE", 0)):
        assert features.digest(variant(NANO, [change]), "x") != one


def test_damaged_file(asked: list[str], tmp_path: Path) -> None:
    """It counts as empty."""
    for text in ("", "[1", '{"a": 1}', "[[]]", '[{"x": 1}]'):
        (tmp_path / "features").mkdir(exist_ok=True)
        (tmp_path / "features" / "nano_fpga.json").write_text(text)
        asked.clear()
        assert features.main(["--params", "PERF=0"]) == 0 and asked == ["", "PERF=0"], text


def test_rtl_that_changes(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Rows of two circuits make no table."""
    states = iter(["one", "two"])
    monkeypatch.setattr(design, "rtl_digest", lambda _root: next(states))
    assert features.main(["--params", "PERF=0"]) == 1
    assert "FAIL the RTL changed while it was mapped" in capsys.readouterr().out


def test_record(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The record is shown as long as the RTL equals the mapped RTL."""
    (before,) = features.feature_table()
    assert before.startswith("Not measured with the present RTL")
    assert features.main(["--config=nano_fpga", "--record"]) == 0
    assert asked == [device.words for device in features.devices(NANO)]
    lines = features.feature_table()
    assert lines[0] == "`nano_fpga`:" and "| as it is | 41 | 10 | 0 | 0 | 7 | 7 | 7 |" in lines
    assert len(lines) == 4 + len(asked)
    monkeypatch.setattr(design, "rtl_digest", lambda _root: "other")
    assert features.feature_table() == [before]


def test_record_is_of_known_configurations() -> None:
    known = silicon_record.load_figures(features.RECORD)
    assert set(known) <= set(fpga.TARGETS)


def test_cycles() -> None:
    """Predicted on the device of the row; a network that it refuses is said to be."""
    base = features.predicted_cycles(NANO)
    assert set(base) == set(features.NETWORKS) and all(base.values())
    shared = features.predicted_cycles(variant(NANO, [("POST_SHARE", 2)]).config)
    assert all((shared[name] or 0) >= (base[name] or 0) for name in base) and shared != base
    few = features.predicted_cycles(variant(NANO, [("WBUF_ROWS", 64), ("WEIGHT_BITS", 8)]).config)
    found = {
        "": dict.fromkeys(("LUT", "flip-flops", "DSP", "block RAM"), 100) | {"cycles": base},
        "X=1": {"LUT": 90, "flip-flops": 2100, "DSP": 100, "block RAM": 101}
        | {"cycles": {**few, "digits": None}},
    }
    line = features.settings_table(found)[-1]
    assert line.startswith("| `X=1` | -10 | +2,000 |  | +1 | refused | ")
