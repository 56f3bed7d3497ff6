// SPDX-License-Identifier: Apache-2.0
//
// write_back: pools finished stripes and writes them to the AI RAM in its layout.
//
// How it works: out_walk reads the collector's stripes word by word and computes the destination of each
// output line. An unpooled line (or depthwise row) leaves the collector already aligned in the word, and
// is written at once; a pooled one leaves pool_line, is rotated into position, and may need a second
// write when it crosses the end of a word (only stride-1 pools do). A piece of a flat layer's line is
// rotated likewise, a cycle after it is read.
// Byte(c, y, x) = dst * 64 + (c / g) * ocs * 64 + y * orl * 64 + (c mod g) * pitch + x.
// Handshake: all stages advance while the write port is free; waits for the AI RAM (writeback_req until
// writeback_gnt). The collector entry is released when the last word of the job is read.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module write_back #(
    // output channels of the array
    parameter N_Z = 4,
    // bytes of a word of the AI RAM
    parameter PATH = 64,
    // 1: the collector outputs two depthwise rows at once; 1: maps of 1x1 layers may be one line
    parameter PAIR = 0,
    parameter FLAT_MAPS = 0,
    // width of a collector entry number
    parameter EW = 3,
    // derived, not to be set: widths of a bank index, of a byte index in a word; bytes per read of the
    // collector
    parameter ZW = $clog2(N_Z),
    parameter PB = $clog2(PATH),
    parameter RW = (PATH > 64) ? 64 << PAIR : PATH
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer
    input  wire [`DESC_BITS-1:0] desc,
    // jobs of the collector: first entry, first channel, channels, origin, size in the computed grid,
    // completes its channels
    input  wire                  job_valid,
    output wire                  job_ready,
    input  wire [        EW-1:0] job_entry,
    input  wire [           9:0] job_chan,
    input  wire [           1:0] job_plane,
    input  wire [          ZW:0] job_nz,
    input  wire [           9:0] job_gx,
    input  wire [           8:0] job_gy,
    input  wire [           6:0] job_width,
    input  wire [           2:0] job_lines,
    input  wire                  job_whole,
    output wire                  release_one,
    // word of an entry, with the target position of its bytes
    output wire                  rd_en,
    output wire [        EW-1:0] rd_entry,
    output wire [           1:0] rd_word,
    output wire [           2:0] rd_turn,
    input  wire [      8*RW-1:0] rd_data,
    // AI RAM write port; channels complete with a write
    output reg                   writeback_req,
    output wire [       20-PB:0] writeback_word,
    output wire [      PATH-1:0] writeback_be,
    output wire [    8*PATH-1:0] writeback_data,
    output wire [           6:0] writeback_chans,
    input  wire                  writeback_gnt,
    // nothing in flight
    output wire                  idle
);

  // an operation of the pools or a line lies in one row: of 128 bytes a row is half a word
  localparam integer WORD = (PATH > 64) ? 64 : PATH;
  localparam integer WB = $clog2(WORD);
  localparam integer NS = WORD / 16;  // slots of it
  localparam integer OUT = (WORD == 16) ? 8 : 16;  // pooled pixels per cycle
  localparam integer TURN = (FLAT_MAPS != 0) ? 16 : OUT;  // bytes that are rotated
  localparam integer RB = $clog2(TURN);
  localparam integer HALF_I = (WORD == 16) ? 16 : 32;
  localparam [WB:0] SLOT = 16;
  localparam [WB:0] HALF = HALF_I[WB:0];

  wire dwrow = desc[`DESC_MODE] == `MODE_DWROW;
  wire [1:0] wide = dwrow ? desc[`DESC_OP] : desc[`DESC_SWL] == 3'd4 ? 2'd0 :
      desc[`DESC_SWL] == 3'd5 ? 2'd1 : 2'd2;  // log2 of the slots of a line
  wire [2:0] pool = desc[`DESC_POOL];
  wire flat = FLAT_MAPS != 0 && desc[`DESC_FLAT];
  wire plain = pool == `POOL_NONE && !flat;
  wire move;  // all stages advance

  // ---- the word read
  wire walk_idle;
  wire r_valid;
  wire r_out;
  wire [14:0] r_row_a, r_row_b;
  wire [5:0] r_at;
  wire [6:0] r_count;
  wire [3:0] r_turn;
  wire [NS-1:0] r_slots;
  wire r_two, r_whole;
  wire [4:0] r_width;
  wire [1:0] r_below;
  out_walk #(
      .N_Z(N_Z),
      .PATH(WORD),
      .PAIR(PAIR),
      .FLAT_MAPS(FLAT_MAPS),
      .EW(EW)
  ) u_walk (
      .clk        (clk),
      .rst        (rst),
      .desc       (desc),
      .wide       (wide),
      .move       (move),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job_entry  (job_entry),
      .job_chan   (job_chan),
      .job_plane  (job_plane),
      .job_nz     (job_nz),
      .job_gx     (job_gx),
      .job_gy     (job_gy),
      .job_width  (job_width),
      .job_lines  (job_lines),
      .job_whole  (job_whole),
      .release_one(release_one),
      .rd_en      (rd_en),
      .rd_entry   (rd_entry),
      .rd_word    (rd_word),
      .rd_turn    (rd_turn),
      .r_valid    (r_valid),
      .r_out      (r_out),
      .r_row_a    (r_row_a),
      .r_row_b    (r_row_b),
      .r_at       (r_at),
      .r_count    (r_count),
      .r_turn     (r_turn),
      .r_slots    (r_slots),
      .r_two      (r_two),
      .r_whole    (r_whole),
      .r_width    (r_width),
      .r_below    (r_below),
      .idle       (walk_idle)
  );

  // ---- pooled: four more cycles
  wire [8*OUT-1:0] pooled;
  pool_line #(
      .PATH(WORD)
  ) u_pool (
      .clk   (clk),
      .en    (move),
      .pool  (pool),
      .narrow(wide == 2'd0),
      .sgn   (desc[`DESC_SOUT]),
      .word  (rd_data[8*WORD-1:0]),
      .last  (!r_valid || r_out),
      .width (r_width),
      .below (r_below),
      .pooled(pooled)
  );

  // control that travels with it: a line to write, the last one, its row, byte and count
  localparam integer TAGS = 4;
  localparam integer TW = 1 + 15 + 6 + 5;
  wire [14:0] r_row = r_row_a + r_row_b;
  reg [TAGS-1:0] tag_valid;
  reg [TAGS*TW-1:0] tag;
  always @(posedge clk) begin
    if (rst) tag_valid <= {TAGS{1'b0}};
    else if (move)
      tag_valid <= {tag_valid[TAGS-2:0] & {(TAGS - 1) {!flat}}, r_valid && r_out && !plain};
  end
  always @(posedge clk) begin
    if (move) tag <= {tag[(TAGS-1)*TW-1:0], r_whole, r_row, r_at, r_count[4:0]};
  end
  wire p_valid = flat ? tag_valid[0] : tag_valid[TAGS-1];
  wire p_whole;
  wire [14:0] p_row;
  wire [5:0] p_at;
  wire [4:0] p_count;  // 16 at most
  assign {p_whole, p_row, p_at, p_count} = flat ? tag[TW-1:0] : tag[TAGS*TW-1-:TW];

  // rotation: byte 0 of the line moves to byte p_at of the word; of a flat layer slot 0 is rotated
  wire [3:0] by;
  wire [8*TURN-1:0] turned;
  genvar s;
  generate
    if (FLAT_MAPS != 0) begin : g_flat
      reg [127:0] slot;
      reg [  3:0] turn;
      always @(posedge clk) begin
        if (move) begin
          slot <= rd_data[127:0];
          turn <= r_turn;
        end
      end
      assign by = flat ? turn : p_at[3:0];
      assign turned = flat ? slot : {(16 / OUT) {pooled}};
    end else begin : g_lines
      assign by = p_at[3:0];
      assign turned = pooled;
      wire unused_turn = &{1'b0, r_turn};
    end
    for (s = 0; s <= RB; s = s + 1) begin : g_turn
      wire [8*TURN-1:0] bytes;
      if (s == 0) begin : g_from
        assign bytes = turned;
      end else begin : g_rotate
        localparam integer BY = 8 << (s - 1);
        assign bytes = by[s-1] ?
            {g_turn[s-1].bytes[8*TURN-BY-1:0], g_turn[s-1].bytes[8*TURN-1:8*TURN-BY]} :
            g_turn[s-1].bytes;
      end
    end
  endgenerate

  // ---- the write: address and byte enables of this word and, for a line that crosses its end, of the
  // next
  wire w_valid = plain ? r_valid : p_valid;
  wire [14:0] w_row = plain ? r_row : p_row;
  wire [5:0] w_at = plain ? r_at : p_at;
  wire [20:0] w_byte = {w_row, w_at};
  wire [WB:0] w_from = {1'b0, w_at[WB-1:0]};
  wire [6:0] w_count = plain ? r_count : {2'd0, p_count};
  wire [WB:0] w_to = w_from + w_count[WB:0];
  wire w_cross = w_to[WB] && w_to[WB-1:0] != {WB{1'b0}};
  wire [WORD-1:0] from_here = {WORD{1'b1}} << w_at[WB-1:0];
  wire [WORD-1:0] not_yet = {WORD{1'b1}} << w_to[WB-1:0];  // bytes beyond the end
  wire [NS-1:0] slots = r_slots | {NS{!dwrow}};
  wire [WORD-1:0] be;
  generate
    for (s = 0; s < WORD; s = s + 1) begin : g_be
      // a depthwise word may hold several lines: the first one's enables repeat for each existing line
      wire up_to = (dwrow && wide == 2'd0) ? !not_yet[s%16] || w_to >= SLOT :
          (dwrow && wide == 2'd1) ? !not_yet[s%32] || w_to >= HALF : !not_yet[s] || w_to[WB];
      assign be[s] = from_here[s] && up_to && slots[s/16];
    end
  endgenerate

  reg [20-WB:0] row_word;
  reg [WORD-1:0] row_be;
  reg [8*WORD-1:0] row_data;
  assign writeback_word = row_word[20-WB:PB-WB];
  generate
    if (PATH > WORD) begin : g_halves
      wire both;
      assign writeback_be = {row_be & {WORD{row_word[0] || both}}, row_be & {WORD{!row_word[0]}}};
      if (PAIR != 0) begin : g_two
        reg [8*WORD-1:0] above;
        reg two;
        always @(posedge clk) begin
          if (move && w_valid) begin
            above <= rd_data[8*RW-1-:8*WORD];
            two   <= plain && r_two;
          end
        end
        assign both = two;
        assign writeback_data = {two ? above : row_data, row_data};
      end else begin : g_row
        assign both = 1'b0;
        assign writeback_data = {2{row_data}};
      end
    end else begin : g_whole
      assign writeback_be   = row_be;
      assign writeback_data = row_data;
    end
  endgenerate

  // channels complete with the last write of a job: a group, those of a row, one
  reg whole;
  wire one_chan = desc[`DESC_DW] || desc[`DESC_MODE] == `MODE_FC;
  wire [6:0] chans = dwrow ? {4'd0, 3'd4 >> desc[`DESC_OP]} : one_chan ? 7'd1 : N_Z[6:0];
  reg more;  // the line continues in the next word
  assign writeback_chans = (whole && !more) ? chans : 7'd0;
  reg [WORD-1:0] next_be;
  assign move = !writeback_req || (writeback_gnt && !more);

  always @(posedge clk) begin
    if (rst) begin
      writeback_req <= 1'b0;
      more          <= 1'b0;
    end else if (move) begin
      writeback_req <= w_valid;
      more          <= w_valid && !plain && w_cross;
    end else if (writeback_gnt) begin
      more <= 1'b0;
    end
  end

  always @(posedge clk) begin
    if (move) begin
      if (w_valid) begin
        whole    <= plain ? r_whole : p_whole;
        row_word <= w_byte[20:WB];
        row_be   <= be;
        next_be  <= ~not_yet;
        row_data <= plain ? rd_data[8*WORD-1:0] : {(WORD / TURN) {g_turn[RB].bytes}};
      end
    end else if (writeback_gnt) begin
      row_word <= row_word + {{(20 - WB) {1'b0}}, 1'b1};
      row_be   <= next_be;
    end
  end

  assign idle = walk_idle && !r_valid && tag_valid == {TAGS{1'b0}} && !writeback_req;

  wire unused = &{1'b0, desc, w_count, w_byte, r_two, by};

endmodule

`resetall
