// SPDX-License-Identifier: Apache-2.0
//
// pool_pick: selects the windows of a pooling task among those that end in a piece's columns, and reduces
// them to bytes.
//
// How it works: a counter holds the column where the next window ends; LANES windows per cycle, sx
// columns apart, are selected until one ends beyond the piece. Each passes a divider; its divisor is the
// number of valid pixels, which may be smaller near the edges of the map. A whole-map window gets one
// partial result per piece, accumulated in total. For a map of at most 256 pixels, total is then divided
// like any window. The sum of a larger map, for which at least 16 cycles are available, is divided in
// place, a bit per cycle.
// Handshake: sums are valid/ready; all stages except a long division advance while move is high.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module pool_pick #(
    // windows per cycle: 1, 2, 4 or 8
    parameter LANES = 4,
    // columns of a piece: 4, 8 or 16; bits of the sum of a window
    parameter COLS  = 16,
    parameter SB    = 17,
    // derived, not to be set: width of a window count
    parameter CW    = $clog2(LANES) + 1
) (
    // clock and synchronous reset
    input  wire               clk,
    input  wire               rst,
    // layer: whole map, of more than 256 pixels, sums, only pixels of the map count, XOR mask of the
    // bytes
    input  wire               all,
    input  wire               of_many,
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
    input  wire [SB*COLS-1:0] sum,
    input  wire [        4:0] sum_lines,
    input  wire               sum_first,
    input  wire               sum_last,
    // bytes: count, last of a line
    input  wire               move,
    output wire               out_valid,
    output wire [8*LANES-1:0] out_byte,
    output wire [     CW-1:0] out_count,
    output wire               out_end
);

  // registers between a selection and its byte: three for the divisor, then one per quotient bit
  localparam integer BEFORE = 3;
  localparam integer STEPS = BEFORE + 9;
  localparam integer B = $clog2(COLS);
  localparam [CW-1:0] ONE = 1;
  localparam [B-1:0] LAST_COLUMN = {B{1'b1}};

  reg busy;
  reg [SB*COLS-1:0] held;
  reg [4:0] lines;
  reg last;
  reg [10-B:0] k;  // piece of the line
  reg [10:0] ends;  // column where the next window ends

  // ---- windows of this cycle, and whether another one follows
  wire [11*LANES-1:0] at;
  wire [LANES-1:0] wanted;
  wire [CW-1:0] count;
  wire [10:0] after;
  wire [10:0] all_sx = {6'd0, sx} << $clog2(LANES);
  reg [10:0] beyond_far;  // all_sx, registered
  wire [10:0] beyond = ends + beyond_far;
  // More: beyond also lies in this piece, and not behind the last window. The result propagates back
  // through all stages to the reads, so it is registered together with ends: two comparisons with
  // constants of the layer.
  reg several;  // windows of two cycles may end in one piece
  reg [B-1:0] most;  // last offset in the piece for which more remain
  reg [10:0] stop;  // ... last column
  always @(posedge clk) begin
    beyond_far <= all_sx;
    several <= !all && all_sx[10:B] == {(11 - B) {1'b0}} && last_end >= all_sx;
    most    <= LAST_COLUMN - all_sx[B-1:0];
    stop    <= last_end - all_sx;
  end
  wire in_piece = ends[10:B] == k;
  reg more, first_wanted;
  reg  dividing;  // a large map's sum
  wire give = busy && move && !dividing;
  wire take = sum_valid && sum_ready;
  assign sum_ready = !busy || (give && !more);

  // Window i of a cycle ends in this piece, and not behind the last one; comparisons as above.
  genvar i;
  assign at[10:0]  = ends;
  assign wanted[0] = all ? last : first_wanted;
  wire [11*LANES-1:0] apart;  // columns from the first window to a lane's window
  assign apart[10:0] = 11'd0;
  generate
    for (i = 1; i < LANES; i = i + 1) begin : g_at
      reg [10:0] far, lane_stop;  // columns behind the first window; largest ends that uses it
      reg [B-1:0] lane_most;
      reg near;  // one piece may have both
      wire [10:0] sx_i = apart[11*(i-1)+:11] + {6'd0, sx};
      always @(posedge clk) begin
        far       <= sx_i;
        near      <= !all && sx_i[10:B] == {(11 - B) {1'b0}} && last_end >= sx_i;
        lane_most <= LAST_COLUMN - sx_i[B-1:0];
        lane_stop <= last_end - sx_i;
      end
      assign apart[11*i+:11] = sx_i;
      assign at[11*i+:11] = ends + far;
      assign wanted[i] = near && in_piece && ends[B-1:0] <= lane_most && ends <= lane_stop;
    end
  endgenerate

  function [CW-1:0] number_of(input [LANES-1:0] bits);
    integer n;
    begin
      number_of = {CW{1'b0}};
      for (n = 0; n < LANES; n = n + 1) if (bits[n]) number_of = number_of + ONE;
    end
  endfunction
  // the first window not selected is the next one
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

  wire [10-B:0] next_k = !take ? k : sum_first ? {(11 - B) {1'b0}} : k + 1'b1;
  wire [  10:0] next_ends = (take && sum_first) ? {7'd0, first_end} : give ? after : ends;
  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= take || (busy && !(give && !more));
  end
  always @(posedge clk) begin
    more <= several && next_ends[10:B] == next_k && next_ends[B-1:0] <= most && next_ends <= stop;
    first_wanted <= next_ends[10:B] == next_k && next_ends <= last_end;
    ends <= next_ends;
    k <= next_k;
  end

  always @(posedge clk) begin
    if (take) begin
      held  <= sum;
      lines <= sum_lines;
      last  <= sum_last;
    end
  end

  // ---- selected windows; the first lane also gets the partial results of a whole map
  wire [ 32*COLS-1:0] spread;  // spaced so that the index selects without a multiplication
  wire [SB*LANES-1:0] picked;
  generate
    for (i = 0; i < COLS; i = i + 1) begin : g_spread
      assign spread[32*i+:32] = {{(32 - SB) {1'b0}}, held[SB*i+:SB]};
    end
    for (i = 0; i < LANES; i = i + 1) begin : g_picked
      wire [B-1:0] place = (i == 0 && all) ? kw_m1[B-1:0] : at[11*i+:B];
      assign picked[SB*i+:SB] = spread[32*place+:SB];
    end
  endgenerate

  // ---- the whole map: partial result so far. A large sum stays in place: phase 1 adds half of the
  // divisor, 2 to 9 compute a quotient bit each, as pool_divide does, and in 10 it waits to leave.
  localparam [3:0] HALF = 4'd1;
  localparam [3:0] QUOTIENT = 4'd10;
  reg [3:0] phase;
  reg [26:0] total;
  wire long_done = phase == QUOTIENT;
  wire half = phase == HALF;
  wire steps = dividing && !half && !long_done;
  wire [26:0] added = total + (half ? {9'd0, pixels[18:1]} : {{(27 - SB) {1'b0}}, picked[SB-1:0]});
  wire part_more = picked[7:0] > total[7:0];
  wire [20:0] lower = {1'b0, total[26:7]} - {2'b00, pixels};
  wire fits = !lower[20];
  wire [26:0] divided = {fits ? lower[18:0] : total[25:7], total[6:0], fits};
  wire [15:0] found = sums ? added[15:0] : {8'd0, part_more ? picked[7:0] : total[7:0]};

  always @(posedge clk) begin
    if (rst) dividing <= 1'b0;
    else dividing <= dividing ? !(long_done && move) : give && last && of_many;
  end
  always @(posedge clk) begin
    if (rst) phase <= 4'd0;
    else if (!dividing) phase <= (give && last && of_many) ? HALF : phase;
    else if (long_done) phase <= move ? 4'd0 : phase;
    else phase <= phase + 4'd1;
  end
  always @(posedge clk) begin
    if (rst || !all || (give && last && !of_many) || (long_done && move)) total <= 27'd0;
    else if (steps) total <= divided;
    else if (half || (give && (sums || part_more))) total <= sums ? added : {19'd0, picked[7:0]};
  end

  // ---- flags that travel with the bytes
  reg [STEPS-1:0] valid, line_end;
  reg [CW*STEPS-1:0] counts;
  reg [4:0] lines_0, lines_1;
  // with no bytes in flight the lanes do not toggle
  wire under_way = busy || (|valid[STEPS-2:0]);
  wire lanes_move = move && under_way;
  always @(posedge clk) begin
    if (rst) valid <= {STEPS{1'b0}};
    else if (move) valid <= {valid[STEPS-2:0], busy && wanted[0] && !of_many};
  end
  always @(posedge clk) begin
    if (lanes_move) begin
      line_end <= {line_end[STEPS-2:0], last && !more};
      counts <= {counts[CW*(STEPS-1)-1:0], count};
      {lines_1, lines_0} <= {lines_0, lines};
    end
  end
  assign out_valid = valid[STEPS-1] || long_done;
  assign out_end   = line_end[STEPS-1] || of_many;
  assign out_count = of_many ? ONE : counts[CW*(STEPS-1)+:CW];

  // ---- lanes
  reg [10:0] last_column;  // constant during the layer
  reg [ 4:0] map_end;  // column behind it
  always @(posedge clk) begin
    last_column <= n_w - 11'd1;
    map_end <= n_w[4:0];
  end
  generate
    for (i = 0; i < LANES; i = i + 1) begin : g_lane
      reg [15:0] value_0, value_1, value_2;
      reg  [10:0] here;
      reg  [ 4:0] columns;
      reg  [ 8:0] divisor;
      // a window has at most 16 columns, so that five bits of its ends are enough
      wire [ 4:0] begins = (here >= {7'd0, kw_m1}) ? here[4:0] - {1'b0, kw_m1} : 5'd0;
      wire [ 4:0] stops = (here > last_column) ? map_end : here[4:0] + 5'd1;
      wire [ 9:0] some = lines_1 * columns;
      always @(posedge clk) begin
        if (lanes_move) begin
          value_0 <= (i == 0 && all) ? found : picked[SB*i+:16];
          {value_1, value_2} <= {value_0, value_1};
          here <= at[11*i+:11];
          columns <= stops - begins;
          divisor <= (map_only && !all) ? some[8:0] : pixels[8:0];
        end
      end
      wire [7:0] quotient;
      pool_divide u_divide (
          .clk(clk),
          .move(lanes_move),
          .value(value_2),
          .divisor(divisor),
          .quotient(quotient)
      );
      assign out_byte[8*i+:8] = ((i == 0 && of_many) ? total[7:0] : quotient) ^ turn;
      wire unused_lane = &{1'b0, some};
    end
  endgenerate

  wire unused = &{1'b0, in_piece, spread, picked, apart, kw_m1, lower};

endmodule

`resetall
