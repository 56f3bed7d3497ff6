// SPDX-License-Identifier: Apache-2.0
//
// openkpu_core: the data path from the AI RAM through the MAC array and back.
//
// How it works: fill_seq reads AI RAM rows, tile_scatter (or fc_flatten) lays them out in the tile
// buffer; mac_seq issues a cycle of work; column t of the array reads its operands t cycles later;
// sums go to the accumulators (depthwise: straight on), finished groups through the post lanes into
// the collector, and write_back pools them into the AI RAM. Weights, constants and tables of later
// layers come in meanwhile through the loaders.
// Handshake: start with the descriptor of a layer, seq_done when all work was issued, idle when its
// last byte is written. Streams from the DMAC are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module openkpu_core #(
    // array: reduction, pixels, output channels
    parameter N_X       = 9,
    parameter N_Y       = 4,
    parameter N_Z       = 4,
    // bus width, bits of a weight, rounding of the activation, operand gating
    parameter AHB_W     = 32,
    parameter WB        = 16,
    parameter ROUNDING  = 0,
    parameter GATE      = 1,
    // rows of the tile buffer and the weight buffer
    parameter TILE_ROWS = 32,
    parameter WBUF_ROWS = 1024,
    // width of a parameter row counter, of bus offsets and counts
    parameter PRW       = 13,
    parameter OW        = $clog2(AHB_W / 8),
    parameter CW        = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // layer for the array
    input  wire                     start,
    input  wire [`DESC_W_TOTAL-1:0] desc,
    input  wire [          PRW-1:0] prow_base,
    // parameter rows released; weights of a stream stay, and are there already
    input  wire [          PRW-1:0] prow_freed,
    input  wire                     keep,
    input  wire                     again,
    output wire                     seq_done,
    output wire                     idle,
    // layer for the loaders
    input  wire                     wl_start,
    output wire                     wl_busy,
    input  wire                     pl_start,
    output wire                     pl_busy,
    input  wire [`DESC_W_TOTAL-1:0] ld_desc,
    // weight stream
    input  wire                     wt_valid,
    output wire                     wt_ready,
    input  wire [        AHB_W-1:0] wt_data,
    input  wire [           OW-1:0] wt_off,
    input  wire [           CW-1:0] wt_cnt,
    // bias stream
    input  wire                     bs_valid,
    output wire                     bs_ready,
    input  wire [        AHB_W-1:0] bs_data,
    input  wire [           OW-1:0] bs_off,
    input  wire [           CW-1:0] bs_cnt,
    // AI RAM read port of the fill, write port of the write-back
    output wire                     fl_req,
    output wire [             14:0] fl_row,
    input  wire                     fl_gnt,
    input  wire [            511:0] fl_data,
    output wire                     wb_req,
    output wire [             14:0] wb_row,
    output wire [             63:0] wb_be,
    output wire [            511:0] wb_data,
    input  wire                     wb_gnt,
    // for the counters
    output wire                     issued,
    output wire                     wait_tile,
    output wire                     wait_weight,
    output wire                     wait_output,
    output wire [            71:0]  n_issued,
    output wire [            71:0]  n_gated
);

  localparam L = N_Y * N_Z;
  localparam ZW = $clog2(N_Z);
  localparam TW = $clog2(TILE_ROWS) + 2;
  localparam WW = $clog2(WBUF_ROWS) + 2;
  localparam TA = TW - 2;
  localparam WA = WW - 2;
  localparam PAR_ROWS = 2048 / N_Z;
  localparam PAW = $clog2(PAR_ROWS);
  localparam PW = WB + 12;
  localparam XW = 29;
  localparam EDEPTH = (N_Z >= 8) ? 2 : 16 / N_Z;
  localparam EW = ZW + $clog2(EDEPTH);

  // ---- layer
  wire [1:0] mode = desc[`DESC_MODE];
  wire       dw = desc[`DESC_DW];
  wire       is_dwrow = mode == `MODE_DWROW;
  wire       is_fc = mode == `MODE_FC;
  wire       is_taps = mode == `MODE_TAPS;
  wire       is_dwst = is_taps && dw;
  wire       one_bank = is_fc || is_dwst;
  wire [2:0] swl = is_dwrow ? 3'd4 + {1'b0, desc[`DESC_IP]} : desc[`DESC_SWL];

  // ---- input side
  reg  [TW-1:0] tile_filled;
  wire [TW-1:0] tile_freed;
  wire       n_valid;
  wire [TW-1:0] n_entry;
  wire [4:0] n_done;
  wire [5:0] n_base;
  wire [2:0] n_segrel;
  wire [2:0] n_ky_on;
  wire [5:0] n_ky_slot;
  wire [3:0] n_chmod;
  wire [2:0] n_chans;
  wire       n_lastseg;
  wire       n_firstseg;
  wire [6:0] n_bytes;
  wire       n_lastrow;
  wire       fc_ready;
  wire       fill_busy;

  fill_seq #(
      .TILE_ROWS(TILE_ROWS)
  ) u_fill (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .busy       (fill_busy),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .fl_req     (fl_req),
      .fl_row     (fl_row),
      .fl_gnt     (fl_gnt),
      .fc_ready   (fc_ready),
      .n_valid    (n_valid),
      .n_entry    (n_entry),
      .n_done     (n_done),
      .n_base     (n_base),
      .n_segrel   (n_segrel),
      .n_ky_on    (n_ky_on),
      .n_ky_slot  (n_ky_slot),
      .n_chmod    (n_chmod),
      .n_chans    (n_chans),
      .n_lastseg  (n_lastseg),
      .n_firstseg (n_firstseg),
      .n_bytes    (n_bytes),
      .n_lastrow  (n_lastrow)
  );

  wire [4:0] sc_done, fc_done;
  wire         f_valid;
  wire [511:0] view0, view1, view2, view3;
  wire [ 63:0] mask0, mask1, mask2;
  wire [TW-1:0] f_entry;
  wire [  2:0] f_ky_on;
  wire [  5:0] f_ky_slot;
  wire [  3:0] f_chmod;
  wire [  2:0] f_chans;
  wire [  8:0] fc_we;
  wire [ 71:0] fc_bytes;
  wire [ 53:0] fc_ats;
  wire [9*TA-1:0] fc_entries;

  tile_scatter #(
      .TILE_ROWS(TILE_ROWS)
  ) u_scatter (
      .clk       (clk),
      .rst       (rst),
      .mode      (mode),
      .stl       (desc[`DESC_STL]),
      .ph        (desc[`DESC_PH]),
      .swl       (desc[`DESC_SWL]),
      .ip        (desc[`DESC_IP]),
      .n_valid   (n_valid && !is_fc),
      .row       (fl_data),
      .n_entry   (n_entry),
      .n_done    (n_done),
      .n_base    (n_base),
      .n_segrel  (n_segrel),
      .n_ky_on   (n_ky_on),
      .n_ky_slot (n_ky_slot),
      .n_chmod   (n_chmod),
      .n_chans   (n_chans),
      .n_lastseg (n_lastseg),
      .n_firstseg(n_firstseg),
      .f_valid   (f_valid),
      .view0     (view0),
      .view1     (view1),
      .view2     (view2),
      .view3     (view3),
      .mask0     (mask0),
      .mask1     (mask1),
      .mask2     (mask2),
      .f_entry   (f_entry),
      .f_ky_on   (f_ky_on),
      .f_ky_slot (f_ky_slot),
      .f_chmod   (f_chmod),
      .f_chans   (f_chans),
      .done      (sc_done)
  );

  fc_flatten #(
      .TILE_ROWS(TILE_ROWS)
  ) u_flatten (
      .clk        (clk),
      .rst        (rst),
      .restart    (start),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .ready      (fc_ready),
      .valid      (n_valid && is_fc),
      .row        (fl_data),
      .base       (n_base),
      .bytes      (n_bytes),
      .lastrow    (n_lastrow),
      .we         (fc_we),
      .bytes_out  (fc_bytes),
      .ats        (fc_ats),
      .entries    (fc_entries),
      .done       (fc_done)
  );

  always @(posedge clk) begin
    if (rst) tile_filled <= {TW{1'b0}};
    else tile_filled <= tile_filled + {{(TW - 5) {1'b0}}, is_fc ? fc_done : sc_done};
  end

  // ---- weights, parameters and tables
  wire [WW-1:0] wrow_filled, wrow_freed;
  wire [PRW-1:0] prow_filled;
  wire w_we;
  wire [WA-1:0] w_row;
  wire [ZW-1:0] w_bank;
  wire [9*WB-1:0] w_data;
  wire act_ready;
  wire [16*36-1:0] t_start;
  wire [16*16-1:0] t_mul;
  wire [16*8-1:0] t_shift;
  wire [16*8-1:0] t_add;
  wire rd_valid;
  wire [PAW-1:0] rd_prow;
  wire [N_Z*60-1:0] par_bn;
  wire [N_Z*36-1:0] par_kc;

  coeff_store #(
      .AHB_W    (AHB_W),
      .N_Z      (N_Z),
      .WB       (WB),
      .WBUF_ROWS(WBUF_ROWS),
      .PRW      (PRW)
  ) u_coeff (
      .clk        (clk),
      .rst        (rst),
      .wl_start   (wl_start),
      .wl_busy    (wl_busy),
      .pl_start   (pl_start),
      .pl_busy    (pl_busy),
      .table_only (again),
      .desc       (ld_desc),
      .wt_valid   (wt_valid),
      .wt_ready   (wt_ready),
      .wt_data    (wt_data),
      .wt_off     (wt_off),
      .wt_cnt     (wt_cnt),
      .bs_valid   (bs_valid),
      .bs_ready   (bs_ready),
      .bs_data    (bs_data),
      .bs_off     (bs_off),
      .bs_cnt     (bs_cnt),
      .wrow_freed (wrow_freed),
      .wrow_filled(wrow_filled),
      .prow_freed (prow_freed),
      .prow_filled(prow_filled),
      .w_we       (w_we),
      .w_row      (w_row),
      .w_bank     (w_bank),
      .w_data     (w_data),
      .load       (start),
      .act_ready  (act_ready),
      .t_start    (t_start),
      .t_mul      (t_mul),
      .t_shift    (t_shift),
      .t_add      (t_add),
      .re         (rd_valid),
      .raddr      (rd_prow),
      .bn         (par_bn),
      .kc         (par_kc)
  );

  // ---- issue
  wire is_valid;
  wire [TA-1:0] is_entry;
  wire [WA-1:0] is_wrow;
  wire [ZW-1:0] is_wsel;
  wire [5:0] is_pos;
  wire [8:0] is_taps_on;
  wire [6:0] is_wlim;
  wire [2:0] is_slots;
  wire is_left, is_right, is_top, is_bot;
  wire [5:0] is_rpos;
  wire [1:0] is_bslot;
  wire [ZW:0] is_nz;
  wire is_bank, is_first, is_last, is_end;
  wire [5:0] is_idx;
  wire [PRW-1:0] is_prow;
  wire [9:0] is_chan, is_gx;
  wire [8:0] is_gy;
  wire [6:0] is_width;
  wire [2:0] is_lines;
  wire [1:0] bank_free;
  wire bank_take, bank_take_n;
  wire dw_take;
  wire col_room;
  wire seq_running;

  mac_seq #(
      .N_Y      (N_Y),
      .N_Z      (N_Z),
      .TILE_ROWS(TILE_ROWS),
      .WBUF_ROWS(WBUF_ROWS),
      .PRW      (PRW)
  ) u_seq (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .prow_base  (prow_base),
      .keep       (keep),
      .again      (again),
      .running    (seq_running),
      .done       (seq_done),
      .tile_filled(tile_filled),
      .tile_freed (tile_freed),
      .wrow_filled(wrow_filled),
      .wrow_freed (wrow_freed),
      .bank_free  (bank_free),
      .bank_take  (bank_take),
      .bank_take_n(bank_take_n),
      .dw_room    (col_room),
      .dw_take    (dw_take),
      .prow_filled(prow_filled),
      .act_ready  (act_ready),
      .is_valid   (is_valid),
      .is_entry   (is_entry),
      .is_wrow    (is_wrow),
      .is_wsel    (is_wsel),
      .is_pos     (is_pos),
      .is_taps    (is_taps_on),
      .is_wlim    (is_wlim),
      .is_slots   (is_slots),
      .is_left    (is_left),
      .is_right   (is_right),
      .is_rpos    (is_rpos),
      .is_top     (is_top),
      .is_bot     (is_bot),
      .is_bslot   (is_bslot),
      .is_nz      (is_nz),
      .is_bank    (is_bank),
      .is_idx     (is_idx),
      .is_first   (is_first),
      .is_last    (is_last),
      .is_end     (is_end),
      .is_prow    (is_prow),
      .is_chan    (is_chan),
      .is_gx      (is_gx),
      .is_gy      (is_gy),
      .is_width   (is_width),
      .is_lines   (is_lines),
      .wait_tile  (wait_tile),
      .wait_weight(wait_weight),
      .wait_output(wait_output)
  );
  assign issued = is_valid;

  wire [L-1:0] ln_valid, ln_left, ln_right, ln_top, ln_bot;
  wire [7:0] ln_count;
  lane_ctrl #(
      .N_Y(N_Y),
      .N_Z(N_Z)
  ) u_lanes (
      .clk     (clk),
      .rst     (rst),
      .dw      (dw),
      .single  (is_fc),
      .by_slot (is_dwst),
      .swl     (swl),
      .is_valid(is_valid),
      .is_pos  (is_pos),
      .is_wlim (is_wlim),
      .is_slots(is_slots),
      .is_left (is_left),
      .is_right(is_right),
      .is_rpos (is_rpos),
      .is_top  (is_top),
      .is_bot  (is_bot),
      .is_bslot(is_bslot),
      .is_nz   (is_nz),
      .valid   (ln_valid),
      .left    (ln_left),
      .right   (ln_right),
      .top     (ln_top),
      .bot     (ln_bot),
      .count   (ln_count)
  );

  // ---- columns: memory addresses t cycles after the issue, operands a cycle later
  localparam MEMW = 1 + TA + WA;
  localparam CTLW = 5 * L + 8 + 8 + 6 + ZW + 9;
  reg  [9*MEMW-1:0] mem_q;  // column t at t*MEMW; column 0 unused, it is the issue itself
  reg  [9*CTLW-1:0] ctl_q;
  reg  [6+ZW+9+8-1:0] side_q;  // what lane_ctrl delays by its register
  wire [MEMW-1:0] mem_0 = {is_valid, is_entry, is_wrow};
  wire [CTLW-1:0] ctl_0 = {ln_valid, ln_left, ln_right, ln_top, ln_bot, ln_count, side_q};
  wire [7:0] is_kernels = {{(7 - ZW) {1'b0}}, is_nz};

  integer c;
  always @(posedge clk) begin
    if (rst) begin
      mem_q <= {9 * MEMW{1'b0}};
      ctl_q <= {9 * CTLW{1'b0}};
    end else begin
      mem_q[MEMW-1:0] <= {MEMW{1'b0}};
      ctl_q[CTLW-1:0] <= {CTLW{1'b0}};
      mem_q[1*MEMW+:MEMW] <= mem_0;
      ctl_q[1*CTLW+:CTLW] <= ctl_0;
      for (c = 2; c < 9; c = c + 1) begin
        mem_q[c*MEMW+:MEMW] <= mem_q[(c-1)*MEMW+:MEMW];
        ctl_q[c*CTLW+:CTLW] <= ctl_q[(c-1)*CTLW+:CTLW];
      end
    end
  end
  always @(posedge clk) begin
    if (rst) side_q <= {(6 + ZW + 9 + 8) {1'b0}};
    else if (is_valid) side_q <= {is_kernels, is_pos, is_wsel, is_taps_on};
  end

  localparam BASE = 9 + ZW + 6 + 8 + 8;  // lane vectors lie above this in a column's control
  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_col
      localparam integer KY = t / 3;
      localparam integer KX = t % 3;
      localparam integer COLUMN = t;
      wire [MEMW-1:0] mem_t;
      wire [CTLW-1:0] ctl_t;
      wire [L-1:0] valid;
      wire [9*L-1:0] pixel;
      wire [N_Z*WB-1:0] weight;
      wire [7:0] issued_t;
      wire [7:0] gated_t;
      if (t == 0) begin : g_first
        assign mem_t = mem_0;
        assign ctl_t = ctl_0;
      end else begin : g_later
        assign mem_t = mem_q[t*MEMW+:MEMW];
        assign ctl_t = ctl_q[t*CTLW+:CTLW];
      end
      wire unused_taps = &{1'b0, ctl_t[8:0]};
      array_column #(
          .N_Y      (N_Y),
          .N_Z      (N_Z),
          .WB       (WB),
          .TILE_ROWS(TILE_ROWS),
          .WBUF_ROWS(WBUF_ROWS)
      ) u_column (
          .clk       (clk),
          .rst       (rst),
          .column    (COLUMN[3:0]),
          .ky        (KY[1:0]),
          .kx        (KX[1:0]),
          .mode      (mode),
          .dw        (dw),
          .one_bank  (one_bank),
          .by_chan   (is_dwrow),
          .taps      (is_taps || is_dwrow),
          .sgn       (desc[`DESC_SIN]),
          .pad       (desc[`DESC_PAD]),
          .swl       (swl),
          .stripe_swl(desc[`DESC_SWL]),
          .irl       (desc[`DESC_IRL]),
          .f_valid   (f_valid),
          .view0     (view0),
          .view1     (view1),
          .view2     (view2),
          .view3     (view3),
          .mask0     (mask0),
          .mask1     (mask1),
          .mask2     (mask2),
          .f_entry   (f_entry),
          .f_ky_on   (f_ky_on),
          .f_ky_slot (f_ky_slot),
          .f_chmod   (f_chmod),
          .f_chans   (f_chans),
          .fc_we     (fc_we[t]),
          .fc_entry  (fc_entries[t*TA+:TA]),
          .fc_at     (fc_ats[6*t+:6]),
          .fc_byte   (fc_bytes[8*t+:8]),
          .w_we      (w_we),
          .w_row     (w_row),
          .w_bank    (w_bank),
          .w_data    (w_data[t*WB+:WB]),
          .re        (mem_t[MEMW-1]),
          .entry     (mem_t[WA+:TA]),
          .wrow      (mem_t[WA-1:0]),
          .tap_on    (ctl_t[t]),
          .pos       (ctl_t[9+ZW+:6]),
          .wsel      (ctl_t[9+:ZW]),
          .lane_valid(ctl_t[BASE+4*L+:L]),
          .lane_left (ctl_t[BASE+3*L+:L]),
          .lane_right(ctl_t[BASE+2*L+:L]),
          .lane_top  (ctl_t[BASE+1*L+:L]),
          .lane_bot  (ctl_t[BASE+:L]),
          .lane_count(ctl_t[9+ZW+6+8+:8]),
          .kernels   (ctl_t[9+ZW+6+:8]),
          .valid     (valid),
          .pixel     (pixel),
          .weight    (weight),
          .n_issued  (issued_t),
          .n_gated   (gated_t)
      );
    end
  endgenerate

  // whole vectors in one assignment each: N_X is nine
  wire [9*L-1:0] op_valid;
  wire [9*L*9-1:0] op_pixel;
  wire [9*N_Z*WB-1:0] op_weight;
  assign op_valid = {g_col[8].valid, g_col[7].valid, g_col[6].valid, g_col[5].valid,
      g_col[4].valid, g_col[3].valid, g_col[2].valid, g_col[1].valid, g_col[0].valid};
  assign op_pixel = {g_col[8].pixel, g_col[7].pixel, g_col[6].pixel, g_col[5].pixel,
      g_col[4].pixel, g_col[3].pixel, g_col[2].pixel, g_col[1].pixel, g_col[0].pixel};
  assign op_weight = {g_col[8].weight, g_col[7].weight, g_col[6].weight, g_col[5].weight,
      g_col[4].weight, g_col[3].weight, g_col[2].weight, g_col[1].weight, g_col[0].weight};
  assign n_issued = {g_col[8].issued_t, g_col[7].issued_t, g_col[6].issued_t, g_col[5].issued_t,
      g_col[4].issued_t, g_col[3].issued_t, g_col[2].issued_t, g_col[1].issued_t, g_col[0].issued_t};
  assign n_gated = {g_col[8].gated_t, g_col[7].gated_t, g_col[6].gated_t, g_col[5].gated_t,
      g_col[4].gated_t, g_col[3].gated_t, g_col[2].gated_t, g_col[1].gated_t, g_col[0].gated_t};

  wire [L*PW-1:0] psum;
  wire [L*12-1:0] xsum;
  mac_array #(
      .N_X (N_X),
      .N_Y (N_Y),
      .N_Z (N_Z),
      .WB  (WB),
      .GATE(GATE)
  ) u_array (
      .clk   (clk),
      .rst   (rst),
      .valid (op_valid),
      .pixel (op_pixel),
      .weight(op_weight),
      .psum  (psum),
      .xsum  (xsum)
  );

  // ---- the issue that belongs to the sums: 1 cycle memory, N_X + 1 cycles array
  localparam JW = 10 + (ZW + 1) + 10 + 9 + 7 + 3;
  localparam MW = JW + ZW + PRW;
  localparam TAGW = 1 + 6 + 3 + 6 + MW;
  localparam DELAY = N_X + 2;
  wire [ZW-1:0] is_pbank = is_dwrow ? is_wsel : is_chan[ZW-1:0];
  wire [MW-1:0] is_meta = {is_prow, is_pbank, is_chan, is_nz, is_gx, is_gy, is_width, is_lines};
  reg  [DELAY-1:0] tag_valid;
  reg  [DELAY*TAGW-1:0] tag_q;
  wire [TAGW-1:0] tag_0 = {is_bank, is_idx, is_first, is_last, is_end, is_pos, is_meta};
  wire [TAGW-1:0] tag = tag_q[DELAY*TAGW-1-:TAGW];
  always @(posedge clk) begin
    if (rst) tag_valid <= {DELAY{1'b0}};
    else tag_valid <= {tag_valid[DELAY-2:0], is_valid};
  end
  always @(posedge clk) begin
    tag_q <= {tag_q[(DELAY-1)*TAGW-1:0], tag_0};
  end

  // ---- accumulators and post lanes
  wire dr_want;
  wire [MW-1:0] dr_meta;
  wire acc_valid, acc_end;
  wire [L*36-1:0] acc_sum;
  wire [L*XW-1:0] acc_xsum;
  wire [5:0] acc_pos;
  wire [MW-1:0] acc_meta;
  wire [MW-1:0] rd_meta;
  wire acc_idle;
  wire [PRW-1:0] dr_diff = prow_filled - dr_meta[MW-1-:PRW];
  wire dr_par_ok = act_ready && dr_diff != {PRW{1'b0}} && !dr_diff[PRW-1];
  wire dr_ok = dr_par_ok && col_room;

  accumulator #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .PW (PW),
      .MW (MW),
      .XW (XW)
  ) u_acc (
      .clk        (clk),
      .rst        (rst),
      .direct     (dw),
      .swl        (swl),
      .in_valid   (tag_valid[DELAY-1]),
      .in_psum    (psum),
      .in_xsum    (xsum),
      .in_bank    (tag[TAGW-1]),
      .in_idx     (tag[TAGW-2-:6]),
      .in_first   (tag[MW+8]),
      .in_last    (tag[MW+7]),
      .in_end     (tag[MW+6]),
      .in_pos     (tag[MW+:6]),
      .in_meta    (tag[MW-1:0]),
      .in_width   (tag[9:3]),
      .in_lines   (tag[2:0]),
      .bank_free  (bank_free),
      .bank_take  (bank_take),
      .bank_take_n(bank_take_n),
      .dr_want    (dr_want),
      .dr_meta    (dr_meta),
      .dr_ok      (dr_ok),
      .out_valid  (acc_valid),
      .out_sum    (acc_sum),
      .out_xsum   (acc_xsum),
      .out_pos    (acc_pos),
      .out_end    (acc_end),
      .out_meta   (acc_meta),
      .rd_valid   (rd_valid),
      .rd_meta    (rd_meta),
      .idle       (acc_idle)
  );

  assign rd_prow = rd_meta[ZW+JW+:PAW];

  wire post_valid;
  wire [L*8-1:0] post_byte;
  wire [JW+7-1:0] post_meta;
  wire post_idle;
  post_lanes #(
      .N_Y     (N_Y),
      .N_Z     (N_Z),
      .ROUNDING(ROUNDING),
      .MW      (JW + 7),
      .XW      (XW)
  ) u_post (
      .clk      (clk),
      .rst      (rst),
      .one_bank (one_bank),
      .by_chan  (is_dwrow),
      .swl      (swl),
      .arg_x    (desc[`DESC_ARGX]),
      .shr_x    (desc[`DESC_SHRX]),
      .sgn      (desc[`DESC_SOUT]),
      .t_start  (t_start),
      .t_mul    (t_mul),
      .t_shift  (t_shift),
      .t_add    (t_add),
      .in_valid (acc_valid),
      .in_sum   (acc_sum),
      .in_xsum  (acc_xsum),
      .in_bank  (acc_meta[JW+:ZW]),
      .in_bn    (par_bn),
      .in_kc    (par_kc),
      .in_meta  ({acc_pos, acc_end, acc_meta[JW-1:0]}),
      .out_valid(post_valid),
      .out_byte (post_byte),
      .out_meta (post_meta),
      .idle     (post_idle)
  );

  // ---- output side
  wire job_valid, job_ready;
  wire [JW-1:0] job;
  wire [EW-1:0] job_entry, rd_entry;
  wire [511:0] rd_data;
  wire release_one;
  wire col_idle, wb_idle;
  collector #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .JW (JW)
  ) u_collect (
      .clk        (clk),
      .rst        (rst),
      .restart    (start),
      .dw         (dw),
      .in_valid   (post_valid),
      .in_byte    (post_byte),
      .in_pos     (post_meta[JW+1+:6]),
      .in_end     (post_meta[JW]),
      .in_job     (post_meta[JW-1:0]),
      .room       (col_room),
      .take       (dw ? dw_take : dr_want && dr_ok),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job        (job),
      .job_entry  (job_entry),
      .rd_entry   (rd_entry),
      .rd_data    (rd_data),
      .release_one(release_one),
      .idle       (col_idle)
  );

  write_back #(
      .N_Z(N_Z),
      .EW (EW)
  ) u_write (
      .clk        (clk),
      .rst        (rst),
      .desc       (desc),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job_entry  (job_entry),
      .job_chan   (job[JW-1-:10]),
      .job_nz     (job[29+:ZW+1]),
      .job_gx     (job[28:19]),
      .job_gy     (job[18:10]),
      .job_width  (job[9:3]),
      .job_lines  (job[2:0]),
      .rd_entry   (rd_entry),
      .rd_data    (rd_data),
      .release_one(release_one),
      .wb_req     (wb_req),
      .wb_row     (wb_row),
      .wb_be      (wb_be),
      .wb_data    (wb_data),
      .wb_gnt     (wb_gnt),
      .idle       (wb_idle)
  );

  assign idle = !seq_running && acc_idle && col_idle && wb_idle;

  generate
    if (N_X != 9) begin : g_illegal_nx
      ILLEGAL_N_X_MUST_BE_9 u_illegal_nx ();
    end
    if (WB != 8 && WB != 16) begin : g_illegal_wb
      ILLEGAL_WEIGHT_BITS_8_OR_16 u_illegal_wb ();
    end
    if (ROUNDING < 0 || ROUNDING > 2) begin : g_illegal_rounding
      ILLEGAL_ROUNDING_0_1_2 u_illegal_rounding ();
    end
  endgenerate

  wire unused = &{1'b0, dr_meta, acc_meta, rd_meta, fill_busy, post_idle};

endmodule

`resetall
