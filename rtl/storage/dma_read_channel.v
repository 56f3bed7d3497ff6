// SPDX-License-Identifier: Apache-2.0
//
// dma_read_channel: one read stream of the DMAC (list, bias, weight or pixel) with its FIFO.
//
// How it works: byte requests wait in a queue of two; the one at work is cut into bursts of whole
// bus words, each ending at a multiple of MAX_BURST words (so none crosses 1 KB). A burst is
// proposed (cmd_want) when the FIFO has room for all of it; `used` counts the words in the FIFO
// and those on their way, so no word is ever lost, whatever the other channels do.
// Handshake: req_ready and the proposal depend on registers alone; cmd_take accepts the proposal.
// push writes a word (there is always room). Stream: valid/ready, off and cnt tell which bytes
// of a word belong to the request, last marks its last word. flush drops everything. A failed
// channel proposes nothing more; what its FIFO holds can be read.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_read_channel #(
    // data width of the bus
    parameter AHB_W = 32,
    // words of the FIFO, at least 2
    parameter FIFO_DEPTH = 16,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1
) (
    // clock, synchronous reset, flush; run = 0 refuses new requests; no more bursts
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    input  wire                   run,
    input  wire                   failed,
    // byte requests
    input  wire                   req_valid,
    output wire                   req_ready,
    input  wire [  `REQ_BITS-1:0] req,
    // proposed burst: beyond the end of the addresses, first / last of its request, first byte in
    // the first word, bytes in the last, whose it is
    output wire                   cmd_want,
    input  wire                   cmd_take,
    output wire [           31:0] cmd_addr,
    output wire                   cmd_wrap,
    output wire [            4:0] cmd_beats,
    output wire                   cmd_first,
    output wire                   cmd_last,
    output wire [         OW-1:0] cmd_off,
    output wire [         CW-1:0] cmd_end,
    output wire [`OWNER_BITS-1:0] cmd_owner,
    // words from the distributor
    input  wire                   push,
    input  wire [ `BEAT_BITS-1:0] push_beat,
    // stream to the consumer
    output wire                   out_valid,
    input  wire                   out_ready,
    output wire [ `BEAT_BITS-1:0] out_beat,
    // the words held leave no room for another burst; no request held
    output wire                   full,
    output wire                   idle
);

  localparam BW = AHB_W / 8;
  localparam HALF = FIFO_DEPTH / 2;
  // longest burst: half the FIFO, so that one half is filled while the other is consumed
  localparam MAX_BURST = (HALF >= 16) ? 16 : (HALF >= 8) ? 8 : (HALF >= 4) ? 4 :
                         (HALF >= 2) ? 2 : 1;
  localparam NW = $clog2(FIFO_DEPTH + 1);
  localparam UW = NW + 5;
  localparam LW = 25;
  localparam [UW-1:0] DEPTH_C = FIFO_DEPTH[UW-1:0];
  localparam FULL_I = FIFO_DEPTH - MAX_BURST;
  localparam [NW-1:0] FULL_C = FULL_I[NW-1:0];
  localparam [4:0] MAX_C = MAX_BURST[4:0];
  localparam [4:0] MASK_C = MAX_C - 5'd1;

  // -------------------------------------------------------------------------------------------
  // requests
  // -------------------------------------------------------------------------------------------
  wire                 q_in_ready;
  wire                 q_valid;
  wire                 q_pop;
  wire [`REQ_BITS-1:0] q_req;
  wire [         31:0] q_addr = q_req[`REQ_ADDR];
  wire [         23:0] q_len = q_req[`REQ_LEN];
  wire [          1:0] q_count_unused;

  assign req_ready = q_in_ready && run;

  fifo_sync #(
      .WIDTH(`REQ_BITS),
      .DEPTH(2)
  ) u_requests (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .in_valid (req_valid && run),
      .in_ready (q_in_ready),
      .in_data  (req),
      .out_valid(q_valid),
      .out_ready(q_pop),
      .out_data (q_req),
      .count    (q_count_unused)
  );

  // request at work: word address and whether it passed the last word there is, words left, byte
  // offset of its start, bytes of its last word, whose it is
  reg                    cur_valid;
  reg                    cur_first;
  reg  [        31-OW:0] cur_word;
  reg                    cur_wrap;
  reg  [         LW-1:0] cur_left;
  reg  [         OW-1:0] cur_off;
  reg  [         CW-1:0] cur_end;
  reg  [`OWNER_BITS-1:0] cur_owner;

  wire [         LW-1:0] q_stop = {1'b0, q_len} + {{(LW - OW) {1'b0}}, q_addr[OW-1:0]};
  wire [         LW-1:0] q_last_byte = q_stop - 1'b1;
  wire [         LW-1:0] q_words = (q_last_byte >> OW) + 1'b1;

  wire [            4:0] to_edge = MAX_C - (cur_word[4:0] & MASK_C);
  wire                   short = (cur_left < {{(LW - 5) {1'b0}}, to_edge});
  wire [            4:0] beats = short ? cur_left[4:0] : to_edge;
  wire                   finish = cmd_take && cmd_last;

  assign q_pop = !cur_valid || finish;

  always @(posedge clk) begin
    if (rst || flush) begin
      cur_valid <= 1'b0;
      cur_first <= 1'b0;
      cur_word  <= {(32 - OW) {1'b0}};
      cur_wrap  <= 1'b0;
      cur_left  <= {LW{1'b0}};
      cur_off   <= {OW{1'b0}};
      cur_end   <= {CW{1'b0}};
      cur_owner <= {`OWNER_BITS{1'b0}};
    end else if (q_pop) begin
      // a request of no bytes is dropped
      cur_valid <= q_valid && q_len != 24'd0;
      cur_first <= 1'b1;
      cur_word  <= q_addr[31:OW];
      cur_wrap  <= 1'b0;
      cur_left  <= q_words;
      cur_off   <= q_addr[OW-1:0];
      cur_end   <= {1'b0, q_last_byte[OW-1:0]} + 1'b1;
      cur_owner <= q_req[`REQ_OWNER];
    end else if (cmd_take) begin
      cur_first <= 1'b0;
      {cur_wrap, cur_word} <= {cur_wrap, cur_word} + {{(28 - OW) {1'b0}}, beats};
      cur_left <= cur_left - {{(LW - 5) {1'b0}}, beats};
    end
  end

  // -------------------------------------------------------------------------------------------
  // proposal and credits
  // -------------------------------------------------------------------------------------------
  reg  [UW-1:0] used;
  wire          pop = out_valid && out_ready;

  assign cmd_want = !failed && cur_valid && (used + {{(UW - 5) {1'b0}}, beats} <= DEPTH_C);
  assign cmd_addr = {cur_word, {OW{1'b0}}};
  assign cmd_wrap = cur_wrap;
  assign cmd_beats = beats;
  assign cmd_first = cur_first;
  assign cmd_last = (cur_left == {{(LW - 5) {1'b0}}, beats});
  assign cmd_off = cur_off;
  assign cmd_end = cur_end;
  assign cmd_owner = cur_owner;
  assign idle = !cur_valid && !q_valid;

  always @(posedge clk) begin
    if (rst || flush) begin
      used <= {UW{1'b0}};
    end else begin
      used <= used + (cmd_take ? {{(UW-5){1'b0}}, beats} : {UW{1'b0}}) -
                  {{(UW-1){1'b0}}, pop};
    end
  end

  // -------------------------------------------------------------------------------------------
  // FIFO
  // -------------------------------------------------------------------------------------------
  wire          f_valid;
  wire          f_ready_unused;
  wire [NW-1:0] f_count;

  assign out_valid = f_valid && run;
  assign full = (f_count > FULL_C);

  fifo_sync #(
      .WIDTH(`BEAT_BITS),
      .DEPTH(FIFO_DEPTH)
  ) u_fifo (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .in_valid (push),
      .in_ready (f_ready_unused),
      .in_data  (push_beat),
      .out_valid(f_valid),
      .out_ready(out_ready && run),
      .out_data (out_beat),
      .count    (f_count)
  );

  generate
    if (BW < 4) begin : g_check
      dma_read_channel_needs_ahb_w_of_32_or_more u_illegal_parameter ();
    end
  endgenerate

endmodule

`resetall
