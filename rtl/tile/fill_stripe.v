// SPDX-License-Identifier: Apache-2.0
//
// fill_stripe: computes the part of the input that the next stripe needs, while the current one is read.
//
// How it works: stripe_iter walks the stripes of the computed grid; two steps convert a stripe to the lines
// and words of the map that its windows cover. Between the two the iterator advances to the following stripe,
// which keeps the path of taken short. From the second step on the AI RAM row of the first line is
// multiplied, one bit of the rows per line each cycle. Depthwise rows and fully connected layers have one
// stripe, the whole map. A flat layer's stripe is 64 pixels starting anywhere in a line, and ends at the
// latest where the next one begins. The windows of a dilated layer see lines further away: each tap row reads
// its own lines, clipped to the map, and the rows from one tap row to the next are multiplied likewise.
// Handshake: ready rises when the stripe is computed and its lines are in the AI RAM, and is held until taken
// accepts it; the next one is computed then. fill_seq waits for ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fill_stripe #(
    // bytes of a word: 8, 16, 32 or 64; 1: maps of 1x1 layers may be one line; largest dilation
    parameter TILE_WORD = 64,
    parameter FLAT_MAPS = 0,
    parameter DILATION  = 1,
    // derived, not to be set: log2 of the word, width of a word index in a line (1024 bytes at most)
    parameter TB        = $clog2(TILE_WORD),
    parameter NB        = 10 - TB
) (
    // clock and synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // layer start with its descriptor; one stripe for the whole map, windows of 3x3; last column of the map,
    // valid from the cycle after the start on
    input  wire                    start,
    input  wire [  `DESC_BITS-1:0] desc,
    input  wire                    whole,
    input  wire                    k3_taps,
    input  wire [            10:0] right,
    // lines of the map in the AI RAM
    input  wire [             9:0] lines_there,
    // the stripe is accepted, it is ready, its part of the input
    input  wire                    taken,
    output wire                    ready,
    output wire [`STRIPE_BITS-1:0] stripe
);

  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [4:0] irl = desc[`DESC_IRL];  // 15 at most
  wire [1:0] stl = desc[`DESC_STL];
  wire ph = desc[`DESC_PH];
  // the grid is registered: the first stripe is evaluated in the cycle after the start
  reg overlap;
  reg [10:0] kw;
  reg [9:0] kh;
  reg [2:0] swl;
  always @(posedge clk) begin
    overlap <= desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
    {kw, kh, swl} <= {desc[`DESC_KW], desc[`DESC_KH], desc[`DESC_SWL]};
  end

  // two steps: the stripe, its lines and words
  reg p_there, there;
  reg  p_last;
  reg  last;
  wire onward = p_there && !there;  // first step complete: the iterator advances
  wire stripe_last_x, stripe_last_y;
  wire [9:0] stripe_gx;
  wire [8:0] stripe_gy;
  wire [6:0] stripe_width;
  wire [2:0] stripe_lines;
  stripe_iter u_stripe (
      .clk    (clk),
      .rst    (rst),
      .restart(start || (onward && p_last)),
      .next   (onward && !p_last),
      .kw     (kw),
      .kh     (kh),
      .swl    (swl),
      .overlap(overlap),
      .gx     (stripe_gx),
      .gy     (stripe_gy),
      .width  (stripe_width),
      .lines  (stripe_lines),
      .last_x (stripe_last_x),
      .last_y (stripe_last_y)
  );

  always @(posedge clk) begin
    if (rst || start || taken) {p_there, there} <= 2'b00;
    else {p_there, there} <= {1'b1, p_there};
  end

  reg  [9:0] p_gx;
  reg  [8:0] p_gy;
  reg  [6:0] p_reach;  // width - 1
  reg  [2:0] p_lines;
  reg        p_low;  // no grid line below it
  // flat: first line of the stripe, and of the next one
  wire       flat;
  wire [8:0] flat_y, flat_reach;
  wire [3:0] flat_x;
  wire [6:0] flat_pixels;
  generate
    if (FLAT_MAPS != 0) begin : g_flat
      wire [3:0] x;
      reg [3:0] p_x, q_x;
      reg [6:0] p_pixels, q_pixels;
      reg  [8:0] p_reach_y;
      wire [8:0] y_next;
      flat_origin u_origin (
          .clk    (clk),
          .restart(start || (onward && p_last)),
          .next   (onward && !p_last),
          .width  (n_w[4:0]),
          .x      (x),
          .y      (flat_y),
          .y_next (y_next)
      );
      always @(posedge clk) begin
        if (!p_there) {p_x, p_pixels, p_reach_y} <= {x, stripe_width, y_next};
        {q_x, q_pixels} <= {p_x, p_pixels};
      end
      assign flat = desc[`DESC_FLAT];
      assign flat_x = q_x;
      assign flat_pixels = q_pixels;
      assign flat_reach = p_reach_y;
    end else begin : g_lines
      assign {flat, flat_y, flat_x, flat_pixels, flat_reach} = 30'd0;
    end
  endgenerate

  always @(posedge clk) begin
    if (!p_there) begin
      p_gx    <= flat ? 10'd0 : stripe_gx;
      p_gy    <= whole ? 9'd0 : flat ? flat_y : stripe_gy;
      p_reach <= flat ? 7'd0 : stripe_width - 7'd1;
      p_lines <= stripe_lines;
      p_low   <= stripe_last_y;
      p_last  <= whole || (stripe_last_x && stripe_last_y);
    end
  end

  // ---- dilated windows: lines of the three tap rows, those of the upper and the lower one clipped to the map
  wire far;
  wire [3:0] apart;  // pixels from one tap to the next
  wire [9:0] far_first, far_last;
  wire [3:0] far_reach;
  wire [2:0] far_index;
  generate
    if (DILATION > 1) begin : g_far
      reg on;
      reg [3:0] d;
      always @(posedge clk) begin
        on <= desc[`DESC_DIL] != 3'd0;
        d  <= {1'b0, desc[`DESC_DIL]} + 4'd1;
      end
      wire [9:0] gy = {1'b0, p_gy};
      wire [9:0] over = {6'd0, d} - gy;  // lines of the upper tap row above the map, if positive
      wire no_upper = !over[9] && over[3:0] >= {1'b0, p_lines};
      wire [2:0] upper = no_upper ? 3'd0 : over[9] ? p_lines : p_lines - over[2:0];
      wire [10:0] room = {1'b0, n_h} - {2'd0, p_gy} - {7'd0, d};  // lines of the map for the lower one
      wire no_lower = room[10] || room[9:0] == 10'd0;
      wire few = room[9:3] == 7'd0 && room[2:0] < p_lines;
      wire [2:0] lower = no_lower ? 3'd0 : few ? room[2:0] : p_lines;
      assign far = on;
      assign apart = d;
      assign far_index = no_upper ? 3'd4 : over[9] ? 3'd0 : over[2:0];
      assign far_first = no_upper ? gy : over[9] ? 10'd0 - over : 10'd0;
      assign far_last = gy + (no_lower ? {7'd0, p_lines} : {6'd0, d} + {7'd0, lower}) - 10'd1;
      assign far_reach = {1'b0, upper} + {1'b0, p_lines} + {1'b0, lower} - 4'd1;
    end else begin : g_near
      assign far = 1'b0;
      assign apart = 4'd1;
      assign {far_first, far_last, far_reach, far_index} = 27'd0;
    end
  endgenerate

  // ---- lines covered by the windows, clipped to the map
  wire [9:0] y_top = {1'b0, p_gy} << stl;
  wire up_tap = k3_taps && p_gy != 9'd0;
  wire down_tap = k3_taps && !(p_low && stl == 2'd0 && kh == n_h);
  wire [9:0] y_first = far ? far_first : y_top - {9'd0, up_tap};
  wire [2:0] lines_m1 = p_lines - 3'd1;
  wire [3:0] y_reach = {1'b0, lines_m1} << stl;  // at most three lines of four
  wire to_end = whole || (flat && p_last);
  wire [9:0] y_near = (to_end ? n_h : y_top) + (to_end ? 10'h3ff : {6'd0, y_reach}) + {9'd0, down_tap && !to_end};
  wire [9:0] y_last = far ? far_last : y_near;

  // ---- words of a line covered by the windows, clipped to the map
  wire [9:0] x_base = p_gx << stl;
  wire [9:0] x_lo = x_base | {9'd0, ph};  // a phase implies a stride of two
  wire [8:0] x_reach = {2'd0, p_reach} << stl;  // at most 63 * 4
  wire pre_word = k3_taps && x_lo != 10'd0 && x_lo[TB-1:0] == {TB{1'b0}};
  wire [10:0] x_next = {1'b0, x_lo} + {2'd0, x_reach} + {7'd0, apart & {4{k3_taps}}};
  wire beyond = x_next[10:TB] > right[10:TB];  // the map ends one word earlier
  wire carries = x_next[TB] ^ x_lo[TB] ^ x_reach[TB];

  reg [9:0] last_y;
  reg [3:0] reach;
  reg [2:0] index;
  reg pre, post;
  reg [2:0] lines;
  reg [NB-1:0] first_s, last_s;
  reg [TB-1:0] shift;
  always @(posedge clk) begin
    last_y <= (flat && !p_last) ? {1'b0, flat_reach} : y_last;
    reach <= far ? far_reach : y_reach + {3'd0, up_tap} + {3'd0, down_tap};
    index <= far ? far_index : {2'd0, !up_tap};
    lines <= p_lines;
    last <= p_last;
    pre <= !whole && pre_word;
    post <= !whole && carries && !beyond;
    first_s <= whole ? {NB{1'b0}} : x_lo[9:TB] - {{(NB - 1) {1'b0}}, pre_word};
    last_s <= beyond ? right[9:TB] : x_next[9:TB];
    shift <= whole ? {TB{1'b0}} : x_lo[TB-1:0];
  end

  // ---- row of the first line: rows per line times the line index. An adder, because a multiplier would be
  // one less for the array.
  reg [14:0] row;
  reg [14:0] multiple;  // the line index times 1, 2, 4, 8
  reg [ 3:0] factor;  // remaining bits of the rows per line
  always @(posedge clk) begin
    if (there) begin
      row <= row + (factor[0] ? multiple : 15'd0);
      multiple <= {multiple[13:0], 1'b0};
      factor <= {1'b0, factor[3:1]};
    end else begin
      row <= desc[`DESC_SRC];
      multiple <= {5'd0, y_first};
      factor <= (y_first == 10'd0 && !far) ? 4'd0 : irl[3:0];
    end
  end
  // ---- dilation: rows from the last line of a tap row to the first one of the next, which may be above it
  generate
    if (DILATION > 1) begin : g_hop
      reg [14:0] hop, part;
      always @(posedge clk) begin
        if (there) begin
          hop  <= hop + (factor[0] ? part : 15'd0);
          part <= {part[13:0], 1'b0};
        end else begin
          hop  <= 15'd0;
          part <= {11'd0, apart} + 15'd1 - {12'd0, p_lines};
        end
      end
      assign stripe[`STRIPE_HOP] = hop;
    end else begin : g_no_hop
      assign stripe[`STRIPE_HOP] = 15'd0;
    end
  endgenerate
  assign ready = there && factor == 4'd0 && last_y < lines_there;

  assign stripe[`STRIPE_LAST] = last;
  assign stripe[`STRIPE_INDEX] = index;
  assign stripe[`STRIPE_LINES] = lines;
  assign stripe[`STRIPE_REACH] = whole ? last_y : {6'd0, reach};
  assign stripe[`STRIPE_FIRST] = first_s;
  assign stripe[`STRIPE_FINAL] = last_s;
  assign stripe[`STRIPE_PRE] = pre;
  assign stripe[`STRIPE_POST] = post;
  assign stripe[`STRIPE_SHIFT] = shift;
  assign stripe[`STRIPE_ROW] = row;
  assign stripe[`STRIPE_FLAT_X] = flat_x;
  assign stripe[`STRIPE_FLAT_PIXELS] = flat_pixels;

  wire unused = &{1'b0, desc, n_w, irl, right, x_next, x_reach};

`ifdef FORMAL_fill_stripe
  `include "fill_stripe_props.vh"
`endif

endmodule

`resetall
