# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of the whole device; tb/uvm/test_uvm.py runs them on both simulators.

Every test ends with the scoreboard's verdict (all bytes as the golden model says) and with no bus
rule broken.
"""

from pathlib import Path

import cocotb
import numpy as np
import pyuvm

from openkpu import digits
from openkpu.arithmetic.integers import round_up
from openkpu.generators.generate import Limits, random_layer
from openkpu.layer.argument import LayerArg
from openkpu.layer.vectors import VectorLayer, load_cases
from openkpu.network.network import Network
from openkpu_tb.ahb.host_agent import Transfer
from openkpu_tb.core.registers import AI, AI_RAM, FIFO_DATA_OUT, Err
from openkpu_tb.device.device import DeviceError, Tables
from openkpu_tb.uvm.base_test import DeviceTest

VECTORS = Path(__file__).resolve().parents[2] / "models/tests/data/vectors"
LIMIT = 2_000_000  # cycles of any single wait
SMALL = Limits(channels=8, size=16)


class JobTest(DeviceTest):
    """Layers and networks, each compared with its record or the golden model at once."""

    # ------------------------------------------------------------ what they do
    async def layer(self, layer: VectorLayer) -> None:
        """Host push of one recorded layer; its map is compared with the record too."""
        tables = Tables(layer.weights, layer.bn, layer.act)
        y, unknown = await self.device.run_layer(
            layer.arg, tables, layer.x, eight_bit=layer.eight_bit, limit=LIMIT
        )
        assert not unknown.any() and (y == layer.y.view(np.uint8)).all(), layer.title

    async def network(
        self, network: Network, images: np.ndarray, base: int = 0
    ) -> list[np.ndarray]:
        """Task-list inferences, one after the other; returns their results."""
        storage = network.storage(images, base=base)
        await self.device.back.load_storage(base, storage.data)
        results = []
        for number in range(len(images)):
            registers = dict(storage.registers)
            registers["AI_PIX_ADR"] += number * registers["AI_PIX_STRIDE"]
            registers["AI_RES_ADR"] = storage.results[number]
            await self.device.configure(registers)
            await self.device.start()
            await self.device.finish(LIMIT)
            size = int(np.prod(network.out_shape))
            y, unknown = await self.device.back.read_storage(storage.results[number], size)
            assert not unknown.any()
            golden = network.run(images[number]).y.view(np.uint8).reshape(-1)
            assert (y == golden).all(), f"image {number}"
            results.append(y)
        return results

    async def refused(self, arg: LayerArg, code: int) -> None:
        """A layer that the device must refuse, pushed by the host."""
        await self.device.push([int(w) for w in arg.replace(int_en=1).encode()])
        try:
            await self.device.finish(LIMIT)
        except DeviceError as error:
            assert error.code == code, f"{error}, expected {Err(code).name}"
            return
        raise AssertionError(f"no error, expected {Err(code).name}")


def vectors(*names: str) -> list[VectorLayer]:
    return load_cases([VECTORS / f"{name}.npz" for name in names])


def a_network(count: int) -> tuple[Network, np.ndarray]:
    """(network, images): digits, or on the slow simulator two small layers."""
    if "icarus" not in cocotb.SIM_NAME.lower():
        return digits.load_network(), digits.load_data()[1].pixels[:count]
    rng = np.random.default_rng(7)
    network = Network()
    convolution = random_layer(
        rng, c=2, h=6, w=6, o=5, kernel=3, pool=1, depthwise=False, fc=False, eight_bit=True
    )
    dense = random_layer(rng, c=5, h=3, w=3, o=4, fc=True, eight_bit=True)
    pointwise = random_layer(rng, c=4, h=1, w=1, o=3, kernel=1, pool=0, depthwise=False, fc=False)
    for layer in (convolution, dense, pointwise):
        network.add(layer.arg, layer.weights, layer.bn, layer.act)
    network.place()
    return network, rng.integers(0, 256, (count, 2, 6, 6), dtype=np.uint8)


@pyuvm.test()
class LayersTest(JobTest):
    """Layers pushed by the host: committed vectors and random ones."""

    async def scenario(self) -> None:
        for layer in vectors("raw_pool0", "raw_pool9", "raw_depthwise", "raw_16bit", "rand_5000"):
            if layer.arg.weight_count * layer.arg.i_col_high * layer.arg.i_row_wid < 200_000:
                await self.layer(layer)
        rng = np.random.default_rng(cocotb.RANDOM_SEED)
        for number in range(6):
            await self.layer(random_layer(rng, name=f"random{number}", limits=SMALL))


@pyuvm.test()
class NetworksTest(JobTest):
    """Inference twice, two networks in turn, a host's layer in between, all without reset."""

    async def scenario(self) -> None:
        network, images = a_network(2)
        short = Network(network.layers[:2], network.weights, network.biases)
        first = await self.network(network, images[:1])
        await self.network(short, images[1:], base=0x8000)
        again = await self.network(network, images[:1], base=0x4)
        assert (first[0] == again[0]).all()
        await self.layer(vectors("raw_pool1")[0])
        await self.network(network, images[1:])


