// SPDX-License-Identifier: Apache-2.0
//
// ahb_lite_bench: the AHB slave wired as on AHB-Lite (docs/integration.md 10), for somebody else's
// master: HRESP has one bit, and the slave is alone.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ahb_lite_bench #(
  parameter AI_RAM_ROWS = 16384
) (
  input  wire        clk,
  input  wire        rst,
  // AHB-Lite
  input  wire [31:0] h_haddr,
  input  wire [2:0]  h_hsize,
  input  wire [1:0]  h_htrans,
  input  wire [31:0] h_hwdata,
  output wire [31:0] h_hrdata,
  input  wire        h_hwrite,
  output wire        h_hready,
  output wire        h_hresp,
  // as in ahb_slave_bench
  output wire        window_req,
  output wire        window_we,
  output wire [20:0] window_addr,
  output wire [3:0]  window_wstrb,
  output wire [31:0] window_wdata,
  input  wire        window_ack,
  input  wire [31:0] window_rdata,
  output wire [31:0] reg_writes,
  output wire [31:0] reg_reads,
  // bit of HRESP that AHB-Lite has not
  output wire [31:0] ahb_errors
);
  wire [1:0] hresp;
  wire unused_ready;
  assign h_hresp = hresp[0];
  assign ahb_errors = {31'd0, hresp[1]};

  ahb_slave_bench #(.PRIVILEGED(0), .AI_RAM_ROWS(AI_RAM_ROWS)) u_slave (
    .clk(clk), .rst(rst), .other_phase(1'b0), .other_ready(1'b1), .s_ahb_hsel(1'b1),
    .s_ahb_haddr(h_haddr), .s_ahb_htrans(h_htrans), .s_ahb_hwrite(h_hwrite), .s_ahb_hsize(h_hsize),
    .s_ahb_hburst(3'd0), .s_ahb_hprot(4'b0011), .s_ahb_hwdata(h_hwdata), .s_ahb_hready_in(unused_ready),
    .s_ahb_hready_out(h_hready), .s_ahb_hresp(hresp), .s_ahb_hrdata(h_hrdata), .window_req(window_req),
    .window_we(window_we), .window_addr(window_addr), .window_wstrb(window_wstrb),
    .window_wdata(window_wdata), .window_ack(window_ack), .window_rdata(window_rdata),
    .reg_writes(reg_writes), .reg_reads(reg_reads)
  );
endmodule

`resetall
