// SPDX-License-Identifier: Apache-2.0
//
// param_loader: writes the bias stream, activation tables and batch-norm words, to their buffers.
//
// How it works: for each layer the 18 words of the activation table come first, then a batch-norm word per
// output channel (table_only: the words are in the buffer already). Tables go to a ring of TABLES, words to
// the ring of parameter rows.
// Handshake: start loads a descriptor while busy is low, and the layer begins a cycle later; the stream waits
// for room. prow_filled counts parameter rows, tables_filled complete tables.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module param_loader #(
    // bus width, banks
    parameter AHB_W    = 32,
    parameter N_Z      = 4,
    // rows of the parameter buffer; tables that fit
    parameter PAR_ROWS = 2048 / N_Z,
    parameter TABLES   = 4,
    // widths
    parameter PRW      = `PROW_BITS,
    parameter PAW      = $clog2(PAR_ROWS),
    parameter ZW       = $clog2(N_Z),
    parameter TN       = $clog2(TABLES),
    parameter OW       = $clog2(AHB_W / 8),
    parameter CW       = OW + 1
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // next layer
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  table_only,
    output reg                   busy,
    // bias stream of the DMAC
    input  wire                  bias_valid,
    output wire                  bias_ready,
    input  wire [     AHB_W-1:0] bias_data,
    input  wire [        OW-1:0] bias_off,
    input  wire [        CW-1:0] bias_cnt,
    // parameter rows released and filled, tables released and filled (running counts)
    input  wire [       PRW-1:0] prow_freed,
    output wire [       PRW-1:0] prow_filled,
    input  wire [        TN+1:0] tables_freed,
    output wire [        TN+1:0] tables_filled,
    // batch-norm word to the parameter buffer
    output wire                  bn_we,
    output wire [       PAW-1:0] bn_row,
    output wire [        ZW-1:0] bn_bank,
    output wire [          59:0] bn_data,
    // word of a table: table, word 0..17
    output wire                  at_we,
    output wire [        TN+4:0] at_addr,
    output wire [          63:0] at_data
);

  reg           begins;
  reg           begins_only;
  reg [   10:0] channels;
  reg           run;
  reg           in_table;
  reg           only;
  reg [    4:0] word;
  reg [   10:0] left;  // remaining words of the layer, including this one
  reg [PRW-1:0] prow;
  reg [ ZW-1:0] bank;
  reg [ TN+1:0] table_n;
  // each write completes the word of a channel, or with its last word a table
  assign prow_filled   = prow;
  assign tables_filled = table_n;

  localparam LVL_W = $clog2(8 + 2 * (AHB_W / 8) + 1);
  wire [LVL_W-1:0] level;
  wire [63:0] win;
  wire [3:0] take;
  byte_gearbox #(
      .IN_BYTES (AHB_W / 8),
      .OUT_BYTES(8),
      .UNIT     (8)
  ) u_gear (
      .clk     (clk),
      .rst     (rst),
      .flush   (1'b0),
      .in_valid(bias_valid),
      .in_ready(bias_ready),
      .in_data (bias_data),
      .in_off  (bias_off),
      .in_cnt  (bias_cnt),
      .avail   (level),
      .out_data(win),
      .take    (take)
  );

  // in a full ring the counts differ only in the bit above the address
  wire [ PAW:0] prow_off = prow[PAW:0] ^ prow_freed[PAW:0];
  wire [TN+1:0] tables_used = table_n - tables_freed;  // TABLES at most
  wire          room = in_table ? !tables_used[TN] : prow_off != {1'b1, {PAW{1'b0}}};
  wire          go = run && room && level >= 8;
  assign take = go ? 4'd8 : 4'd0;

  wire table_end = word == 5'd17;
  wire o_last = left == 11'd1;
  wire row_end = o_last || bank == {ZW{1'b1}};

  always @(posedge clk) begin
    if (rst) begin
      run      <= 1'b0;
      in_table <= 1'b1;
      only     <= 1'b0;
      word     <= 5'd0;
      left     <= 11'd1;
      prow     <= {PRW{1'b0}};
      bank     <= {ZW{1'b0}};
      table_n  <= {(TN + 2) {1'b0}};
    end else if (begins) begin
      run      <= 1'b1;
      in_table <= 1'b1;
      only     <= begins_only;
      word     <= 5'd0;
      left     <= channels;
      bank     <= {ZW{1'b0}};
    end else if (go) begin
      if (in_table) begin
        word     <= table_end ? 5'd0 : word + 5'd1;
        in_table <= !table_end;
        run      <= !(table_end && only);
        table_n  <= table_n + {{(TN + 1) {1'b0}}, table_end};
      end else begin
        run  <= !o_last;
        left <= left - 11'd1;
        bank <= row_end ? {ZW{1'b0}} : bank + {{(ZW - 1) {1'b0}}, 1'b1};
        prow <= row_end ? prow + {{(PRW - 1) {1'b0}}, 1'b1} : prow;
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      begins <= 1'b0;
      busy   <= 1'b0;
    end else begin
      begins <= start;
      busy   <= start || begins || run;
    end
  end
  always @(posedge clk) begin
    begins_only <= table_only;
    channels    <= desc[`DESC_O];
  end

  assign bn_we   = go && !in_table;
  assign bn_row  = prow[PAW-1:0];
  assign bn_bank = bank;
  assign bn_data = win[59:0];
  assign at_we   = go && in_table;
  assign at_addr = {table_n[TN-1:0], word};
  assign at_data = win;

  wire unused = &{1'b0, desc, prow_freed};

endmodule

`resetall
