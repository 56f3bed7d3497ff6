// SPDX-License-Identifier: Apache-2.0
//
// operand_column: the operands of column t of the array, from one tile word and one weight row.
//
// How it works: in a convolution the N_Y pixels from the position on go to every kernel module, in
// a depthwise layer as many as there are lanes, or bytes in a word. Positions are multiples of
// those numbers, so the word is cut into pieces and one is selected; a fully connected layer has
// one lane, whose byte may be any. A word of 128 bytes is two entries, and the lanes from 64 on take
// the second one. Pixels outside the
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
    // width of a weight, bytes of a tile word
    parameter WEIGHT_BITS = 16,
    parameter TILE_W = 64,
    // derived, not to be set: lanes, bytes of an entry, lanes of a depthwise row, width of a bank number
    parameter L = N_Y * N_Z,
    parameter WORD = (TILE_W > 64) ? 64 : TILE_W,
    parameter LD = (L < WORD) ? L : WORD,
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
    input  wire [       8*TILE_W-1:0] row,
    input  wire [N_Z*WEIGHT_BITS-1:0] wrow,
    // operands
    output wire [              L-1:0] valid,
    output reg  [            9*L-1:0] pixel,
    output wire [N_Z*WEIGHT_BITS-1:0] weight,
    // multiplications issued and gated in this cycle
    output reg  [                7:0] macs_issued,
    output reg  [                7:0] macs_gated
);

  localparam TB = $clog2(WORD);
  localparam YB = $clog2(N_Y);
  localparam DB = $clog2(LD);

  // the pieces of the word that the position selects
  wire [8*N_Y-1:0] lanes_y;
  wire [  8*L-1:0] lanes_dw;
  wire [8*WORD-1:0] first = row[8*WORD-1:0];
  wire [   TB-1:0] at = pos[TB-1:0];
  genvar p;
  generate
    assign lanes_y[7:0] = first[{at, 3'd0}+:8];
    for (p = 1; p < N_Y; p = p + 1) begin : g_y
      localparam [YB-1:0] Y = p;
      if (TB == YB) begin : g_all
        assign lanes_y[8*p+:8] = first[8*p+:8];
      end else begin : g_piece
        assign lanes_y[8*p+:8] = first[{at[TB-1:YB], Y, 3'd0}+:8];
      end
    end
    for (p = 0; p < L; p = p + 1) begin : g_dw
      localparam integer BYTE = p % LD;
      localparam [DB-1:0] D = BYTE[DB-1:0];
      if (p >= 64 && TILE_W > 64) begin : g_second
        assign lanes_dw[8*p+:8] = row[8*(p+TILE_W-128)+:8];
      end else if (TB == DB) begin : g_all
        assign lanes_dw[8*p+:8] = first[8*BYTE+:8];
      end else begin : g_piece
        assign lanes_dw[8*p+:8] = first[{at[TB-1:DB], D, 3'd0}+:8];
      end
    end
  endgenerate

  wire [L-1:0] padded = !taps ? {L{1'b0}} :
             (((kx == 2'd0) ? lane_left : {L{1'b0}}) | ((kx == 2'd2) ? lane_right : {L{1'b0}}) |
              ((ky == 2'd0) ? lane_top : {L{1'b0}}) | ((ky == 2'd2) ? lane_bot : {L{1'b0}}));

  assign valid = tap_on ? lane_valid : {L{1'b0}};

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

  // a depthwise row has a channel every 16, 32 or 64 lanes: slots, whose weights lie in banks that
  // follow one another
  localparam SLOTS = (L <= 16) ? 1 : (L >= 64) ? 4 : L / 16;
  wire [SLOTS*WEIGHT_BITS-1:0] slots;
  genvar z;
  generate
    for (z = 0; z < SLOTS; z = z + 1) begin : g_slot
      localparam [ZW-1:0] S = z;
      wire [ZW-1:0] bank = wsel + S;
      assign slots[z*WEIGHT_BITS+:WEIGHT_BITS] = wrow[bank*WEIGHT_BITS+:WEIGHT_BITS];
    end
    for (z = 0; z < N_Z; z = z + 1) begin : g_weight
      // lanes beyond the row are not used: any slot
      localparam integer S4 = (z * N_Y / 16) % SLOTS;
      localparam integer S5 = (z * N_Y % 64 / 32) % SLOTS;
      wire [WEIGHT_BITS-1:0] of_slot = (swl == 3'd4) ? slots[S4*WEIGHT_BITS+:WEIGHT_BITS] :
          (swl == 3'd5) ? slots[S5*WEIGHT_BITS+:WEIGHT_BITS] : slots[WEIGHT_BITS-1:0];
      assign weight[z*WEIGHT_BITS+:WEIGHT_BITS] = one_bank ? slots[WEIGHT_BITS-1:0] :
          by_chan ? of_slot : wrow[z*WEIGHT_BITS+:WEIGHT_BITS];
    end
  endgenerate

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

  reg  [7:0] idle_q;
  reg  [7:0] count_q;
  reg  [7:0] nz_q;
  // idle times kernel modules, at most 128: adders, for a multiplier would take one from the array
  wire [7:0] gated;
  genvar b;
  generate
    for (b = 0; b <= ZW; b = b + 1) begin : g_times
      wire [7:0] part = nz_q[b] ? idle_q << b : 8'd0;
      wire [7:0] sum;
      if (b == 0) begin : g_first
        assign sum = part;
      end else begin : g_next
        assign sum = g_times[b-1].sum + part;
      end
    end
  endgenerate
  assign gated = g_times[ZW].sum;

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
      macs_gated  <= gated;
    end
  end

  wire unused = &{1'b0, pos, nz_q};

endmodule

`resetall
