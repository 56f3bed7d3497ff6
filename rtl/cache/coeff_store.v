// SPDX-License-Identifier: Apache-2.0
//
// coeff_store: what a layer needs besides pixels: weights, parameters, activation tables.
//
// How it works: two loaders take the weight and the bias stream of the layers to come; weights go
// out to the columns of the array, batch-norm words and zero-point constants into the parameter
// buffer, tables into a ring of four. The layer at work reads parameters and table from here.
// Handshake: wl_start and pl_start take a descriptor each when their busy is low; load begins the
// copy of the next table, act_ready says that it is there. Streams are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module coeff_store #(
    // bus width, output channels of the array, bits of a weight
    parameter AHB_W     = 32,
    parameter N_Z       = 4,
    parameter WB        = 16,
    // rows of the weight buffer, width of a parameter row counter
    parameter WBUF_ROWS = 1024,
    parameter PRW       = 13,
    // widths
    parameter WW        = $clog2(WBUF_ROWS) + 2,
    parameter ZW        = $clog2(N_Z),
    parameter PAR_ROWS  = 2048 / N_Z,
    parameter PAW       = $clog2(PAR_ROWS),
    parameter OW        = $clog2(AHB_W / 8),
    parameter CW        = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // layer for the loaders; table_only: weights and parameters are there already
    input  wire                     wl_start,
    output wire                     wl_busy,
    input  wire                     pl_start,
    output wire                     pl_busy,
    input  wire                     table_only,
    input  wire [`DESC_W_TOTAL-1:0] desc,
    // weight stream
    input  wire                     wt_valid,
    output wire                     wt_ready,
    input  wire [        AHB_W-1:0] wt_data,
    input  wire [           OW-1:0] wt_off,
    input  wire [           CW-1:0] wt_cnt,
    // bias stream
    input  wire                     bs_valid,
    output wire                     bs_ready,
    input  wire [        AHB_W-1:0] bs_data,
    input  wire [           OW-1:0] bs_off,
    input  wire [           CW-1:0] bs_cnt,
    // rows released and complete (running counts): weights, parameters
    input  wire [           WW-1:0] wrow_freed,
    output wire [           WW-1:0] wrow_filled,
    input  wire [          PRW-1:0] prow_freed,
    output wire [          PRW-1:0] prow_filled,
    // words to the weight buffers of the columns
    output wire                     w_we,
    output wire [           WW-3:0] w_row,
    output wire [           ZW-1:0] w_bank,
    output wire [         9*WB-1:0] w_data,
    // table of the layer at work
    input  wire                     load,
    output wire                     act_ready,
    output wire [        16*36-1:0] t_start,
    output wire [        16*16-1:0] t_mul,
    output wire [         16*8-1:0] t_shift,
    output wire [         16*8-1:0] t_add,
    // parameters of a row, all banks
    input  wire                     re,
    input  wire [          PAW-1:0] raddr,
    output wire [       N_Z*60-1:0] bn,
    output wire [       N_Z*36-1:0] kc
);

  wire           kc_we, bn_we, at_we;
  wire [PAW-1:0] kc_row, bn_row;
  wire [ZW-1:0]  kc_bank, bn_bank;
  wire [35:0]    kc_data;
  wire [59:0]    bn_data;
  wire [6:0]     at_addr;
  wire [63:0]    at_data;
  wire           wl_starved;
  wire [3:0]     tables_filled, tables_freed;

  weight_loader #(
      .AHB_W    (AHB_W),
      .N_Z      (N_Z),
      .WB       (WB),
      .WBUF_ROWS(WBUF_ROWS),
      .PRW      (PRW)
  ) u_wload (
      .clk        (clk),
      .rst        (rst),
      .start      (wl_start),
      .desc       (desc),
      .busy       (wl_busy),
      .wt_valid   (wt_valid),
      .wt_ready   (wt_ready),
      .wt_data    (wt_data),
      .wt_off     (wt_off),
      .wt_cnt     (wt_cnt),
      .wrow_freed (wrow_freed),
      .wrow_filled(wrow_filled),
      .prow_freed (prow_freed),
      .w_we       (w_we),
      .w_row      (w_row),
      .w_bank     (w_bank),
      .w_data     (w_data),
      .kc_we      (kc_we),
      .kc_row     (kc_row),
      .kc_bank    (kc_bank),
      .kc_data    (kc_data),
      .starved    (wl_starved)
  );

  param_loader #(
      .AHB_W(AHB_W),
      .N_Z  (N_Z),
      .PRW  (PRW)
  ) u_pload (
      .clk          (clk),
      .rst          (rst),
      .start        (pl_start),
      .desc         (desc),
      .table_only   (table_only),
      .busy         (pl_busy),
      .bs_valid     (bs_valid),
      .bs_ready     (bs_ready),
      .bs_data      (bs_data),
      .bs_off       (bs_off),
      .bs_cnt       (bs_cnt),
      .prow_freed   (prow_freed),
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

  act_table u_table (
      .clk          (clk),
      .rst          (rst),
      .at_we        (at_we),
      .at_addr      (at_addr),
      .at_data      (at_data),
      .tables_filled(tables_filled),
      .tables_freed (tables_freed),
      .load         (load),
      .ready        (act_ready),
      .t_start      (t_start),
      .t_mul        (t_mul),
      .t_shift      (t_shift),
      .t_add        (t_add)
  );

  param_buffer #(
      .N_Z(N_Z)
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
      .re     (re),
      .raddr  (raddr),
      .bn     (bn),
      .kc     (kc)
  );

  wire unused = &{1'b0, wl_starved};

endmodule

`resetall
