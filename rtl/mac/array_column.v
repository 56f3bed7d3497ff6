// SPDX-License-Identifier: Apache-2.0
//
// array_column: column t of the array, its bank of the tile buffer, its weights and its operands.
//
// How it works: unit t of every cascade works t cycles after unit 0, so everything here happens t
// cycles after the issue: the bank and the weight column are read, a cycle later the operands are
// picked from what they gave.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module array_column #(
    // array: pixels and output channels, bits of a weight
    parameter N_Y       = 4,
    parameter N_Z       = 4,
    parameter WB        = 16,
    // rows of the tile buffer and the weight buffer
    parameter TILE_ROWS = 32,
    parameter WBUF_ROWS = 1024,
    // lanes, widths of a bank number, an entry counter, addresses
    parameter L         = N_Y * N_Z,
    parameter ZW        = $clog2(N_Z),
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter TA        = $clog2(TILE_ROWS),
    parameter WA        = $clog2(WBUF_ROWS)
) (
    // clock and synchronous reset
    input  wire              clk,
    input  wire              rst,
    // which column, its tap row and tap column
    input  wire [       3:0] column,
    input  wire [       1:0] ky,
    input  wire [       1:0] kx,
    // layer, see operand_column and tile_bank
    input  wire [       1:0] mode,
    input  wire              dw,
    input  wire              one_bank,
    input  wire              by_chan,
    input  wire              taps,
    input  wire              sgn,
    input  wire [       7:0] pad,
    input  wire [       2:0] swl,
    input  wire [       2:0] stripe_swl,
    input  wire [       4:0] irl,
    // fill: views of a row, a byte of the flattener
    input  wire              f_valid,
    input  wire [     511:0] view0,
    input  wire [     511:0] view1,
    input  wire [     511:0] view2,
    input  wire [     511:0] view3,
    input  wire [      63:0] mask0,
    input  wire [      63:0] mask1,
    input  wire [      63:0] mask2,
    input  wire [    TW-1:0] f_entry,
    input  wire [       2:0] f_ky_on,
    input  wire [       5:0] f_ky_slot,
    input  wire [       3:0] f_chmod,
    input  wire [       2:0] f_chans,
    input  wire              fc_we,
    input  wire [    TA-1:0] fc_entry,
    input  wire [       5:0] fc_at,
    input  wire [       7:0] fc_byte,
    // weights: this column of a word
    input  wire              w_we,
    input  wire [    WA-1:0] w_row,
    input  wire [    ZW-1:0] w_bank,
    input  wire [    WB-1:0] w_data,
    // read of this column
    input  wire              re,
    input  wire [    TA-1:0] entry,
    input  wire [    WA-1:0] wrow,
    // a cycle later: the issue, see operand_column
    input  wire              tap_on,
    input  wire [       5:0] pos,
    input  wire [    ZW-1:0] wsel,
    input  wire [     L-1:0] lane_valid,
    input  wire [     L-1:0] lane_left,
    input  wire [     L-1:0] lane_right,
    input  wire [     L-1:0] lane_top,
    input  wire [     L-1:0] lane_bot,
    input  wire [       7:0] lane_count,
    input  wire [       7:0] kernels,
    // operands and statistics
    output wire [     L-1:0] valid,
    output wire [   9*L-1:0] pixel,
    output wire [N_Z*WB-1:0] weight,
    output wire [       7:0] n_issued,
    output wire [       7:0] n_gated
);

  wire [511:0] row;
  wire [N_Z*WB-1:0] weights;
  wire [N_Z-1:0] one = {{(N_Z - 1) {1'b0}}, 1'b1};

  tile_bank #(
      .ROWS(TILE_ROWS)
  ) u_tile (
      .clk      (clk),
      .bank     (column),
      .ky       (ky),
      .kx       (kx),
      .mode     (mode),
      .swl      (stripe_swl),
      .irl      (irl),
      .f_valid  (f_valid),
      .view0    (view0),
      .view1    (view1),
      .view2    (view2),
      .view3    (view3),
      .mask0    (mask0),
      .mask1    (mask1),
      .mask2    (mask2),
      .f_entry  (f_entry),
      .f_ky_on  (f_ky_on),
      .f_ky_slot(f_ky_slot),
      .f_chmod  (f_chmod),
      .f_chans  (f_chans),
      .fc_we    (fc_we),
      .fc_entry (fc_entry),
      .fc_at    (fc_at),
      .fc_byte  (fc_byte),
      .re       (re),
      .raddr    (entry),
      .rdata    (row)
  );

  // weight column: a row holds a weight for each of the N_Z banks; rows are used as a ring
  ram_1r1w #(
      .WIDTH(N_Z * WB),
      .DEPTH(WBUF_ROWS),
      .LANE (WB)
  ) u_weights (
      .clk  (clk),
      .we   (w_we),
      .wlane(one << w_bank),
      .waddr(w_row),
      .wdata({N_Z{w_data}}),
      .re   (re),
      .raddr(wrow),
      .rdata(weights)
  );

  operand_column #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .WB (WB)
  ) u_operand (
      .clk       (clk),
      .rst       (rst),
      .ky        (ky),
      .kx        (kx),
      .dw        (dw),
      .one_bank  (one_bank),
      .by_chan   (by_chan),
      .taps      (taps),
      .sgn       (sgn),
      .pad       (pad),
      .swl       (swl),
      .tap_on    (tap_on),
      .pos       (pos),
      .wsel      (wsel),
      .lane_valid(lane_valid),
      .lane_left (lane_left),
      .lane_right(lane_right),
      .lane_top  (lane_top),
      .lane_bot  (lane_bot),
      .lane_count(lane_count),
      .kernels   (kernels),
      .row       (row),
      .wrow      (weights),
      .valid     (valid),
      .pixel     (pixel),
      .weight    (weight),
      .n_issued  (n_issued),
      .n_gated   (n_gated)
  );

endmodule

`resetall
