// SPDX-License-Identifier: Apache-2.0
//
// operand_column: the operands of column t of the array, from one tile word and one weight row.
//
// How it works: in a convolution the N_Y pixels from the position on go to every kernel module, in a
// depthwise layer as many as there are lanes, or bytes in a word. Positions are multiples of those numbers,
// so the word is cut into pieces and one is selected; a fully connected layer has one lane, which may select
// any byte. A word of 128 bytes is two entries, and the lanes from 64 on use the second one. Pixels outside
// the map are replaced by the pad value. All lanes change in one assignment, or an event-driven simulator
// would propagate each byte to the whole array. Kernel module z uses the weight of bank z; in a depthwise or
// fully connected layer that of the bank of its channel. For the performance counters the valid lanes are
// counted, and those whose multiplier is gated, unless the issue's multiplications are not counted.
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
    // derived, not to be set: lanes, bytes of an entry, lanes of a depthwise row, width of a bank index
    parameter L = N_Y * N_Z,
    parameter TILE_WORD = (TILE_W > 64) ? 64 : TILE_W,
    parameter LD = (L < TILE_WORD) ? L : TILE_WORD,
    parameter ZW = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                       clk,
    input  wire                       rst,
    // tap row (0..2) and tap column (0..2) of this column
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
    // issue at this column: tap in use, multiplications are counted, weights are zero; position, weight bank,
    // valid lanes, lanes at edges of the map, number of counted lanes
    input  wire                       tap_on,
    input  wire                       counts,
    input  wire                       mute,
    input  wire [                5:0] pos,
    input  wire [             ZW-1:0] wsel,
    input  wire [              L-1:0] lane_valid,
    input  wire [              L-1:0] lane_left,
    input  wire [              L-1:0] lane_right,
    input  wire [              L-1:0] lane_top,
    input  wire [              L-1:0] lane_bot,
    input  wire [                7:0] lane_count,
    // memory contents
    input  wire [       8*TILE_W-1:0] row,
    input  wire [N_Z*WEIGHT_BITS-1:0] wrow,
    // operands
    output wire [              L-1:0] valid,
    output wire [            8*L-1:0] pixel,
    output wire [N_Z*WEIGHT_BITS-1:0] weight,
    // multiplications issued and gated in this cycle
    output wire [                7:0] macs_issued,
    output wire [                7:0] macs_gated
);

  localparam TB = $clog2(TILE_WORD);
  localparam YB = $clog2(N_Y);
  localparam DB = $clog2(LD);
  localparam CB = $clog2(L + 1);  // width of a number of lanes

  wire [L-1:0] padded = !taps ? {L{1'b0}} :
             (((kx == 2'd0) ? lane_left : {L{1'b0}}) | ((kx == 2'd2) ? lane_right : {L{1'b0}}) |
              ((ky == 2'd0) ? lane_top : {L{1'b0}}) | ((ky == 2'd2) ? lane_bot : {L{1'b0}}));

  assign valid = tap_on ? lane_valid : {L{1'b0}};

  // pieces of the word selected by the position
  wire [8*TILE_WORD-1:0] first = row[8*TILE_WORD-1:0];
  wire [TB-1:0] at = pos[TB-1:0];
  wire [8*N_Y-1:0] lanes_y;  // convolution
  wire [8*L-1:0] lanes_d;  // depthwise layer
  wire [8*LD-1:0] piece;
  wire [8*L-1:0] chosen;
  generate
    if (TB == YB) begin : g_whole_y
      assign lanes_y = first;
    end else begin : g_piece_y
      assign lanes_y = first[{at[TB-1:YB], {(YB+3) {1'b0}}}+:8*N_Y];
    end
    if (TB == DB) begin : g_whole_d
      assign piece = first;
    end else begin : g_piece_d
      assign piece = first[{at[TB-1:DB], {(DB+3) {1'b0}}}+:8*LD];
    end
    if (L > 64 && TILE_W > 64) begin : g_second
      assign lanes_d = {row[8*TILE_W-1-:8*(L-64)], {(64 / LD) {piece}}};
    end else begin : g_first
      assign lanes_d = {(L / LD) {piece}};
    end
  endgenerate
  // only fully connected layers have positions within a piece; a depthwise position is a multiple of the
  // lanes: the first N_Y bytes are the same
  assign chosen = {
    dw ? lanes_d[8*L-1:8*N_Y] : {(N_Z - 1) {lanes_y}},
    lanes_y[8*N_Y-1:8],
    lanes_y[{at[YB-1:0], 3'd0}+:8]
  };

  function [8*L-1:0] bytes_of(input [L-1:0] lanes);
    integer i;
    begin
      bytes_of = {8 * L{1'b0}};
      for (i = 0; i < L; i = i + 1) bytes_of[8*i+:8] = {8{lanes[i]}};
    end
  endfunction

  wire [8*L-1:0] outside = bytes_of(padded);
  wire [  L-1:0] off;  // lanes whose pixel is zero or below
  genvar p;
  generate
    for (p = 0; p < L; p = p + 1) begin : g_lane
      assign off[p] = (sgn && pixel[8*p+7]) || pixel[8*p+:8] == 8'd0;
    end
  endgenerate
  assign pixel = (chosen & ~outside) | ({L{pad}} & outside);

  // a depthwise row has a channel every 16, 32 or 64 lanes: slots, whose weights are in consecutive banks
  localparam SLOTS = (L <= 16) ? 1 : (L >= 64) ? 4 : L / 16;
  wire [SLOTS*WEIGHT_BITS-1:0] slots;
  wire [  N_Z*WEIGHT_BITS-1:0] by_slot;
  genvar z;
  generate
    for (z = 0; z < SLOTS; z = z + 1) begin : g_slot
      localparam [ZW-1:0] S = z;
      wire [ZW-1:0] bank = wsel + S;
      assign slots[z*WEIGHT_BITS+:WEIGHT_BITS] = wrow[bank*WEIGHT_BITS+:WEIGHT_BITS];
    end
    if (SLOTS == 1) begin : g_one
      assign by_slot = {N_Z{slots}};
    end else begin : g_slots
      for (z = 0; z < N_Z; z = z + 1) begin : g_weight
        // lanes beyond the row are unused: any slot
        localparam integer S4 = (z * N_Y / 16) % SLOTS;
        localparam integer S5 = (z * N_Y % 64 / 32) % SLOTS;
        assign by_slot[z*WEIGHT_BITS+:WEIGHT_BITS] = (swl == 3'd4) ? slots[S4*WEIGHT_BITS+:WEIGHT_BITS] :
            (swl == 3'd5) ? slots[S5*WEIGHT_BITS+:WEIGHT_BITS] : slots[WEIGHT_BITS-1:0];
      end
    end
  endgenerate
  assign weight = mute ? {(N_Z * WEIGHT_BITS) {1'b0}} :
      one_bank ? {N_Z{slots[WEIGHT_BITS-1:0]}} : by_chan ? by_slot : wrow;

  // ---- statistics
  localparam integer FOURS = (L + 3) / 4;
  wire counted = tap_on && counts && lane_count[CB-1:0] != {CB{1'b0}};
  wire [4*FOURS-1:0] idle;  // lanes whose multiplier is gated
  genvar k;
  generate
    for (k = 0; k < 4 * FOURS; k = k + 1) begin : g_idle
      if (k < L) begin : g_lane
        assign idle[k] = lane_valid[k] && off[k];
      end else begin : g_none
        assign idle[k] = 1'b0;
      end
    end
  endgenerate

  // without a carry chain, which is larger for so few bits
  function [2:0] ones(input [3:0] b);
    ones = {&b, (b[0] ^ b[1] ^ b[2] ^ b[3]) ? (b[0] & b[1]) | (b[2] & b[3]) : (|b) & !(&b), ^b};
  endfunction

  reg [4*FOURS-1:0] idle_q;
  integer n;
  reg [CB-1:0] idle_sum;
  always @* begin
    idle_sum = {{(CB - 3) {1'b0}}, ones(idle_q[3:0])};
    for (n = 1; n < FOURS; n = n + 1) begin
      idle_sum = idle_sum + {{(CB - 3) {1'b0}}, ones(idle_q[4*n+:4])};
    end
  end

  reg [CB-1:0] count_q;
  reg [CB-1:0] issued;
  reg [CB-1:0] gated;
  assign macs_issued = {{(8 - CB) {1'b0}}, issued};
  assign macs_gated  = {{(8 - CB) {1'b0}}, gated};
  always @(posedge clk) begin
    if (rst || !counted) begin
      idle_q  <= {4 * FOURS{1'b0}};
      count_q <= {CB{1'b0}};
    end else begin
      idle_q  <= idle;
      count_q <= lane_count[CB-1:0];
    end
    issued <= rst ? {CB{1'b0}} : count_q;
    gated  <= rst ? {CB{1'b0}} : idle_sum;
  end

  wire unused = &{1'b0, pos, lane_count, swl, lanes_d[8*N_Y-1:0]};

endmodule

`resetall
