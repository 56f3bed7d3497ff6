// SPDX-License-Identifier: Apache-2.0
//
// run_state: state of the controller, for the host and the storage, and the errors that end a run early.
//
// How it works: combinational, from the outputs of the controller's other units. error_ctrl decides which
// failure takes effect, watchdog detects a stall.
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
    // words: a task-list run, its layer; words of a list arrive, words of the host that are not discarded
    input  wire                     list_mode,
    input  wire [              9:0] list_index,
    input  wire                     list_comes,
    input  wire                     host_comes,
    // decoder: it accepts words, is empty; a refused layer; a changed layer of a list
    input  wire                     dec_word_ready,
    input  wire                     dec_idle,
    input  wire                     dec_err,
    input  wire [              7:0] dec_err_code,
    input  wire [              9:0] dec_err_index,
    input  wire                     list_changed,
    input  wire [              9:0] list_changed_index,
    // dispatcher: decoded layers are not done; the same, or their requests and loads
    input  wire                     layers_wait,
    input  wire                     layers_move,
    // runner: current layer, its state, pixels still loading; ends of layers, inferences
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
    // flush; progress of the array; storage port
    input  wire                     flush,
    input  wire                     moves,
    input  wire [`TRAFFIC_BITS-1:0] traffic,
    input  wire                     bus_err,
    input  wire [  `FAULT_BITS-1:0] bus_fault,
    input  wire [`WAITING_BITS-1:0] waiting,
    // a refusal ends the run; a failure ends it; a refused layer is pending; do not wait for the bus
    output wire                     refuse,
    output wire                     trouble,
    output wire                     refused,
    output wire                     give_up,
    // to the host
    output wire                     busy,
    output wire [ `STATUS_BITS-1:0] status,
    output wire                     error,
    output wire [    `ERR_BITS-1:0] err,
    // map to unload
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

  // a device that waits for the host (words of an unfinished layer, reads of results) has no work of its
  // own
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
