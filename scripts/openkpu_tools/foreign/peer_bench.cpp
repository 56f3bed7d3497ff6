// SPDX-License-Identifier: Apache-2.0
// The clock of peer_bench.v, which ends the run itself.
#include "Vpeer_bench.h"
#include "verilated.h"

int main() {
    Vpeer_bench top;
    while (!Verilated::gotFinish()) {
        top.clk = !top.clk;
        top.eval();
    }
    top.final();
    return 0;
}
