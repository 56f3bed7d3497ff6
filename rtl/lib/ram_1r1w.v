// SPDX-License-Identifier: Apache-2.0
//
// ram_1r1w: memory with one write port and one registered read port.
//
// How it works: wdata is written at a rising edge with we high, lane by lane; rdata follows raddr one
// cycle after re and holds its value while re is low. A read of the address being written returns
// undefined data, because a block RAM would need extra logic for it: no user reads a word that it has not
// counted as written. This model returns the old content. An ASIC flow replaces this file by its macro.
// Handshake: none; the user keeps addresses in range.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ram_1r1w #(
    // width of a word in bits
    parameter WIDTH = 32,
    // number of words
    parameter DEPTH = 16,
    // width of a separately written lane in bits (divides WIDTH)
    parameter LANE  = WIDTH,
    // width of an address
    parameter AW    = (DEPTH <= 2) ? 1 : $clog2(DEPTH)
) (
    // clock
    input  wire                  clk,
    // write port
    input  wire                  we,
    input  wire [WIDTH/LANE-1:0] wlane,
    input  wire [        AW-1:0] waddr,
    input  wire [     WIDTH-1:0] wdata,
    // read port
    input  wire                  re,
    input  wire [        AW-1:0] raddr,
    output reg  [     WIDTH-1:0] rdata
);

  (* no_rw_check *)
  reg [WIDTH-1:0] mem[0:DEPTH-1];

  integer i;
  always @(posedge clk) begin
    if (we) begin
      for (i = 0; i < WIDTH / LANE; i = i + 1) begin
        if (wlane[i]) mem[waddr][i*LANE+:LANE] <= wdata[i*LANE+:LANE];
      end
    end
  end

  always @(posedge clk) begin
    if (re) rdata <= mem[raddr];
  end

  generate
    if (WIDTH % LANE != 0) begin : g_illegal
      ILLEGAL_LANE_MUST_DIVIDE_WIDTH u_illegal ();
    end
  endgenerate

`ifdef FORMAL
  `include "ram_peek.vh"
`endif

endmodule

`resetall
