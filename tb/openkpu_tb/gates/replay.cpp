// SPDX-License-Identifier: Apache-2.0
// Runs the netlist of a box on what its ports had in the RTL, and counts how often each net toggles.
//
// replay FILE FIRST LAST: FILE has a row a cycle, the words of all inputs and outputs in the order of ports.h. Outputs are
// compared whenever out_valid is 1. Nets are the outputs nets_0, nets_1, ... of the netlist; toggles and cycles at 1 from
// row FIRST on, before row LAST, leave on stdout, a line a net. Exit status 1 when an output differs, 2 for a bad call.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "Vbox.h"
#include "verilated.h"

// ports.h: IN(name, words) for each input but clk, OUT(name, words) for each output of the box, NET(name, words) for each
// of the nets; NETS of them, WORDS of a row
#ifndef PORTS
#define PORTS "ports.h"
#endif

namespace {

template <class T>
uint32_t *words_of(T &port) {
  return reinterpret_cast<uint32_t *>(&port);
}

template <class T>
void set(T &port, const uint32_t *from, int words) {
  if (sizeof(T) < 4) {
    port = (T) * reinterpret_cast<const T *>(from);
  } else {
    std::memcpy(words_of(port), from, 4 * words);
  }
}

template <class T>
bool same(T &port, const uint32_t *other, int words) {
  return std::memcmp(&port, other, sizeof(T) < 4 ? sizeof(T) : 4 * words) == 0;
}

}  // namespace

int main(int argc, char **argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: replay FILE FIRST LAST\n");
    return 2;
  }
  std::FILE *file = std::fopen(argv[1], "rb");
  if (!file) {
    std::fprintf(stderr, "%s: cannot be read\n", argv[1]);
    return 2;
  }
  const uint64_t first = std::strtoull(argv[2], nullptr, 10), last = std::strtoull(argv[3], nullptr, 10);
  VerilatedContext context;
  context.randReset(2);
  context.randSeed(1);
  Vbox box(&context, "box");
  std::vector<uint32_t> row(WORDS), before((NETS + 31) / 32), nets(before), toggles(32 * before.size()), high(toggles);
  uint64_t compared = 0, wrong = 0;
  for (uint64_t cycle = 0; std::fread(row.data(), 4, WORDS, file) == WORDS; cycle++) {
    const uint32_t *at = row.data();
    box.clk = 0;
#define IN(name, words) set(box.name, at, words), at += words;
#define OUT(name, words)
#define NET(name, words)
#include PORTS
#undef IN
#undef OUT
#undef NET
    box.eval();
    uint32_t *next = nets.data();
#define IN(name, words)
#define OUT(name, words)
#define NET(name, words) std::memcpy(next, words_of(box.name), 4 * words), next += words;
#include PORTS
#undef IN
#undef OUT
#undef NET
    if (cycle > first && cycle <= last) {
      for (size_t w = 0; w < before.size(); w++) {
        for (uint32_t changed = before[w] ^ nets[w]; changed; changed &= changed - 1) {
          toggles[32 * w + __builtin_ctz(changed)]++;
        }
        for (uint32_t ones = nets[w]; ones; ones &= ones - 1) high[32 * w + __builtin_ctz(ones)]++;
      }
    }
    before = nets;
    if (cycle > first && box.out_valid) {
#define IN(name, words)
#define OUT(name, words) wrong += !same(box.name, at, words), compared++, at += words;
#define NET(name, words)
#include PORTS
#undef IN
#undef OUT
#undef NET
    }
    box.clk = 1;
    box.eval();
  }
  for (size_t n = 0; n < NETS; n++) std::printf("%u %u\n", toggles[n], high[n]);
  std::fprintf(stderr, "%llu outputs compared, %llu differ\n", (unsigned long long)compared, (unsigned long long)wrong);
  return wrong ? 1 : 0;
}
