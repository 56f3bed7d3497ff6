// SPDX-License-Identifier: Apache-2.0
// The verilated device behind an AHB host and a memory, for the driver's native tests.
//
// How it works: `step` is a clock cycle. Outputs are sampled before the rising edge, inputs change behind it. The memory
// answers without wait states; an error is the two-cycle ERROR of AMBA. The processor has a cache in front of it that
// writes nothing back and reads nothing again by itself.

#include "hardware.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vopenkpu_top.h"
#include "openkpu.h"
#include "verilated.h"

struct hardware {
  VerilatedContext context;
  Vopenkpu_top top;
  std::vector<uint8_t> memory, cache;  // what the device sees, what the processor does
  uint64_t cycle = 0, cleaned = 0, invalidated = 0;
  bool dead = false, lost = false, data = false, write = false, failing = false, irq = false;
  uint32_t address = 0, size = 0, error_first = 1, error_last = 0, error_skip = 0;
  uint32_t fake_offset = ~0u, fake_value = 0, turnaround = 0;
  uint64_t rose = 0;
  struct openkpu *handled = nullptr, *told = nullptr;  // whose handler runs at any time, and is called at a write
  uint32_t told_at = 0;
  bool handling = false;

  void interrupt() {
    if (!handled || handling) return;
    handling = true;
    for (int i = 0; irq && !lost; i++) {
      (void)openkpu_irq(handled);
      step();
      if (i > 100) std::fprintf(stderr, "the handler does not silence the line\n"), std::exit(3);
    }
    handling = false;
  }

  hardware() : top(&context), memory(HW_MEMORY, 0xA5), cache(memory) {
    context.randReset(2);
    context.randSeed(1);
    std::memset(&top.clk, 0, 1);
    reset();
  }

  ~hardware() { top.final(); }

  void settle() {
    top.eval();
    top.s_ahb_hready_in = top.s_ahb_hready_out;
    top.eval();
  }

  void step() {
    settle();
    const bool ready = top.m_ahb_hready, grant = top.m_ahb_hgrant;
    const bool begins = ready && grant && (top.m_ahb_htrans & 2);
    const uint32_t next = top.m_ahb_haddr, next_size = 1u << top.m_ahb_hsize;
    const bool next_write = top.m_ahb_hwrite;
    if (data && write && ready && !failing) {
      const uint32_t lane = address & 3, word = top.m_ahb_hwdata >> (8 * lane);
      for (uint32_t i = 0; i < size; i++) memory[address - HW_BASE + i] = (uint8_t)(word >> (8 * i));
    }
    top.clk = 1;
    top.eval();
    top.clk = 0;
    if (top.irq && !irq) rose = cycle;
    irq = top.irq;
    cycle++;
    if (cycle > 5000000) std::fprintf(stderr, "5 million cycles\n"), std::exit(3);
    if (dead) {
      top.m_ahb_hready = 0;
      top.eval();
      return;
    }
    if (failing && !ready) {  // second cycle of ERROR
      top.m_ahb_hready = 1;
    } else if (ready) {
      data = begins;
      failing = false;
      top.m_ahb_hresp = 0;
      if (begins) {
        address = next, size = next_size, write = next_write;
        const bool outside = address < HW_BASE || address - HW_BASE + size > HW_MEMORY;
        bool hit = address >= error_first && address <= error_last;
        if (hit && error_skip) error_skip--, hit = false;
        failing = outside || hit;
        if (failing) {
          top.m_ahb_hready = 0, top.m_ahb_hresp = 1;
        } else if (!write) {
          uint32_t word;
          std::memcpy(&word, &memory[(address - HW_BASE) & ~3u], 4);
          top.m_ahb_hrdata = word;
        }
      }
    } else {
      top.m_ahb_hready = 1;  // the bus lives again
    }
    top.eval();
  }

  void reset() {
    top.s_ahb_hsel = 0, top.s_ahb_htrans = 0, top.s_ahb_haddr = 0, top.s_ahb_hwrite = 0, top.s_ahb_hsize = 2;
    top.s_ahb_hburst = 0, top.s_ahb_hprot = 3, top.s_ahb_hwdata = 0, top.s_ahb_hready_in = 1;
    top.m_ahb_hgrant = 1, top.m_ahb_hready = 1, top.m_ahb_hresp = 0, top.m_ahb_hrdata = 0;
    data = failing = false;
    top.rst = 1;
    for (int i = 0; i < 4; i++) step();
    top.rst = 0;
    step();
  }

