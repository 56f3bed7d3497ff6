// SPDX-License-Identifier: Apache-2.0
//
// control: the central controller.
//
// How it works: layer words come from the host's FIFO or, in a task-list run, from a list in the
// storage (layer_words). layer_decode turns each layer into a descriptor; dispatcher
// requests its weights, passes it to the loaders, which run ahead, and to a queue, from which
// layer_runner starts one layer at a time. In a stream prefetch_ctrl requests the pixels of the next
// inference ahead of time. run_state detects the errors that end a run early.
// Handshake: commands and events are pulses; everything else is valid/ready. After an error in host
// mode layer words are discarded, layer by layer, until the host acknowledges.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module control #(
    // bus width, width of a parameter row counter
    parameter AHB_W        = 32,
    parameter PRW          = `PROW_BITS,
    // array: pixels, output channels; bits of a weight
    parameter N_Y          = 4,
    parameter N_Z          = 4,
    parameter WEIGHT_BITS  = 16,
    // rows of the AI RAM, the weight buffer and the tile buffer; bytes of a tile word, at most 64
    parameter AI_RAM_ROWS  = 32768,
    parameter WBUF_ROWS    = 1024,
    parameter TILE_ROWS    = 32,
    parameter TILE_WORD    = 64,
    // 1: there is an engine for pooling tasks
    parameter POOLS        = 1,
    // 1: there are lanes for products of float16 matrices
    parameter FP16         = 0,
    // 1: sums may be output as 32 bits
    parameter OUT32        = 1,
    // 1: weights may be kept in the AI RAM; narrow maps of 1x1 layers are computed as one line
    parameter KEEP_WEIGHTS = 0,
    parameter FLAT_MAPS    = 0,
    parameter DILATION     = 1,
    // channels whose parameters fit; layers decoded ahead of the array
    parameter PARAM_CHANS  = 2048,
    parameter LOOK_AHEAD   = 4,
    // derived, not to be set: widths of a bus offset and a count
    parameter OW           = $clog2(AHB_W / 8),
    parameter CW           = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // host: configuration, commands, state, events, error
    input  wire [    `CFG_BITS-1:0] cfg,
    input  wire [   `HOST_BITS-1:0] host,
    output wire [ `STATUS_BITS-1:0] status,
    output wire [  `EVENT_BITS-1:0] events,
    output wire [    `ERR_BITS-1:0] err,
    // layer words of the host
    input  wire                     arg_valid,
    output wire                     arg_ready,
    input  wire [             63:0] arg_data,
    input  wire                     arg_eight_bit,
    input  wire                     arg_flush,
    // list channel of the DMAC
    output wire                     list_req_valid,
    input  wire                     list_req_ready,
    output wire [    `REQ_BITS-1:0] list_req,
    input  wire                     list_valid,
    output wire                     list_ready,
    input  wire [   `BEAT_BITS-1:0] list_beat,
    // weight and bias channels: requests; weights that are kept in the AI RAM
    output wire                     weight_req_valid,
    input  wire                     weight_req_ready,
    output wire [    `REQ_BITS-1:0] weight_req,
    output wire                     weight_req_kept,
    output wire                     bias_req_valid,
    input  wire                     bias_req_ready,
    output wire [    `REQ_BITS-1:0] bias_req,
    // loaders: the last decoded layer, which each accepts once
    output wire [   `DESC_BITS-1:0] load_desc,
    output wire                     weight_load_start,
    input  wire                     weight_load_busy,
    output wire                     param_load_start,
    input  wire                     param_load_busy,
    // array: parameter rows and weights kept by a stream, layer, available lines of its map
    output wire [`KEEPING_BITS-1:0] keeping,
    output wire                     run_start,
    output wire [   `DESC_BITS-1:0] desc,
    input  wire                     seq_done,
    input  wire                     core_idle,
    output wire [              9:0] lines_there,
    // pixels: channel of the DMAC, load
    output wire                     pixel_req_valid,
    input  wire                     pixel_req_ready,
    output wire [    `REQ_BITS-1:0] pixel_req,
    output wire                     pixel_share,
    output wire                     load_start,
    output wire [   `LOAD_BITS-1:0] load,
    input  wire                     load_band,
    input  wire                     load_done,
    // results: unload of a map
    output wire                     unload_start,
    output wire [ `UNLOAD_BITS-1:0] unload,
    input  wire                     unload_done,
    // array: progress; it lacks weights or parameters
    input  wire                     moves,
    input  wire                     starves,
    // storage port: activity, failed transfer, stall of the master; flush drops everything, in the DMAC
    // too; give_up: that flush does not wait for the bus
    input  wire [`TRAFFIC_BITS-1:0] traffic,
    input  wire                     bus_err,
    input  wire [  `FAULT_BITS-1:0] bus_fault,
    input  wire [`WAITING_BITS-1:0] waiting,
    output wire                     flush,
    output wire                     give_up
);

  // ---- host
  wire start = host[`HOST_START];
  wire soft_reset = host[`HOST_SOFT_RESET];

  // ---- layer_words
  wire list_comes, list_mode, committed, list_last, list_parity, list_changed, moved_on;
  wire dec_word_valid, hold;
  wire [63:0] dec_word_data;
  wire [9:0] list_index, list_changed_index, host_index;
  // ---- run_state
  wire refuse, trouble, refused, error, busy;
  // ---- layer_decode
  wire dec_word_ready, collected, dec_idle, dec_err, d_valid;
  wire [7:0] dec_err_code;
  // ---- dispatcher
  wire [9:0] next_index;
  wire d_ready, q_valid, layers_wait, layers_move, first_out;
  // ---- prefetch_ctrl
  wire pix_ready, npix_take, pix_ask, pix_loading, fc_reached;
  // ---- layer_runner
  wire q_pop, pix_take, idle, inf_over, calc_done, inf_done, inf_kept, layer_done, inf_next;
  wire runs, waits_pixels, waits_output, keep, reuse;
  wire [PRW-1:0] prow_base, prow_freed;
  wire [`MAP_BITS-1:0] unload_map;

  wire go_on = committed && cfg[`CFG_MORE];
  assign keeping = {reuse, keep, prow_freed, prow_base};

  assign events  = {error, npix_take, inf_next, layer_done, inf_kept, inf_done, calc_done};

  layer_words #(
      .AHB_W(AHB_W)
  ) u_words (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .cfg(cfg),
      .host(host),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_flush(arg_flush),
      .list_req_valid(list_req_valid),
      .list_req_ready(list_req_ready),
      .list_req(list_req),
      .list_valid(list_valid),
      .list_ready(list_ready),
      .list_beat(list_beat),
      .inf_over(inf_over),
      .inf_next(inf_next),
      .list_mode(list_mode),
      .committed(committed),
      .list_comes(list_comes),
      .list_index(list_index),
      .list_last(list_last),
      .list_parity(list_parity),
      .changed(list_changed),
      .changed_index(list_changed_index),
      .moved_on(moved_on),
      .word_valid(dec_word_valid),
      .word_ready(dec_word_ready),
      .word(dec_word_data),
      .host_index(host_index),
      .collected(collected),
      .busy(busy),
      .refused(refused),
      .ends(refuse || trouble),
      .error(error),
      .hold(hold)
  );

  run_state u_state (
      .clk               (clk),
      .rst               (rst),
      .cfg               (cfg),
      .start             (start),
      .list_mode         (list_mode),
      .list_index        (list_index),
      .list_comes        (list_comes),
      .host_comes        (arg_valid && !hold),
      .dec_word_ready    (dec_word_ready),
      .dec_idle          (dec_idle),
      .dec_err           (dec_err),
      .dec_err_code      (dec_err_code),
      .dec_err_index     (load_desc[`DESC_IDX]),
      .list_changed      (list_changed),
      .list_changed_index(list_changed_index),
      .layers_wait       (layers_wait),
      .layers_move       (layers_move),
      .idle              (idle),
      .desc              (desc),
      .runs              (runs),
      .waits_pixels      (waits_pixels),
      .waits_output      (waits_output),
      .pix_loading       (pix_loading),
      .layer_done        (layer_done),
      .inf_over          (inf_over),
      .go_on             (go_on),
      .fc_reached        (fc_reached),
      .reuse             (reuse),
      .hold              (hold),
      .flush             (flush),
      .moves             (moves),
      .traffic           (traffic),
      .bus_err           (bus_err),
      .bus_fault         (bus_fault),
      .waiting           (waiting),
      .refuse            (refuse),
      .trouble           (trouble),
      .refused           (refused),
      .give_up           (give_up),
      .busy              (busy),
      .status            (status),
      .error             (error),
      .err               (err),
      .unload_map        (unload_map),
      .unload            (unload)
  );

  layer_decode #(
      .AHB_W       (AHB_W),
      .N_Y         (N_Y),
      .N_Z         (N_Z),
      .WEIGHT_BITS (WEIGHT_BITS),
      .AI_RAM_ROWS (AI_RAM_ROWS),
      .WBUF_ROWS   (WBUF_ROWS),
      .TILE_ROWS   (TILE_ROWS),
      .TILE_WORD   (TILE_WORD),
      .POOLS       (POOLS),
      .FP16        (FP16),
      .OUT32       (OUT32),
      .KEEP_WEIGHTS(KEEP_WEIGHTS),
      .FLAT_MAPS   (FLAT_MAPS),
      .DILATION    (DILATION)
  ) u_decode (
      .clk(clk),
      .rst(rst || flush || list_changed),
      .drop(arg_flush && !list_mode),
      .w_valid(dec_word_valid),
      .w_ready(dec_word_ready),
      .w_data(dec_word_data),
      .eight_bit(list_mode ? cfg[`CFG_EIGHT_BIT] : arg_eight_bit),
      .wgt_base(list_mode ? cfg[`CFG_WGT_ADR] : 32'd0),
      .bias_base(list_mode ? cfg[`CFG_BIAS_ADR] : 32'd0),
      .index(list_mode ? list_index : host_index),
      .first(list_mode && list_index == 10'd0),
      .last(list_mode && list_last),
      .parity(list_mode && list_parity),
      .collected(collected),
      .d_valid(d_valid),
      .d_ready(d_ready),
      .desc(load_desc),
      .err(dec_err),
      .err_code(dec_err_code),
      .idle(dec_idle)
  );

  dispatcher #(
      .N_Z       (N_Z),
      .WBUF_ROWS (WBUF_ROWS),
      .PAR_ROWS  (PARAM_CHANS / N_Z),
      .LOOK_AHEAD(LOOK_AHEAD)
  ) u_dispatch (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .d_valid(d_valid),
      .d_ready(d_ready),
      .d_desc(load_desc),
      .weight_quiet(traffic[`TRAFFIC_WEIGHT_QUIET]),
      .bias_quiet(traffic[`TRAFFIC_BIAS_QUIET]),
      .weight_req_valid(weight_req_valid),
      .weight_req_ready(weight_req_ready),
      .weight_req(weight_req),
      .weight_req_kept(weight_req_kept),
      .bias_req_valid(bias_req_valid),
      .bias_req_ready(bias_req_ready),
      .bias_req(bias_req),
      .first_out(first_out),
      .weight_load_start(weight_load_start),
      .weight_load_busy(weight_load_busy),
      .param_load_start(param_load_start),
      .param_load_busy(param_load_busy),
      .q_valid(q_valid),
      .waits(layers_wait),
      .moves(layers_move),
      .desc(desc),
      .next_index(next_index),
      .q_pop(q_pop),
      .start(start),
      .stream(cfg[`CFG_MORE]),
      .ends(inf_over && !go_on),
      .list_mode(list_mode),
      .keep(keep),
      .reuse(reuse)
  );

  prefetch_ctrl u_prefetch (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .start(start),
      .follows(go_on),
      .moved_on(moved_on),
      .inf_over(inf_over),
      .list_seen(d_valid && list_mode),
      .d_desc(load_desc),
      .first_out(first_out),
      .layer_runs(runs && list_mode),
      .desc(desc),
      .next_index(next_index),
      .pix_ready(pix_ready),
      .pix_take(pix_take),
      .pix_ask(pix_ask),
      .pix_loading(pix_loading),
      .lines_there(lines_there),
      .taken_adr(cfg[`CFG_TAKEN_ADR]),
      .npix_take(npix_take),
      .fc_reached(fc_reached),
      .pixel_req_valid(pixel_req_valid),
      .pixel_req_ready(pixel_req_ready),
      .pixel_req(pixel_req),
      .starves(runs && starves),
      .pixel_share(pixel_share),
      .load_start(load_start),
      .load(load),
      .load_band(load_band),
      .load_done(load_done)
  );

  layer_runner #(
      .N_Z(N_Z),
      .PRW(PRW)
  ) u_runner (
      .clk(clk),
      .rst(rst),
      .abort(soft_reset || trouble || refuse),
      .dma_idle(traffic[`TRAFFIC_IDLE]),
      .flush(flush),
      .q_valid(q_valid),
      .desc(desc),
      .q_pop(q_pop),
      .list_mode(list_mode),
      .committed(committed),
      .more(cfg[`CFG_MORE]),
      .go_on(go_on),
      .pix_ready(pix_ready),
      .pix_take(pix_take),
      .pix_ask(pix_ask),
      .pix_loading(pix_loading),
      .run_start(run_start),
      .seq_done(seq_done),
      .core_idle(core_idle),
      .prow_base(prow_base),
      .prow_freed(prow_freed),
      .keep(keep),
      .reuse(reuse),
      .unload_start(unload_start),
      .unload_map(unload_map),
      .unload_done(unload_done),
      .idle(idle),
      .runs(runs),
      .waits_pixels(waits_pixels),
      .waits_output(waits_output),
      .inf_over(inf_over),
      .calc_done(calc_done),
      .inf_done(inf_done),
      .inf_kept(inf_kept),
      .layer_done(layer_done),
      .inf_next(inf_next)
  );

  wire unused = &{1'b0, traffic};

`ifdef FORMAL_control
  `include "control_props.vh"
`endif

endmodule

`resetall
