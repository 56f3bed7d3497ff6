# SPDX-License-Identifier: Apache-2.0
"""`make sim PARAMS=...`, `make predict PARAMS=...` and others: a variant is computed."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.generators.generate_pools import random_pool
from openkpu.layer.vectors import save_file
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tools import command, variants
from openkpu_tools.commands import predict, run_stream, sim
from openkpu_tools.flows import eda, fpga, gates, silicon_record
from openkpu_tools.flows.asic import flow as asic
from openkpu_tools.verification import random_regress, regress, regress_batch, soak
from scripts.tests.conftest import Refused

pytestmark = pytest.mark.fixed  # the same with every seed

Shown = pytest.CaptureFixture[str]
LESS = ["--params", "POOL_LANES=0", "POST_SHARE=2", "OUT32=0", "GATE=0", "PRIVILEGED=1"]
MORE = ["--params", "POST_SHARE=2", "GATE=0"]


def changes(base: str, name: str) -> list[str]:
    """Parameters of ``name``, typed as changes of ``base``."""
    one, other = map(configs.load_config, (base, name))
    return [
        f"{configs.verilog_name(key)}={getattr(other, key)}"
        for key in configs.KEYS
        if getattr(one, key) != getattr(other, key)
    ]


def predicted(words: list[str], file: Path) -> dict[str, Any]:
    """The report of `predict`."""
    assert predict.main([*words, f"--report={file}"]) == 0
    return json.loads(file.read_text())


@pytest.mark.parametrize(
    ("base", "name", "work"),
    [
        ("nano_fpga", "lite_fpga", []),
        ("nano_fpga", "lite_fpga", ["--model", str(digits.FOLDER / "separable_int8.tflite")]),
        ("small", "k210", ["--matmul=9x70x33"]),
        ("k210", "medium", ["--model", str(digits.FOLDER / "residual_int8.tflite")]),
        ("large", "nano_fp16", ["--matmul=8x64x8", "--type=fp16"]),
    ],
)
def test_predicted_as_a_table(
    base: str, name: str, work: list[str], tmp_path: Path, capsys: Shown
) -> None:
    """A configuration with the values of another one has its cycles, layer by layer."""
    params = changes(base, name)
    whole = predicted([f"--config={name}", *work], tmp_path / "whole.json")
    printed = capsys.readouterr().out
    own = predicted([f"--config={base}", *work, "--params", *params], tmp_path / "own.json")
    said = capsys.readouterr().out
    assert (whole.pop("config"), whole.pop("params")) == (name, {})
    assert own.pop("config") == base and len(own["params"]) == len(params) >= 5
    assert [f"{key}={value}" for key, value in own.pop("params").items()] == params
    assert own == whole
    assert f"configuration {base}, {' '.join(params)} (" in said
    assert (
        said.partition("\n\n")[2].partition("report")[0]
        == (printed.partition("\n\n")[2].partition("report")[0])
    )


def test_bus_beside_params(tmp_path: Path) -> None:
    """Either of them is the bus's width, and both are when they agree."""
    found = [
        predicted(["--config=nano", *words], tmp_path / "report.json")
        for words in (["--bus=64"], ["--params", "AHB_W=64"], ["--bus=64", "--params", "AHB_W=64"])
    ]
    assert {one["ahb_width"] for one in found} == {64}
    assert found[0]["totals"] == found[1]["totals"] == found[2]["totals"]
    assert [one["params"] for one in found] == [{}, {"AHB_W": 64}, {"AHB_W": 64}]


def test_what_a_variant_lacks(tmp_path: Path, refused: Refused, monkeypatch) -> None:
    """The same words as of lite_fpga, which lacks it too; before anything is built."""
    monkeypatch.setattr(simrun, "check_tool", lambda _sim: None)
    pool = tmp_path / "pool.npz"
    save_file(pool, [random_pool(np.random.default_rng(1))])
    variant = ["--config=nano_fpga", "--params", "POOL_LANES=0"]
    for words in (["sim", f"--vectors={pool}"], ["sim", "--golden", f"--vectors={pool}"]):
        lite = refused([*words, "--config=lite_fpga"], "configuration lite_fpga has pool_lanes = 0")
        said = refused([*words, *variant])
        assert said == lite.replace("lite_fpga", "nano_fpga, POOL_LANES=0")
    lite = refused(["predict", "--matmul=4x4x4", "--config=lite_fpga"], "has out32 = 0")
    said = refused(["predict", "--matmul=4x4x4", "--config=nano_fpga", "--params", "OUT32=0"])
    assert said == lite.replace("lite_fpga", "nano_fpga, OUT32=0")


