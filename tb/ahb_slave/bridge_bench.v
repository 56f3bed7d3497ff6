// SPDX-License-Identifier: Apache-2.0
//
// Bench of axil_to_ahb and apb_to_ahb: the AHB slave of the device behind one of them, with
// registers and an AI RAM (ahb_slave_bench), and the pins of AHB to look at.
`resetall
`timescale 1ns/1ps
`default_nettype none

module bridge_bench #(
  // 1: apb_to_ahb
  parameter APB = 0,
  parameter PRIVILEGED = 0,
  parameter AI_RAM_ROWS = 16384
) (
  input  wire        clk,
  input  wire        rst,
  // AXI4-Lite, for somebody else's model of a host
  input  wire        s_axil_awvalid,
  output wire        s_axil_awready,
  input  wire [31:0] s_axil_awaddr,
  input  wire [2:0]  s_axil_awprot,
  input  wire        s_axil_wvalid,
  output wire        s_axil_wready,
  input  wire [31:0] s_axil_wdata,
  input  wire [3:0]  s_axil_wstrb,
  output wire        s_axil_bvalid,
  input  wire        s_axil_bready,
  output wire [1:0]  s_axil_bresp,
  input  wire        s_axil_arvalid,
  output wire        s_axil_arready,
  input  wire [31:0] s_axil_araddr,
  input  wire [2:0]  s_axil_arprot,
  output wire        s_axil_rvalid,
  input  wire        s_axil_rready,
  output wire [31:0] s_axil_rdata,
  output wire [1:0]  s_axil_rresp,
  // APB3, the same
  input  wire        s_apb_psel,
  input  wire        s_apb_penable,
  input  wire [31:0] s_apb_paddr,
  input  wire        s_apb_pwrite,
  input  wire [31:0] s_apb_pwdata,
  output wire        s_apb_pready,
  output wire [31:0] s_apb_prdata,
  output wire        s_apb_pslverr,
  // pins of APB4, which that model wants as well; APB3 has none of them
  input  wire [2:0]  s_apb_pprot,
  input  wire [3:0]  s_apb_pstrb,
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
  // AHB between the two
  output wire [1:0]  htrans,
  output wire        hwrite,
  output wire [2:0]  hsize,
  output wire [3:0]  hprot,
  output wire [31:0] haddr,
  // rules of AHB that were broken
  output wire [31:0] ahb_errors
);
  wire [31:0] hwdata, hrdata;
  wire [1:0] hresp;
  wire hready, unused_ready;
  wire [36:0] unused_rules;

  generate
    if (APB != 0) begin : g_apb
      apb_to_ahb u_bridge (
        .s_apb_psel(s_apb_psel), .s_apb_penable(s_apb_penable), .s_apb_paddr(s_apb_paddr), .s_apb_pwrite(s_apb_pwrite),
        .s_apb_pwdata(s_apb_pwdata), .s_apb_pready(s_apb_pready), .s_apb_prdata(s_apb_prdata), .s_apb_pslverr(s_apb_pslverr),
        .m_ahb_haddr(haddr), .m_ahb_htrans(htrans), .m_ahb_hwrite(hwrite), .m_ahb_hsize(hsize),
        .m_ahb_hprot(hprot), .m_ahb_hwdata(hwdata), .m_ahb_hready(hready), .m_ahb_hresp(hresp),
        .m_ahb_hrdata(hrdata)
      );
    end else begin : g_axil
      axil_to_ahb u_bridge (
        .clk(clk), .rst(rst),
        .s_axil_awvalid(s_axil_awvalid), .s_axil_awready(s_axil_awready), .s_axil_awaddr(s_axil_awaddr), .s_axil_awprot(s_axil_awprot),
        .s_axil_wvalid(s_axil_wvalid), .s_axil_wready(s_axil_wready), .s_axil_wdata(s_axil_wdata), .s_axil_wstrb(s_axil_wstrb),
        .s_axil_bvalid(s_axil_bvalid), .s_axil_bready(s_axil_bready), .s_axil_bresp(s_axil_bresp), .s_axil_arvalid(s_axil_arvalid),
        .s_axil_arready(s_axil_arready), .s_axil_araddr(s_axil_araddr), .s_axil_arprot(s_axil_arprot), .s_axil_rvalid(s_axil_rvalid),
        .s_axil_rready(s_axil_rready), .s_axil_rdata(s_axil_rdata), .s_axil_rresp(s_axil_rresp),
        .m_ahb_haddr(haddr), .m_ahb_htrans(htrans), .m_ahb_hwrite(hwrite), .m_ahb_hsize(hsize),
        .m_ahb_hprot(hprot), .m_ahb_hwdata(hwdata), .m_ahb_hready(hready), .m_ahb_hresp(hresp),
        .m_ahb_hrdata(hrdata)
      );
    end
  endgenerate

  ahb_slave_bench #(.PRIVILEGED(PRIVILEGED), .AI_RAM_ROWS(AI_RAM_ROWS)) u_slave (
    .clk(clk), .rst(rst), .other_phase(1'b0), .other_ready(1'b1), .s_ahb_hsel(1'b1),
    .s_ahb_haddr(haddr), .s_ahb_htrans(htrans), .s_ahb_hwrite(hwrite), .s_ahb_hsize(hsize),
    .s_ahb_hburst(3'd0), .s_ahb_hprot(hprot), .s_ahb_hwdata(hwdata), .s_ahb_hready_in(unused_ready),
    .s_ahb_hready_out(hready), .s_ahb_hresp(hresp), .s_ahb_hrdata(hrdata), .window_req(window_req),
    .window_we(window_we), .window_addr(window_addr), .window_wstrb(window_wstrb),
    .window_wdata(window_wdata), .window_ack(window_ack), .window_rdata(window_rdata),
    .reg_writes(reg_writes), .reg_reads(reg_reads)
  );

  ahb_master_checker u_check (
    .clk(clk), .rst(rst), .hbusreq(1'b1), .hlock(1'b0), .hgrant(1'b1), .haddr(haddr),
    .htrans(htrans), .hwrite(hwrite), .hsize(hsize), .hburst(3'd0), .hprot(hprot),
    .hwdata(hwdata), .hready(hready), .hresp(hresp), .rule(unused_rules), .errors(ahb_errors)
  );
endmodule

`resetall
