// SPDX-License-Identifier: Apache-2.0
//
// fetch_ctrl: requests the weights, the activation table and the batch-norm words of a layer.
//
// How it works: the weights are requested load by load (load n begins para_size bytes after load n - 1),
// the table and the batch-norm words one after the other on the bias channel. The two channels are
// independent and run ahead of the array as far as their FIFOs accept data. Before the first layer of an
// inference both must have issued all their reads, so that the previous inference has all its data
// (boundary). After that layer they wait once more: when the first reads of the inference are issued
// (first_out), its pixels may follow. With `reuse` the weights and batch-norm words are already in the
// buffers and are not requested. Kept weights are requested from the AI RAM, with weight_req_kept. A
// pooling task requests nothing, a product of float16 matrices only weights.
// Handshake: start passes a descriptor while busy is low; requests are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fetch_ctrl (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // next layer
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  reuse,
    output wire                  busy,
    // all reads of the previous inference are issued; those of the first layer are issued
    output wire                  boundary,
    output wire                  first_out,
    // channels without a request; weight requests
    input  wire                  weight_quiet,
    input  wire                  bias_quiet,
    output reg                   weight_req_valid,
    input  wire                  weight_req_ready,
    output wire [ `REQ_BITS-1:0] weight_req,
    output reg                   weight_req_kept,
    // bias requests
    output reg                   bias_req_valid,
    input  wire                  bias_req_ready,
    output wire [ `REQ_BITS-1:0] bias_req
);

  reg  [           32:0] weight_addr;  // with the carry of the address space
  reg  [            6:0] loads_left;
  reg  [           16:0] psize;
  reg  [           23:0] wlen;
  reg  [           23:0] wlast;
  reg                    bn_next;
  reg  [           31:0] act_addr;
  reg  [           31:0] bn_addr;
  reg  [           10:0] n_o;
  reg  [`OWNER_BITS-1:0] owner;

  reg                    first;  // waits for the reads of the previous inference
  reg                    after;  // not all requests of the first layer are issued
  reg                    skip;  // only the table is read
  reg                    none;  // no requests: a pooling task
  reg                    bare;  // weights only: a product of float16 matrices

  wire                   last_load = loads_left == 7'd1;
  wire                   asking = weight_req_valid || bias_req_valid;
  assign boundary   = first && weight_quiet && bias_quiet;
  assign first_out  = after && !first && !asking && weight_quiet && bias_quiet;

  assign weight_req = {weight_addr[32], owner, last_load ? wlast : wlen, weight_addr[31:0]};
  assign bias_req   = {1'b0, owner, bn_next ? {{10'd0, n_o, 3'd0}, bn_addr} : {24'd144, act_addr}};
  assign busy       = after || asking;

  always @(posedge clk) begin
    if (rst) begin
      weight_req_valid <= 1'b0;
      bias_req_valid   <= 1'b0;
      first            <= 1'b0;
      after            <= 1'b0;
    end else if (start) begin
      weight_req_valid <= !desc[`DESC_FIRST] && !reuse && !desc[`DESC_POOLS];
      bias_req_valid   <= !desc[`DESC_FIRST] && !desc[`DESC_POOLS] && !desc[`DESC_FP16];
      first            <= desc[`DESC_FIRST];
      after            <= desc[`DESC_FIRST];
    end else if (first) begin
      first            <= !boundary;
      weight_req_valid <= boundary && !skip && !none;
      bias_req_valid   <= boundary && !none && !bare;
    end else begin
      after <= after && !first_out;
      if (weight_req_valid && weight_req_ready) weight_req_valid <= !last_load;
      if (bias_req_valid && bias_req_ready) bias_req_valid <= !bn_next && !skip;
    end
  end

  always @(posedge clk) begin
    if (start) begin
      weight_addr     <= {1'b0, desc[`DESC_WADDR]};
      weight_req_kept <= desc[`DESC_KEPT];
      psize           <= desc[`DESC_PSIZE];
      wlen            <= desc[`DESC_WLEN];
      wlast           <= desc[`DESC_WLAST];
      act_addr        <= desc[`DESC_AADDR];
      bn_addr         <= desc[`DESC_BADDR];
      n_o             <= desc[`DESC_O];
      owner           <= {desc[`DESC_INF], desc[`DESC_IDX]};
      skip            <= reuse;
      none            <= desc[`DESC_POOLS];
      bare            <= desc[`DESC_FP16];
      bn_next         <= 1'b0;
      loads_left      <= desc[`DESC_LOADS];
    end else begin
      if (weight_req_valid && weight_req_ready) begin
        weight_addr <= weight_addr + {16'd0, psize};
        loads_left  <= loads_left - 7'd1;
      end
      bn_next <= bn_next || (bias_req_valid && bias_req_ready);
    end
  end

  wire unused = &{1'b0, desc};

`ifdef FORMAL_fetch_ctrl
  `include "fetch_ctrl_props.vh"
`endif

endmodule

`resetall
