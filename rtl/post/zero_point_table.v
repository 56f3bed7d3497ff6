// SPDX-License-Identifier: Apache-2.0
//
// zero_point_table: a layer's arg_x as the lanes want it, and its multiples.
//
// How it works: arg_x is moved up by 15 - shr_x bits, so that every layer's shift is one of 15 bits
// and the lanes need no shifter. In 36 bits (coarse) there is room for twelve of them: beyond that
// arg_x is moved by three less, and what it is multiplied by moves by three (fine). While the
// activation table is copied, sixteen writes carry the multiples 0 to 15 to the memories of lanes
// that look products up.
// Handshake: load begins with multiple 0; each step, from the third cycle after load on, writes
// one. arg_x and shr_x are stable from load to the end of the layer.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module zero_point_table (
    // clock
    input  wire        clk,
    // layer arguments
    input  wire [23:0] arg_x,
    input  wire [ 3:0] shr_x,
    // first multiple; one is written
    input  wire        load,
    input  wire        step,
    // arg_x moved up; the same for multipliers
    output reg  [38:0] scaled,
    output wire [35:0] coarse,
    output reg         fine,
    // write port of the lanes
    output reg  [ 3:0] addr,
    output reg  [42:0] data
);

  // in two cycles, for arguments that stand still
  wire [26:0] wide = {{3{arg_x[23]}}, arg_x};
  reg  [26:0] lowest;
  reg         begins;  // a register: load comes from afar

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
