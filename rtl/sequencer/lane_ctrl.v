// SPDX-License-Identifier: Apache-2.0
//
// lane_ctrl: computes for each lane of an issue whether it is valid and where it meets padding.
//
// How it works: a depthwise lane has the pixel of its own position in the row; where a word is narrower than
// the lanes, the lanes outside it are idle. A lane's pixel is in a column of a slot: position modulo and
// divided by the slot width. A slot is a line of a stripe, or a channel of an AI RAM row. A lane is valid
// when column and slot are in use and its kernel module has an output channel. Left and right padding affect
// one column each, padding above and below one line of a stripe, or the line of a row; with dilation as many
// of them. The result is registered, one cycle after the issue.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module lane_ctrl #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // lanes of a depthwise row; 1: lanes from 64 on are a second row; largest dilation
    parameter LD = N_Y * N_Z,
    parameter PAIR = 0,
    parameter DILATION = 1,
    // derived, not to be set: lanes and width of a bank index
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z),
    // width of a tile entry, of a weight row
    parameter TE = 5,
    parameter WA = 10
) (
    // clock and synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // layer: each lane has its own pixel; only lane 0 is active (fully connected); slots are lines of a
    // stripe; log2 of the slot width; pixels between taps, less one
    input  wire                    dw,
    input  wire                    single,
    input  wire                    by_slot,
    input  wire [             2:0] swl,
    input  wire [             2:0] apart,
    // issue, see issue_stage
    input  wire                    issue_valid,
    input  wire [`STAGED_BITS-1:0] staged,
    // per lane: valid, padding left, right, above, below
    output reg  [           L-1:0] valid,
    output reg  [           L-1:0] left,
    output reg  [           L-1:0] right,
    output reg  [           L-1:0] top,
    output reg  [           L-1:0] bot,
    // number of valid lanes
    output reg  [             7:0] count
);

  localparam DB = $clog2(LD);
  localparam integer LAST = L - 1;
  localparam [6:0] LANES_M1 = LAST[6:0];
  localparam integer PIXELS = N_Y - 1;
  localparam [6:0] PIXELS_M1 = PIXELS[6:0];

  wire [5:0] pos = staged[`STAGED_POS];
  wire [6:0] width = staged[`STAGED_WIDTH];
  wire [2:0] lines = staged[`STAGED_LINES];
  wire [5:0] right_at = staged[`STAGED_RIGHT_AT];
  wire [1:0] top_at = staged[`STAGED_TOP_AT];
  wire [1:0] bot_at = staged[`STAGED_BOT_AT];
  localparam [0:0] FAR = DILATION > 1;
  wire [31:0] kernels = {{(31 - ZW) {1'b0}}, staged[`STAGED_NZ]};
  wire [5:0] mask = {swl[1], swl[1:0] != 2'd0, 4'hf};

  reg [L-1:0] next_valid;
  reg [L-1:0] next_left;
  reg [L-1:0] next_right;
  reg [L-1:0] next_top;
  reg [L-1:0] next_bot;
  reg [7:0] next_count;
  reg [6:0] at;
  reg [5:0] column;
  reg [1:0] slot;
  reg second;
  reg on_row;
  reg used;
  integer i;

  always @* begin
    i          = 0;  // a skipped loop would leave it unassigned: a latch
    next_valid = {L{1'b0}};
    next_left  = {L{1'b0}};
    next_right = {L{1'b0}};
    next_top   = {L{1'b0}};
    next_bot   = {L{1'b0}};
    next_count = 8'd0;
    at         = 7'd0;
    column     = 6'd0;
    slot       = 2'd0;
    second     = 1'b0;
    on_row     = 1'b0;
    used       = 1'b0;
    if (issue_valid) begin
      for (i = 0; i < L; i = i + 1) begin
        second = PAIR != 0 && dw && i >= 64;
        // a position is a multiple of the pixels; depthwise lanes are aligned
        at = second ? {1'b0, i[5:0]} : dw ? ({1'b0, pos} & ~LANES_M1) | i[6:0] : {1'b0, pos} | (i[6:0] & PIXELS_M1);
        column = at[5:0] & mask;
        slot = (swl[1:0] == 2'd0) ? at[5:4] : {1'b0, at[5] && swl[0]};
        // a row has 64 positions
        on_row = !at[6] && {1'b0, column} < width && (!dw || {1'b0, slot} < lines);
        used = dw ? at >> DB == {1'b0, pos} >> DB : (i / N_Y) < kernels;
        next_valid[i] = single ? i == 0 : on_row && used && (!second || staged[`STAGED_TWO]);
        next_left[i] = staged[`STAGED_LEFT] && (FAR ? column <= {3'd0, apart} : column == 6'd0);
        next_right[i] = staged[`STAGED_RIGHT] && (FAR ? column >= right_at : column == right_at);
        next_top[i] = staged[`STAGED_TOP] && !second && (!by_slot || (FAR ? slot <= top_at : slot == 2'd0));
        next_bot[i] = second ? staged[`STAGED_TWO_END] :
            staged[`STAGED_BOT] && (!by_slot || (FAR ? slot >= bot_at : slot == bot_at));
        next_count = next_count + {7'd0, next_valid[i]};
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      valid <= {L{1'b0}};
      count <= 8'd0;
    end else begin
      valid <= next_valid;
      count <= next_count;
    end
  end

  always @(posedge clk) begin
    if (issue_valid) begin
      left  <= next_left;
      right <= next_right;
      top   <= next_top;
      bot   <= next_bot;
    end
  end

  wire unused = &{1'b0, staged, swl[2], top_at, apart};

endmodule

`resetall
