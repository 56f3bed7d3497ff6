// SPDX-License-Identifier: Apache-2.0
//
// fifo_regs: short FIFO for one clock built of registers, with a registered output.
//
// How it works: a row of registers with the head at its end. A word moves towards the head as soon as a
// register in front of it is free, all words in the same cycle, so no multiplexer is needed: wide words
// of a short queue cost flip-flops only. With BYPASS a word goes straight to the first free register,
// through a multiplexer for each register but the last.
// Handshake: as fifo_sync. Moving words fill all registers, so that a full flow pauses once in DEPTH + 1
// cycles. A word becomes visible DEPTH cycles after it enters an empty FIFO, with BYPASS one cycle; until
// then only empty shows its presence. out_data is zero while out_valid is low. flush empties the FIFO and
// drops a word offered in that cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fifo_regs #(
    // bits of a word
    parameter WIDTH  = 32,
    // number of words, at least 1
    parameter DEPTH  = 2,
    // 1: a word is visible in the next cycle
    parameter BYPASS = 0
) (
    // clock, synchronous reset, flush
    input  wire             clk,
    input  wire             rst,
    input  wire             flush,
    // write side
    input  wire             in_valid,
    output wire             in_ready,
    input  wire [WIDTH-1:0] in_data,
    // read side
    output wire             out_valid,
    input  wire             out_ready,
    output wire [WIDTH-1:0] out_data,
    // out_data of the next cycle, unless flushed
    output wire [WIDTH-1:0] next_data,
    // no word in any register
    output wire             empty
);

  generate
    if (DEPTH < 1) begin : g_illegal_depth
      ILLEGAL_DEPTH_OF_A_FIFO u_illegal ();
    end
    if (BYPASS < 0 || BYPASS > 1) begin : g_illegal_bypass
      ILLEGAL_BYPASS_0_OR_1 u_illegal ();
    end
  endgenerate

  // register 0 is the head
  reg [DEPTH-1:0] held;

  wire push = in_valid && in_ready;
  // register i accepts the word behind it, because a register up to i is free or becomes free
  wire [DEPTH-1:0] moves;

  assign in_ready  = held != {DEPTH{1'b1}};
  assign out_valid = held[0];
  assign out_data  = g_place[0].data;
  assign next_data = !moves[0] ? out_data : g_place[0].next & {WIDTH{g_place[0].behind}};
  assign empty     = held == {DEPTH{1'b0}};

  genvar i;
  generate
    for (i = 0; i < DEPTH; i = i + 1) begin : g_place
      reg [WIDTH-1:0] data;
      wire behind;  // a word is available for this register
      wire [WIDTH-1:0] next;

      assign moves[i] = out_ready || held[i:0] != {(i + 1) {1'b1}};

      if (i == DEPTH - 1) begin : g_last
        assign behind = push;
        assign next   = in_data;
      end else if (BYPASS != 0) begin : g_bypass
        assign behind = held[i+1] || push;
        assign next   = held[i+1] ? g_place[i+1].data : in_data;
      end else begin : g_chain
        assign behind = held[i+1];
        assign next   = g_place[i+1].data;
      end

      // with a bypass a word skips the registers that it leaves empty
      wire passes;
      if (BYPASS == 0 || i == 0) begin : g_stays
        assign passes = 1'b0;
      end else begin : g_passes
        assign passes = !held[i] && moves[i-1];
      end

      always @(posedge clk) begin
        if (rst || flush) held[i] <= 1'b0;
        else held[i] <= moves[i] ? behind && !passes : held[i];
      end

      // an empty head reads as zero
      always @(posedge clk) begin
        if (i == 0 && (rst || flush || (moves[i] && !behind))) data <= {WIDTH{1'b0}};
        else if (moves[i]) data <= next;
      end
    end
  endgenerate

`ifdef FORMAL_fifo_regs
  `include "fifo_regs_props.vh"
`endif

endmodule

`resetall
