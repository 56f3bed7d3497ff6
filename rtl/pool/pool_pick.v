// SPDX-License-Identifier: Apache-2.0
//
// pool_pick: takes the windows that a pooling task wants out of those that end in 16 columns, and
// makes bytes of them.
//
// How it works: the column where the next window ends is counted; LANES windows a cycle, sx columns
// apart, are picked until one ends behind the piece. Each goes through a divider; its divisor is the
// number of pixels that count, which near the edges of the map may be less. Of a window that is the
// whole map each piece gives a part, and what was found before is kept in total.
// Handshake: sums are valid/ready; everything moves while move is high.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module pool_pick #(
    // windows a cycle: 1, 2, 4, 8 or 16
    parameter LANES = 4,
    // derived, not to be set: width of a number of windows
    parameter CW    = $clog2(LANES) + 1
) (
    // clock and synchronous reset
    input  wire               clk,
    input  wire               rst,
    // layer: whole map, sums, only pixels of the map count, byte to be exclusive-ored
    input  wire               all,
    input  wire               sums,
    input  wire               map_only,
    input  wire [        7:0] turn,
    // columns of the map, of a window - 1, of a step
    input  wire [       10:0] n_w,
    input  wire [        3:0] kw_m1,
    input  wire [        4:0] sx,
    // column where the first and the last window of a line end, divisor
    input  wire [        3:0] first_end,
    input  wire [       10:0] last_end,
    input  wire [       18:0] pixels,
    // windows of a piece
    input  wire               sum_valid,
    output wire               sum_ready,
    input  wire [  16*21-1:0] sum,
    input  wire [        4:0] sum_lines,
    input  wire               sum_first,
    input  wire               sum_last,
    // bytes: how many, whether they are the last of a line
    input  wire               move,
    output wire               out_valid,
    output wire [8*LANES-1:0] out_byte,
    output wire [     CW-1:0] out_count,
    output wire               out_end
);

  // registers between a pick and its byte: divisor in three steps, then a bit of the quotient each
  localparam integer BEFORE = 3;
  localparam integer STEPS = BEFORE + 9;

  reg busy;
  reg [16*21-1:0] held;
  reg [4:0] lines;
  reg first, last;
  reg [6:0] k;  // piece of the line
  reg [10:0] ends;  // column where the next window ends

  // ---- windows of this cycle, and whether there is one more behind them
  wire [11*LANES-1:0] at;
  wire [LANES-1:0] wanted;
  wire [CW-1:0] count;
  wire [10:0] after;
  wire [10:0] all_sx = {6'd0, sx} << $clog2(LANES);
  reg [10:0] beyond_far;  // as a register: all_sx
  wire [10:0] beyond = ends + beyond_far;
  // More: beyond lies in this piece, too, and not behind the last window. The answer goes back through
  // all stages to the reads, so it is two comparisons of ends with values of the layer, not a sum's.
  reg several;  // windows of two cycles may end in a piece
  reg [3:0] most;  // place in the piece from which on no more do
  reg [10:0] stop;  // ... column
  always @(posedge clk) begin
    beyond_far <= all_sx;
    several <= !all && all_sx[10:4] == 7'd0 && last_end >= all_sx;
    most    <= 4'd15 - all_sx[3:0];
    stop    <= last_end - all_sx;
  end
  wire more = several && ends[10:4] == k && ends[3:0] <= most && ends <= stop;
  wire give = busy && move;
  wire take = sum_valid && sum_ready;
  assign sum_ready = !busy || (move && !more);

  // Window i of a cycle ends in this piece, and not behind the last one, by comparisons of the same kind.
  genvar i;
  assign at[10:0]  = ends;
  assign wanted[0] = all ? last : (ends[10:4] == k && ends <= last_end);
  generate
    for (i = 1; i < LANES; i = i + 1) begin : g_at
      reg [10:0] far, lane_stop;  // columns behind the first window; largest ends that takes it
      reg [3:0] lane_most;
      reg near;  // one piece may have both
      wire [10:0] sx_i = i * {6'd0, sx};
      always @(posedge clk) begin
        far       <= sx_i;
        near      <= !all && sx_i[10:4] == 7'd0 && last_end >= sx_i;
        lane_most <= 4'd15 - sx_i[3:0];
        lane_stop <= last_end - sx_i;
      end
      assign at[11*i+:11] = ends + far;
      assign wanted[i] = near && ends[10:4] == k && ends[3:0] <= lane_most && ends <= lane_stop;
    end
  endgenerate

  function [CW-1:0] number_of(input [LANES-1:0] bits);
    integer n;
    begin
      number_of = {CW{1'b0}};
      for (n = 0; n < LANES; n = n + 1) number_of = number_of + {{(CW - 1) {1'b0}}, bits[n]};
    end
  endfunction
  // the first that is not wanted is the next one
  function [10:0] first_of(input [LANES-1:0] bits, input [11*LANES-1:0] columns,
                           input [10:0] behind);
    integer n;
    begin
      first_of = behind;
      for (n = LANES - 1; n >= 0; n = n - 1) if (!bits[n]) first_of = columns[11*n+:11];
    end
  endfunction
  assign count = number_of(wanted);
  assign after = first_of(wanted, at, beyond);

  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= take || (busy && !(move && !more));
  end

  always @(posedge clk) begin
    if (take) begin
      held  <= sum;
      lines <= sum_lines;
      first <= sum_first;
      last  <= sum_last;
      k     <= sum_first ? 7'd0 : k + 7'd1;
    end
    if (take && sum_first) ends <= {7'd0, first_end};
    else if (give) ends <= after;
  end

  // ---- the whole map: its part in this piece, and what came before
  reg  [26:0] total;
  wire [26:0] part = {6'd0, held[21*kw_m1+:21]};
  wire [26:0] so_far = first ? 27'd0 : total;
  wire [26:0] with_part = sums ? so_far + part : (part > so_far) ? part : so_far;
  always @(posedge clk) if (give) total <= with_part;

  // ---- what goes with the bytes
  reg [STEPS-1:0] valid, line_end;
  reg [CW*STEPS-1:0] counts;
  reg [4:0] lines_0, lines_1;
  // without bytes under way the lanes stand still
  wire under_way = busy || (|valid[STEPS-2:0]);
  wire lanes_move = move && under_way;
  always @(posedge clk) begin
    if (rst) valid <= {STEPS{1'b0}};
    else if (move) valid <= {valid[STEPS-2:0], busy && wanted[0]};
  end
  always @(posedge clk) begin
    if (lanes_move) begin
      line_end <= {line_end[STEPS-2:0], last && !more};
      counts <= {counts[CW*(STEPS-1)-1:0], count};
      {lines_1, lines_0} <= {lines_0, lines};
    end
  end
  assign out_valid = valid[STEPS-1];
  assign out_end   = line_end[STEPS-1];
  assign out_count = counts[CW*(STEPS-1)+:CW];

  // ---- lanes; only the first one sees a whole map
  wire [10:0] last_column = n_w - 11'd1;
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      localparam VW = (i == 0) ? 27 : 16;
      localparam NW = (i == 0) ? 19 : 9;
      wire [10:0] here = at[11*i+:11];
      wire [26:0] picked = (i == 0 && all) ? with_part : {6'd0, held[21*here[3:0]+:21]};
      reg [VW-1:0] value_0, value_1, value_2;
      reg [10:0] here_0;
      reg [4:0] columns_1;
      reg [NW-1:0] divisor_2;
      wire [10:0] begins = (here_0 >= {7'd0, kw_m1}) ? here_0 - {7'd0, kw_m1} : 11'd0;
      wire [10:0] stops = (here_0 > last_column) ? n_w : here_0 + 11'd1;
      wire [10:0] columns = stops - begins;
      wire [9:0] some = lines_1 * columns_1;
      always @(posedge clk) begin
        if (lanes_move) begin
          {value_0, value_1, value_2} <= {picked[VW-1:0], value_0, value_1};
          here_0 <= here;
          columns_1 <= columns[4:0];
          divisor_2 <= (map_only && !all) ? {{(NW - 9) {1'b0}}, some[8:0]} : pixels[NW-1:0];
        end
      end
      wire [7:0] quotient;
      pool_divide #(
          .VW(VW),
          .NW(NW)
      ) u_divide (
          .clk(clk),
          .move(lanes_move),
          .value(value_2),
          .divisor(divisor_2),
          .quotient(quotient)
      );
      assign out_byte[8*i+:8] = quotient ^ turn;
      wire unused_lane = &{1'b0, picked, columns, some};
    end
  endgenerate

endmodule

`resetall
