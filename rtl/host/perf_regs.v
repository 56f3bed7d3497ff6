// SPDX-License-Identifier: Apache-2.0
//
// perf_regs: read-only view of the 64-bit performance counters, offsets 0x180..0x1E4.
//
// The counters are in perf, which is asked for one of them. A read of a low word stores the high word
// of the same cycle for the read that follows, so that both belong together: read low first, then
// high. The carry into it is added when it is read. Combinational but for that register.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module perf_regs #(
    // number of counters
    parameter COUNTERS = 14
) (
    input  wire        clk,
    input  wire        rst,
    // register access
    input  wire        rd,
    input  wire [11:0] addr,
    output wire [31:0] rdata,
    output wire        hit,
    // number of the counter, its value in the same cycle, carry into the high word of it
    output wire [ 3:0] index,
    input  wire [63:0] value,
    input  wire        carry
);

  localparam [9:0] FIRST = `REG_PERF_TOTAL;
  localparam [9:0] WORDS = 10'd2 * COUNTERS[9:0];

  wire [ 9:0] place = addr[11:2] - FIRST;
  reg  [31:0] high;
  reg         more;

  assign hit   = (addr[11:2] >= FIRST) && (place < WORDS);
  assign index = place[4:1];
  assign rdata = !hit ? 32'd0 : place[0] ? high + {31'd0, more} : value[31:0];

  always @(posedge clk) begin
    if (rst) begin
      high <= 32'd0;
      more <= 1'b0;
    end else if (rd && hit && !place[0]) begin
      high <= value[63:32];
      more <= carry;
    end
  end

  generate
    if (COUNTERS < 1 || COUNTERS > 16) begin : g_illegal
      ILLEGAL_COUNTERS_1_TO_16 u_illegal ();
    end
  endgenerate

  // all registers are words
  wire _unused_ok = &{1'b0, addr[1:0]};

endmodule

`resetall
