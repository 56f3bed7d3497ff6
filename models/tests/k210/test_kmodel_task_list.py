# SPDX-License-Identifier: Apache-2.0
"""K210 models as one task list: the same bytes as layer by layer; what is none is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.tests.kmodel import test_kmodel_containers as containers
from openkpu import configs, kmodel
from openkpu.kmodel.build import build_v0, build_v1, chain_layers
from openkpu.kmodel.residence.one_list import read_task_list, with_input_apart
from openkpu.layer.argument import LayerArg
from openkpu.layer.layout import AI_RAM_ROWS, Layout
from openkpu.network.network import Network

K210 = configs.load_config("k210")
MODELS = {"v0": build_v0, "v1": build_v1}


@pytest.mark.parametrize("name", ["v0", "v0_16bit", "v1", "v4", "v4_upload"])
def test_same_bytes_as_layer_by_layer(name: str, tmp_path: Path) -> None:
    """Of the last map, for maps that no container's author has seen."""
    path = tmp_path / "model.kmodel"
    path.write_bytes(containers.CONTAINERS[name])
    network = read_task_list(path, K210)
    network.validate()
    assert network.eight_bit is ("16bit" not in name)
    x = np.random.default_rng(3).integers(0, 256, network.in_shape, dtype=np.uint8)
    maps: list[np.ndarray] = []
    program = kmodel.load_kmodel(path)
    given = x.reshape(program.inputs[0].shape)

    def keep(event: kmodel.LayerEvent) -> None:
        assert event.golden is not None
        maps.append(event.golden.y)

    kmodel.run_kmodel(program, [given], hook=keep)
    run = network.run(x)
    for expected, layer in zip(maps, run.layers, strict=True):
        np.testing.assert_array_equal(layer.y, expected)
    np.testing.assert_array_equal(run.y, maps[-1])


def test_maps_for_the_host_in_the_middle(tmp_path: Path) -> None:
    """One line that counts the runs."""
    path = tmp_path / "middle.kmodel"
    path.write_bytes(containers.v3_bytes())
    with pytest.raises(kmodel.KmodelError, match=r"middle.kmodel: .* 2 runs of layers"):
        read_task_list(path, K210)


@pytest.mark.parametrize("version", MODELS)
def test_one_layer(version: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    x = rng.integers(0, 256, (2, 9, 12), dtype=np.uint8)
    shape = {"o": 3, "kernel": 3, "pool": 1, "depthwise": False, "per_load": 3}
    (layer,) = chain_layers(rng, [shape], x)
    path = tmp_path / "one.kmodel"
    path.write_bytes(MODELS[version]([layer]))
    np.testing.assert_array_equal(read_task_list(path, K210).run(x).y, layer.y)


# ------------------------------------------------------------- the input's place in a stream
def meet(one: Layout, other: Layout) -> bool:
    """Have they a row in common?"""
    rows = [set(range(m.base, m.base + m.rows)) for m in (one, other)]
    return bool(rows[0] & rows[1])


def on_the_input(network: Network) -> list[int]:
    """Layers whose result lies on the input's rows."""
    given = network.layers[0].in_layout
    return [n for n, arg in enumerate(network.layers) if meet(arg.out_layout, given)]


@pytest.mark.parametrize("name", ["v0", "v1", "v4"])
def test_next_image_has_a_place(name: str, tmp_path: Path) -> None:
    """The containers' second layer writes over the input; in the list none does."""
    path = tmp_path / "model.kmodel"
    path.write_bytes(containers.CONTAINERS[name])
    file = [op.arg for op in kmodel.load_kmodel(path).kpu_layers]
    assert any(meet(arg.out_layout, file[0].in_layout) for arg in file)
    assert not on_the_input(read_task_list(path, K210))


def chain(*shapes: tuple[tuple[int, int, int], int, int]) -> list[LayerArg]:
    """1x1 layers: shape, row of the input, of the result."""
    rng = np.random.default_rng(2)
    found = []
    for shape, src, dst in shapes:
        x = rng.integers(0, 256, shape, dtype=np.uint8)
        how = {"o": shape[0], "kernel": 1, "pool": 0, "depthwise": False, "per_load": shape[0]}
        (layer,) = chain_layers(rng, [how], x)
        found.append(layer.arg.replace(image_src_addr=src, image_dst_addr=dst))
    return found


MAP = (4, 8, 64)  # 32 rows


def test_readers_of_the_input_move_with_it() -> None:
    """All up to the layer that overwrites it; behind that, its rows are another map."""
    args = chain((MAP, 0, 100), (MAP, 0, 200), (MAP, 200, 0), (MAP, 0, 300))
    given, moved = with_input_apart(args[0].in_layout, args, AI_RAM_ROWS)
    assert given.base == 332 and not any(meet(a.out_layout, given) for a in moved)
    assert [a.image_src_addr for a in moved] == [332, 332, 200, 0]
    assert [a.image_dst_addr for a in moved] == [100, 200, 0, 300]


@pytest.mark.parametrize(
    ("args", "rows"),
    [
        (chain((MAP, 0, 32), (MAP, 32, 0)), 95),
        (chain((MAP, 0, 100), (MAP, 100, 200)), AI_RAM_ROWS),
        (chain((MAP, 0, 100), ((4, 4, 64), 16, 200), (MAP, 200, 0)), AI_RAM_ROWS),
        (chain((MAP, 0, 100), ((2, 8, 64), 100, 0), ((2, 8, 64), 16, 200)), AI_RAM_ROWS),
    ],
    ids=["31 rows are left", "nothing on it", "a part is read", "what is left of it is read"],
)
def test_input_that_stays(args: list[LayerArg], rows: int) -> None:
    given = args[0].in_layout
    assert with_input_apart(given, args, rows) == (given, args)
