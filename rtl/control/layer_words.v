// SPDX-License-Identifier: Apache-2.0
//
// layer_words: words of layers, from the host's FIFO or from a task list in the storage.
//
// How it works: list_reader requests the lists of a run and collects their words; word_source selects
// between them and the host's words, and discards the host's after an error.
// Handshake: arg, list, list_req and word are valid/ready; the decoder accepts the last word of a layer with
// collected. Everything else is pulses and levels.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_words #(
    // bus width; derived, not to be set
    parameter AHB_W = 32,
    parameter OW    = $clog2(AHB_W / 8),
    parameter CW    = OW + 1
) (
    // clock, synchronous reset, flush; configuration, commands of the host
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    input  wire [ `CFG_BITS-1:0] cfg,
    input  wire [`HOST_BITS-1:0] host,
    // layer words of the host; arg_flush drops the words of an unfinished layer
    input  wire                  arg_valid,
    output wire                  arg_ready,
    input  wire [          63:0] arg_data,
    input  wire                  arg_flush,
    // list channel of the DMAC
    output wire                  list_req_valid,
    input  wire                  list_req_ready,
    output wire [ `REQ_BITS-1:0] list_req,
    input  wire                  list_valid,
    output wire                  list_ready,
    input  wire [`BEAT_BITS-1:0] list_beat,
    // an inference is over; the configuration advances
    input  wire                  inf_over,
    input  wire                  inf_next,
    // a task-list run is active; the next inference's list is due or requested; words of a list have arrived
    output wire                  list_mode,
    output wire                  committed,
    output wire                  list_comes,
    // layer being collected from a list: its index, the last of the list, parity of its inference
    output wire [           9:0] list_index,
    output wire                  list_last,
    output wire                  list_parity,
    // a collected layer differs from that of the first inference; its index; the configuration has advanced
    output wire                  changed,
    output wire [           9:0] changed_index,
    output wire                  moved_on,
    // decoder: words, index of a host's layer, its last word is popped; the device is busy
    output wire                  word_valid,
    input  wire                  word_ready,
    output wire [          63:0] word,
    output wire [           9:0] host_index,
    input  wire                  collected,
    input  wire                  busy,
    // a refused layer is pending; an error ends the run; it is reported
    input  wire                  refused,
    input  wire                  ends,
    input  wire                  error,
    // words of the host are discarded
    output wire                  hold
);

  wire list_word_valid, list_take;
  wire [63:0] list_word;
  assign list_comes = list_valid || list_word_valid;

  list_reader #(
      .AHB_W(AHB_W)
  ) u_list (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .cfg(cfg),
      .start(host[`HOST_START]),
      .inf_over(inf_over),
      .inf_next(inf_next),
      .list_req_valid(list_req_valid),
      .list_req_ready(list_req_ready),
      .list_req(list_req),
      .list_valid(list_valid),
      .list_ready(list_ready),
      .list_beat(list_beat),
      .word_valid(list_word_valid),
      .word_take(list_take),
      .word(list_word),
      .collected(collected),
      .list_mode(list_mode),
      .committed(committed),
      .index(list_index),
      .last(list_last),
      .parity(list_parity),
      .changed(changed),
      .changed_index(changed_index),
      .moved_on(moved_on)
  );

  word_source u_source (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .host(host),
      .arg_valid(arg_valid),
      .arg_ready(arg_ready),
      .arg_data(arg_data),
      .arg_flush(arg_flush),
      .list_mode(list_mode),
      .list_valid(list_word_valid),
      .list_word(list_word),
      .list_take(list_take),
      .dec_word_valid(word_valid),
      .dec_word_ready(word_ready),
      .dec_word_data(word),
      .host_index(host_index),
      .collected(collected),
      .busy(busy),
      .refused(refused),
      .ends(ends),
      .error(error),
      .hold(hold)
  );

endmodule

`resetall
