// SPDX-License-Identifier: Apache-2.0
//
// pool_task: pooling tasks, maximum, minimum and average of any window over a map in the AI RAM.
//
// How it works: independent of the array. pool_walk reads the map in blocks of 16 columns, the lines of a
// window one after the other; pool_parts cuts them into pieces of 4 * LANES columns, 16 at most;
// pool_columns computes the maxima or sums of all windows that end in these columns; pool_pick selects
// the wanted ones and divides; pool_write writes the bytes to the output map. All stages work in
// parallel, each on its own piece.
// Handshake: start with the descriptor of a pooling task, which is held; busy until the last word is
// written, done a cycle later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_task #(
    // windows divided in parallel: 1, 2, 4 or 8
    parameter LANES = 4,
    // bytes of a word of the AI RAM
    parameter PATH  = 64,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ  = 1,
    // derived, not to be set: bits of a byte index in a word
    parameter PB    = $clog2(PATH)
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
    input  wire                      writeback_gnt
);

  localparam CW = $clog2(LANES) + 1;
  localparam COLS = (LANES >= 4) ? 16 : 4 * LANES;  // columns of a piece
  localparam SB = (COLS == 16) ? 17 : 16;  // bits of a window's sum
  localparam UNIT = (COLS == 16) ? 16 : 8;  // lines of a chunk of a whole map; twice as many fit SB
  localparam PLACES = (COLS == 16) ? 6 : 16;  // for blocks

  wire ready, all, of_many, sums, map_only, gate;
  wire [7:0] turn, outside;
  wire [8:0] kh_m1, step_rows;
  wire [6:0] top_rows;
  wire [3:0] kw_m1, first_end;
  wire [ 4:0] sx;
  wire [10:0] last_end;
  wire [18:0] pixels;
  wire got, freed, piece_valid, piece_ready, sum_valid, sum_ready, sum_first, sum_last;
  wire [127:0] got_data;
  wire [8*COLS-1:0] piece_data;
  wire [`PIECE_BITS-1:0] got_piece, piece;
  wire [SB*COLS-1:0] sum;
  wire [4:0] sum_lines;
  wire move, byte_valid, byte_end;
  wire [8*LANES-1:0] byte_data;
  wire [CW-1:0] byte_count;

  // the walk begins when the constants are ready
  reg waits, was_busy;
  wire begin_walk = waits && ready;
  always @(posedge clk) begin
    if (rst) {waits, was_busy} <= 2'b00;
    else {waits, was_busy} <= {start || (waits && !ready), busy};
  end
  assign done = was_busy && !busy;

  pool_setup #(
      .COLS(COLS)
  ) u_setup (
      .clk(clk),
      .rst(rst),
      .start(start),
      .desc(desc),
      .ready(ready),
      .all(all),
      .sums(sums),
      .map_only(map_only),
      .gate(gate),
      .turn(turn),
      .outside(outside),
      .kh_m1(kh_m1),
      .kw_m1(kw_m1),
      .sx(sx),
      .step_rows(step_rows),
      .top_rows(top_rows),
      .first_end(first_end),
      .last_end(last_end),
      .pixels(pixels),
      .of_many(of_many)
  );

  pool_walk #(
      .PATH  (PATH),
      .UNIT  (UNIT),
      .PLACES(PLACES),
      .READ  (READ)
  ) u_walk (
      .clk(clk),
      .rst(rst),
      .start(begin_walk),
      .desc(desc),
      .all(all),
      .kh_m1(kh_m1),
      .step_rows(step_rows),
      .top_rows(top_rows),
      .last_end(last_end),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .got(got),
      .got_data(got_data),
      .got_piece(got_piece),
      .freed(freed)
  );

  pool_parts #(
      .COLS  (COLS),
      .PLACES(PLACES)
  ) u_parts (
      .clk(clk),
      .rst(rst),
      .last_place(last_end[3:0]),
      .got(got),
      .got_data(got_data),
      .got_piece(got_piece),
      .freed(freed),
      .piece_valid(piece_valid),
      .piece_ready(piece_ready),
      .piece_data(piece_data),
      .piece(piece)
  );

  pool_columns #(
      .COLS(COLS)
  ) u_columns (
      .clk(clk),
      .rst(rst),
      .sums(sums),
      .gate(gate),
      .turn(turn),
      .outside(outside),
      .kw_m1(kw_m1),
      .piece_valid(piece_valid),
      .piece_ready(piece_ready),
      .piece_data(piece_data),
      .piece(piece),
      .sum_valid(sum_valid),
      .sum_ready(sum_ready),
      .sum(sum),
      .sum_lines(sum_lines),
      .sum_first(sum_first),
      .sum_last(sum_last)
  );

  pool_pick #(
      .LANES(LANES),
      .COLS (COLS),
      .SB   (SB)
  ) u_pick (
      .clk(clk),
      .rst(rst),
      .all(all),
      .of_many(of_many),
      .sums(sums),
      .map_only(map_only),
      .turn(turn),
      .n_w(desc[`DESC_W]),
      .kw_m1(kw_m1),
      .sx(sx),
      .first_end(first_end),
      .last_end(last_end),
      .pixels(pixels),
      .sum_valid(sum_valid),
      .sum_ready(sum_ready),
      .sum(sum),
      .sum_lines(sum_lines),
      .sum_first(sum_first),
      .sum_last(sum_last),
      .move(move),
      .out_valid(byte_valid),
      .out_byte(byte_data),
      .out_count(byte_count),
      .out_end(byte_end)
  );

  pool_write #(
      .LANES(LANES),
      .PATH (PATH)
  ) u_write (
      .clk(clk),
      .rst(rst),
      .start(start),
      .desc(desc),
      .busy(busy),
      .move(move),
      .in_valid(byte_valid),
      .in_byte(byte_data),
      .in_count(byte_count),
      .in_end(byte_end),
      .writeback_req(writeback_req),
      .writeback(writeback),
      .writeback_gnt(writeback_gnt)
  );

  generate
    if (LANES != 1 && LANES != 2 && LANES != 4 && LANES != 8) begin : g_illegal_lanes
      ILLEGAL_POOL_LANES_1_2_4_8 u_illegal ();
    end
  endgenerate

endmodule

`resetall
