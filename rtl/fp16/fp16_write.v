// SPDX-License-Identifier: Apache-2.0
//
// fp16_write: writes the results of a product of float16 matrices to the AI RAM, row by row.
//
// How it works: results arrive in the order of the lanes, columns of a row first. They are collected into
// a piece of the size of a group of float16; a group of float32 is two pieces. Rows of C are channels of
// a map at a fixed distance, as in fp16_walk. Pieces beyond the rows or columns of C are dropped, and the
// last piece of a row uses byte enables.
// Handshake: results are accepted while move is high; a word waits with writeback_req until
// writeback_gnt. busy from start until the last word is written.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fp16_write #(
    // columns of a group, rows of A processed together, results per cycle; bytes of a word of the AI RAM
    parameter COLS   = 8,
    parameter ROWS   = 1,
    parameter ROUNDS = 1,
    parameter PATH   = 16,
    // derived, not to be set: bits of a byte index in a word
    parameter PB     = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer; groups of columns less one, bytes of a row of C
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    input  wire [              13:0] group_last,
    input  wire [              20:0] row_bytes,
    output reg                       busy,
    // results
    output wire                      move,
    input  wire                      in_valid,
    input  wire [     32*ROUNDS-1:0] in_data,
    // write port of the AI RAM
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt
);

  localparam integer GROUP = 2 * COLS;  // bytes of a piece
  localparam integer UNIT = (GROUP < 16) ? GROUP : 16;
  localparam integer UNITS = PATH / UNIT;
  localparam integer MINE = GROUP / UNIT;
  localparam integer BW = $clog2(GROUP) + 1;  // a byte count
  localparam [20:0] STEP = GROUP[20:0];
  localparam integer NARROW_I = GROUP / (2 * ROUNDS) - 1;  // groups of results in a piece, less one
  localparam integer WIDE_I = GROUP / (4 * ROUNDS) - 1;
  localparam [5:0] NARROW = NARROW_I[5:0];
  localparam [5:0] WIDE = WIDE_I[5:0];
  localparam integer Q_TOP = ROWS - 1;
  localparam [5:0] Q_LAST = Q_TOP[5:0];

  wire wide = desc[`DESC_FP32];
  wire [1:0] op = desc[`DESC_OP];
  wire [20:0] pitch = (op == 2'd0) ? 21'd16 : (op == 2'd1) ? 21'd32 : {1'b0, desc[`DESC_OCS], 6'd0};
  wire [20:0] base = {desc[`DESC_DST], 6'd0};

  wire room;
  assign move = room;
  wire got = in_valid && move;

  // ---- results to pieces
  wire [16*ROUNDS-1:0] halves;
  genvar i;
  generate
    for (i = 0; i < ROUNDS; i = i + 1) begin : g_half
      assign halves[16*i+:16] = in_data[32*i+:16];
    end
  endgenerate
  reg [8*GROUP-1:0] piece;
  wire [8*GROUP-1:0] wide_piece, narrow_piece;
  generate
    if (GROUP == 4 * ROUNDS) begin : g_whole
      assign wide_piece = in_data;
    end else begin : g_shift
      assign wide_piece = {in_data, piece[8*GROUP-1:32*ROUNDS]};
    end
  endgenerate
  assign narrow_piece = {halves, piece[8*GROUP-1:16*ROUNDS]};
  wire [8*GROUP-1:0] new_piece = wide ? wide_piece : narrow_piece;
  reg  [        5:0] have;
  wire               full = got && have == (wide ? WIDE : NARROW);
  always @(posedge clk) begin
    if (rst || start) have <= 6'd0;
    else if (got) have <= full ? 6'd0 : have + 6'd1;
    else have <= have;
  end
  always @(posedge clk) begin
    if (got) piece <= new_piece;
    else piece <= piece;
  end

  // ---- the walk over C: group of rows > group of columns > row > piece
  reg second;  // piece of a row
  reg [5:0] q;  // row of the group
  reg [10:0] rows_left;  // from the group's first row on
  reg [13:0] group_left;
  reg [20:0] first, row_at, from;  // bytes: the group's first row, this row; piece in its row
  wire row_end = full && (!wide || second);
  wire group_end = row_end && q == Q_LAST;
  wire a_end = group_end && group_left == 14'd0;
  wire [20:0] next_row = row_at + pitch;
  wire rows_over = rows_left <= {5'd0, Q_LAST} + 11'd1;  // no rows remain after this group
  wire c_end = a_end && rows_over;
  wire [20:0] next_from = from + STEP;
  always @(posedge clk) begin
    if (start) begin
      {second, q} <= 7'd0;
      {rows_left, group_left} <= {desc[`DESC_O], group_last};
      {first, row_at, from} <= {base, base, 21'd0};
    end else if (full) begin
      second <= wide && !second;
      q <= !row_end ? q : group_end ? 6'd0 : q + 6'd1;
      rows_left <= a_end ? rows_left - {5'd0, Q_LAST} - 11'd1 : rows_left;
      group_left <= !group_end ? group_left : a_end ? group_last : group_left - 14'd1;
      first <= a_end ? next_row : first;
      row_at <= !row_end ? row_at : (group_end && !a_end) ? first : next_row;
      from <= a_end ? 21'd0 : (!row_end || group_end) ? next_from : wide ? from - STEP : from;
    end else begin
      second <= second;
    end
  end

  // ---- to the AI RAM: valid bytes of the piece
  wire [20:0] rest = row_bytes - from;
  wire behind = from >= row_bytes || {5'd0, q} >= rows_left;
  wire [BW-1:0] count = (rest >= STEP) ? STEP[BW-1:0] : rest[BW-1:0];
  wire [20:0] at = row_at + from;
  wire [20:0] to_at;
  wire [BW-1:0] to_count;
  wire [8*GROUP-1:0] to_data;
  wire empty;
  wire [20+BW+8*GROUP:0] unused_next;
  fifo_regs #(
      .WIDTH (21 + BW + 8 * GROUP),
      .DEPTH (2),
      .BYPASS(1)
  ) u_words (
      .clk(clk),
      .rst(rst),
      .flush(1'b0),
      .in_valid(full && !behind),
      .in_ready(room),
      .in_data({at, count, new_piece}),
      .out_valid(writeback_req),
      .out_ready(writeback_gnt),
      .out_data({to_at, to_count, to_data}),
      .next_data(unused_next),
      .empty(empty)
  );
  // short rows: two or four per 64 bytes, each with only the first bytes of a piece
  wire [2:0] mask = (op == 2'd0) ? 3'd0 : (op == 2'd1) ? 3'd1 : 3'd7;
  wire [8*PATH-1:0] data;
  generate
    for (i = 0; i < UNITS; i = i + 1) begin : g_unit
      localparam integer AT = i % MINE;
      localparam [2:0] I = AT[2:0];
      if (MINE == 1) begin : g_one
        assign data[8*UNIT*i+:8*UNIT] = to_data;
      end else begin : g_some
        wire [2:0] own = I & mask;
        assign data[8*UNIT*i+:8*UNIT] = to_data[8*UNIT*own+:8*UNIT];
      end
    end
  endgenerate
  wire [PATH-1:0] ones = {PATH{1'b1}};
  wire [PATH-1:0] enabled = ~(ones << to_count);
  assign writeback[`ROWWRITE_DATA] = data;
  assign writeback[`ROWWRITE_WORD] = to_at[20:PB];
  assign writeback[`ROWWRITE_BE] = enabled << to_at[PB-1:0];
  // its map leaves only when complete
  assign writeback[`ROWWRITE_CHANS] = 7'd0;

  reg ended;
  always @(posedge clk) begin
    if (rst) begin
      busy  <= 1'b0;
      ended <= 1'b0;
    end else begin
      busy  <= start || (busy && !(ended && empty));
      ended <= !start && (ended || c_end);
    end
  end

  wire unused = &{1'b0, desc, mask, unused_next};

endmodule

`resetall
