// SPDX-License-Identifier: Apache-2.0
//
// fp16_steps: generates the steps of a product of float16 matrices, and the weight rows they read.
//
// How it works: a step consumes a word of B and one number of each of ROWS rows of A, and adds a product
// in every lane. The loop nest is group of rows of A > group of columns > k. Weights lie in the weight
// buffer as those of a 1x1 convolution: row s of a group of N_Z channels holds nine columns, number k of
// a row of A in column k mod 9 of row k / 9. The ring's rows are reused for each group of columns, and
// for each part of ROWS channels, then released. The last step of a group of columns waits until the sums
// of the previous group have left the holding registers.
// Handshake: start with a stable descriptor and the layer's first ring row; step is combinational. skip
// releases the rows up to skip_to. running is high until the last step, done pulses a cycle later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fp16_steps #(
    // rows of A processed together, output channels of the array, rows of the weight buffer
    parameter ROWS      = 1,
    parameter N_Z       = 4,
    parameter WBUF_ROWS = 1024,
    // derived, not to be set: widths of a row number, of a row counter, of a part's number; parts
    parameter WA        = $clog2(WBUF_ROWS),
    parameter WW        = WA + 2,
    parameter PARTS     = N_Z / ROWS,
    parameter SW        = (PARTS > 1) ? $clog2(PARTS) : 1
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; groups of rows of A less one, of columns less one
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [          10:0] a_last,
    input  wire [          13:0] group_last,
    output reg                   running,
    output reg                   done,
    // rows of the weight buffer: first of the layer, filled, released
    input  wire [        WW-1:0] ring_row,
    input  wire [        WW-1:0] wrow_filled,
    output wire                  skip,
    output wire [        WW-1:0] skip_to,
    // a word of B is valid; sums are held
    input  wire                  word_valid,
    input  wire                  held,
    // a step: first, last of its group; column and row of the weights, part of the channels
    output wire                  step,
    output wire                  first,
    output wire                  last,
    output reg  [           8:0] column,
    output wire [        WA-1:0] wrow,
    output reg  [        SW-1:0] part,
    // position: group of rows of A, group of columns
    output reg  [          10:0] a_at,
    output reg  [          13:0] group_at,
    // reason for a missing step
    output wire                  wait_tile,
    output wire                  wait_weight,
    output wire                  wait_output
);

  localparam integer PART_TOP = PARTS - 1;
  localparam [SW-1:0] PART_LAST = PART_TOP[SW-1:0];
  localparam [WW-1:0] ONE = {{(WW - 1) {1'b0}}, 1'b1};

  reg [13:0] k_left;
  reg [WW-1:0] base, row;
  reg at_first;
  wire [13:0] k_top = desc[`DESC_C] - 14'd1;

  // filled rows behind the one in use, less one: not negative
  wire [WW-1:0] more = wrow_filled + ~row;
  wire row_there = !more[WW-1];
  assign first = at_first;
  assign last = k_left == 14'd0;
  assign wrow = row[WA-1:0];
  assign wait_tile = running && !word_valid;
  assign wait_weight = running && word_valid && !row_there;
  assign wait_output = running && word_valid && row_there && last && held;
  assign step = running && word_valid && row_there && !(last && held);

  wire group_end = step && last && group_at == group_last;  // a group of rows of A is complete
  wire task_end = group_end && a_at == a_last;
  wire ring_end = group_end && (part == PART_LAST || a_at == a_last);
  assign skip = ring_end;
  assign skip_to = row + ONE;
  wire [WW-1:0] next_base = ring_end ? row + ONE : base;

  always @(posedge clk) begin
    if (rst) begin
      running <= 1'b0;
      done <= 1'b0;
    end else begin
      running <= start || (running && !task_end);
      done <= task_end;
    end
  end

  always @(posedge clk) begin
    if (start) begin
      {k_left, at_first, column} <= {k_top, 1'b1, 9'd1};
      {base, row} <= {ring_row, ring_row};
      {a_at, group_at, part} <= {11'd0, 14'd0, {SW{1'b0}}};
    end else if (step && last) begin
      {k_left, at_first, column} <= {k_top, 1'b1, 9'd1};
      {base, row} <= {next_base, next_base};
      group_at <= group_end ? 14'd0 : group_at + 14'd1;
      a_at <= group_end ? a_at + 11'd1 : a_at;
      part <= ring_end ? {SW{1'b0}} : group_end ? part + {{(SW - 1) {1'b0}}, 1'b1} : part;
    end else if (step) begin
      {k_left, at_first} <= {k_left - 14'd1, 1'b0};
      column <= {column[7:0], column[8]};
      row <= column[8] ? row + ONE : row;
    end else begin
      k_left <= k_left;
    end
  end

  wire unused = &{1'b0, desc};

endmodule

`resetall
