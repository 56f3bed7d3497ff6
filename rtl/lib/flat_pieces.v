// SPDX-License-Identifier: Apache-2.0
//
// flat_pieces: cuts a stripe of a flat layer into pieces of lines of the map.
//
// How it works: the 64 pixels of a stripe are those of the map line after line without a gap. A
// piece ends with its line, with a word of WORD pixels of the stripe, or with the stripe. With JOIN only
// the last line of the stripe is cut where a word ends: of the others the part beyond is written with the line
// behind. The outputs are registers, worked out as the piece before is left.
// Handshake: load takes the first piece of a new stripe, again that of the same one, next the following
// piece (all act at the clock edge); the outputs describe the present piece.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module flat_pieces #(
    // pixels of a word: 16, 32 or 64; 1: a line may go on in the next word
    parameter WORD = 16,
    parameter JOIN = 0
) (
    // clock
    input  wire       clk,
    // to the first piece of a stripe, of the same one again; to the next piece
    input  wire       load,
    input  wire       again,
    input  wire       next,
    // pixels of a line, 1 to 16; column where the stripe begins, its pixels, 1 to 64, with load
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

  // of the stripe
  reg [3:0] x_first;
  reg [6:0] size;
  always @(posedge clk) if (load) {x_first, size} <= {x_0, pixels};

  wire first = load || again;
  wire [5:0] pos_next = first ? 6'd0 : pos + {1'b0, count};
  wire [4:0] x_sum = {1'b0, x} + count;
  wire [3:0] x_next = load ? x_0 : again ? x_first : line_end ? 4'd0 : x_sum[3:0];
  wire [4:0] in_line = width - {1'b0, x_next};
  wire [6:0] in_word = WORD_7 - {1'b0, pos_next & INSIDE};
  wire [6:0] in_stripe = (load ? pixels : size) - {1'b0, pos_next};
  wire tail = {2'd0, in_line} >= in_stripe;  // the last line
  wire [6:0] room = (in_word < in_stripe && (JOIN == 0 || tail)) ? in_word : in_stripe;
  wire fits = {2'd0, in_line} <= room;  // the rest of the line
  wire [4:0] count_next = fits ? in_line : room[4:0];

  always @(posedge clk) begin
    if (first || next) begin
      pos      <= pos_next;
      x        <= x_next;
      count    <= count_next;
      line_end <= fits;
      last     <= {2'd0, count_next} == in_stripe;
    end
  end

  generate
    if (WORD != 16 && WORD != 32 && WORD != 64) begin : g_illegal
      ILLEGAL_WORD_16_32_64 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, x_sum[4], tail};

endmodule

`resetall