@pyuvm.test()
class ErrorsTest(JobTest):
    """Every kind of layer that is refused, and a bus error: code, interrupt, and the device works
    again. Bad starts and accesses are those of the misbehaviour sequences."""

    async def scenario(self) -> None:
        good = vectors("raw_pool0")[0]
        arg = await self.device.place_tables(good.arg, Tables(good.weights, good.bn, good.act))
        meet = arg.replace(image_dst_addr=arg.image_src_addr + arg.in_layout.rows - 1)
        bad = {
            Err.BAD_SIZE: [arg.replace(o_row_wid=arg.o_row_wid + 1), arg.replace(i_col_high=512)],
            Err.BAD_ADDR: [
                arg.replace(image_dst_addr=32767),
                arg.replace(image_src_addr=32767),
                meet,
                arg.replace(image_dst_addr=arg.image_src_addr),
            ],
            Err.BAD_POOL: [arg.replace(pool_type=10), arg.replace(pool_type=15)],
            Err.BAD_KERNEL: [arg.replace(kernel_type=2), arg.replace(kernel_type=7)],
            Err.BAD_FLAGS: [arg.replace(depth_wise_layer=1, fc=1)],
        }
        for code, layers in bad.items():
            for layer in layers:
                await self.refused(layer, code)
            await self.layer(good)
        await self.list_with_bad_layer()
        await self.bus_errors(good)
        await self.layer(good)

    async def list_with_bad_layer(self) -> None:
        """The index of the layer is told; nothing is stored; the next start works."""
        network, images = a_network(1)
        layers = list(network.layers)
        layers[2] = layers[2].replace(pool_type=12)
        storage = Network(layers, network.weights, network.biases).storage(images)
        await self.device.back.load_storage(0, storage.data)
        await self.device.configure(storage.registers)
        await self.device.start()
        try:
            await self.device.finish(LIMIT)
            raise AssertionError("the bad layer was not refused")
        except DeviceError as error:
            assert (error.code, error.layer) == (Err.BAD_POOL, 2), error
        await self.device.back.read_storage(storage.results[0], 8)
        await self.network(network, images)

    async def bus_errors(self, good: VectorLayer) -> None:
        """ERROR answers: the address is told."""
        window = 0x140
        self.tb.cfg_err_lo.value, self.tb.cfg_err_hi.value = window, window + 4
        try:
            await self.layer(good)
            raise AssertionError("the bus error went unnoticed")
        except DeviceError as error:
            assert error.code == Err.BUS_ERROR, error
            assert error.addr & ~3 == window, error
        self.tb.cfg_err_hi.value = 0
        await self.layer(good)


@pyuvm.test()
class WindowTest(JobTest):
    """The AI RAM through the host's window, in bytes, half-words and words, and a map loaded so."""

    async def scenario(self) -> None:
        rng = np.random.default_rng(cocotb.RANDOM_SEED)
        base = 64 * 100
        await self.device.back.load_ram(100, rng.integers(0, 256, 512, dtype=np.uint8))
        writes = []
        for _ in range(100):
            size = int(rng.integers(0, 3))
            offset = int(rng.integers(0, 512 >> size)) << size
            data = int(rng.integers(0, 1 << (8 << size)))
            writes.append(Transfer(AI_RAM + base + offset, True, data, size))
        await self.device.transfer(*writes)
        data, _ = await self.device.back.read_ram(100, 8)
        reads = []
        for size in (0, 1, 2):
            for offset in range(0, 64, 1 << size):
                reads.append(Transfer(AI_RAM + base + offset, False, 0, size))
        for transfer in await self.device.transfer(*reads):
            offset = transfer.addr - AI_RAM - base
            expected = int.from_bytes(bytes(data[offset : offset + (1 << transfer.size)]), "little")
            assert transfer.data == expected, f"{transfer.addr:#x}"


@pyuvm.test()
class StreamTest(JobTest):
    """A layer with send_data_out: its map comes out of fifo_data_out, dense, eight bytes a word."""

    async def scenario(self) -> None:
        layer = vectors("raw_pool7")[0]
        device = self.device
        arg = await device.place_tables(layer.arg, Tables(layer.weights, layer.bn, layer.act))
        arg = arg.replace(int_en=1, send_data_out=1)
        await device.load_map(arg.in_layout, layer.x)
        await device.write_many({0x40: 1, 0x44: 0})
        await device.push([int(w) for w in arg.encode()])
        got = bytearray()
        size = layer.y.size
        for _ in range(LIMIT // 100):
            status = await device.read(AI["AI_STATUS"])
            for _ in range(status >> 16 & 31):
                low, high = await device.transfer(
                    Transfer(FIFO_DATA_OUT, False), Transfer(FIFO_DATA_OUT + 4, False)
                )
                got += low.data.to_bytes(4, "little") + high.data.to_bytes(4, "little")
            if len(got) >= size:
                break
        await device.finish(LIMIT)
        assert bytes(got[:size]) == layer.y.tobytes()
        assert len(got) == round_up(size, 8) and not any(got[size:])
        await device.read_map(arg.out_layout)
