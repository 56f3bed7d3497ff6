// SPDX-License-Identifier: Apache-2.0
//
// write_back: pools finished stripes and writes them to the AI RAM in its layout.
//
// How it works: stage A reads the collector entry of a channel; stage B makes one output line a
// cycle, pooled if the layer pools, rotates it to its place in the 64-byte row and works out the
// byte enables; stage C writes it, in two rows when it crosses the end of one (only stride-1
// pools do). Byte(c, y, x) = dst * 64 + (c / g) * ocs * 64 + y * orl * 64 + (c mod g) * pitch + x.
// A depthwise row is already in the layout and is written as it is.
// Handshake: takes a job when stage A is free, releases the collector's place when the last entry
// of the job was read; waits for the AI RAM (writeback_req until writeback_gnt).
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module write_back #(
    // output channels of the array
    parameter N_Z = 4,
    // width of a collector entry number and a bank number
    parameter EW  = 3,
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer
    input  wire [`DESC_BITS-1:0] desc,
    // jobs and entries of the collector
    input  wire                  job_valid,
    output wire                  job_ready,
    input  wire [        EW-1:0] job_entry,
    // job: first channel, channels, origin, size in the computed grid
    input  wire [           9:0] job_chan,
    input  wire [          ZW:0] job_nz,
    input  wire [           9:0] job_gx,
    input  wire [           8:0] job_gy,
    input  wire [           6:0] job_width,
    input  wire [           2:0] job_lines,
    output wire [        EW-1:0] rd_entry,
    input  wire [         511:0] rd_data,
    output wire                  release_one,
    // AI RAM write port
    output reg                   writeback_req,
    output reg  [          14:0] writeback_row,
    output reg  [          63:0] writeback_be,
    output reg  [         511:0] writeback_data,
    input  wire                  writeback_gnt,
    // nothing in flight
    output wire                  idle
);

  // ---- descriptor
  wire dwrow = desc[`DESC_MODE] == `MODE_DWROW;
  wire dw = desc[`DESC_DW];
  wire [2:0] pool = desc[`DESC_POOL];
  wire [1:0] op = desc[`DESC_OP];
  wire [2:0] gl = 3'd2 - {1'b0, op};  // log2 of the channels in a row
  wire [2:0] swl = dwrow ? 3'd4 + {1'b0, op} : desc[`DESC_SWL];
  wire s1 = pool == `POOL_MAXS1 || pool == `POOL_MEANS1;
  wire [1:0] fl = (pool == `POOL_MAX2 || pool == `POOL_MEAN2) ? 2'd1 :
             (pool == `POOL_MAX4 || pool == `POOL_MEAN4) ? 2'd2 : 2'd0;

  // ---- stage A: one entry after the other of a job
  reg [ZW:0] a_i;
  wire b_take;  // stage B can take an entry
  wire a_last = dw || a_i + {{ZW{1'b0}}, 1'b1} == job_nz;
  wire a_go = job_valid && b_take;
  assign rd_entry    = {job_entry[EW-1:ZW], job_entry[ZW-1:0] + a_i[ZW-1:0]};
  assign job_ready   = a_go && a_last;
  assign release_one = job_ready;

  always @(posedge clk) begin
    if (rst) a_i <= {(ZW + 1) {1'b0}};
    else if (a_go) a_i <= a_last ? {(ZW + 1) {1'b0}} : a_i + {{ZW{1'b0}}, 1'b1};
  end

  // ---- stage B: one output line after the other
  reg b_valid;
  reg [511:0] b_stripe;
  reg [9:0] b_chan;
  reg [9:0] b_gx;
  reg [8:0] b_gy;
  reg [6:0] b_width;
  reg [2:0] b_lines;
  reg [1:0] b_line;
  wire c_take;  // stage C can take a line

  wire right_edge = {1'b0, b_gx} + {4'd0, b_width} == desc[`DESC_KW];
  wire bottom_edge = {1'b0, b_gy} + {7'd0, b_lines} == desc[`DESC_KH];
  wire [6:0] o_width = s1 ? (right_edge ? b_width : b_width - 7'd1) : b_width >> fl;
  wire [2:0] o_lines = dwrow ? 3'd1 : s1 ? (bottom_edge ? b_lines : b_lines - 3'd1) : b_lines >> fl;
  wire b_last = {1'b0, b_line} + 3'd1 >= o_lines;
  assign b_take = !b_valid || (c_take && b_last);

  always @(posedge clk) begin
    if (rst) begin
      b_valid <= 1'b0;
      b_line  <= 2'd0;
    end else begin
      b_valid <= b_take ? job_valid : b_valid;
      b_line  <= (b_valid && c_take) ? (b_last ? 2'd0 : b_line + 2'd1) : b_line;
    end
  end

  always @(posedge clk) begin
    if (a_go) begin
      b_stripe <= rd_data;
      b_chan   <= job_chan + {{(9 - ZW) {1'b0}}, a_i};
      b_gx     <= job_gx;
      b_gy     <= job_gy;
      b_width  <= job_width;
      b_lines  <= job_lines;
    end
  end

  wire [127:0] pooled;
  wire plain = pool == `POOL_NONE;
  pool_line u_pool (
      .stripe(b_stripe),
      .swl   (swl),
      .width (b_width),
      .lines (b_lines),
      .enable(b_valid && !plain),
      .pool  (pool),
      .sgn   (desc[`DESC_SOUT]),
      .line  (b_line),
      .pooled(pooled)
  );

  // place of the line in the output map
  wire [9:0] o_x = b_gx >> fl;
  wire [9:0] o_y = ({1'b0, b_gy} >> fl) + {8'd0, dwrow ? 2'd0 : b_line};
  wire [9:0] o_grp = b_chan >> gl;
  wire [1:0] o_sub = b_chan[1:0] & ((2'd1 << gl[1:0]) - 2'd1);
  wire [5:0] o_at = dwrow ? 6'd0 : ({4'd0, o_sub} << (3'd4 + {1'b0, op})) + o_x[5:0];
  wire [23:0] grp_rows = o_grp * desc[`DESC_OCS];
  wire [14:0] line_rows = o_y * desc[`DESC_ORL];
  wire [14:0] o_row = desc[`DESC_DST] + grp_rows[14:0] + line_rows + {11'd0, o_x[9:6]};

  // rotation: byte 0 of the line goes to byte o_at of the row
  wire [5:0] line_at = {4'd0, b_line} << swl;
  wire [5:0] turn = plain && !dwrow ? o_at - line_at : o_at;
  wire [511:0] source = plain ? b_stripe : {384'd0, pooled};
  wire [1023:0] turned = {source, source} << {turn, 3'd0};

  // byte enables of this row and, for a line that crosses its end, of the next
  wire [127:0] ones = ~({128{1'b1}} << o_width);
  wire [127:0] spread = ones << o_at;
  reg [63:0] row_be;
  integer i;
  reg [6:0] jj;
  always @* begin
    row_be = 64'd0;
    jj     = 7'd0;
    for (i = 0; i < 64; i = i + 1) begin
      jj = i[6:0] & ((7'd1 << swl) - 7'd1);
      row_be[i] = jj < b_width && (i[6:4] >> (swl - 3'd4)) < b_lines;
    end
  end

  // ---- stage C: the write
  reg [63:0] c_next_be;  // enables in the row that follows
  assign c_take = !writeback_req || (writeback_gnt && c_next_be == 64'd0);

  always @(posedge clk) begin
    if (rst) begin
      writeback_req    <= 1'b0;
      c_next_be <= 64'd0;
    end else if (c_take) begin
      writeback_req    <= b_valid;
      c_next_be <= b_valid && !dwrow ? spread[127:64] : 64'd0;
    end else if (writeback_gnt) begin
      c_next_be <= 64'd0;
    end
  end

  always @(posedge clk) begin
    if (c_take) begin
      if (b_valid) begin
        writeback_row  <= o_row;
        writeback_be   <= dwrow ? row_be : spread[63:0];
        writeback_data <= turned[1023:512];
      end
    end else if (writeback_gnt) begin
      writeback_row <= writeback_row + 15'd1;
      writeback_be  <= c_next_be;
    end
  end

  assign idle = !job_valid && !b_valid && !writeback_req;

  wire unused = &{1'b0, desc, grp_rows[23:15], turned[511:0]};

endmodule

`resetall
