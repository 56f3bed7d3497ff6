// SPDX-License-Identifier: Apache-2.0
//
// The layers as they end, for counters and the functional coverage.
`resetall
`timescale 1ns/1ps
`default_nettype none
`ifdef AXI
  `define DUT u_axi.u_openkpu
`elsif APB
  `define DUT u_apb.u_openkpu
`else
  `define DUT dut
`endif
`include "openkpu_fields.vh"

module tb_layers #(
  // as in openkpu_top
  parameter WEIGHT_AHEAD = 0
) (
  // clock and reset of the device
  input  wire                clk,
  input  wire                rst,
  // a layer ends; the device is busy, and its mode
  output wire                layer_done,
  output wire                device_busy,
  output wire [         1:0] cnn_mode,
  // {from a task list, descriptor} of the layer that ended last
  output reg  [`DESC_BITS:0] layer_ran,
  // what weights that wait in rows of the AI RAM did from the end of the layer before that on: {the rows
  // were full, words came around their end, there were any}
  output reg  [         2:0] ring_ran
);
  assign layer_done  = tb_top.`DUT.u_control.layer_done & ~rst;  // at power-up it may be anything
  assign device_busy = tb_top.`DUT.u_control.busy;
  assign cnn_mode    = tb_top.`DUT.u_host.u_regs.u_ai.u_inference.mode;

  wire [2:0] now;
  generate
    if (WEIGHT_AHEAD != 0) begin : g_ring
      wire over = tb_top.`DUT.u_cache.g_ahead.u_ring.write_over;
      wire last = tb_top.`DUT.u_cache.g_ahead.u_ring.put == tb_top.`DUT.u_cache.g_ahead.u_ring.last_word;
      wire full = tb_top.`DUT.u_cache.g_ahead.u_ring.store && tb_top.`DUT.u_cache.g_ahead.u_ring.full;
      assign now = {full === 1'b1, (over && last) === 1'b1, over === 1'b1};
    end else begin : g_no_ring
      assign now = 3'd0;
    end
  endgenerate

  reg [2:0] ways;
  initial {ways, ring_ran, layer_ran} = {(`DESC_BITS + 7) {1'b0}};
  always @(posedge clk) begin
    layer_ran <= (layer_done === 1'b1) ? {tb_top.`DUT.u_control.list_mode, tb_top.`DUT.desc} : layer_ran;
    ring_ran  <= (layer_done === 1'b1) ? ways | now : ring_ran;
    ways      <= (layer_done === 1'b1) ? 3'd0 : ways | now;
  end
endmodule

`resetall
