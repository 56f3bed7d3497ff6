# SPDX-License-Identifier: Apache-2.0
"""pyuvm tests of the registers through the register model, volatile ones included."""

import pyuvm
from pyuvm import uvm_check_e, uvm_reg, uvm_reg_data_t, uvm_status_e

from openkpu.layer.regmap import OFFSETS
from openkpu_tb.core.registers import Err
from openkpu_tb.uvm.base_test import DeviceTest
from openkpu_tb.uvm.sequences.job import StreamSequence

UNMASKED = {"interrupt_mask": 6, "AI_INT_MASK": 0}  # what Device.reset has written
CONSTANT = ("AI_ID", "AI_CONFIG")  # their values are the configuration's
PLAIN = (
    "AI_PIX_ADR",
    "AI_WGT_ADR",
    "AI_LIST_ADR",
    "AI_LIST_LEN",
    "AI_PIX_STRIDE",
    "fifo_threshold",
)
# written by the host and by the device: they hold what was written while the device is idle
MOVING = {"AI_NPIX_ADR": ~0, "AI_RES_ADR": ~15, "AI_RES_STRIDE": ~15, "AI_INF_LEFT": ~0}
MOVING |= {"AI_CNN_MODE": ~0, "AI_PIX_ADR": ~0}


class RegisterTest(DeviceTest):
    """Base: reads that must be answered."""

    least_bytes = 0

    async def value(self, register: uvm_reg) -> int:
        """A read of the front door."""
        status, value = await register.read()
        assert status == uvm_status_e.UVM_IS_OK, f"{register.get_name()} cannot be read"
        return value


@pyuvm.test()
class ResetValues(RegisterTest):
    """Every word after the hardware reset, volatile ones too; write-only ones read 0.

    Not with work in between only: a stream, another reset, all again.
    """

    async def scenario(self) -> None:
        await self.everything()
        await self.run(StreamSequence())
        assert await self.device.look("PERF_INFERENCES") > 0
        await self.device.reset()
        await self.everything()

    async def everything(self) -> None:
        wrong, volatile = [], 0
        for register in self.env.registers.words:
            fields, name = register.get_fields(), register.get_name()
            hidden = all(f.get_access() in ("WO", "WC") for f in fields)
            expected = 0 if hidden else UNMASKED.get(name, register.get_reset())
            volatile += any(f.is_volatile() for f in fields)
            if name.startswith("fifo_data_out"):
                continue  # a read while it is empty is an error: below
            found = await self.value(register)
            if name not in CONSTANT and found != expected:
                wrong.append(f"{name}: {found:#x}, not {expected:#x}")
        assert not wrong, "; ".join(wrong)
        assert volatile > 30, f"{volatile} volatile words"
        magic = await self.value(self.env.registers.by_offset[OFFSETS["AI_ID"]])
        assert magic.to_bytes(4, "big") == b"OKPU" or magic.to_bytes(4, "little") == b"OKPU"
        assert await self.device.look("AI_ERR_CODE") == 0
        for name in ("fifo_data_out", "fifo_data_out_hi"):
            assert await self.device.look(name) == 0
            assert await self.device.look("AI_ERR_CODE") == Err.FIFO_UNDERRUN
            await self.device.clear()


@pyuvm.test()
class WrittenValues(RegisterTest):
    """Random values into registers that keep them: read back, and as the mirror has them."""

    async def scenario(self) -> None:
        rng = self.env.virtual.rng
        for name in (*PLAIN, *MOVING):
            register: uvm_reg = getattr(self.env.registers, name)
            mask = sum(f.get_mask() << f.get_lsb_pos() for f in register.get_fields())
            for _ in range(4):
                value = int(rng.integers(0, 1 << 32)) & mask & MOVING.get(name, ~0)
                assert await register.write(uvm_reg_data_t(value)) == uvm_status_e.UVM_IS_OK
                assert register.get_mirrored_value() == value
                found = await self.value(register)
                assert found == value, f"{name}: {found:#x}, not {value:#x}"
            assert await register.mirror(uvm_check_e.UVM_CHECK) == uvm_status_e.UVM_IS_OK
        constants = [name for name in OFFSETS if name.startswith("PERF_")] + ["AI_STATUS", "AI_ID"]
        for name in constants:
            register = getattr(self.env.registers, name)
            before = await self.value(register)
            assert (
                await register.write(uvm_reg_data_t(~before & 0xFFFFFFFF)) == uvm_status_e.UVM_IS_OK
            )
            assert await self.value(register) == before, f"{name} was written"


@pyuvm.test()
class VolatileValues(RegisterTest):
    """What a stream leaves in the registers that the device writes; W1C bits clear one by one."""

    least_bytes = 1

    async def scenario(self) -> None:
        stream = Uncleared()
        await self.run(stream)
        look = self.device.look
        assert await look("AI_CNN_DONE") == 1 and await look("AI_INT_STATUS") == 1
        assert not await look("AI_STATUS") & 3, "busy, or an error"
        for name in ("AI_CNN_DONE", "AI_INT_STATUS"):
            register = getattr(self.env.registers, name)
            assert await register.write(0) == uvm_status_e.UVM_IS_OK
            assert await look(name) == 1, f"{name} cleared by a 0"
            assert await register.write(1) == uvm_status_e.UVM_IS_OK
            assert await look(name) == 0, f"{name} not cleared"
            assert register.get_mirrored_value() == 0
        assert not int(self.tb.irq.value)
        total, busy = await look("PERF_TOTAL"), await look("PERF_ARRAY_BUSY")
        stalls = [n for n in OFFSETS if n.startswith("PERF_STALL")]
        assert total == busy + sum([await look(name) for name in stalls])
        assert total == await look("PERF_TOTAL"), "an idle device counts"


class Uncleared(StreamSequence):
    """A stream whose last interrupt nobody clears."""

    async def body(self) -> None:
        storage = await self.prepare()
        await self.device.start()
        await self.idle()
        await self.moved_on(storage)
