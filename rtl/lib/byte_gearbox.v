// SPDX-License-Identifier: Apache-2.0
//
// byte_gearbox: turns bus words of which some bytes count into a window of the oldest bytes.
//
// How it works: a byte buffer that is shifted down by `take` and filled at its top. Bytes beyond
// `avail` are always zero, so a last short window is zero padded by itself.
// Handshake: in_ready depends on the fill level alone (never on take), and out_data/avail on
// registers alone, so there is no combinational path through the module. The consumer sets
// take in 0..min(avail, OUT_BYTES) in the cycle in which it uses the bytes. One input word per
// cycle is sustained as long as the consumer takes OUT_BYTES whenever that many are there.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_gearbox #(
    // bytes of an input word
    parameter IN_BYTES = 4,
    // bytes of the output window, and the most that one take removes
    parameter OUT_BYTES = 18,
    // derived widths, not to be set: offset, count of an input word, level, take
    parameter OFF_W = (IN_BYTES > 1) ? $clog2(IN_BYTES) : 1,
    parameter CNT_W = $clog2(IN_BYTES) + 1,
    parameter LVL_W = $clog2(OUT_BYTES + 2 * IN_BYTES + 1),
    parameter TAKE_W = $clog2(OUT_BYTES + 1)
) (
    // clock, synchronous reset, and flush (drops everything, the word offered in that cycle too)
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    // input words: bytes in_off .. in_off + in_cnt - 1 count
    input  wire                   in_valid,
    output wire                   in_ready,
    input  wire [ 8*IN_BYTES-1:0] in_data,
    input  wire [      OFF_W-1:0] in_off,
    input  wire [      CNT_W-1:0] in_cnt,
    // window: oldest byte lowest, zero from byte `avail` on
    output wire [      LVL_W-1:0] avail,
    output wire [8*OUT_BYTES-1:0] out_data,
    input  wire [     TAKE_W-1:0] take
);

  localparam CAP = OUT_BYTES + 2 * IN_BYTES;
  localparam [LVL_W-1:0] ROOM = CAP[LVL_W-1:0] - IN_BYTES[LVL_W-1:0];

  generate
    if (IN_BYTES < 1 || OUT_BYTES < 1) begin : g_check
      byte_gearbox_needs_at_least_one_byte u_illegal_parameter ();
    end
  endgenerate

  reg [8*CAP-1:0] bytes;
  reg [LVL_W-1:0] level;

  // the valid bytes of the input word, moved to byte 0, everything else zero
  wire [8*IN_BYTES-1:0] moved = in_data >> {in_off, 3'b000};
  reg [8*IN_BYTES-1:0] clean;
  integer i;
  always @* begin
    for (i = 0; i < IN_BYTES; i = i + 1) begin
      clean[8*i+:8] = (i[CNT_W-1:0] < in_cnt) ? moved[8*i+:8] : 8'd0;
    end
  end

  wire             push = in_valid && in_ready;
  wire [LVL_W-1:0] kept = level - {{(LVL_W - TAKE_W) {1'b0}}, take};
  wire [LVL_W-1:0] added = push ? {{(LVL_W - CNT_W) {1'b0}}, in_cnt} : {LVL_W{1'b0}};
  wire [8*CAP-1:0] shifted = bytes >> {take, 3'b000};
  wire [8*CAP-1:0] wide = {{(8 * (CAP - IN_BYTES)) {1'b0}}, clean};
  wire [8*CAP-1:0] placed = push ? (wide << {kept, 3'b000}) : {8 * CAP{1'b0}};

  assign in_ready = (level <= ROOM);
  assign avail = level;
  assign out_data = bytes[8*OUT_BYTES-1:0];

  always @(posedge clk) begin
    if (rst || flush) begin
      bytes <= {8 * CAP{1'b0}};
      level <= {LVL_W{1'b0}};
    end else begin
      bytes <= shifted | placed;
      level <= kept + added;
    end
  end

endmodule

`resetall
