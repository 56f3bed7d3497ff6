# SPDX-License-Identifier: Apache-2.0
"""A task of each kind that is refused, in lists of all kinds, single and as a stream.

The tasks before it are done, to the last byte of their maps; it and those behind it write nothing,
no result is stored, the error tells its number. The same list without the fault then runs exactly.
"""

import numpy as np

from openkpu import configs
from openkpu.generators.generate import Limits
from openkpu.generators.generate_lists import ALL_KINDS, KINDS, random_list
from openkpu.layer.argument import LayerArg
from openkpu.network.network import Network
from openkpu_tb.device.device import Device
from openkpu_tb.device.inference_stream import (
    prepare_stream,
    run_one_by_one,
    run_stream,
    stream_error,
)
from openkpu_tb.device.shadow import Shadow
from openkpu_tb.device.simulation import rng
from tb.device.checked import checked
from tb.device.hostile.timeline import Findings

LIMIT = 400_000  # cycles of an inference
IMAGES = 2
SPOILT: dict[str, tuple[dict[str, int], ...]] = {
    "convolution": ({"kernel_type": 5}, {"load_time": 63}),
    "fully connected": ({"pool_type": 1}, {"depth_wise_layer": 1}),
    "product": ({"pool_type": 1}, {"fc": 1}),
    "element-wise": ({"kernel_type": 0}, {"depth_wise_layer": 0}),
    "pool": ({"pool_task": 7}, {"fc": 1}),
    "float16": ({"pool_type": 1}, {"in_xor": 1}),
}
ANY = ({"image_dst_addr": 32767}, {"o_row_wid": 1000})  # of every kind


def refused(arg: LayerArg, ram_rows: int, wbuf_rows: int) -> int:
    """The code that the golden model gives for an argument, 0 for a legal one."""
    config = configs.load_config("nano_fp16")  # for arrays alike
    return arg.device_code(
        eight_bit=True,
        ram_rows=ram_rows,
        weight_bits=config.weight_bits,
        weight_rows=wbuf_rows,
        n_z=config.n_z,
        fp16_lanes=config.fp16_lanes,
    )


async def trial(
    device: Device, network: Network, images: np.ndarray, at: int, arg: LayerArg, code: int
) -> list[str]:
    """What is wrong with a run whose task ``at`` is ``arg``, and with the one behind it."""
    shadow = device.back
    assert isinstance(shadow, Shadow)
    tasks = [*network.layers[:at], arg, *network.layers[at + 1 :]]
    broken = Network(tasks, network.weights, network.biases, network.eight_bit)
    stream = len(images) > 1
    await prepare_stream(device, broken, images, continuous=stream)
    error = await stream_error(device, len(images), LIMIT)
    told = (error.code, error.layer) == (code, at)
    wrong = [] if told else [f"{error}, expected code {code} of task {at}"]
    before = Network(network.layers[:at], network.weights, network.biases, network.eight_bit)
    if at:
        before.run(images[0], ram=shadow.ram)
        wrong += await shadow.differences()
    else:  # the image is read before the task is refused, or is not
        await shadow.differences()
    golden = np.stack([network.run(image, ram=shadow.ram).stored for image in images])
    way = run_stream if stream else run_one_by_one
    run = await way(device, network, images, limit=LIMIT, golden=golden)
    if run.wrong.any():
        wrong.append(f"behind it, bytes that differ: {run.wrong.tolist()}")
    storage = network.storage(images, continuous=stream, align=16)
    for place, result in zip(storage.results, golden, strict=True):
        shadow.expect_result(place, result)
    return [*wrong, *(f"behind it: {line}" for line in await shadow.differences())]


@checked()
async def every_kind_refused(tb, device: Device) -> None:
    """Each kind by two faults of its own and two of all kinds, in a list of random order."""
    kinds = ALL_KINDS if int(tb.fp16_lanes.value) else KINDS
    random = rng()
    device.back = shadow = Shadow(tb)
    await shadow.fill(random)
    rows, wbuf = shadow.ram_rows, configs.load_config("nano").wbuf_rows
    found, number = Findings("faults of tasks"), 0
    for kind in kinds:
        for fault in (*SPOILT[kind], *ANY):
            for _ in range(50):  # the last row is far enough for a map of one
                order = [str(name) for name in random.permutation(kinds)]
                shape = tuple(int(n) for n in random.integers((2, 3, 3), (6, 9, 20)))
                few = Limits(channels=6)
                if "float16" in kinds:  # the image is a matrix that a product can read
                    shape = shape[0], 1, 2 * shape[2]
                network, image = random_list(random, order, shape, limits=few, ram_rows=rows)
                at = order.index(kind)
                arg = network.layers[at].replace(**fault)
                code = refused(arg, rows, wbuf)
                if code:
                    break
            assert code, f"{kind}: {fault} is legal: {arg}"
            more = random.integers(0, 256, (IMAGES - 1, *shape), dtype=np.uint8)
            images = image[None] if number % 2 else np.concatenate([image[None], more])
            number += 1
            wrong = await trial(device, network, images, at, arg, code)
            found.check(not wrong, f"{kind}, {fault}, task {at} of {order}: {'; '.join(wrong)}")
    found.verdict()
