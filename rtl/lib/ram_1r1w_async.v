// SPDX-License-Identifier: Apache-2.0
//
// ram_1r1w_async: small memory with one write port and one read port that reads in the same cycle.
//
// How it works: register file or distributed RAM; rdata follows raddr combinationally.
// Handshake: none; the user keeps addresses in range.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ram_1r1w_async #(
    // width of a word in bits
    parameter WIDTH = 32,
    // number of words
    parameter DEPTH = 16,
    // width of an address
    parameter AW    = (DEPTH <= 2) ? 1 : $clog2(DEPTH)
) (
    // clock
    input  wire             clk,
    // write port
    input  wire             we,
    input  wire [   AW-1:0] waddr,
    input  wire [WIDTH-1:0] wdata,
    // read port
    input  wire [   AW-1:0] raddr,
    output wire [WIDTH-1:0] rdata
);

  reg [WIDTH-1:0] mem[0:DEPTH-1];

  always @(posedge clk) begin
    if (we) mem[waddr] <= wdata;
  end

  assign rdata = mem[raddr];

`ifdef FORMAL
  `include "ram_peek.vh"
`endif

endmodule

`resetall
