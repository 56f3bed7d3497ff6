// SPDX-License-Identifier: Apache-2.0
// The verilated device for the page: the driver of sw/ starts it, JavaScript lets its clock run.
//
// How it works: `step` is a clock cycle; inputs change behind the rising edge, outputs are sampled before the next one.
// JavaScript reads storage, AI RAM and the probe's rows where they lie in memory. What the host reads and writes is kept
// with its cycle.

#include <emscripten.h>
#include <pthread.h>
#include <sched.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "Vpage.h"
#include "Vpage___024root.h"
#include "openkpu.h"
#include "page_port.h"
#include "verilated.h"
#include "verilated_vcd_c.h"

#define SEEN EMSCRIPTEN_KEEPALIVE  // by JavaScript

namespace {

#define STORE (machine->top.rootp->page__DOT__tb_top__DOT__u_fabric__DOT__u_storage__DOT__mem)
#define ROWS (machine->top.rootp->page__DOT__tb_top__DOT__u_probe__DOT__rec)
#define AI_RAM (top.rootp->page__DOT__tb_top__DOT__dut__DOT__u_cache__DOT__u_ai_ram__DOT__mem)

constexpr uint32_t MOST_WAITS = 10000;  // cycles of a host's access

struct Access {
  uint32_t cycle, write, offset, value;
};

// where a layer's input lies in the AI RAM, from a byte on
struct Map {
  uint32_t first, bytes;
};

// keeps a VCD in memory
class Memory final : public VerilatedVcdFile {
 public:
  std::string text;
  bool open(const std::string &) override { return true; }
  void close() override {}
  ssize_t write(const char *bytes, ssize_t size) override {
    text.append(bytes, static_cast<size_t>(size));
    return size;
  }
};

struct Machine {
  VerilatedContext context;
  Vpage top{&context};
  openkpu dev{};
  openkpu_network net{};
  uint32_t cycle = 0, finished = 0;
  std::vector<Access> accesses;
  std::vector<Map> maps;           // of each layer
  std::vector<uint32_t> ends;      // rows of the probe in which layers ended
  std::vector<uint8_t> snapshots;  // inputs, one behind the other
  Memory vcd;
  VerilatedVcdC *trace = nullptr;

  Machine() {
    static const char *name = "page";
    context.commandArgs(1, &name);
    context.traceEverOn(true);
  }

  void step() {
    const bool ends_now = top.layer_done;
    top.clk = 1;
    top.eval();
    if (trace) trace->dump(10 * cycle + 5);
    top.clk = 0;
    top.eval();
    if (trace) trace->dump(10 * cycle + 10);
    cycle++;
    if (ends_now && !maps.empty()) layer_ends();
  }

  // A layer may leave its map where its input was: an input is kept when the layer before it has ended, and that of the
  // first layer, which comes from the storage, with the second's.
  void layer_ends() {
    const size_t number = ends.size();
    ends.push_back(top.trace_count);
    if (number == 0) keep(maps[0]);
    if (number + 1 < maps.size()) keep(maps[number + 1]);
  }

  void keep(const Map &map) {
    const uint8_t *ram = reinterpret_cast<const uint8_t *>(&AI_RAM);
    snapshots.insert(snapshots.end(), ram + map.first, ram + map.first + map.bytes);
  }

  uint32_t access(uint32_t offset, bool write, uint32_t value) {
    top.hsel = 1, top.haddr = offset, top.hwrite = write;
    top.eval();
    step();  // nothing is in the data phase, so the address is sampled
    top.hsel = 0, top.hwdata = value;
    top.eval();
    uint32_t waits = 0;
    while (!top.hready && waits++ < MOST_WAITS) step();
    const uint32_t found = top.hrdata;
    if (top.hresp || !top.hready) std::fprintf(stderr, "the device refuses offset %#x\n", offset), std::abort();
    step();
    accesses.push_back({cycle, write, offset, write ? value : found});
    return found;
  }
};

Machine *machine = nullptr;

}  // namespace

