// SPDX-License-Identifier: Apache-2.0
//
// Looks into the device: a row of signals for every cycle of a traced window, the toggles of the
// multipliers' operands, and where the cycles went by the states of the blocks. Only in builds with PROBE; everything is read by name, nothing is driven.
//
// A row, from bit 0 on: what tb/openkpu_tb/device/trace.py lists, in that order.
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

module tb_probe #(
  // array of the device, width of a weight, rows of the trace
  parameter N_Y = 2,
  parameter N_Z = 2,
  parameter WEIGHT_BITS = 16,
  parameter DEPTH = 65536
) (
  // clock, record rows
  input  wire        clk,
  input  wire        on,
  // rows recorded; operand bits that toggled: all, without an enabled multiplication; enabled ones
  output reg  [31:0] count,
  output reg  [63:0] toggles,
  output reg  [63:0] idle_toggles,
  output reg  [63:0] products,
  // cycles since the counters were cleared: busy, issues, waits for weights, input, output, bus, control
  output wire [7*32-1:0] spent
);
  localparam W = 244;
  reg [W-1:0] rec [0:DEPTH-1];

  wire beat_ok = tb_top.u_fabric.beat && tb_top.m_hresp == 2'b00;
  wire [15:0] read_row = ({16'd0, tb_top.`DUT.u_cache.raddr} << $clog2(tb_top.PATH)) >> 6;
  wire [15:0] write_row = ({16'd0, tb_top.`DUT.u_cache.waddr} << $clog2(tb_top.PATH)) >> 6;
  wire [W-1:0] row = {
    write_row, read_row, tb_top.`DUT.u_host.u_regs.u_ai.u_inference.npix, tb_top.`DUT.u_host.u_regs.u_ai.u_inference.pix, tb_top.u_fabric.dp_addr, tb_top.m_haddr,
    tb_top.`DUT.u_host.u_regs.u_ai.u_inference.inf_left[15:0], 6'd0, tb_top.`DUT.u_host.u_regs.u_ai.u_inference.mode,
    tb_top.`DUT.u_control.u_state.layer[7:0],
    12'd0, tb_top.`DUT.u_cache.unload_busy, tb_top.`DUT.u_cache.load_busy, tb_top.`DUT.u_control.keep, tb_top.`DUT.u_control.reuse,
    tb_top.`DUT.u_host.u_regs.u_ai.u_inference.npix_taken, tb_top.`DUT.u_control.fc_reached, tb_top.`DUT.u_storage.u_dmac.rd_full[3],
    tb_top.`DUT.u_storage.u_dmac.rd_full[1], tb_top.`DUT.u_storage.u_dmac.rd_full[2], tb_top.`DUT.u_storage.u_dmac.weight_bias_full,
    tb_top.`DUT.u_control.u_dispatch.boundary, tb_top.m_htrans[1] & tb_top.m_hgrant, tb_top.u_fabric.dp_dut,
    tb_top.u_fabric.dp_write, beat_ok, tb_top.`DUT.u_storage.u_dmac.push,
    tb_top.`DUT.pixel_valid & tb_top.`DUT.pixel_ready, tb_top.`DUT.weight_valid & tb_top.`DUT.weight_ready,
    tb_top.`DUT.bias_valid & tb_top.`DUT.bias_ready, tb_top.`DUT.list_valid & tb_top.`DUT.list_ready,
    tb_top.`DUT.window_ack, tb_top.`DUT.u_cache.unload_gnt, tb_top.`DUT.u_cache.load_gnt, tb_top.`DUT.writeback_gnt,
    tb_top.`DUT.fill_gnt, tb_top.`DUT.u_core.u_seq.issued, tb_top.irq, tb_top.`DUT.u_control.inf_next,
    tb_top.`DUT.u_control.inf_done, tb_top.`DUT.u_control.layer_done, tb_top.`DUT.run_start,
    tb_top.`DUT.load_start, tb_top.`DUT.u_cache.u_mover.read_start, tb_top.`DUT.u_host.u_regs.u_ai.start, tb_top.`DUT.u_control.busy,
    tb_top.`DUT.flush, tb_top.rst | tb_top.`DUT.flush
  };

  initial count = 32'd0;
  always @(posedge clk) begin
    if (on && count < DEPTH) begin
      rec[count] <= row;
      count <= count + 32'd1;
    end else if (!on) count <= 32'd0;
  end

  // ---- where the cycles went: what the blocks themselves know, in the order of docs/performance.md 4
  wire nest = tb_top.`DUT.u_core.u_seq.u_credits.running;
  wire begins = tb_top.`DUT.u_core.u_seq.u_credits.fresh;
  wire asks = tb_top.`DUT.u_core.u_seq.u_credits.w_ask;
  wire leaves = tb_top.`DUT.u_core.u_seq.u_credits.leaves;
  wire no_tile = begins && !tb_top.`DUT.u_core.u_seq.u_credits.tile_ok;
  wire no_weight = asks && (!tb_top.`DUT.u_core.u_seq.u_credits.wrow_ok ||
    (leaves && !tb_top.`DUT.u_core.u_seq.u_credits.prow_ok));
  wire no_room = (begins && !tb_top.`DUT.u_core.u_seq.u_credits.out_ok) ||
    (leaves && tb_top.`DUT.u_core.u_seq.u_credits.lanes_busy);
  wire [3:0] at_work = tb_top.`DUT.u_control.u_runner.state;
  wire runs = at_work == 4'd3;
  wire on_way = at_work == 4'd1 || at_work == 4'd4 || at_work == 4'd5;
  wire reads = tb_top.`DUT.u_storage.u_dmac.mst_reading ||
    tb_top.`DUT.u_storage.u_dmac.rd_want != 4'd0 ||
    (tb_top.`DUT.u_storage.u_dmac.chosen && !tb_top.`DUT.u_storage.u_dmac.cmd[`CMD_WRITE]);
  reg [31:0] busy_count, issue_count, count_weights, count_input, count_output, count_bus, count_control;
  assign spent = {count_control, count_bus, count_output, count_input, count_weights, issue_count, busy_count};
  always @(posedge clk)
    if (tb_top.rst || tb_top.`DUT.host[`HOST_START] || tb_top.`DUT.host[`HOST_SOFT_RESET]) begin
      {busy_count, issue_count} <= 64'd0;
      {count_weights, count_input, count_output, count_bus, count_control} <= 160'd0;
    end else if (tb_top.`DUT.u_control.busy) begin
      busy_count <= busy_count + 32'd1;
      if (tb_top.`DUT.u_core.u_seq.issue_valid) issue_count <= issue_count + 32'd1;
      else if (nest && no_tile) count_input <= count_input + 32'd1;
      else if (nest && no_weight && reads) count_bus <= count_bus + 32'd1;
      else if (nest && no_weight) count_weights <= count_weights + 32'd1;
      else if ((nest && no_room) || runs) count_output <= count_output + 32'd1;
      else if (on_way || reads) count_bus <= count_bus + 32'd1;
      else count_control <= count_control + 32'd1;
    end

  // ---- operands of every multiplier
  localparam N_X = 9;
  localparam UNITS = N_X * N_Y * N_Z;
  localparam OPW = 8 + WEIGHT_BITS;
  wire [UNITS*OPW-1:0] operands;
  wire [UNITS-1:0] enables;
  genvar t, y, z;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_z
      for (y = 0; y < N_Y; y = y + 1) begin : g_y
        for (t = 0; t < N_X; t = t + 1) begin : g_t
          localparam U = (z * N_Y + y) * N_X + t;
          assign operands[U*OPW +: OPW] = {
            tb_top.`DUT.u_core.u_mac.u_array.g_kernel[z].g_sub[y].g_unit[t].u_unit.weight_q,
            tb_top.`DUT.u_core.u_mac.u_array.g_kernel[z].g_sub[y].g_unit[t].u_unit.pixel_q[7:0]};
          assign enables[U] =
            tb_top.`DUT.u_core.u_mac.u_array.g_kernel[z].g_sub[y].g_unit[t].u_unit.enable_q;
        end
      end
    end
  endgenerate

  reg  [UNITS*OPW-1:0] prev_ops;
  reg  [OPW-1:0] change;
  reg  [31:0] sum, idle_sum, on_sum;
  integer u, b, bits;
  always @* begin
    sum = 32'd0;
    idle_sum = 32'd0;
    on_sum = 32'd0;
    for (u = 0; u < UNITS; u = u + 1) begin
      change = operands[u*OPW +: OPW] ^ prev_ops[u*OPW +: OPW];
      bits = 0;
      if (change !== {OPW{1'b0}})
        for (b = 0; b < OPW; b = b + 1) bits = bits + (change[b] === 1'b1 ? 1 : 0);
      sum = sum + bits;
      idle_sum = idle_sum + (enables[u] === 1'b1 ? 0 : bits);
      on_sum = on_sum + (enables[u] === 1'b1 ? 1 : 0);
    end
  end
  initial begin
    toggles = 64'd0;
    idle_toggles = 64'd0;
    products = 64'd0;
  end
  always @(posedge clk) begin
    prev_ops <= operands;
    toggles <= on ? toggles + {32'd0, sum} : 64'd0;
    idle_toggles <= on ? idle_toggles + {32'd0, idle_sum} : 64'd0;
    products <= on ? products + {32'd0, on_sum} : 64'd0;
  end
endmodule

`resetall