  uint32_t access(uint32_t offset, bool writes, uint32_t value) {
    interrupt();
    if (!writes && offset == fake_offset) return fake_value;
    top.s_ahb_hsel = 1, top.s_ahb_htrans = 2, top.s_ahb_haddr = offset, top.s_ahb_hwrite = writes;
    step();  // nothing is in the data phase, so the address is taken
    top.s_ahb_hsel = 0, top.s_ahb_htrans = 0, top.s_ahb_hwdata = value;
    for (int waits = 0;; waits++) {
      settle();
      const bool ready = top.s_ahb_hready_out;
      if (top.s_ahb_hresp) std::fprintf(stderr, "ERROR response at offset %#x\n", offset), std::exit(3);
      const uint32_t found = top.s_ahb_hrdata;
      step();
      if (ready) return found;
      if (waits > 1000) std::fprintf(stderr, "no answer at offset %#x\n", offset), std::exit(3);
    }
  }
};

extern "C" {

struct hardware *hw_new(void) { return new hardware; }
void hw_delete(struct hardware *hw) { delete hw; }
void hw_reset(struct hardware *hw) { hw->reset(); }
uint64_t hw_cycle(const struct hardware *hw) { return hw->cycle; }
int hw_irq(const struct hardware *hw) { return hw->irq; }

uint8_t *hw_memory(struct hardware *hw, uint32_t address) { return &hw->cache.at(address - HW_BASE); }
uint8_t *hw_uncached(struct hardware *hw, uint32_t address) { return &hw->memory.at(address - HW_BASE); }

void hw_run(struct hardware *hw, uint32_t cycles) {
  while (cycles--) hw->step(), hw->interrupt();
}

void hw_bus_error(struct hardware *hw, uint32_t first, uint32_t last, uint32_t skip) {
  hw->error_first = first, hw->error_last = last, hw->error_skip = skip;
}

void hw_dead(struct hardware *hw, int on) { hw->dead = on; }
void hw_lose_irq(struct hardware *hw, int on) { hw->lost = on; }
void hw_fake(struct hardware *hw, uint32_t offset, uint32_t value) { hw->fake_offset = offset, hw->fake_value = value; }
uint32_t hw_turnaround(const struct hardware *hw) { return hw->turnaround; }
void hw_clean(void *port, uint32_t address, uint32_t bytes) {
  hardware *hw = static_cast<hardware *>(port);
  hw->cleaned += bytes;
  for (uint32_t i = 0; i < bytes; i++) *hw_uncached(hw, address + i) = *hw_memory(hw, address + i);
}

void hw_invalidate(void *port, uint32_t address, uint32_t bytes) {
  hardware *hw = static_cast<hardware *>(port);
  hw->invalidated += bytes;
  for (uint32_t i = 0; i < bytes; i++) *hw_memory(hw, address + i) = *hw_uncached(hw, address + i);
}

uint64_t hw_cleaned(const struct hardware *hw) { return hw->cleaned; }
uint64_t hw_invalidated(const struct hardware *hw) { return hw->invalidated; }

uint32_t hw_read32(void *port, uint32_t offset) { return static_cast<hardware *>(port)->access(offset, false, 0); }

void hw_write32(void *port, uint32_t offset, uint32_t value) {
  hardware *hw = static_cast<hardware *>(port);
  if (hw->told && offset == hw->told_at) {
    hw->told->events = hw->told->events | OPENKPU_AI_INT_STATUS_DONE_MASK;
    hw->told = nullptr;
  }
  hw->access(offset, true, value);
  if (offset == OPENKPU_AI_CTRL && (value & OPENKPU_AI_CTRL_START_MASK) && hw->rose) {
    const uint32_t took = (uint32_t)(hw->cycle - hw->rose);
    if (took > hw->turnaround) hw->turnaround = took;
  }
}

void hw_handler(struct hardware *hw, struct openkpu *dev) { hw->handled = dev; }
void hw_event_at(struct hardware *hw, struct openkpu *dev, uint32_t offset) { hw->told = dev, hw->told_at = offset; }

void hw_pause(struct openkpu *dev) {
  hardware *hw = static_cast<hardware *>(dev->port);
  // as openkpu_port.h says: until an event; the line of a device that is polled wakes nobody
  for (int i = 0; i < 100 && !(dev->by_irq && (hw->irq || openkpu_pending(dev))); i++) hw->step();
  if (dev->by_irq && hw->irq && !hw->lost) (void)openkpu_irq(dev);
}
}
