// SPDX-License-Identifier: Apache-2.0
//
// fetch_ctrl: asks the DMAC for the weights, the activation table and the batch-norm words of a
// layer.
//
// How it works: the weights are requested load by load (load n begins para_size bytes after load
// n - 1), the table and the batch-norm words one after the other on the bias channel. Both
// channels run by themselves, ahead of the array as far as their FIFOs take data. Before the first
// layer of an inference both must have sent out all their reads: then the inference before it has
// all it needs (boundary). With `again` weights and batch-norm words are there already.
// The weights and biases that an inference begins with are read before its pixels, those of later
// layers after them (patent steps 006, 007): the latter are not asked for until the former are all
// sent out, and wb_first tells which of the two the channels hold.
// Handshake: start takes a descriptor when busy is low; requests are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module fetch_ctrl (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // next layer
    input  wire                     start,
    input  wire [`DESC_W_TOTAL-1:0] desc,
    input  wire                     again,
    output wire                     busy,
    // the reads of the inference before are all sent out
    output wire                     boundary,
    // channels without a request; they hold requests of an inference's first layer
    input  wire                     wt_quiet,
    input  wire                     bs_quiet,
    output wire                     wb_first,
    // weight requests
    output reg                      wt_req_valid,
    input  wire                     wt_req_ready,
    output reg  [             31:0] wt_req_addr,
    output wire [             23:0] wt_req_len,
    // bias requests
    output reg                      bs_req_valid,
    input  wire                     bs_req_ready,
    output wire [             31:0] bs_req_addr,
    output wire [             23:0] bs_req_len
);

  reg  [ 6:0] loads_left;
  reg  [16:0] psize;
  reg  [23:0] wlen;
  reg  [23:0] wlast;
  reg         bn_next;
  reg  [31:0] act_addr;
  reg  [31:0] bn_addr;
  reg  [10:0] n_o;

  reg         first;  // waits for the reads of the inference before
  reg         skip;  // only the table is read
  reg         lead;  // the first layer's requests are not all sent out
  reg         late;  // the second layer waits for that

  wire quiet = wt_quiet && bs_quiet;
  wire last_load = loads_left == 7'd1;
  assign boundary = first && quiet;

  assign wt_req_len  = last_load ? wlast : wlen;
  assign bs_req_addr = bn_next ? bn_addr : act_addr;
  assign bs_req_len  = bn_next ? {10'd0, n_o, 3'd0} : 24'd144;
  assign busy        = first || late || wt_req_valid || bs_req_valid;
  assign wb_first    = lead;

  always @(posedge clk) begin
    if (rst) begin
      wt_req_valid <= 1'b0;
      bs_req_valid <= 1'b0;
      bn_next      <= 1'b0;
      loads_left   <= 7'd0;
      first        <= 1'b0;
      skip         <= 1'b0;
      lead         <= 1'b0;
      late         <= 1'b0;
    end else if (start) begin
      wt_req_valid <= !desc[`DESC_FIRST] && !again && !(lead && !quiet);
      bs_req_valid <= !desc[`DESC_FIRST] && !(lead && !quiet);
      late         <= !desc[`DESC_FIRST] && lead && !quiet;
      lead         <= desc[`DESC_FIRST] || (lead && !quiet);
      first        <= desc[`DESC_FIRST];
      skip         <= again;
      bn_next      <= 1'b0;
      loads_left   <= desc[`DESC_LOADS];
    end else if (first) begin
      first        <= !boundary;
      wt_req_valid <= boundary && !skip;
      bs_req_valid <= boundary;
    end else if (late) begin
      late         <= !quiet;
      lead         <= !quiet;
      wt_req_valid <= quiet && !skip;
      bs_req_valid <= quiet;
    end else begin
      lead <= lead && (wt_req_valid || bs_req_valid || !quiet);
      if (wt_req_valid && wt_req_ready) begin
        wt_req_valid <= !last_load;
        loads_left   <= loads_left - 7'd1;
      end
      if (bs_req_valid && bs_req_ready) begin
        bs_req_valid <= !bn_next && !skip;
        bn_next      <= 1'b1;
      end
    end
  end

  always @(posedge clk) begin
    if (start) begin
      wt_req_addr <= desc[`DESC_WADDR];
      psize       <= desc[`DESC_PSIZE];
      wlen        <= desc[`DESC_WLEN];
      wlast       <= desc[`DESC_WLAST];
      act_addr    <= desc[`DESC_AADDR];
      bn_addr     <= desc[`DESC_BADDR];
      n_o         <= desc[`DESC_O];
    end else if (wt_req_valid && wt_req_ready) begin
      wt_req_addr <= wt_req_addr + {15'd0, psize};
    end
  end

  wire unused = &{1'b0, desc};

endmodule

`resetall
