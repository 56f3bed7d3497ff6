// SPDX-License-Identifier: Apache-2.0
//
// Bench of ahb_to_axi: the AHB master of the device in front of it, its announcements made as
// storage_port makes them, and the rules of AXI4 behind it.
`resetall
`timescale 1ns/1ps
`default_nettype none
`include "openkpu_fields.vh"

module ahb_to_axi_bench #(
  // as in ahb_to_axi
  parameter AHB_W = 32,
  parameter OUTSTANDING = 4,
  // of the tag of a command
  parameter TAG_W = 12
) (
  input  wire               clk,
  input  wire               rst,
  // as in ahb_master
  input  wire               cmd_valid,
  output wire               cmd_ready,
  input  wire               cmd_write,
  input  wire [31:0]        cmd_addr,
  input  wire [4:0]         cmd_beats,
  input  wire [2:0]         cmd_size,
  input  wire               cmd_wpop,
  input  wire [TAG_W-1:0]   cmd_tag,
  input  wire [AHB_W-1:0]   wd_data,
  output wire               wd_pop,
  output wire [1:0]         wd_back,
  output wire               wd_free,
  output wire               rsp_valid,
  output wire               rsp_write,
  output wire               rsp_first,
  output wire               rsp_last,
  output wire [TAG_W-1:0]   rsp_tag,
  output wire [AHB_W-1:0]   rsp_data,
  output wire               mst_err_valid,
  output wire [31:0]        mst_err_addr,
  output wire [TAG_W-1:0]   mst_err_tag,
  input  wire               mst_abandon,
  output wire               mst_idle,
  output wire [1:0]         wait_why,
  output wire [31:0]        wait_addr,
  output wire [TAG_W-1:0]   wait_tag,
  // AHB between the two, to look at
  output wire               m_ahb_hready,
  output wire               m_ahb_hgrant,
  output wire [1:0]         m_ahb_htrans,
  output wire [1:0]         m_ahb_hresp,
  // AXI4, for somebody else's model of a memory
  output wire                     m_axi_awid,
  output wire [31:0]              m_axi_awaddr,
  output wire [7:0]               m_axi_awlen,
  output wire [2:0]               m_axi_awsize,
  output wire [1:0]               m_axi_awburst,
  output wire                     m_axi_awvalid,
  input  wire                     m_axi_awready,
  output wire [AHB_W-1:0]         m_axi_wdata,
  output wire [AHB_W/8-1:0]       m_axi_wstrb,
  output wire                     m_axi_wlast,
  output wire                     m_axi_wvalid,
  input  wire                     m_axi_wready,
  input  wire                     m_axi_bid,
  input  wire [1:0]               m_axi_bresp,
  input  wire                     m_axi_bvalid,
  output wire                     m_axi_bready,
  output wire                     m_axi_arid,
  output wire [31:0]              m_axi_araddr,
  output wire [7:0]               m_axi_arlen,
  output wire [2:0]               m_axi_arsize,
  output wire [1:0]               m_axi_arburst,
  output wire                     m_axi_arvalid,
  input  wire                     m_axi_arready,
  input  wire                     m_axi_rid,
  input  wire [AHB_W-1:0]         m_axi_rdata,
  input  wire [1:0]               m_axi_rresp,
  input  wire                     m_axi_rlast,
  input  wire                     m_axi_rvalid,
  output wire                     m_axi_rready,
  // rules of AXI4 that were broken
  output wire [31:0]        axi_errors
);
  wire [31:0] haddr;
  wire hwrite, hbusreq, hlock;
  wire [2:0] hsize, hburst;
  wire [3:0] hprot;
  wire [AHB_W-1:0] hwdata, hrdata;
  wire [`AHEAD_BITS-1:0] ahead;

  assign m_ahb_hgrant = 1'b1;
  assign {m_axi_awid, m_axi_arid} = 2'b00;
  assign {m_axi_awburst, m_axi_arburst} = 4'b0101;
  assign ahead[`AHEAD_VALID] = cmd_valid && cmd_ready;
  assign ahead[`AHEAD_DROP] = mst_abandon;
  assign ahead[`AHEAD_WRITE] = cmd_write;
  assign ahead[`AHEAD_ADDR] = cmd_addr;
  assign ahead[`AHEAD_BEATS] = cmd_beats;
  assign ahead[`AHEAD_SIZE] = cmd_size;

  ahb_master #(.AHB_W(AHB_W), .TAG_W(TAG_W)) u_master (
    .clk(clk), .rst(rst), .m_ahb_hbusreq(hbusreq), .m_ahb_hlock(hlock), .m_ahb_hgrant(m_ahb_hgrant),
    .m_ahb_haddr(haddr), .m_ahb_htrans(m_ahb_htrans), .m_ahb_hwrite(hwrite), .m_ahb_hsize(hsize),
    .m_ahb_hburst(hburst), .m_ahb_hprot(hprot), .m_ahb_hwdata(hwdata), .m_ahb_hready(m_ahb_hready),
    .m_ahb_hresp(m_ahb_hresp), .m_ahb_hrdata(hrdata), .cmd_valid(cmd_valid), .cmd_ready(cmd_ready),
    .cmd_write(cmd_write), .cmd_addr(cmd_addr), .cmd_beats(cmd_beats), .cmd_size(cmd_size),
    .cmd_wpop(cmd_wpop), .cmd_tag(cmd_tag), .wd_data(wd_data), .wd_pop(wd_pop), .wd_back(wd_back), .wd_free(wd_free), .rsp_valid(rsp_valid),
    .rsp_write(rsp_write), .rsp_first(rsp_first), .rsp_last(rsp_last), .rsp_tag(rsp_tag),
    .rsp_data(rsp_data), .mst_err_valid(mst_err_valid), .mst_err_addr(mst_err_addr),
    .mst_err_tag(mst_err_tag), .mst_abandon(mst_abandon),
    .mst_idle(mst_idle), .mst_reading(), .wait_why(wait_why), .wait_addr(wait_addr), .wait_tag(wait_tag)
  );

  ahb_to_axi #(.AHB_W(AHB_W), .OUTSTANDING(OUTSTANDING)) u_bridge (
    .clk(clk), .rst(rst), .s_ahb_haddr(haddr), .s_ahb_htrans(m_ahb_htrans), .s_ahb_hwrite(hwrite),
    .s_ahb_hsize(hsize), .s_ahb_hwdata(hwdata), .s_ahb_hready(m_ahb_hready),
    .s_ahb_hresp(m_ahb_hresp), .s_ahb_hrdata(hrdata), .s_ahb_ahead(ahead),
    .m_axi_awaddr(m_axi_awaddr), .m_axi_awlen(m_axi_awlen), .m_axi_awsize(m_axi_awsize), .m_axi_awvalid(m_axi_awvalid),
    .m_axi_awready(m_axi_awready), .m_axi_wdata(m_axi_wdata), .m_axi_wstrb(m_axi_wstrb), .m_axi_wlast(m_axi_wlast),
    .m_axi_wvalid(m_axi_wvalid), .m_axi_wready(m_axi_wready), .m_axi_bresp(m_axi_bresp), .m_axi_bvalid(m_axi_bvalid),
    .m_axi_bready(m_axi_bready), .m_axi_araddr(m_axi_araddr), .m_axi_arlen(m_axi_arlen), .m_axi_arsize(m_axi_arsize),
    .m_axi_arvalid(m_axi_arvalid), .m_axi_arready(m_axi_arready), .m_axi_rdata(m_axi_rdata), .m_axi_rresp(m_axi_rresp),
    .m_axi_rlast(m_axi_rlast), .m_axi_rvalid(m_axi_rvalid), .m_axi_rready(m_axi_rready)
  );

  axi_checker #(.AHB_W(AHB_W)) u_check (
    .clk(clk), .rst(rst), .errors(axi_errors),
    .awaddr(m_axi_awaddr), .awlen(m_axi_awlen), .awsize(m_axi_awsize), .awvalid(m_axi_awvalid),
    .awready(m_axi_awready), .wdata(m_axi_wdata), .wstrb(m_axi_wstrb), .wlast(m_axi_wlast),
    .wvalid(m_axi_wvalid), .wready(m_axi_wready), .bvalid(m_axi_bvalid), .bready(m_axi_bready),
    .araddr(m_axi_araddr), .arlen(m_axi_arlen), .arsize(m_axi_arsize), .arvalid(m_axi_arvalid),
    .arready(m_axi_arready), .rvalid(m_axi_rvalid), .rready(m_axi_rready)
  );
endmodule

`resetall
