# SPDX-License-Identifier: Apache-2.0
"""Element-wise layers against plain numpy, and against float arithmetic of quantised maps."""

import numpy as np
import pytest

from openkpu.arithmetic.params import ActTable, BatchNorm
from openkpu.generators.generate import Limits, random_network
from openkpu.generators.generate_tasks import on_maps, random_elementwise
from openkpu.layer import airam
from openkpu.layer.argument import LayerArg, LayerError
from openkpu.layer.elementwise import ADD, MAXIMUM, MINIMUM, MULTIPLY
from openkpu.layer.golden import run_layer
from openkpu.layer.vectors import VectorError, load_file, save_file
from openkpu.network.network import Network, NetworkError

LOWEST = -(1 << 35)


def alu(arg: LayerArg, a: np.ndarray, b: np.ndarray | None, weights: np.ndarray) -> np.ndarray:
    """What batch norm gets, from the golden model."""
    count = arg.o_ch_num
    tables = BatchNorm.make(np.ones(count), 0, 0).pack(), ActTable.make(LOWEST, 0, 0, 0).pack()
    raw = weights.astype(np.uint8).reshape(-1)
    return run_layer(arg, a, raw, *tables, x2=b, debug=True).alu


def layer(op: int, *, c: int = 3, h: int = 4, w: int = 5, **fields: int) -> LayerArg:
    kind = {"kernel": 3, "depthwise": True, "elementwise": 1, "ew_op": op}
    return LayerArg.make(c, h, w, src=0, image_src2_addr=100, dst=200, **kind, **fields)


def maps(seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, y = (rng.integers(0, 256, (3, 4, 5)).astype(np.uint8) for _ in range(2))
    x[0, 0], y[0, :, 0] = 0, 255
    return x, y


def kernel(**at: int) -> np.ndarray:
    """Nine weights for three channels; pad, a, b by name, noise in the others."""
    found = np.random.default_rng(2).integers(0, 256, (3, 9))
    for name, place in (("pad", 1), ("a", 4), ("b", 8)):
        found[:, place] = at.get(name, 0)
    return found


@pytest.mark.parametrize(
    ("op", "want"),
    [
        (ADD, lambda p, a, b: p + a + b),
        (MAXIMUM, lambda p, a, b: np.maximum(p + a, b)),
        (MINIMUM, lambda p, a, b: np.minimum(p + a, b)),
    ],
)
def test_operations(op: int, want) -> None:
    a, b = maps()
    arg = layer(op, pad_value=7)
    found = alu(arg, a, b, kernel(pad=3, a=5, b=11))
    assert (found == want(21, 5 * a.astype(int), 11 * b.astype(int))).all()


def test_difference_and_product_of_quantised_maps() -> None:
    """The numbers that docs/kpu.md 1.9 gives for them are exact, whatever the zero points."""
    a, b = (m.astype(int) for m in maps())
    arg = layer(ADD, arg_x=-40)
    found = alu(arg, a.astype(np.uint8), b.astype(np.uint8), kernel(a=41, b=39))
    assert (found == a - b).all()
    for za, zb in ((0, 0), (3, 1), (255, 255), (255, 0), (128, 128), (200, 9)):
        n = max(zb, (za + 1) // 2)
        arg = layer(MULTIPLY, arg_x=-n, arg_add=za * zb)
        found = alu(arg, a.astype(np.uint8), b.astype(np.uint8), kernel(a=n - zb, b=2 * n - za))
        assert (found == (a - za) * (b - zb)).all(), (za, zb)


def test_a_constant_for_each_channel() -> None:
    """One map: pad_value stands for the second one's pixels."""
    a, _ = maps()
    weights = kernel(a=1)
    weights[:, 8] = [10, 20, 30]
    found = alu(layer(MAXIMUM, ew_one=1, pad_value=5), a, None, weights)
    assert (found == np.maximum(a, np.array([50, 100, 150])[:, None, None])).all()


def test_negative_pixels_count_as_nothing() -> None:
    a, b = maps()
    found = alu(layer(MULTIPLY, signed_in=1, pad_value=200), a, b, kernel(pad=9, a=2, b=3))
    first, second = (np.where(m < 128, m, 0).astype(int) for m in (a, b))
    assert (found == 2 * first + 3 * second + first * second).all()


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"depth_wise_layer": 0}, "BAD_FLAGS"),
        ({"kernel_type": 0}, "BAD_KERNEL"),
        ({"image_src2_addr": 32766}, "BAD_ADDR"),
        ({"image_src2_addr": 199}, "BAD_ADDR"),  # the output begins behind its first row
    ],
)
def test_refused(fields: dict[str, int], code: str) -> None:
    arg = layer(ADD).replace(**fields)
    with pytest.raises(LayerError) as caught:
        arg.validate(strict=False)
    assert caught.value.code == code


