// SPDX-License-Identifier: Apache-2.0
//
// layer_serial: what the layer decoder computes a bit a cycle: a division by nine, and the product of
// the constant term and the number of channels.
//
// How it works: the dividend leaves at its top, the quotient grows from its bottom. At the same time
// the factor leaves at its top, and the product is doubled and added to; the factor is shorter.
// Handshake: load gives the operands. From the next cycle on busy is high while a bit a cycle is done;
// then the results are there, until the next load. term is stable from load to the end.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module layer_serial (
    // clock and synchronous reset
    input  wire        clk,
    input  wire        rst,
    // operands are there; the results are not
    input  wire        load,
    output reg         busy,
    // number to be divided: at most 2 MiB
    input  wire [21:0] dividend,
    output reg  [17:0] quotient,
    output reg  [ 3:0] rest,
    // constant term and how often it counts, 1..9216; their product modulo 2^36
    input  wire [35:0] term,
    input  wire [13:0] times,
    output reg  [35:0] sum
);

  localparam [4:0] LAST = 5'd20, TIMES_LAST = 5'd13;

  reg  [20:0] bits;
  reg  [13:0] factor;
  reg  [ 4:0] done;
  wire [ 4:0] part = {rest, bits[20]};
  wire        fits = part >= 5'd9;
  wire [ 4:0] part_rest = fits ? part - 5'd9 : part;

  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= load || (busy && done != LAST);
  end

  always @(posedge clk) begin
    if (load) begin
      {rest, bits} <= {3'd0, dividend};
      quotient <= 18'd0;
      done <= 5'd0;
    end else if (busy) begin
      rest <= part_rest[3:0];
      bits <= {bits[19:0], 1'b0};
      quotient <= {quotient[16:0], fits};
      done <= done + 5'd1;
    end
  end

  always @(posedge clk) begin
    if (load) begin
      sum <= 36'd0;
      factor <= times;
    end else if (busy && done <= TIMES_LAST) begin
      sum <= {sum[34:0], 1'b0} + (factor[13] ? term : 36'd0);
      factor <= {factor[12:0], 1'b0};
    end
  end

  wire unused = &{1'b0, part_rest[4]};

endmodule

`resetall
