// SPDX-License-Identifier: Apache-2.0
//
// unload_gate: stalls the reads of a map that is unloaded while its layer still computes.
//
// How it works: channels of the output map are finished in order. Each write of the output stage that
// completes channels reports their number; the sum of these counts the channels that may be read. Two or
// four narrow channels share a row of the AI RAM: they count only together, so that no row is read and
// written at once. When the layer is over everything may be read. The gate for the channel after the
// present one is computed in advance, so no cycle is lost between channels.
// Handshake: start is a pulse before the first write of the layer; open is a level, for reads from the
// second cycle after start on. chan_end comes with the read that ends a channel.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module unload_gate (
    // clock, synchronous reset
    input  wire       clk,
    input  wire       rst,
    // start of a layer whose map is unloaded; its width - 1; words of four planes
    input  wire       start,
    input  wire [9:0] width_m1,
    input  wire       words,
    // channels completed by a write in this cycle; the map is complete; not to be read yet
    input  wire [6:0] written,
    input  wire       whole,
    input  wire       held,
    // the present read ends a channel
    input  wire       chan_end,
    // the present read is permitted
    output wire       open
);

  // finished channels, channels already read
  reg [11:0] there;
  reg [10:0] chan;
  // gate of the present channel, of the next one; the gate has just advanced
  reg now, next, moved;

  reg by_four, by_two;
  always @(posedge clk) begin
    by_four <= !words && width_m1[9:4] == 6'd0;
    by_two  <= !words && width_m1[9:5] == 5'd0;
  end
  // channels that share a row count together
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

  // (valid from the second cycle after start on: nothing is read before)
  always @(posedge clk) begin
    now   <= whole || (!held && {1'b0, chan} < rows_there);
    next  <= whole || (!held && after < rows_there);
    moved <= chan_end;
  end

  assign open = moved ? next : now;

  // narrow maps: only the number of 16-byte blocks matters
  wire unused = &{1'b0, width_m1[3:0]};

endmodule

`resetall
