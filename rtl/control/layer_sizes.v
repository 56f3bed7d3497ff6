// SPDX-License-Identifier: Apache-2.0
//
// layer_sizes: what follows from the sizes and the pool of a layer: layout of its maps in the AI RAM,
// the grid of pixels that is computed, the stripe.
//
// How it works: registers, in up to four steps. Sizes and pool come words before a layer's last one,
// so all is settled when the checks begin. pool_check looks at the windows of a pooling task, layer_share
// tells how many groups share a reading of the input.
// Handshake: none; the fields of a layer are stable from its fifth word on.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_sizes #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // bytes of a tile word, entries; 1: maps of 1x1 layers may be taken as one line
    parameter TILE_W = 64,
    parameter TILE_ROWS = 32,
    parameter FLAT = 0,
    // derived, not to be set: width of a bank number
    parameter ZW = $clog2(N_Z)
) (
    // clock
    input  wire                   clk,
    // word 6, of which a pooling task is made; there is one, its window, which cannot be
    input  wire                   take,
    input  wire [           63:0] word,
    output wire                   pools,
    output wire [`PTASK_BITS-1:0] window,
    output wire                   bad_window,
    // layer: channels are reduced by nines, fully connected, depthwise, four planes a channel, product
    // of float16 and of float32 results, pool_type, channels (many: more than 9216 come in), widths,
    // lines of input and output
    input  wire                   chan,
    input  wire                   fc,
    input  wire                   dw,
    input  wire                   out32,
    input  wire [            1:0] fp16,
    input  wire [            3:0] pool_type,
    input  wire [           13:0] n_c,
    input  wire                   many,
    input  wire [           10:0] n_o,
    input  wire [           10:0] n_w,
    input  wire [           10:0] n_ow,
    input  wire [            9:0] n_h,
    input  wire [            9:0] n_oh,
    // sizes do not fit each other
    output reg                    bad,
    // pitch codes, rows of a line, channel groups of input and output (out32: channels, whose planes
    // take 1 << op groups)
    output reg  [            1:0] ip,
    output reg  [            1:0] op,
    output reg  [            4:0] irl,
    output reg  [            4:0] orl,
    output reg  [           13:0] in_groups,
    output reg  [           10:0] out_groups,
    // groups of N_Z output channels; 9 * channels
    output reg  [           10:0] z_groups,
    output reg  [           17:0] taps_out,
    // log2 of the pool's stride, it is a pick; its map is one line
    output reg  [            1:0] fl,
    output reg                    pick,
    output wire                   flat,
    // groups that share a reading of the input
    output wire [            3:0] share,
    // the computed grid, log2 of the stripe's line, POOL_*
    output reg  [           10:0] n_kw,
    output reg  [            9:0] n_kh,
    output reg  [            2:0] swl,
    output reg  [            2:0] pool
);

  // pitch code, by at most 16, at most 32
  function [1:0] pitch_of(input [10:0] w);
    pitch_of = (w[10:5] == 6'd0 && (!w[4] || w[3:0] == 4'd0)) ? 2'd0 :
        (w[10:6] == 5'd0 && (!w[5] || w[4:0] == 5'd0)) ? 2'd1 : 2'd2;
  endfunction

  // ceil(channels / channels in a row)
  function [13:0] groups_of(input [13:0] n, input [1:0] pitch);
    groups_of = (n >> ((pitch == 2'd0) ? 2 : (pitch == 2'd1) ? 1 : 0)) +
        {13'd0, (pitch == 2'd0) ? n[1:0] != 2'd0 : pitch == 2'd1 && n[0]};
  endfunction

  wire [13:0] out_all = groups_of({3'd0, n_o}, op);
  wire unused_top = &{1'b0, out_all[13:11]};
  wire bad_steps;
  wire [10:0] all_pixels;
  pool_check u_pool (
      .clk(clk),
      .take(take),
      .word(word),
      .n_w(n_w),
      .n_h(n_h),
      .n_ow(n_ow),
      .n_oh(n_oh),
      .pools(pools),
      .window(window),
      .bad_window(bad_window),
      .bad_size(bad_steps)
  );

  wire [10:0] want_ow = fc ? 11'd1 : n_w >> fl;
  wire [9:0] want_oh = fc ? 10'd1 : n_h >> fl;
  wire reduces = pool_type != 4'd0 && !pick;
  wire [1:0] kp = pitch_of(n_kw);
  wire narrow = fc || (reduces && fl != 2'd1) || kp == 2'd0;

  // a product of float16: rows of B in one line, or in lines of whole rows; C as many, or two for one
  wire one_line = n_h == 10'd1;
  wire whole = n_w[5:0] == 6'd0;
  wire same = n_ow == n_w && n_oh == n_h;
  wire longer = one_line && n_ow == {n_w[9:0], 1'b0} && n_oh == n_h;
  wire higher = whole && n_ow == n_w && n_oh == {n_h[8:0], 1'b0};
  reg bad_rows;
  always @(posedge clk)
    bad_rows <= n_w[0] || !(one_line || whole) || !(fp16[1] ? longer || higher : same) || n_ow > 11'd960;

  // One line of all pixels, for lines that do not fill the array: of 16 bytes in the AI RAM, and no
  // more pixels than the widest map has in a line.
  generate
    if (FLAT != 0) begin : g_flat
      localparam [10:0] Y_MASK = N_Y[10:0] - 11'd1;
      // where the input is read for each group, or not ahead of the last one: lines from here on
      localparam [10:0] READ_AGAIN = (TILE_W == 64 && N_Y <= 4) ? 11'd9 : 11'd16;
      localparam integer AHEAD_I = TILE_ROWS / 2 * 9;
      localparam [20:0] AHEAD = AHEAD_I[20:0];  // channels whose entries leave room for as many
      // parts of lines that leave for a channel of a stripe, 64 / N_Y cycles of the array: a group must
      // have as many reduction steps that the array is the slower side
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
      wire unused = &{1'b0, all_pixels};
    end
  endgenerate

  // rows of a line: one, or ceil(width / 64)
  always @(posedge clk) begin
    ip <= pitch_of(n_w);
    op <= pitch_of(n_ow);
    irl <= n_w[10:6] + {4'd0, n_w[5:0] != 6'd0};
    orl <= n_ow[10:6] + {4'd0, n_ow[5:0] != 6'd0};
    in_groups <= groups_of(n_c, ip);
    out_groups <= out32 ? n_o : out_all[10:0];
    fl   <= (pool_type == 4'd3 || pool_type == 4'd4 || pool_type == 4'd7) ? 2'd2 :
             (pool_type == 4'd0 || pool_type == 4'd8 || pool_type == 4'd9) ? 2'd0 : 2'd1;
    pick <= pool_type == 4'd5 || pool_type == 4'd6 || pool_type == 4'd7;
    n_kw <= flat ? all_pixels : fc ? 11'd1 : pick ? n_ow : (fl != 2'd0) ? n_ow << fl : n_w;
    n_kh <= (fc || flat) ? 10'd1 : pick ? n_oh : (fl != 2'd0) ? n_oh << fl : n_h;
    swl <= flat ? 3'd6 : narrow ? 3'd4 : (reduces || kp == 2'd1) ? 3'd5 : 3'd6;
    z_groups <= (n_o >> ZW) + {10'd0, n_o[ZW-1:0] != {ZW{1'b0}}};
    taps_out <= {7'd0, n_c[10:0]} + {4'd0, n_c[10:0], 3'd0};  // 9 * channels of a 3x3 layer: 1024 at most
    bad <= (pools ? bad_steps : fp16[0] ? bad_rows : n_ow != want_ow || n_oh != want_oh) || irl > 5'd15 ||
        ((dw || pools) && n_c != {3'd0, n_o}) || many || (n_c > 14'd1024 && (!chan || pools));
  end

  layer_share #(
      .N_Y   (N_Y),
      .TILE_W(TILE_W)
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
