// SPDX-License-Identifier: Apache-2.0
//
// lane_ctrl: works out, for each lane of an issue, whether it counts and where it meets padding.
//
// How it works: a depthwise lane has the pixel of its own place in the row; when a word is narrower
// than the lanes, those of the others rest. A lane's pixel stands at jj = position modulo the slot width, in slot = position /
// slot width (a line of a stacked stripe, or a channel of an AI RAM row). It counts when jj < wlim
// and slot < slots and its kernel module has an output channel. Left and right padding concern
// jj = 0 and jj = rpos, top and bottom a line. The result is registered, one cycle after the issue,
// together with what the columns of the array need.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module lane_ctrl #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // lanes of a depthwise row; 1: those from 64 on are a second row
    parameter LD = N_Y * N_Z,
    parameter PAIR = 0,
    // derived, not to be set: lanes and width of a bank number
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire         clk,
    input  wire         rst,
    // layer: lanes are pixels of their own; only lane 0 works (fully connected); depthwise stripes
    // of several lines; log2 slot width
    input  wire         dw,
    input  wire         single,
    input  wire         by_slot,
    input  wire [  2:0] swl,
    // issue, see issue_stage
    input  wire         issue_valid,
    input  wire [  5:0] issue_pos,
    input  wire [  6:0] issue_wlim,
    input  wire [  2:0] issue_slots,
    input  wire         issue_left,
    input  wire         issue_right,
    input  wire [  5:0] issue_rpos,
    input  wire         issue_top,
    input  wire         issue_bot,
    input  wire [  1:0] issue_bslot,
    input  wire [ ZW:0] issue_nz,
    // there is a second depthwise row, at the lower edge
    input  wire         issue_two,
    input  wire         issue_two_bot,
    // per lane: counts, padding left, right, above, below
    output reg  [L-1:0] valid,
    output reg  [L-1:0] left,
    output reg  [L-1:0] right,
    output reg  [L-1:0] top,
    output reg  [L-1:0] bot,
    // number of lanes that count
    output reg  [  7:0] count
);

  localparam DB = $clog2(LD);
  localparam integer LAST = L - 1;
  localparam [7:0] LANES_M1 = LAST[7:0];

  wire [6:0] mask = (7'd1 << swl) - 7'd1;

  reg [L-1:0] next_valid;
  reg [L-1:0] next_left;
  reg [L-1:0] next_right;
  reg [L-1:0] next_top;
  reg [L-1:0] next_bot;
  reg [7:0] next_count;
  reg [7:0] at;
  reg [6:0] jj;
  reg [3:0] slot;
  reg second;
  integer i;

  always @* begin
    i          = 0;  // a loop that is skipped would leave it as it was: a latch
    next_valid = {L{1'b0}};
    next_left  = {L{1'b0}};
    next_right = {L{1'b0}};
    next_top   = {L{1'b0}};
    next_bot   = {L{1'b0}};
    next_count = 8'd0;
    at         = 8'd0;
    jj         = 7'd0;
    slot       = 4'd0;
    second     = 1'b0;
    if (issue_valid) begin
      for (i = 0; i < L; i = i + 1) begin
        second = PAIR != 0 && dw && i >= 64;
        at = second ? {2'b00, i[5:0]} : dw ? ({2'b00, issue_pos} & ~LANES_M1) + i[7:0] :
            {2'b00, issue_pos} + {4'd0, i[3:0] & (N_Y[3:0] - 4'd1)};
        jj = at[6:0] & mask;
        slot = at[7:4] >> (swl - 3'd4);
        // beyond the 64 positions of a row there is nothing; slots counts the rows in use
        next_valid[i] = (!single || i == 0) && (!second || issue_two) && !at[6] && !at[7] && jj < issue_wlim && (!dw || slot < {1'b0, issue_slots}) &&
            (dw ? at >> DB == {2'b00, issue_pos} >> DB : (i / N_Y) < {{(31 - ZW) {1'b0}}, issue_nz});
        next_left[i] = issue_left && jj == 7'd0;
        next_right[i] = issue_right && jj == {1'b0, issue_rpos};
        next_top[i] = issue_top && !second && (!by_slot || slot == 4'd0);
        next_bot[i] = second ? issue_two_bot : issue_bot && (!by_slot || slot == {2'b00, issue_bslot});
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

  wire unused = &{1'b0, issue_two, issue_two_bot};

endmodule

`resetall
