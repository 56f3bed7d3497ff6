# SPDX-License-Identifier: Apache-2.0
"""The driver in sw/ on the verilated device, natively and with sanitizers (driver_tests.c)."""

import subprocess
from pathlib import Path

import numpy as np
import pytest

from openkpu import configs, digits
from openkpu.checkout import ROOT
from openkpu.configs import Config
from openkpu.export import source
from openkpu.export.image import image
from openkpu.generators.generate import Limits, random_network
from openkpu_tb import firmware, seeds, verilated

pytestmark = pytest.mark.check
BASE = 0x80000000
DRIVER = [f"sw/openkpu{part}.c" for part in ("", "_image", "_layers", "_text")]
BENCH = ["tb/soc/driver_tests.c", "tb/soc/hardware.cpp"]
PORT = ['-DOPENKPU_PORT="hardware.h"', f"-I{ROOT / 'tb' / 'soc'}"]
TESTS = (
    *("single", "by_interrupt", "stream", "next_pixels", "stop", "layers", "burst"),
    *("bits_of_another_driver", "spare_rows_of_one", "between_results", "left_behind", "moved"),
    *("tensors", "refused_layers", "bus_error", "bus_error_in_stream", "host_errors"),
    *("list_changed", "watchdog", "windows", "no_device", "other_configuration", "corrupted"),
    *("addresses", "misplaced", "no_room", "small_ram", "unusual", "lost_interrupt", "stuck"),
    *("two_runs", "wrong_order", "two_devices", "texts"),
)
AHEAD = {"WEIGHT_AHEAD": 1, "WBUF_ROWS": 64}  # parameters
SECONDS = 120  # of a test


def flags_of(config: Config) -> list[str]:
    """Of the compiler, for the tests of a configuration."""
    return [*verilated.SANITIZE, *PORT, f"-DAI_RAM_ROWS={config.ai_ram_rows}"]


def linked_with(config: str, **more: int) -> Path:
    """The tests, linked with the device of a configuration."""
    device = configs.load_config(config)
    folder = verilated.model("openkpu_top", ["rtl/**/*.v"], device.parameters | more)
    sources = [*DRIVER, *BENCH]
    return verilated.program(folder, "openkpu_top", sources, "driver_tests", flags_of(device))


@pytest.fixture(scope="module")
def program() -> Path:
    """The tests on nano with rows in which weights wait."""
    return linked_with("nano", **AHEAD)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random network of 14 layers, and one whose layers move maps."""
    folder = tmp_path_factory.mktemp("driver")
    seed = seeds.environment()
    rng = np.random.default_rng(44 if seed is None else seed)
    limits = Limits(channels=6, size=12, sixteen_bit=False)
    config = configs.load_config("nano")
    network, x = random_network(
        rng, shape=(2, 5, 9), layers=14, fc_last=True, limits=limits, eight_bit=True
    )
    inputs = np.stack([np.roll(x, i, axis=2) for i in range(firmware.IMAGES)])
    firmware.write_firmware(folder, network, config, inputs, BASE)
    network.layers[0] = network.layers[0].replace(store_map=1)
    fixed = image(network, config, BASE, source.of_network(network).tensors)
    assert not fixed.relocatable
    (folder / "fixed.bin").write_bytes(fixed.data.tobytes())
    return folder


def test_every_test_is_listed(program: Path) -> None:
    """The names here are those of the program."""
    said = subprocess.run([program], capture_output=True, text=True, timeout=SECONDS)
    assert tuple(said.stdout.split()) == TESTS


@pytest.mark.parametrize("name", TESTS)
def test_driver(name: str, program: Path, data: Path) -> None:
    """One test of driver_tests.c: values, error codes, and no complaint of a sanitizer."""
    done = subprocess.run([program, data, name], capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Digits, whose results differ: those of a random network hardly depend on its input."""
    folder = tmp_path_factory.mktemp("digits")
    config, network = configs.load_config("nano"), digits.load_network()
    inputs = digits.load_data()[1].pixels[: firmware.IMAGES]
    for blank in (0x5A, 0xA5):  # what the tests leave where nothing was written
        inputs = np.concatenate([inputs, np.full_like(inputs[:1], blank)])
    results = {network.run(x).stored.tobytes() for x in inputs}
    assert len(results) == len(inputs)
    firmware.write_firmware(folder, network, config, inputs[: firmware.IMAGES], BASE)
    return folder


@pytest.mark.parametrize("name", ["single", "by_interrupt", "stream", "next_pixels", "stop"])
def test_each_image_is_the_right_one(name: str, program: Path, pictures: Path) -> None:
    """Places, strides and cache maintenance of inputs, seen in results that differ."""
    test_driver(name, program, pictures)


@pytest.mark.nightly
def test_smaller_ai_ram(data: Path) -> None:
    """nano_fpga has fewer rows, and the bench ends at the first access behind them."""
    words = [linked_with("nano_fpga"), data, "small_ram"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stdout + done.stderr[-4000:]
