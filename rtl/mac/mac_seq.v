// SPDX-License-Identifier: Apache-2.0
//
// mac_seq: issues the work of a layer to the MAC array, one array cycle at a time.
//
// How it works: the nest is block of output groups > stripe > group > reduction step > pixels of
// the stripe. An issue names a tile entry, the position of its first pixel in the 64-pixel row, a
// weight-buffer row and what belongs to the accumulators. Depthwise layers without pooling walk
// AI RAM rows instead (channel group > line > row), and every issue is a finished sum; depthwise
// layers with pooling walk stripe > channel. A fully connected layer walks neuron > step.
// Entries and weight rows are released when their last use was issued; the release is delayed so
// that the last unit of the cascade, N_X - 1 cycles behind the first, has read them. While a
// stream keeps its weights no row is released, and each inference begins at the first one's rows.
// Handshake: start with a stable descriptor, done when all was issued. An issue waits for its tile
// entry, its weight row, a free accumulator bank (or, depthwise, room in the collector and the
// parameters). The array never waits.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module mac_seq #(
    // array: pixels and output channels (powers of two)
    parameter N_Y       = 4,
    parameter N_Z       = 4,
    // entries of the tile buffer and rows of the weight buffer (powers of two)
    parameter TILE_ROWS = 32,
    parameter WBUF_ROWS = 1024,
    // width of a tile entry counter, weight row counter, parameter row counter
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter WW        = $clog2(WBUF_ROWS) + 2,
    parameter PRW       = 13,
    // width of a bank number
    parameter ZW        = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // layer start with its descriptor, absolute parameter row of the layer
    input  wire                    start,
    input  wire [`DESC_W_TOTAL-1:0] desc,
    input  wire [         PRW-1:0] prow_base,
    // weights stay in their rows; an inference begins whose weights are there
    input  wire                    keep,
    input  wire                    again,
    output reg                     running,
    output reg                     done,
    // tile entries: completed by the fill, released by this module (running counts)
    input  wire [          TW-1:0] tile_filled,
    output reg  [          TW-1:0] tile_freed,
    // weight rows: completed by the loader, released by this module (running counts)
    input  wire [          WW-1:0] wrow_filled,
    output wire [          WW-1:0] wrow_freed,
    // accumulator banks that are free; room in the collector and parameters for a depthwise row
    input  wire [             1:0] bank_free,
    output wire                    bank_take,
    output wire                    bank_take_n,
    input  wire                    dw_room,
    output wire                    dw_take,
    input  wire [         PRW-1:0] prow_filled,
    input  wire                    act_ready,
    // issue to the array (registered)
    output reg                     is_valid,
    output reg  [          TW-3:0] is_entry,
    output reg  [          WW-3:0] is_wrow,
    output reg  [          ZW-1:0] is_wsel,
    output reg  [             5:0] is_pos,
    output reg  [             8:0] is_taps,
    output reg  [             6:0] is_wlim,
    output reg  [             2:0] is_slots,
    output reg                     is_left,
    output reg                     is_right,
    output reg  [             5:0] is_rpos,
    output reg                     is_top,
    output reg                     is_bot,
    output reg  [             1:0] is_bslot,
    output reg  [            ZW:0] is_nz,
    // and to the accumulators
    output reg                     is_bank,
    output reg  [             5:0] is_idx,
    output reg                     is_first,
    output reg                     is_last,
    // the group or row that ends with this issue, for drain and write-back
    output reg                     is_end,
    output reg  [         PRW-1:0] is_prow,
    output reg  [             9:0] is_chan,
    output reg  [             9:0] is_gx,
    output reg  [             8:0] is_gy,
    output reg  [             6:0] is_width,
    output reg  [             2:0] is_lines,
    // why nothing was issued
    output wire                    wait_tile,
    output wire                    wait_weight,
    output wire                    wait_output
);

  localparam integer LANES = N_Y * N_Z;
  localparam [6:0] CHUNK_N = N_Y[6:0];
  localparam [7:0] CHUNK_D = LANES[7:0];

  // ---- descriptor fields
  wire [ 1:0] mode = desc[`DESC_MODE];
  wire        dw = desc[`DESC_DW];
  wire        k3 = desc[`DESC_K3];
  wire [10:0] n_c = desc[`DESC_C];
  wire [10:0] n_o = desc[`DESC_O];
  wire [10:0] n_w = desc[`DESC_W];
  wire [ 9:0] n_h = desc[`DESC_H];
  wire [17:0] n_s = desc[`DESC_S];
  wire [ 3:0] lastn = desc[`DESC_LASTN];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire        held = desc[`DESC_HELD];
  wire [ 1:0] stl = desc[`DESC_STL];
  wire        ph = desc[`DESC_PH];
  wire [ 1:0] ip = desc[`DESC_IP];
  wire [ 4:0] irl = desc[`DESC_IRL];
  wire        is_taps_m = mode == `MODE_TAPS;
  wire        is_chan_m = mode == `MODE_CHAN;
  wire        is_dwrow = mode == `MODE_DWROW;
  wire        is_fc = mode == `MODE_FC;
  wire        is_dwst = is_taps_m && dw;
  wire        overlap = desc[`DESC_POOL] == `POOL_MAXS1 || desc[`DESC_POOL] == `POOL_MEANS1;
  wire [ 2:0] gl = 3'd2 - {1'b0, ip};  // log2 of the channels in an AI RAM row
  wire [ 2:0] g_in = 3'd1 << gl;

  // ---- stripes
  wire       st_restart;
  wire       st_next;
  wire [9:0] st_gx;
  wire [8:0] st_gy;
  wire [6:0] st_width;
  wire [2:0] st_lines;
  wire       st_last_x;
  wire       st_last_y;
  stripe_iter u_stripe (
      .clk    (clk),
      .rst    (rst),
      .restart(st_restart),
      .next   (st_next),
      .kw     (desc[`DESC_KW]),
      .kh     (desc[`DESC_KH]),
      .swl    (desc[`DESC_SWL]),
      .overlap(overlap),
      .gx     (st_gx),
      .gy     (st_gy),
      .width  (st_width),
      .lines  (st_lines),
      .last_x (st_last_x),
      .last_y (st_last_y)
  );

  // ---- counters of the nest
  reg  [10:0] blk;  // first group of the block
  reg  [10:0] grp;  // group, 0..n_g-1
  reg  [17:0] step;  // reduction step; depthwise with pooling: channel
  reg  [ 6:0] pos;  // position in the 64-pixel row
  reg  [ 5:0] idx;  // accumulator index
  reg  [ 9:0] line;  // depthwise row mode: line, row of the line, first channel of the row
  reg  [ 3:0] seg;
  reg  [10:0] chan;
  reg         bank;
  reg  [TW-1:0] ebase;  // first entry of the stripe
  reg  [TW-1:0] entry;
  reg  [WW-1:0] wblk;  // first weight row of the block, of the layer (depthwise)
  reg  [WW-1:0] wrow;
  reg  [ZW-1:0] wbank;  // bank of the word (fully connected)

  // ---- the sweep over the positions of a row
  wire [2:0] swl = is_dwrow ? 3'd4 + {1'b0, ip} : desc[`DESC_SWL];
  wire [6:0] sw = 7'd1 << swl;
  wire [10:0] seg_left = n_w - {1'b0, seg, 6'd0};
  wire [6:0] row_width = (seg_left > 11'd64) ? 7'd64 : seg_left[6:0];
  wire [6:0] wlim = is_dwrow ? row_width : st_width;
  wire [10:0] chan_left = n_c - chan;
  wire [2:0] row_chans = (chan_left < {8'd0, g_in}) ? chan_left[2:0] : g_in;
  wire [2:0] slots = is_dwrow ? row_chans : st_lines;
  wire [6:0] jj = pos & (sw - 7'd1);
  wire [6:0] chunk = dw ? CHUNK_D[6:0] : CHUNK_N;
  wire       wide_chunk = dw && CHUNK_D >= {1'b0, sw};  // a pass covers whole slots
  wire [7:0] jj_next = {1'b0, jj} + {1'b0, chunk};
  wire       slot_done = wide_chunk || jj_next >= {1'b0, wlim};
  wire [7:0] slot_base = {1'b0, pos & ~(sw - 7'd1)};
  wire [7:0] pos_next = wide_chunk ? {1'b0, pos} + CHUNK_D :
             slot_done ? slot_base + {1'b0, sw} : {1'b0, pos} + {1'b0, chunk};
  wire [8:0] pos_end = {6'd0, slots} << swl;
  wire       sweep_done = is_fc || (slot_done && {1'b0, pos_next} >= pos_end);

  // ---- ends of the loops
  wire [10:0] blk_left = n_g - blk;
  wire [10:0] blk_last = blk + ((blk_left < n_b) ? blk_left : n_b) - 11'd1;
  wire       step_last = step == n_s - 18'd1;
  wire       step_end = sweep_done;
  wire       grp_end = step_end && step_last && !is_dwrow;
  wire       grp_last = grp == blk_last;
  wire       stripe_last = is_fc || (st_last_x && st_last_y);
  wire       blk_lastest = grp_last && blk_last == n_g - 11'd1;
  wire       pass_end = grp_end && grp_last;  // all groups of the block saw this stripe
  wire       row_end = is_dwrow && sweep_done;
  wire       seg_last = seg == irl[3:0] - 4'd1 || irl == 5'd1;
  wire       line_last = line == n_h - 10'd1;
  wire       rows_end = row_end && seg_last && line_last;
  wire       chan_last = chan_left <= {8'd0, g_in};
  wire       all_end = is_dwrow ? rows_end && chan_last : pass_end && stripe_last && blk_lastest;

  // ---- resources
  // depthwise: the weight row of the first channel of this pass
  wire [10:0] pass_chan = is_dwst ? step[10:0] : chan + {8'd0, pos[6:4] >> (swl - 3'd4)};
  // widened first and cut then: a small buffer has fewer bits than a channel number; what a layer
  // needs fits the buffer, so nothing is lost
  wire [WW+10-ZW:0] dw_chan_row = {{WW{1'b0}}, pass_chan[10:ZW]};
  wire [WW-1:0] dw_wrow = wblk + dw_chan_row[WW-1:0];
  wire [WW-1:0] use_wrow = dw ? dw_wrow : wrow;
  wire [PRW-1:0] use_prow = dw ? prow_base + {{(PRW - 11 + ZW) {1'b0}}, pass_chan[10:ZW]} :
             is_fc ? prow_base + {{(PRW - 11 + ZW) {1'b0}}, grp[10:ZW]} :
             prow_base + {{(PRW - 11) {1'b0}}, grp};
  wire [TW-1:0] tile_diff = tile_filled - entry;
  wire [WW-1:0] wrow_diff = wrow_filled - use_wrow;
  wire [PRW-1:0] prow_diff = prow_filled - use_prow;
  wire       tile_ok = tile_diff != {TW{1'b0}} && !tile_diff[TW-1];
  wire       wrow_ok = wrow_diff != {WW{1'b0}} && !wrow_diff[WW-1];
  wire       prow_ok = act_ready && prow_diff != {PRW{1'b0}} && !prow_diff[PRW-1];
  wire       fresh = pos == 7'd0 || is_fc;  // resources are asked for at the start of a sweep
  wire       bank_ok = dw || step != 18'd0 || bank_free[bank];
  wire       out_ok = dw ? dw_room : bank_ok;
  // a pass of a depthwise row may need another weight row than the pass before
  wire       w_ask = fresh || dw;
  wire       ready = (!fresh || (tile_ok && out_ok)) && (!w_ask || wrow_ok) &&
             (!(dw && w_ask) || prow_ok);
  wire       go = running && ready;

  assign wait_tile   = running && fresh && !tile_ok;
  assign wait_weight = running && !wait_tile && ((w_ask && !wrow_ok) || (dw && !prow_ok));
  assign wait_output = running && !wait_tile && !wait_weight && fresh && !out_ok;
  assign dw_take     = go && dw && fresh;
  assign bank_take   = go && !dw && fresh && step == 18'd0;
  assign bank_take_n = bank;

  assign st_restart = start || (go && pass_end && stripe_last);
  assign st_next    = go && pass_end && !stripe_last;

  // ---- release of entries and weight rows, delayed behind the cascade
  wire       rel_tile = go && (is_dwrow ? row_end : is_fc ?
             (&step[5:0] || step_last) && (!held || grp == n_g - 11'd1) :
             step_end && (!held || grp_last));
  wire       fc_word_last = wbank == {ZW{1'b1}} || (grp == n_g - 11'd1 && step_last);
  wire [10:0] chan_next = chan + {8'd0, g_in};
  // rows of the weight buffer that the channels up to here fill for good
  wire [10:0] dw_rows_all = (n_c + N_Z[10:0] - 11'd1) >> ZW;
  wire [WW+10:0] dw_rows_wide = {{WW{1'b0}}, dw_rows_all};
  wire [WW-1:0] dw_next = wblk + dw_rows_wide[WW-1:0];
  wire [10:0] dw_rows_upto = chan_last ? dw_rows_all : chan_next >> ZW;
  reg  [10:0] dw_rows_freed;
  wire [10:0] dw_rows_now = dw_rows_upto - dw_rows_freed;
  wire       dwst_row_end = step_end && stripe_last && (&step[ZW-1:0] || step_last);
  wire       rel_one = is_dwst ? dwst_row_end : is_fc ? fc_word_last : step_end && stripe_last;
  wire [1:0] rel_wrow = !go ? 2'd0 : is_dwrow ? (rows_end ? dw_rows_now[1:0] : 2'd0) :
             {1'b0, rel_one};

  localparam DLY = 9;
  reg [WW-1:0] wrow_used;
  reg [WW-1:0] net_base;  // first row of the network that is kept
  wire repeats = again && desc[`DESC_FIRST];
  assign wrow_freed = keep ? net_base : wrow_used;
  reg [DLY-1:0] rel_tile_q;
  reg [2*DLY-1:0] rel_wrow_q;
  always @(posedge clk) begin
    if (rst) begin
      rel_tile_q <= {DLY{1'b0}};
      rel_wrow_q <= {(2 * DLY) {1'b0}};
      tile_freed <= {TW{1'b0}};
      wrow_used  <= {WW{1'b0}};
      net_base   <= {WW{1'b0}};
    end else begin
      rel_tile_q <= {rel_tile_q[DLY-2:0], rel_tile};
      rel_wrow_q <= {rel_wrow_q[2*DLY-3:0], rel_wrow};
      tile_freed <= tile_freed + {{(TW - 1) {1'b0}}, rel_tile_q[DLY-1]};
      // rows that were used for good; all are read before an inference ends
      wrow_used  <= (start && repeats) ? net_base :
          wrow_used + {{(WW - 2) {1'b0}}, rel_wrow_q[2*DLY-1-:2]};
      net_base   <= keep ? net_base : wrow_used;
    end
  end

  // ---- the nest
  always @(posedge clk) begin
    if (rst) begin
      running <= 1'b0;
      done    <= 1'b0;
      bank    <= 1'b0;
      entry   <= {TW{1'b0}};
      ebase   <= {TW{1'b0}};
      wblk    <= {WW{1'b0}};
      wrow    <= {WW{1'b0}};
      blk     <= 11'd0;
      grp     <= 11'd0;
      step    <= 18'd0;
      pos     <= 7'd0;
      idx     <= 6'd0;
      line    <= 10'd0;
      seg     <= 4'd0;
      chan    <= 11'd0;
      wbank   <= {ZW{1'b0}};
      dw_rows_freed <= 11'd0;
    end else begin
      done <= go && all_end;
      if (start) begin
        running <= 1'b1;
        blk     <= 11'd0;
        grp     <= 11'd0;
        step    <= 18'd0;
        pos     <= 7'd0;
        idx     <= 6'd0;
        line    <= 10'd0;
        seg     <= 4'd0;
        chan    <= 11'd0;
        wbank   <= {ZW{1'b0}};
        dw_rows_freed <= 11'd0;
        entry   <= tile_filled;
        ebase   <= tile_filled;
        wblk    <= repeats ? net_base : wblk;
        wrow    <= repeats ? net_base : wrow;
      end else if (go) begin
        running <= !all_end;
        if (is_fc) pos <= (step_last || &step[5:0]) ? 7'd0 : pos + 7'd1;
        else pos <= sweep_done ? 7'd0 : pos_next[6:0];
        idx <= sweep_done ? 6'd0 : idx + 6'd1;
        if (is_dwrow) begin
          // channel group > line > row; every row is an entry
          if (row_end) begin
            entry <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            ebase <= entry + {{(TW - 1) {1'b0}}, 1'b1};
            seg   <= seg_last ? 4'd0 : seg + 4'd1;
            line  <= !seg_last ? line : line_last ? 10'd0 : line + 10'd1;
            chan  <= rows_end ? chan_next : chan;
            dw_rows_freed <= rows_end ? dw_rows_upto : dw_rows_freed;
            if (all_end) begin
              wblk <= dw_next;
              wrow <= dw_next;
            end
          end
        end else if (is_fc) begin
          // neuron > step; an entry holds 64 steps, a weight row N_Z words
          step  <= step_last ? 18'd0 : step + 18'd1;
          grp   <= step_last ? grp + 11'd1 : grp;
          bank  <= step_last ? !bank : bank;
          wbank <= all_end ? {ZW{1'b0}} : wbank + {{(ZW - 1) {1'b0}}, 1'b1};
          if (step_last) begin
            if (held && grp != n_g - 11'd1) entry <= ebase;
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
            bank <= dw ? bank : !bank;
            // next group of the block, or the next stripe with the first group
            if (!grp_last) begin
              grp   <= grp + 11'd1;
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
                grp  <= blk_last + 11'd1;
                blk  <= blk_last + 11'd1;
                wrow <= dw ? dw_next :
                    wrow + {{(WW - 1) {1'b0}}, 1'b1};
                wblk <= dw ? dw_next :
                    wrow + {{(WW - 1) {1'b0}}, 1'b1};
              end
            end
          end
        end
      end
    end
  end

  // ---- the issue
  wire [10:0] left_o = n_o - (grp << ZW);
  wire [ZW:0] nz = (left_o >= N_Z[10:0]) ? N_Z[ZW:0] : left_o[ZW:0];
  // line of the input under slot 0 and under this slot
  wire [1:0] slot_now = pos[5:4] >> (swl - 3'd4);
  wire [9:0] y_first = {1'b0, st_gy} << stl;
  wire [9:0] y_now = ({1'b0, st_gy} + {8'd0, slot_now}) << stl;
  wire [9:0] y_last_off = (n_h - 10'd1 - y_first) >> stl;  // slot of the last line, if it is met
  wire       y_last_hit = (((n_h - 10'd1) & ((10'd1 << stl) - 10'd1)) == 10'd0) &&
             y_last_off < 10'd4;
  wire [10:0] x_last = n_w - 11'd1 - {10'd0, ph};  // picked column that ends the line
  wire       x_last_hit = (x_last & ((11'd1 << stl) - 11'd1)) == 11'd0;
  wire [10:0] x_last_off = (x_last >> stl) - {1'b0, st_gx};
  wire [3:0] last_taps = step_last ? lastn : 4'd9;
  wire [8:0] chan_taps = ~(9'h1ff << last_taps);

  always @(posedge clk) begin
    if (rst) is_valid <= 1'b0;
    else is_valid <= go;
  end

  always @(posedge clk) begin
    if (go) begin
      is_entry <= entry[TW-3:0];
      is_wrow  <= use_wrow[WW-3:0];
      is_wsel  <= dw ? pass_chan[ZW-1:0] : is_fc ? wbank : {ZW{1'b0}};
      is_pos   <= pos[5:0];
      is_taps  <= (is_chan_m || is_fc) ? chan_taps : k3 ? 9'h1ff : 9'h010;
      is_wlim  <= is_fc ? 7'd64 : wlim;
      is_slots <= is_fc ? 3'd1 : slots;
      is_left  <= is_dwrow ? seg == 4'd0 : st_gx == 10'd0 && !ph;
      is_rpos  <= is_dwrow ? row_width[5:0] - 6'd1 : x_last_off[5:0];
      is_right <= is_dwrow ? seg_last : x_last_hit && x_last_off < 11'd64;
      is_top   <= is_dwrow ? line == 10'd0 : is_dwst ? st_gy == 9'd0 : y_now == 10'd0;
      is_bot   <= is_dwrow ? line_last : is_dwst ? y_last_hit : y_now == n_h - 10'd1;
      is_bslot <= y_last_off[1:0];
      is_nz    <= dw ? N_Z[ZW:0] : is_fc ? {{ZW{1'b0}}, 1'b1} : nz;
      is_bank  <= bank;
      is_idx   <= is_fc ? 6'd0 : idx;
      is_first <= step == 18'd0;
      is_last  <= step_last;
      is_end   <= dw ? sweep_done : grp_end;
      is_prow  <= use_prow;
      is_chan  <= is_dwrow ? chan[9:0] : is_dwst ? step[9:0] : is_fc ? grp[9:0] :
          {grp[9-ZW:0], {ZW{1'b0}}};
      is_gx    <= is_dwrow ? {seg, 6'd0} : is_fc ? 10'd0 : st_gx;
      is_gy    <= is_dwrow ? line[8:0] : is_fc ? 9'd0 : st_gy;
      is_width <= is_fc ? 7'd1 : wlim;
      is_lines <= is_fc ? 3'd1 : slots;
    end
  end

  generate
    if (N_Y < 2 || N_Y > 16 || (N_Y & (N_Y - 1)) != 0) begin : g_illegal_ny
      ILLEGAL_N_Y_2_4_8_16 u_illegal_ny ();
    end
    if (N_Z < 2 || N_Z > 64 || (N_Z & (N_Z - 1)) != 0) begin : g_illegal_nz
      ILLEGAL_N_Z_2_TO_64 u_illegal_nz ();
    end
    if (N_Y * N_Z > 128) begin : g_illegal_lanes
      ILLEGAL_MORE_THAN_128_LANES u_illegal_lanes ();
    end
    if (TILE_ROWS < 32 || (TILE_ROWS & (TILE_ROWS - 1)) != 0) begin : g_tile
      ILLEGAL_TILE_ROWS_POWER_OF_TWO_FROM_32 u_illegal ();
    end
    if (WBUF_ROWS < 64 || (WBUF_ROWS & (WBUF_ROWS - 1)) != 0) begin : g_wbuf
      ILLEGAL_WBUF_ROWS_POWER_OF_TWO_FROM_64 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, desc, dw_rows_now, dw_chan_row, dw_rows_wide};

endmodule

`resetall
