# SPDX-License-Identifier: Apache-2.0
"""reg_block against openkpu.rdl (every register walked), its FIFOs and its interrupts."""

import random

import cocotb
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge

from openkpu.layer.regdesc import access, compile_map, reset
from openkpu.layer.regmap import Err
from openkpu_tb.core.block_bench import block_test
from tb.reg_block.bench import CALC, EMPTY, FULL, Bench, R


def words(register) -> list[int]:
    return list(range(register.address_offset, register.address_offset + register.size, 4))


@block_test(Bench)
async def reset_values(bench: Bench, dut) -> None:
    """Every word of the description reads its reset value, every other address is refused."""
    registers = list(compile_map("openkpu").registers())
    assert len(registers) > 40
    mapped = set()
    for r in registers:
        for i, addr in enumerate(words(r)):
            mapped.add(addr)
            want = reset(r) >> 32 * i & 0xFFFFFFFF
            assert await bench.read(addr) == want, f"{r.inst_name} after reset"
            if addr in (R.fifo_data_out, R.fifo_data_out + 4):  # reading the empty FIFO is an error
                await bench.error(Err.FIFO_UNDERRUN)
    for addr in range(0, 0x1000, 4):
        if addr not in mapped:
            for strobe in (dut.reg_rd, dut.reg_wr):
                value, error = await bench._access(strobe, addr, random.getrandbits(32))
                assert error, f"{addr:#x} is not refused"
                assert int(value) == 0, f"data with the refusal of {addr:#x}"
    assert int(dut.irq.value) == 0


@block_test(Bench)
async def quiet_in_reset(bench: Bench, dut) -> None:
    """No command is asserted in reset or after it; the latched high word of a counter is
    cleared."""
    dut.perf_value.value, dut.perf_carry.value = random.getrandbits(64), 1
    await bench.read(R.PERF_TOTAL)
    dut.rst.value = 1
    await RisingEdge(dut.clk)
    for cycle in range(6):
        dut.rst.value = int(cycle < 3)
        await RisingEdge(dut.clk)
        for name in ("host_start", "host_soft_reset", "host_ack", "host_pending", "arg_valid"):
            assert int(getattr(dut, name).value) == 0, f"{name} in cycle {cycle}"
    assert await bench.read(R.PERF_TOTAL + 4) == 0, "what was read before the reset"


@block_test(Bench)
async def access_types(bench: Bench) -> None:
    """RW keeps what is written, RO and reserved bits do not, W1C clears what a pulse set."""
    registers = list(compile_map("openkpu").registers())
    commands = {"layer_argument_fifo", "AI_CTRL", "interrupt_clear", "fifo_data_out", "AI_LOCK"}
    partly = {"AI_SPARE_ROWS"}  # holds some values, in some builds: ai_cfg_tests
    quiet = [r for r in registers if r.inst_name not in commands | partly]
    for r in quiet:
        fields = r.fields()
        writable = sum(((1 << f.width) - 1) << f.low for f in fields if access(f) == "RW")
        for pattern in (0xFFFFFFFFFFFFFFFF, 0, random.getrandbits(64)):
            others = [(o, await bench.read(o.address_offset)) for o in quiet if o is not r]
            for i, addr in enumerate(words(r)):
                await bench.write(addr, pattern >> 32 * i & 0xFFFFFFFF)
            for i, addr in enumerate(words(r)):
                want = (pattern & writable | reset(r) & ~writable) >> 32 * i & 0xFFFFFFFF
                assert await bench.read(addr) == want, f"{r.inst_name} after {pattern:#x}"
            for o, value in others:
                now = await bench.read(o.address_offset)
                assert now == value, f"{r.inst_name} written, {o.inst_name} changed"
    # sticky bits: set by a pulse, cleared as the description says
    await bench.reset()
    for r in registers:
        for f in r.fields():
            setter = f.get_property("set_by")
            if setter is None:
                assert access(f) not in ("W1C", "WC"), f"{f.inst_name}: nothing sets it"
                continue
            await bench.pulse(**{setter: 1, "err_code": 5, "err_layer": 77, "err_addr": 0x1234})
            mask = ((1 << f.width) - 1) << f.low
            want = 5 << f.low if setter == "ev_err" and access(f) == "WC" else 1 << f.low
            assert await bench.read(r.address_offset) & mask == want
            if access(f) == "RO":  # interrupt_raw: cleared through interrupt_clear
                await bench.write(R.interrupt_clear, mask)
            else:
                await bench.write(r.address_offset, 0 if access(f) == "W1C" else mask)
                if access(f) == "W1C":
                    assert await bench.read(r.address_offset) & mask == want, "cleared by a 0"
                    await bench.write(r.address_offset, mask)
            assert await bench.read(r.address_offset) & mask == 0, f"{r.inst_name} not cleared"
            await bench.write(R.AI_ERR_CODE, 0)
            await bench.write(R.AI_INT_STATUS, 3)
            await bench.write(R.AI_CNN_DONE, 1)


