// SPDX-License-Identifier: Apache-2.0
//
// dispatcher: passes each decoded layer to the units that need it.
//
// How it works: a descriptor goes to fetch_ctrl, which requests weights and tables, to the weight and the
// parameter loader, which run ahead, and into the array's queue, in registers. Each accepts it when it is
// free; the decoder continues when all have accepted it, so one layer more than the queue holds is fetched
// ahead. With LOOK_AHEAD above 4 a memory in front of the registers holds the other layers, and those in front
// of the loaders their descriptors, so that requests run ahead of the loaders too. weight_keep decides whether a
// stream's weights stay in the buffer; if they do, the weight loader is skipped.
// Handshake: d and the requests are valid/ready; weight_load_start and param_load_start are asserted while
// the busy of each is low; the queue is valid with q_pop. A layer needs some cycles to reach the head of
// the queue: waits, not q_valid, reports whether layers remain.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dispatcher #(
    // output channels of the array, rows of the weight buffer and the parameter buffer
    parameter N_Z        = 4,
    parameter WBUF_ROWS  = 1024,
    parameter PAR_ROWS   = 2048 / N_Z,
    // layers in the queue, including the current one: 4, 8 or 16
    parameter LOOK_AHEAD = 4
) (
    // clock, synchronous reset, flush
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // decoded layers
    input  wire                  d_valid,
    output wire                  d_ready,
    input  wire [`DESC_BITS-1:0] d_desc,
    // weights and tables: channels without a request; requests; those of the first layer are issued
    input  wire                  weight_quiet,
    input  wire                  bias_quiet,
    output wire                  weight_req_valid,
    input  wire                  weight_req_ready,
    output wire [ `REQ_BITS-1:0] weight_req,
    output wire                  weight_req_kept,
    output wire                  bias_req_valid,
    input  wire                  bias_req_ready,
    output wire [ `REQ_BITS-1:0] bias_req,
    output wire                  first_out,
    // loaders
    output wire                  weight_load_start,
    input  wire                  weight_load_busy,
    output wire                  param_load_start,
    input  wire                  param_load_busy,
    // queue for the array: the layer at its head (zeros without one), its index in the next cycle
    output wire                  q_valid,
    output wire [`DESC_BITS-1:0] desc,
    output wire [           9:0] next_index,
    input  wire                  q_pop,
    // a layer is offered or in the queue; the same, or a consumer is busy
    output wire                  waits,
    output wire                  moves,
    // a run begins; it is a stream; it ends; layers come from a task list
    input  wire                  start,
    input  wire                  stream,
    input  wire                  ends,
    input  wire                  list_mode,
    // weights of a stream stay in the buffer; those of the layer being decoded are there
    output wire                  keep,
    output wire                  reuse
);

  reg fetch_taken, weight_taken, param_taken, queue_taken;
  wire q_ready, q_empty, fetch_start, fetch_busy, boundary;
  wire give_fetch = d_valid && !fetch_taken && !fetch_busy;
  wire give_weight = d_valid && !weight_taken && !weight_load_busy;
  wire give_param = d_valid && !param_taken && !param_load_busy;
  wire give_queue = d_valid && !queue_taken && q_ready;
  assign fetch_start = give_fetch;
  // a pooling task has no weights and no tables, a product of float16 matrices no tables
  wire loads = !d_desc[`DESC_POOLS];
  assign weight_load_start = give_weight && !reuse && loads;
  assign param_load_start = give_param && loads && !d_desc[`DESC_FP16];
  assign d_ready = (fetch_taken || give_fetch) && (weight_taken || give_weight) &&
      (param_taken || give_param) && (queue_taken || give_queue);
  wire given = d_valid && d_ready;

  always @(posedge clk) begin
    if (rst || flush || d_ready) begin
      fetch_taken  <= 1'b0;
      weight_taken <= 1'b0;
      param_taken  <= 1'b0;
      queue_taken  <= 1'b0;
    end else begin
      fetch_taken  <= fetch_taken || give_fetch;
      weight_taken <= weight_taken || give_weight;
      param_taken  <= param_taken || give_param;
      queue_taken  <= queue_taken || give_queue;
    end
  end

  localparam REGS = 4;  // layers of the queue in registers
  wire [`DESC_BITS-1:0] queue_desc, next_desc;
  wire ahead_valid, ahead_empty, queue_ready;
  assign next_index = next_desc[`DESC_IDX];
  desc_ahead #(
      .WIDTH (`DESC_BITS),
      .LAYERS(LOOK_AHEAD - REGS)
  ) u_ahead (
      .clk      (clk),
      .rst      (rst || flush),
      .in_valid (give_queue),
      .in_ready (q_ready),
      .in_data  (d_desc),
      .out_valid(ahead_valid),
      .out_ready(queue_ready),
      .out_data (queue_desc),
      .empty    (ahead_empty)
  );
  // between layers the data path receives zeros, not stale entries of the queue
  fifo_regs #(
      .WIDTH(`DESC_BITS),
      .DEPTH(REGS)
  ) u_queue (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .in_valid (ahead_valid),
      .in_ready (queue_ready),
      .in_data  (queue_desc),
      .out_valid(q_valid),
      .out_ready(q_pop),
      .out_data (desc),
      .next_data(next_desc),
      .empty    (q_empty)
  );
  assign waits = d_valid || !q_empty || !ahead_empty;
  assign moves = waits || fetch_busy || weight_load_busy || param_load_busy;

  fetch_ctrl u_fetch (
      .clk(clk),
      .rst(rst || flush),
      .start(fetch_start),
      .desc(d_desc),
      .reuse(reuse),
      .busy(fetch_busy),
      .boundary(boundary),
      .first_out(first_out),
      .weight_quiet(weight_quiet),
      .bias_quiet(bias_quiet),
      .weight_req_valid(weight_req_valid),
      .weight_req_ready(weight_req_ready),
      .weight_req(weight_req),
      .weight_req_kept(weight_req_kept),
      .bias_req_valid(bias_req_valid),
      .bias_req_ready(bias_req_ready),
      .bias_req(bias_req)
  );

  weight_keep #(
      .N_Z      (N_Z),
      .WBUF_ROWS(WBUF_ROWS),
      .PAR_ROWS (PAR_ROWS)
  ) u_keep (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .begin_run(start),
      .stream   (stream),
      .ends     (ends),
      .seen     (d_valid && list_mode),
      .given    (given),
      .desc     (d_desc),
      .keep     (keep),
      .reuse    (reuse)
  );

  wire unused = &{1'b0, next_desc, boundary};

`ifdef FORMAL_dispatcher
  `include "dispatcher_props.vh"
`endif

endmodule

`resetall
