// SPDX-License-Identifier: Apache-2.0
//
// flat_pieces: cuts a stripe of a flat layer into pieces of map lines.
//
// How it works: the 64 pixels of a stripe are those of consecutive map lines without gaps. A piece ends
// with its line, with a word of WORD pixels of the stripe, or with the stripe. With JOIN only the last
// line of the stripe is cut at a word boundary: of the other lines the part beyond is written together
// with the next line. The outputs are registers, computed as the previous piece is left.
// Handshake: load selects the first piece of a new stripe, again that of the same one, next the following
// piece (all at the clock edge); the outputs describe the present piece.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module flat_pieces #(
    // pixels per word: 16, 32 or 64; 1: a line may continue in the next word
    parameter WORD = 16,
    parameter JOIN = 0
) (
    // clock
    input  wire       clk,
    // to the first piece of a stripe, of the same one again; to the next piece
    input  wire       load,
    input  wire       again,
    input  wire       next,
    // pixels per line, 1 to 16; first column and pixels (1 to 64) of the stripe, with load
    input  wire [4:0] width,
    input  wire [3:0] x_0,
    input  wire [6:0] pixels,
    // the piece: first pixel in the stripe and in the line, pixels; it ends the line, the stripe
    output reg  [5:0] pos,
    output reg  [3:0] x,
    output reg  [4:0] count,
    output reg        line_end,
    output reg        last
);

  localparam integer WORD_I = WORD;
  localparam [6:0] WORD_7 = WORD_I[6:0];
  localparam [5:0] INSIDE = WORD_7[5:0] - 6'd1;  // of 64 pixels: 0 - 1

  // values of the stripe
  reg [3:0] x_first;
  reg [6:0] size;
  always @(posedge clk) if (load) {x_first, size} <= {x_0, pixels};

  // The three candidates for the next piece are computed in parallel, with all comparisons, because the
  // selection arrives late. From 0: first piece of a new stripe, of the same one, the following one.
  wire [ 5:0] pos_on = pos + {1'b0, count};
  wire [ 4:0] x_sum = {1'b0, x} + count;
  wire [11:0] x_c = {line_end ? 4'd0 : x_sum[3:0], x_first, x_0};
  wire [17:0] pos_c = {pos_on, 12'd0};
  wire [20:0] stripe_c = {size - {1'b0, pos_on}, size, pixels};
  wire [ 2:0] fits_c;
  wire [ 2:0] last_c;
  wire [14:0] count_c;

  genvar k;
  generate
    for (k = 0; k < 3; k = k + 1) begin : g_piece
      wire [4:0] in_line = width - {1'b0, x_c[4*k+:4]};
      wire [6:0] in_word = WORD_7 - {1'b0, pos_c[6*k+:6] & INSIDE};
      wire [6:0] in_stripe = stripe_c[7*k+:7];
      wire tail = {2'd0, in_line} >= in_stripe;  // the last line
      wire by_word = in_word < in_stripe && (JOIN == 0 || tail);  // a word ends before the stripe
      assign fits_c[k] = by_word ? {2'd0, in_line} <= in_word : {2'd0, in_line} <= in_stripe;
      assign count_c[5*k+:5] = fits_c[k] ? in_line : by_word ? in_word[4:0] : in_stripe[4:0];
      assign last_c[k] = fits_c[k] ? {2'd0, in_line} == in_stripe : !by_word;
      wire unused = &{1'b0, tail};
    end
  endgenerate

  always @(posedge clk) begin
    if (load || again || next) begin
      pos      <= (load || again) ? 6'd0 : pos_on;
      x        <= load ? x_c[3:0] : again ? x_c[7:4] : x_c[11:8];
      count    <= load ? count_c[4:0] : again ? count_c[9:5] : count_c[14:10];
      line_end <= load ? fits_c[0] : again ? fits_c[1] : fits_c[2];
      last     <= load ? last_c[0] : again ? last_c[1] : last_c[2];
    end
  end

  generate
    if (WORD != 16 && WORD != 32 && WORD != 64) begin : g_illegal
      ILLEGAL_WORD_16_32_64 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, x_sum[4]};

`ifdef FORMAL_flat_pieces
  `include "flat_pieces_props.vh"
`endif

endmodule

`resetall