@block_test(Bench)
async def layer_fifo(bench: Bench, dut) -> None:
    """Order of the words; 16 layers fit; the 17th is dropped whole; flush; soft reset."""
    for by_control in (False, True):
        pushed = [await bench.push_layer() for _ in range(16)]
        status = await bench.read(R.AI_STATUS)
        assert status >> 24 & 0x1F == 16 and status >> 5 & 1
        assert await bench.read(R.AI_ERR_CODE) == 0
        # a dropped layer stays dropped although room comes while its words are pushed
        await bench.push_word(1)
        assert await bench.pop(12) == pushed.pop(0)
        for _ in range(11):
            await bench.push_word(2)
        assert await bench.read(R.AI_ERR_CODE) == Err.FIFO_OVERRUN
        assert await bench.read(R.AI_INT_STATUS) == 2 and await bench.read(R.AI_STATUS) & 2
        await bench.write(R.AI_ERR_CODE, 0)
        pushed.append(await bench.push_layer())
        assert await bench.read(R.AI_ERR_CODE) == 0
        flat = [w for layer in pushed for w in layer]
        assert await bench.pop(len(flat)) == flat
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 0
        # part of a layer, then empty it: the next layer is whole again
        await bench.push_layer()
        await bench.push_word(3)
        if by_control:
            await bench.write(R.interrupt_clear, 7)
            await bench.write(R.fifo_ctrl, 0x1B)
            assert not await bench.settled("arg_flush")  # the FIFO itself is empty first
            assert await bench.settled("arg_flush")
            await bench.write(R.fifo_ctrl, 0x1F)
            assert await bench.read(R.interrupt_raw) == 0, "raised by the host's own access"
        else:
            await bench.write(R.AI_CTRL, 2)
            await RisingEdge(dut.clk)
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 0
        assert not await bench.settled("arg_valid")
        layer = await bench.push_layer()
        assert await bench.pop(12) == layer


@block_test(Bench)
async def overrun_is_one_event(bench: Bench) -> None:
    """A layer without room causes one FIFO_OVERRUN, even if it is acknowledged among its words.
    Words pushed after room appears still belong to that layer; the next layer is a new event."""
    for _ in range(16):
        await bench.push_layer()
    for acknowledged in range(1, 12):
        for _ in range(acknowledged):
            await bench.push_word(random.getrandbits(64))
        await bench.error(Err.FIFO_OVERRUN)
        for _ in range(acknowledged, 12):
            await bench.push_word(random.getrandbits(64))
            assert await bench.read(R.AI_ERR_CODE) == 0, f"again after word {acknowledged}"
            assert await bench.read(R.AI_INT_STATUS) == 0
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 16