extern "C" {

uint32_t page_read32(void *, uint32_t offset) { return machine->access(offset, false, 0); }
void page_write32(void *, uint32_t offset, uint32_t value) { machine->access(offset, true, value); }
void page_pause(void *) { machine->step(); }

// Power on with so many wait states; with `vcd` a recording begins. A code of the driver.
SEEN int page_open(uint32_t waits, int vcd) {
  if (!machine) machine = new Machine;
  Machine &m = *machine;
  m.accesses.clear(), m.maps.clear(), m.ends.clear(), m.snapshots.clear();
  m.vcd.text.clear();
  m.cycle = m.finished = 0;
  if (vcd) {
    m.trace = new VerilatedVcdC(&m.vcd);
    m.top.trace(m.trace, 99);
    m.trace->open("page.vcd");
  }
  m.top.waits = (uint8_t)waits, m.top.trace_on = 0, m.top.hsel = 0;
  m.top.clk = 0, m.top.rst = 1;
  m.top.eval();
  for (int i = 0; i < 4; i++) m.step();
  m.top.rst = 0;
  m.step();
  return openkpu_init(&m.dev, m.top.rootp, 0, 0);
}

// the storage, and the rows of the probe
SEEN uint8_t *page_store(void) { return reinterpret_cast<uint8_t *>(&STORE); }
SEEN uint8_t *page_rows(void) { return reinterpret_cast<uint8_t *>(&ROWS); }

// The input of the next layer of the list lies here in the AI RAM. Those of the first inference are kept:
// page_snapshots has the bytes. page_ends has rows of the probe in which layers ended.
SEEN void page_watch(uint32_t first, uint32_t bytes) { machine->maps.push_back({first, bytes}); }
SEEN uint32_t page_end_count(void) { return (uint32_t)machine->ends.size(); }
SEEN const uint32_t *page_ends(void) { return machine->ends.data(); }
SEEN const uint8_t *page_snapshots(void) { return machine->snapshots.data(); }

// Start `count` inferences of the network that page_network describes. A code of the driver.
SEEN openkpu_network *page_network(void) { return &machine->net; }
SEEN int page_start(uint32_t count) {
  Machine &m = *machine;
  m.top.trace_on = 1;
  m.finished = 0;
  return openkpu_stream(&m.dev, &m.net, count, m.net.input, m.net.input_stride, m.net.result, m.net.result_stride);
}

// At most so many cycles; 1 when the line of the interrupt is high.
SEEN int page_step(uint32_t cycles) {
  while (cycles-- && !machine->top.irq) machine->step();
  return machine->top.irq;
}

// The driver serves the interrupt. A code of the driver; page_finished: results that are stored.
SEEN int page_collect(void) { return openkpu_wait(&machine->dev, &machine->finished, MOST_WAITS); }
SEEN uint32_t page_finished(void) { return machine->finished; }
SEEN const char *page_text(int code) { return openkpu_text((enum openkpu_status)code); }

// the host reads one of the performance counters, and their lower words alone: no run has 2^32 of anything
SEEN uint32_t page_counter(uint32_t number) { return page_read32(nullptr, OPENKPU_PERF_TOTAL + 8 * number); }

SEEN uint32_t page_cycle(void) { return machine->cycle; }
SEEN uint32_t page_row_count(void) { return machine->top.trace_count; }
SEEN uint32_t page_access_count(void) { return (uint32_t)machine->accesses.size(); }
SEEN const Access *page_accesses(void) { return machine->accesses.data(); }

// operand bits that toggled since the start: all; without an enabled multiplication; multiplications that were enabled
SEEN double page_toggles(void) { return (double)machine->top.toggles; }
SEEN double page_idle_toggles(void) { return (double)machine->top.idle_toggles; }
SEEN double page_products(void) { return (double)machine->top.products; }

// multipliers now: one bit each; weight and pixel of each, packed
SEEN const uint32_t *page_enables(void) { return reinterpret_cast<const uint32_t *>(&machine->top.enables); }
SEEN const uint32_t *page_operands(void) { return reinterpret_cast<const uint32_t *>(&machine->top.operands); }

// end of the recording; page_vcd_bytes of it lie where this returns
SEEN const char *page_vcd(void) {
  Machine &m = *machine;
  if (m.trace) m.trace->close();
  delete m.trace;
  m.trace = nullptr;
  return m.vcd.text.data();
}
SEEN uint32_t page_vcd_bytes(void) { return (uint32_t)machine->vcd.text.size(); }

// what Verilator's threads ask of a system that has them
int pthread_getaffinity_np(pthread_t, size_t, cpu_set_t *) { return 0; }
int pthread_setaffinity_np(pthread_t, size_t, const cpu_set_t *) { return 0; }
int sched_getcpu(void) { return 0; }
}
