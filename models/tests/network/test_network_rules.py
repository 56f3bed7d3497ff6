# SPDX-License-Identifier: Apache-2.0
"""What `add` and `save` refuse is what `load` refuses (docs/networks.md)."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from openkpu import configs
from openkpu.generators.generate import Limits, random_layer
from openkpu.generators.generate_fp16 import random_fp16
from openkpu.generators.generate_pools import random_pool
from openkpu.generators.generate_products import random_product
from openkpu.generators.generate_tasks import random_elementwise
from openkpu.layer.argument import LayerArg
from openkpu.layer.vectors import VectorLayer
from openkpu.network import network_rules
from openkpu.network.device_rules import refusal
from openkpu.network.network import Network, NetworkError


def layer(c: int, o: int, seed: int = 1) -> VectorLayer:
    """A 1x1 convolution of a map of 5 x 7, the same bytes for the same numbers."""
    return random_layer(
        np.random.default_rng([seed, c, o]), c=c, h=5, w=7, o=o, kernel=1, pool=0,
        depthwise=False, fc=False, eight_bit=True, signed_in=False,
    )  # fmt: skip


def add(network: Network, of: VectorLayer, *, narrow: bool = False) -> None:
    network.add(of.arg, of.weights, of.bn, of.act, narrow=narrow)


def chain(*channels: int, narrow: bool = False) -> Network:
    """Convolutions one behind the other: each has its own input channels and two more outputs."""
    network = Network()
    for i, c in enumerate(channels):
        add(network, layer(c, c + 2), narrow=narrow and i > 0)
    network.place()
    return network


GOOD = layer(3, 8)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"weights": GOOD.weights.astype(float)}, r"weights: float64(24,), expected uint8(24,)"),
        ({"weights": GOOD.weights.view(np.int8)}, r"weights: int8(24,), expected uint8(24,)"),
        ({"weights": GOOD.weights[:-1]}, r"weights: uint8(23,), expected uint8(24,)"),
        ({"weights": np.append(GOOD.weights, GOOD.weights)}, r"weights: uint8(48,), expected"),
        ({"weights": GOOD.weights.reshape(8, 3)}, r"weights: uint8(8, 3), expected uint8(24,)"),
        ({"weights": list(GOOD.weights.astype(int))}, r"weights: int64(24,), expected"),
        ({"bn": GOOD.bn.astype(float)}, r"bn: float64(8,), expected uint64(8,)"),
        ({"bn": GOOD.bn[:4]}, r"bn: uint64(4,), expected uint64(8,)"),
        ({"act": GOOD.act.astype(np.int64)}, r"act: int64(18,), expected uint64(18,)"),
        ({"act": np.append(GOOD.act, GOOD.act)}, r"act: uint64(36,), expected uint64(18,)"),
        ({"second": -1}, r"second=-1, expected a layer before one that reads two maps"),
    ],
)
def test_add_refuses(changes: dict[str, object], said: str) -> None:
    network = Network()
    tables = {"weights": GOOD.weights, "bn": GOOD.bn, "act": GOOD.act, **changes}
    with pytest.raises(NetworkError) as caught:
        network.add(GOOD.arg, **tables)
    assert str(caught.value).startswith(f"layer 0: {said}")
    assert not (network.layers or network.weights.size or network.narrow or network.seconds)
    add(network, GOOD)
    assert network.weights.dtype == np.uint8 and len(network.layers) == 1


def test_add_refuses_a_second_map_of_later() -> None:
    both = LayerArg.make(
        4, 5, 7, kernel=3, depthwise=True, elementwise=1, image_src2_addr=100, src=0, dst=200
    )
    tables = np.zeros(36, np.uint8), np.zeros(4, np.uint64), np.zeros(18, np.uint64)
    network = Network()
    for second in (0, 3, -2):
        with pytest.raises(NetworkError, match=f"second={second}, expected a layer before"):
            network.add(both, *tables, second)
    network.add(both, *tables, -1)


def test_a_map_that_no_layer_has_is_refused() -> None:
    network = Network()
    add(network, layer(6, 8))
    with pytest.raises(NetworkError) as caught:
        add(network, layer(4, 6))
    assert str(caught.value) == (
        "layer 1: reads (4, 5, 7), the layer before writes (8, 5, 7);"
        " expected that shape, or narrow=True for a part of a map"
    )
    assert len(network.layers) == 1


def test_a_narrow_read_is_asked_for_by_name(tmp_path: Path) -> None:
    """The first four channels of eight, after saving and loading too."""
    network = Network()
    first, second = layer(6, 8), layer(4, 6)
    add(network, first)
    add(network, second, narrow=True)
    network.place()
    x = np.random.default_rng(3).integers(0, 256, (6, 5, 7), dtype=np.uint8)
    run = network.run(x)
    alone = Network.single(second).run(run.layers[0].y[:4].view(np.uint8))
    assert (alone.y == run.y).all()
    network.save(tmp_path / "net.npz")
    again = Network.load(tmp_path / "net.npz")
    assert again.narrow == {1} and (again.run(x).y == run.y).all()
    network.narrow.clear()
    with pytest.raises(NetworkError, match=r"layer 1: reads \(4, 5, 7\) from row \d+ on, where"):
        network.save(tmp_path / "other.npz")
    assert not (tmp_path / "other.npz").exists()


def raised(network: Network) -> None:
    network.layers[1] = network.layers[1].replace(
        image_src_addr=network.layers[1].image_src_addr - 1
    )


def elsewhere(network: Network) -> None:
    network.layers[1] = network.layers[1].replace(image_src_addr=9000)


def overwritten(network: Network) -> None:
    """The last layer reads the input, where the layer before it has written."""
    second, third = network.layers[1:3]
    network.layers[1] = second.replace(image_dst_addr=0)
    network.layers[2] = third.replace(i_ch_num=3, image_src_addr=0)


def narrow_of_none(network: Network) -> None:
    network.narrow = {7}


def floats(network: Network) -> None:
    network.weights = network.weights.astype(float)


def two_dimensions(network: Network) -> None:
    network.biases = network.biases.reshape(2, -1)


def loaded_floats(network: Any) -> None:
    network.layers[1] = network.layers[1].replace(load_map=1)
    network.loaded = {1: np.zeros((5, 5, 7))}


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (raised, "layer 1: reads (5, 5, 7) from row 32757 on, where the map of layer 0 lies"),
        (elsewhere, "layer 1: reads (5, 5, 7) from row 9000 on, where no map lies"),
        (narrow_of_none, "layer 7: a narrow read, but no such layer"),
        (floats, "weights: float64(120,), expected uint8 (n,)"),
        (two_dimensions, "biases: uint8(2, "),
        (loaded_floats, "layer 1: loaded map: float64, expected uint8"),
    ],
)
def test_save_and_load_refuse_the_same(
    change: Callable[[Network], None], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = chain(3, 5, 7)
    network.save(tmp_path / "good.npz")
    change(network)
    path = tmp_path / "net.npz"
    with pytest.raises(NetworkError) as saving:
        network.save(path)
    assert str(saving.value).startswith(said) and not path.exists()
    with monkeypatch.context() as patch:  # the file that an older release would have written
        patch.setattr(Network, "validate", lambda *_: None)
        network.save(path)
    with pytest.raises(NetworkError) as loading:
        Network.load(path)
    assert str(loading.value) == f"{path}: {saving.value}"


def test_a_map_that_was_overwritten_is_none() -> None:
    """Its rows hold another map by then; one beside it is untouched."""
    network = chain(3, 5, 7)
    first, second, third = network.layers
    assert network_rules.reads_fault(network) is None
    network.layers[1] = second.replace(image_dst_addr=first.image_src_addr)
    network.layers[2] = third.replace(image_src_addr=first.image_src_addr)
    assert network_rules.reads_fault(network) is None
    network.layers[2] = network.layers[2].replace(i_ch_num=3)  # as the input had
    fault = network_rules.reads_fault(network)
    assert fault and fault.startswith("layer 2: reads (3, 5, 7) from row 0 on, where the map of")
    network.narrow = {2}  # a part of what lies there now
    assert network_rules.reads_fault(network) is None
    network.layers[2] = network.layers[2].replace(i_ch_num=1000)
    assert network_rules.reads_fault(network), "no part of it"


def test_tables_of_another_layer() -> None:
    network, first = Network(), layer(4, 4)
    add(network, first)
    for number in (-1, 1):
        with pytest.raises(NetworkError, match=f"the tables of layer {number}, expected one of 1"):
            network.add_like(first.arg, number)
    with pytest.raises(
        NetworkError, match="layer 1: has 24 weights, the tables of layer 0 have 16"
    ):
        network.add_like(layer(4, 6).arg, 0)
    with pytest.raises(NetworkError, match=r"layer 1: reads \(4, 5, 6\)"):
        network.add_like(LayerArg.make(4, 5, 6), 0)
    network.add_like(first.arg, 0)
    assert len(network.layers) == 2


# --------------------------------------------------------------------- networks made by hand
def no_layer(network: Any) -> None:
    network.layers.append("conv")


def second_of_none(network: Network) -> None:
    network.seconds = {9: 0}


def second_of_one_map(network: Network) -> None:
    network.seconds = {1: -1}


def loaded_of_none(network: Network) -> None:
    network.loaded = {9: np.zeros((3, 5, 7), np.uint8)}


def loaded_below(network: Network) -> None:
    network.loaded = {-1: np.zeros((3, 5, 7), np.uint8)}


def loaded_list(network: Any) -> None:
    network.layers[1] = network.layers[1].replace(load_map=1)
    network.loaded = {1: [1, 2]}


def third_width(network: Any) -> None:
    network.eight_bit = 2


def width_in_words(network: Any) -> None:
    network.eight_bit = "no"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (no_layer, "layer 3: str, expected a LayerArg"),
        (second_of_none, "layer 9: second=0, expected a layer before one that reads two maps"),
        (second_of_one_map, "layer 1: second=-1, expected a layer before one that reads two"),
        (loaded_of_none, "layer 9: a loaded map, but no such layer"),
        (loaded_below, "layer -1: a loaded map, but no such layer"),
        (loaded_list, "layer 1: loaded map: list, expected uint8"),
        (third_width, "eight_bit: 2, expected 0 or 1"),
        (width_in_words, "eight_bit: 'no', expected 0 or 1"),
    ],
)
def test_save_refuses_what_is_no_network(
    change: Callable[[Network], None], said: str, tmp_path: Path
) -> None:
    network = chain(3, 5, 7)
    change(network)
    with pytest.raises(NetworkError) as saving:
        network.save(tmp_path / "net.npz")
    assert str(saving.value).startswith(said) and not (tmp_path / "net.npz").exists()


@pytest.mark.parametrize("change", [no_layer, second_of_none, second_of_one_map])
def test_place_refuses_what_is_no_network(change: Callable[[Network], None]) -> None:
    network = chain(3, 5, 7)
    change(network)
    with pytest.raises(NetworkError, match=r"^layer [0-9]: "):
        network.place()


def test_a_network_without_layers() -> None:
    x = np.zeros((1, 2, 2), np.uint8)
    for use in (
        Network.place,
        lambda network: network.run(x),
        lambda network: network.storage(x[None]),
    ):
        with pytest.raises(NetworkError, match=r"^0 layers, expected at least one"):
            use(Network())


@pytest.mark.parametrize("dtype", [float, np.int64, np.uint16, bool])
def test_maps_are_bytes(dtype: type) -> None:
    """The golden model would use 44 for 300, without an error."""
    network = chain(3, 5, 7)
    x = np.full(network.in_shape, 300).astype(dtype)
    said = f": {np.dtype(dtype)}, expected uint8 or int8"
    with pytest.raises(NetworkError, match=f"^input{said}"):
        network.run(x)
    with pytest.raises(NetworkError, match=f"^images{said}"):
        network.storage(x[None])
    with pytest.raises(NetworkError, match=r"^images .*, the network expects"):
        network.storage(x[None][:0].astype(np.uint8))


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("eight_bit", np.array("no"), "eight_bit: array('no'"),
        ("eight_bit", np.array(7), "eight_bit: array(7), expected 0 or 1"),
        ("eight_bit", np.array(np.nan), "eight_bit: array(nan), expected 0 or 1"),
        ("eight_bit", np.array([1, 1]), "eight_bit: array([1, 1]), expected 0 or 1"),
        ("kept", np.array([[0.5, 2000.7]]), "kept: float64(1, 2), expected whole numbers (n, 2)"),
        ("kept", np.array([1, 2]), "kept: int64(2,), expected whole numbers (n, 2)"),
        ("kept", np.array([[0, 9000], [0, 9100]]), "kept: a layer is there twice"),
        ("narrow", np.array([0.9]), "narrow: float64(1,), expected whole numbers (n,)"),
        ("narrow", np.array([[1]]), "narrow: int64(1, 1), expected whole numbers (n,)"),
        ("narrow", np.array("a"), "narrow: <U1(), expected whole numbers (n,)"),
        ("relayed", np.array("abc"), "relayed: <U3(), expected whole numbers (n, 3)"),
        ("loaded_99999999999", np.zeros((1, 1, 1), np.uint8), "layer 99999999999: a loaded map"),
    ],
)
def test_load_refuses_arrays_of_other_kinds(
    name: str, value: np.ndarray, said: str, tmp_path: Path
) -> None:
    path = tmp_path / "net.npz"
    chain(3, 5, 7).save(path)
    np.savez(path, **{**np.load(path), name: value})
    with pytest.raises(NetworkError) as loading:
        Network.load(path)
    assert said in str(loading.value) and str(loading.value).startswith(f"{path}: ")


LAYERS: dict[str, Callable[..., VectorLayer]] = {
    "layer": random_layer,
    "elementwise": random_elementwise,
    "product": random_product,
    "pool": random_pool,
    "float16": random_fp16,
}
LACKING = {
    "pool": "a pooling task, configuration lite_fpga has pool_lanes = 0",
    "product": "sums of 32 bits, configuration lite_fpga has out32 = 0",
    "float16": "a product of float16, configuration lite_fpga has fp16_lanes = 0",
}


@pytest.mark.parametrize("kind", LAYERS)
def test_a_layer_alone(kind: str) -> None:
    """A device with everything runs each kind; what one lacks is named."""
    whole, less = configs.load_config("k210_fp16"), configs.load_config("lite_fpga")
    less = dataclasses.replace(less, ai_ram_rows=whole.ai_ram_rows, wbuf_rows=whole.wbuf_rows)
    for seed in range(20):
        rng = np.random.default_rng(seed)
        layer = LAYERS[kind](rng, limits=Limits(channels=16, size=16))
        assert refusal(layer.arg, whole, eight_bit=layer.eight_bit) is None, seed
        said = refusal(layer.arg, less, eight_bit=layer.eight_bit)
        assert said == LACKING.get(kind), seed
        few = dataclasses.replace(whole, ai_ram_rows=16)
        assert "AI RAM has 16" in str(refusal(layer.arg, few, eight_bit=layer.eight_bit)), seed


def test_a_layer_alone_that_does_not_load() -> None:
    config = configs.load_config("k210")
    layer = random_layer(np.random.default_rng(1), limits=Limits(channels=16, size=16))
    assert refusal(layer.arg, config, eight_bit=True) is None or not layer.eight_bit
    narrow = dataclasses.replace(config, weight_bits=8)
    assert refusal(layer.arg, narrow, eight_bit=False) == (
        "16-bit weights, configuration k210 takes 8-bit ones"
    )
    arg = layer.arg.replace(para_size=1)
    assert str(refusal(arg, config, eight_bit=True)).startswith("BAD_WEIGHTS: ")
