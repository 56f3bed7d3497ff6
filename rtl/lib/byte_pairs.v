// SPDX-License-Identifier: Apache-2.0
//
// byte_pairs: the byte gearbox for a consumer that takes whole windows of two input words.
//
// How it works: the valid bytes of an input word are rotated to the lanes after the leftover bytes.
// IN_BYTES filled lanes make a whole word; the rest of the input is left over for the next one. The first
// whole word waits in a register, the second completes a window in the output register. So no byte ever
// moves within the window.
// Handshake: as byte_gearbox with UNIT = OUT_BYTES = 2 * IN_BYTES: in_ready and the outputs depend on
// registers alone; have is high while a window is available, and take removes it. The window is zero
// while have is low. One input word per cycle is sustained while windows are taken at once.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_pairs #(
    // bytes of an input word, a power of two
    parameter IN_BYTES = 4,
    // derived widths, not to be set: offset, count of an input word
    parameter OFF_W = (IN_BYTES > 1) ? $clog2(IN_BYTES) : 1,
    parameter CNT_W = $clog2(IN_BYTES) + 1
) (
    // clock, synchronous reset, and flush (drops everything, including a word offered in that cycle)
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    // input words: bytes in_off .. in_off + in_cnt - 1 are valid
    input  wire                   in_valid,
    output wire                   in_ready,
    input  wire [ 8*IN_BYTES-1:0] in_data,
    input  wire [      OFF_W-1:0] in_off,
    input  wire [      CNT_W-1:0] in_cnt,
    // window, oldest byte lowest
    output reg                    have,
    output reg  [16*IN_BYTES-1:0] out_data,
    input  wire                   take
);

  generate
    if (IN_BYTES < 2 || IN_BYTES != (1 << OFF_W)) begin : g_illegal_bytes
      ILLEGAL_BYTES_OF_PAIRS u_illegal ();
    end
  endgenerate

  // leftover bytes, a word waiting for the second one
  reg [OFF_W-1:0] left;
  reg half;
  reg [8*IN_BYTES-1:0] first;

  wire push = in_valid && in_ready;
  // a whole word is complete: the sum of both counts has the bit of IN_BYTES
  wire [CNT_W-1:0] total = {1'b0, left} + in_cnt;
  wire whole = push && total[CNT_W-1];
  // byte i of the input goes to lane (i + turn) mod IN_BYTES
  wire [OFF_W-1:0] turn = left - in_off;
  wire [IN_BYTES-1:0] kept = ~({IN_BYTES{1'b1}} << left);
  wire [8*IN_BYTES-1:0] turned;
  wire [8*IN_BYTES-1:0] word;

  assign in_ready = !(half && have);

  genvar l, s;
  generate
    for (s = 0; s < OFF_W; s = s + 1) begin : g_turn
      localparam BY = 8 << s;
      wire [8*IN_BYTES-1:0] given;
      wire [8*IN_BYTES-1:0] moved;
      if (s == 0) begin : g_from
        assign given = in_data;
      end else begin : g_from
        assign given = g_turn[s-1].moved;
      end
      assign moved = turn[s] ? {given[8*IN_BYTES-BY-1:0], given[8*IN_BYTES-1-:BY]} : given;
    end
    assign turned = g_turn[OFF_W-1].moved;

    for (l = 0; l < IN_BYTES; l = l + 1) begin : g_lane
      reg [7:0] rest;
      always @(posedge clk) begin
        if (push && (whole || !kept[l])) rest <= turned[8*l+:8];
      end
      assign word[8*l+:8] = kept[l] ? rest : turned[8*l+:8];
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || flush) begin
      left <= {OFF_W{1'b0}};
      half <= 1'b0;
      have <= 1'b0;
    end else begin
      left <= push ? total[OFF_W-1:0] : left;
      half <= half ^ whole;
      have <= (whole && half) || (have && !take);
    end
  end

  always @(posedge clk) begin
    if (whole && !half) first <= word;
  end

  always @(posedge clk) begin
    if (rst || flush || take) out_data <= {16 * IN_BYTES{1'b0}};
    else if (whole && half) out_data <= {word, first};
  end

`ifdef FORMAL_byte_pairs
  `include "byte_pairs_props.vh"
`endif

endmodule

`resetall
