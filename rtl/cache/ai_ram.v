// SPDX-License-Identifier: Apache-2.0
//
// ai_ram: the data cache in words of PATH bytes (2 MiB at 32,768 rows of 64 bytes), one read and one
// write a cycle.
//
// How it works: byte i of a word is bits 8i+7:8i. A read answers in the cycle after re. What a read
// returns of the word that is being written is not defined; this model gives the old content. No
// user relies on it: a layer starts when the one before it is completely written, and rows of a map
// leave when they are. With 128 bytes that goes for the halves of a
// word, two rows, each alone: the other half may be read, and a memory should have an enable for
// each. An ASIC flow replaces this file by its macro.
// Handshake: none; ai_ram_arb owns both ports.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram #(
    // number of 64-byte rows
    parameter ROWS = 32768,
    // bytes of a word
    parameter PATH = 64,
    // derived, not to be set: width of a word address
    parameter AW   = $clog2(ROWS) + 6 - $clog2(PATH)
) (
    // clock
    input  wire              clk,
    // write port, one enable a byte
    input  wire              we,
    input  wire [    AW-1:0] waddr,
    input  wire [  PATH-1:0] wbe,
    input  wire [8*PATH-1:0] wdata,
    // read port
    input  wire              re,
    input  wire [    AW-1:0] raddr,
    output reg  [8*PATH-1:0] rdata
);

  // an odd row at the end has a whole word of 128 bytes
  localparam integer WORDS = (64 * ROWS + PATH - 1) / PATH;

  (* no_rw_check *)
  reg [8*PATH-1:0] mem[0:WORDS-1];

  integer i;
  always @(posedge clk) begin
    if (we) begin
      for (i = 0; i < PATH; i = i + 1) begin
        if (wbe[i]) mem[waddr][i*8+:8] <= wdata[i*8+:8];
      end
    end
  end

  always @(posedge clk) begin
    if (re) rdata <= mem[raddr];
  end

endmodule

`resetall
