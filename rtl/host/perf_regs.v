// SPDX-License-Identifier: Apache-2.0
//
// perf_regs: read-only view of the 64-bit performance counters, offsets 0x180..0x1EC.
//
// The counters are in perf, which index selects from. A read of a low word latches the high word of the
// same cycle for the next read, so both are consistent: read low first, then high. The carry into the high
// word is added when it is read.
// Handshake: rd is a strobe; next carries its word address one cycle earlier; rdata is valid in the same
// cycle and zero for other addresses.

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
    // register access; word address of the next cycle's access
    input  wire        rd,
    input  wire [ 9:0] next,
    output wire [31:0] rdata,
    output reg         hit,
    // index of the counter (NONE without one), its value in the same cycle, carry into its high word
    output reg  [ 3:0] index,
    input  wire [63:0] value,
    input  wire        carry
);

  localparam [9:0] FIRST = `REG_PERF_TOTAL;
  localparam [9:0] WORDS = 10'd2 * COUNTERS[9:0];

  // without an addressed counter perf selects none, so index is no copy of the address
  localparam [3:0] NONE = 4'd15;

  wire [9:0] place = next - FIRST;
  wire       counted = place < WORDS;  // addresses below FIRST wrap around
  reg at_low, at_high;
  reg [31:0] high;
  reg        more;

  always @(posedge clk) begin
    hit     <= counted;
    index   <= counted ? place[4:1] : NONE;
    at_low  <= counted && !place[0];
    at_high <= counted && place[0];
  end
  assign rdata = (value[31:0] & {32{at_low}}) | ((high + {31'd0, more}) & {32{at_high}});

  always @(posedge clk) begin
    if (rst) begin
      high <= 32'd0;
      more <= 1'b0;
    end else if (rd && at_low) begin
      high <= value[63:32];
      more <= carry;
    end
  end

  generate
    if (COUNTERS < 1 || COUNTERS > 16) begin : g_illegal
      ILLEGAL_COUNTERS_1_TO_16 u_illegal ();
    end
  endgenerate

endmodule

`resetall
