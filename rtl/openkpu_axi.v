// SPDX-License-Identifier: Apache-2.0
//
// openkpu_axi: the device with an AXI4-Lite slave for the host and an AXI4 master for the storage.
//
// How it works: openkpu_top between two bridges. All bursts of the master are INCR with identifier 0, so
// that responses arrive in order; a burst does not cross 1 KB.
// Handshake: AXI4-Lite, AXI4; irq is a level. A write completes with the response of the storage, so a
// result is in the storage when the interrupt is asserted.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module openkpu_axi #(
    // array: pixels, output channels (the reduction is nine wide)
    parameter N_Y             = 4,
    parameter N_Z             = 4,
    // data width of the master: 32, 64 or 128
    parameter AHB_W           = 32,
    // 64-byte rows of the AI RAM
    parameter AI_RAM_ROWS     = 32768,
    // rows of the weight buffer, 9 * N_Z weights each
    parameter WBUF_ROWS       = 1024,
    // bits of a weight: 8 or 16
    parameter WEIGHT_BITS     = 16,
    // channels whose parameters fit: 1024 or 2048
    parameter PARAM_CHANS     = 2048,
    // layers decoded ahead: 4, 8 or 16
    parameter LOOK_AHEAD      = 4,
    // entries of the tile buffer
    parameter TILE_ROWS       = 32,
    // sums that share a post lane: 1, 2 or 4
    parameter POST_SHARE      = 1,
    // windows of a pooling task divided in parallel: 1, 2, 4, 8; 0: no pooling tasks
    parameter POOL_LANES      = 4,
    // products of float16 matrices in parallel: a power of two from 4 on; 0: no such tasks
    parameter FP16_LANES      = 0,
    // 1: weights may be kept in the AI RAM
    parameter KEEP_WEIGHTS    = 0,
    // 1: weights that arrive early may wait in the AI RAM
    parameter WEIGHT_AHEAD    = 0,
    // 1: narrow maps of 1x1 layers are computed as one line
    parameter FLAT_MAPS       = 0,
    // largest distance of the taps of a 3x3 window; 1: no dilated layers
    parameter DILATION        = 1,
    // 1: bytes 1 to 3 of 32-bit sums leave while the array continues
    parameter SUM_PLANES      = 0,
    // 1: sums may be output as 32 bits (products of integer matrices); 0: no such layers
    parameter OUT32           = 1,
    // 1: post lanes look zero points up in memories, which saves two multipliers per lane
    parameter POST_TABLES     = 0,
    // bits of the wide operand of a post lane's multiplier (the other one has 18): 18, or 17 for a DSP48
    parameter MUL_BITS        = 18,
    // bytes per cycle of the memory path: 16, 32, 64 or 128
    parameter PATH            = 64,
    // depths of the FIFOs, in bus words
    parameter PIX_FIFO_DEPTH  = 64,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32,
    // rounding of the activation: 0 nncase, 1 v01, 2 trunc
    parameter ROUNDING        = 0,
    // 1: operands of gated multiplications do not toggle
    parameter GATE            = 1,
    // 1: performance counters; 0: only the counter of finished inferences
    parameter PERF            = 1,
    // 1: the slave accepts privileged writes only
    parameter PRIVILEGED      = 0,
    // outstanding read bursts of the master, 1 to 8
    parameter OUTSTANDING     = 4
) (
    // clock and synchronous reset
    input wire clk,
    input wire rst,
    // AXI4-Lite slave, 32 bits
    input wire s_axil_awvalid,
    output wire s_axil_awready,
    input wire [31:0] s_axil_awaddr,
    input wire [2:0] s_axil_awprot,
    input wire s_axil_wvalid,
    output wire s_axil_wready,
    input wire [31:0] s_axil_wdata,
    input wire [3:0] s_axil_wstrb,
    output wire s_axil_bvalid,
    input wire s_axil_bready,
    output wire [1:0] s_axil_bresp,
    input wire s_axil_arvalid,
    output wire s_axil_arready,
    input wire [31:0] s_axil_araddr,
    input wire [2:0] s_axil_arprot,
    output wire s_axil_rvalid,
    input wire s_axil_rready,
    output wire [31:0] s_axil_rdata,
    output wire [1:0] s_axil_rresp,
    // AXI4 master
    output wire m_axi_awid,
    output wire [31:0] m_axi_awaddr,
    output wire [7:0] m_axi_awlen,
    output wire [2:0] m_axi_awsize,
    output wire [1:0] m_axi_awburst,
    output wire [3:0] m_axi_awcache,
    output wire [2:0] m_axi_awprot,
    output wire m_axi_awvalid,
    input wire m_axi_awready,
    output wire [AHB_W-1:0] m_axi_wdata,
    output wire [AHB_W/8-1:0] m_axi_wstrb,
    output wire m_axi_wlast,
    output wire m_axi_wvalid,
    input wire m_axi_wready,
    input wire m_axi_bid,
    input wire [1:0] m_axi_bresp,
    input wire m_axi_bvalid,
    output wire m_axi_bready,
    output wire m_axi_arid,
    output wire [31:0] m_axi_araddr,
    output wire [7:0] m_axi_arlen,
    output wire [2:0] m_axi_arsize,
    output wire [1:0] m_axi_arburst,
    output wire [3:0] m_axi_arcache,
    output wire [2:0] m_axi_arprot,
    output wire m_axi_arvalid,
    input wire m_axi_arready,
    input wire m_axi_rid,
    input wire [AHB_W-1:0] m_axi_rdata,
    input wire [1:0] m_axi_rresp,
    input wire m_axi_rlast,
    input wire m_axi_rvalid,
    output wire m_axi_rready,
    // interrupt, level
    output wire irq
);

  localparam [1:0] BURST_INCR = 2'b01;
  // normal memory, neither cached nor buffered: the storage itself responds to a write
  localparam [3:0] NORMAL = 4'b0010;
  localparam [2:0] PRIVILEGED_DATA = 3'b001;

  // AHB of the host
  wire [31:0] haddr, hwdata, hrdata;
  wire [3:0] hprot;
  wire [2:0] hsize;
  wire [1:0] htrans, hresp;
  wire hwrite, hready;
  // AHB of the storage
  wire [`AHEAD_BITS-1:0] ahead;
  wire [AHB_W-1:0] m_hwdata, m_hrdata;
  wire [31:0] m_haddr;
  wire [2:0] m_hsize, m_hburst;
  wire [3:0] m_hprot;
  wire [1:0] m_htrans, m_hresp;
  wire m_hwrite, m_hready, m_hbusreq, m_hlock;

  axil_to_ahb u_host_bridge (
      .clk(clk),
      .rst(rst),
      .s_axil_awvalid(s_axil_awvalid),
      .s_axil_awready(s_axil_awready),
      .s_axil_awaddr(s_axil_awaddr),
      .s_axil_awprot(s_axil_awprot),
      .s_axil_wvalid(s_axil_wvalid),
      .s_axil_wready(s_axil_wready),
      .s_axil_wdata(s_axil_wdata),
      .s_axil_wstrb(s_axil_wstrb),
      .s_axil_bvalid(s_axil_bvalid),
      .s_axil_bready(s_axil_bready),
      .s_axil_bresp(s_axil_bresp),
      .s_axil_arvalid(s_axil_arvalid),
      .s_axil_arready(s_axil_arready),
      .s_axil_araddr(s_axil_araddr),
      .s_axil_arprot(s_axil_arprot),
      .s_axil_rvalid(s_axil_rvalid),
      .s_axil_rready(s_axil_rready),
      .s_axil_rdata(s_axil_rdata),
      .s_axil_rresp(s_axil_rresp),
      .m_ahb_haddr(haddr),
      .m_ahb_htrans(htrans),
      .m_ahb_hwrite(hwrite),
      .m_ahb_hsize(hsize),
      .m_ahb_hprot(hprot),
      .m_ahb_hwdata(hwdata),
      .m_ahb_hready(hready),
      .m_ahb_hresp(hresp),
      .m_ahb_hrdata(hrdata)
  );

  openkpu_top #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .AHB_W(AHB_W),
      .AI_RAM_ROWS(AI_RAM_ROWS),
      .WBUF_ROWS(WBUF_ROWS),
      .WEIGHT_BITS(WEIGHT_BITS),
      .PARAM_CHANS(PARAM_CHANS),
      .LOOK_AHEAD(LOOK_AHEAD),
      .TILE_ROWS(TILE_ROWS),
      .POST_SHARE(POST_SHARE),
      .POOL_LANES(POOL_LANES),
      .FP16_LANES(FP16_LANES),
      .KEEP_WEIGHTS(KEEP_WEIGHTS),
      .WEIGHT_AHEAD(WEIGHT_AHEAD),
      .FLAT_MAPS(FLAT_MAPS),
      .DILATION(DILATION),
      .SUM_PLANES(SUM_PLANES),
      .OUT32(OUT32),
      .POST_TABLES(POST_TABLES),
      .MUL_BITS(MUL_BITS),
      .PATH(PATH),
      .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH),
      .ROUNDING(ROUNDING),
      .GATE(GATE),
      .PERF(PERF),
      .PRIVILEGED(PRIVILEGED)
  ) u_openkpu (
      .clk(clk),
      .rst(rst),
      .s_ahb_hsel(1'b1),
      .s_ahb_haddr(haddr),
      .s_ahb_htrans(htrans),
      .s_ahb_hwrite(hwrite),
      .s_ahb_hsize(hsize),
      .s_ahb_hburst(3'd0),
      .s_ahb_hprot(hprot),
      .s_ahb_hwdata(hwdata),
      .s_ahb_hready_in(hready),
      .s_ahb_hready_out(hready),
      .s_ahb_hresp(hresp),
      .s_ahb_hrdata(hrdata),
      .m_ahb_hbusreq(m_hbusreq),
      .m_ahb_hlock(m_hlock),
      .m_ahb_hgrant(1'b1),
      .m_ahb_haddr(m_haddr),
      .m_ahb_htrans(m_htrans),
      .m_ahb_hwrite(m_hwrite),
      .m_ahb_hsize(m_hsize),
      .m_ahb_hburst(m_hburst),
      .m_ahb_hprot(m_hprot),
      .m_ahb_hwdata(m_hwdata),
      .m_ahb_hready(m_hready),
      .m_ahb_hresp(m_hresp),
      .m_ahb_hrdata(m_hrdata),
      .m_ahb_ahead(ahead),
      .irq(irq)
  );

  ahb_to_axi #(
      .AHB_W(AHB_W),
      .OUTSTANDING(OUTSTANDING)
  ) u_storage_bridge (
      .clk(clk),
      .rst(rst),
      .s_ahb_haddr(m_haddr),
      .s_ahb_htrans(m_htrans),
      .s_ahb_hwrite(m_hwrite),
      .s_ahb_hsize(m_hsize),
      .s_ahb_hwdata(m_hwdata),
      .s_ahb_hready(m_hready),
      .s_ahb_hresp(m_hresp),
      .s_ahb_hrdata(m_hrdata),
      .s_ahb_ahead(ahead),
      .m_axi_awaddr(m_axi_awaddr),
      .m_axi_awlen(m_axi_awlen),
      .m_axi_awsize(m_axi_awsize),
      .m_axi_awvalid(m_axi_awvalid),
      .m_axi_awready(m_axi_awready),
      .m_axi_wdata(m_axi_wdata),
      .m_axi_wstrb(m_axi_wstrb),
      .m_axi_wlast(m_axi_wlast),
      .m_axi_wvalid(m_axi_wvalid),
      .m_axi_wready(m_axi_wready),
      .m_axi_bresp(m_axi_bresp),
      .m_axi_bvalid(m_axi_bvalid),
      .m_axi_bready(m_axi_bready),
      .m_axi_araddr(m_axi_araddr),
      .m_axi_arlen(m_axi_arlen),
      .m_axi_arsize(m_axi_arsize),
      .m_axi_arvalid(m_axi_arvalid),
      .m_axi_arready(m_axi_arready),
      .m_axi_rdata(m_axi_rdata),
      .m_axi_rresp(m_axi_rresp),
      .m_axi_rlast(m_axi_rlast),
      .m_axi_rvalid(m_axi_rvalid),
      .m_axi_rready(m_axi_rready)
  );

  assign m_axi_awid = 1'b0;
  assign m_axi_awburst = BURST_INCR;
  assign m_axi_awcache = NORMAL;
  assign m_axi_awprot = PRIVILEGED_DATA;
  assign m_axi_arid = 1'b0;
  assign m_axi_arburst = BURST_INCR;
  assign m_axi_arcache = NORMAL;
  assign m_axi_arprot = PRIVILEGED_DATA;

  // one identifier; the bridge always grants the bus, and counts beats itself
  wire unused = &{1'b0, m_axi_bid, m_axi_rid, m_hbusreq, m_hlock, m_hburst, m_hprot};

endmodule

`resetall
