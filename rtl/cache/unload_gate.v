// SPDX-License-Identifier: Apache-2.0
//
// unload_gate: holds back the reads of a map that leaves while its layer still computes.
//
// How it works: channels of the output map are finished one after the other. Each write of the output
// stage that ends some says how many; they are added up, and a channel may be read when it is among them.
// Two or four narrow channels share a row of the AI RAM: they count when all of them are there, so
// that no row is read and written at once. When the layer is over everything may be read.
// Whether the channel after the present one may be read is known beforehand, so no cycle is lost where
// one channel follows another.
// Handshake: start is a pulse before the first write of the layer; open is a level, for reads from the
// second cycle behind start on. chan_end comes with the read that ends a channel.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module unload_gate (
    // clock, synchronous reset
    input  wire       clk,
    input  wire       rst,
    // a layer begins whose map leaves; its width - 1; words of four planes
    input  wire       start,
    input  wire [9:0] width_m1,
    input  wire       words,
    // channels that a write ends in this cycle; the map is whole; not to be read yet
    input  wire [6:0] written,
    input  wire       whole,
    input  wire       held,
    // the read that is made ends a channel
    input  wire       chan_end,
    // the present read may be made
    output wire       open
);

  // channels that are there, those that were read
  reg [11:0] there;
  reg [10:0] chan;
  // the present channel may be read, the one behind it; the present one was the one behind
  reg now, next, moved;

  reg by_four, by_two;
  always @(posedge clk) begin
    by_four <= !words && width_m1[9:4] == 6'd0;
    by_two  <= !words && width_m1[9:5] == 5'd0;
  end
  // of those that share a row all
  wire [11:0] rows_there = {there[11:2], there[1] && !by_four, there[0] && !by_two};
  wire [11:0] after = {1'b0, chan} + 12'd1;

  always @(posedge clk) begin
    if (rst || start) begin
      there <= 12'd0;
      chan  <= 11'd0;
    end else begin
      there <= there + {5'd0, written};
      chan  <= chan_end ? after[10:0] : chan;
    end
  end

  // (what they say counts from the second cycle behind start on: nothing is read before)
  always @(posedge clk) begin
    now   <= whole || (!held && {1'b0, chan} < rows_there);
    next  <= whole || (!held && after < rows_there);
    moved <= chan_end;
  end

  assign open = moved ? next : now;

  // narrow maps: what matters is the number of 16-byte blocks
  wire unused = &{1'b0, width_m1[3:0]};

endmodule

`resetall
