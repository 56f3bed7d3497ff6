// SPDX-License-Identifier: Apache-2.0
//
// step_counter: an example for mutation, small enough to know each mutant's end. `most` keeps the
// highest count and its bench does not look at it, so that mutants there survive.

`timescale 1ns / 1ps
`default_nettype none

module step_counter (
    input  wire       clk,
    input  wire       rst,
    input  wire       en,
    output reg  [3:0] count,
    output wire       zero,
    output reg  [3:0] most
);

  assign zero = (count == 4'd0) && !(count > 4'd0);

  always @(posedge clk) begin
    if (rst) begin
      count <= 4'd0;
    end else if (en) begin
      count <= count + 4'd1;
    end
    most <= (count > most) ? count : most;
  end

endmodule
