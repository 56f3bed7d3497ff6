// SPDX-License-Identifier: Apache-2.0
//
// piece_walk: walks the stripes of a finished group four bytes per step, and computes the destinations of
// its pixels.
//
// How it works: out_walk for small arrays. While a job is active job_row computes the next one's first
// row; from then on rows are only added. The walk is output line > part of it > channel > line of the
// window, so that it can follow the incoming bytes. A part of an unpooled line is four pixels, one step.
// For pools of 2x2 it is two windows, four columns of two lines, and each of these two steps describes
// one of the pixels; for stride 1 likewise, with three columns, and at the lower edge the last line
// twice. A 4x4 window is four steps, and the last one describes the pixel. A depthwise row is walked as
// its channels' lines. With out32 a job is the same byte of all sums: its channels are four apart.
// Handshake: a read is made in each cycle with move while there is a job, and a window begins once all
// its bytes have arrived; r_* describe the read a cycle later, as long as move is low.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module piece_walk #(
    // output channels of the array; width of a collector entry number
    parameter N_Z = 2,
    parameter EW  = 3,
    // derived, not to be set: width of a channel index in a group
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; log2 of the 16-byte slots of a stripe's line
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           1:0] wide,
    // the description is consumed
    input  wire                  move,
    // jobs: first entry, other fields
    input  wire                  job_valid,
    output wire                  job_ready,
    input  wire [        EW-1:0] job_entry,
    input  wire [ `JOB_BITS-1:0] job,
    output wire                  release_one,
    // bytes of the job that have arrived: last pair, complete
    input  wire [           4:0] reached,
    input  wire                  complete,
    // pair of bytes to read, with the next one
    output wire                  rd_en,
    output wire [        EW-1:0] rd_entry,
    output wire [           4:0] rd_pair,
    // description of the read: valid, pixels to be written; their row, the first one's byte, valid bytes
    // among the four from a multiple of four on
    output reg                   r_valid,
    output reg                   r_out,
    output reg  [          14:0] r_row,
    output reg  [           5:0] r_at,
    output reg  [           3:0] r_mask,
    // it is the last write of its channels
    output reg                   r_whole,
    // for piece_pool: first line of a window; the first, the second pixel is the last one of a map's line
    output reg                   r_first,
    output reg  [           1:0] r_edge,
    // no active or pending job
    output wire                  idle
);

  // ---- layer, registered: its first job arrives much later
  wire [2:0] pool = desc[`DESC_POOL];
  reg dwrow, out32, s1, two, plain, four;
  reg [1:0] op;
  always @(posedge clk) begin
    dwrow <= desc[`DESC_MODE] == `MODE_DWROW;
    {out32, op} <= {desc[`DESC_OUT32], desc[`DESC_OP]};
    s1 <= pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
    two <= pool == `POOL_MAX2 || pool == `POOL_MEAN2;
    plain <= pool == `POOL_NONE;
    four <= pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  end
  wire [1:0] gl = 2'd2 - op;  // log2 of the channels in a row
  wire [1:0] fl = two ? 2'd1 : four ? 2'd2 : 2'd0;
  // lines of a window - 1, pixels of a part
  wire [1:0] window_m1 = four ? 2'd3 : {1'b0, two || s1};
  wire [6:0] part = four ? 7'd1 : (two || s1) ? 7'd2 : 7'd4;
  wire [1:0] sub_last = (2'd1 << gl) - 2'd1;  // four channels: 0 - 1 wraps
  // rows to the next group of channels; with out32 to the same plane of the next four
  wire [14:0] group_on = {1'b0, desc[`DESC_OCS]} << (out32 ? op : 2'd0);

  // ---- the next job: its first row
  wire [9:0] job_gx = job[`JOB_GX];
  wire [9:0] job_chan = job[`JOB_CHAN];
  wire [8:0] job_gy = job[`JOB_GY];
  wire [6:0] job_width = job[`JOB_WIDTH];
  wire [2:0] job_lines = job[`JOB_LINES];
  wire [1:0] job_plane = job[`JOB_PLANE];
  wire [ZW:0] job_nz = job[`JOB_NZ];
  wire formed;
  wire [14:0] base;
  job_row #(
      .N_Z(N_Z)
  ) u_row (
      .clk      (clk),
      .rst      (rst),
      .desc     (desc),
      .fl       (fl),
      .job_valid(job_valid),
      .job      (job),
      .take     (job_ready),
      .formed   (formed),
      .row      (base)
  );

  // ---- the job
  reg valid, whole;
  reg [EW-1:0] entry;
  reg [ZW-1:0] z, z_end;  // channel of the group, the last one
  reg [1:0] sub_0;  // the first one's index in its row
  reg [14:0] first_row, row;  // row of the line in the first channel, in this one
  reg [9:0] x_0;
  reg [5:0] x;  // pixel of the line, from the stripe's first one on
  reg [6:0] width;
  reg right;  // pools of stride 1: the job ends at the right edge of the map
  reg [1:0] line, line_last, lowest;  // first line of the window, the last such one; the last line
  reg [1:0] far_line;  // last line of the window
  reg [1:0] step;  // line in the window

  // (the job waits until its row is computed: these registers are valid by then)
  reg right_edge, bottom_edge;
  reg [ZW-1:0] job_z_end;
  always @(posedge clk) begin
    job_z_end   <= desc[`DESC_DW] ? {ZW{1'b0}} : job_nz[ZW-1:0] - {{(ZW - 1) {1'b0}}, 1'b1};
    right_edge  <= {1'b0, job_gx} + {4'd0, job_width} == desc[`DESC_KW];
    bottom_edge <= {1'b0, job_gy} + {7'd0, job_lines} == desc[`DESC_KH];
  end
  wire [1:0] job_m1 = job_lines[1:0] - 2'd1;
  wire [1:0] job_last = four ? 2'd0 : two ? {job_m1[1], 1'b0} : job_m1 - {1'b0, s1 && !bottom_edge};
  wire [6:0] job_out = s1 ? job_width - {6'd0, !right_edge} : job_width >> fl;

  wire [1:0] next_line = line + {two, !two};
  wire there;  // the bytes of the window have arrived
  wire [6:0] x_left = width - {1'b0, x};
  wire x_last = x_left <= part;
  wire step_last = step == window_m1;
  wire part_end = step_last && z == z_end;
  wire line_end = part_end && x_last;
  wire job_end = line_end && line == line_last;
  // what a move would end is known before it: whether there is one comes from the AI RAM's arbiter
  wire ends = valid && there && job_end;
  wire next_there = job_valid && formed;
  assign rd_en       = valid && move && there;
  assign job_ready   = (next_there && !valid) || (move && next_there && ends);
  assign release_one = move && ends;
  assign idle        = !job_valid && !valid;

  always @(posedge clk) begin
    if (rst) valid <= 1'b0;
    else valid <= job_ready || (valid && !release_one);
  end

  // rows: advance to the next channel, or from the first channel's to the next line
  wire [2:0] z_3 = {{(3 - ZW) {1'b0}}, z};
  wire [1:0] z_2 = z_3[1:0];
  wire top = z == {ZW{1'b0}};
  wire [1:0] sub = (sub_0 + (out32 ? 2'd0 : z_2)) & sub_last;
  wire sub_end = out32 || sub == sub_last;
  wire [14:0] row_from = (part_end && !top) ? first_row : row;
  wire [14:0] row_on = part_end ? {10'd0, desc[`DESC_ORL]} & {15{x_last && !dwrow}} : group_on & {15{sub_end}};
  wire [14:0] row_next = row_from + row_on;
  always @(posedge clk) begin
    if (job_ready || (rd_en && step_last)) row <= job_ready ? base : row_next;
    if (top) first_row <= row;
  end

  always @(posedge clk) begin
    if (job_ready) begin
      entry     <= job_entry;
      whole     <= job[`JOB_WHOLE];
      z         <= {ZW{1'b0}};
      z_end     <= job_z_end;
      sub_0     <= (out32 ? job_plane : job_chan[1:0]) & sub_last;
      x_0       <= job_gx >> fl;
      x         <= 6'd0;
      width     <= job_out;
      right     <= s1 && right_edge;
      line      <= 2'd0;
      far_line  <= s1 ? {1'b0, job_m1 != 2'd0} : window_m1;
      line_last <= job_last;
      lowest    <= job_m1;
      step      <= 2'd0;
    end else if (rd_en) begin
      step <= step_last ? 2'd0 : step + 2'd1;
      if (step_last) z <= part_end ? {ZW{1'b0}} : z + {{(ZW - 1) {1'b0}}, 1'b1};
      if (part_end) x <= x_last ? 6'd0 : x + part[5:0];
      if (line_end) line <= next_line;
      if (line_end)
        far_line <= s1 ? next_line + {1'b0, next_line != lowest} : next_line | window_m1;
    end
  end

  // ---- read address of the step: line and column of the stripe
  wire [1:0] in_line = s1 ? line + {1'b0, step[0] && line != lowest} : line | step;
  wire [4:0] in_pair = two ? x[4:0] : four ? {x[3:0], 1'b0} : x[5:1];
  wire [4:0] line_pair = (wide == 2'd0) ? {in_line, 3'd0} : (wide == 2'd1) ? {in_line[0], 4'd0} : 5'd0;
  assign rd_entry = entry | {{(EW - ZW) {1'b0}}, z};  // a group begins with channel 0
  assign rd_pair  = line_pair | in_pair;

  // a window begins once its last line has arrived
  wire [4:0] far_pair = (wide == 2'd0) ? {far_line, 3'd0} : (wide == 2'd1) ? {far_line[0], 4'd0} : 5'd0;
  assign there = complete || step != 2'd0 || (far_pair | in_pair) < reached;

  // ---- description: the second step of two windows describes the second one
  wire second = step[0] && !four;
  wire [9:0] x_map = x_0 + {4'd0, x[5:1], x[0] || second};
  wire [1:0] slot = dwrow ? line : sub;
  wire [5:0] at = (op == 2'd0) ? {slot, x_map[3:0]} : (op == 2'd1) ? {slot[0], x_map[4:0]} : x_map[5:0];
  wire single = x_left == 7'd1;
  wire out = plain || (four ? step_last : !(second && single));
  wire more = x_left > 7'd3;
  wire [3:0] pixels = {more, more || x_left[1:0] == 2'd3, more || x_left[1], 1'b1};

  always @(posedge clk) begin
    if (rst) r_valid <= 1'b0;
    else if (move) r_valid <= rd_en;
  end
  always @(posedge clk) begin
    if (rd_en) begin
      r_out   <= out;
      r_row   <= row + {11'd0, x_map[9:6]};
      r_at    <= at;
      r_mask  <= plain ? pixels : 4'd1 << at[1:0];
      // the second window may be missing
      r_whole <= whole && z == z_end && line == line_last && x_last && (step_last || single);
      r_first <= step == 2'd0;
      r_edge  <= {x_left == 7'd2, single} & {2{right}};
    end
  end

  wire unused = &{1'b0, desc, job_chan[9:2], job_nz[ZW], z_3[2]};

`ifdef FORMAL_piece_walk
  `include "piece_walk_props.vh"
`endif

endmodule

`resetall
