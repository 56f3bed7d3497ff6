// SPDX-License-Identifier: Apache-2.0
//
// Default slave: OKAY to IDLE and BUSY, the two-cycle ERROR to everything else.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_default_slave (
  input  wire       clk,
  input  wire       rst,
  input  wire       hsel,
  input  wire [1:0] htrans,
  input  wire       hready_in,
  output reg        hready_out,
  output reg  [1:0] hresp
);
  always @(posedge clk) begin
    if (rst) begin
      hready_out <= 1'b1;
      hresp      <= 2'b00;
    end else if (hsel & hready_in & htrans[1]) begin
      hready_out <= 1'b0;
      hresp      <= 2'b01;
    end else begin
      hready_out <= 1'b1;
      hresp      <= hready_out ? 2'b00 : hresp;
    end
  end
endmodule

`resetall