@cocotb.test()
async def driver_whole_network(dut) -> None:
    """docs/kpu.md section 3, sequence 1: refill on almost_empty until all layers are through."""
    for order in ("clear_push", "slow"):
        bench = Bench(dut)
        dut = bench.dut
        await bench.reset()
        await bench.write(R.interrupt_clear, 7)
        await bench.write(R.fifo_threshold, 0x1C)
        todo, given, taken = 30, [], []
        for _ in range(12):
            given += await bench.push_layer()
            todo -= 1
        assert await bench.read(R.interrupt_raw) & FULL, "12 layers are almost full"
        await bench.write(R.interrupt_mask, 0b101)
        assert not await bench.settled("irq"), "nothing stale when the mask opens"
        interrupts = 0
        while len(taken) < 30 * 12:
            taken += await bench.pop(12)
            await ReadOnly()
            pending = int(dut.irq.value)
            await RisingEdge(dut.clk)
            if not pending:
                continue
            assert await bench.read(R.interrupt_status) == EMPTY
            interrupts += 1
            assert interrupts < 60, "an interrupt storm"
            await bench.write(R.interrupt_clear, 7)
            if order == "slow" and len(given) > len(taken):
                taken += await bench.pop(12)  # the core is faster than the handler
            if todo:
                given += await bench.push_layer()
                todo -= 1
        assert todo == 0 and taken == given
        await bench.write(R.interrupt_clear, 7)
        for _ in range(5):
            await RisingEdge(dut.clk)
            assert not int(dut.irq.value), "an idle device with an empty FIFO must not interrupt"


@block_test(Bench)
async def driver_layer_by_layer(bench: Bench, dut) -> None:
    """docs/kpu.md section 3, sequence 2: calc_done alone, cleared for each layer."""
    for _ in range(4):
        await bench.write(R.interrupt_clear, 7)
        await bench.write(R.interrupt_mask, 0b110)
        layer = await bench.push_layer()
        assert await bench.pop(12) == layer
        assert not int(dut.irq.value)
        await bench.pulse(ev_calc_done=1)
        await RisingEdge(dut.clk)
        assert int(dut.irq.value) and await bench.read(R.interrupt_status) == CALC
    await bench.write(R.interrupt_mask, 7)
    assert await bench.read(R.interrupt_status) == 0 and await bench.read(R.interrupt_raw) & CALC
    assert not int(dut.irq.value)


@block_test(Bench)
async def result_fifo(bench: Bench, dut) -> None:
    """16 words deep, back-pressure, popped by the read of the high word; underrun; flush."""
    sent = [random.getrandbits(64) for _ in range(16)]
    for word in sent:
        dut.result_valid.value, dut.result_data.value = 1, word
        assert await bench.settled("result_ready")
    assert not await bench.settled("result_ready"), "the 17th word must wait"
    dut.result_valid.value = 0
    assert await bench.read(R.AI_STATUS) >> 16 & 0x1F == 16
    for number, word in enumerate(sent):
        assert await bench.read(R.fifo_data_out) == word & 0xFFFFFFFF
        assert await bench.read(R.fifo_data_out) == word & 0xFFFFFFFF, "the low word must not pop"
        # nothing in between, or another access, or none
        await ClockCycles(dut.clk, number % 4)
        assert await bench.read(R.fifo_data_out + 4) == word >> 32
    for addr in (R.fifo_data_out, R.fifo_data_out + 4):
        assert await bench.read(R.AI_ERR_CODE) == 0
        assert await bench.read(addr) == 0
        await bench.error(Err.FIFO_UNDERRUN)
    await bench.pulse(result_valid=1, result_data=5)
    await bench.write(R.fifo_ctrl, 0x1D)
    await bench.write(R.fifo_ctrl, 0x1F)
    assert await bench.read(R.AI_STATUS) & 0x1F0010 == 0


