// SPDX-License-Identifier: Apache-2.0
//
// sweep: walks the pixels of an issue: its position among the 64 of a stripe, or of an AI RAM row.
//
// How it works: the positions form slots of 16, 32 or 64: lines of a stripe, or channels of a row. An issue
// covers a chunk of N_Y pixels of a slot; a depthwise one has a pixel per lane, possibly whole slots. After
// the last chunk in use of a slot comes the next slot, after the last slot in use the first. A fully
// connected layer has one pixel and stays at it.
// Handshake: on advances to the next pixels.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module sweep #(
    // pixels of the array; lanes of a depthwise row (powers of two)
    parameter N_Y   = 4,
    parameter LANES = 16
) (
    // clock and synchronous reset
    input  wire       clk,
    input  wire       rst,
    // layer: depthwise, log2 of the slot width; pixels per slot and slots in use, less one
    input  wire       dw,
    input  wire [2:0] swl,
    input  wire [5:0] width_m1,
    input  wire [1:0] slots_m1,
    // advance to the next pixels, after the last ones to the first
    input  wire       on,
    // position, index of the issue in the sweep; it is the first one, the last one; the next one is in the
    // second half
    output reg  [5:0] pos,
    output reg  [5:0] idx,
    output reg        first,
    output wire       last,
    output wire       half_end
);

  localparam integer DB = $clog2(LANES);
  localparam [2:0] DB_3 = DB[2:0];
  localparam [5:0] CHUNK_Y = N_Y[5:0];
  localparam [6:0] CHUNK_D = LANES[6:0];
  localparam [5:0] IN_Y = CHUNK_Y - 6'd1;
  localparam [6:0] IN_D = CHUNK_D - 7'd1;

  // an issue covers whole slots
  wire wide = dw && DB_3 >= swl;

  // the last chunk of the slot
  wire [5:0] column = {pos[5] && swl[1], pos[4] && swl != 3'd4, pos[3:0]};
  wire [5:0] chunk = dw ? IN_D[5:0] : IN_Y;
  wire slot_end = wide || &(~(column ^ width_m1) | chunk);

  // the last slot: compared in slots, or in chunks of them
  wire [2:0] unit_l = wide ? DB_3 : swl;
  wire [1:0] end_slot = (swl == 3'd4) ? slots_m1 : {slots_m1[0], 1'b1};
  wire slot_last = (pos[5] == end_slot[1] || unit_l[2:1] == 2'd3) &&
      (pos[4] == end_slot[0] || unit_l != 3'd4);
  assign last = slot_end && slot_last;

  wire skips = slot_end && !wide;
  wire [5:0] along = pos + (dw ? CHUNK_D[5:0] : CHUNK_Y);
  wire [1:0] slot_next = (swl == 3'd4) ? pos[5:4] + 2'd1 : 2'd2;
  wire [5:0] next = skips ? {slot_next, 4'd0} : along;
  assign half_end = next[5] && !pos[5];

  always @(posedge clk) begin
    if (rst) begin
      pos   <= 6'd0;
      idx   <= 6'd0;
      first <= 1'b1;
    end else begin
      pos   <= !on ? pos : last ? 6'd0 : next;
      idx   <= !on ? idx : last ? 6'd0 : idx + 6'd1;
      first <= !on ? first : last;
    end
  end

  wire unused = &{1'b0, IN_D[6], CHUNK_D[6], width_m1, slots_m1};

endmodule

`resetall
