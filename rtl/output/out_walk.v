// SPDX-License-Identifier: Apache-2.0
//
// out_walk: walks the words of a finished group and computes the destinations of its output lines.
//
// How it works: a job is registered together with the products for its position; from then on rows are
// only added. The walk is channel > part of a line > line. A part is a word of an unpooled line; of a
// pooled one it is the output of one pool_line operation. Pools take as many cycles as their input lines
// have words; with PATH < 64 a stride-1 pool reads both lines of its windows, at the lower edge the last
// line twice. For a flat layer a part is a piece of a line within one slot of the stripe; it arrives in
// slot 0 of the word, to be rotated into position. With out32 a job is the same byte of all sums: its
// channels are four apart.
// Handshake: a word is read in each cycle with move while there is a job; r_* describe it a cycle later,
// as long as move is low.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module out_walk #(
    // output channels of the array
    parameter N_Z = 4,
    // bytes of a word of the AI RAM
    parameter PATH = 64,
    // 1: a depthwise job may be of two rows; 1: maps of 1x1 layers may be one line
    parameter PAIR = 0,
    parameter FLAT_MAPS = 0,
    // width of a collector entry number
    parameter EW = 3,
    // derived, not to be set: width of a bank index, of a byte index in a word; slots of a word
    parameter ZW = $clog2(N_Z),
    parameter PB = $clog2(PATH),
    parameter NS = PATH / 16
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; log2 of the 16-byte slots of a stripe's line
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           1:0] wide,
    // the word's description is consumed
    input  wire                  move,
    // jobs: first entry, first channel, with out32 their plane, channels (depthwise: rows), origin, size
    // in the computed grid, completes its channels
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
    // word to read, target position of its bytes
    output wire                  rd_en,
    output wire [        EW-1:0] rd_entry,
    output wire [           1:0] rd_word,
    output wire [           2:0] rd_turn,
    // the word read: valid, it completes output pixels; their row (as a sum), byte and count
    output reg                   r_valid,
    output reg                   r_out,
    output reg  [          14:0] r_row_a,
    output reg  [          14:0] r_row_b,
    output reg  [           5:0] r_at,
    output reg  [           6:0] r_count,
    // flat: bytes by which slot 0 is rotated
    output reg  [           3:0] r_turn,
    // depthwise row: slots that hold pixels
    output reg  [        NS-1:0] r_slots,
    // it has a second row, written to the next row of the AI RAM
    output reg                   r_two,
    // the last word of its channels
    output reg                   r_whole,
    // for pool_line
    output reg  [           4:0] r_width,
    output reg  [           1:0] r_below,
    // no active or pending job
    output wire                  idle
);

  localparam [1:0] SB = PB[1:0];  // log2 of the slots of a word: PB - 4, which is PB modulo 4
  localparam [6:0] WORD = PATH[6:0];
  localparam [6:0] PIECE = (PATH == 16) ? 7'd8 : 7'd16;  // pixels per pool operation

  // ---- layer
  wire [10:0] out_w = desc[`DESC_OW];
  wire dwrow = desc[`DESC_MODE] == `MODE_DWROW;
  wire dw = desc[`DESC_DW];
  wire [2:0] pool = desc[`DESC_POOL];
  wire [1:0] op = desc[`DESC_OP];
  wire [1:0] gl = 2'd2 - op;  // log2 of the channels in a row
  wire plain = pool == `POOL_NONE;
  wire out32 = desc[`DESC_OUT32];
  wire s1 = pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
  wire two = pool == `POOL_MAX2 || pool == `POOL_MEAN2;
  wire four = pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  wire [1:0] fl = two ? 2'd1 : four ? 2'd2 : 2'd0;
  // log2 of the lines that a word covers
  wire [1:0] row_lines = (wide == 2'd0) ? SB : (PATH == 64 && wide == 2'd1) ? 2'd1 : 2'd0;
  wire [1:0] pair_lines = (PATH == 64) ? 2'd1 : (PATH == 32 && wide == 2'd0) ? 2'd1 : 2'd0;
  wire [1:0] nl = dwrow ? row_lines : two ? pair_lines : four ? SB : 2'd0;
  wire streamed = s1 && PATH != 64;
  wire halves = s1 && PATH == 16;

  // ---- the job
  reg valid;
  reg whole;
  reg [EW-1:0] entry;
  reg [ZW:0] left;  // channels after this one
  reg [1:0] sub;  // channel in its row
  reg [14:0] grp_row;  // rows up to the channel group, to the first line, to this one
  reg [14:0] line_row_0;
  reg [14:0] line_row;
  reg [9:0] x_0;
  reg [6:0] width;
  reg [6:0] o_width;
  reg [1:0] lines_m1;
  reg [2:0] last;  // steps of a part, minus one
  reg [1:0] part;
  reg [2:0] step;
  reg rows_two;

  wire right_edge = {1'b0, job_gx} + {4'd0, job_width} == desc[`DESC_KW];
  wire bottom_edge = {1'b0, job_gy} + {7'd0, job_lines} == desc[`DESC_KH];
  wire [2:0] job_m1 = job_lines - 3'd1;
  wire [2:0] job_s1 = bottom_edge ? job_m1 : job_m1 - 3'd1;
  wire [2:0] job_last = !s1 ? job_m1 >> nl : streamed ? {job_s1[1:0], 1'b1} : job_s1;
  wire [11:0] grp = out32 ? {job_chan, job_plane} >> gl : {2'd0, job_chan >> gl};
  wire [8:0] y = job_gy >> fl;
  wire [25:0] grp_rows = grp * desc[`DESC_OCS];
  // adders, because a multiplier would cost the array one
  wire [13:0] y_w = {5'd0, y};
  wire [4:0] orl = desc[`DESC_ORL];
  wire [13:0] line_rows = ((orl[0] ? y_w : 14'd0) + (orl[1] ? y_w << 1 : 14'd0)) +
      ((orl[2] ? y_w << 2 : 14'd0) + (orl[3] ? y_w << 3 : 14'd0)) + (orl[4] ? y_w << 4 : 14'd0);
  wire [1:0] sub_last = (2'd1 << gl) - 2'd1;  // four channels: 0 - 1 wraps
  // rows to the next group of channels; with out32 to the same plane of the next four
  wire [14:0] group_on = {1'b0, desc[`DESC_OCS]} << (out32 ? op : 2'd0);

  wire [5:0] x_part = plain ? {4'd0, part} << PB : {1'b0, part, 3'd0};
  wire [6:0] x_left = o_width - {1'b0, x_part};
  wire [6:0] piece = plain ? WORD : PIECE;
  wire step_last = step == last;
  wire part_last = x_left <= piece;
  // flat: pieces of lines
  wire flat, flat_end, flat_last;
  wire [5:0] flat_pos;
  wire [3:0] flat_x;
  wire [4:0] flat_count;
  wire entry_last = flat ? flat_last : step_last && part_last;
  wire job_last_step = entry_last && left == {(ZW + 1) {1'b0}};
  assign rd_en       = valid && move;
  assign job_ready   = job_valid && (!valid || (move && job_last_step));
  assign release_one = rd_en && job_last_step;

  generate
    if (FLAT_MAPS != 0) begin : g_flat
      flat_pieces #(
          .WORD(16)
      ) u_pieces (
          .clk     (clk),
          .load    (job_ready),
          .again   (rd_en && entry_last),
          .next    (rd_en),
          .width   (out_w[4:0]),
          .x_0     (job_gx[3:0]),
          .pixels  (job_width),
          .pos     (flat_pos),
          .x       (flat_x),
          .count   (flat_count),
          .line_end(flat_end),
          .last    (flat_last)
      );
      assign flat = desc[`DESC_FLAT];
    end else begin : g_lines
      assign {flat, flat_end, flat_last, flat_pos, flat_x, flat_count} = 18'd0;
    end
  endgenerate

  // ---- read address of the step
  wire [1:0] upper = step[2:1];
  wire [1:0] line = !streamed ? step[1:0] : upper + {1'b0, step[0] && upper != lines_m1};
  wire [1:0] slot = flat ? flat_pos[5:4] : (line << wide) << nl;
  wire [1:0] word = (slot >> SB) | ((s1 || flat) ? 2'd0 : part);
  wire [9:0] x = flat ? {6'd0, flat_x} : x_0 + {4'd0, x_part};
  wire [5:0] at = dwrow ? {4'd0, word} << PB : ({4'd0, sub} << (3'd4 + {1'b0, op})) | x[5:0];
  wire [1:0] to = (plain && !dwrow && !flat) ? at[5:4] : 2'd0;
  wire [1:0] in_word = (2'd1 << SB) - 2'd1;  // four slots: 0 - 1 wraps
  assign rd_entry = entry;
  assign rd_word  = word;
  assign rd_turn  = {(slot ^ to) & in_word, halves && part[0]};

  // the step completes an output line
  wire pairs = streamed || (two && nl == 2'd0);  // lines in sequence
  wire out = pairs ? step[0] : !four || step_last;

  always @(posedge clk) begin
    if (rst) valid <= 1'b0;
    else valid <= job_ready || (valid && !(move && job_last_step));
  end

  always @(posedge clk) begin
    if (job_ready) begin
      entry      <= job_entry;
      whole      <= job_whole;
      left       <= dw ? {(ZW + 1) {1'b0}} : job_nz - {{ZW{1'b0}}, 1'b1};
      sub        <= (out32 ? job_plane : job_chan[1:0]) & sub_last;
      grp_row    <= grp_rows[14:0];
      line_row_0 <= {1'b0, line_rows};
      line_row   <= {1'b0, line_rows};
      x_0        <= job_gx >> fl;
      width      <= job_width;
      o_width    <= s1 ? (right_edge ? job_width : job_width - 7'd1) : job_width >> fl;
      rows_two   <= PAIR != 0 && dwrow && job_nz[1];
      lines_m1   <= job_m1[1:0];
      last       <= job_last;
      part       <= 2'd0;
      step       <= 3'd0;
    end else if (rd_en) begin
      step <= step_last ? 3'd0 : step + 3'd1;
      part <= !step_last ? part : part_last ? 2'd0 : part + 2'd1;
      line_row <= (flat ? flat_last : step_last) ? line_row_0 :
          (flat ? flat_end : out && !dwrow) ? line_row + {10'd0, desc[`DESC_ORL]} : line_row;
      if (entry_last) begin
        entry   <= entry + {{(EW - 1) {1'b0}}, 1'b1};
        left    <= left - {{ZW{1'b0}}, 1'b1};
        sub     <= out32 ? sub : (sub == sub_last) ? 2'd0 : sub + 2'd1;
        grp_row <= (out32 || sub == sub_last) ? grp_row + group_on : grp_row;
      end
    end
  end

  always @(posedge clk) begin
    if (rst) r_valid <= 1'b0;
    else if (move) r_valid <= valid;
  end

  wire [6:0] seen = halves && part[0] ? width - 7'd8 : width;
  always @(posedge clk) begin
    if (rd_en) begin
      r_out   <= out;
      r_row_a <= grp_row + line_row;
      r_row_b <= desc[`DESC_DST] + {11'd0, x[9:6]};
      r_at    <= at;
      r_count <= flat ? {2'd0, flat_count} : part_last ? x_left : piece;
      r_turn  <= flat_x - flat_pos[3:0];
      r_width <= seen[4:0];
      // position of the line below in a word whose slot 0 is this line's
      r_below <= line == lines_m1 ? 2'd0 : line[0] ? 2'd3 : 2'd1;
    end
  end

  // depthwise row: existing lines (channels)
  wire [NS-1:0] slots;
  genvar n;
  generate
    for (n = 0; n < NS; n = n + 1) begin : g_slot
      localparam [1:0] N = n;
      assign slots[n] = (slot | N) >> wide <= lines_m1;
    end
  endgenerate
  always @(posedge clk) begin
    if (rd_en) begin
      r_slots <= slots;
      r_two   <= rows_two;
      r_whole <= whole && job_last_step;
    end
  end

  assign idle = !job_valid && !valid;

  wire unused = &{1'b0, desc, grp_rows, seen, out_w};

`ifdef FORMAL_out_walk
  `include "out_walk_props.vh"
`endif

endmodule

`resetall
