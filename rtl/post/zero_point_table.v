// SPDX-License-Identifier: Apache-2.0
//
// zero_point_table: aligns a layer's arg_x for the lanes, and generates its multiples.
//
// How it works: arg_x is shifted left by 15 - shr_x bits, so that every layer's shift is 15 bits and the
// lanes need no shifter. 36 bits (coarse) have room for a shift of twelve: beyond that arg_x is shifted
// by three less, and its factor by three more (fine). While the activation table is copied, sixteen
// writes send the multiples 0 to 15 to the memories of lanes without multipliers.
// Handshake: load begins with multiple 0; each step, from the third cycle after load on, writes one.
// arg_x and shr_x are stable from load to the end of the layer.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module zero_point_table (
    // clock
    input  wire        clk,
    // layer arguments
    input  wire [23:0] arg_x,
    input  wire [ 3:0] shr_x,
    // first multiple; write one
    input  wire        load,
    input  wire        step,
    // arg_x shifted left; the same for multipliers
    output reg  [38:0] scaled,
    output wire [35:0] coarse,
    output reg         fine,
    // write port of the lanes
    output reg  [ 3:0] addr,
    output reg  [42:0] data
);

  // in two cycles, since the arguments are stable
  wire [26:0] wide = {{3{arg_x[23]}}, arg_x};
  reg  [26:0] lowest;
  reg         begins;  // a register, because load has a long path

  assign coarse = fine ? scaled[38:3] : scaled[35:0];

  always @(posedge clk) begin
    fine   <= shr_x < 4'd3;
    lowest <= wide << ~shr_x[1:0];
    scaled <= {{12{lowest[26]}}, lowest} << {~shr_x[3:2], 2'b00};
    begins <= load;
    addr   <= begins ? 4'd0 : step ? addr + 4'd1 : addr;
    data   <= begins ? 43'd0 : step ? data + {{4{scaled[38]}}, scaled} : data;
  end

endmodule

`resetall
