// SPDX-License-Identifier: Apache-2.0
//
// dma_read_channel: one read stream of the DMAC (list, bias, weight or pixel) with its FIFO.
//
// How it works: a byte request may wait behind the one at work, which is cut into bursts of whole
// bus words, each ending at a multiple of MAX_BURST words (so none crosses 1 KB): up to the end of
// the block of so many words, block by block. A burst is proposed (cmd_want) when the FIFO has room
// for all of it; `room` leaves out the words in the FIFO and those on their way, so no word is ever
// lost, whatever the other channels do.
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
    // 1: the FIFO is a block RAM, and a word is visible a cycle later
    parameter BLOCK_RAM = 0,
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
  // blocks of so many words: a burst stays within one; byte addresses within a block
  localparam MW = $clog2(MAX_BURST);
  localparam BB = OW + MW;
  // 24 bits of bytes and the begin within the block: whole blocks
  localparam LW = 25 - BB;
  // room: 0..FIFO_DEPTH, compared with a burst
  localparam RW = (NW > 5) ? NW : 5;
  localparam [RW-1:0] DEPTH_C = FIFO_DEPTH[RW-1:0];
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
  wire                 q_empty_unused;

  assign req_ready = q_in_ready && run;

  fifo_regs #(
      .WIDTH(`REQ_BITS),
      .DEPTH(1)
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
      .empty    (q_empty_unused)
  );

  // request at work: word address and whether it passed the last word there is; blocks that end
  // before its end, and that there is one or none, bytes of it in the block after those; byte offset
  // of its start, whose it is
  reg cur_valid;
  reg cur_first;
  reg [31-OW:0] cur_word;
  reg cur_wrap;
  reg [LW-1:0] cur_blocks;
  reg cur_few;
  reg [BB-1:0] cur_rest;
  reg [OW-1:0] cur_off;
  reg [`OWNER_BITS-1:0] cur_owner;

  // the request's end, counted from the block in which it begins
  wire [24:0] q_stop = {1'b0, q_len} + {{(25 - BB) {1'b0}}, q_addr[BB-1:0]};

  wire no_rest = cur_rest == {BB{1'b0}};
  wire last_block = cur_few && (!cur_blocks[0] || no_rest);
  // words of the last block up to the request's end; bytes of the last one
  wire [OW+4:0] rest_bytes = {{(OW + 5 - BB) {1'b0}}, cur_rest};
  wire [4:0] rest_words = rest_bytes[OW+:5] + {4'd0, rest_bytes[OW-1:0] != {OW{1'b0}}};
  wire [4:0] upto = (last_block && !no_rest) ? rest_words : MAX_C;
  wire [4:0] beats = upto - (cur_word[4:0] & MASK_C);
  // the begin of the next block
  wire [32-OW:0] next_word = (({cur_wrap, cur_word} >> MW) + 1'b1) << MW;

  assign q_pop = !cur_valid;

  always @(posedge clk) begin
    if (rst || flush) begin
      cur_valid <= 1'b0;
      cur_first <= 1'b0;
      cur_wrap  <= 1'b0;
    end else if (q_pop) begin
      // a request of no bytes is dropped
      cur_valid <= q_valid && q_len != 24'd0;
      cur_first <= 1'b1;
      cur_wrap  <= 1'b0;
    end else if (cmd_take) begin
      cur_valid <= !cmd_last;
      cur_first <= 1'b0;
      cur_wrap  <= next_word[32-OW];
    end
  end

  always @(posedge clk) begin
    if (q_pop) begin
      cur_word   <= q_addr[31:OW];
      cur_blocks <= q_stop[24:BB];
      cur_few    <= q_stop[24:BB+1] == {(LW - 1) {1'b0}};
      cur_rest   <= q_stop[BB-1:0];
      cur_off    <= q_addr[OW-1:0];
      cur_owner  <= q_req[`REQ_OWNER];
    end else if (cmd_take) begin
      cur_word   <= next_word[31-OW:0];
      cur_blocks <= cur_blocks - 1'b1;
      cur_few    <= cur_blocks[LW-1:2] == {(LW - 2) {1'b0}} && cur_blocks[1:0] != 2'd3;
    end
  end

  // -------------------------------------------------------------------------------------------
  // proposal and credits
  // -------------------------------------------------------------------------------------------
  reg  [RW-1:0] room;  // words that are neither in the FIFO nor on their way
  wire [RW-1:0] beats_now = {{(RW - 5) {1'b0}}, beats};
  // the proposal, in registers: a burst is settled in the cycle after the one before it was taken
  reg           want;
  reg  [   4:0] want_beats;
  reg           want_last;
  wire [RW-1:0] want_room = {{(RW - 5) {1'b0}}, want_beats};
  wire          pop = out_valid && out_ready;

  always @(posedge clk) begin
    if (rst || flush) want <= 1'b0;
    else want <= cur_valid && !cmd_take && room >= beats_now;
  end
  always @(posedge clk) begin
    want_beats <= beats;
    want_last  <= last_block;
  end

  assign cmd_want = !failed && want;
  assign cmd_addr = {cur_word, {OW{1'b0}}};
  assign cmd_wrap = cur_wrap;
  assign cmd_beats = want_beats;
  assign cmd_first = cur_first;
  assign cmd_last = want_last;
  assign cmd_off = cur_off;
  assign cmd_end = {cur_rest[OW-1:0] == {OW{1'b0}}, cur_rest[OW-1:0]};
  assign cmd_owner = cur_owner;
  assign idle = !cur_valid && !q_valid;

  always @(posedge clk) begin
    if (rst || flush) begin
      room <= DEPTH_C;
    end else begin
      room <= room + {{(RW - 1) {1'b0}}, pop} - (cmd_take ? want_room : {RW{1'b0}});
    end
  end

  // -------------------------------------------------------------------------------------------
  // FIFO
  // -------------------------------------------------------------------------------------------
  wire          f_valid;
  wire [NW-1:0] f_count;

  assign out_valid = f_valid && run;
  assign full = (f_count > FULL_C);

  generate
    if (BLOCK_RAM != 0) begin : g_block
      // a count of 1..BW in OW bits: a word of 32 with offset and count fits a block RAM of 36.
      // Nobody needs the mark of the last word; a FIFO of its own goes where it is not used
      wire f_ready_unused;
      wire last_ready_unused;
      wire last_valid_unused;
      wire [NW-1:0] last_count_unused;
      wire [CW-1:0] less = push_beat[`BEAT_CNT] - 1'b1;
      wire [OW-1:0] less_out;
      fifo_ram #(
          .WIDTH(AHB_W + 2 * OW),
          .DEPTH(FIFO_DEPTH)
      ) u_fifo (
          .clk      (clk),
          .rst      (rst),
          .flush    (flush),
          .in_valid (push),
          .in_ready (f_ready_unused),
          .in_data  ({less[OW-1:0], push_beat[`BEAT_OFF], push_beat[`BEAT_DATA]}),
          .out_valid(f_valid),
          .out_ready(out_ready && run),
          .out_data ({less_out, out_beat[`BEAT_OFF], out_beat[`BEAT_DATA]}),
          .count    (f_count)
      );
      fifo_ram #(
          .WIDTH(1),
          .DEPTH(FIFO_DEPTH)
      ) u_last (
          .clk      (clk),
          .rst      (rst),
          .flush    (flush),
          .in_valid (push),
          .in_ready (last_ready_unused),
          .in_data  (push_beat[`BEAT_LAST]),
          .out_valid(last_valid_unused),
          .out_ready(out_ready && run),
          .out_data (out_beat[`BEAT_LAST]),
          .count    (last_count_unused)
      );
      assign out_beat[`BEAT_CNT] = {1'b0, less_out} + 1'b1;
      wire unused = &{1'b0, less[CW-1]};
    end else begin : g_lut
      wire f_ready_unused;
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
    end
    if (BW < 4) begin : g_check
      dma_read_channel_needs_ahb_w_of_32_or_more u_illegal_parameter ();
    end
    if (BLOCK_RAM < 0 || BLOCK_RAM > 1) begin : g_check_block
      dma_read_channel_needs_block_ram_0_or_1 u_illegal_parameter ();
    end
  endgenerate

endmodule

`resetall
