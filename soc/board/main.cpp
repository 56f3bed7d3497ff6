// SPDX-License-Identifier: Apache-2.0
// Runs ulx3s.v, as RTL or as a netlist: prints the characters that arrive on the serial line.
//
// board_main CYCLES BIT_CYCLES: at most CYCLES cycles of the board's clock. Exit status: the code on LEDs 0 to 3 once the
// program has ended and the line is at rest; 11 a fault of the processor, 12 too many cycles, 13 a stop bit that is 0.

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "Vulx3s.h"
#include "verilated.h"

int main(int argc, char **argv) {
  VerilatedContext context;
  context.commandArgs(argc, argv);
  context.randReset(2);
  context.randSeed(1);
  if (argc < 3) {
    std::fprintf(stderr, "usage: board_main CYCLES BIT_CYCLES\n");
    return 2;
  }
  const uint64_t limit = std::strtoull(argv[1], nullptr, 10), bit = std::strtoull(argv[2], nullptr, 10);
  Vulx3s board(&context, "board");
  board.btn_fire1 = 0, board.clk_25mhz = 0;
  board.eval();
  uint64_t begun = 0;
  bool receiving = false, seen = false;
  unsigned character = 0, at = 0;
  for (uint64_t cycle = 0; cycle < limit; cycle++) {
    // FIRE1 for some cycles, as after a configuration that leaves every register unknown
    board.btn_fire1 = cycle < 4;
    board.clk_25mhz = 0;
    board.eval();
    board.clk_25mhz = 1;
    board.eval();
    if (cycle < 32) continue;
    const bool line = board.ftdi_rxd;
    if (!receiving && !line) {
      receiving = true, begun = cycle, character = 0, at = 0;
    } else if (receiving && cycle - begun == bit / 2 + (at + 1) * bit) {
      if (at == 8) {
        if (!line) return 13;
        std::putchar((int)character);
        receiving = false;
      } else {
        character |= (unsigned)line << at++;
      }
    }
    seen = seen || (board.led & 0x80);
    if (board.led & 0x40) {
      std::fflush(stdout);
      std::printf("\nthe processor stopped, after %llu cycles\n", (unsigned long long)cycle);
      return 11;
    }
    if (seen && !receiving && !(board.led & 0x20)) {
      std::printf("ended after %llu cycles\n", (unsigned long long)cycle);
      return board.led & 15;
    }
  }
  std::printf("\nnot at an end after %llu cycles\n", (unsigned long long)limit);
  return 12;
}
