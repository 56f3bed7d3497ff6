// SPDX-License-Identifier: Apache-2.0
//
// page: the device, its storage and the bench's probe, as a class of C++ for the page of `make page`.
//
// How it works: the bench inside is called tb_top, because the probe (tb/openkpu_tb/device/tb_probe.v) finds what it
// looks at below that name.
// Handshake: AMBA 2.0 AHB for the host; everything else is sampled or set between two edges of clk.
`resetall
`timescale 1ns/1ps
`default_nettype none

module page #(
  // as in openkpu_top
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
  // 32-bit words of storage; rows of the probe, cycles; bits of the operands of a multiplier
  parameter STORE_DEPTH = 65536,
  parameter ROWS = 262144,
  parameter OPERANDS = 8 + WEIGHT_BITS
) (
  // clock and synchronous reset
  input  wire        clk,
  input  wire        rst,
  // the host
  input  wire        hsel,
  input  wire [31:0] haddr,
  input  wire        hwrite,
  input  wire [31:0] hwdata,
  output wire        hready,
  output wire [1:0]  hresp,
  output wire [31:0] hrdata,
  output wire        irq,
  // wait states of the storage: the first beat of a burst that reads, and every beat that writes
  input  wire [4:0]  waits,
  // a row of the probe is recorded; rows so far; a layer ends
  input  wire        trace_on,
  output wire [31:0] trace_count,
  output wire        layer_done,
  // bits of operands that toggled; of these without an enabled multiplication; enabled multiplications
  output wire [63:0] toggles,
  output wire [63:0] idle_toggles,
  output wire [63:0] products,
  // verilator tracing_off
  // the multipliers: enabled, and {weight, pixel} of each
  output wire [9*N_Y*N_Z-1:0]          enables,
  output wire [9*N_Y*N_Z*OPERANDS-1:0] operands
  // verilator tracing_on
);
  page_bench #(
    .N_Y(N_Y), .N_Z(N_Z), .AHB_W(AHB_W), .AI_RAM_ROWS(AI_RAM_ROWS), .WBUF_ROWS(WBUF_ROWS),
    .WEIGHT_BITS(WEIGHT_BITS), .PARAM_CHANS(PARAM_CHANS), .LOOK_AHEAD(LOOK_AHEAD), .TILE_ROWS(TILE_ROWS),
    .POST_SHARE(POST_SHARE), .POOL_LANES(POOL_LANES), .FP16_LANES(FP16_LANES), .KEEP_WEIGHTS(KEEP_WEIGHTS),
    .WEIGHT_AHEAD(WEIGHT_AHEAD), .FLAT_MAPS(FLAT_MAPS), .SUM_PLANES(SUM_PLANES), .DILATION(DILATION), .PATH(PATH),
    .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH), .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH),
    .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH), .GATE(GATE), .STORE_DEPTH(STORE_DEPTH), .ROWS(ROWS), .OPERANDS(OPERANDS)
  ) tb_top (
    .clk(clk), .rst(rst), .hsel(hsel), .haddr(haddr), .hwrite(hwrite), .hwdata(hwdata), .hready(hready),
    .hresp(hresp), .hrdata(hrdata), .irq(irq), .waits(waits), .trace_on(trace_on), .trace_count(trace_count),
    .layer_done(layer_done), .toggles(toggles), .idle_toggles(idle_toggles), .products(products),
    .enables(enables), .operands(operands)
  );
endmodule

`resetall
