// SPDX-License-Identifier: Apache-2.0
//
// perf_regs: read-only view of the 64-bit performance counters, offsets 0x180..0x1E4.
//
// The counters are in perf. A read of a low word stores the high word of the same cycle for the
// read that follows, so that both belong together: read low first, then high. Combinational but
// for that register.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module perf_regs #(
    // number of counters
    parameter COUNTERS = 14
) (
    input  wire                   clk,
    input  wire                   rst,
    // register access
    input  wire                   rd,
    input  wire [           11:0] addr,
    output wire [           31:0] rdata,
    output wire                   hit,
    // counters, first one lowest
    input  wire [64*COUNTERS-1:0] perf_flat
);

  localparam [9:0] FIRST = `REG_PERF_TOTAL;
  localparam [9:0] WORDS = 10'd2 * COUNTERS[9:0];

  wire    [ 9:0] index = addr[11:2] - FIRST;
  reg     [31:0] high;
  reg     [63:0] value;
  integer        i;

  assign hit   = (addr[11:2] >= FIRST) && (index < WORDS);
  assign rdata = !hit ? 32'd0 : index[0] ? high : value[31:0];

  always @* begin
    i = 0;  // a loop that is skipped would leave it as it was: a latch
    value = 64'd0;
    if (hit)
      for (i = 0; i < COUNTERS; i = i + 1) begin
        if (index[9:1] == i[8:0]) begin
          value = perf_flat[64*i+:64];
        end
      end
  end

  always @(posedge clk) begin
    if (rst) begin
      high <= 32'd0;
    end else if (rd && hit && !index[0]) begin
      high <= value[63:32];
    end
  end

  // all registers are words
  wire _unused_ok = &{1'b0, addr[1:0]};

endmodule

`resetall
