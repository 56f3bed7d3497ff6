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
from openkpu.export.image import Tensor, image
from openkpu.generators.generate import Limits, random_network
from openkpu.network.network import Network
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
    *("two_runs", "wrong_order", "two_devices", "texts", "maps_inside", "refused_start"),
    *("polled", "error_behind_a_timeout", "begun_anew", "late_event"),
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
    write_maps_inside(folder, network, config, inputs[:2])
    return folder


def write_maps_inside(folder: Path, network: Network, config: Config, inputs: np.ndarray) -> None:
    """An image with a second input, a second output and a constant map; inputs, second inputs,
    results and second outputs of two inferences."""
    loads, stores, constant = 6, 7, 9  # layers
    found = source.of_network(network)
    network.layers[0] = network.layers[0].replace(store_map=0)
    network.layers[stores] = network.layers[stores].replace(store_map=1)
    for i in (loads, constant):
        network.layers[i] = network.layers[i].replace(load_map=1)
    rng = np.random.default_rng(45)
    second = rng.integers(0, 256, (2, *network.layers[loads].in_shape), np.uint8)
    network.loaded = {
        loads: np.zeros_like(second[0]),
        constant: rng.integers(0, 256, network.layers[constant].in_shape, np.uint8),
    }
    given = Tensor("second", False, second.shape[1:], "uint8", loads)
    out = Tensor("out", True, network.layers[stores].out_shape, "uint8", stores)
    two = image(network, config, BASE, [*found.tensors, given, out])
    (folder / "two.bin").write_bytes(two.data.tobytes())
    with (folder / "two.maps").open("wb") as stream:
        seen = {network.run(inputs[0]).layers[stores].y.tobytes()}
        for x, b in zip(inputs, second, strict=True):
            network.loaded[loads] = b
            ran = network.run(x)
            seen.add(ran.layers[stores].y.tobytes())
            for part in (x, b, ran.stored, ran.layers[stores].y):
                stream.write(np.ascontiguousarray(part).view(np.uint8).tobytes())
        assert len(seen) == 3


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