@pytest.fixture
def benches(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, int]]:
    """Parameters of every bench that would be built or run; nothing is."""
    found: list[dict[str, int]] = []

    def build(*_words: object, params: dict[str, int], **_more: object) -> None:
        found.append(params)

    def run(*words: object, **more: Any) -> None:
        build(*words, **more)
        raise simrun.SimError("nothing runs")

    monkeypatch.setattr(simrun, "check_tool", lambda _sim: None)
    monkeypatch.setattr(launch.simrun, "build_bench", build)
    monkeypatch.setattr(launch.simrun, "run_bench", run)
    return found


@pytest.mark.parametrize(
    "params",
    [["POST_SHARE=2"], ["DILATION=2", "GATE=0"], ["PRIVILEGED=1"], ["N_Z=4", "POST_SHARE=4"]],
    ids="-".join,
)
def test_every_simulation_is_of_the_variant(
    params: list[str], benches: list[dict[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is built is what runs, and no other variant has the same parameters, which a build is
    found by."""
    words = ["--config=nano", "--params", *params]
    monkeypatch.delenv(launch.simrun.watchdog.VARIABLE, raising=False)
    for main in (
        lambda: sim.main(["--images=1", *words]),
        lambda: run_stream.main(["--images=1", *words]),
    ):
        with pytest.raises(simrun.SimError):
            main()
    monkeypatch.setenv(launch.simrun.watchdog.VARIABLE, "1")  # soak sets it for its simulation
    assert soak.main(["--minutes=0.1", "--seed=1", *words]) == 1
    changed = tuple(variants.parameter(word) for word in params)
    regress_batch.simulate_batch(regress_batch.Batch("nano", "verilator", 1, 0, 1, "list", changed))
    assert len(benches) == 7
    for one in benches:
        assert dict(changed).items() <= one.items()
    plain = launch.parameters(configs.load_config("nano"))
    assert benches[0] == benches[1] != plain
    assert {key for key in benches[2] if benches[2][key] != plain.get(key)} == set(dict(changed))


def test_counters_are_always_built(benches: list[dict[str, int]]) -> None:
    """Commands read them: without PERF the simulated device has them, as lite_fpga's."""
    for words in (["--config=lite_fpga"], ["--config=nano", "--params", "PERF=0"]):
        with pytest.raises(simrun.SimError):
            sim.main(["--images=1", *words])
    assert len(benches) == 4 and not any("PERF" in one for one in benches)


def test_repeated_as_typed(benches: list[dict[str, int]], monkeypatch, capsys: Shown) -> None:
    """The command that repeats an item of a soak has the parameters."""
    monkeypatch.setenv(launch.simrun.watchdog.VARIABLE, "1")
    assert soak.main(["--minutes=0.1", "--seed=1", "--config=nano", *MORE]) == 1
    out = capsys.readouterr().out
    assert out.startswith("soak on nano, POST_SHARE=2 GATE=0 with ")
    assert 'SEED=1 CONFIG=nano PARAMS="POST_SHARE=2 GATE=0" ITEM=' in out


def test_items_are_repeated_as_typed(
    benches: list[dict[str, int]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: Shown
) -> None:
    """So has the command of a regression's item, and its place in the JUnit report."""

    def here(pieces: list[regress_batch.Batch], _jobs: int) -> Iterator[list]:
        (piece,) = pieces
        assert piece.params == [("POOL_LANES", 0), ("GATE", 0)]
        yield [regress_batch.ItemOutcome(0, 3, "a layer", ["storage differs"], {})]

    monkeypatch.setattr(random_regress, "here", here)
    monkeypatch.setattr(random_regress, "REPORTS", tmp_path)
    words = ["--n=1", "--seed=3", "--config=nano", "--params", "POOL_LANES=0", "GATE=0"]
    assert regress.main(words) == 1
    out = capsys.readouterr().out
    assert "1 items from seed 3 on, nano, POOL_LANES=0 GATE=0 on verilator" in out
    again = 'make regress N=1 SEED=3 SIM=verilator CONFIG=nano PARAMS="POOL_LANES=0 GATE=0"'
    assert again in out and benches[0]["GATE"] == benches[0]["POOL_LANES"] == 0
    assert "regress.nano_pool_lanes_0_gate_0.verilator" in (tmp_path / "junit.xml").read_text()


def test_rounding_of_a_model(refused: Refused) -> None:
    """ROUNDING is that of the golden model, which an option of sim chooses."""
    one = variants.variant(configs.load_config("nano"), [("ROUNDING", 2)])
    one.check_rounding("trunc")
    with pytest.raises(command.UsageError, match="those of rounding v01, expected ROUNDING=1"):
        one.check_rounding("v01")
    assert one.bench == {} and variants.Variant(one.config).check_rounding("v01") is None


def test_golden_report(tmp_path: Path, capsys: Shown) -> None:
    """The golden model alone: the variant is in what is printed and in the report."""
    file = tmp_path / "report.json"
    assert sim.main(["--golden", "--images=1", "--config=nano", *LESS, f"--report={file}"]) == 0
    title = "nano, POOL_LANES=0 POST_SHARE=2 OUT32=0 GATE=0 PRIVILEGED=1"
    assert f"configuration {title} (36 MACs)" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert found["config"] == "nano" and found["params"]["GATE"] == 0 and len(found["params"]) == 5
    assert sim.main(["--golden", "--images=1", "--config=nano", f"--report={file}"]) == 0
    assert json.loads(file.read_text())["params"] == {}


@pytest.mark.check
def test_rtl_of_a_variant(tmp_path: Path, capsys: Shown) -> None:
    """Verilator: every byte is exact, cycles are as predicted (docs/performance.md 4)."""
    words, file = ["--config=nano", *LESS], tmp_path / "report.json"
    assert sim.main(["--sim=verilator", "--images=2", *words, f"--report={file}"]) == 0
    assert "PASS" in capsys.readouterr().out
    found = json.loads(file.read_text())
    assert found["params"] == {k: int(v) for k, v in (word.split("=") for word in LESS[1:])}
    cycles = sum(layer["cycles"] for layer in found["layers"]) / 2
    guess = predicted(words, tmp_path / "predicted.json")["totals"]
    whole = predicted(["--config=nano"], tmp_path / "whole.json")["totals"]
    assert cycles == pytest.approx(guess["cycles"], rel=0.02)
    assert guess["cycles"] > 1.02 * whole["cycles"]  # two sums share a lane


def test_cells_of_a_variant(monkeypatch: pytest.MonkeyPatch, capsys: Shown) -> None:
    """Yosys gets the values for standard cells; what the RTL refuses is a bad request."""
    scripts: list[str] = []
    trouble = "a tool that fails"

    def run(script: str, *_more: object) -> None:
        scripts.append(script)
        raise eda.ToolError(trouble)

    monkeypatch.setattr(asic, "expect_tools", lambda: None)
    monkeypatch.setattr(asic.shutil, "copy", lambda *_paths: None)
    monkeypatch.setattr(asic.synth, "stage", lambda _folder: None)
    monkeypatch.setattr(eda, "run_yosys", run)
    assert asic.main(["--params", "POOL_LANES=0", "GATE=0"]) == 1
    out = capsys.readouterr().out
    assert out.startswith("nano, POOL_LANES=0 GATE=0 in standard cells ...\nFAIL a tool that fails")
    assert "-set POOL_LANES 0" in scripts[0] and "-set GATE 0" in scripts[0]
    trouble = "ERROR: Module `\\ILLEGAL_PATH' referenced in module `\\param_check' is not part"
    with pytest.raises(command.UsageError, match=r"the RTL refuses .* GATE=0"):
        asic.main(["--params", "GATE=0"])


def test_report_of_cells(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A variant has a report of its own, under its parameters."""
    found = {"gates": 10, "flip-flops": 2, "memory bits": 3, "mhz": 100.0, "macs": 36}

    def measure(device: variants.Variant, _folder: Path) -> dict:
        return {**device.facts, **found, "boxes": [], "paths": []}

    monkeypatch.setattr(asic, "expect_tools", lambda: None)
    monkeypatch.setattr(asic, "measure_asic", measure)
    monkeypatch.setattr(silicon_record, "REPORTS", tmp_path)
    assert asic.main([]) == asic.main(["--params", "POOL_LANES=0"]) == 0
    names = {file.name for file in (tmp_path / "asic").iterdir()}
    assert names == {
        f"nano{tail}.{kind}" for tail in ("", "_pool_lanes_0") for kind in ("json", "md")
    }
    assert "`make asic CONFIG=nano`: 36" in (tmp_path / "asic" / "nano.md").read_text()
    text = (tmp_path / "asic" / "nano_pool_lanes_0.md").read_text()
    assert text.startswith("# nano, POOL_LANES=0 in standard cells")
    assert '`make asic CONFIG=nano PARAMS="POOL_LANES=0"`: 36' in text
    assert json.loads((tmp_path / "asic" / "nano_pool_lanes_0.json").read_text())["params"]


def test_netlist_of_a_variant(
    monkeypatch: pytest.MonkeyPatch, benches: list[dict[str, int]], refused: Refused
) -> None:
    """It is mapped, and the bench around it is built for it; one without room is not mapped."""
    mapped: list[variants.Variant] = []

    def map_it(device: variants.Variant, folder: Path) -> Path:
        mapped.append(device)
        path = folder / "netlist.json"
        path.write_text('{"modules": {"openkpu_top": {}}}')
        return path

    monkeypatch.setattr(fpga, "mapped", map_it)
    monkeypatch.setattr(gates, "lowered", lambda _path, _folder: [])
    assert gates.main(["--params", "GATE=0", "AHB_W=64"]) == 1
    assert mapped[0].title == "nano_fpga, GATE=0 AHB_W=64"
    assert (benches[0]["GATE"], benches[0]["AHB_W"]) == (0, 64)
    refused(["gates", "--params", "AI_RAM_ROWS=16"], "layer 0: BAD_ADDR")
