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
    parameter AW       = $clog2(ROWS)
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // tile fill, read
    input  wire          fl_req,
    input  wire [  14:0] fl_row,
    output wire          fl_gnt,
    // result reader, read
    input  wire          ar_req,
    input  wire [  14:0] ar_row,
    output wire          ar_gnt,
    // write-back
    input  wire          wb_req,
    input  wire [  14:0] wb_row,
    input  wire [  63:0] wb_be,
    input  wire [ 511:0] wb_data,
    output wire          wb_gnt,
    // pixel writer
    input  wire          aw_req,
    input  wire [  14:0] aw_row,
    input  wire [  63:0] aw_be,
    input  wire [ 511:0] aw_data,
    output wire          aw_gnt,
    // host window
    input  wire          hr_req,
    input  wire          hr_we,
    input  wire [  20:0] hr_addr,
    input  wire [   3:0] hr_wstrb,
    input  wire [  31:0] hr_wdata,
    output wire          hr_ack,
    output wire [  31:0] hr_rdata,
    // read data of the memory
    output wire [ 511:0] rdata
);

  wire re, we;
  wire [AW-1:0] raddr, waddr;
  wire [63:0] wbe;
  wire [511:0] wdata;

  ai_ram_arb #(
      .ROWS    (ROWS),
      .PATIENCE(PATIENCE)
  ) u_arb (
      .clk     (clk),
      .rst     (rst),
      .fl_req  (fl_req),
      .fl_row  (fl_row),
      .fl_gnt  (fl_gnt),
      .ar_req  (ar_req),
      .ar_row  (ar_row),
      .ar_gnt  (ar_gnt),
      .wb_req  (wb_req),
      .wb_row  (wb_row),
      .wb_be   (wb_be),
      .wb_data (wb_data),
      .wb_gnt  (wb_gnt),
      .aw_req  (aw_req),
      .aw_row  (aw_row),
      .aw_be   (aw_be),
      .aw_data (aw_data),
      .aw_gnt  (aw_gnt),
      .hr_req  (hr_req),
      .hr_we   (hr_we),
      .hr_addr (hr_addr),
      .hr_wstrb(hr_wstrb),
      .hr_wdata(hr_wdata),
      .hr_ack  (hr_ack),
      .hr_rdata(hr_rdata),
      .re      (re),
      .raddr   (raddr),
      .rdata   (rdata),
      .we      (we),
      .waddr   (waddr),
      .wbe     (wbe),
      .wdata   (wdata)
  );

  ai_ram #(
      .ROWS(ROWS)
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