@block_test(Bench)
async def results_of_before_a_reset(bench: Bench, dut) -> None:
    """Result words that the core sends during the flush are dropped; the host reads the first word
    after it first."""
    for cycles in range(8):  # duration of the core's flush
        await bench.pulse(result_valid=1, result_data=random.getrandbits(64))
        dut.result_valid.value, dut.result_data.value = 1, random.getrandbits(64)
        await bench.write(R.AI_CTRL, 2)
        await RisingEdge(dut.clk)  # soft_reset
        dut.status_flushing.value = 1
        await ClockCycles(dut.clk, cycles)
        dut.status_flushing.value = 0
        await RisingEdge(dut.clk)  # the last cycle that is pending
        dut.result_valid.value = 0
        assert await bench.read(R.AI_STATUS) >> 16 & 0x1F == 0, f"{cycles} cycles: stale words"
        word = random.getrandbits(64)
        await bench.pulse(result_valid=1, result_data=word)
        assert await bench.read(R.AI_STATUS) >> 16 & 0x1F == 1
        assert (await bench.read(R.fifo_data_out), await bench.read(R.fifo_data_out + 4)) == (
            word & 0xFFFFFFFF,
            word >> 32,
        )
        assert await bench.read(R.AI_ERR_CODE) == 0


@block_test(Bench)
async def ready_without_words(bench: Bench, dut) -> None:
    """A core that discards words is ready without words, too: layers are counted by their words."""
    for words in range(12):
        await bench.push_layer()
        for _ in range(words):
            await bench.push_word(random.getrandbits(64))
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 1
        dut.arg_ready.value = 1
        await ClockCycles(dut.clk, random.randint(40, 80))
        # the rest of a layer whose first words the core has accepted
        for count in range(words or 12, 12):
            assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 0, f"after {count} words"
            await bench.push_word(random.getrandbits(64))
        # the last word passes through the FIFO
        await ClockCycles(dut.clk, 6)
        dut.arg_ready.value = 0
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 0, f"{words} words more"


@block_test(Bench)
async def words_in_a_hold(bench: Bench, dut) -> None:
    """Words that are pushed while the core discards them reach the core, which counts them: words
    after the acknowledgement complete the same layer."""
    for count in range(1, 12):
        words = [random.getrandbits(64) for _ in range(12)]
        dut.status_hold.value = 1
        await bench.push_words(words[:count])
        assert await bench.read(R.AI_STATUS) & 1 == 0, "discarded words are no work"
        assert await bench.pop(count) == words[:count]
        dut.status_hold.value = 0
        for word in words[count:]:
            assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 0
            await bench.push_word(word)
        assert await bench.read(R.AI_STATUS) >> 24 & 0x1F == 1
        assert await bench.pop(12 - count) == words[count:]


@block_test(Bench)
async def status_fields(bench: Bench, dut) -> None:
    """Each field of AI_STATUS at its place, independent of the others."""
    (status,) = (r for r in compile_map("openkpu").registers() if r.inst_name == "AI_STATUS")
    places = {f.inst_name: (f.low, f.width) for f in status.fields()}
    layers = results = taken = error = 0
    for _ in range(60):
        layer, (fc, kept, full) = random.getrandbits(10), (random.getrandbits(1) for _ in range(3))
        dut.status_layer.value, dut.status_fc_layer.value = layer, fc
        dut.status_kept.value, dut.weight_bias_full.value = kept, full
        act = random.choice(("layer", "result", "take", "next", "error", "clear"))
        if act == "layer" and layers < 16:
            await bench.push_layer()
            layers += 1
        elif act == "result" and results < 16:
            await bench.pulse(result_valid=1)
            results += 1
        elif act in ("take", "next"):
            await bench.pulse(**{"ev_npix_take" if act == "take" else "ev_inf_next": 1})
            taken = int(act == "take" and layers > 0)  # at rest nothing is read
        elif act in ("error", "clear"):
            error = int(act == "error")
            await (bench.pulse(ev_err=1, err_code=7) if error else bench.write(R.AI_ERR_CODE, 0))
        want = {"busy": int(layers > 0), "error": error, "wb_fifo_full": full, "fc_layer": fc}
        want |= {"result_ready": int(results > 0), "layers_full": int(layers == 16)}
        want |= {"npix_taken": taken, "kept": kept, "layer": layer & 0xFF}
        want |= {"results": results, "layers": layers}
        value = await bench.read(R.AI_STATUS)
        got = {name: value >> low & (1 << width) - 1 for name, (low, width) in places.items()}
        assert got == want, act


