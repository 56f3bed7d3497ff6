// SPDX-License-Identifier: Apache-2.0
//
// page_bench: what page.v shows: the device behind the fabric and storage of the project's own bench, so that its
// cycles are those of `make sim`, and the probe.
//
// How it works: the names of instances and nets that tb_probe.v reads are those of tb/openkpu_tb/device/tb_top.v.
`resetall
`timescale 1ns/1ps
`default_nettype none

module page_bench #(
  // as in page.v
  parameter N_Y = 2,
  parameter N_Z = 2,
  parameter AHB_W = 32,
  parameter AI_RAM_ROWS = 32768,
  parameter WBUF_ROWS = 1024,
  parameter WEIGHT_BITS = 16,
  parameter PARAM_CHANS = 1024,
  parameter LOOK_AHEAD = 4,
  parameter TILE_ROWS = 128,
  parameter POST_SHARE = 1,
  parameter POOL_LANES = 4,
  parameter FP16_LANES = 0,
  parameter KEEP_WEIGHTS = 0,
  parameter WEIGHT_AHEAD = 0,
  parameter FLAT_MAPS = 0,
  parameter DILATION = 1,
  parameter SUM_PLANES = 0,
  parameter PATH = 16,
  parameter PIX_FIFO_DEPTH = 64,
  parameter WGT_FIFO_DEPTH = 64,
  parameter BIAS_FIFO_DEPTH = 32,
  parameter GATE = 1,
  parameter STORE_DEPTH = 65536,
  parameter ROWS = 262144,
  parameter OPERANDS = 8 + WEIGHT_BITS
) (
  // as in page.v
  input  wire        clk,
  input  wire        rst,
  input  wire        hsel,
  input  wire [31:0] haddr,
  input  wire        hwrite,
  input  wire [31:0] hwdata,
  output wire        hready,
  output wire [1:0]  hresp,
  output wire [31:0] hrdata,
  output wire        irq,
  input  wire [4:0]  waits,
  input  wire        trace_on,
  output wire [31:0] trace_count,
  output wire        layer_done,
  output wire [63:0] toggles,
  output wire [63:0] idle_toggles,
  output wire [63:0] products,
  // verilator tracing_off
  output wire [9*N_Y*N_Z-1:0]          enables,
  output wire [9*N_Y*N_Z*OPERANDS-1:0] operands
  // verilator tracing_on
);
  wire        m_hbusreq, m_hlock, m_hgrant, m_hwrite, m_hready;
  wire [31:0] m_haddr;
  wire [1:0]  m_htrans, m_hresp;
  wire [2:0]  m_hsize, m_hburst;
  wire [3:0]  m_hprot;
  wire [AHB_W-1:0] m_hwdata, m_hrdata;

  openkpu_top #(
    .N_Y(N_Y), .N_Z(N_Z), .AHB_W(AHB_W), .AI_RAM_ROWS(AI_RAM_ROWS), .WBUF_ROWS(WBUF_ROWS),
    .WEIGHT_BITS(WEIGHT_BITS), .PARAM_CHANS(PARAM_CHANS), .LOOK_AHEAD(LOOK_AHEAD), .TILE_ROWS(TILE_ROWS),
    .POST_SHARE(POST_SHARE), .POOL_LANES(POOL_LANES), .FP16_LANES(FP16_LANES), .KEEP_WEIGHTS(KEEP_WEIGHTS),
    .WEIGHT_AHEAD(WEIGHT_AHEAD), .FLAT_MAPS(FLAT_MAPS), .SUM_PLANES(SUM_PLANES), .DILATION(DILATION), .PATH(PATH),
    .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH), .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH),
    .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH), .GATE(GATE)
  ) dut (
    .clk(clk), .rst(rst), .s_ahb_hsel(hsel), .s_ahb_haddr(haddr), .s_ahb_htrans({hsel, 1'b0}), .s_ahb_hwrite(hwrite),
    .s_ahb_hsize(3'd2), .s_ahb_hburst(3'd0), .s_ahb_hprot(4'd3), .s_ahb_hwdata(hwdata), .s_ahb_hready_in(hready),
    .s_ahb_hready_out(hready), .s_ahb_hresp(hresp), .s_ahb_hrdata(hrdata), .m_ahb_hbusreq(m_hbusreq),
    .m_ahb_hlock(m_hlock), .m_ahb_hgrant(m_hgrant), .m_ahb_haddr(m_haddr), .m_ahb_htrans(m_htrans),
    .m_ahb_hwrite(m_hwrite), .m_ahb_hsize(m_hsize), .m_ahb_hburst(m_hburst), .m_ahb_hprot(m_hprot),
    .m_ahb_hwdata(m_hwdata), .m_ahb_hready(m_hready), .m_ahb_hresp(m_hresp), .m_ahb_hrdata(m_hrdata),
    .m_ahb_ahead(), .irq(irq)
  );

  ahb_fabric #(.AHB_W(AHB_W), .DEPTH(STORE_DEPTH), .CHECK(0)) u_fabric (
    .clk(clk), .rst(rst), .cfg_seed(32'd1), .cfg_loss_prob(8'd0), .cfg_rival_prob(8'd0), .cfg_rd_wait(waits),
    .cfg_seq_wait(5'd0), .cfg_wr_wait(waits), .cfg_wait_prob(8'd0), .cfg_retry_prob(8'd0), .cfg_split_prob(8'd0),
    .cfg_err_lo(32'd0), .cfg_err_hi(32'd0), .cfg_err1_lo(32'd0), .cfg_err1_hi(32'd0), .cfg_err2_lo(32'd0),
    .cfg_err2_hi(32'd0), .cfg_top(1'b0), .cfg_dead(3'd0), .hbusreq(m_hbusreq), .hlock(m_hlock), .hgrant(m_hgrant),
    .haddr(m_haddr), .htrans(m_htrans), .hwrite(m_hwrite), .hsize(m_hsize), .hburst(m_hburst), .hprot(m_hprot),
    .hwdata(m_hwdata), .hready(m_hready), .hresp(m_hresp), .hrdata(m_hrdata), .rules(), .errors(), .rd_beats(),
    .wr_beats(), .refusals(), .error_answers(), .bursts(), .losses(), .wr_lo(), .wr_hi()
  );

  tb_probe #(.N_Y(N_Y), .N_Z(N_Z), .WEIGHT_BITS(WEIGHT_BITS), .DEPTH(ROWS)) u_probe (
    .clk(clk), .on(trace_on), .count(trace_count), .toggles(toggles), .idle_toggles(idle_toggles),
    .products(products), .spent()
  );

  assign layer_done = dut.u_control.layer_done & ~rst;
  assign enables = u_probe.enables;
  assign operands = u_probe.operands;
endmodule

`resetall
