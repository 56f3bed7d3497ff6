// SPDX-License-Identifier: Apache-2.0
//
// tile_word: selects the tile buffer's word within the word read from the memory path.
//
// How it works: a word of the path holds one or more words of the tile buffer; the index of the selected one
// follows the read through the memory. With PAIR the upper word of the path is output beside the lower one,
// because it may be the line below. For pixels with an offset of 128 the upper bit of each byte is inverted.
// Handshake: none; the outputs follow the read data and their note by a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module tile_word #(
    // bytes of the memory path, of a word; 1: the path has two rows; cycles from a grant to the read data;
    // width of a note
    parameter PATH = 64,
    parameter TILE_WORD = 64,
    parameter PAIR = 0,
    parameter READ = 1,
    parameter NW = 64,
    // derived, not to be set: log2 of both
    parameter PB = $clog2(PATH),
    parameter TB = $clog2(TILE_WORD)
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer: upper bits are inverted
    input  wire                   invert,
    // address of the requested word; read data, their note
    input  wire [        20-TB:0] tile_word,
    input  wire [     8*PATH-1:0] fill_data,
    input  wire                   note_valid,
    input  wire [         NW-1:0] note,
    // the word and its note; the upper row of the path's word
    output reg                    d_valid,
    output reg  [8*TILE_WORD-1:0] d_word,
    output reg  [         NW-1:0] d_note,
    output wire [8*TILE_WORD-1:0] d_word_b
);

  wire [8*TILE_WORD-1:0] fetched;
  wire [8*PATH-1:0] offset_data = fill_data ^ {PATH{invert, 7'd0}};

  generate
    if (PB == TB) begin : g_word
      assign fetched = offset_data;
      wire unused_word = &{1'b0, tile_word};
    end else begin : g_part
      reg [(PB-TB)*READ-1:0] parts;  // indices of the words being read
      wire [(PB-TB)*(READ+1)-1:0] parts_next = {parts, tile_word[PB-TB-1:0]};
      always @(posedge clk) parts <= parts_next[(PB-TB)*READ-1:0];
      wire [PB-TB-1:0] part = parts[(PB-TB)*READ-1-:PB-TB];
      assign fetched = offset_data[part*8*TILE_WORD+:8*TILE_WORD];
      wire unused_part = &{1'b0, parts_next, tile_word};
    end
    if (PAIR != 0) begin : g_pair
      reg [8*TILE_WORD-1:0] word_b;
      always @(posedge clk) if (note_valid) word_b <= offset_data[8*PATH-1-:8*TILE_WORD];
      assign d_word_b = word_b;
    end else begin : g_single
      assign d_word_b = {8 * TILE_WORD{1'b0}};
    end
  endgenerate

  always @(posedge clk) begin
    if (rst) d_valid <= 1'b0;
    else d_valid <= note_valid;
  end
  always @(posedge clk) begin
    if (note_valid) begin
      d_word <= fetched;
      d_note <= note;
    end
  end

endmodule

`resetall
