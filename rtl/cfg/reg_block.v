// SPDX-License-Identifier: Apache-2.0
//
// reg_block: all registers of the device behind the AHB slave.
//
// Three parts, each in a module of its own: the KPU registers, the AI_* registers, the counters.
// The map with every field is rtl/cfg/openkpu.rdl, from which docs/registers.md comes.
// Handshake: reg_wr and reg_rd are one-cycle strobes with reg_addr and reg_wdata; reg_rdata and
// reg_err answer in the same cycle. An address without a register gives reg_err and does nothing;
// writes to read-only registers and bits are ignored.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module reg_block #(
  // shape of the MAC array, data width of the bus to the storage: for AI_CONFIG
  parameter N_X = 9,
  parameter N_Y = 4,
  parameter N_Z = 4,
  parameter AHB_W = 32
) (
  // clock, synchronous reset
  input  wire              clk,
  input  wire              rst,
  // register access from the AHB slave
  input  wire              reg_wr,
  input  wire              reg_rd,
  input  wire [11:0]       reg_addr,
  input  wire [31:0]       reg_wdata,
  output wire [31:0]       reg_rdata,
  output wire              reg_err,
  // layer argument words to the core; la_flush: forget what was taken of an unfinished layer
  output wire              la_valid,
  input  wire              la_ready,
  output wire [63:0]       la_data,
  output wire              la_flush,
  // result words from the core
  input  wire              rf_valid,
  output wire              rf_ready,
  input  wire [63:0]       rf_data,
  // configuration to the core
  output wire              eight_bit_mode,
  output wire              cfg_more,
  output wire [31:0]       cfg_pix_adr,
  output wire [31:0]       cfg_npix_adr,
  output wire [31:0]       cfg_wgt_adr,
  output wire [31:0]       cfg_bias_adr,
  output wire [31:0]       cfg_list_adr,
  output wire [9:0]        cfg_list_len,
  output wire [31:0]       cfg_res_adr,
  // commands to the core, and from it: the next inference of a stream begins
  output wire              start_pulse,
  output wire              soft_reset_pulse,
  output wire              stop_pulse,
  input  wire              inf_next,
  // the next inference's pixel address was taken: now, since then, which
  input  wire              npix_take,
  input  wire              npix_taken,
  input  wire [31:0]       taken_adr,
  // state of the core
  input  wire              st_busy,
  input  wire              st_fc_layer,
  input  wire              st_kept,
  input  wire              st_wb_fifo_full,
  input  wire [9:0]        st_layer,
  // events of the core
  input  wire              ev_calc_done,
  input  wire              ev_inf_done,
  input  wire              ev_err,
  input  wire [7:0]        err_code,
  input  wire [15:0]       err_layer,
  input  wire [31:0]       err_addr,
  // an error is recorded
  output wire              err_any,
  // performance counters, first one lowest
  input  wire [14*64-1:0]  perf_flat,
  // interrupt, level
  output wire              irq
);

  wire         kpu_hit;
  wire         ai_hit;
  wire         perf_hit;
  wire [31:0]  kpu_rdata;
  wire [31:0]  ai_rdata;
  wire [31:0]  perf_rdata;
  wire         kpu_irq;
  wire         ai_irq;
  wire         overrun;
  wire         underrun;
  wire [4:0]   layers_held;
  wire         layers_full;
  wire [4:0]   results_held;

  // AI_STATUS; its bit 1 (error) is put in by ai_cfg
  wire [31:0]  status = {3'd0, layers_held, 3'd0, results_held, st_layer[7:0], st_kept, npix_taken,
                         layers_full, results_held != 5'd0,
                         st_fc_layer, st_wb_fifo_full, 1'b0, st_busy};

  assign reg_err = (reg_wr || reg_rd) && !(kpu_hit || ai_hit || perf_hit);
  assign reg_rdata = kpu_hit ? kpu_rdata : ai_hit ? ai_rdata : perf_rdata;
  assign irq = kpu_irq || ai_irq;

  kpu_regs u_kpu (
    .clk(clk), .rst(rst), .soft_reset(soft_reset_pulse),
    .wr(reg_wr), .rd(reg_rd), .addr(reg_addr), .wdata(reg_wdata), .rdata(kpu_rdata),
    .hit(kpu_hit),
    .la_valid(la_valid), .la_ready(la_ready), .la_data(la_data), .la_flush(la_flush),
    .rf_valid(rf_valid), .rf_ready(rf_ready), .rf_data(rf_data),
    .eight_bit_mode(eight_bit_mode), .ev_calc_done(ev_calc_done),
    .layers_held(layers_held), .layers_full(layers_full), .results_held(results_held),
    .irq(kpu_irq), .overrun(overrun), .underrun(underrun)
  );

  ai_cfg #(
    .N_X(N_X), .N_Y(N_Y), .N_Z(N_Z), .AHB_W(AHB_W)
  ) u_ai (
    .clk(clk), .rst(rst),
    .wr(reg_wr), .addr(reg_addr), .wdata(reg_wdata), .rdata(ai_rdata), .hit(ai_hit),
    .cfg_more(cfg_more), .cfg_pix_adr(cfg_pix_adr), .cfg_npix_adr(cfg_npix_adr),
    .cfg_wgt_adr(cfg_wgt_adr), .cfg_bias_adr(cfg_bias_adr), .cfg_list_adr(cfg_list_adr),
    .cfg_list_len(cfg_list_len), .cfg_res_adr(cfg_res_adr),
    .start_pulse(start_pulse), .soft_reset_pulse(soft_reset_pulse), .stop_pulse(stop_pulse),
    .inf_next(inf_next), .npix_take(npix_take), .npix_taken(npix_taken), .taken_adr(taken_adr),
    .st_busy(st_busy), .status(status),
    .ev_inf_done(ev_inf_done), .ev_err(ev_err), .err_code(err_code), .err_layer(err_layer),
    .err_addr(err_addr), .overrun(overrun), .underrun(underrun),
    .err_any(err_any), .irq(ai_irq)
  );

  perf_regs u_perf (
    .clk(clk), .rst(rst), .rd(reg_rd), .addr(reg_addr), .rdata(perf_rdata), .hit(perf_hit),
    .perf_flat(perf_flat)
  );

  // AI_STATUS shows the low eight bits of the layer index
  wire _unused_ok = &{1'b0, st_layer[9:8]};

endmodule

`resetall
