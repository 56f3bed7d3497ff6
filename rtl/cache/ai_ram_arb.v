// SPDX-License-Identifier: Apache-2.0
//
// ai_ram_arb: shares the read and the write port of the AI RAM.
//
// How it works: readers are, in order of rank, the tile fill, the result reader and the host;
// writers are the write-back, the pixel writer and the host. A lower rank that has waited PATIENCE
// cycles goes first once, so that nobody starves beside a depthwise layer that uses every cycle.
// Host accesses are 32-bit words inside a row.
// Handshake: a requester holds req until gnt (same cycle); read data is valid in the cycle after
// gnt. The host holds hr_req until the one-cycle hr_ack, which carries the read data.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram_arb #(
    // number of 64-byte rows
    parameter ROWS     = 32768,
    // cycles that a lower rank waits at most
    parameter PATIENCE = 8,
    // width of a row address inside the memory
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
    // write-back of the pooling unit
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
    // host window, byte address
    input  wire          hr_req,
    input  wire          hr_we,
    input  wire [  20:0] hr_addr,
    input  wire [   3:0] hr_wstrb,
    input  wire [  31:0] hr_wdata,
    output reg           hr_ack,
    output wire [  31:0] hr_rdata,
    // memory
    output wire          re,
    output wire [AW-1:0] raddr,
    input  wire [ 511:0] rdata,
    output wire          we,
    output wire [AW-1:0] waddr,
    output wire [  63:0] wbe,
    output wire [ 511:0] wdata
);

  reg [3:0] ar_wait;
  reg [3:0] aw_wait;
  reg [3:0] hr_wait;
  reg [3:0] host_word;  // word of the row that the host reads

  // a request that is being acknowledged is not a new one
  wire host_rd = hr_req && !hr_we && !hr_ack;
  wire host_wr = hr_req && hr_we && !hr_ack;
  wire ar_urgent = ar_wait == PATIENCE;
  wire aw_urgent = aw_wait == PATIENCE;
  wire hr_urgent = hr_wait == PATIENCE;

  // read port
  wire hr_rfirst = host_rd && hr_urgent;
  wire ar_first = ar_req && ar_urgent && !hr_rfirst;
  assign fl_gnt = fl_req && !hr_rfirst && !ar_first;
  assign ar_gnt = ar_req && (ar_first || (!fl_req && !hr_rfirst));
  wire hr_rgnt = host_rd && !fl_gnt && !ar_gnt;
  assign re = fl_gnt || ar_gnt || hr_rgnt;
  wire [14:0] rrow = fl_gnt ? fl_row : ar_gnt ? ar_row : hr_addr[20:6];
  assign raddr = rrow[AW-1:0];

  // write port
  wire hr_wfirst = host_wr && hr_urgent;
  wire aw_first = aw_req && aw_urgent && !hr_wfirst;
  assign wb_gnt = wb_req && !hr_wfirst && !aw_first;
  assign aw_gnt = aw_req && (aw_first || (!wb_req && !hr_wfirst));
  wire hr_wgnt = host_wr && !wb_gnt && !aw_gnt;
  assign we = wb_gnt || aw_gnt || hr_wgnt;
  wire [14:0] wrow = wb_gnt ? wb_row : aw_gnt ? aw_row : hr_addr[20:6];
  assign waddr = wrow[AW-1:0];
  assign wbe   = wb_gnt ? wb_be : aw_gnt ? aw_be : {60'd0, hr_wstrb} << {hr_addr[5:2], 2'b00};
  assign wdata = wb_gnt ? wb_data : aw_gnt ? aw_data : {16{hr_wdata}};

  assign hr_rdata = rdata[{host_word, 5'd0}+:32];

  always @(posedge clk) begin
    if (rst) begin
      ar_wait <= 4'd0;
      aw_wait <= 4'd0;
      hr_wait <= 4'd0;
      hr_ack  <= 1'b0;
    end else begin
      ar_wait <= (!ar_req || ar_gnt) ? 4'd0 : ar_urgent ? ar_wait : ar_wait + 4'd1;
      aw_wait <= (!aw_req || aw_gnt) ? 4'd0 : aw_urgent ? aw_wait : aw_wait + 4'd1;
      hr_wait <= (!hr_req || hr_ack) ? 4'd0 : hr_urgent ? hr_wait : hr_wait + 4'd1;
      hr_ack  <= hr_rgnt || hr_wgnt;
    end
  end

  always @(posedge clk) begin
    if (hr_rgnt) host_word <= hr_addr[5:2];
  end

  generate
    if (ROWS < 16 || ROWS > 32768) begin : g_illegal
      ILLEGAL_AI_RAM_ROWS_16_TO_32768 u_illegal ();
    end
  endgenerate

  // hr_addr[1:0]: the byte lanes are in hr_wstrb
  wire unused = &{1'b0, hr_addr[1:0], fl_row, ar_row, wb_row, aw_row};

endmodule

`resetall
