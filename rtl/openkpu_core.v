// SPDX-License-Identifier: Apache-2.0
//
// openkpu_core: the data path from the AI RAM through the MAC array and back.
//
// How it works: the tile buffer fetches operands, the sequencer issues work on them, the MAC stage
// multiplies and accumulates, the post lanes convert the sums to bytes, and the output stage pools these
// and writes them into the AI RAM. The weight buffer is loaded with weights and tables of later layers.
// side_tasks executes pooling tasks and products of float16 matrices, with multipliers lent by the array.
// Handshake: start with the descriptor of a layer, seq_done when all work is issued, idle when its last
// byte is written. Streams from the DMAC are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module openkpu_core #(
    // array: pixels, output channels
    parameter N_Y          = 4,
    parameter N_Z          = 4,
    // bus width, bits of a weight, rounding of the activation, operand gating
    parameter AHB_W        = 32,
    parameter WEIGHT_BITS  = 16,
    parameter ROUNDING     = 0,
    parameter GATE         = 1,
    // rows of the tile buffer and the weight buffer
    parameter TILE_ROWS    = 32,
    parameter WBUF_ROWS    = 1024,
    // channels whose parameters fit; layers decoded ahead; bits of weights that arrive in a cycle, at most
    parameter PARAM_CHANS  = 2048,
    parameter LOOK_AHEAD   = 4,
    parameter WEIGHT_W     = AHB_W,
    // windows of a pooling task, products of float16 matrices in parallel; 1: weights may stay in the AI RAM; bytes 1
    // to 3 of 32-bit sums leave while the array continues; narrow maps are computed as one line; taps' largest distance
    parameter POOL_LANES   = 4,
    parameter FP16_LANES   = 0,
    parameter KEEP_WEIGHTS = 0,
    parameter SUM_PLANES   = 0,
    parameter FLAT_MAPS    = 0,
    parameter DILATION     = 1,
    // sums that share a post lane; 1: zero points from memories; bits of a multiplier's wide operand
    parameter POST_SHARE   = 1,
    parameter POST_TABLES  = 0,
    parameter MUL_BITS     = 18,
    // bytes of a memory-path word, cycles from a grant to its data; bytes read from a bank of the tile buffer at once
    parameter PATH         = 64,
    parameter READ         = 1,
    parameter TILE_W       = (PATH > 64) ? 64 : PATH,
    // width of a parameter row counter; derived, not to be set: of bus offsets and counts, log2 of the path
    parameter PRW          = `PROW_BITS,
    parameter OW           = $clog2(AHB_W / 8),
    parameter CW           = OW + 1,
    parameter PB           = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // flush: empties the core, as the reset does
    input  wire                      flush,
    // layer for the array, available lines of its map, parameter rows and weights kept by a stream
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    input  wire [               9:0] lines_there,
    input  wire [ `KEEPING_BITS-1:0] keeping,
    output wire                      seq_done,
    output wire                      idle,
    // layer for the loaders
    input  wire                      weight_load_start,
    output wire                      weight_load_busy,
    input  wire                      param_load_start,
    output wire                      param_load_busy,
    input  wire [    `DESC_BITS-1:0] load_desc,
    // weight stream, stream of kept weights, bias stream
    input  wire                      weight_valid,
    output wire                      weight_ready,
    input  wire [    `KEPT_BITS-1:0] weight_piece,
    input  wire                      kept_valid,
    output wire                      kept_ready,
    input  wire [    `KEPT_BITS-1:0] kept,
    input  wire                      bias_valid,
    output wire                      bias_ready,
    input  wire [    `BEAT_BITS-1:0] bias_beat,
    // AI RAM: read port of the fill, write port of the output stage
    output wire                      fill_req,
    output wire [           20-PB:0] fill_word,
    input  wire                      fill_gnt,
    input  wire [        8*PATH-1:0] fill_data,
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt,
    // activity, for the performance counters
    output wire [    `WORK_BITS-1:0] work
);

  localparam L = N_Y * N_Z, ZW = $clog2(N_Z);
  localparam TW = $clog2(TILE_ROWS) + 2, WA = $clog2(WBUF_ROWS), WW = WA + 2;
  localparam TA = TW + 4 - $clog2((TILE_W > 64) ? 64 : TILE_W);
  localparam PAW = $clog2(PARAM_CHANS / N_Z), XW = 29;
  localparam PMW = `JOB_BITS + 7;  // sideband of a group in the post lanes: job, end, position

  // float16 products in parallel: maximum of columns; columns, rows
  localparam FMOST = (PATH > 64) ? 32 : PATH / 2;
  localparam FCOLS = (FP16_LANES == 0) ? 1 : (FP16_LANES < FMOST) ? FP16_LANES : FMOST;
  localparam FROWS = (FP16_LANES == 0) ? 1 : FP16_LANES / FCOLS;

  // registered because of the long route of flush, which lasts some cycles; for some more, nothing starts
  reg clear;
  always @(posedge clk) clear <= rst || flush;

  // ---- layer of the array
  wire [`DESC_BITS-1:0] array_desc, late_desc;
  wire [2:0] swl;
  wire array_start, array_done, one_bank, by_chan, by_lane, signed_out, out32;
  // ---- sequencer, tile buffer, weight buffer
  wire [9*TA-1:0] column_entry;
  wire [9*WA-1:0] column_wrow, weight_row;
  wire [9*`COLUMN_BITS-1:0] column_control;
  wire [8:0] column_re, column_wre, weight_re;
  wire [`TAG_BITS-1:0] issue_tag;
  wire [TW-1:0] tile_freed, tile_filled;
  wire [WW-1:0] wrow_freed, wrow_filled, ring_row, skip_to;
  wire [1:0] tag_valid;
  wire [`WORK_MOVES-1:0] array_work;
  wire seq_running, row_take, fill_busy, act_ready, table_we, skip;
  wire [20-PB:0] tile_word;
  wire [8*TILE_W-1:0] row_0, row_1, row_2, row_3, row_4, row_5, row_6, row_7, row_8;
  wire [PRW-1:0] prow_filled;
  wire [9*N_Z*WEIGHT_BITS-1:0] weights;
  wire [3:0] table_addr;
  wire [`SEGMENT_BITS-1:0] table_data;
  wire [N_Z*71-1:0] param_bn;
  wire [N_Z*36-1:0] param_kc;
  // ---- MAC stage, multipliers lent to side_tasks
  wire param_re, sum_valid, sum_end, mac_idle, lend_valid;
  wire [PAW-1:0] param_row;
  wire [L*36-1:0] sum;
  wire [L*XW-1:0] sum_x;
  wire [ZW-1:0] sum_bank;
  wire [11*FROWS-1:0] lend_a;
  wire [11*FCOLS-1:0] lend_b;
  wire [33*FP16_LANES:0] products;
  // ---- post lanes, output stage
  wire post_valid, post_end, post_idle, row_room, output_idle, tile_req, output_req;
  wire [L*8-1:0] post_byte;
  wire [5:0] post_pos, sum_pos;
  wire [`JOB_BITS-1:0] post_job, sum_job;
  wire [`ROWWRITE_BITS-1:0] output_write;

  layer_views u_views (
      .clk(clk),
      .rst(clear),
      .start(start),
      .desc(desc),
      .array_desc(array_desc),
      .late_desc(late_desc),
      .one_bank(one_bank),
      .by_chan(by_chan),
      .by_lane(by_lane),
      .swl(swl),
      .signed_out(signed_out),
      .out32(out32)
  );

  side_tasks #(
      .POOL_LANES(POOL_LANES),
      .FP16_LANES(FP16_LANES),
      .FP16_COLS (FCOLS),
      .FP16_ROWS (FROWS),
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .WB        (WEIGHT_BITS),
      .WBUF_ROWS (WBUF_ROWS),
      .PATH      (PATH),
      .READ      (READ)
  ) u_side (
      .clk(clk),
      .rst(clear),
      .start(start),
      .desc(desc),
      .array_start(array_start),
      .seq_done(seq_done),
      .idle(idle),
      .array_done(array_done),
      .seq_running(seq_running),
      .mac_idle(mac_idle),
      .output_idle(output_idle),
      .tile_req(tile_req),
      .tile_word(tile_word),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .output_req(output_req),
      .output_write(output_write),
      .writeback_req(writeback_req),
      .writeback(writeback),
      .writeback_gnt(writeback_gnt),
      .ring_row(ring_row),
      .wrow_filled(wrow_filled),
      .skip(skip),
      .skip_to(skip_to),
      .seq_re(column_wre),
      .seq_wrow(column_wrow),
      .wre(weight_re),
      .wrow(weight_row),
      .weights(weights),
      .lend_valid(lend_valid),
      .lend_a(lend_a),
      .lend_b(lend_b),
      .products(products),
      .array_work(array_work),
      .loads((weight_valid && weight_ready) || (kept_valid && kept_ready) || (bias_valid && bias_ready)),
      .work(work)
  );

  tile_buffer #(
      .TILE_ROWS(TILE_ROWS),
      .PATH     (PATH),
      .TILE_W   (TILE_W),
      .FLAT_MAPS(FLAT_MAPS),
      .DILATION (DILATION),
      .READ     (READ)
  ) u_tile (
      .clk(clk),
      .rst(clear),
      .start(array_start),
      .desc(desc),
      .busy(fill_busy),
      .lines_there(lines_there),
      .tile_filled(tile_filled),
      .tile_freed(tile_freed),
      .fill_req(tile_req),
      .fill_word(tile_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .re(column_re),
      .entry(column_entry),
      .row_0(row_0),
      .row_1(row_1),
      .row_2(row_2),
      .row_3(row_3),
      .row_4(row_4),
      .row_5(row_5),
      .row_6(row_6),
      .row_7(row_7),
      .row_8(row_8)
  );

  weight_buffer #(
      .AHB_W       (AHB_W),
      .N_Z         (N_Z),
      .WEIGHT_BITS (WEIGHT_BITS),
      .KEEP_WEIGHTS(KEEP_WEIGHTS),
      .WBUF_ROWS   (WBUF_ROWS),
      .PAR_ROWS    (PARAM_CHANS / N_Z),
      .LOOK_AHEAD  (LOOK_AHEAD),
      .WEIGHT_W    (WEIGHT_W),
      .PRW         (PRW)
  ) u_weights (
      .clk(clk),
      .rst(clear),
      .weight_load_start(weight_load_start),
      .weight_load_busy(weight_load_busy),
      .param_load_start(param_load_start),
      .param_load_busy(param_load_busy),
      .table_only(keeping[`KEEPING_REUSE]),
      .desc(load_desc),
      .weight_valid(weight_valid),
      .weight_ready(weight_ready),
      .weight_piece(weight_piece),
      .kept_valid(kept_valid),
      .kept_ready(kept_ready),
      .kept(kept),
      .bias_valid(bias_valid),
      .bias_ready(bias_ready),
      .bias_beat(bias_beat),
      .wrow_freed(wrow_freed),
      .wrow_filled(wrow_filled),
      .prow_freed(keeping[`KEEPING_FREED]),
      .prow_filled(prow_filled),
      .re(weight_re),
      .wrow(weight_row),
      .weights(weights),
      .load(array_start),
      .act_ready(act_ready),
      .table_we(table_we),
      .table_addr(table_addr),
      .table_data(table_data),
      .param_re(param_re),
      .param_row(param_row),
      .bn(param_bn),
      .kc(param_kc)
  );

  sequencer #(
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .TILE_ROWS (TILE_ROWS),
      .WBUF_ROWS (WBUF_ROWS),
      .TILE_W    (TILE_W),
      .POST_SHARE(POST_SHARE),
      .FLAT_MAPS (FLAT_MAPS),
      .DILATION  (DILATION),
      .SUM_PLANES(SUM_PLANES),
      .PRW       (PRW)
  ) u_seq (
      .clk(clk),
      .rst(clear),
      .start(array_start),
      .desc(array_desc),
      .prow_base(keeping[`KEEPING_BASE]),
      .keep(keeping[`KEEPING_KEEP]),
      .reuse(keeping[`KEEPING_REUSE]),
      .ring_row(ring_row),
      .skip(skip),
      .skip_to(skip_to),
      .running(seq_running),
      .done(array_done),
      .tile_filled(tile_filled),
      .tile_freed(tile_freed),
      .wrow_filled(wrow_filled),
      .wrow_freed(wrow_freed),
      .row_room(row_room),
      .row_take(row_take),
      .prow_filled(prow_filled),
      .act_ready(act_ready),
      .column_re(column_re),
      .column_wre(column_wre),
      .column_entry(column_entry),
      .column_wrow(column_wrow),
      .column_control(column_control),
      .issued(array_work[`WORK_ISSUED]),
      .tag_valid(tag_valid),
      .tag(issue_tag),
      .wait_tile(array_work[`WORK_WAIT_TILE]),
      .wait_weight(array_work[`WORK_WAIT_WEIGHT]),
      .wait_output(array_work[`WORK_WAIT_OUTPUT])
  );

  mac_stage #(
      .N_Y        (N_Y),
      .N_Z        (N_Z),
      .WEIGHT_BITS(WEIGHT_BITS),
      .TILE_W     (TILE_W),
      .PARAM_CHANS(PARAM_CHANS),
      .GATE       (GATE),
      .FP16_LANES (FP16_LANES),
      .FP16_COLS  (FCOLS),
      .FP16_ROWS  (FROWS),
      .SUM_PLANES (SUM_PLANES),
      .PRW        (PRW)
  ) u_mac (
      .clk(clk),
      .rst(clear),
      .desc(late_desc),
      .control(column_control),
      .row_0(row_0),
      .row_1(row_1),
      .row_2(row_2),
      .row_3(row_3),
      .row_4(row_4),
      .row_5(row_5),
      .row_6(row_6),
      .row_7(row_7),
      .row_8(row_8),
      .weights(weights),
      .lend_valid(lend_valid),
      .lend_a(lend_a),
      .lend_b(lend_b),
      .products(products),
      .issued(tag_valid),
      .issue_tag(issue_tag),
      .param_re(param_re),
      .param_row(param_row),
      .out_valid(sum_valid),
      .out_sum(sum),
      .out_xsum(sum_x),
      .out_pos(sum_pos),
      .out_end(sum_end),
      .out_bank(sum_bank),
      .out_job(sum_job),
      .idle(mac_idle),
      .macs_issued(array_work[`WORK_MACS_ISSUED]),
      .macs_gated(array_work[`WORK_MACS_GATED])
  );

  post_lanes #(
      .N_Y     (N_Y),
      .N_Z     (N_Z),
      .ROUNDING(ROUNDING),
      .MW      (PMW),
      .XW      (XW),
      .SHARE   (POST_SHARE),
      .MULTIPLY(1 - POST_TABLES),
      .PIECE   (MUL_BITS)
  ) u_post (
      .clk(clk),
      .rst(clear),
      .one_bank(one_bank),
      .by_chan(by_chan),
      .by_lane(by_lane),
      .swl(swl),
      .arg_x(desc[`DESC_ARGX]),
      .shr_x(desc[`DESC_SHRX]),
      .sgn(signed_out),
      .out32(out32),
      .load(array_start),
      .table_we(table_we),
      .table_addr(table_addr),
      .table_data(table_data),
      .in_valid(sum_valid),
      .in_sum(sum),
      .in_xsum(sum_x),
      .in_bank(sum_bank),
      .in_bn(param_bn),
      .in_kc(param_kc),
      .in_meta({sum_pos, sum_end, sum_job}),
      .out_valid(post_valid),
      .out_byte(post_byte),
      .out_meta({post_pos, post_end, post_job}),
      .idle(post_idle)
  );

  output_stage #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .PATH(PATH),
      .FLAT_MAPS(FLAT_MAPS)
  ) u_output (
      .clk(clk),
      .rst(clear),
      .start(array_start),
      .desc(desc),
      .in_valid(post_valid),
      .in_byte(post_byte),
      .in_pos(post_pos),
      .in_end(post_end),
      .in_job(post_job),
      .room(row_room),
      .take(row_take),
      .writeback_req(output_req),
      .writeback(output_write),
      .writeback_gnt(writeback_gnt),
      .idle(output_idle)
  );

  wire unused = &{1'b0, fill_busy, post_idle};

endmodule

`resetall
