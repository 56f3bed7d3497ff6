// SPDX-License-Identifier: Apache-2.0
//
// loop_nest: tracks the position of the sequencer in a layer.
//
// How it works: one walker per mode decides which counters an issue advances: walk_groups for convolutions
// (and depthwise layers with a pool), walk_rows for depthwise layers without one, walk_vector for fully
// connected layers. The walkers share the counters: sweep holds the pixels, walk_stripe the stripe,
// nest_places the tile entry and the weight row; this module holds the reduction step and the unit (a group
// of output channels, a channel of a depthwise layer or a neuron). Whether a counter is at its last value is
// computed a cycle ahead, from the next value, so that the path to `go` starts at a register. The changes of
// an issue do not depend on the credits: `go`, which is late, is applied last. The issue describes the
// current position, and the resources it uses for the last time.
// Handshake: start with a stable descriptor; `go` makes the current issue and advances; running until the
// last one is made, done a cycle later. All counters are then back at their start values.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module loop_nest #(
    // array: pixels and output channels (powers of two)
    parameter N_Y        = 4,
    parameter N_Z        = 4,
    // bytes of a tile word
    parameter TILE_WORD  = 64,
    // 1: two depthwise rows per issue; the bytes of 32-bit sums leave in parallel; maps of 1x1 layers may be
    // one line
    parameter PAIR       = 0,
    parameter SUM_PLANES = 0,
    parameter FLAT_MAPS  = 0,
    // sums that share a post lane
    parameter SHARE      = 1,
    // derived, not to be set: width of a tile entry counter, weight row counter, bank index
    parameter TW         = 7,
    parameter WW         = 12,
    parameter ZW         = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer start with its descriptor; the current issue is made
    input  wire                   start,
    input  wire [ `DESC_BITS-1:0] desc,
    input  wire                   go,
    output reg                    running,
    output reg                    done,
    // the next weight row read is jump_to, not the one after the previous layer
    input  wire                   jump,
    input  wire [         WW-1:0] jump_to,
    // current issue; first weight row of its block
    output wire [`ISSUE_BITS-1:0] issue,
    output wire [         WW-1:0] block_row
);

  // depthwise lanes: at most the bytes of a tile word
  localparam integer LANES = (N_Y * N_Z < TILE_WORD) ? N_Y * N_Z : TILE_WORD;

  // ---- the layer
  wire [1:0] mode = desc[`DESC_MODE];
  wire new_dw = desc[`DESC_DW];
  wire [13:0] n_c = desc[`DESC_C];
  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [10:0] n_o = desc[`DESC_O];
  wire [10:0] n_g = desc[`DESC_G];
  wire [10:0] n_b = desc[`DESC_B];
  wire [1:0] new_ip = desc[`DESC_IP];
  wire [14:0] dst = desc[`DESC_DST];
  wire [13:0] out_rows = desc[`DESC_OCS];

  // Mode and limits of the counters are valid from the cycle after the start on, values derived from them a
  // cycle later: nothing is issued in the first three cycles, because no entry is filled yet. A depthwise
  // layer has one step, and channels as groups; a neuron has no planes of sums.
  reg start_q;
  reg dw, rows, vector, groups, held, out32;
  reg quads, pairs;  // depthwise rows with four channels, with two
  reg [1:0] ip;
  reg [2:0] swl;
  reg [ZW-1:0] rest;  // output channels of the last group, 0: all
  reg [6:0] width_last;  // depthwise rows: pixels of the last row of a line
  reg [17:0] step_end;
  reg [10:0] unit_end;
  reg [9:0] line_end;
  reg [3:0] block_end;
  reg [5:0] width_end;  // depthwise rows: pixels of the last row of a line, less one
  always @(posedge clk) begin
    start_q    <= start && !rst;
    dw         <= new_dw;
    rows       <= mode == `MODE_DWROW;
    vector     <= mode == `MODE_FC;
    groups     <= !new_dw && mode != `MODE_FC;
    held       <= desc[`DESC_HELD];
    out32      <= mode != `MODE_FC && desc[`DESC_OUT32];
    quads      <= mode == `MODE_DWROW && new_ip == 2'd0;
    pairs      <= mode == `MODE_DWROW && new_ip == 2'd1;
    ip         <= new_ip;
    swl        <= (mode == `MODE_DWROW) ? {1'b1, new_ip} : desc[`DESC_SWL];
    rest       <= n_o[ZW-1:0];
    width_last <= {n_w[5:0] == 6'd0, n_w[5:0]};
    step_end   <= new_dw ? 18'd0 : desc[`DESC_S] - 18'd1;
    unit_end   <= (new_dw ? n_c[10:0] : n_g) - 11'd1;
    line_end   <= n_h - 10'd1;
    block_end  <= n_b[3:0];
    width_end  <= n_w[5:0] - 6'd1;
  end

  wire [2:0] g_in = {ip == 2'd0, ip == 2'd1, ip[1]};  // channels per AI RAM row
  wire [1:0] g_mask = {ip == 2'd0, !ip[1]};

  // ---- the walkers
  wire [`MOVE_BITS-1:0] move_groups, move_rows, move_vector;
  (* keep *) wire [`MOVE_BITS-1:0] move;  // otherwise synthesis merges `go` into it
  assign move = vector ? move_vector : rows ? move_rows : move_groups;
  reg [17:0] step;
  reg [10:0] unit;
  reg [ 3:0] nth;  // index of the group in its block, from 1
  reg [ 1:0] plane;
  wire sweep_first, sweep_end, half_end, stripe_last, in_turns;
  wire [1:0] turns_m1;
  reg step_last, unit_last;
  reg back_last;  // the first group of the block is the layer's last
  reg nth_last;  // last group of a full block
  wire block_last = unit_last || nth_last;
  wire row_last;  // depthwise rows: the weight row ends with these channels
  wire [1:0] slots_m1;

  walk_groups #(
      .SHARE     (SHARE),
      .SUM_PLANES(SUM_PLANES)
  ) u_groups (
      .dw         (dw),
      .held       (held),
      .out32      (out32),
      .sweep_end  (sweep_end),
      .step_last  (step_last),
      .bank_last  (&unit[ZW-1:0]),
      .block_last (block_last),
      .unit_last  (unit_last),
      .stripe_last(stripe_last),
      .in_turns   (in_turns),
      .plane      (plane),
      .move       (move_groups)
  );

  wire [3:0] seg;
  wire [9:0] line;
  wire seg_last, line_last, two, two_last;
  walk_rows #(
      .N_Z (N_Z),
      .PAIR(PAIR)
  ) u_rows (
      .clk      (clk),
      .rst      (rst),
      .start    (start),
      .begins   (start_q),
      .rows     (rows),
      .ew       (desc[`DESC_EW]),
      .ip       (ip),
      .irl      (desc[`DESC_IRL]),
      .dst_odd  (dst[0]),
      .group_odd(out_rows[0]),
      .line_end (line_end),
      .go       (go),
      .sweep_end(sweep_end),
      .half_end (half_end),
      .bank_last(row_last),
      .unit_last(unit_last),
      .third    (slots_m1[1]),
      .seg      (seg),
      .line     (line),
      .seg_last (seg_last),
      .line_last(line_last),
      .two      (two),
      .two_last (two_last),
      .move     (move_rows)
  );

  wire [ZW-1:0] bank;
  walk_vector #(
      .ZW(ZW)
  ) u_vector (
      .clk       (clk),
      .rst       (rst),
      .vector    (vector),
      .held      (held),
      .go        (go),
      .entry_last(&step[5:0]),
      .step_last (step_last),
      .unit_last (unit_last),
      .bank      (bank),
      .move      (move_vector)
  );

  // ---- the stripe and its pixels
  wire [9:0] stripe_gx;
  wire [8:0] stripe_gy;
  wire [6:0] stripe_width;
  wire [2:0] stripe_lines;
  wire [5:0] stripe_width_m1;
  wire [1:0] stripe_lines_m1;
  walk_stripe #(
      .FLAT_MAPS(FLAT_MAPS)
  ) u_stripe (
      .clk     (clk),
      .rst     (rst),
      .start   (start),
      .desc    (desc),
      .load    (start_q || (go && move[`MOVE_PASS_END])),
      .gx      (stripe_gx),
      .gy      (stripe_gy),
      .width   (stripe_width),
      .lines   (stripe_lines),
      .width_m1(stripe_width_m1),
      .lines_m1(stripe_lines_m1),
      .last    (stripe_last)
  );

  wire [1:0] chans_m1 = unit_last ? unit_end[1:0] & g_mask : g_mask;  // depthwise: channels of the row
  wire [5:0] row_width_m1 = seg_last ? width_end : 6'd63;
  wire [5:0] pos, idx;
  assign slots_m1 = rows ? chans_m1 : stripe_lines_m1;
  sweep #(
      .N_Y  (N_Y),
      .LANES(LANES)
  ) u_sweep (
      .clk     (clk),
      .rst     (rst),
      .dw      (dw),
      .swl     (swl),
      .width_m1(rows ? row_width_m1 : stripe_width_m1),
      .slots_m1(slots_m1),
      .on      (go && move[`MOVE_POS_ON]),
      .pos     (pos),
      .idx     (idx),
      .first   (sweep_first),
      .last    (sweep_end),
      .half_end(half_end)
  );

  // ---- the last steps of a group alternate where sums share a lane
  generate
    if (SHARE > 1) begin : g_turns
      localparam integer SHARE_I = SHARE;
      localparam [17:0] TURNS = SHARE_I[17:0];
      wire [17:0] n_s = new_dw ? 18'd1 : desc[`DESC_S];
      wire few = n_s < TURNS;
      reg [1:0] turns_end;
      reg [17:0] turns_from;
      always @(posedge clk) begin
        turns_end  <= few ? n_s[1:0] - 2'd1 : TURNS[1:0] - 2'd1;
        turns_from <= few ? 18'd0 : n_s - TURNS;
      end
      assign turns_m1 = turns_end;
      assign in_turns = step >= turns_from;
    end else begin : g_no_turns
      assign turns_m1 = 2'd0;
      assign in_turns = 1'b0;
    end
  endgenerate

  // ---- units, steps
  reg [10:0] block;  // first group of the block
  reg [10:0] prow;  // parameter row of the unit: an issue may have to wait for it
  wire [10:0] unit_n = !go ? unit : move[`MOVE_UNIT_BACK] ? block : move[`MOVE_UNIT_ON] ? unit_next : unit;
  wire [3:0] nth_next = nth + 4'd1;
  wire [10:0] unit_next = unit + {8'd0, rows ? g_in : 3'd1};
  wire over = go && move[`MOVE_OVER];
  always @(posedge clk) begin
    if (rst || over) begin
      unit  <= 11'd0;
      prow  <= 11'd0;
      block <= 11'd0;
    end else begin
      unit  <= unit_n;
      prow  <= groups ? unit_n : unit_n >> ZW;
      block <= (go && move[`MOVE_PASS_END] && stripe_last) ? unit_next : block;
    end
  end

  // whether the first unit of a layer, and the next unit, is the last one
  wire [10:0] same_unit = {9'd0, g_mask & {2{rows}}};
  wire one_unit = &(~unit_end | same_unit);
  wire next_unit_last = &(~(unit_next ^ unit_end) | same_unit);
  always @(posedge clk) begin
    if (start_q) begin
      unit_last <= one_unit;
      back_last <= one_unit;
      nth_last  <= groups && block_end == 4'd1;
    end else if (go) begin
      unit_last <= move[`MOVE_UNIT_BACK] ? back_last : move[`MOVE_UNIT_ON] ? next_unit_last : unit_last;
      back_last <= (move[`MOVE_PASS_END] && stripe_last) ? next_unit_last : back_last;
      nth_last <= !move[`MOVE_GROUP_END] ? nth_last :
          groups && (block_last ? block_end == 4'd1 : nth_next == block_end);
    end else begin
      unit_last <= unit_last;
      back_last <= back_last;
      nth_last  <= nth_last;
    end
  end

  wire [17:0] turn_back = {{16{turns_m1 != 2'd0}}, ~turns_m1 + 2'd1};
  wire step_back = SHARE > 1 && move[`MOVE_BACK];
  wire [17:0] step_next = step + (step_back ? turn_back : 18'd1);
  wire next_step_last = step_back ? turns_m1 == 2'd0 : step_next == step_end;
  always @(posedge clk) begin
    if (rst || (go && move[`MOVE_STEP_CLEAR])) step <= 18'd0;
    else if (go && (move[`MOVE_STEP_ON] || step_back)) step <= step_next;
    else step <= step;
    if (start_q || (go && move[`MOVE_STEP_CLEAR])) step_last <= step_end == 18'd0;
    else if (go && (move[`MOVE_STEP_ON] || step_back)) step_last <= next_step_last;
    else step_last <= step_last;
  end

  always @(posedge clk) begin
    if (rst) begin
      running <= 1'b0;
      done    <= 1'b0;
      nth     <= 4'd1;
      plane   <= 2'd0;
    end else begin
      running <= start || (running && !over);
      done    <= over;
      nth     <= !(go && move[`MOVE_GROUP_END]) ? nth : block_last ? 4'd1 : nth_next;
      plane   <= !(go && sweep_end) ? plane : move[`MOVE_AGAIN] ? plane + 2'd1 : 2'd0;
    end
  end

  // ---- tile entry and weight row
  wire [TW-1:0] entry;
  wire [WW-1:0] wrow;
  nest_places #(
      .TW(TW),
      .WW(WW)
  ) u_places (
      .clk      (clk),
      .rst      (rst),
      .go       (go),
      .move     (move),
      .two      (two),
      .step_back(step_back),
      .turns_m1 (turns_m1),
      .jump     (jump),
      .jump_to  (jump_to),
      .entry    (entry),
      .wrow     (wrow),
      .block_row(block_row)
  );

  // ---- the issue. Depthwise rows: the slot of lane 0 is the index of its channel in the row
  localparam integer LAST_LANE = N_Y * N_Z - 1;
  wire [ 5:0] pos_0 = pos & ~LAST_LANE[5:0];
  wire [ 1:0] slot = quads ? pos_0[5:4] : {1'b0, pos_0[5] && pairs};
  wire [10:0] channel = unit | {9'd0, slot};
  wire [ 6:0] row_width = seg_last ? width_last : 7'd64;
  wire [ZW:0] kernels = {!(unit_last && rest != {ZW{1'b0}}), unit_last ? rest : {ZW{1'b0}}};
  wire [ZW:0] rows_now = {{(ZW - 1) {1'b0}}, two, !two};  // one, or two lines

  wire [10:0] unit_row = unit | {9'd0, g_mask};
  assign row_last = &unit_row[ZW-1:0];
  // the issue advances the parameter row: to the next unit's, to that of the third channel of four
  wire halves = ZW == 1 && quads;

  assign issue[`ISSUE_ENTRY] = entry;
  assign issue[`ISSUE_WROW] = wrow;
  assign issue[`ISSUE_PROW] = prow | {9'd0, slot} >> ZW;
  assign issue[`ISSUE_BANK] = vector ? bank : dw ? channel[ZW-1:0] : {ZW{1'b0}};
  assign issue[`ISSUE_OPENS] = sweep_first;
  assign issue[`ISSUE_ENDS] = sweep_end;
  assign issue[`ISSUE_FIRST] = step == 18'd0;
  assign issue[`ISSUE_LAST] = step_last;
  assign issue[`ISSUE_PLANE] = plane;
  assign issue[`ISSUE_IDX] = idx;
  assign issue[`ISSUE_POS] = pos | (step[5:0] & {6{vector}});
  assign issue[`ISSUE_WIDTH] = rows ? row_width : stripe_width;
  assign issue[`ISSUE_LINES] = rows ? {1'b0, chans_m1} + 3'd1 : stripe_lines;
  assign issue[`ISSUE_GX] = rows ? {seg, 6'd0} : stripe_gx;
  assign issue[`ISSUE_GY] = rows ? line[8:0] : stripe_gy;
  assign issue[`ISSUE_END_X] = seg_last;
  assign issue[`ISSUE_END_Y] = line_last;
  assign issue[`ISSUE_CHAN] = groups ? {unit[9-ZW:0], {ZW{1'b0}}} : unit[9:0];
  assign issue[`ISSUE_NZ] = groups ? kernels : rows_now;
  assign issue[`ISSUE_TWO] = two;
  assign issue[`ISSUE_TWO_END] = two_last;
  assign issue[`ISSUE_WHOLE] = move[`MOVE_WHOLE];
  assign issue[`ISSUE_FREE_ENTRIES] = {
    move[`MOVE_FREE_ENTRY] && two, move[`MOVE_FREE_ENTRY] && !two
  };
  assign issue[`ISSUE_FREE_ROWS] = move[`MOVE_FREE_ROWS];
  assign issue[`ISSUE_ENTRY_ON] = move[`MOVE_ENTRY_ON] && !move[`MOVE_ENTRY_BACK] && !step_back;
  assign issue[`ISSUE_WROW_ON] = move[`MOVE_ROW_ON] && !move[`MOVE_ROW_BACK] && !step_back;
  assign issue[`ISSUE_PROW_ON] = (halves && half_end && !sweep_end) ||
      (move[`MOVE_UNIT_ON] && !move[`MOVE_UNIT_BACK] && (groups || halves || unit_next[ZW] != unit[ZW]));

  wire unused = &{1'b0, desc, n_c, n_b, n_o, n_w, dst, out_rows, pos_0, line, g_in, turn_back, channel, unit_row};

endmodule

`resetall
