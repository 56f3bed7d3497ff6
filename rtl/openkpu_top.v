// SPDX-License-Identifier: Apache-2.0
//
// openkpu_top: the CNN coprocessor, with an AHB slave for the host and an AHB master for the storage.
//
// How it works: the host port holds the registers and gives it access to the AI RAM. The controller accepts layers from
// the host or a task list, prefetches their weights and tables, and runs them one by one. The storage port is on the
// bus; the data cache moves maps between it and the AI RAM; the core computes a layer from AI RAM to AI RAM.
// Handshake: AMBA 2.0 AHB on both ports; irq is a level.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module openkpu_top #(
    // array: pixels, output channels (the reduction is nine wide)
    parameter N_Y             = 4,
    parameter N_Z             = 4,
    // data width of the master: 32, 64 or 128
    parameter AHB_W           = 32,
    // 64-byte rows of the AI RAM
    parameter AI_RAM_ROWS     = 32768,
    // rows of the weight buffer, 9 * N_Z weights each
    parameter WBUF_ROWS       = 1024,
    // bits of a weight: 8 or 16
    parameter WEIGHT_BITS     = 16,
    // channels whose parameters fit: 1024 or 2048
    parameter PARAM_CHANS     = 2048,
    // layers decoded ahead: 4, 8 or 16
    parameter LOOK_AHEAD      = 4,
    // entries of the tile buffer
    parameter TILE_ROWS       = 32,
    // sums that share a post lane: 1, 2 or 4
    parameter POST_SHARE      = 1,
    // windows of a pooling task divided in parallel: 1, 2, 4, 8; 0: no pooling tasks
    parameter POOL_LANES      = 4,
    // products of float16 matrices in parallel: a power of two from 4 on; 0: no such tasks
    parameter FP16_LANES      = 0,
    // 1: weights may be kept in the AI RAM
    parameter KEEP_WEIGHTS    = 0,
    // 1: weights that arrive early may wait in the AI RAM
    parameter WEIGHT_AHEAD    = 0,
    // 1: narrow maps of 1x1 layers are computed as one line
    parameter FLAT_MAPS       = 0,
    // largest distance of the taps of a 3x3 window; 1: no dilated layers
    parameter DILATION        = 1,
    // 1: bytes 1 to 3 of 32-bit sums leave while the array continues
    parameter SUM_PLANES      = 0,
    // 1: sums may be output as 32 bits (products of integer matrices); 0: no such layers
    parameter OUT32           = 1,
    // 1: post lanes look zero points up in memories, which saves two multipliers per lane
    parameter POST_TABLES     = 0,
    // bits of the wide operand of a post lane's multiplier (the other one has 18): 18, or 17 for a DSP48
    parameter MUL_BITS        = 18,
    // bytes per cycle of the memory path: 16, 32, 64 or 128
    parameter PATH            = 64,
    // depths of the FIFOs, in bus words
    parameter PIX_FIFO_DEPTH  = 64,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32,
    // rounding of the activation: 0 nncase, 1 v01, 2 trunc
    parameter ROUNDING        = 0,
    // 1: operands of gated multiplications do not toggle
    parameter GATE            = 1,
    // 1: performance counters; 0: only the counter of finished inferences
    parameter PERF            = 1,
    // 1: the slave accepts privileged writes only
    parameter PRIVILEGED      = 0
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // AHB slave, 32 bits
    input  wire                   s_ahb_hsel,
    input  wire [           31:0] s_ahb_haddr,
    input  wire [            1:0] s_ahb_htrans,
    input  wire                   s_ahb_hwrite,
    input  wire [            2:0] s_ahb_hsize,
    input  wire [            2:0] s_ahb_hburst,
    input  wire [            3:0] s_ahb_hprot,
    input  wire [           31:0] s_ahb_hwdata,
    input  wire                   s_ahb_hready_in,
    output wire                   s_ahb_hready_out,
    output wire [            1:0] s_ahb_hresp,
    output wire [           31:0] s_ahb_hrdata,
    // AHB master
    output wire                   m_ahb_hbusreq,
    output wire                   m_ahb_hlock,
    input  wire                   m_ahb_hgrant,
    output wire [           31:0] m_ahb_haddr,
    output wire [            1:0] m_ahb_htrans,
    output wire                   m_ahb_hwrite,
    output wire [            2:0] m_ahb_hsize,
    output wire [            2:0] m_ahb_hburst,
    output wire [            3:0] m_ahb_hprot,
    output wire [      AHB_W-1:0] m_ahb_hwdata,
    input  wire                   m_ahb_hready,
    input  wire [            1:0] m_ahb_hresp,
    input  wire [      AHB_W-1:0] m_ahb_hrdata,
    // burst commands in advance, for a bridge to another bus; interrupt, level
    output wire [`AHEAD_BITS-1:0] m_ahb_ahead,
    output wire                   irq
);

  `include "openkpu_legal.vh"

  localparam PRW = `PROW_BITS, OW = $clog2(LEGAL_AHB_W / 8), CW = OW + 1, PB = $clog2(LEGAL_PATH);
  // tile buffer: bytes per cycle, those of a depthwise layer and at least 8; a word has at most 64 bytes
  localparam integer LANES = LEGAL_N_Y * LEGAL_N_Z, TILE_MIN = (LANES < 8) ? 8 : LANES;
  localparam integer TILE_W = (TILE_MIN < LEGAL_PATH) ? TILE_MIN : LEGAL_PATH, TILE_WORD = (TILE_W > 64) ? 64 : TILE_W;
  // few lanes: maps move in pieces of four bytes; the AI RAM has registers on both sides
  localparam integer NARROW = (LEGAL_AHB_W == 32 && LEGAL_PATH == 16 && LANES < 16) ? 1 : 0, READ = 1 + 2 * NARROW;
  // ---- host port, control, storage port: configuration, layer words, results, window; layers; requests, streams
  wire [`CFG_BITS-1:0] cfg;
  wire [`HOST_BITS-1:0] host;
  wire [`GUARD_BITS-1:0] guard;
  wire [`WINDOW_BITS-1:0] window;
  wire [63:0] arg_data, result_data;
  wire [31:0] window_rdata;
  wire arg_valid, arg_ready, arg_eight_bit, arg_flush, result_valid, result_ready, window_req, window_ack;
  wire [`STATUS_BITS-1:0] status;
  wire [`EVENT_BITS-1:0] events;
  wire [`ERR_BITS-1:0] err;
  wire [`DESC_BITS-1:0] load_desc, desc;
  wire [`KEEPING_BITS-1:0] keeping;
  wire [9:0] lines_there;
  wire weight_load_start, weight_load_busy, param_load_start, param_load_busy, run_start, seq_done, core_idle;
  wire [`REQ_BITS-1:0] list_req, weight_req, bias_req, pixel_req, store_req;
  wire [`BEAT_BITS-1:0] list_beat, early_beat, bias_beat, pixel_beat;
  wire [  LEGAL_AHB_W-1:0] store_data;
  wire [  `FAULT_BITS-1:0] bus_fault;
  wire [`TRAFFIC_BITS-1:0] traffic;
  wire [`WAITING_BITS-1:0] waiting;
  wire list_req_valid, list_req_ready, list_valid, list_ready, pixel_req_valid, pixel_req_ready, pixel_share;
  wire weight_req_valid, weight_req_ready, weight_valid, weight_ready, weight_wanted, weight_kept, weight_granted;
  wire bias_req_valid, bias_req_ready, bias_valid, bias_ready, bus_err, flush, give_up;
  wire store_req_valid, store_req_ready, store_valid, store_ready, store_done, pixel_valid, pixel_ready;
  // ---- data cache: maps, weights, words for the core
  wire [  `LOAD_BITS-1:0] load;
  wire [`UNLOAD_BITS-1:0] unload;
  wire [`KEPT_BITS-1:0] weight_piece, kept;
  wire [`ROWWRITE_BITS-1:0] writeback;
  wire [`WORK_BITS-1:0] work;
  wire [20-PB:0] fill_word;
  wire [8*LEGAL_PATH-1:0] fill_data;
  wire load_start, load_band, load_done, unload_start, unload_done, early_valid, early_ready, kept_valid, kept_ready;
  wire fill_req, fill_gnt, writeback_req, writeback_gnt;

  host_port #(
      .N_Y         (LEGAL_N_Y),
      .N_Z         (LEGAL_N_Z),
      .AHB_W       (LEGAL_AHB_W),
      .AI_RAM_ROWS (LEGAL_AI_RAM_ROWS),
      .WEIGHT_AHEAD(LEGAL_WEIGHT_AHEAD),
      .PERF        (LEGAL_PERF),
      .PRIVILEGED  (LEGAL_PRIVILEGED)
  ) u_host (
      .clk(clk),
      .rst(rst),
      .s_ahb_hsel(s_ahb_hsel),
      .s_ahb_haddr(s_ahb_haddr),
      .s_ahb_htrans(s_ahb_htrans),
      .s_ahb_hwrite(s_ahb_hwrite),
      .s_ahb_hsize(s_ahb_hsize),
      .s_ahb_hburst(s_ahb_hburst),
      .s_ahb_hprot(s_ahb_hprot),
      .s_ahb_hwdata(s_ahb_hwdata),
      .s_ahb_hready_in(s_ahb_hready_in),
      .s_ahb_hready_out(s_ahb_hready_out),
      .s_ahb_hresp(s_ahb_hresp),
      .s_ahb_hrdata(s_ahb_hrdata),
      .irq(irq),
      .window_req(window_req),
      .window(window),
      .window_ack(window_ack),
      .window_rdata(window_rdata),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_eight_bit(arg_eight_bit),
      .arg_flush(arg_flush),
      .result_valid(result_valid),
      .result_ready(result_ready),
      .result_data(result_data),
      .cfg(cfg),
      .host(host),
      .guard(guard),
      .status(status),
      .events(events),
      .err(err),
      .traffic(traffic),
      .work(work)
  );
  control #(
      .AHB_W       (LEGAL_AHB_W),
      .N_Y         (LEGAL_N_Y),
      .N_Z         (LEGAL_N_Z),
      .WEIGHT_BITS (LEGAL_WEIGHT_BITS),
      .AI_RAM_ROWS (LEGAL_AI_RAM_ROWS),
      .WBUF_ROWS   (LEGAL_WBUF_ROWS),
      .TILE_ROWS   (LEGAL_TILE_ROWS),
      .TILE_WORD   (TILE_WORD),
      .POOLS       (LEGAL_POOL_LANES != 0),
      .FP16        (LEGAL_FP16_LANES != 0),
      .OUT32       (LEGAL_OUT32),
      .KEEP_WEIGHTS(LEGAL_KEEP_WEIGHTS),
      .FLAT_MAPS   (LEGAL_FLAT_MAPS),
      .DILATION    (LEGAL_DILATION),
      .PARAM_CHANS (LEGAL_PARAM_CHANS),
      .LOOK_AHEAD  (LEGAL_LOOK_AHEAD)
  ) u_control (
      .clk(clk),
      .rst(rst),
      .cfg(cfg),
      .host(host),
      .status(status),
      .events(events),
      .err(err),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_eight_bit(arg_eight_bit),
      .arg_flush(arg_flush),
      .list_req_valid(list_req_valid),
      .list_req_ready(list_req_ready),
      .list_req(list_req),
      .list_valid(list_valid),
      .list_ready(list_ready),
      .list_beat(list_beat),
      .weight_req_valid(weight_wanted),
      .weight_req_ready(weight_granted),
      .weight_req(weight_req),
      .weight_req_kept(weight_kept),
      .bias_req_valid(bias_req_valid),
      .bias_req_ready(bias_req_ready),
      .bias_req(bias_req),
      .load_desc(load_desc),
      .weight_load_start(weight_load_start),
      .weight_load_busy(weight_load_busy),
      .param_load_start(param_load_start),
      .param_load_busy(param_load_busy),
      .run_start(run_start),
      .desc(desc),
      .seq_done(seq_done),
      .core_idle(core_idle),
      .lines_there(lines_there),
      .keeping(keeping),
      .pixel_req_valid(pixel_req_valid),
      .pixel_req_ready(pixel_req_ready),
      .pixel_req(pixel_req),
      .pixel_share(pixel_share),
      .load_start(load_start),
      .load(load),
      .load_band(load_band),
      .load_done(load_done),
      .unload_start(unload_start),
      .unload(unload),
      .unload_done(unload_done),
      .moves(work[`WORK_MOVES]),
      .starves(work[`WORK_WAIT_WEIGHT]),
      .bus_err(bus_err),
      .bus_fault(bus_fault),
      .waiting(waiting),
      .flush(flush),
      .give_up(give_up),
      .traffic(traffic)
  );
  storage_port #(
      .AHB_W          (LEGAL_AHB_W),
      .PIX_FIFO_DEPTH (LEGAL_PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH (LEGAL_WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(LEGAL_BIAS_FIFO_DEPTH)
  ) u_storage (
      .clk(clk),
      .rst(rst),
      .dma_abort(flush),
      .dma_abandon(give_up),
      .guard(guard),
      .m_ahb_hbusreq(m_ahb_hbusreq),
      .m_ahb_hlock(m_ahb_hlock),
      .m_ahb_hgrant(m_ahb_hgrant),
      .m_ahb_haddr(m_ahb_haddr),
      .m_ahb_htrans(m_ahb_htrans),
      .m_ahb_hwrite(m_ahb_hwrite),
      .m_ahb_hsize(m_ahb_hsize),
      .m_ahb_hburst(m_ahb_hburst),
      .m_ahb_hprot(m_ahb_hprot),
      .m_ahb_hwdata(m_ahb_hwdata),
      .m_ahb_hready(m_ahb_hready),
      .m_ahb_hresp(m_ahb_hresp),
      .m_ahb_hrdata(m_ahb_hrdata),
      .m_ahb_ahead(m_ahb_ahead),
      .list_req_valid(list_req_valid),
      .list_req_ready(list_req_ready),
      .list_req(list_req),
      .list_valid(list_valid),
      .list_ready(list_ready),
      .list_beat(list_beat),
      .bias_req_valid(bias_req_valid),
      .bias_req_ready(bias_req_ready),
      .bias_req(bias_req),
      .bias_valid(bias_valid),
      .bias_ready(bias_ready),
      .bias_beat(bias_beat),
      .weight_req_valid(weight_req_valid),
      .weight_req_ready(weight_req_ready),
      .weight_req(weight_req),
      .weight_valid(early_valid),
      .weight_ready(early_ready),
      .weight_beat(early_beat),
      .pixel_req_valid(pixel_req_valid),
      .pixel_req_ready(pixel_req_ready),
      .pixel_req(pixel_req),
      .pixel_share(pixel_share),
      .pixel_valid(pixel_valid),
      .pixel_ready(pixel_ready),
      .pixel_beat(pixel_beat),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req(store_req),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .store_done(store_done),
      .bus_err(bus_err),
      .bus_fault(bus_fault),
      .waiting(waiting),
      .traffic(traffic)
  );
  data_cache #(
      .ROWS(LEGAL_AI_RAM_ROWS),
      .AHB_W(LEGAL_AHB_W),
      .PATH(LEGAL_PATH),
      .KEEP_WEIGHTS(LEGAL_KEEP_WEIGHTS),
      .WEIGHT_AHEAD(LEGAL_WEIGHT_AHEAD),
      .NARROW(NARROW),
      .READ(READ)
  ) u_cache (
      .clk(clk),
      .rst(rst),
      .stop(flush),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .writeback_req(writeback_req),
      .writeback(writeback),
      .writeback_gnt(writeback_gnt),
      .weight_wanted(weight_wanted),
      .weight_granted(weight_granted),
      .weight_kept(weight_kept),
      .weight_req(weight_req),
      .weight_req_valid(weight_req_valid),
      .weight_req_ready(weight_req_ready),
      .early_valid(early_valid),
      .early_ready(early_ready),
      .early_beat(early_beat),
      .weight_valid(weight_valid),
      .weight_ready(weight_ready),
      .weight_piece(weight_piece),
      .spare(cfg[`CFG_SPARE]),
      .kept_valid(kept_valid),
      .kept_ready(kept_ready),
      .kept(kept),
      .window_req(window_req),
      .window(window),
      .window_ack(window_ack),
      .window_rdata(window_rdata),
      .load_start(load_start),
      .load(load),
      .load_band(load_band),
      .load_done(load_done),
      .pixel_valid(pixel_valid),
      .pixel_ready(pixel_ready),
      .pixel_beat(pixel_beat),
      .unload_start(unload_start),
      .unload(unload),
      .unload_done(unload_done),
      .result_valid(result_valid),
      .result_ready(result_ready),
      .result_data(result_data),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req(store_req),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .store_done(store_done)
  );

  openkpu_core #(
      .N_Y         (LEGAL_N_Y),
      .N_Z         (LEGAL_N_Z),
      .AHB_W       (LEGAL_AHB_W),
      .WEIGHT_BITS (LEGAL_WEIGHT_BITS),
      .ROUNDING    (LEGAL_ROUNDING),
      .GATE        (LEGAL_GATE),
      .TILE_ROWS   (LEGAL_TILE_ROWS),
      .WBUF_ROWS   (LEGAL_WBUF_ROWS),
      .PATH        (LEGAL_PATH),
      .READ        (READ),
      .TILE_W      (TILE_W),
      .PARAM_CHANS (LEGAL_PARAM_CHANS),
      .LOOK_AHEAD  (LEGAL_LOOK_AHEAD),
      .POOL_LANES  (LEGAL_POOL_LANES),
      .FP16_LANES  (LEGAL_FP16_LANES),
      .KEEP_WEIGHTS(LEGAL_KEEP_WEIGHTS),
      .WEIGHT_W    ((LEGAL_WEIGHT_AHEAD != 0) ? 128 : LEGAL_AHB_W),
      .FLAT_MAPS   (LEGAL_FLAT_MAPS),
      .DILATION    (LEGAL_DILATION),
      .SUM_PLANES  (LEGAL_SUM_PLANES),
      .POST_TABLES (LEGAL_POST_TABLES),
      .MUL_BITS    (LEGAL_MUL_BITS),
      .POST_SHARE  (LEGAL_POST_SHARE)
  ) u_core (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .start(run_start),
      .desc(desc),
      .keeping(keeping),
      .seq_done(seq_done),
      .idle(core_idle),
      .lines_there(lines_there),
      .weight_load_start(weight_load_start),
      .weight_load_busy(weight_load_busy),
      .param_load_start(param_load_start),
      .param_load_busy(param_load_busy),
      .load_desc(load_desc),
      .weight_valid(weight_valid),
      .weight_ready(weight_ready),
      .weight_piece(weight_piece),
      .kept_valid(kept_valid),
      .kept_ready(kept_ready),
      .kept(kept),
      .bias_valid(bias_valid),
      .bias_ready(bias_ready),
      .bias_beat(bias_beat),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .fill_data(fill_data),
      .writeback_req(writeback_req),
      .writeback(writeback),
      .writeback_gnt(writeback_gnt),
      .work(work)
  );

endmodule

`resetall
