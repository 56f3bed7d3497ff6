// SPDX-License-Identifier: Apache-2.0
//
// soc_axi: openkpu_axi on the AHB of the computer.
//
// How it works: the ports are those of openkpu_top; adapters of AXI4-Lite and AXI4 are between them and the device.
// Handshake: AMBA 2.0 AHB.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_axi #(
    // of openkpu_axi
    parameter N_Y             = 4,
    parameter N_Z             = 4,
    parameter AHB_W           = 32,
    parameter AI_RAM_ROWS     = 32768,
    parameter WBUF_ROWS       = 1024,
    parameter WEIGHT_BITS     = 16,
    parameter PARAM_CHANS     = 2048,
    parameter LOOK_AHEAD      = 4,
    parameter TILE_ROWS       = 32,
    parameter POST_SHARE      = 1,
    parameter POOL_LANES      = 4,
    parameter FP16_LANES      = 0,
    parameter KEEP_WEIGHTS    = 0,
    parameter WEIGHT_AHEAD    = 0,
    parameter FLAT_MAPS       = 0,
    parameter DILATION        = 1,
    parameter SUM_PLANES      = 0,
    parameter OUT32           = 1,
    parameter POST_TABLES     = 0,
    parameter MUL_BITS        = 18,
    parameter PERF            = 1,
    parameter PATH            = 64,
    parameter PIX_FIFO_DEPTH  = 64,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32
) (
    // clock, synchronous reset
    input  wire             clk,
    input  wire             rst,
    // AHB slave
    input  wire             s_hsel,
    input  wire [     31:0] s_haddr,
    input  wire [      1:0] s_htrans,
    input  wire             s_hwrite,
    input  wire [      2:0] s_hsize,
    input  wire [     31:0] s_hwdata,
    output wire             s_hready,
    output wire [      1:0] s_hresp,
    output wire [     31:0] s_hrdata,
    // AHB master
    output wire             m_hbusreq,
    input  wire             m_hgrant,
    output wire [     31:0] m_haddr,
    output wire [      1:0] m_htrans,
    output wire             m_hwrite,
    output wire [      2:0] m_hsize,
    output wire [AHB_W-1:0] m_hwdata,
    // the bus, of both
    input  wire             hready,
    input  wire [      1:0] hresp,
    input  wire [AHB_W-1:0] hrdata,
    // interrupt, level
    output wire             irq
);

  // AXI4-Lite
  wire l_awvalid, l_awready, l_wvalid, l_wready, l_bvalid, l_arvalid, l_arready, l_rvalid;
  wire [31:0] l_addr, l_wdata, l_rdata;
  wire [3:0] l_wstrb;
  wire [1:0] l_bresp, l_rresp;
  // AXI4
  wire awvalid, awready, wvalid, wready, bvalid, bready, arvalid, arready, rvalid, rready, rlast;
  wire [31:0] awaddr, araddr;
  wire [7:0] awlen, arlen;
  wire [2:0] awsize, arsize;
  wire [AHB_W-1:0] wdata, rdata;
  wire [AHB_W/8-1:0] wstrb;
  wire [1:0] bresp, rresp;

  soc_axil_master u_host (
      .clk      (clk),
      .rst      (rst),
      .hsel     (s_hsel),
      .haddr    (s_haddr),
      .htrans   (s_htrans),
      .hwrite   (s_hwrite),
      .hsize    (s_hsize),
      .hwdata   (s_hwdata),
      .hready_in(hready),
      .hready   (s_hready),
      .hresp    (s_hresp),
      .hrdata   (s_hrdata),
      .awvalid  (l_awvalid),
      .awready  (l_awready),
      .wvalid   (l_wvalid),
      .wready   (l_wready),
      .arvalid  (l_arvalid),
      .arready  (l_arready),
      .addr     (l_addr),
      .wdata    (l_wdata),
      .wstrb    (l_wstrb),
      .bvalid   (l_bvalid),
      .bresp    (l_bresp),
      .rvalid   (l_rvalid),
      .rdata    (l_rdata),
      .rresp    (l_rresp)
  );

  openkpu_axi #(
      .N_Y            (N_Y),
      .N_Z            (N_Z),
      .AHB_W          (AHB_W),
      .AI_RAM_ROWS    (AI_RAM_ROWS),
      .WBUF_ROWS      (WBUF_ROWS),
      .WEIGHT_BITS    (WEIGHT_BITS),
      .PARAM_CHANS    (PARAM_CHANS),
      .LOOK_AHEAD     (LOOK_AHEAD),
      .TILE_ROWS      (TILE_ROWS),
      .POST_SHARE     (POST_SHARE),
      .POOL_LANES     (POOL_LANES),
      .FP16_LANES     (FP16_LANES),
      .KEEP_WEIGHTS   (KEEP_WEIGHTS),
      .WEIGHT_AHEAD   (WEIGHT_AHEAD),
      .FLAT_MAPS      (FLAT_MAPS),
      .DILATION       (DILATION),
      .SUM_PLANES     (SUM_PLANES),
      .OUT32          (OUT32),
      .PERF           (PERF),
      .POST_TABLES    (POST_TABLES),
      .MUL_BITS       (MUL_BITS),
      .PATH           (PATH),
      .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_device (
      .clk           (clk),
      .rst           (rst),
      .s_axil_awvalid(l_awvalid),
      .s_axil_awready(l_awready),
      .s_axil_awaddr (l_addr),
      .s_axil_awprot (3'b001),
      .s_axil_wvalid (l_wvalid),
      .s_axil_wready (l_wready),
      .s_axil_wdata  (l_wdata),
      .s_axil_wstrb  (l_wstrb),
      .s_axil_bvalid (l_bvalid),
      .s_axil_bready (1'b1),
      .s_axil_bresp  (l_bresp),
      .s_axil_arvalid(l_arvalid),
      .s_axil_arready(l_arready),
      .s_axil_araddr (l_addr),
      .s_axil_arprot (3'b001),
      .s_axil_rvalid (l_rvalid),
      .s_axil_rready (1'b1),
      .s_axil_rdata  (l_rdata),
      .s_axil_rresp  (l_rresp),
      .m_axi_awid    (),
      .m_axi_awaddr  (awaddr),
      .m_axi_awlen   (awlen),
      .m_axi_awsize  (awsize),
      .m_axi_awburst (),
      .m_axi_awcache (),
      .m_axi_awprot  (),
      .m_axi_awvalid (awvalid),
      .m_axi_awready (awready),
      .m_axi_wdata   (wdata),
      .m_axi_wstrb   (wstrb),
      .m_axi_wlast   (),
      .m_axi_wvalid  (wvalid),
      .m_axi_wready  (wready),
      .m_axi_bid     (1'b0),
      .m_axi_bresp   (bresp),
      .m_axi_bvalid  (bvalid),
      .m_axi_bready  (bready),
      .m_axi_arid    (),
      .m_axi_araddr  (araddr),
      .m_axi_arlen   (arlen),
      .m_axi_arsize  (arsize),
      .m_axi_arburst (),
      .m_axi_arcache (),
      .m_axi_arprot  (),
      .m_axi_arvalid (arvalid),
      .m_axi_arready (arready),
      .m_axi_rid     (1'b0),
      .m_axi_rdata   (rdata),
      .m_axi_rresp   (rresp),
      .m_axi_rlast   (rlast),
      .m_axi_rvalid  (rvalid),
      .m_axi_rready  (rready),
      .irq           (irq)
  );

  soc_axi_slave #(
      .W(AHB_W)
  ) u_storage (
      .clk    (clk),
      .rst    (rst),
      .awaddr (awaddr),
      .awlen  (awlen),
      .awsize (awsize),
      .awvalid(awvalid),
      .awready(awready),
      .wdata  (wdata),
      .wstrb  (wstrb),
      .wvalid (wvalid),
      .wready (wready),
      .bresp  (bresp),
      .bvalid (bvalid),
      .bready (bready),
      .araddr (araddr),
      .arlen  (arlen),
      .arsize (arsize),
      .arvalid(arvalid),
      .arready(arready),
      .rdata  (rdata),
      .rresp  (rresp),
      .rlast  (rlast),
      .rvalid (rvalid),
      .rready (rready),
      .hbusreq(m_hbusreq),
      .hgrant (m_hgrant),
      .haddr  (m_haddr),
      .htrans (m_htrans),
      .hwrite (m_hwrite),
      .hsize  (m_hsize),
      .hwdata (m_hwdata),
      .hready (hready),
      .hresp  (hresp),
      .hrdata (hrdata)
  );

endmodule

`resetall
