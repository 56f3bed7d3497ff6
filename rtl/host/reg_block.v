// SPDX-License-Identifier: Apache-2.0
//
// reg_block: all registers of the device behind the AHB slave.
//
// Three parts, each in a module of its own: the KPU registers, the AI_* registers, the counters.
// rtl/host/openkpu.rdl describes every field and is the source of docs/registers.md.
// How it works: the address of an access arrives one cycle before it. Each part registers the decoded
// address, one bit for each of its words, which enables writes and selects the word to read.
// Handshake: reg_wr and reg_rd are one-cycle strobes with reg_wdata; reg_next carries their word address
// one cycle earlier; reg_rdata and reg_err are valid in the same cycle. An address without a register
// asserts reg_err and has no effect; writes to read-only registers and bits are ignored.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module reg_block #(
    // shape of the MAC array, data width of the bus to the storage: for AI_CONFIG
    parameter N_Y = 4,
    parameter N_Z = 4,
    parameter AHB_W = 32,
    // rows of the AI RAM for weights that wait, at most
    parameter SPARE_MOST = 0
) (
    // clock, synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // register access from the AHB slave; word address of the next cycle's access; the access is a write to
    // AI_CTRL
    input  wire                    reg_wr,
    input  wire                    reg_rd,
    input  wire [             9:0] reg_next,
    input  wire                    reg_command,
    input  wire [            31:0] reg_wdata,
    output wire [            31:0] reg_rdata,
    output wire                    reg_err,
    // layer argument words to the core, their weight width; arg_flush drops the words of an unfinished
    // layer
    output wire                    arg_valid,
    input  wire                    arg_ready,
    output wire [            63:0] arg_data,
    output wire                    arg_eight_bit,
    output wire                    arg_flush,
    // result words from the core
    input  wire                    result_valid,
    output wire                    result_ready,
    input  wire [            63:0] result_data,
    // configuration and commands to the controller, its state, events and errors; windows
    output wire [   `CFG_BITS-1:0] cfg,
    output wire [  `HOST_BITS-1:0] host,
    output wire [ `GUARD_BITS-1:0] guard,
    input  wire [`STATUS_BITS-1:0] state,
    input  wire [ `EVENT_BITS-1:0] events,
    input  wire [   `ERR_BITS-1:0] err,
    // weight and bias FIFO are full, for AI_STATUS
    input  wire                    weight_bias_full,
    // performance counters: index, its value in the same cycle, carry into its high word
    output wire [             3:0] perf_index,
    input  wire [            63:0] perf_value,
    input  wire                    perf_carry,
    // interrupt, level
    output wire                    irq
);

  wire        kpu_hit;
  wire        ai_hit;
  wire        perf_hit;
  wire [31:0] kpu_rdata;
  wire [31:0] ai_rdata;
  wire [31:0] perf_rdata;
  wire        kpu_irq;
  wire        ai_irq;
  wire        overrun;
  wire        underrun;
  wire [ 4:0] layers_held;
  wire        layers_full;
  wire [ 4:0] results_held;

  wire        eight_bit_mode;
  wire words, reset_now, muted, drop_words;

  // AI_STATUS; ai_cfg adds error, busy and npix_taken
  wire [9:0] layer = state[`STATUS_LAYER];
  wire [31:0] status = {
    3'd0,
    layers_held,
    3'd0,
    results_held,
    layer[7:0],
    state[`STATUS_KEPT],
    1'b0,
    layers_full,
    results_held != 5'd0,
    state[`STATUS_FC_LAYER],
    weight_bias_full,
    2'd0
  };

  assign reg_err = (reg_wr || reg_rd) && !(kpu_hit || ai_hit || perf_hit);
  // parts that the access does not address drive zeros
  assign reg_rdata = kpu_rdata | ai_rdata | perf_rdata;
  assign irq = kpu_irq || ai_irq;

  kpu_regs u_kpu (
      .clk(clk),
      .rst(rst),
      .drop_words(drop_words),
      .reset_now(reset_now),
      .muted(muted),
      .wr(reg_wr),
      .rd(reg_rd),
      .next(reg_next),
      .wdata(reg_wdata),
      .rdata(kpu_rdata),
      .hit(kpu_hit),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_eight_bit(arg_eight_bit),
      .arg_flush(arg_flush),
      .words(words),
      .result_valid(result_valid),
      .result_ready(result_ready),
      .result_data(result_data),
      .eight_bit_mode(eight_bit_mode),
      .ev_calc_done(events[`EVENT_CALC_DONE]),
      .layers_held(layers_held),
      .layers_full(layers_full),
      .results_held(results_held),
      .irq(kpu_irq),
      .overrun(overrun),
      .underrun(underrun)
  );

  ai_cfg #(
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .AHB_W     (AHB_W),
      .SPARE_MOST(SPARE_MOST)
  ) u_ai (
      .clk(clk),
      .rst(rst),
      .wr(reg_wr),
      .next(reg_next),
      .command(reg_command),
      .wdata(reg_wdata),
      .rdata(ai_rdata),
      .hit(ai_hit),
      .eight_bit_mode(eight_bit_mode),
      .words(words),
      .cfg(cfg),
      .host(host),
      .guard(guard),
      .reset_now(reset_now),
      .muted(muted),
      .drop_words(drop_words),
      .state(state),
      .events(events),
      .err(err),
      .status(status),
      .overrun(overrun),
      .underrun(underrun),
      .irq(ai_irq)
  );

  perf_regs u_perf (
      .clk(clk),
      .rst(rst),
      .rd(reg_rd),
      .next(reg_next),
      .rdata(perf_rdata),
      .hit(perf_hit),
      .index(perf_index),
      .value(perf_value),
      .carry(perf_carry)
  );

  // AI_STATUS shows the low eight bits of the layer index
  wire unused = &{1'b0, layer[9:8], state, events};

endmodule

`resetall
