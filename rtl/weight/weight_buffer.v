// SPDX-License-Identifier: Apache-2.0
//
// weight_buffer: holds the weights, parameters and activation tables of the layers.
//
// How it works: two loaders consume the weight and the bias stream of the coming layers; kept weights come
// from the AI RAM. Weights go to nine columns of a memory whose rows form a ring; batch-norm words and
// zero-point constants to the parameter buffer; tables to a ring of LOOK_AHEAD. The current layer reads all
// three here. With LOOK_AHEAD above 4 the descriptors of coming layers wait here for either loader, so that the
// loaders do not hold the decoder back.
// Handshake: weight_load_start and param_load_start each load a descriptor while their busy is low; load
// begins the copy of the next table, act_ready reports it. Streams are valid/ready. Weights of column t
// follow re[t] by a cycle, parameters follow param_re by a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_buffer #(
    // bus width, output channels of the array, bits of a weight
    parameter AHB_W        = 32,
    parameter N_Z          = 4,
    parameter WEIGHT_BITS  = 16,
    // weights may be kept in the AI RAM; layers decoded ahead of the array
    parameter KEEP_WEIGHTS = 0,
    parameter LOOK_AHEAD   = 4,
    // bits of weights that arrive in a cycle, at most: 32, 64 or 128
    parameter WEIGHT_W     = AHB_W,
    // rows of the weight buffer and the parameter buffer, width of a parameter row counter
    parameter WBUF_ROWS    = 1024,
    parameter PAR_ROWS     = 2048 / N_Z,
    parameter PRW          = `PROW_BITS,
    // widths
    parameter WW           = $clog2(WBUF_ROWS) + 2,
    parameter WA           = $clog2(WBUF_ROWS),
    parameter ZW           = $clog2(N_Z),
    parameter PAW          = $clog2(PAR_ROWS),
    parameter TN           = $clog2(LOOK_AHEAD),
    parameter OW           = $clog2(AHB_W / 8),
    parameter CW           = OW + 1
) (
    // clock and synchronous reset
    input  wire                         clk,
    input  wire                         rst,
    // layer for the loaders; table_only: weights and parameters are loaded already
    input  wire                         weight_load_start,
    output wire                         weight_load_busy,
    input  wire                         param_load_start,
    output wire                         param_load_busy,
    input  wire                         table_only,
    input  wire [       `DESC_BITS-1:0] desc,
    // weight stream
    input  wire                         weight_valid,
    output wire                         weight_ready,
    input  wire [       `KEPT_BITS-1:0] weight_piece,
    // kept weights
    input  wire                         kept_valid,
    output wire                         kept_ready,
    input  wire [       `KEPT_BITS-1:0] kept,
    // bias stream
    input  wire                         bias_valid,
    output wire                         bias_ready,
    input  wire [       `BEAT_BITS-1:0] bias_beat,
    // rows released and filled (running counts): weights, parameters
    input  wire [               WW-1:0] wrow_freed,
    output wire [               WW-1:0] wrow_filled,
    input  wire [              PRW-1:0] prow_freed,
    output wire [              PRW-1:0] prow_filled,
    // read ports of the nine weight columns: enables, rows, all banks of a row
    input  wire [                  8:0] re,
    input  wire [             9*WA-1:0] wrow,
    output wire [9*N_Z*WEIGHT_BITS-1:0] weights,
    // table of the current layer: its copy, entry for the post lanes
    input  wire                         load,
    output wire                         act_ready,
    output wire                         table_we,
    output wire [                  3:0] table_addr,
    output wire [    `SEGMENT_BITS-1:0] table_data,
    // parameters of a row, all banks
    input  wire                         param_re,
    input  wire [              PAW-1:0] param_row,
    output wire [           N_Z*71-1:0] bn,
    output wire [           N_Z*36-1:0] kc
);

  wire                     w_we;
  wire [           WA-1:0] w_row;
  wire [           ZW-1:0] w_bank;
  wire [9*WEIGHT_BITS-1:0] w_data;
  wire kc_we, bn_we, at_we;
  wire [PAW-1:0] kc_row, bn_row;
  wire [ZW-1:0] kc_bank, bn_bank;
  wire [  35:0] kc_data;
  wire [  59:0] bn_data;
  wire [TN+4:0] at_addr;
  wire [  63:0] at_data;
  wire          weight_load_starved;
  wire [TN+1:0] tables_filled, tables_freed;

  // released parameter rows, a cycle late, because the path from the releasing unit is long
  reg [PRW-1:0] prow_freed_q;
  always @(posedge clk) prow_freed_q <= rst ? {PRW{1'b0}} : prow_freed;

  localparam WOW = $clog2(WEIGHT_W / 8);
  wire [127:0] weight_data = weight_piece[`KEPT_DATA];
  wire [  3:0] weight_off = weight_piece[`KEPT_OFF];
  wire [  4:0] weight_cnt = weight_piece[`KEPT_CNT];

  // ---- layers that wait for a loader, beyond the one that the dispatcher offers
  localparam WAITING = LOOK_AHEAD - 4;
  wire weight_waits, weight_accepts, weight_idle, param_waits, param_accepts, param_idle, only;
  wire weight_starts = weight_waits && !weight_busy, param_starts = param_waits && !param_busy;
  wire weight_busy, param_busy;
  wire [`DESC_BITS-1:0] weight_desc, param_desc;
  assign weight_load_busy = !weight_accepts;
  assign param_load_busy  = !param_accepts;
  desc_ahead #(
      .WIDTH (`DESC_BITS),
      .LAYERS(WAITING)
  ) u_weights_ahead (
      .clk      (clk),
      .rst      (rst),
      .in_valid (weight_load_start),
      .in_ready (weight_accepts),
      .in_data  (desc),
      .out_valid(weight_waits),
      .out_ready(!weight_busy),
      .out_data (weight_desc),
      .empty    (weight_idle)
  );
  desc_ahead #(
      .WIDTH (`DESC_BITS + 1),
      .LAYERS(WAITING)
  ) u_params_ahead (
      .clk      (clk),
      .rst      (rst),
      .in_valid (param_load_start),
      .in_ready (param_accepts),
      .in_data  ({table_only, desc}),
      .out_valid(param_waits),
      .out_ready(!param_busy),
      .out_data ({only, param_desc}),
      .empty    (param_idle)
  );

  weight_loader #(
      .AHB_W       (WEIGHT_W),
      .N_Z         (N_Z),
      .WEIGHT_BITS (WEIGHT_BITS),
      .KEEP_WEIGHTS(KEEP_WEIGHTS),
      .WBUF_ROWS   (WBUF_ROWS),
      .PAR_ROWS    (PAR_ROWS),
      .PRW         (PRW)
  ) u_wload (
      .clk         (clk),
      .rst         (rst),
      .start       (weight_starts),
      .desc        (weight_desc),
      .busy        (weight_busy),
      .weight_valid(weight_valid),
      .weight_ready(weight_ready),
      .weight_data (weight_data[WEIGHT_W-1:0]),
      .weight_off  (weight_off[WOW-1:0]),
      .weight_cnt  (weight_cnt[WOW:0]),
      .kept_valid  (kept_valid),
      .kept_ready  (kept_ready),
      .kept        (kept),
      .wrow_freed  (wrow_freed),
      .wrow_filled (wrow_filled),
      .prow_freed  (prow_freed),
      .w_we        (w_we),
      .w_row       (w_row),
      .w_bank      (w_bank),
      .w_data      (w_data),
      .kc_we       (kc_we),
      .kc_row      (kc_row),
      .kc_bank     (kc_bank),
      .kc_data     (kc_data),
      .starved     (weight_load_starved)
  );

  param_loader #(
      .AHB_W   (AHB_W),
      .N_Z     (N_Z),
      .PAR_ROWS(PAR_ROWS),
      .TABLES  (LOOK_AHEAD),
      .PRW     (PRW)
  ) u_pload (
      .clk          (clk),
      .rst          (rst),
      .start        (param_starts),
      .desc         (param_desc),
      .table_only   (only),
      .busy         (param_busy),
      .bias_valid   (bias_valid),
      .bias_ready   (bias_ready),
      .bias_data    (bias_beat[`BEAT_DATA]),
      .bias_off     (bias_beat[`BEAT_OFF]),
      .bias_cnt     (bias_beat[`BEAT_CNT]),
      .prow_freed   (prow_freed_q),
      .prow_filled  (prow_filled),
      .tables_freed (tables_freed),
      .tables_filled(tables_filled),
      .bn_we        (bn_we),
      .bn_row       (bn_row),
      .bn_bank      (bn_bank),
      .bn_data      (bn_data),
      .at_we        (at_we),
      .at_addr      (at_addr),
      .at_data      (at_data)
  );

  act_table #(
      .TABLES(LOOK_AHEAD)
  ) u_table (
      .clk          (clk),
      .rst          (rst),
      .at_we        (at_we),
      .at_addr      (at_addr),
      .at_data      (at_data),
      .tables_filled(tables_filled),
      .tables_freed (tables_freed),
      .load         (load),
      .ready        (act_ready),
      .table_we     (table_we),
      .table_addr   (table_addr),
      .table_data   (table_data)
  );

  param_buffer #(
      .N_Z (N_Z),
      .ROWS(PAR_ROWS)
  ) u_par (
      .clk    (clk),
      .bn_we  (bn_we),
      .bn_row (bn_row),
      .bn_bank(bn_bank),
      .bn_data(bn_data),
      .kc_we  (kc_we),
      .kc_row (kc_row),
      .kc_bank(kc_bank),
      .kc_data(kc_data),
      .re     (param_re),
      .raddr  (param_row),
      .bn     (bn),
      .kc     (kc)
  );

  // weight columns: a row holds a weight for each of the N_Z banks
  wire [N_Z-1:0] one = {{(N_Z - 1) {1'b0}}, 1'b1};
  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_column
      wire [N_Z*WEIGHT_BITS-1:0] word;
      ram_1r1w #(
          .WIDTH(N_Z * WEIGHT_BITS),
          .DEPTH(WBUF_ROWS),
          .LANE (WEIGHT_BITS)
      ) u_weights (
          .clk  (clk),
          .we   (w_we),
          .wlane(one << w_bank),
          .waddr(w_row),
          .wdata({N_Z{w_data[t*WEIGHT_BITS+:WEIGHT_BITS]}}),
          .re   (re[t]),
          .raddr(wrow[t*WA+:WA]),
          .rdata(word)
      );
    end
  endgenerate
  // one assignment: nets driven in parts are slow in an event-driven simulator
  assign weights = {
    g_column[8].word,
    g_column[7].word,
    g_column[6].word,
    g_column[5].word,
    g_column[4].word,
    g_column[3].word,
    g_column[2].word,
    g_column[1].word,
    g_column[0].word
  };

  wire unused = &{1'b0, weight_load_starved, weight_idle, param_idle, weight_data, weight_off, weight_cnt};

endmodule

`resetall
