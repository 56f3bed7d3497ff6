# SPDX-License-Identifier: Apache-2.0
"""Network images: addresses matter, files round-trip, storage agrees with the registers."""

from __future__ import annotations

import io
import itertools
from pathlib import Path

import numpy as np
import pytest

from openkpu import digits
from openkpu.generators.generate import random_layer, random_network
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.golden import run_layer
from openkpu.network.network import ALIGN, Network, NetworkError


def chain(seed: int, eight_bit: bool = True) -> Network:
    """Four random layers in sequence."""
    return random_network(np.random.default_rng(seed), eight_bit=eight_bit)[0]


def image(network: Network, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, network.in_shape).astype(np.uint8)


@pytest.mark.parametrize("eight_bit", [True, False])
def test_run_is_layer_after_layer(eight_bit: bool) -> None:
    network = chain(3, eight_bit)
    x = want = image(network)
    for arg in network.layers:
        want = run_layer(arg, want, *network.tables(arg), eight_bit=eight_bit).y
    run = network.run(x)
    assert (run.y == want).all() and run.y.shape == network.out_shape
    assert run.macs == sum(layer.macs for layer in run.layers) > run.macs_gated


def test_wrong_addresses_show() -> None:
    """A wrong source, or a wrong table, changes the result."""
    network = chain(3)
    x = image(network)
    good = network.run(x).y
    second = network.layers[1]
    network.layers[1] = second.replace(image_src_addr=second.image_src_addr - 1)
    assert (network.run(x).y != good).any()
    network.layers[1] = second.replace(para_start_addr=second.para_start_addr + ALIGN)
    assert (network.run(x).y != good).any()


def test_maps_that_share_rows() -> None:
    """Refused, except for a depthwise layer without a pool that overwrites rows it has read."""
    rng = np.random.default_rng(9)
    plain = random_layer(rng, c=4, h=6, w=12, o=4, kernel=1, pool=0, depthwise=False, fc=False)
    network = Network.single(plain)
    network.layers[0] = network.layers[0].replace(image_src_addr=7, image_dst_addr=7)
    with pytest.raises(LayerError, match=r"BAD_ADDR: the output map occupies rows 7\.\.12, the"):
        network.run(plain.x.view(np.uint8))
    with pytest.raises(NetworkError, match="layer 0: BAD_ADDR"):
        network.validate()
    for kernel in (1, 3):
        layer = random_layer(rng, c=5, h=6, w=70, kernel=kernel, pool=0, depthwise=True)
        network = Network.single(layer)
        for before in (0, 1, 59):
            moved = layer.arg.replace(image_src_addr=59, image_dst_addr=59 - before)
            network.layers[0] = network.layers[0].replace(
                image_src_addr=59, image_dst_addr=59 - before
            )
            assert moved.maps_meet and moved.device_code(eight_bit=layer.eight_bit) == 0
            ram = airam.new_ram()
            run = network.run(layer.x.view(np.uint8), ram=ram)
            assert (run.y == layer.y.view(np.uint8)).all(), f"kernel {kernel}, {before} rows before"
            assert (airam.unpack_map(ram, 59 - before, layer.arg.out_shape) == run.y).all()


def test_run_works_in_a_given_ram() -> None:
    network = chain(4)
    ram = airam.new_ram()
    y = network.run(image(network), ram=ram).y
    last = network.layers[-1]
    assert (airam.unpack_map(ram, last.image_dst_addr, last.out_shape) == y).all()


def test_files_round_trip(tmp_path: Path) -> None:
    network = chain(5)
    network.save(tmp_path / "net.npz")
    again = Network.load(tmp_path / "net.npz")
    assert again.layers == network.layers and again.eight_bit == network.eight_bit
    assert (again.run(image(network)).y == network.run(image(network)).y).all()


