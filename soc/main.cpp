// SPDX-License-Identifier: Apache-2.0
// Runs soc.v: prints what the firmware prints, and compares each layer's map in the AI RAM with the golden model's.
//
// soc_main CYCLES MAPS [+ram=FILE +store=FILE]: at most CYCLES cycles. MAPS holds words of 32 bits: devices; for each
// device layers and inferences; for each layer of each inference the number of its bytes, and for each byte its place in
// the AI RAM and its value. Inferences come in this order; one that is cut off by an error is begun anew by the next start.
// Exit status: that of the firmware; 10 maps differ, 11 a fault of the processor, 12 too many cycles, 2 a bad call.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "Vsoc.h"
#include "verilated.h"
#include "verilated_sym_props.h"
#include "verilated_syms.h"

namespace {

struct Layer {
  std::vector<uint32_t> places, values;
};

struct Device {
  uint32_t layers = 0;
  std::vector<Layer> expected;  // layer by layer, inference by inference
  const uint8_t *ram = nullptr, *done = nullptr, *accept = nullptr;
  size_t at = 0;
  bool due = false;
  uint64_t bytes = 0, wrong = 0, transfers = 0;
  bool irq = false;
  uint64_t rose = 0, turnaround = 0;  // cycle in which its line rose; from there to the next start, the longest
};

const uint8_t *find(const VerilatedContext &context, const std::string &scope, const char *name) {
  const VerilatedScope *found = context.scopeFind(scope.c_str());
  VerilatedVar *var = found ? found->varFind(name) : nullptr;
  if (!var) {
    std::fprintf(stderr, "no %s in %s\n", name, scope.c_str());
    std::exit(2);
  }
  return static_cast<const uint8_t *>(var->datap());
}

uint32_t word(std::FILE *file) {
  uint8_t b[4];
  if (std::fread(b, 1, 4, file) != 4) {
    std::fprintf(stderr, "the file of the maps ends early\n");
    std::exit(2);
  }
  return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

void compare(Device &device, size_t number) {
  if (device.at >= device.expected.size()) {
    std::printf("device %zu: a layer more than expected\n", number);
    device.wrong++;
    return;
  }
  const Layer &layer = device.expected[device.at];
  uint64_t wrong = 0;
  for (size_t i = 0; i < layer.places.size(); i++) wrong += device.ram[layer.places[i]] != layer.values[i];
  if (wrong) {
    std::printf("device %zu, inference %zu, layer %zu: %llu of %zu bytes differ\n", number, device.at / device.layers,
                device.at % device.layers, (unsigned long long)wrong, layer.places.size());
  }
  device.bytes += layer.places.size();
  device.wrong += wrong;
  device.at++;
}

}  // namespace

int main(int argc, char **argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  context.randReset(2);
  context.randSeed(1);
  if (argc < 3) {
    std::fprintf(stderr, "usage: soc_main CYCLES MAPS [+ram=FILE +store=FILE]\n");
    return 2;
  }
  const uint64_t limit = std::strtoull(argv[1], nullptr, 10);
  std::FILE *file = std::fopen(argv[2], "rb");
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", argv[2]);
    return 2;
  }
  Vsoc soc(&context, "soc");
  soc.clk = 0, soc.rst = 1, soc.put_full = 0;
  soc.eval();
  std::vector<Device> devices(word(file));
  for (size_t d = 0; d < devices.size(); d++) {
    Device &device = devices[d];
    device.layers = word(file);
    device.expected.resize(device.layers * word(file));
    for (Layer &layer : device.expected) {
      layer.places.resize(word(file)), layer.values.resize(layer.places.size());
      for (size_t i = 0; i < layer.places.size(); i++) {
        layer.places[i] = word(file), layer.values[i] = word(file);
      }
    }
    const std::string top = "soc.soc.g_device[" + std::to_string(d) + "]." DEVICE_SCOPE;
    device.ram = find(context, top + "." AI_RAM_SCOPE, "mem");
    device.done = find(context, top + ".u_control", "layer_done");
    device.accept = find(context, top + ".u_control", "start");
  }
  std::fclose(file);

  uint64_t cycle = 0, processor = 0, code = 12;
  for (; cycle < limit; cycle++) {
    if (!soc.rst && soc.transfer) (soc.master ? devices[soc.master - 1].transfers : processor)++;
    for (size_t d = 0; d < devices.size(); d++) {
      Device &device = devices[d];
      if (device.due) compare(device, d);
      device.due = !soc.rst && *device.done;
      if (soc.rst) continue;
      if (*device.accept) device.at -= device.at % device.layers;
      if (*device.accept && device.rose) device.turnaround = std::max(device.turnaround, cycle - device.rose);
      if (!device.irq && (soc.irq >> d & 1)) device.rose = cycle;
      device.irq = soc.irq >> d & 1;
    }
    if (!soc.rst && soc.put) std::putchar((int)(soc.value & 0xFF));
    if (!soc.rst && soc.finish) {
      code = soc.value;
      break;
    }
    if (soc.fault && !soc.rst) {
      std::printf("the processor has stopped: an illegal instruction, or an access that nobody answers\n");
      code = 11;
      break;
    }
    soc.clk = 1;
    soc.eval();
    soc.clk = 0;
    if (cycle == 4) soc.rst = 0;
    soc.eval();
  }
  if (cycle == limit) std::printf("no end within %llu cycles\n", (unsigned long long)limit);
  std::printf("cycles in all %llu\n", (unsigned long long)cycle);
  std::printf("bus: processor %.1f %%", 100.0 * (double)processor / (double)cycle);
  for (size_t d = 0; d < devices.size(); d++) {
    std::printf(", device %zu %.1f %%", d, 100.0 * (double)devices[d].transfers / (double)cycle);
  }
  std::printf("\n");
  for (size_t d = 0; d < devices.size(); d++) {
    const Device &device = devices[d];
    const bool whole = device.at == device.expected.size();
    std::printf("device %zu: %zu of %zu maps compared, %llu bytes, %llu differ\n", d, device.at, device.expected.size(),
                (unsigned long long)device.bytes, (unsigned long long)device.wrong);
    if (device.turnaround) {
      std::printf("device %zu: interrupt to next start %llu cycles\n", d, (unsigned long long)device.turnaround);
    }
    if (code == 0 && (device.wrong || !whole)) code = 10;
  }
  soc.final();
  return (int)code;
}
