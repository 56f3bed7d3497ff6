// SPDX-License-Identifier: Apache-2.0
//
// fill_request: requests the words that fill_seq selects, and delays their notes to match the data.
//
// How it works: the request, the word address and the note are registered. A note follows its read through
// the memory.
// Handshake: go presents the next word, in a cycle without a request or with its grant. fill_req is held
// until fill_gnt; note_valid is high READ cycles later, in the cycle of the data.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fill_request #(
    // widths of a word address, of a note; cycles from a grant to the read data, see ai_ram
    parameter AW   = 15,
    parameter NW   = 64,
    parameter READ = 1
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // next word: address, note
    input  wire          go,
    input  wire [AW-1:0] word,
    input  wire [NW-1:0] about,
    // AI RAM read port
    output reg           fill_req,
    output reg  [AW-1:0] fill_word,
    input  wire          fill_gnt,
    // note, valid in the cycle of the read data
    output wire          note_valid,
    output wire [NW-1:0] note
);

  reg [NW-1:0] asked;
  reg [READ-1:0] on_way;
  reg [NW*READ-1:0] notes;
  wire [READ:0] on_way_next = {on_way, fill_req && fill_gnt};
  wire [NW*(READ+1)-1:0] notes_next = {notes, asked};
  assign note_valid = on_way[READ-1];
  assign note = notes[NW*READ-1-:NW];
  always @(posedge clk) begin
    if (rst) begin
      fill_req <= 1'b0;
      on_way   <= {READ{1'b0}};
    end else begin
      fill_req <= go || (fill_req && !fill_gnt);
      on_way   <= on_way_next[READ-1:0];
    end
  end
  always @(posedge clk) begin
    if (go) begin
      fill_word <= word;
      asked     <= about;
    end
    notes <= notes_next[NW*READ-1:0];
  end

  wire unused = &{1'b0, on_way_next, notes_next};

endmodule

`resetall
