# SPDX-License-Identifier: Apache-2.0
"""`make sim NETWORK=`: what the network says, in words and as a picture."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from openkpu import digits
from openkpu.generators.generate import random_network
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Network
from openkpu_tb import simrun
from openkpu_tb.runs import launch
from openkpu_tools.commands import network_results, run_network, sim
from scripts.tests.requests.test_matmul_command import device_events

COUNT = 40


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The digits as a network of its own, and scans."""
    place = tmp_path_factory.mktemp("network")
    digits.load_network().save(place / "net.npz")
    np.save(place / "maps.npy", digits.load_data()[1].pixels[:COUNT])
    random_network(np.random.default_rng(1), fc_last=False)[0].save(place / "maps.npz")
    return place


def test_golden_compares_with_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line for each map with its five largest classes, as the accuracy of digits has them."""
    words = [f"--network={folder}/net.npz", f"--input={folder}/maps.npy"]
    assert sim.main(["--golden", *words]) == 0
    said = capsys.readouterr().out
    lines = [line.split() for line in said.splitlines() if line.startswith("map ")]
    assert [int(line[1]) for line in lines] == list(range(COUNT))
    test, network = digits.load_data()[1], digits.load_network()
    classes = [int(line[3].strip(":")) for line in lines]
    assert np.mean(np.array(classes) == test.labels[:COUNT]) > 0.9
    run = network.run(test.pixels[0]).y.view(np.int8).reshape(-1)
    five = sorted(range(10), key=lambda n: -int(run[n]))[:5]
    assert (
        lines[0][2:]
        == "classes {}: {}, {}: {}, {}: {}, {}: {}, {}: {}".format(
            *(value for n in five for value in (n, run[n]))
        ).split()
    )
    assert " ok" not in said and "PASS" not in said and "cycles" not in said
    assert said.splitlines()[-1].endswith("the golden model ran alone, nothing was compared")


@pytest.mark.parametrize("words", [[], ["--images=3"]])
def test_digits_alone(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.main(["--golden", *words]) == 0
    said = capsys.readouterr().out
    assert "PASS" not in said and "nothing was compared" in said


def test_range_of_a_map(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert sim.main(["--golden", f"--network={folder}/maps.npz", "--images=2"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("map ")]
    assert len(lines) == 2 and all("int8 [" in line and " .. " in line for line in lines)


def test_the_device_is_compared(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run_job(_sim, _config, request, on_event, **_more) -> None:
        for event in device_events(request.network, request.images[0], None):
            on_event(event)

    monkeypatch.setattr(launch, "build_device", lambda *_a, **_k: None)
    monkeypatch.setattr(launch, "run_job", run_job)
    monkeypatch.setattr(simrun, "check_tool", lambda _sim: None)
    picture = folder / "device.png"
    words = [f"--network={folder}/net.npz", f"--png={picture}"]
    assert sim.main(words) == 0
    said = capsys.readouterr().out
    (line,) = [line for line in said.splitlines() if line.startswith("map ")]
    assert line.split()[3:6] == ["cycles", "ok", "classes"]
    assert "PASS" in said and "nothing was compared" not in said and picture.exists()


def test_picture_of_classes(folder: Path) -> None:
    """A line for each map: the map in its colours, bars whose length is the value's."""
    network = digits.load_network()
    images = np.load(folder / "maps.npy")[:3]
    results = [
        network_results.result_values(network, network.run(image).stored) for image in images
    ]
    picture = network_results.draw_results(images, results)
    cell, gap = network_results.CELL, network_results.GAP
    assert picture.size == (cell + 3 * gap + network_results.BAR, 3 * (cell + gap) + gap)
    pixels = np.asarray(picture)
    for number, image in enumerate(images):
        at = number * (cell + gap) + gap
        tile = pixels[at : at + cell, gap : gap + cell, 0]
        corner = [tile[0, 0], tile[-1, 0], tile[0, -1], tile[-1, -1]]
        assert corner == [image[0, y, x] for y, x in ((0, 0), (-1, 0), (0, -1), (-1, -1))]
        bars = (pixels[at : at + cell] == (0x4C, 0x72, 0xB0)).all(axis=2)
        lengths = [int(bars[place * cell // 5 + 8].sum()) for place in range(5)]
        assert lengths == sorted(lengths, reverse=True) and lengths[0] == 152
        values = [value for _, value in network_results.top(results[number])]
        least = int(results[number].min())
        for length, value in zip(lengths, values, strict=True):
            assert length == 2 + round(150 * (value - least) / (values[0] - least))


def test_picture_of_a_map(folder: Path) -> None:
    x = np.zeros((1, 3, 4, 4), np.uint8)
    x[0, 0] = 255  # red
    y = np.stack([np.full((2, 2), v, np.uint8) for v in (0, 100, 255)])
    pixels = np.asarray(network_results.draw_results(x, [y]))
    cell, gap = network_results.CELL, network_results.GAP
    assert tuple(pixels[gap + 5, gap + 5]) == (255, 0, 0)
    middle = [pixels[gap + 50, cell + 2 * gap + n * (cell + gap) + 50] for n in range(3)]
    assert [tuple(p) for p in middle] == [(0, 0, 0), (100, 100, 100), (255, 255, 255)]


def test_words_of_32_bits() -> None:
    """Each class is a sum of 32 bits."""
    arg = LayerArg.make(2, 1, 1, 3, in_xor=1, w_xor=1, out32=1)
    network = Network([arg])
    sums = np.array([5, -70000, 90000], "<i4")
    y = network_results.result_values(network, sums.view(np.uint8))
    assert network_results.result_line(y) == "classes 2: 90000, 0: 5, 1: -70000"


def test_command_writes_the_picture(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = folder / "out.png"
    words = [f"--network={folder}/net.npz", f"--input={folder}/maps.npy", f"--png={path}"]
    assert sim.main(["--golden", *words]) == 0
    assert f"picture: {path}" in capsys.readouterr().out
    with Image.open(path) as picture:
        assert picture.height == network_results.DRAWN * (network_results.CELL + 8) + 8
    assert run_network.verdict(None, 0) == ""
