// SPDX-License-Identifier: Apache-2.0
//
// ram_1r1w_lane: small memory with lane write enables whose read port answers in the same cycle.
//
// How it works: as ram_1r1w_async, but each lane of a word has its own write enable.
// Handshake: none; the user keeps addresses in range.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ram_1r1w_lane #(
    // width of a word in bits
    parameter WIDTH = 32,
    // number of words
    parameter DEPTH = 16,
    // width of a separately written lane in bits (divides WIDTH)
    parameter LANE  = 8,
    // width of an address
    parameter AW    = (DEPTH <= 2) ? 1 : $clog2(DEPTH)
) (
    // clock
    input  wire                  clk,
    // write port: a lane is written where its enable is high
    input  wire [WIDTH/LANE-1:0] wlane,
    input  wire [        AW-1:0] waddr,
    input  wire [     WIDTH-1:0] wdata,
    // read port
    input  wire [        AW-1:0] raddr,
    output wire [     WIDTH-1:0] rdata
);

  reg [WIDTH-1:0] mem[0:DEPTH-1];

  generate
    if (WIDTH % LANE != 0) begin : g_illegal
      ILLEGAL_LANE_MUST_DIVIDE_WIDTH u_illegal ();
    end
  endgenerate

  integer i;
  always @(posedge clk) begin
    if (|wlane) begin
      for (i = 0; i < WIDTH / LANE; i = i + 1) begin
        if (wlane[i]) mem[waddr][i*LANE+:LANE] <= wdata[i*LANE+:LANE];
      end
    end
  end

  assign rdata = mem[raddr];

endmodule

`resetall
