// SPDX-License-Identifier: Apache-2.0
//
// openkpu_apb: the device with an APB3 slave for the host and an AHB master for the storage.
//
// How it works: openkpu_top behind a bridge; the AHB master is that of openkpu_top.
// Handshake: APB3, AMBA 2.0 AHB; irq is a level.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module openkpu_apb #(
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
    parameter PRIVILEGED      = 0
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // APB3 slave
    input  wire                   s_apb_psel,
    input  wire                   s_apb_penable,
    input  wire [           31:0] s_apb_paddr,
    input  wire                   s_apb_pwrite,
    input  wire [           31:0] s_apb_pwdata,
    output wire                   s_apb_pready,
    output wire [           31:0] s_apb_prdata,
    output wire                   s_apb_pslverr,
    // AHB master
    output wire                   m_ahb_hbusreq,
    output wire                   m_ahb_hlock,
    input  wire                   m_ahb_hgrant,
    output wire [           31:0] m_ahb_haddr,
    output wire [            1:0] m_ahb_htrans,
    output wire                   m_ahb_hwrite,
    output wire [            2:0] m_ahb_hsize,
    output wire [            2:0] m_ahb_hburst,
    output wire [            3:0] m_ahb_hprot,
    output wire [      AHB_W-1:0] m_ahb_hwdata,
    input  wire                   m_ahb_hready,
    input  wire [            1:0] m_ahb_hresp,
    input  wire [      AHB_W-1:0] m_ahb_hrdata,
    // burst commands in advance, for a bridge to another bus
    output wire [`AHEAD_BITS-1:0] m_ahb_ahead,
    // interrupt, level
    output wire                   irq
);

  // AHB of the host
  wire [31:0] haddr, hwdata, hrdata;
  wire [3:0] hprot;
  wire [2:0] hsize;
  wire [1:0] htrans, hresp;
  wire hwrite, hready;

  apb_to_ahb u_host_bridge (
      .s_apb_psel(s_apb_psel),
      .s_apb_penable(s_apb_penable),
      .s_apb_paddr(s_apb_paddr),
      .s_apb_pwrite(s_apb_pwrite),
      .s_apb_pwdata(s_apb_pwdata),
      .s_apb_pready(s_apb_pready),
      .s_apb_prdata(s_apb_prdata),
      .s_apb_pslverr(s_apb_pslverr),
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
      .m_ahb_hbusreq(m_ahb_hbusreq),
      .m_ahb_hlock(m_ahb_hlock),
      .m_ahb_hgrant(m_ahb_hgrant),
      .m_ahb_haddr(m_ahb_haddr),
      .m_ahb_htrans(m_ahb_htrans),
      .m_ahb_hwrite(m_ahb_hwrite),
      .m_ahb_hsize(m_ahb_hsize),
      .m_ahb_hburst(m_ahb_hburst),
      .m_ahb_hprot(m_ahb_hprot),
      .m_ahb_hwdata(m_ahb_hwdata),
      .m_ahb_hready(m_ahb_hready),
      .m_ahb_hresp(m_ahb_hresp),
      .m_ahb_hrdata(m_ahb_hrdata),
      .m_ahb_ahead(m_ahb_ahead),
      .irq(irq)
  );

endmodule

`resetall
