// SPDX-License-Identifier: Apache-2.0
//
// loop_nest: the position of the sequencer in a layer.
//
// How it works: the nest is block of output groups > stripe > group > reduction step > pixels of
// the stripe. Depthwise layers without pooling walk AI RAM rows instead (channel group > line >
// row), and every issue is a finished sum; depthwise layers with pooling walk stripe > channel. A
// fully connected layer walks neuron > step. With out32 a group's last step is made four times, once
// for each byte of the sums that leave; with SUM_PLANES once, and plane_issue sees to the other
// bytes. The outputs describe the present issue: the tile
// entry and the weight row it reads, its place in the nest, and what it is the last use of. With PAIR
// an issue takes two depthwise lines of a row each, where both lie in one word of the output.
// Handshake: start with a stable descriptor; `go` makes the present issue and moves on; running
// until the last one is made, done a cycle later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module loop_nest #(
    // array: pixels and output channels (powers of two)
    parameter N_Y        = 4,
    parameter N_Z        = 4,
    // entries of the tile buffer and rows of the weight buffer (powers of two), bytes of a tile word
    parameter TILE_ROWS  = 32,
    parameter WBUF_ROWS  = 1024,
    parameter TILE_W     = 64,
    // 1: two depthwise rows an issue; a last step is made once; maps of 1x1 layers may be one line
    parameter PAIR       = 0,
    parameter SUM_PLANES = 0,
    parameter FLAT       = 0,
    // derived, not to be set: width of a tile entry counter, weight row counter, bank number
    parameter TW         = $clog2(TILE_ROWS) + 2,
    parameter WW         = $clog2(WBUF_ROWS) + 2,
    parameter ZW         = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; the issue described is made
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  go,
    output reg                   running,
    output reg                   done,
    // first entry of the layer; first weight row of a network whose weights are there already
    input  wire [        TW-1:0] tile_filled,
    input  wire                  repeats,
    input  wire [        WW-1:0] net_base,
    // another unit has used up weight rows: those that are read next
    input  wire                  skip,
    input  wire [        WW-1:0] skip_to,
    // memories: tile entry, weight row, bank of a weight word (fully connected)
    output reg  [        TW-1:0] entry,
    output wire [        WW-1:0] use_wrow,
    // the same without the sum: a convolution's row; depthwise: row of the first channel
    output wire [        WW-1:0] own_wrow,
    output wire [        WW-1:0] base_wrow,
    output reg  [        ZW-1:0] wbank,
    // place: group, reduction step (depthwise stripes: channel), place in the accumulators
    output reg  [          10:0] grp,
    output reg  [          17:0] step,
    output reg  [           5:0] idx,
    // out32: the byte of the sums that leaves
    output reg  [           1:0] plane,
    // place in depthwise rows: line, row of the line, first channel; channel of this pass
    output reg  [           9:0] line,
    output reg  [           3:0] seg,
    output reg  [          10:0] chan,
    output wire [          10:0] pass_chan,
    // stripe: origin, lines of it; position in its 64 pixels; width and slots that count
    output wire [           9:0] stripe_gx,
    output wire [           8:0] stripe_gy,
    output reg  [           6:0] pos,
    output wire [           6:0] wlim,
    output wire [           2:0] slots,
    // last of: the stripe's pixels, steps, rows of a line, lines
    output wire                  sweep_done,
    output wire                  step_last,
    output wire                  seg_last,
    output wire                  line_last,
    // with this sweep's sums the output map has all of their channels
    output wire                  whole,
    // with PAIR: the issue takes this line and the one below, which is the last one
    output wire                  two,
    output wire                  two_last,
    // entries and weight rows that are not needed after this issue (0 unless go)
    output wire [           1:0] release_tile,
    output wire [           1:0] release_wrows
);

  // depthwise lanes: no more than a tile word has bytes
  localparam integer LANES = (N_Y * N_Z < TILE_W) ? N_Y * N_Z : TILE_W;
  localparam [6:0] CHUNK_N = N_Y[6:0];
  localparam [7:0] CHUNK_D = LANES[7:0];
  localparam integer DB = $clog2(LANES);
  localparam [2:0] DB_3 = DB[2:0];

  // ---- descriptor fields
  wire [ 1:0] mode = desc[`DESC_MODE];
  wire        dw = desc[`DESC_DW];
  wire [13:0] chans = desc[`DESC_C];
  wire [10:0] n_c = chans[10:0];  // depthwise: 1024 at most
  wire [10:0] n_w = desc[`DESC_W];
  wire [ 9:0] n_h = desc[`DESC_H];
  wire [17:0] n_s = desc[`DESC_S];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire        held = desc[`DESC_HELD];
  wire [ 1:0] ip = desc[`DESC_IP];
  wire [ 4:0] irl = desc[`DESC_IRL];
  wire [13:0] out_rows = desc[`DESC_OCS];
  wire [14:0] dst = desc[`DESC_DST];
  wire        out_first = dst[0];
  wire        taps_mode = mode == `MODE_TAPS;
  wire        dwrow_mode = mode == `MODE_DWROW;
  wire        fc_mode = mode == `MODE_FC;
  wire        dwst_mode = taps_mode && dw;
  wire        overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
  wire [ 2:0] g_in = {ip == 2'd0, ip == 2'd1, ip[1]};  // channels in an AI RAM row

  // ---- what is constant in a layer, worked out in the cycle after its start: nothing is issued in it,
  // for no entry is filled yet
  reg         start_q;
  reg  [17:0] s_m1;
  reg  [ 9:0] h_m1;
  reg  [ 5:0] w_m1;
  reg  [ 3:0] irl_m1;
  reg  [ 1:0] c_m1;
  always @(posedge clk) begin
    start_q <= start && !rst;
    s_m1    <= n_s - 18'd1;
    h_m1    <= n_h - 10'd1;
    w_m1    <= n_w[5:0] - 6'd1;
    irl_m1  <= irl[3:0] - 4'd1;
    c_m1    <= n_c[1:0] - 2'd1;
  end

  // ---- stripes: the iterator is one ahead of the stripe at work
  wire [9:0] next_gx;
  wire [8:0] next_gy;
  wire [6:0] next_width;
  wire [2:0] next_lines;
  wire next_last_x, next_last_y;
  wire next_last = next_last_x && next_last_y;
  wire stripe_load;
  reg [9:0] cur_gx;
  reg [8:0] cur_gy;
  reg [6:0] cur_width;
  reg [5:0] cur_width_m1;
  reg [2:0] cur_lines;
  reg [1:0] cur_lines_m1;
  reg cur_last;
  stripe_iter u_stripe (
      .clk    (clk),
      .rst    (rst),
      .restart(start || (stripe_load && next_last)),
      .next   (stripe_load && !next_last),
      .kw     (desc[`DESC_KW]),
      .kh     (desc[`DESC_KH]),
      .swl    (desc[`DESC_SWL]),
      .overlap(overlap),
      .gx     (next_gx),
      .gy     (next_gy),
      .width  (next_width),
      .lines  (next_lines),
      .last_x (next_last_x),
      .last_y (next_last_y)
  );
  always @(posedge clk) begin
    if (stripe_load) begin
      cur_gx       <= next_gx;
      cur_gy       <= next_gy;
      cur_width    <= next_width;
      cur_width_m1 <= next_width[5:0] - 6'd1;
      cur_lines    <= next_lines;
      cur_lines_m1 <= next_lines[1:0] - 2'd1;
      cur_last     <= next_last;
    end
  end
  // a flat layer's stripe begins in a line
  generate
    if (FLAT != 0) begin : g_flat
      wire [3:0] next_x;
      wire [8:0] next_y, y_after;
      reg [3:0] cur_x;
      reg [8:0] cur_y;
      flat_origin u_origin (
          .clk    (clk),
          .restart(start || (stripe_load && next_last)),
          .next   (stripe_load && !next_last),
          .width  (n_w[4:0]),
          .x      (next_x),
          .y      (next_y),
          .y_next (y_after)
      );
      always @(posedge clk) if (stripe_load) {cur_x, cur_y} <= {next_x, next_y};
      assign stripe_gx = desc[`DESC_FLAT] ? {6'd0, cur_x} : cur_gx;
      assign stripe_gy = desc[`DESC_FLAT] ? cur_y : cur_gy;
      wire unused_y = &{1'b0, y_after};
    end else begin : g_lines
      assign stripe_gx = cur_gx;
      assign stripe_gy = cur_gy;
    end
  endgenerate

  // ---- counters of the nest
  reg [10:0] blk;  // first group of the block
  reg [10:0] grps_left;  // groups from this block on
  reg [10:0] grp_nth;  // the group in its block, from 1 on
  reg [10:0] chans_left;  // depthwise rows: channels from these on
  reg [TW-1:0] ebase;  // first entry of the stripe
  reg [WW-1:0] wblk;  // first weight row of the block, of the layer (depthwise)
  reg [WW-1:0] wrow;

  // ---- the sweep over the positions of a row: the pixels of an issue are of one slot, or of whole ones
  wire [2:0] swl = dwrow_mode ? {1'b1, ip} : desc[`DESC_SWL];
  wire wide_chunk = dw && DB_3 >= swl;
  assign seg_last = seg == irl_m1;
  wire chan_last = chans_left[10:3] == 8'd0 && chans_left[2:0] <= g_in;
  wire [1:0] g_mask = {ip == 2'd0, !ip[1]};
  wire [6:0] row_rest = {n_w[5:0] == 6'd0, n_w[5:0]};
  assign wlim  = !dwrow_mode ? cur_width : seg_last ? row_rest : 7'd64;
  assign slots = !dwrow_mode ? cur_lines : chan_last ? chans_left[2:0] : g_in;
  wire [5:0] wlim_m1 = !dwrow_mode ? cur_width_m1 : seg_last ? w_m1 : 6'd63;
  wire [1:0] slots_m1 = !dwrow_mode ? cur_lines_m1 : chan_last ? c_m1 & g_mask : g_mask;

  // the last chunk of the slot, the last slot
  wire [5:0] jj = {pos[5] && swl[1], pos[4] && swl != 3'd4, pos[3:0]};
  wire [5:0] same = ~(jj ^ wlim_m1);
  wire [5:0] above_y = 6'd63 << $clog2(N_Y);
  wire [5:0] above_d = 6'd63 << $clog2(LANES);
  wire slot_done = wide_chunk || &(same | ~(dw ? above_d : above_y));
  wire [2:0] unit_l = wide_chunk ? DB_3 : swl;  // log2 of what is looked at
  wire [1:0] end_slot = (swl == 3'd4) ? slots_m1 : {slots_m1[0], 1'b1};
  wire last_slot = (pos[5] == end_slot[1] || unit_l[2:1] == 2'd3) &&
      (pos[4] == end_slot[0] || unit_l != 3'd4);
  assign sweep_done = fc_mode || (slot_done && last_slot);
  wire skips = slot_done && !wide_chunk;  // to the next slot
  wire [5:0] slot_mask = {swl[1], swl != 3'd4, 4'hf};
  wire [6:0] pos_next = (skips ? pos | {1'b0, slot_mask} : pos) +
      (skips ? 7'd1 : dw ? CHUNK_D[6:0] : CHUNK_N);

  // ---- ends of the loops
  reg [11:0] grps_after;  // groups behind this block, or none
  reg blk_end;
  wire blk_next;
  wire [11:0] after_next = (start_q ? {1'b0, grps_left} : grps_after) - {1'b0, n_b};
  always @(posedge clk) begin
    if (start_q || blk_next) begin
      grps_after <= after_next;
      blk_end    <= after_next[11] || after_next == 12'd0;
    end
  end
  assign step_last = step == s_m1;
  wire again = SUM_PLANES == 0 && desc[`DESC_OUT32] && step_last && plane != 2'd3;
  wire step_end = sweep_done && !again;
  wire group_end = step_end && step_last && !dwrow_mode;
  wire grp_last = grp_nth == (blk_end ? grps_left : n_b);
  wire stripe_last = fc_mode || cur_last;
  wire blk_lastest = grp_last && blk_end;
  wire pass_end = group_end && grp_last;  // all groups of the block saw this stripe
  wire row_end = dwrow_mode && sweep_done;
  assign line_last = line == h_m1;
  assign whole = dwrow_mode ? seg_last && (two ? two_last : line_last) : stripe_last && !again;
  assign stripe_load = start_q || (go && pass_end);
  assign blk_next = go && pass_end && stripe_last;
  wire rows_end = row_end && seg_last && (two ? two_last : line_last);
  reg  out_odd;  // the row of the output where the channel begins
  generate
    if (PAIR != 0) begin : g_pair
      // one channel a row, one row a line
      assign two = dwrow_mode && !desc[`DESC_EW] && ip == 2'd2 && irl == 5'd1 && out_odd == line[0] && !line_last;
      assign two_last = line + 10'd1 == h_m1;
    end else begin : g_single
      assign two = 1'b0;
      assign two_last = 1'b0;
    end
  endgenerate
  wire [TW-1:0] entry_step = {{(TW - 2) {1'b0}}, two, !two};
  wire all_end = dwrow_mode ? rows_end && chan_last : pass_end && stripe_last && blk_lastest;

  // depthwise: the weight row of the first channel of this pass
  localparam integer LAST_LANE = N_Y * N_Z - 1;
  wire [6:0] pos_0 = pos & ~LAST_LANE[6:0];  // place of lane 0
  assign pass_chan = dwst_mode ? step[10:0] : chan | {8'd0, pos_0[6:4] >> swl[1:0]};  // of whole rows' channels
  // widened first and cut then: a small buffer has fewer bits than a channel number; what a layer
  // needs fits the buffer, so nothing is lost
  wire [WW+10-ZW:0] dw_chan_row = {{WW{1'b0}}, pass_chan[10:ZW]};
  wire [WW-1:0] dw_wrow = wblk + dw_chan_row[WW-1:0];
  assign use_wrow  = dw ? dw_wrow : wrow;
  assign base_wrow = wblk;
  assign own_wrow  = wrow;

  // ---- release of entries and weight rows: with this issue their last use is made
  wire release_entry = go && (dwrow_mode ? row_end : fc_mode ?
             (&step[5:0] || step_last) && (!held || grp_last) :
             step_end && (!held || grp_last));
  assign release_tile = {release_entry && two, release_entry && !two};
  wire fc_word_last = wbank == {ZW{1'b1}} || (grp_last && step_last);
  wire [10:0] chan_next = chan + {8'd0, g_in};
  // rows of the weight buffer that the channels up to here fill for good
  wire [10:0] dw_rows_all = (n_c + N_Z[10:0] - 11'd1) >> ZW;
  wire [WW+10:0] dw_rows_wide = {{WW{1'b0}}, dw_rows_all};
  wire [WW-1:0] dw_next = wblk + dw_rows_wide[WW-1:0];
  wire [10:0] dw_rows_upto = chan_last ? dw_rows_all : chan_next >> ZW;
  reg [10:0] dw_rows_freed;
  wire [10:0] dw_rows_now = dw_rows_upto - dw_rows_freed;
  wire dwst_row_end = step_end && stripe_last && (&step[ZW-1:0] || step_last);
  wire rel_one = dwst_mode ? dwst_row_end : fc_mode ? fc_word_last : step_end && stripe_last;
  assign     release_wrows = !go ? 2'd0 : dwrow_mode ? (rows_end ? dw_rows_now[1:0] : 2'd0) :
             {1'b0, rel_one};


  wire [10:0] grp_next = grp + 11'd1;

  // ---- the nest
  always @(posedge clk) begin
    if (rst) begin
      running       <= 1'b0;
      done          <= 1'b0;
      entry         <= {TW{1'b0}};
      ebase         <= {TW{1'b0}};
      wblk          <= {WW{1'b0}};
      wrow          <= {WW{1'b0}};
      blk           <= 11'd0;
      grps_left     <= 11'd0;
      grp_nth       <= 11'd1;
      chans_left    <= 11'd0;
      grp           <= 11'd0;
      step          <= 18'd0;
      pos           <= 7'd0;
      idx           <= 6'd0;
      plane         <= 2'd0;
      line          <= 10'd0;
      seg           <= 4'd0;
      chan          <= 11'd0;
      wbank         <= {ZW{1'b0}};
      dw_rows_freed <= 11'd0;
      out_odd       <= 1'b0;
    end else begin
      done <= go && all_end;
      if (skip) begin
        wblk <= skip_to;
        wrow <= skip_to;
      end else if (start) begin
        running       <= 1'b1;
        blk           <= 11'd0;
        grps_left     <= n_g;
        grp_nth       <= 11'd1;
        chans_left    <= n_c;
        grp           <= 11'd0;
        step          <= 18'd0;
        pos           <= 7'd0;
        idx           <= 6'd0;
        line          <= 10'd0;
        seg           <= 4'd0;
        chan          <= 11'd0;
        wbank         <= {ZW{1'b0}};
        dw_rows_freed <= 11'd0;
        out_odd       <= out_first;
        entry         <= tile_filled;
        ebase         <= tile_filled;
        wblk          <= repeats ? net_base : wblk;
        wrow          <= repeats ? net_base : wrow;
      end else if (go) begin
        running <= !all_end;
        if (fc_mode) pos <= (step_last || &step[5:0]) ? 7'd0 : pos + 7'd1;
        else pos <= sweep_done ? 7'd0 : pos_next;
        idx <= sweep_done ? 6'd0 : idx + 6'd1;
        if (sweep_done) plane <= again ? plane + 2'd1 : 2'd0;
        if (dwrow_mode) begin
          // channel group > line > row; every row is an entry
          if (row_end) begin
            entry <= entry + entry_step;
            ebase <= entry + entry_step;
            seg <= seg_last ? 4'd0 : seg + 4'd1;
            line <= !seg_last ? line : rows_end ? 10'd0 : line + {8'd0, two, !two};
            out_odd <= out_odd ^ (rows_end && out_rows[0]);
            chan <= rows_end ? chan_next : chan;
            chans_left <= rows_end ? chans_left - {8'd0, g_in} : chans_left;
            dw_rows_freed <= rows_end ? dw_rows_upto : dw_rows_freed;
            if (all_end) begin
              wblk <= dw_next;
              wrow <= dw_next;
            end
          end
        end else if (fc_mode) begin
          // neuron > step, all neurons a block; an entry holds 64 steps, a weight row N_Z words
          step <= step_last ? 18'd0 : step + 18'd1;
          grp <= step_last ? grp_next : grp;
          grp_nth <= step_last ? grp_nth + 11'd1 : grp_nth;
          wbank <= all_end ? {ZW{1'b0}} : wbank + {{(ZW - 1) {1'b0}}, 1'b1};
          if (step_last) begin
            if (held && !grp_last) entry <= ebase;
            else begin
              entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            end
          end else if (&step[5:0]) entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
          else entry <= entry;
          if (fc_word_last) begin
            wrow <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
            wblk <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
          end
        end else if (step_end) begin
          // block > stripe > group > step
          step <= step_last ? 18'd0 : step + 18'd1;
          if (!step_last) begin
            entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            wrow  <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
          end else begin
            // next group of the block, or the next stripe with the first group
            grp_nth <= grp_last ? 11'd1 : grp_nth + 11'd1;
            if (!grp_last) begin
              grp   <= grp_next;
              entry <= held ? ebase : entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= held ? ebase : entry + {{(TW - 1) {1'b0}}, 1'b1};
              wrow  <= wrow + {{(WW - 1) {1'b0}}, 1'b1};
            end else begin
              entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              ebase <= entry + {{(TW - 1) {1'b0}}, 1'b1};
              if (!stripe_last) begin
                grp  <= blk;
                wrow <= wblk;
              end else begin
                grp <= grp_next;
                blk <= grp_next;
                grps_left <= grps_after[10:0];
                wrow <= dw ? dw_next : wrow + {{(WW - 1) {1'b0}}, 1'b1};
                wblk <= dw ? dw_next : wrow + {{(WW - 1) {1'b0}}, 1'b1};
              end
            end
          end
        end
      end
    end
  end

  wire unused = &{1'b0, desc, chans, dw_rows_now, dw_chan_row, dw_rows_wide, pos_0, out_odd, out_rows, dst, unit_l, ip, n_w, irl};

endmodule

`resetall
