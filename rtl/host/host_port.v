// SPDX-License-Identifier: Apache-2.0
//
// host_port: the host interface: AHB slave, registers and performance counters.
//
// How it works: the slave turns bus accesses into register accesses and accesses to the AI RAM window.
// Registers hold the configuration and start work; counters attribute each cycle to its cause. Without them
// (PERF = 0) only finished inferences are counted, since the host tracks a stream by their number.
// Handshake: AHB as in ahb_slave; arg and result are valid/ready; window_req is held until window_ack;
// everything else is levels and pulses.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module host_port #(
    // pixels and output channels of the array, data width of the bus to the storage: for AI_CONFIG
    parameter N_Y          = 4,
    parameter N_Z          = 4,
    parameter AHB_W        = 32,
    // 64-byte rows of the AI RAM; 1: weights may wait there
    parameter AI_RAM_ROWS  = 32768,
    parameter WEIGHT_AHEAD = 0,
    // 1: performance counters; 0: only the counter of finished inferences, 32 bits wide
    parameter PERF         = 1,
    // 1: only privileged writes are accepted
    parameter PRIVILEGED   = 0
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // AHB slave, 32 bits
    input  wire                     s_ahb_hsel,
    input  wire [             31:0] s_ahb_haddr,
    input  wire [              1:0] s_ahb_htrans,
    input  wire                     s_ahb_hwrite,
    input  wire [              2:0] s_ahb_hsize,
    input  wire [              2:0] s_ahb_hburst,
    input  wire [              3:0] s_ahb_hprot,
    input  wire [             31:0] s_ahb_hwdata,
    input  wire                     s_ahb_hready_in,
    output wire                     s_ahb_hready_out,
    output wire [              1:0] s_ahb_hresp,
    output wire [             31:0] s_ahb_hrdata,
    // interrupt, level
    output wire                     irq,
    // AI RAM window
    output wire                     window_req,
    output wire [ `WINDOW_BITS-1:0] window,
    input  wire                     window_ack,
    input  wire [             31:0] window_rdata,
    // layer words to the controller, their weight width; arg_flush drops the words of an unfinished layer
    output wire                     arg_valid,
    input  wire                     arg_ready,
    output wire [             63:0] arg_data,
    output wire                     arg_eight_bit,
    output wire                     arg_flush,
    // result words from the AI RAM
    input  wire                     result_valid,
    output wire                     result_ready,
    input  wire [             63:0] result_data,
    // controller: configuration, commands, state, events, error; windows for the DMAC
    output wire [    `CFG_BITS-1:0] cfg,
    output wire [   `HOST_BITS-1:0] host,
    output wire [  `GUARD_BITS-1:0] guard,
    input  wire [ `STATUS_BITS-1:0] status,
    input  wire [  `EVENT_BITS-1:0] events,
    input  wire [    `ERR_BITS-1:0] err,
    // activity of the storage port and the array
    input  wire [`TRAFFIC_BITS-1:0] traffic,
    input  wire [   `WORK_BITS-1:0] work
);

  wire reg_wr, reg_rd, reg_err;
  wire [9:0] reg_next;
  wire reg_command;
  wire [31:0] reg_wdata, reg_rdata;
  wire [ 3:0] perf_index;
  wire [63:0] perf_value;
  wire        perf_carry;

  ahb_slave #(
      .AI_RAM_ROWS(AI_RAM_ROWS),
      .PRIVILEGED (PRIVILEGED)
  ) u_slave (
      .clk(clk),
      .rst(rst),
      .s_ahb_hsel(s_ahb_hsel),
      .s_ahb_haddr(s_ahb_haddr),
      .s_ahb_htrans(s_ahb_htrans),
      .s_ahb_hwrite(s_ahb_hwrite),
      .s_ahb_hsize(s_ahb_hsize),
      .s_ahb_hburst(s_ahb_hburst),
      .s_ahb_hprot(s_ahb_hprot),
      .s_ahb_hwdata(s_ahb_hwdata),
      .s_ahb_hready_in(s_ahb_hready_in),
      .s_ahb_hready_out(s_ahb_hready_out),
      .s_ahb_hresp(s_ahb_hresp),
      .s_ahb_hrdata(s_ahb_hrdata),
      .reg_wr(reg_wr),
      .reg_rd(reg_rd),
      .reg_next(reg_next),
      .reg_command(reg_command),
      .reg_wdata(reg_wdata),
      .reg_rdata(reg_rdata),
      .reg_err(reg_err),
      .window_req(window_req),
      .window_we(window[`WINDOW_WE]),
      .window_addr(window[`WINDOW_ADDR]),
      .window_wstrb(window[`WINDOW_WSTRB]),
      .window_wdata(window[`WINDOW_WDATA]),
      .window_ack(window_ack),
      .window_rdata(window_rdata)
  );

  reg_block #(
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .AHB_W     (AHB_W),
      .SPARE_MOST((WEIGHT_AHEAD != 0) ? AI_RAM_ROWS : 0)
  ) u_regs (
      .clk(clk),
      .rst(rst),
      .reg_wr(reg_wr),
      .reg_rd(reg_rd),
      .reg_next(reg_next),
      .reg_command(reg_command),
      .reg_wdata(reg_wdata),
      .reg_rdata(reg_rdata),
      .reg_err(reg_err),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_eight_bit(arg_eight_bit),
      .arg_flush(arg_flush),
      .result_valid(result_valid),
      .result_ready(result_ready),
      .result_data(result_data),
      .cfg(cfg),
      .host(host),
      .guard(guard),
      .state(status),
      .events(events),
      .err(err),
      .weight_bias_full(traffic[`TRAFFIC_WEIGHT_BIAS_FULL]),
      .perf_index(perf_index),
      .perf_value(perf_value),
      .perf_carry(perf_carry),
      .irq(irq)
  );

  // a layer drains when nothing waits for its operands
  wire wait_tile = work[`WORK_WAIT_TILE];
  wire wait_weight = work[`WORK_WAIT_WEIGHT];
  wire draining = status[`STATUS_WAITING_DRAIN] && !wait_tile && !wait_weight;
  wire reading = traffic[`TRAFFIC_READING];
  wire clear = host[`HOST_START] || host[`HOST_SOFT_RESET];

  generate
    if (PERF != 0) begin : g_perf
      perf #(
          .LANES(N_Y * N_Z)
      ) u_perf (
          .clk(clk),
          .rst(rst),
          .clear(clear),
          .busy(status[`STATUS_BUSY]),
          .issued(work[`WORK_ISSUED]),
          .wait_input(wait_tile),
          .wait_weight(wait_weight),
          .wait_output(work[`WORK_WAIT_OUTPUT] || draining),
          .wait_bus(status[`STATUS_WAITING_BUS] || (reading && !status[`STATUS_WAITING_DRAIN])),
          .bus_reading(reading),
          .macs_issued(work[`WORK_MACS_ISSUED]),
          .macs_gated(work[`WORK_MACS_GATED]),
          .layer_done(events[`EVENT_LAYER_DONE]),
          .inf_done(events[`EVENT_INF_DONE]),
          .inf_kept(events[`EVENT_INF_KEPT]),
          .read_beat(traffic[`TRAFFIC_READ_BEAT]),
          .write_beat(traffic[`TRAFFIC_WRITE_BEAT]),
          .index(perf_index),
          .value(perf_value),
          .carry(perf_carry)
      );
    end else begin : g_none
      // the host tracks a stream by the number of finished inferences
      localparam [9:0] PLACE = `REG_PERF_INFERENCES - `REG_PERF_TOTAL;
      reg [31:0] inferences;
      always @(posedge clk) begin
        if (rst || clear) inferences <= 32'd0;
        else inferences <= events[`EVENT_INF_DONE] ? inferences + 32'd1 : inferences;
      end
      assign perf_value = (perf_index == PLACE[4:1] && !clear) ? {32'd0, inferences} : 64'd0;
      assign perf_carry = 1'b0;
      wire unused_perf = &{1'b0, draining, reading};
    end
  endgenerate

  wire unused = &{1'b0, traffic, work};

endmodule

`resetall
