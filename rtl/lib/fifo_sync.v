// SPDX-License-Identifier: Apache-2.0
//
// fifo_sync: first-word fall-through FIFO for one clock, any depth of two words or more.
//
// How it works: circular buffer in a ram_1r1w_async, write and read pointer, and a count.
// Handshake: a word enters in a cycle with in_valid && in_ready and leaves in a cycle with out_valid &&
// out_ready. in_ready and out_valid depend on the count register alone: a full FIFO does not accept a
// word in the cycle in which one leaves, and a word is visible one cycle after it enters. flush empties
// the FIFO and drops a word offered in that cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fifo_sync #(
    // bits of a word
    parameter WIDTH   = 32,
    // number of words, at least 2, not necessarily a power of two
    parameter DEPTH   = 16,
    // derived, not to be set: width of the count 0..DEPTH
    parameter COUNT_W = $clog2(DEPTH + 1)
) (
    // clock, synchronous reset, flush
    input  wire               clk,
    input  wire               rst,
    input  wire               flush,
    // write side
    input  wire               in_valid,
    output wire               in_ready,
    input  wire [  WIDTH-1:0] in_data,
    // read side
    output wire               out_valid,
    input  wire               out_ready,
    output wire [  WIDTH-1:0] out_data,
    // words held
    output reg  [COUNT_W-1:0] count
);

  localparam PTR_W = $clog2(DEPTH);
  localparam LAST_I = DEPTH - 1;
  localparam [PTR_W-1:0] LAST = LAST_I[PTR_W-1:0];
  localparam [COUNT_W-1:0] FULL = DEPTH[COUNT_W-1:0];
  // a power of two wraps by itself
  localparam WRAPS = DEPTH != (1 << PTR_W);

  generate
    if (DEPTH < 2) begin : g_check
      ILLEGAL_DEPTH_FROM_2 u_illegal ();
    end
  endgenerate

  reg [PTR_W-1:0] wr_ptr;
  reg [PTR_W-1:0] rd_ptr;

  wire push = in_valid && in_ready;
  wire pop = out_valid && out_ready;
  // count + push - pop in one adder: push is its carry
  wire [COUNT_W:0] counted = {count, 1'b1} + {{COUNT_W{pop}}, push};

  wire unused = &{1'b0, counted[0]};

  assign in_ready  = (count != FULL);
  assign out_valid = (count != {COUNT_W{1'b0}});

  ram_1r1w_async #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) u_ram (
      .clk  (clk),
      .we   (push),
      .waddr(wr_ptr),
      .wdata(in_data),
      .raddr(rd_ptr),
      .rdata(out_data)
  );

  always @(posedge clk) begin
    if (rst || flush) begin
      wr_ptr <= {PTR_W{1'b0}};
      rd_ptr <= {PTR_W{1'b0}};
      count  <= {COUNT_W{1'b0}};
    end else begin
      if (push) begin
        wr_ptr <= (WRAPS && wr_ptr == LAST) ? {PTR_W{1'b0}} : wr_ptr + 1'b1;
      end
      if (pop) begin
        rd_ptr <= (WRAPS && rd_ptr == LAST) ? {PTR_W{1'b0}} : rd_ptr + 1'b1;
      end
      count <= counted[COUNT_W:1];
    end
  end

`ifdef FORMAL_fifo_sync
  `include "fifo_sync_props.vh"
`endif

endmodule

`resetall
