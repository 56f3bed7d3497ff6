// SPDX-License-Identifier: Apache-2.0
//
// fp16_task: products of float16 matrices, each element the exact sum of its products, rounded
// once.
//
// How it works: output-stationary, with multipliers borrowed from the array. A step consumes COLS columns
// of a row of B from the AI RAM (fp16_walk) and a number of each of ROWS rows of A from the weight
// buffer, and COLS * ROWS lanes add a product each (fp16_lane). After the last step of a group the sums
// are held, rounded (fp16_round) and written (fp16_write) while the next group accumulates. fp16_steps
// generates the steps; numbers are unpacked once per row and column, not in every lane.
// Handshake: start with the descriptor of a product, which is held, and the row of its weights, which is
// not; busy until the last word is written, done after the last step. Weights follow column_re by a
// cycle. Mantissas leave two cycles after a step, with lend_valid; products return two cycles later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fp16_task #(
    // products per step; bytes of a word of the AI RAM
    parameter LANES     = 8,
    parameter PATH      = 16,
    // cycles from a grant of the AI RAM to the data of the read
    parameter READ      = 1,
    // array: pixels, output channels; rows of the weight buffer
    parameter N_Y       = 2,
    parameter N_Z       = 4,
    parameter WBUF_ROWS = 1024,
    // derived, not to be set: columns and rows of a group, bits of a byte index, widths of weight rows
    parameter MOST      = (PATH > 64) ? 32 : PATH / 2,
    parameter COLS      = (LANES < MOST) ? LANES : MOST,
    parameter ROWS      = LANES / COLS,
    parameter PB        = $clog2(PATH),
    parameter WA        = $clog2(WBUF_ROWS),
    parameter WW        = WA + 2
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    output wire                      busy,
    output wire                      done,
    // AI RAM: read port, write port
    output wire                      fill_req,
    output wire [           20-PB:0] fill_word,
    input  wire                      fill_gnt,
    input  wire [        8*PATH-1:0] fill_data,
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt,
    // weight buffer: first row of the layer, with start; rows filled, released; columns to read, their
    // row, all weights
    input  wire [            WW-1:0] ring_row,
    input  wire [            WW-1:0] wrow_filled,
    output wire                      skip,
    output wire [            WW-1:0] skip_to,
    output wire [               8:0] column_re,
    output wire [            WA-1:0] wrow,
    input  wire [      9*N_Z*16-1:0] weights,
    // array: mantissas of A and B to multiply, products of the lanes
    output wire                      lend_valid,
    output wire [       11*ROWS-1:0] lend_a,
    output wire [       11*COLS-1:0] lend_b,
    input  wire [      33*LANES-1:0] products,
    // for the counters: a step was made, else the reason; its multiplications, 8 bits per column of the
    // array
    output wire                      issued,
    output wire                      wait_tile,
    output wire                      wait_weight,
    output wire                      wait_output,
    output reg  [              71:0] macs
);

  localparam integer ROUNDS = (LANES > 64) ? LANES / 64 : 1;
  localparam integer SHIFTS_I = LANES / ROUNDS - 1;
  localparam [5:0] SHIFTS = SHIFTS_I[5:0];
  localparam integer GB = $clog2(2 * COLS);
  localparam integer RB = (ROWS > 1) ? $clog2(ROWS) : 0;
  localparam integer PARTS = N_Z / ROWS;
  localparam integer SW = (PARTS > 1) ? $clog2(PARTS) : 1;

  // ---- counts of the layer, a cycle after its start
  reg starts;
  reg [10:0] a_last;
  reg [13:0] group_last;
  reg [20:0] row_bytes;
  reg [WW-1:0] ring;  // the first row is valid only in the cycle of the start
  wire [19:0] b_bytes = (desc[`DESC_H] == 10'd1) ? {9'd0, desc[`DESC_W]} : {desc[`DESC_ICS], 6'd0};
  wire [19:0] b_top = b_bytes - 20'd1;
  wire [10:0] a_top = desc[`DESC_O] - 11'd1;
  always @(posedge clk) begin
    if (rst) starts <= 1'b0;
    else starts <= start;
  end
  always @(posedge clk) begin
    if (start) begin
      ring <= ring_row;
      a_last <= a_top >> RB;
      group_last <= b_top[13+GB:GB];
      row_bytes <= desc[`DESC_FP32] ? {b_bytes, 1'b0} : {1'b0, b_bytes};
    end else begin
      ring   <= ring;
      a_last <= a_last;
    end
  end

  // ---- words of B, steps
  wire word_valid, step, first, last, running;
  wire [16*COLS-1:0] word;
  wire [8:0] column;
  wire [SW-1:0] part;
  wire [10:0] a_at;
  wire [13:0] group_at;
  reg held;
  assign issued = step;
  assign column_re = column & {9{step}};

  fp16_walk #(
      .COLS(COLS),
      .PATH(PATH),
      .READ(READ)
  ) u_walk (
      .clk(clk),
      .rst(rst),
      .start(starts),
      .desc(desc),
      .a_last(a_last),
      .group_last(group_last),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .out_valid(word_valid),
      .out_ready(step),
      .out_data(word)
  );

  fp16_steps #(
      .ROWS     (ROWS),
      .N_Z      (N_Z),
      .WBUF_ROWS(WBUF_ROWS)
  ) u_steps (
      .clk(clk),
      .rst(rst),
      .start(starts),
      .desc(desc),
      .a_last(a_last),
      .group_last(group_last),
      .running(running),
      .done(done),
      .ring_row(ring),
      .wrow_filled(wrow_filled),
      .skip(skip),
      .skip_to(skip_to),
      .word_valid(word_valid),
      .held(held),
      .step(step),
      .first(first),
      .last(last),
      .column(column),
      .wrow(wrow),
      .part(part),
      .a_at(a_at),
      .group_at(group_at),
      .wait_tile(wait_tile),
      .wait_weight(wait_weight),
      .wait_output(wait_output)
  );

  // ---- contents of the stages: bit n is n + 1 cycles behind the step
  reg [7:0] valid_q, first_q;
  reg [8:0] last_q;
  always @(posedge clk) begin
    if (rst) begin
      valid_q <= 8'd0;
      last_q  <= 9'd0;
    end else begin
      valid_q <= {valid_q[6:0], step};
      last_q  <= {last_q[7:0], step && last};
    end
  end
  always @(posedge clk) first_q <= {first_q[6:0], first};

  // ---- operands: a word of B, and from a column of weights those of one part of the channels
  reg [8:0] column_q;
  reg [SW-1:0] part_q;
  reg [16*COLS-1:0] word_1, word_2;
  reg [16*N_Z-1:0] of_column;
  reg [16*ROWS-1:0] row_2;
  integer t;
  always @* begin
    of_column = {16 * N_Z{1'b0}};
    for (t = 0; t < 9; t = t + 1) begin
      of_column = of_column | (weights[16*N_Z*t+:16*N_Z] & {16 * N_Z{column_q[t]}});
    end
  end
  wire [16*ROWS-1:0] of_part;
  generate
    if (PARTS > 1) begin : g_parts
      assign of_part = of_column[16*ROWS*part_q+:16*ROWS];
    end else begin : g_whole
      assign of_part = of_column;
    end
  endgenerate
  always @(posedge clk) begin
    {column_q, part_q} <= {column, part};
    word_1 <= word;
    word_2 <= word_1;
    row_2 <= of_part;
  end
  assign lend_valid = valid_q[1];

  // ---- unpacked; exponents and kinds wait two cycles for the products
  wire [5*ROWS-1:0] exponent_a;
  wire [5*COLS-1:0] exponent_b;
  wire [4*ROWS-1:0] kind_a;  // negative, NaN, infinite, zero
  wire [4*COLS-1:0] kind_b;
  genvar i;
  generate
    for (i = 0; i < ROWS; i = i + 1) begin : g_row
      wire [4:0] exponent;
      wire [3:0] kind;
      reg [8:0] wait_1, wait_2;
      fp16_number u_number (
          .value(row_2[16*i+:16]),
          .mantissa(lend_a[11*i+:11]),
          .exponent(exponent),
          .negative(kind[3]),
          .nan(kind[2]),
          .infinite(kind[1]),
          .zero(kind[0])
      );
      always @(posedge clk) {wait_1, wait_2} <= {exponent, kind, wait_1};
      assign {exponent_a[5*i+:5], kind_a[4*i+:4]} = wait_2;
    end
    for (i = 0; i < COLS; i = i + 1) begin : g_column
      wire [4:0] exponent;
      wire [3:0] kind;
      reg [8:0] wait_1, wait_2;
      fp16_number u_number (
          .value(word_2[16*i+:16]),
          .mantissa(lend_b[11*i+:11]),
          .exponent(exponent),
          .negative(kind[3]),
          .nan(kind[2]),
          .infinite(kind[1]),
          .zero(kind[0])
      );
      always @(posedge clk) {wait_1, wait_2} <= {exponent, kind, wait_1};
      assign {exponent_b[5*i+:5], kind_b[4*i+:4]} = wait_2;
    end
  endgenerate

  // ---- lanes; the holding registers of a lane shift in from the lane ROUNDS behind it
  wire shift;
  wire [98*(LANES+ROUNDS)-1:0] sums;
  assign sums[98*LANES+:98*ROUNDS] = {98 * ROUNDS{1'b0}};
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      wire [3:0] a = kind_a[4*(i/COLS)+:4];
      wire [3:0] b = kind_b[4*(i%COLS)+:4];
      wire negative = a[3] ^ b[3];
      wire nan = a[2] || b[2] || (a[1] && b[0]) || (a[0] && b[1]);
      wire infinite = a[1] || b[1];
      fp16_lane u_lane (
          .clk(clk),
          .low(products[33*i+:19]),
          .high(products[33*i+19+:14]),
          .exponent_a(exponent_a[5*(i/COLS)+:5]),
          .exponent_b(exponent_b[5*(i%COLS)+:5]),
          .negative(negative),
          .special({nan || (infinite && negative), nan || (infinite && !negative)}),
          .valid(valid_q[7:6]),
          .first(first_q[7:6]),
          .last(last_q[8:7]),
          .shift(shift),
          .next(sums[98*(i+ROUNDS)+:98]),
          .sum(sums[98*i+:98])
      );
    end
  endgenerate

  // ---- drain: sums are held from the last step on, until all are shifted out
  reg leaves;
  reg [5:0] left;
  wire move;
  reg [5:0] round_valid;
  wire [32*ROUNDS-1:0] rounded;
  assign shift = leaves && move;
  wire shifts_end = shift && left == 6'd0;
  always @(posedge clk) begin
    if (rst) begin
      held <= 1'b0;
      leaves <= 1'b0;
      round_valid <= 6'd0;
    end else begin
      held <= (step && last) || (held && !shifts_end);
      leaves <= last_q[8] || (leaves && !shifts_end);
      round_valid <= move ? {round_valid[4:0], leaves} : round_valid;
    end
  end
  always @(posedge clk) begin
    if (last_q[8]) left <= SHIFTS;
    else if (shift) left <= left - 6'd1;
    else left <= left;
  end
  generate
    for (i = 0; i < ROUNDS; i = i + 1) begin : g_round
      fp16_round u_round (
          .clk  (clk),
          .move (move),
          .wide (desc[`DESC_FP32]),
          .sum  (sums[98*i+:98]),
          .value(rounded[32*i+:32])
      );
    end
  endgenerate

  wire write_busy;
  fp16_write #(
      .COLS  (COLS),
      .ROWS  (ROWS),
      .ROUNDS(ROUNDS),
      .PATH  (PATH)
  ) u_write (
      .clk(clk),
      .rst(rst),
      .start(starts),
      .desc(desc),
      .group_last(group_last),
      .row_bytes(row_bytes),
      .busy(write_busy),
      .move(move),
      .in_valid(round_valid[5]),
      .in_data(rounded),
      .writeback_req(writeback_req),
      .writeback(writeback),
      .writeback_gnt(writeback_gnt)
  );
  assign busy = starts || write_busy;

  // ---- multiplications of a step: existing lanes, counted in the column of their lower half
  localparam integer L = N_Y * N_Z;
  wire [10:0] rows_there = desc[`DESC_O] - (a_at << RB);
  wire [19:0] bytes_there = b_bytes - ({6'd0, group_at} << GB);
  reg [LANES-1:0] there;
  wire [71:0] counted;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_there
      localparam integer Q = i / COLS;
      localparam integer C = 2 * (i % COLS);
      always @(posedge clk) there[i] <= step && rows_there > Q[10:0] && bytes_there > C[19:0];
    end
    for (i = 0; i < 9; i = i + 1) begin : g_count
      if (i % 2 == 0 && i / 2 * L < LANES && i < 8) begin : g_lanes
        localparam integer FROM = i / 2 * L;
        localparam integer COUNT = (LANES - FROM < L) ? LANES - FROM : L;
        reg [7:0] count;
        integer n;
        always @* begin
          count = 8'd0;
          for (n = 0; n < COUNT; n = n + 1) count = count + {7'd0, there[FROM+n]};
        end
        assign counted[8*i+:8] = count;
      end else begin : g_none
        assign counted[8*i+:8] = 8'd0;
      end
    end
  endgenerate
  always @(posedge clk) begin
    if (rst) macs <= 72'd0;
    else macs <= counted;
  end

  generate
    if (LANES < 4 || (LANES & (LANES - 1)) != 0 || LANES > 4 * L || ROWS > N_Z || N_Y > MOST) begin : g_illegal
      ILLEGAL_FP16_LANES u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, desc, running, b_top, part_q};

endmodule

`resetall
