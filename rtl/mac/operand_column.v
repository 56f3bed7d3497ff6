// SPDX-License-Identifier: Apache-2.0
//
// operand_column: the operands of column t of the array, from one tile row and one weight row.
//
// How it works: in a convolution the N_Y pixels from the position on go to every kernel module, in
// a depthwise layer the N_Y * N_Z pixels from the position on go to the lanes; pixels outside the
// map are replaced by the pad value. A pixel is zero-extended, or sign-extended when the layer's
// pixels are signed. Kernel module z takes the weight of bank z; in a depthwise or fully connected
// layer that of the bank of its channel. For the performance counters it also counts the valid
// lanes and those whose multiplier the sign gate leaves idle.
// Handshake: none, combinational (counts registered).
`resetall
`timescale 1ns / 1ps
`default_nettype none

module operand_column #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // width of a weight
    parameter WEIGHT_BITS = 16,
    // lanes and width of a bank number
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                       clk,
    input  wire                       rst,
    // which column: tap row (0..2) and tap column (0..2)
    input  wire [                1:0] ky,
    input  wire [                1:0] kx,
    // layer: depthwise lanes, one weight bank for all lanes or by slot, taps (padding applies),
    // signed pixels, pad value, log2 of the slot width
    input  wire                       dw,
    input  wire                       one_bank,
    input  wire                       by_chan,
    input  wire                       taps,
    input  wire                       sgn,
    input  wire [                7:0] pad,
    input  wire [                2:0] swl,
    // this issue at this column: tap in use, position, weight bank, lanes,
    // lanes that count, kernel modules in use
    input  wire                       tap_on,
    input  wire [                5:0] pos,
    input  wire [             ZW-1:0] wsel,
    input  wire [              L-1:0] lane_valid,
    input  wire [              L-1:0] lane_left,
    input  wire [              L-1:0] lane_right,
    input  wire [              L-1:0] lane_top,
    input  wire [              L-1:0] lane_bot,
    input  wire [                7:0] lane_count,
    input  wire [                7:0] kernels,
    // memory contents
    input  wire [              511:0] row,
    input  wire [N_Z*WEIGHT_BITS-1:0] wrow,
    // operands
    output wire [              L-1:0] valid,
    output reg  [            9*L-1:0] pixel,
    output reg  [N_Z*WEIGHT_BITS-1:0] weight,
    // multiplications issued and gated in this cycle
    output reg  [                7:0] macs_issued,
    output reg  [                7:0] macs_gated
);

  wire [511:0] shifted = row >> {pos, 3'd0};
  wire [8*N_Y-1:0] lanes_y = shifted[8*N_Y-1:0];
  wire [8*L-1:0] lanes_dw;

  wire [L-1:0] padded = !taps ? {L{1'b0}} :
             (((kx == 2'd0) ? lane_left : {L{1'b0}}) | ((kx == 2'd2) ? lane_right : {L{1'b0}}) |
              ((ky == 2'd0) ? lane_top : {L{1'b0}}) | ((ky == 2'd2) ? lane_bot : {L{1'b0}}));

  assign valid = tap_on ? lane_valid : {L{1'b0}};

  generate
    if (8 * L > 512) begin : g_wide
      assign lanes_dw = {{(8 * L - 512) {1'b0}}, row};
    end else if (8 * L == 512) begin : g_row
      assign lanes_dw = row;
    end else begin : g_part
      assign lanes_dw = shifted[8*L-1:0];
    end
  endgenerate

  integer i;
  reg [7:0] raw;
  always @* begin
    pixel = {9 * L{1'b0}};
    raw   = 8'd0;
    for (i = 0; i < L; i = i + 1) begin
      raw = padded[i] ? pad : dw ? lanes_dw[8*i+:8] : lanes_y[8*(i%N_Y)+:8];
      pixel[9*i+:9] = {sgn && raw[7], raw};
    end
  end

  // channel of a kernel module's lanes, relative to the first of the issue
  integer z;
  reg [6:0] slot;
  reg [ZW-1:0] sel;
  always @* begin
    z = 0;  // as k below
    weight = {N_Z * WEIGHT_BITS{1'b0}};
    slot   = 7'd0;
    sel    = {ZW{1'b0}};
    if (one_bank || by_chan) begin
      for (z = 0; z < N_Z; z = z + 1) begin
        slot = (z[6:0] << $clog2(N_Y)) >> swl;
        sel = by_chan ? wsel + slot[ZW-1:0] : wsel;
        weight[z*WEIGHT_BITS+:WEIGHT_BITS] = wrow[sel*WEIGHT_BITS+:WEIGHT_BITS];
      end
    end else begin
      weight = wrow;
    end
  end

  // ---- statistics: in a convolution all kernel modules in use gate the same lanes
  reg [7:0] idle;  // lanes, or pixels, whose multiplier stays idle
  integer k;
  always @* begin
    k = 0;  // a loop that is skipped would leave it as it was: a latch
    idle = 8'd0;
    if (tap_on) begin
      if (dw) begin
        for (k = 0; k < L; k = k + 1) begin
          idle = idle + {7'd0, lane_valid[k] && (pixel[9*k+8] || pixel[9*k+:8] == 8'd0)};
        end
      end else begin
        for (k = 0; k < N_Y; k = k + 1) begin
          idle = idle + {7'd0, lane_valid[k] && (pixel[9*k+8] || pixel[9*k+:8] == 8'd0)};
        end
      end
    end
  end

  reg [7:0] idle_q;
  reg [7:0] count_q;
  reg [7:0] nz_q;
  always @(posedge clk) begin
    if (rst) begin
      idle_q      <= 8'd0;
      count_q     <= 8'd0;
      nz_q        <= 8'd0;
      macs_issued <= 8'd0;
      macs_gated  <= 8'd0;
    end else begin
      idle_q      <= idle;
      count_q     <= tap_on ? lane_count : 8'd0;
      nz_q        <= !tap_on ? 8'd0 : dw ? 8'd1 : kernels;
      macs_issued <= count_q;
      macs_gated  <= idle_q * nz_q;
    end
  end

  wire unused = &{1'b0, shifted, slot};

endmodule

`resetall
