// SPDX-License-Identifier: Apache-2.0
//
// lane_ctrl: works out, for each lane of an issue, whether it counts and where it meets padding.
//
// How it works: a lane's pixel stands at jj = position modulo the slot width, in slot = position /
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
    // lanes and width of a bank number
    parameter L   = N_Y * N_Z,
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // layer: lanes are pixels of their own; only lane 0 works (fully connected); depthwise stripes
    // of several lines; log2 slot width
    input  wire          dw,
    input  wire          single,
    input  wire          by_slot,
    input  wire [   2:0] swl,
    // issue, see mac_seq
    input  wire          is_valid,
    input  wire [   5:0] is_pos,
    input  wire [   6:0] is_wlim,
    input  wire [   2:0] is_slots,
    input  wire          is_left,
    input  wire          is_right,
    input  wire [   5:0] is_rpos,
    input  wire          is_top,
    input  wire          is_bot,
    input  wire [   1:0] is_bslot,
    input  wire [  ZW:0] is_nz,
    // per lane: counts, padding left, right, above, below
    output reg  [ L-1:0] valid,
    output reg  [ L-1:0] left,
    output reg  [ L-1:0] right,
    output reg  [ L-1:0] top,
    output reg  [ L-1:0] bot,
    // number of lanes that count
    output reg  [   7:0] count
);

  wire [6:0] mask = (7'd1 << swl) - 7'd1;

  reg  [L-1:0] n_valid;
  reg  [L-1:0] n_left;
  reg  [L-1:0] n_right;
  reg  [L-1:0] n_top;
  reg  [L-1:0] n_bot;
  reg  [  7:0] n_count;
  reg  [  7:0] at;
  reg  [  6:0] jj;
  reg  [  3:0] slot;
  integer i;

  always @* begin
    n_valid = {L{1'b0}};
    n_left  = {L{1'b0}};
    n_right = {L{1'b0}};
    n_top   = {L{1'b0}};
    n_bot   = {L{1'b0}};
    n_count = 8'd0;
    at      = 8'd0;
    jj      = 7'd0;
    slot    = 4'd0;
    if (is_valid) begin
      for (i = 0; i < L; i = i + 1) begin
        at   = {2'b00, is_pos} + (dw ? i[7:0] : {4'd0, i[3:0] & (N_Y[3:0] - 4'd1)});
        jj   = at[6:0] & mask;
        slot = at[7:4] >> (swl - 3'd4);
        // beyond the 64 positions of a row there is nothing; slots counts the rows in use
        n_valid[i] = (!single || i == 0) && !at[6] && !at[7] && jj < is_wlim && (!dw || slot < {1'b0, is_slots}) &&
            (dw || (i / N_Y) < {{(31 - ZW) {1'b0}}, is_nz});
        n_left[i]  = is_left && jj == 7'd0;
        n_right[i] = is_right && jj == {1'b0, is_rpos};
        n_top[i]   = is_top && (!by_slot || slot == 4'd0);
        n_bot[i]   = is_bot && (!by_slot || slot == {2'b00, is_bslot});
        n_count    = n_count + {7'd0, n_valid[i]};
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      valid <= {L{1'b0}};
      count <= 8'd0;
    end else begin
      valid <= n_valid;
      count <= n_count;
    end
  end

  always @(posedge clk) begin
    if (is_valid) begin
      left  <= n_left;
      right <= n_right;
      top   <= n_top;
      bot   <= n_bot;
    end
  end

endmodule

`resetall
