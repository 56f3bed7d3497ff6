# SPDX-License-Identifier: Apache-2.0
"""Register model of the device for pyuvm, built from rtl/host/openkpu.rdl.

A 64-bit register becomes two 32-bit ones, ``name`` and ``name_hi``, as the bus sees them.
"""

from pyuvm import (
    uvm_access_e,
    uvm_endianness_e,
    uvm_reg,
    uvm_reg_adapter,
    uvm_reg_addr_t,
    uvm_reg_block,
    uvm_reg_bus_op,
    uvm_reg_data_t,
    uvm_reg_field,
    uvm_status_e,
)

from openkpu.layer.regdesc import access, compile_map, field_reset
from openkpu_tb.ahb.host_agent import OKAY, Transfer
from openkpu_tb.uvm.items import HostItem

POLICY = {"RO": "RO", "WO": "WO", "RW": "RW", "W1C": "W1C", "WC": "WC"}


class Adapter(uvm_reg_adapter):
    """Register operation <-> transfer on the host's bus."""

    def __init__(self, name: str = "adapter") -> None:
        super().__init__(name)
        self.supports_byte_enable = False
        self.provides_responses = False

    def reg2bus(self, rw: uvm_reg_bus_op) -> HostItem:
        write = rw.kind == uvm_access_e.UVM_WRITE
        return HostItem("register", [Transfer(rw.addr, write, rw.data if write else 0)])

    def bus2reg(self, bus_item: HostItem, rw: uvm_reg_bus_op) -> None:
        (transfer,) = bus_item.transfers
        rw.data = uvm_reg_data_t(transfer.data)
        good = transfer.resp == OKAY
        rw.status = uvm_status_e.UVM_IS_OK if good else uvm_status_e.UVM_NOT_OK


class Registers(uvm_reg_block):
    """All registers, reachable as attributes by their name in the description."""

    def __init__(self, name: str = "registers") -> None:
        super().__init__(name)
        self.map = self.create_map("map", uvm_reg_addr_t(0), 4, uvm_endianness_e.UVM_LITTLE_ENDIAN)
        self.set_default_map(self.map)
        self.words: list[uvm_reg] = []
        self.by_offset: dict[int, uvm_reg] = {}
        for node in compile_map("openkpu").registers():
            for word in range(node.get_property("regwidth") // 32):
                self._add(node, word)
        self.lock_model()

    def _add(self, node, word: int) -> None:
        name = node.inst_name + ("_hi" if word else "")
        register = uvm_reg(name, 32)
        register.configure(self)
        for f in node.fields():
            low, high = max(f.low, 32 * word), min(f.high, 32 * word + 31)
            if low > high:
                continue
            reset = field_reset(f) >> (low - f.low)
            field = uvm_reg_field(f.inst_name)
            size = high - low + 1
            policy = POLICY[access(f)]
            volatile = bool(f.is_hw_writable)
            field.configure(
                *(register, size, low - 32 * word, policy, volatile, reset & ((1 << size) - 1)),
                has_reset=True,
                is_rand=False,
                individually_accessible=False,
            )
        offset = node.address_offset + 4 * word
        self.map.add_reg(register, offset, "RW")
        self.words.append(register)
        self.by_offset[offset] = register
        setattr(self, name, register)
