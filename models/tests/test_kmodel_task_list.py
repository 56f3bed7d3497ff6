# SPDX-License-Identifier: Apache-2.0
"""K210 models as one task list: the same bytes as layer by layer; what is none is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from models.tests import test_kmodel_containers as containers
from openkpu import configs, kmodel
from openkpu.kmodel.build import build_v0, build_v1, chain_layers
from openkpu.kmodel.residence.one_list import read_task_list

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