def test_bad_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.npz"
    network = chain(5)
    network.save(path)
    raw = path.read_bytes()
    for length in (0, 10, len(raw) // 2):
        path.write_bytes(raw[:length])
        with pytest.raises(NetworkError, match=r"not a network image|is empty"):
            Network.load(path)
    np.savez(path, words=np.zeros((1, 12)), weights=0, biases=0, eight_bit=1)
    with pytest.raises(NetworkError, match="words: expected uint64"):
        Network.load(path)
    with np.load(io.BytesIO(raw)) as data:
        arrays = dict(data)
    words = arrays["words"].copy()
    words[2] = network.layers[2].replace(image_dst_addr=32767).encode()
    np.savez(path, **{**arrays, "words": words})
    with pytest.raises(NetworkError, match=r"net\.npz: layer 2: BAD_ADDR"):
        Network.load(path)
    network = chain(5)
    network.biases = network.biases[:-16]
    with pytest.raises(NetworkError, match="layer 3: biases: 144 bytes at"):
        network.validate()


@pytest.mark.parametrize("pixel_offset", [0, 3])
def test_storage_image(pixel_offset: int) -> None:
    """All data can be read back from the addresses in the registers."""
    network = chain(6)
    base = 0x2000_0000
    images = np.stack([image(network, seed) for seed in range(3)])
    placed = network.storage(images, base=base, continuous=True, pixel_offset=pixel_offset)
    regs = placed.registers

    def read(address: int, size: int) -> np.ndarray:
        return placed.data[address - base : address - base + size]

    words = read(regs["AI_LIST_ADR"], 96 * regs["AI_LIST_LEN"]).view("<u8").reshape(-1, 12)
    assert [LayerArg.decode(row) for row in words] == network.layers
    assert (read(regs["AI_WGT_ADR"], network.weights.size) == network.weights).all()
    assert (read(regs["AI_BIAS_ADR"], network.biases.size) == network.biases).all()
    for i, x in enumerate(images):
        at = regs["AI_PIX_ADR"] + i * regs["AI_PIX_STRIDE"]
        assert (read(at, x.size) == x.reshape(-1)).all()
    assert regs["AI_NPIX_ADR"] == regs["AI_PIX_ADR"] + regs["AI_PIX_STRIDE"]
    assert (regs["AI_CNN_MODE"], regs["AI_INF_LEFT"], regs["eight_bit_mode"]) == (2, 2, 1)
    assert regs["AI_PIX_ADR"] % ALIGN == pixel_offset
    stride = regs["AI_RES_STRIDE"]
    assert placed.results == [regs["AI_RES_ADR"] + i * stride for i in range(3)]
    assert placed.results[-1] + stride - base <= placed.data.size
    memory = placed.data.copy()
    memory[placed.results[1] - base] = 77
    assert placed.result(memory, 1).reshape(-1)[0] == 77
    single = network.storage(images[:1])
    assert (single.registers["AI_CNN_MODE"], single.registers["AI_INF_LEFT"]) == (1, 0)


def test_network_images_refuse_other_shapes() -> None:
    network = digits.load_network()
    with pytest.raises(NetworkError, match="the network expects"):
        network.run(np.zeros((1, 8, 9), np.uint8))
    with pytest.raises(NetworkError, match="the network expects"):
        network.storage(np.zeros((2, 3, 8, 8), np.uint8))
    with pytest.raises(NetworkError, match=r"0 layers, a task list has 1\.\.1023"):
        Network().validate()


@pytest.mark.parametrize("seed", range(8))
def test_random_networks_are_worth_running(seed: int) -> None:
    """Every layer, down to the last, has different outputs for different inputs."""
    network, x = random_network(np.random.default_rng(seed), layers=5, fc_last=seed % 2 == 0)
    run = network.run(x)
    assert network.in_shape == x.shape and len(network.layers) == 5
    for layer in run.layers:
        assert len(np.unique(layer.y)) >= min(4, layer.y.size // 3)


def test_recorded_layer_as_a_network() -> None:
    layer = random_layer(np.random.default_rng(2))
    network = Network.single(layer)
    network.validate()
    assert (network.run(layer.x).y == layer.y).all()


def moving() -> tuple[Network, np.ndarray, np.ndarray]:
    """(network, image, map): the third layer loads this map, the second one stores its own."""
    network, x = random_network(np.random.default_rng(6), layers=4, eight_bit=True)
    network.layers[1] = network.layers[1].replace(store_map=1, send_data_out=0)
    network.layers[2] = network.layers[2].replace(load_map=1)
    shape = network.layers[2].in_shape
    network.loaded[2] = np.random.default_rng(7).integers(0, 256, shape, dtype=np.uint8)
    return network, x, network.loaded[2]


def test_maps_of_storage(tmp_path: Path) -> None:
    """The third layer reads its own map; addresses, files, and missing maps."""
    network, x, own = moving()
    network.validate()
    run, plain = (
        network.run(x),
        random_network(np.random.default_rng(6), layers=4, eight_bit=True)[0],
    )
    want = plain.run(x)
    assert (run.layers[1].y == want.layers[1].y).all()
    third = run_layer(network.layers[2], own, *network.tables(network.layers[2]), eight_bit=True)
    assert (run.layers[2].y == third.y).all() and (run.y != want.y).any()

    placed = network.storage(np.stack([x, x]), base=0x300, align=16)
    at = placed.registers["AI_LIST_ADR"] - placed.base
    words = placed.data[at : at + 4 * 96].view("<u8").reshape(4, 12)
    args = [LayerArg.decode(row) for row in words]
    assert placed.stored == {1: args[1].map_store_addr} and args[1].map_store_addr % 16 == 0
    start = args[2].map_load_addr - placed.base
    assert (placed.data[start : start + own.size] == own.reshape(-1)).all()
    stored = range(args[1].map_store_addr, args[1].map_store_addr + run.layers[1].y.size)
    loaded = range(args[2].map_load_addr, args[2].map_load_addr + own.size)
    areas = [stored, loaded, *(range(r, r + run.y.size) for r in placed.results)]
    names = ("AI_LIST_ADR", "AI_WGT_ADR", "AI_BIAS_ADR", "AI_PIX_ADR")
    areas += [range(placed.registers[n], placed.registers[n] + 1) for n in names]
    ends = sorted((a.start, a.stop) for a in areas)
    assert all(a[1] <= b[0] or a == b for a, b in itertools.pairwise(sorted(set(ends)))), ends

    network.save(tmp_path / "net.npz")
    again = Network.load(tmp_path / "net.npz")
    assert (again.run(x).y == run.y).all()


def test_maps_of_storage_that_cannot_be() -> None:
    network, _, own = moving()
    del network.loaded[2]
    with pytest.raises(NetworkError, match="layer 2: load_map is 1, with a map None"):
        network.validate()
    network.loaded[2] = own[:, :1]
    with pytest.raises(NetworkError, match="layer 2: load_map is 1, with a map"):
        network.validate()
    network.loaded[2], network.loaded[3] = own, own
    with pytest.raises(NetworkError, match="layer 3: load_map is 0"):
        network.validate()
    for place, field in ((0, "load_map"), (3, "store_map")):
        network, _, _ = moving()
        network.layers[place] = network.layers[place].replace(**{field: 1})
        with pytest.raises(NetworkError, match=f"layer {place}: {field}: the "):
            network.validate()
    arg = moving()[0].layers[1]
    with pytest.raises(LayerError, match="BAD_ADDR: map_store_addr 0x6 is no multiple of the bus"):
        arg.replace(map_store_addr=6).validate(bus_bytes=4)
    arg.replace(map_store_addr=6).validate(bus_bytes=2)
    with pytest.raises(LayerError, match="BAD_FLAGS: store_map and send_data_out"):
        arg.replace(send_data_out=1).validate()
