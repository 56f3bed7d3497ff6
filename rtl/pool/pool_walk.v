// SPDX-License-Identifier: Apache-2.0
//
// pool_walk: reads the map of a pooling task in blocks of 16 bytes, in the order of its windows.
//
// How it works: the walk is channel > line of windows > block of a line > line of the window. A block is
// 16 columns of one channel, whatever PATH is. Lines above and below the map and blocks beyond its right
// edge are blocks without a read: none of their bytes count. A whole-map window is walked in chunks of
// UNIT lines, the last one of up to 2 * UNIT - 1, so that no chunk is shorter than the time its columns
// need. The next block is a registered request, so that one block per cycle can be read, and a request is
// issued only when a buffer entry is free for it.
// Handshake: begins with start, when the constants of pool_setup are ready. fill_req is held until
// fill_gnt, data arrive READ cycles later and leave at once: got; freed pulses for each entry that
// becomes free.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_walk #(
    // bytes of a word of the AI RAM
    parameter PATH   = 64,
    // lines of a chunk of a whole map: 8 or 16
    parameter UNIT   = 16,
    // buffer entries for blocks
    parameter PLACES = 6,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ   = 1,
    // derived, not to be set: bits of a byte index in a word
    parameter PB     = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer; its constants from pool_setup
    input  wire                   start,
    input  wire [ `DESC_BITS-1:0] desc,
    input  wire                   all,
    input  wire [            8:0] kh_m1,
    input  wire [            8:0] step_rows,
    input  wire [            6:0] top_rows,
    input  wire [           10:0] last_end,
    // read port of the AI RAM
    output reg                    fill_req,
    output reg  [        20-PB:0] fill_word,
    input  wire                   fill_gnt,
    input  wire [     8*PATH-1:0] fill_data,
    // blocks: 16 bytes, valid bytes and position; an entry becomes free
    output wire                   got,
    output wire [          127:0] got_data,
    output wire [`PIECE_BITS-1:0] got_piece,
    input  wire                   freed
);

  localparam [4:0] ALL_USED = PLACES[4:0];
  localparam integer BLOCKS = PATH / 16;  // of a word
  localparam integer UB = $clog2(UNIT);

  wire [`PTASK_BITS-1:0] task_arg = desc[`DESC_PTASK];
  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [1:0] ip = desc[`DESC_IP];
  wire [14:0] irl = {10'd0, desc[`DESC_IRL]};
  wire [10:0] y_first = {8'd0, task_arg[`PTASK_TOP]};
  wire [10:0] sy = {7'd0, task_arg[`PTASK_SY_M1]} + 11'd1;
  wire [5:0] last_k = last_end[9:4];

  // ---- the walk
  reg active;
  reg [9:0] chan_left;
  reg [8:0] lines_left;
  reg [8:0] r;  // line of the window
  reg fresh;  // it is the first of a chunk
  reg [5:0] k;  // block of the line
  reg [10:0] y_top, y;  // line of the map, also above it
  reg [10:0] rest;  // pixels of a line from this block on
  reg [14:0] chan_row, top_row, row;
  reg [1:0] sub;  // channel in its row

  // last line, last block: registered, because long logic follows
  reg r_end, k_last;
  wire [8:0] r_next = r + 9'd1;
  wire [5:0] k_next = k + 6'd1;
  // end of a unit of lines, unless the next unit is the last and incomplete
  wire [9-UB:0] whole_units = n_h[9:UB];
  wire unit_end = r[UB-1:0] == {UB{1'b1}} && {1'b0, r[8:UB]} + 1'b1 < whole_units;
  wire chunk_end = r_end || (all && unit_end);
  wire k_end = r_end && k_last;
  wire y_end = k_end && lines_left == 9'd0;
  wire c_end = y_end && chan_left == 10'd0;
  // channels per row: 4, 2, 1
  wire row_end = (ip == 2'd0) ? sub == 2'd3 : (ip == 2'd1) ? sub == 2'd1 : 1'b1;

  wire go;
  wire [14:0] above = {8'd0, top_rows};
  wire [14:0] next_chan = row_end ? chan_row + {1'b0, desc[`DESC_ICS]} : chan_row;
  // a line of blocks begins; a channel, the first one with start
  wire first_k = start || k_last;
  wire begins = start || y_end;
  wire [14:0] new_chan = start ? desc[`DESC_SRC] : next_chan;
  wire [14:0] next_top = begins ? new_chan - above : top_row + {6'd0, step_rows};
  wire [10:0] next_y = begins ? 11'd0 - y_first : y_top + (all ? 11'd0 : sy);
  wire [13:0] chans = desc[`DESC_C];  // 1024 at most
  wire [10:0] chans_m1 = chans[10:0] - 11'd1;
  wire [9:0] out_m1 = desc[`DESC_OH] - 10'd1;

  always @(posedge clk) begin
    if (rst) active <= 1'b0;
    else active <= start || (active && !(go && c_end));
  end

  always @(posedge clk) begin
    if (start || (go && y_end)) begin
      chan_left <= start ? chans_m1[9:0] : chan_left - 10'd1;
      chan_row <= new_chan;
      sub <= (start || row_end) ? 2'd0 : sub + 2'd1;
    end
  end

  always @(posedge clk) begin
    if (start || (go && k_end)) begin
      lines_left <= begins ? out_m1[8:0] : lines_left - 9'd1;
      top_row <= next_top;
      y_top <= next_y;
    end
  end

  always @(posedge clk) begin
    if (start || (go && r_end)) begin
      {r, r_end} <= {9'd0, kh_m1 == 9'd0};
      {k, k_last} <= first_k ? {6'd0, last_k == 6'd0} : {k_next, k_next == last_k};
      rest <= first_k ? n_w : (rest > 11'd16) ? rest - 11'd16 : 11'd0;
      {row, y} <= first_k ? {next_top, next_y} : {top_row, y_top};
    end else if (go) begin
      {r, r_end} <= {r_next, r_next == kh_m1};
      {row, y}   <= {row + irl, y + 11'd1};
    end
  end

  // ---- a request, then its data
  wire on_map = !y[10] && y[9:0] < n_h;
  wire [4:0] count = !on_map ? 5'd0 : (rest > 11'd16) ? 5'd16 : rest[4:0];
  wire [16:0] block = {row, 2'b00} + {15'd0, (ip == 2'd1) ? {sub[0], 1'b0} : sub} + {11'd0, k};

  reg req_valid;
  reg [`PIECE_BITS-1:0] req_piece;
  reg [4:0] used;  // entries in use or reserved
  reg [READ-1:0] on_way;  // blocks in flight, their pieces
  reg [`PIECE_BITS*READ-1:0] pieces;
  wire [READ:0] on_way_next;
  wire [`PIECE_BITS*(READ+1)-1:0] pieces_next = {pieces, req_piece};
  assign got = on_way[READ-1];
  assign got_piece = pieces[`PIECE_BITS*READ-1-:`PIECE_BITS];
  wire done = req_valid && (!fill_req || fill_gnt);
  assign on_way_next = {on_way, done};
  assign go = active && used != ALL_USED && (!req_valid || done);

  always @(posedge clk) begin
    if (rst) begin
      req_valid <= 1'b0;
      fill_req <= 1'b0;
      on_way <= {READ{1'b0}};
      used <= 5'd0;
    end else begin
      req_valid <= go || (req_valid && !done);
      fill_req <= go ? count != 5'd0 : fill_req && !fill_gnt;
      on_way <= on_way_next[READ-1:0];
      used <= used + {4'd0, go} - {4'd0, freed};
    end
  end

  always @(posedge clk) begin
    if (go) begin
      fill_word <= block[16:PB-4];
      req_piece[`PIECE_COUNT] <= count;
      req_piece[`PIECE_ON_MAP] <= on_map;
      req_piece[`PIECE_FIRST] <= fresh;
      req_piece[`PIECE_LAST] <= chunk_end;
      req_piece[`PIECE_FINAL] <= r_end;
      req_piece[`PIECE_LINE_FIRST] <= k == 6'd0;
      req_piece[`PIECE_LINE_LAST] <= k_last;
    end
    pieces <= pieces_next[`PIECE_BITS*READ-1:0];
  end
  always @(posedge clk) fresh <= start ? 1'b1 : go ? chunk_end : fresh;

  // 16 bytes of the word
  generate
    if (BLOCKS > 1) begin : g_part
      reg [PB-5:0] req_part;
      reg [(PB-4)*READ-1:0] parts;
      wire [(PB-4)*(READ+1)-1:0] parts_next = {parts, req_part};
      wire [PB-5:0] got_part = parts[(PB-4)*READ-1-:PB-4];
      always @(posedge clk) begin
        if (go) req_part <= block[PB-5:0];
        parts <= parts_next[(PB-4)*READ-1:0];
      end
      assign got_data = fill_data[128*got_part+:128];
      wire unused_part = &{1'b0, parts_next};
    end else begin : g_whole
      assign got_data = fill_data;
    end
  endgenerate

  wire unused = &{1'b0, desc, chans, task_arg, last_end, out_m1[9], chans_m1[10], on_way_next, pieces_next};

endmodule

`resetall
