// SPDX-License-Identifier: Apache-2.0
//
// ai_ram: the data cache, 64-byte rows (2 MiB at 32,768 rows), one read and one write a cycle.
//
// How it works: byte i of a row is bits 8i+7:8i. A read answers in the cycle after re; a read of
// the row that is being written returns the old content. No user relies on it: a layer starts when
// the one before it is completely written. An ASIC flow replaces this file by its macro.
// Handshake: none; ai_ram_arb owns both ports.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram #(
    // number of 64-byte rows
    parameter ROWS = 32768,
    // width of a row address
    parameter AW   = $clog2(ROWS)
) (
    // clock
    input  wire          clk,
    // write port, one enable a byte
    input  wire          we,
    input  wire [AW-1:0] waddr,
    input  wire [  63:0] wbe,
    input  wire [ 511:0] wdata,
    // read port
    input  wire          re,
    input  wire [AW-1:0] raddr,
    output reg  [ 511:0] rdata
);

  reg [511:0] mem[0:ROWS-1];

  integer i;
  always @(posedge clk) begin
    if (we) begin
      for (i = 0; i < 64; i = i + 1) begin
        if (wbe[i]) mem[waddr][i*8+:8] <= wdata[i*8+:8];
      end
    end
  end

  always @(posedge clk) begin
    if (re) rdata <= mem[raddr];
  end

endmodule

`resetall
