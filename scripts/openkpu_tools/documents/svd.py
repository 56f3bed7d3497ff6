# SPDX-License-Identifier: Apache-2.0
"""The register description as CMSIS-SVD; no package writes one that satisfies the schema."""

import xml.etree.ElementTree as ET

from systemrdl.node import FieldNode, RegNode

from openkpu.layer import regdesc

REGISTERS, AI_RAM = 0x200, 0x200000  # bytes of the registers; offset and bytes of the AI RAM
BASE = 0x4000_0000  # of the slave window, as in soc/; a chip has its own
ACCESS = {(1, 1): "read-write", (1, 0): "read-only", (0, 1): "write-only"}
READS = {"rclr": "clear", "rset": "set", "ruser": "modifyExternal"}
WRITES = {"woclr": "oneToClear", "woset": "oneToSet", "wclr": "clear"}


def _add(parent: ET.Element, tag: str, **values: object) -> ET.Element:
    """An element with a child for each value, in this order."""
    element = ET.SubElement(parent, tag)
    for name, value in values.items():
        ET.SubElement(element, name).text = str(value)
    return element


def _field(fields: ET.Element, field: FieldNode) -> None:
    onwrite, codes = field.get_property("onwrite"), field.get_property("encode")
    how = {"modifiedWriteValues": WRITES[onwrite.name]} if onwrite else {}
    if onread := field.get_property("onread"):
        how["readAction"] = READS[onread.name]
    element = _add(
        fields,
        "field",
        name=field.inst_name,
        description=field.get_property("desc"),
        bitOffset=field.low,
        bitWidth=field.width,
        access=ACCESS[field.is_sw_readable, field.is_sw_writable],
        **how,
    )
    if codes:
        values = _add(element, "enumeratedValues")
        for code in codes:
            text = {"name": code.name, "description": code.rdl_desc, "value": code.value}
            _add(values, "enumeratedValue", **text)


def _register(registers: ET.Element, register: RegNode) -> None:
    element = _add(
        registers,
        "register",
        name=register.inst_name,
        description=register.get_property("desc"),
        addressOffset=hex(register.address_offset),
        size=8 * register.size,
        access=ACCESS[register.has_sw_readable, register.has_sw_writable],
        resetValue=hex(regdesc.reset(register)),
    )
    fields = _add(element, "fields")
    for field in register.fields():
        _field(fields, field)


def svd(described: regdesc.Map, version: str) -> str:
    """The text of the file; ``version`` of the device."""
    head = {"name": "OPENKPU", "version": version, "description": "OpenKPU"}
    device = _add(ET.Element("-"), "device", **head, addressUnitBits=8, width=32)
    device.set("schemaVersion", "1.3")
    about = "CNN coprocessor; the buffer is its AI RAM, as much as the build has"
    name = {"name": "OPENKPU", "description": about, "baseAddress": hex(BASE)}
    peripheral = _add(_add(device, "peripherals"), "peripheral", **name)
    _add(peripheral, "addressBlock", offset=0, size=hex(REGISTERS), usage="registers")
    _add(peripheral, "addressBlock", offset=hex(AI_RAM), size=hex(AI_RAM), usage="buffer")
    registers = _add(peripheral, "registers")
    for register in described.registers():
        _register(registers, register)
    ET.indent(device)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{ET.tostring(device, encoding="unicode")}\n'
