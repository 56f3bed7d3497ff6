// SPDX-License-Identifier: Apache-2.0
//
// layer_sizes: the rules that map a layer onto the array: layout of its maps in the AI RAM, the grid of
// computed pixels, the stripe, consistency of its sizes.
//
// How it works: combinational, in front of a register where the path is long. Sizes and pool arrive words
// before a layer's last one, so all outputs settle before the checks end. layer_share computes how many
// groups share one read of the input. models/openkpu/layer/decoded.py has the same rules.
// Handshake: none; the fields of a layer are stable from its fifth word on.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_sizes #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // bytes of a tile word, entries; 1: products of float16 are supported; 1: narrow maps of 1x1 layers are
    // computed as one line
    parameter TILE_WORD = 64,
    parameter TILE_ROWS = 32,
    parameter FP16 = 0,
    parameter FLAT_MAPS = 0
) (
    // clock
    input  wire        clk,
    // pooling task, of the whole map
    input  wire        pools,
    input  wire        whole_map,
    // layer: channels are reduced by nines, fully connected, depthwise, four planes per channel, product of
    // float16 (with float32 results), pool_type, channels (many: more than 9216 inputs), widths, lines of
    // input and output; its map arrives while it computes, and none leaves
    input  wire        chan,
    input  wire        fc,
    input  wire        dw,
    input  wire        out32,
    input  wire [ 1:0] fp16,
    input  wire        arrives,
    input  wire [ 3:0] pool_type,
    input  wire [13:0] n_c,
    input  wire        many,
    input  wire [10:0] n_o,
    input  wire [10:0] n_w,
    input  wire [10:0] n_ow,
    input  wire [ 9:0] n_h,
    input  wire [ 9:0] n_oh,
    // inconsistent sizes
    output reg         bad,
    // pitch codes, rows of a line of input and output
    output reg  [ 1:0] ip,
    output reg  [ 1:0] op,
    output reg  [ 4:0] irl,
    output reg  [ 4:0] orl,
    // log2 of the pool's stride; the pool is a pick; the map is computed as one line
    output wire [ 1:0] fl,
    output wire        pick,
    output wire        flat,
    // groups that share one read of the input
    output wire [ 3:0] share,
    // the computed grid, log2 of the stripe's line, POOL_*
    output reg  [10:0] n_kw,
    output reg  [ 9:0] n_kh,
    output reg  [ 2:0] swl,
    output reg  [ 2:0] pool
);

  // pitch code: width at most 16, at most 32, more
  function [1:0] pitch_of(input [10:0] w);
    pitch_of = (w[10:5] == 6'd0 && (!w[4] || w[3:0] == 4'd0)) ? 2'd0 :
        (w[10:6] == 5'd0 && (!w[5] || w[4:0] == 5'd0)) ? 2'd1 : 2'd2;
  endfunction

  // pool_type: none, four sums or maxima, picks of one pixel; 8 and 9 have overlapping windows
  wire [10:0] all_pixels;
  wire quarter = pool_type == 4'd3 || pool_type == 4'd4 || pool_type == 4'd7;
  wire stays = pool_type == 4'd0 || pool_type == 4'd8 || pool_type == 4'd9;
  assign fl   = quarter ? 2'd2 : stays ? 2'd0 : 2'd1;
  assign pick = pool_type == 4'd5 || pool_type == 4'd6 || pool_type == 4'd7;

  // rows of a line: one, or ceil(width / 64)
  always @(posedge clk) begin
    ip  <= pitch_of(n_w);
    op  <= pitch_of(n_ow);
    irl <= n_w[10:6] + {4'd0, n_w[5:0] != 6'd0};
    orl <= n_ow[10:6] + {4'd0, n_ow[5:0] != 6'd0};
  end

  // pixels outside full pooling windows are not computed
  wire [1:0] left_over = quarter ? 2'd3 : stays ? 2'd0 : 2'd1;
  wire [10:0] want_ow = fc ? 11'd1 : n_w >> fl;
  wire [9:0] want_oh = fc ? 10'd1 : n_h >> fl;
  wire reduces = pool_type != 4'd0 && !pick;
  wire [1:0] kp = pitch_of(n_kw);
  wire narrow = fc || (reduces && fl != 2'd1) || kp == 2'd0;

  // a product of float16: B in one line, or in lines of whole rows; C of the same size, or twice that with
  // float32
  wire bad_rows;
  generate
    if (FP16 != 0) begin : g_fp16
      wire one_line = n_h == 10'd1;
      wire whole = n_w[5:0] == 6'd0;
      wire same = n_ow == n_w && n_oh == n_h;
      wire longer = one_line && n_ow == {n_w[9:0], 1'b0} && n_oh == n_h;
      wire higher = whole && n_ow == n_w && n_oh == {n_h[8:0], 1'b0};
      wire fits = (one_line || whole) && (fp16[1] ? longer || higher : same);
      reg  found;
      always @(posedge clk) found <= n_w[0] || !fits || n_ow > 11'd960;
      assign bad_rows = found;
    end else begin : g_no_fp16
      assign bad_rows = 1'b0;
      wire unused_fp16 = &{1'b0, fp16};
    end
  endgenerate

  // All pixels as one line, for lines that do not fill the array: lines of 16 bytes in the AI RAM, and no
  // more pixels than a line of the widest map.
  generate
    if (FLAT_MAPS != 0) begin : g_flat
      localparam [10:0] Y_MASK = N_Y[10:0] - 11'd1;
      // minimum width if the input is read for each group, or not ahead of the last one
      localparam [10:0] READ_AGAIN = (TILE_WORD == 64 && N_Y <= 4) ? 11'd9 : 11'd16;
      localparam integer AHEAD_I = TILE_ROWS / 2 * 9;
      localparam [20:0] AHEAD = AHEAD_I[20:0];  // channels whose entries leave room for the same number again
      // partial lines written per channel of a stripe, 64 / N_Y cycles of the array: a group needs enough
      // reduction steps that the array is the slower side
      localparam integer LANES_L = $clog2(N_Y * N_Z);
      wire [ 6:0] lines;
      wire [ 3:0] rest;
      wire [16:0] parts = {10'd0, lines} + 17'd5;
      wire [16:0] least = (((parts << 3) + parts) << LANES_L) >> 6;  // in channels
      flat_lines u_lines (
          .width(n_w[3:0]),
          .lines(lines),
          .rest (rest)
      );
      reg [14:0] pixels;
      reg fits, enough;
      wire [14:0] h_15 = {5'd0, n_h};
      always @(posedge clk) begin
        pixels <= (n_w[0] ? h_15 : 15'd0) + (n_w[1] ? h_15 << 1 : 15'd0) +
            (n_w[2] ? h_15 << 2 : 15'd0) + (n_w[3] ? h_15 << 3 : 15'd0);
        fits <= chan && pool_type == 4'd0 && !out32 && !fp16[0] && n_w[10:4] == 7'd0 && (n_w & Y_MASK) != 11'd0 &&
            (n_w >= READ_AGAIN || {7'd0, n_c} <= AHEAD);
        enough <= {3'd0, n_c} >= least;
      end
      assign flat = fits && enough && pixels <= 15'd1024;
      wire unused_rest = &{1'b0, rest};
      assign all_pixels = pixels[10:0];
    end else begin : g_lines
      assign flat = 1'b0;
      assign all_pixels = 11'd0;
      wire unused = &{1'b0, all_pixels, out32};
    end
  endgenerate

  // a line has at most 15 rows; only a 1x1 convolution has more than 1024 channels
  wire wide_line = irl[4];
  wire over_1024 = n_c[13:11] != 3'd0 || (n_c[10] && n_c[9:0] != 10'd0);
  wire one = n_ow == 11'd1 && n_oh == 10'd1;
  wire bad_out = pools ? whole_map && !one : (FP16 != 0 && fp16[0]) ? bad_rows : n_ow != want_ow || n_oh != want_oh;
  always @(posedge clk) begin
    n_kw <= flat ? all_pixels : fc ? 11'd1 : pick ? n_ow : n_w & ~{9'd0, left_over};
    n_kh <= (fc || flat) ? 10'd1 : pick ? n_oh : n_h & ~{8'd0, left_over};
    swl <= flat ? 3'd6 : narrow ? 3'd4 : (reduces || kp == 2'd1) ? 3'd5 : 3'd6;
    bad <= bad_out || wide_line || ((dw || pools) && n_c != {3'd0, n_o}) || many ||
        (over_1024 && (!chan || pools));
  end

  layer_share #(
      .N_Y      (N_Y),
      .TILE_WORD(TILE_WORD),
      .FLAT_MAPS(FLAT_MAPS)
  ) u_share (
      .clk     (clk),
      .chan    (chan),
      .taps    (!chan && !fc && !dw),
      .kw      (n_kw),
      .swl     (swl),
      .ip      (ip),
      .stride  (pick ? fl : 2'd0),
      .flat    (flat),
      .width_in(n_w[3:0]),
      .arrives (arrives && fp16 == 2'd0),
      .share   (share)
  );

  always @* begin
    case (pool_type)
      4'd1: pool = `POOL_MAX2;
      4'd2: pool = `POOL_MEAN2;
      4'd3: pool = `POOL_MAX4;
      4'd4: pool = `POOL_MEAN4;
      4'd8: pool = `POOL_MEANS1;
      4'd9: pool = `POOL_MAXS1;
      default: pool = `POOL_NONE;
    endcase
  end

endmodule

`resetall
