// SPDX-License-Identifier: Apache-2.0
//
// flat_lines: whole lines in 64 pixels of a map whose lines are stored without gaps.
//
// How it works: a table of 64 / width and 64 modulo width, for lines of 1 to 16 pixels.
// Handshake: none, combinational.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module flat_lines (
    // pixels per line, 16 as 0
    input  wire [3:0] width,
    // whole lines, remaining pixels
    output reg  [6:0] lines,
    output reg  [3:0] rest
);

  always @* begin
    case (width)
      4'd1: {lines, rest} = {7'd64, 4'd0};
      4'd2: {lines, rest} = {7'd32, 4'd0};
      4'd3: {lines, rest} = {7'd21, 4'd1};
      4'd4: {lines, rest} = {7'd16, 4'd0};
      4'd5: {lines, rest} = {7'd12, 4'd4};
      4'd6: {lines, rest} = {7'd10, 4'd4};
      4'd7: {lines, rest} = {7'd9, 4'd1};
      4'd8: {lines, rest} = {7'd8, 4'd0};
      4'd9: {lines, rest} = {7'd7, 4'd1};
      4'd10: {lines, rest} = {7'd6, 4'd4};
      4'd11: {lines, rest} = {7'd5, 4'd9};
      4'd12: {lines, rest} = {7'd5, 4'd4};
      4'd13: {lines, rest} = {7'd4, 4'd12};
      4'd14: {lines, rest} = {7'd4, 4'd8};
      4'd15: {lines, rest} = {7'd4, 4'd4};
      default: {lines, rest} = {7'd4, 4'd0};
    endcase
  end

endmodule

`resetall
