// SPDX-License-Identifier: Apache-2.0
//
// weight_buffer: nine columns of weights, N_Z banks wide, used as a ring of rows.
//
// How it works: a word is nine weights of one output channel, one for each unit of the cascade;
// a row holds a word for each of the N_Z banks. Columns are separate memories, because unit t of
// the cascade reads its weights t cycles after unit 0.
// Handshake: none; the loader and the sequencer of the array count rows.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module weight_buffer #(
    // banks, rows, bits of a weight
    parameter N_Z  = 4,
    parameter ROWS = 1024,
    parameter WB   = 16,
    // width of a row address and of a bank number
    parameter AW   = $clog2(ROWS),
    parameter ZW   = $clog2(N_Z)
) (
    // clock
    input  wire               clk,
    // write of one word: nine weights
    input  wire               we,
    input  wire [     AW-1:0] wrow,
    input  wire [     ZW-1:0] wbank,
    input  wire [   9*WB-1:0] wdata,
    // read of each column, all banks: weight (t, z) at t*N_Z + z
    input  wire [        8:0] re,
    input  wire [   9*AW-1:0] rrow,
    output wire [9*N_Z*WB-1:0] rdata
);

  wire [N_Z-1:0] one = {{(N_Z - 1) {1'b0}}, 1'b1};

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_column
      ram_1r1w #(
          .WIDTH(N_Z * WB),
          .DEPTH(ROWS),
          .LANE (WB)
      ) u_ram (
          .clk  (clk),
          .we   (we),
          .wlane(one << wbank),
          .waddr(wrow),
          .wdata({N_Z{wdata[t*WB+:WB]}}),
          .re   (re[t]),
          .raddr(rrow[t*AW+:AW]),
          .rdata(rdata[t*N_Z*WB+:N_Z*WB])
      );
    end
  endgenerate

endmodule

`resetall
