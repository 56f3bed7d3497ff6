// SPDX-License-Identifier: Apache-2.0
//
// param_buffer: the per-channel parameters of the post lanes.
//
// How it works: output channel o is in bank o mod N_Z of row o / N_Z of its layer; the rows form a ring, so
// that the parameters of later layers can be loaded while a layer computes. One memory holds the batch-norm
// word, one the zero-point constant (36 bits). Both are read for all banks at once. Instead of
// {shift 4, add 32, mul 24} a word stores {add, mul * 2^(15 - shift)}, 71 bits, which fit the same memory
// blocks: so there is one shifter here and none in the lanes, whose shift is always 15.
// Handshake: none; the loaders and the release at the end of a layer count rows.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module param_buffer #(
    // banks
    parameter N_Z  = 4,
    // rows: one layer of 1024 channels, or two
    parameter ROWS = 2048 / N_Z,
    // widths of a row address and a bank index
    parameter AW   = $clog2(ROWS),
    parameter ZW   = $clog2(N_Z)
) (
    // clock
    input  wire              clk,
    // batch-norm write
    input  wire              bn_we,
    input  wire [    AW-1:0] bn_row,
    input  wire [    ZW-1:0] bn_bank,
    input  wire [      59:0] bn_data,
    // constant write
    input  wire              kc_we,
    input  wire [    AW-1:0] kc_row,
    input  wire [    ZW-1:0] kc_bank,
    input  wire [      35:0] kc_data,
    // read of both, all banks
    input  wire              re,
    input  wire [    AW-1:0] raddr,
    output wire [N_Z*71-1:0] bn,
    output wire [N_Z*36-1:0] kc
);

  wire [38:0] mul = {{15{bn_data[23]}}, bn_data[23:0]};
  wire [70:0] word = {bn_data[55:24], mul << ~bn_data[59:56]};

  // one memory per bank: a row may be read while another of its banks is written
  genvar z;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_bank
      ram_1r1w #(
          .WIDTH(71),
          .DEPTH(ROWS)
      ) u_bn (
          .clk  (clk),
          .we   (bn_we && bn_bank == z),
          .wlane(1'b1),
          .waddr(bn_row),
          .wdata(word),
          .re   (re),
          .raddr(raddr),
          .rdata(bn[71*z+:71])
      );
      ram_1r1w #(
          .WIDTH(36),
          .DEPTH(ROWS)
      ) u_kc (
          .clk  (clk),
          .we   (kc_we && kc_bank == z),
          .wlane(1'b1),
          .waddr(kc_row),
          .wdata(kc_data),
          .re   (re),
          .raddr(raddr),
          .rdata(kc[36*z+:36])
      );
    end
  endgenerate

endmodule

`resetall
