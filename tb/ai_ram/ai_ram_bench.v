// SPDX-License-Identifier: Apache-2.0
//
// ai_ram_bench: the AI RAM behind its arbiter.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram_bench #(
    // as in ai_ram_arb
    parameter ROWS     = 64,
    parameter PATIENCE = 8,
    parameter PATH     = 64,
    parameter PB       = $clog2(PATH),
    parameter AW       = $clog2(ROWS) + 6 - PB
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // tile fill, read
    input  wire          fill_req,
    input  wire [20-PB:0] fill_word,
    output wire          fill_gnt,
    // result reader, read
    input  wire          unload_req,
    input  wire [20-PB:0] unload_word,
    output wire          unload_gnt,
    // reader of kept weights
    input  wire          kept_req,
    input  wire [20-PB:0] kept_word,
    output wire          kept_gnt,
    // write-back
    input  wire          writeback_req,
    input  wire [20-PB:0] writeback_word,
    input  wire [PATH-1:0] writeback_be,
    input  wire [8*PATH-1:0] writeback_data,
    output wire          writeback_gnt,
    // pixel writer
    input  wire          load_req,
    input  wire [20-PB:0] load_word,
    input  wire [PATH-1:0] load_be,
    input  wire [8*PATH-1:0] load_data,
    output wire          load_gnt,
    // host window
    input  wire          window_req,
    input  wire          window_we,
    input  wire [  20:0] window_addr,
    input  wire [   3:0] window_wstrb,
    input  wire [  31:0] window_wdata,
    output wire          window_ack,
    output wire [  31:0] window_rdata,
    // read data of the memory
    output wire [8*PATH-1:0] rdata
);

  wire re, we;
  wire [AW-1:0] raddr, waddr;
  wire [PATH-1:0] wbe;
  wire [8*PATH-1:0] wdata;

  ai_ram_arb #(
      .ROWS    (ROWS),
      .PATIENCE(PATIENCE),
      .PATH(PATH)
  ) u_arb (
      .clk     (clk),
      .rst     (rst),
      .fill_req  (fill_req),
      .fill_word  (fill_word),
      .fill_gnt  (fill_gnt),
      .unload_req  (unload_req),
      .unload_word  (unload_word),
      .unload_gnt  (unload_gnt),
      .kept_req  (kept_req),
      .kept_word  (kept_word),
      .kept_gnt  (kept_gnt),
      .writeback_req  (writeback_req),
      .writeback_word  (writeback_word),
      .writeback_be   (writeback_be),
      .writeback_data (writeback_data),
      .writeback_gnt  (writeback_gnt),
      .load_req  (load_req),
      .load_word  (load_word),
      .load_be   (load_be),
      .load_data (load_data),
      .load_gnt  (load_gnt),
      .window_req  (window_req),
      .window_we   (window_we),
      .window_addr (window_addr),
      .window_wstrb(window_wstrb),
      .window_wdata(window_wdata),
      .window_ack  (window_ack),
      .window_rdata(window_rdata),
      .re      (re),
      .raddr   (raddr),
      .rdata   (rdata),
      .we      (we),
      .waddr   (waddr),
      .wbe     (wbe),
      .wdata   (wdata)
  );

  ai_ram #(
      .ROWS(ROWS),
      .PATH(PATH)
  ) u_ram (
      .clk  (clk),
      .we   (we),
      .waddr(waddr),
      .wbe  (wbe),
      .wdata(wdata),
      .re   (re),
      .raddr(raddr),
      .rdata(rdata)
  );

endmodule

`resetall
