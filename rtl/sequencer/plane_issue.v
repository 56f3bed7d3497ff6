// SPDX-License-Identifier: Apache-2.0
//
// plane_issue: issues bytes 1 to 3 of a group's 32-bit sums while the array works on the next group.
//
// How it works: byte 0 leaves with the issues of the last reduction step. The same number of issues follows
// at once for each of the other bytes; they need neither a tile entry nor a weight row, because sum_planes
// holds the sums. They run in parallel with those of the array, whose sums leave only with its own last step;
// that step waits until the third byte's sweep is over. So a group takes S sweeps, or four.
// Handshake: starts with the last issue of a last step; `go` is combinational and makes one issue. Room in
// the collector is checked and reserved at the start of each sweep. over pulses a cycle after the last issue.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module plane_issue (
    // clock and synchronous reset
    input  wire       clk,
    input  wire       rst,
    // last issue of a last step whose sums leave in four bytes; its index
    input  wire       begins,
    input  wire [5:0] last,
    // room in the collector, reserved; post lanes busy with earlier sums
    input  wire       row_room,
    output wire       row_take,
    input  wire       lanes_busy,
    // bytes are pending; an issue; all issues are made
    output reg        busy,
    output wire       go,
    output reg        over
);

  reg [1:0] plane;
  reg [5:0] at;
  reg [5:0] end_at;
  wire opens = at == 6'd0;
  wire ends = at == end_at;
  wire all_made = go && ends && plane == 2'd3;

  assign go       = busy && !lanes_busy && (!opens || row_room);
  assign row_take = go && opens;

  always @(posedge clk) begin
    if (rst) begin
      busy   <= 1'b0;
      over   <= 1'b0;
      plane  <= 2'd1;
      at     <= 6'd0;
      end_at <= 6'd0;
    end else begin
      over <= all_made;
      if (begins) begin
        busy   <= 1'b1;
        plane  <= 2'd1;
        at     <= 6'd0;
        end_at <= last;
      end else if (go) begin
        busy   <= !all_made;
        plane  <= ends ? plane + 2'd1 : plane;
        at     <= ends ? 6'd0 : at + 6'd1;
        end_at <= end_at;
      end else begin
        busy   <= busy;
        plane  <= plane;
        at     <= at;
        end_at <= end_at;
      end
    end
  end

endmodule

`resetall