@block_test(Bench)
async def counters(bench: Bench, dut) -> None:
    """Each counter at its place; the high word is latched when the low one is read."""
    values = [random.getrandbits(64) for _ in range(13)] + [(1 << 64) - 1]
    for i, value in enumerate(values):
        carry = int(i == 13 or random.random() < 0.5)
        dut.perf_value.value, dut.perf_carry.value = value, carry
        assert await bench.read(R.PERF_TOTAL + 8 * i) == value & 0xFFFFFFFF
        assert int(dut.perf_index.value) == i
        dut.perf_value.value, dut.perf_carry.value = random.getrandbits(64), 1 - carry
        assert await bench.read(R.PERF_TOTAL + 8 * i + 4) == ((value >> 32) + carry) % (1 << 32)
    dut.status_busy.value, dut.status_fc_layer.value, dut.weight_bias_full.value = 1, 1, 0
    dut.status_layer.value = 0x2A5
    await RisingEdge(dut.clk)  # work counts from the next cycle on
    assert await bench.read(R.AI_STATUS) == 0xA509


@block_test(Bench)
async def beside_the_counters(bench: Bench, dut) -> None:
    """A latched high word is seen at its place alone, and stays while other registers are read."""
    quiet = [r for r in compile_map("openkpu").registers() if r.inst_name not in ("fifo_data_out",)]
    others = [a for r in quiet for a in words(r) if not R.PERF_TOTAL <= a < R.PERF_TOTAL + 0x80]
    before = [await bench.read(addr) for addr in others]
    dut.perf_value.value = (1 << 64) - 1
    await bench.read(R.PERF_TOTAL)
    dut.perf_value.value = 0  # none is selected
    assert [await bench.read(addr) for addr in others] == before
    assert await bench.read(R.PERF_TOTAL + 4) == 0xFFFFFFFF


@block_test(Bench)
async def locked(bench: Bench) -> None:
    """The lock is read in its own register alone."""
    quiet = [r for r in compile_map("openkpu").registers() if r.inst_name not in ("fifo_data_out",)]
    others = [a for r in quiet for a in words(r) if a != R.AI_LOCK]
    before = [await bench.read(addr) for addr in others]
    await bench.write(R.AI_LOCK, 1)
    assert [await bench.read(addr) for addr in others] == before
    assert await bench.read(R.AI_LOCK) == 1


@block_test(Bench)
async def done_stays(bench: Bench) -> None:
    """A 1 in bit 0 of any other register does not clear AI_CNN_DONE."""
    commands = {"layer_argument_fifo", "AI_CTRL", "fifo_data_out", "AI_LOCK", "AI_CNN_DONE"}
    for r in compile_map("openkpu").registers():
        if r.inst_name in commands or r.inst_name.startswith("PERF"):
            continue
        await bench.pulse(ev_inf_done=1)
        await bench.write(r.address_offset, 1)
        assert await bench.read(R.AI_CNN_DONE) & 1, f"cleared by a write of {r.inst_name}"
        await bench.write(R.AI_CNN_DONE, 1)


@block_test(Bench)
async def not_full(bench: Bench, dut) -> None:
    """Below the threshold neither irq nor raw status says almost full, in no cycle."""
    await bench.write(R.fifo_threshold, 0x08)
    await bench.write(R.interrupt_clear, 7)
    await bench.write(R.interrupt_mask, 0b011)
    for count in range(1, 8):
        await bench.push_layer()
        for _ in range(4):
            assert not await bench.settled("irq"), f"{count} layers"
            assert not await bench.read(R.interrupt_raw) & FULL, f"{count} layers"
    await bench.push_layer()
    await ClockCycles(dut.clk, 3)
    assert int(dut.irq.value) and await bench.read(R.interrupt_raw) & FULL
