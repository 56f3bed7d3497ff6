// SPDX-License-Identifier: Apache-2.0
//
// byte_gearbox: packs the valid bytes of bus words into a window of the oldest bytes.
//
// How it works: byte_ring holds the bytes in a ring and outputs any window of them. A consumer that only
// takes whole windows of two words, the cheaper case, gets byte_pairs instead.
// Handshake: in_ready depends on the fill level alone (never on take), and out_data/avail on registers
// alone, so there is no combinational path through the module. The consumer sets take in 0..min(avail,
// OUT_BYTES) in the cycle in which it uses the bytes. One input word per cycle is sustained as long as
// the consumer takes OUT_BYTES whenever that many are available. Bytes beyond `avail` are zero. Where
// UNIT = OUT_BYTES = 2 * IN_BYTES, avail is OUT_BYTES or 0.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_gearbox #(
    // bytes of an input word, a power of two
    parameter IN_BYTES = 4,
    // bytes of the output window, and the maximum of one take
    parameter OUT_BYTES = 18,
    // takes are multiples of this power of two; only a flush may follow any other take
    parameter UNIT = 1,
    // derived widths, not to be set: offset, count of an input word, level, take
    parameter OFF_W = (IN_BYTES > 1) ? $clog2(IN_BYTES) : 1,
    parameter CNT_W = $clog2(IN_BYTES) + 1,
    parameter LVL_W = $clog2(OUT_BYTES + 2 * IN_BYTES + 1),
    parameter TAKE_W = $clog2(OUT_BYTES + 1)
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
    // window: oldest byte lowest, zero from byte `avail` on
    output wire [      LVL_W-1:0] avail,
    output wire [8*OUT_BYTES-1:0] out_data,
    input  wire [     TAKE_W-1:0] take
);

  generate
    if (UNIT == OUT_BYTES && OUT_BYTES == 2 * IN_BYTES) begin : g_pairs
      wire have;
      byte_pairs #(
          .IN_BYTES(IN_BYTES)
      ) u_pairs (
          .clk     (clk),
          .rst     (rst),
          .flush   (flush),
          .in_valid(in_valid),
          .in_ready(in_ready),
          .in_data (in_data),
          .in_off  (in_off),
          .in_cnt  (in_cnt),
          .have    (have),
          .out_data(out_data),
          .take    (take != {TAKE_W{1'b0}})
      );
      assign avail = have ? OUT_BYTES[LVL_W-1:0] : {LVL_W{1'b0}};
    end else begin : g_ring
      byte_ring #(
          .IN_BYTES (IN_BYTES),
          .OUT_BYTES(OUT_BYTES),
          .UNIT     (UNIT)
      ) u_ring (
          .clk     (clk),
          .rst     (rst),
          .flush   (flush),
          .in_valid(in_valid),
          .in_ready(in_ready),
          .in_data (in_data),
          .in_off  (in_off),
          .in_cnt  (in_cnt),
          .avail   (avail),
          .out_data(out_data),
          .take    (take)
      );
    end
  endgenerate

`ifdef FORMAL_byte_gearbox
  `include "byte_gearbox_props.vh"
`endif

endmodule

`resetall
