// SPDX-License-Identifier: Apache-2.0
//
// fifo_ram: first-word fall-through FIFO on a memory with registered reads, for larger depths.
//
// How it works: a stored word is read into the output register of the memory as soon as that is free;
// `count` is the words in the memory plus the one in the output register.
// Handshake: as fifo_sync; a word becomes visible two cycles after it enters an empty FIFO, and after
// that one word per cycle is sustained. flush drops everything.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module fifo_ram #(
    // bits of a word
    parameter WIDTH   = 64,
    // number of words, at least 2, not necessarily a power of two
    parameter DEPTH   = 192,
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
    output reg                out_valid,
    input  wire               out_ready,
    output wire [  WIDTH-1:0] out_data,
    // words held
    output wire [COUNT_W-1:0] count
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
  reg [COUNT_W-1:0] stored;

  wire push = in_valid && in_ready;
  wire pop = out_valid && out_ready;
  wire fetch = (stored != {COUNT_W{1'b0}}) && (!out_valid || pop);
  // stored + push - fetch in one adder: push is its carry
  wire [COUNT_W:0] counted = {stored, 1'b1} + {{COUNT_W{fetch}}, push};

  assign count = stored + {{(COUNT_W - 1) {1'b0}}, out_valid};
  wire unused = &{1'b0, counted[0]};

  assign in_ready = (count != FULL);

  // a word is read only after it is stored, and its location is not rewritten before that
  ram_1r1w #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) u_ram (
      .clk  (clk),
      .we   (push),
      .wlane(1'b1),
      .waddr(wr_ptr),
      .wdata(in_data),
      .re   (fetch),
      .raddr(rd_ptr),
      .rdata(out_data)
  );

  always @(posedge clk) begin
    if (rst || flush) begin
      wr_ptr <= {PTR_W{1'b0}};
      rd_ptr <= {PTR_W{1'b0}};
      stored <= {COUNT_W{1'b0}};
      out_valid <= 1'b0;
    end else begin
      if (push) begin
        wr_ptr <= (WRAPS && wr_ptr == LAST) ? {PTR_W{1'b0}} : wr_ptr + 1'b1;
      end
      if (fetch) begin
        rd_ptr <= (WRAPS && rd_ptr == LAST) ? {PTR_W{1'b0}} : rd_ptr + 1'b1;
      end
      stored <= counted[COUNT_W:1];
      out_valid <= fetch || (out_valid && !pop);
    end
  end

`ifdef FORMAL_fifo_ram
  `include "fifo_ram_props.vh"
`endif

endmodule

`resetall
