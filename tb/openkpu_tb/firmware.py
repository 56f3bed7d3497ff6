# SPDX-License-Identifier: Apache-2.0
"""The files of a network for the driver's native tests (tb/soc/driver_tests.c)."""

from pathlib import Path

import numpy as np

from openkpu.configs import Config
from openkpu.export import source
from openkpu.export.image import Image, image
from openkpu.network.network import Network

IMAGES = 4


def words(made: Image) -> np.ndarray:
    """Layer arguments (n, 12) for the argument FIFO: addresses of the tables in storage."""
    at_list, at_weights, at_biases = made.data[:128].view("<u4")[10:13] + made.base
    del at_list
    return np.stack(
        [
            arg.replace(
                para_start_addr=arg.para_start_addr + int(at_weights),
                bwsx_base_addr=arg.bwsx_base_addr + int(at_biases),
                active_addr=arg.active_addr + int(at_biases),
                int_en=0,
                send_data_out=0,
            ).encode()
            for arg in made.network.layers
        ]
    )


def write_firmware(
    folder: Path, network: Network, config: Config, inputs: np.ndarray, base: int
) -> None:
    """Image, inputs, golden results, layer words, golden maps of the first input, and row,
    channels, height, width of each map."""
    found = source.of_network(network)
    made = image(network, config, base, found.tensors, IMAGES)
    golden = [network.run(x) for x in inputs]
    layouts = [network.layers[0].in_layout, *(arg.out_layout for arg in network.layers)]
    places = [(m.base, m.channels, m.height, m.width) for m in layouts]
    contents = {
        "net.bin": made.data,
        "inputs": inputs,
        "results": np.stack([g.y.view(np.uint8) for g in golden]),
        "words": words(made),
        "maps": np.concatenate([r.y.view(np.uint8).reshape(-1) for r in golden[0].layers]),
        "places": np.array(places, dtype="<u4"),
    }
    for name, content in contents.items():
        (folder / name).write_bytes(np.ascontiguousarray(content).tobytes())