def test_on_its_own_rows() -> None:
    """An output on the rows of either map, or before them, is exact."""
    for src, other in ((200, 300), (300, 200), (202, 200), (200, 200)):
        arg = layer(ADD).replace(image_src_addr=src, image_src2_addr=other)
        assert arg.maps_meet
        arg.validate(strict=False)


def test_number_of_maps_is_checked() -> None:
    a, b = maps()
    with pytest.raises(ValueError, match="2 maps"):
        alu(layer(ADD), a, None, kernel())
    with pytest.raises(ValueError, match="1 maps"):
        alu(layer(ADD, ew_one=1), a, b, kernel())


def test_layers_of_a_network_before_it_is_placed() -> None:
    """Their output never lies on their input, whatever is drawn."""
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x = rng.integers(0, 256, (64, 32, 64)).astype(np.uint8)
        arg = on_maps(rng, x, x, False, True).arg
        assert arg.in_shape == x.shape and not arg.maps_meet, seed


def test_vector_files(tmp_path) -> None:
    made = [random_elementwise(np.random.default_rng(n), one=bool(n % 2)) for n in range(4)]
    save_file(tmp_path / "two.npz", made)
    for old, new in zip(made, load_file(tmp_path / "two.npz"), strict=True):
        assert len(new.maps) == len(old.maps)
        assert all((a == b).all() for a, b in zip(old.maps, new.maps, strict=True))
    with np.load(tmp_path / "two.npz") as data:
        rest = {name: data[name] for name in data.files if name != "L00_x2"}
    np.savez(tmp_path / "less.npz", **rest)
    with pytest.raises(VectorError, match="L00_x2: expected in the file"):
        load_file(tmp_path / "less.npz")


def test_networks_keep_the_maps_they_need(tmp_path) -> None:
    """Placed in little room and in much, saved and read: the same result; too little is refused."""
    met = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        limits = Limits(channels=8, size=20)
        network, x = random_network(
            rng, shape=(3, 9, 14), layers=6, two_maps=on_maps, limits=limits
        )
        met += len(network.seconds)
        want = network.run(x).y
        for rows in (32768, 300):
            network.place(rows)
            assert (network.run(x).y == want).all()
        network.save(tmp_path / "net.npz")
        again = Network.load(tmp_path / "net.npz")
        again.place(400, keep_input=False)
        assert (again.run(x).y == want).all()
    assert met > 5, f"{met} layers of two maps"
    with pytest.raises(NetworkError, match="do not fit 20 rows"):
        network.place(20)


def test_a_residual_block() -> None:
    """x + f(x): the input keeps its place until it is added."""
    rng = np.random.default_rng(4)
    network, x = random_network(
        rng, shape=(4, 6, 6), layers=1, fc_last=False, limits=Limits(4, 6, (0,))
    )
    while network.out_shape != x.shape:
        network, x = random_network(
            rng, shape=(4, 6, 6), layers=1, fc_last=False, limits=Limits(4, 6, (0,))
        )
    inner = network.run(x).y
    both = random_elementwise(rng, x=inner, x2=x, op=ADD, one=False, pool=0, eight_bit=True)
    network.add(both.arg, both.weights, both.bn, both.act, -1)
    network.place()
    first, last = network.layers
    assert last.image_src2_addr == first.image_src_addr
    ram = airam.new_ram()
    assert (network.run(x, ram=ram).y == both.y).all()
