// SPDX-License-Identifier: Apache-2.0
//
// side_tasks: tasks that run beside the array, pooling and products of float16 matrices.
//
// How it works: each has its own engine, or none where a parameter is 0; layer_decode refuses tasks
// without an engine. While its layer is active, an engine replaces the array's units at the ports of the
// AI RAM, and the sequencer at the weight buffer: only one layer is active. The array does not start
// then; end of work, idle and counters combine both.
// Handshake: start with the descriptor of a layer, which is held; seq_done when all its work was issued,
// idle when its last word is written. array_start, combinational, is the start of an array layer.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module side_tasks #(
    // windows of a pooling task, float16 products in parallel; columns and rows of the latter
    parameter POOL_LANES = 4,
    parameter FP16_LANES = 0,
    parameter FP16_COLS  = 1,
    parameter FP16_ROWS  = 1,
    // array: pixels, output channels; bits of a weight; rows of the weight buffer
    parameter N_Y        = 4,
    parameter N_Z        = 4,
    parameter WB         = 16,
    parameter WBUF_ROWS  = 1024,
    // bytes of a word of the AI RAM
    parameter PATH       = 64,
    // cycles from a grant of the AI RAM to the data of the read
    parameter READ       = 1,
    // derived, not to be set: bits of a byte index, widths of a weight row and of its counter
    parameter PB         = $clog2(PATH),
    parameter WA         = $clog2(WBUF_ROWS),
    parameter WW         = WA + 2
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer: start, start on the array; all its work was issued, its last word is written
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    output wire                      array_start,
    output wire                      seq_done,
    output wire                      idle,
    // array: the last work was issued; sequencer, MAC stage and output stage busy
    input  wire                      array_done,
    input  wire                      seq_running,
    input  wire                      mac_idle,
    input  wire                      output_idle,
    // AI RAM: requests of the array's units, of the selected unit
    input  wire                      tile_req,
    input  wire [           20-PB:0] tile_word,
    output wire                      fill_req,
    output wire [           20-PB:0] fill_word,
    input  wire                      fill_gnt,
    input  wire [        8*PATH-1:0] fill_data,
    input  wire                      output_req,
    input  wire [`ROWWRITE_BITS-1:0] output_write,
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt,
    // weight buffer: rows of the layer, filled, released; reads of the sequencer, selected reads
    input  wire [            WW-1:0] ring_row,
    input  wire [            WW-1:0] wrow_filled,
    output wire                      skip,
    output wire [            WW-1:0] skip_to,
    input  wire [               8:0] seq_re,
    input  wire [          9*WA-1:0] seq_wrow,
    output wire [               8:0] wre,
    output wire [          9*WA-1:0] wrow,
    input  wire [      9*N_Z*WB-1:0] weights,
    // multipliers borrowed from the array: mantissas, products
    output wire                      lend_valid,
    output wire [  11*FP16_ROWS-1:0] lend_a,
    output wire [  11*FP16_COLS-1:0] lend_b,
    input  wire [ 33*FP16_LANES+0:0] products,
    // for the counters: of the array's units, except moves, which covers both; words that a loader accepts,
    // for the watchdog; of both
    input  wire [   `WORK_MOVES-1:0] array_work,
    input  wire                      loads,
    output wire [    `WORK_BITS-1:0] work
);

  // ---- pools
  wire pools = desc[`DESC_POOLS];
  wire pool_busy, pool_done, pool_req, pool_write_req;
  wire [20-PB:0] pool_word;
  wire [`ROWWRITE_BITS-1:0] pool_write;
  generate
    if (POOL_LANES != 0) begin : g_pools
      pool_task #(
          .LANES(POOL_LANES),
          .PATH (PATH),
          .READ (READ)
      ) u_pool (
          .clk(clk),
          .rst(rst),
          .start(start && pools),
          .desc(desc),
          .busy(pool_busy),
          .done(pool_done),
          .fill_req(pool_req),
          .fill_word(pool_word),
          .fill_gnt(fill_gnt),
          .fill_data(fill_data),
          .writeback_req(pool_write_req),
          .writeback(pool_write),
          .writeback_gnt(writeback_gnt)
      );
    end else begin : g_no_pools
      assign {pool_busy, pool_done, pool_req, pool_write_req} = 4'd0;
      assign pool_word = {21 - PB{1'b0}};
      assign pool_write = {`ROWWRITE_BITS{1'b0}};
      wire unused_pools = &{1'b0, clk, rst, start, fill_data};
    end
  endgenerate

  // ---- products of float16 matrices
  wire fp16 = FP16_LANES != 0 && desc[`DESC_FP16];
  wire fp_busy, fp_done, fp_req, fp_write_req, fp_issued, fp_tile, fp_weight, fp_output;
  wire [20-PB:0] fp_word;
  wire [`ROWWRITE_BITS-1:0] fp_write;
  wire [71:0] fp_macs;
  generate
    if (FP16_LANES != 0) begin : g_fp16
      wire [8:0] fp_re;
      wire [WA-1:0] fp_wrow;
      fp16_task #(
          .LANES    (FP16_LANES),
          .PATH     (PATH),
          .READ     (READ),
          .N_Y      (N_Y),
          .N_Z      (N_Z),
          .WBUF_ROWS(WBUF_ROWS)
      ) u_fp16 (
          .clk(clk),
          .rst(rst),
          .start(start && fp16),
          .desc(desc),
          .busy(fp_busy),
          .done(fp_done),
          .fill_req(fp_req),
          .fill_word(fp_word),
          .fill_gnt(fill_gnt),
          .fill_data(fill_data),
          .writeback_req(fp_write_req),
          .writeback(fp_write),
          .writeback_gnt(writeback_gnt),
          .ring_row(ring_row),
          .wrow_filled(wrow_filled),
          .skip(skip),
          .skip_to(skip_to),
          .column_re(fp_re),
          .wrow(fp_wrow),
          .weights(weights),
          .lend_valid(lend_valid),
          .lend_a(lend_a),
          .lend_b(lend_b),
          .products(products[33*FP16_LANES-1:0]),
          .issued(fp_issued),
          .wait_tile(fp_tile),
          .wait_weight(fp_weight),
          .wait_output(fp_output),
          .macs(fp_macs)
      );
      assign wre  = seq_re | fp_re;
      assign wrow = fp16 ? {9{fp_wrow}} : seq_wrow;
    end else begin : g_no_fp16
      assign {fp_busy, fp_done, fp_req, fp_write_req, fp_issued, fp_tile, fp_weight, fp_output} = 8'd0;
      assign fp_word = {21 - PB{1'b0}};
      assign fp_write = {`ROWWRITE_BITS{1'b0}};
      assign fp_macs = 72'd0;
      assign {skip, lend_valid} = 2'b00;
      assign skip_to = {WW{1'b0}};
      assign lend_a = {11 * FP16_ROWS{1'b0}};
      assign lend_b = {11 * FP16_COLS{1'b0}};
      assign wre = seq_re;
      assign wrow = seq_wrow;
      wire unused_fp16 = &{1'b0, ring_row, wrow_filled, weights};
    end
  endgenerate

  // ---- selection
  assign array_start = start && !pools && !fp16;
  assign seq_done = array_done || pool_done || fp_done;
  assign idle = !seq_running && mac_idle && output_idle && !pool_busy && !fp_busy;
  assign fill_req = tile_req || pool_req || fp_req;
  assign fill_word = pools ? pool_word : fp16 ? fp_word : tile_word;
  assign writeback_req = output_req || pool_write_req || fp_write_req;
  assign writeback = pools ? pool_write : fp16 ? fp_write : output_write;
  assign work[`WORK_ISSUED] = array_work[`WORK_ISSUED] || fp_issued;
  assign work[`WORK_WAIT_TILE] = array_work[`WORK_WAIT_TILE] || fp_tile;
  assign work[`WORK_WAIT_WEIGHT] = array_work[`WORK_WAIT_WEIGHT] || fp_weight;
  assign work[`WORK_WAIT_OUTPUT] = array_work[`WORK_WAIT_OUTPUT] || fp_output;
  assign work[`WORK_MACS_ISSUED] = array_work[`WORK_MACS_ISSUED] | fp_macs;
  assign work[`WORK_MACS_GATED] = array_work[`WORK_MACS_GATED];
  assign work[`WORK_MOVES] = work[`WORK_ISSUED] || (fill_req && fill_gnt) ||
      (writeback_req && writeback_gnt) || loads;

  wire unused = &{1'b0, desc, products};

endmodule

`resetall
