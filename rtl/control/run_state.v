// SPDX-License-Identifier: Apache-2.0
//
// run_state: what the controller is at, for the host and the storage, and what ends a run before its
// time.
//
// How it works: combinational, of what the other units of the controller report. error_ctrl decides which
// failure takes effect, watchdog when nothing has moved for too long.
// Handshake: none; error is a pulse.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module run_state (
    // clock and synchronous reset; configuration; a run begins
    input  wire                     clk,
    input  wire                     rst,
    input  wire [    `CFG_BITS-1:0] cfg,
    input  wire                     start,
    // words: a task-list run, its layer; words of a list, of the host that count
    input  wire                     list_mode,
    input  wire [              9:0] list_index,
    input  wire                     list_comes,
    input  wire                     host_comes,
    // decoder: it takes words, has none; a refused layer; a layer of a list that has changed
    input  wire                     dec_word_ready,
    input  wire                     dec_idle,
    input  wire                     dec_err,
    input  wire [              7:0] dec_err_code,
    input  wire [              9:0] dec_err_index,
    input  wire                     list_changed,
    input  wire [              9:0] list_changed_index,
    // dispatcher: layers that are decoded and not done; these, or requests and loads of theirs
    input  wire                     layers_wait,
    input  wire                     layers_move,
    // runner: the layer at work, what it does, pixels that still come; ends of layers, inferences
    input  wire                     idle,
    input  wire [   `DESC_BITS-1:0] desc,
    input  wire                     runs,
    input  wire                     waits_pixels,
    input  wire                     waits_output,
    input  wire                     pix_loading,
    input  wire                     layer_done,
    input  wire                     inf_over,
    input  wire                     go_on,
    // a fully connected layer was reached, weights of a stream stay, words of the host are discarded
    input  wire                     fc_reached,
    input  wire                     reuse,
    input  wire                     hold,
    // everything is being dropped; the array moves; storage port
    input  wire                     flush,
    input  wire                     moves,
    input  wire [`TRAFFIC_BITS-1:0] traffic,
    input  wire                     bus_err,
    input  wire [  `FAULT_BITS-1:0] bus_fault,
    input  wire [`WAITING_BITS-1:0] waiting,
    // an error ends what is going on; a refused layer waits to be reported; do not wait for the bus
    output wire                     refuse,
    output wire                     trouble,
    output wire                     refused,
    output wire                     give_up,
    // to the host
    output wire                     busy,
    output wire [ `STATUS_BITS-1:0] status,
    output wire                     error,
    output wire [    `ERR_BITS-1:0] err,
    // map that leaves
    input  wire [    `MAP_BITS-1:0] unload_map,
    output wire [ `UNLOAD_BITS-1:0] unload
);

  wire [9:0] layer = desc[`DESC_IDX];  // 0 when there is none
  assign busy = list_mode || !idle || layers_move || !dec_idle || dec_err || refused || host_comes;
  wire fc_now = desc[`DESC_MODE] == `MODE_FC && runs;
  assign status = {
    waits_pixels || waits_output || pix_loading,
    runs,
    layer,
    reuse,
    list_mode ? fc_reached : fc_now,
    hold,
    flush,
    busy
  };

  wire [`MOVES_BITS-1:0] storing = desc[`DESC_MOVES];
  wire stores = storing[`MOVES_STORE];
  assign unload = {
    pix_loading,
    waits_output,
    desc[`DESC_OCS],
    desc[`DESC_OUT32],
    desc[`DESC_INF],
    desc[`DESC_IDX],
    list_mode || stores,
    stores ? storing[`MOVES_STORE_ADR] : cfg[`CFG_RES_ADR],
    unload_map
  };

  wire stuck;
  wire [2:0] stuck_waits;
  error_ctrl u_errors (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .start(start),
      .inf_over(inf_over),
      .go_on(go_on),
      .bus_err(bus_err),
      .bus_fault(bus_fault),
      .list_empty(!list_comes && !traffic[`TRAFFIC_READING]),
      .list_index(list_index),
      .dec_waits(dec_word_ready),
      .dec_err(dec_err),
      .dec_err_code(dec_err_code),
      .dec_err_index(dec_err_index),
      .list_changed(list_changed),
      .list_changed_index(list_changed_index),
      .stuck(stuck),
      .stuck_waits(stuck_waits),
      .waiting(waiting),
      .layer(layer),
      .drained(idle && !layers_wait && dec_word_ready),
      .refuse(refuse),
      .trouble(trouble),
      .refused(refused),
      .error(error),
      .err(err)
  );

  // words of an unfinished layer, and results that nobody takes, are for the host to move
  wire own_work = list_mode || layers_move || !dec_word_ready || !idle;
  watchdog u_watchdog (
      .clk(clk),
      .rst(rst),
      .limit(cfg[`CFG_WATCHDOG]),
      .works(own_work && (list_mode || stores || !waits_output)),
      .progress(moves || traffic[`TRAFFIC_READ_BEAT] || traffic[`TRAFFIC_WRITE_BEAT] || layer_done),
      .flush(flush),
      .waiting(waiting),
      .waits_pixels(waits_pixels),
      .waits_array(runs),
      .waits_output(waits_output),
      .stuck(stuck),
      .waits(stuck_waits),
      .give_up(give_up)
  );

  wire unused = &{1'b0, cfg, desc, storing, traffic};

endmodule

`resetall
