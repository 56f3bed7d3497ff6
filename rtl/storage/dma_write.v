// SPDX-License-Identifier: Apache-2.0
//
// dma_write: the write channel of the DMAC.
//
// How it works: data words wait in a FIFO; a burst is proposed once all its words are there, each
// burst ending at a multiple of MAX_BURST words. The tail of a request whose length is not a
// multiple of the bus word is written by single narrower transfers (for 7 bytes of 16: 4, 2, 1),
// all of them from the same data word, which leaves the FIFO with the last one. A failed channel
// proposes nothing more until the flush.
// Handshake: store_req_ready when no request is at work; store_ready while the FIFO has room, also
// before the request has come. cmd_take accepts the proposed burst, wd_pop takes a data word.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_write #(
    // data width of the bus
    parameter AHB_W = 32,
    // words of the FIFO, at least 2
    parameter FIFO_DEPTH = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8)
) (
    // clock, synchronous reset, flush; run = 0 refuses requests and data; no more bursts
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    input  wire                   run,
    input  wire                   failed,
    // requests: address of a bus word, length in bytes
    input  wire                   store_req_valid,
    output wire                   store_req_ready,
    input  wire [  `REQ_BITS-1:0] store_req,
    // data stream
    input  wire                   store_valid,
    output wire                   store_ready,
    input  wire [      AHB_W-1:0] store_data,
    // proposed burst: beyond the end of the addresses, ..., last of its request, whose it is
    output wire                   cmd_want,
    input  wire                   cmd_take,
    output wire [           31:0] cmd_addr,
    output wire                   cmd_wrap,
    output wire [            4:0] cmd_beats,
    output wire [            2:0] cmd_size,
    output wire                   cmd_wpop,
    output wire                   cmd_last,
    output wire [`OWNER_BITS-1:0] cmd_owner,
    // data to the master
    output wire [      AHB_W-1:0] wd_data,
    input  wire                   wd_pop,
    // no request at work
    output wire                   idle
);

  localparam HALF = FIFO_DEPTH / 2;
  localparam MAX_BURST = (HALF >= 16) ? 16 : (HALF >= 8) ? 8 : (HALF >= 4) ? 4 :
                         (HALF >= 2) ? 2 : 1;
  // blocks of so many words: a burst stays within one; byte addresses within a block
  localparam MW = $clog2(MAX_BURST);
  localparam BB = OW + MW;
  // 24 bits of bytes and the begin within the block: whole blocks
  localparam LW = 25 - BB;
  // words that are ready: 0..FIFO_DEPTH, compared with a burst
  localparam FW = $clog2(FIFO_DEPTH + 1);
  localparam NW = (FW > 5) ? FW : 5;
  localparam [4:0] MAX_C = MAX_BURST[4:0];
  localparam [4:0] MASK_C = MAX_C - 5'd1;
  localparam [2:0] FULL_SIZE = OW[2:0];
  localparam [31-OW:0] WORD_MASK = {{(27 - OW) {1'b0}}, MASK_C};

  wire [           31:0] req_addr = store_req[`REQ_ADDR];
  wire [           23:0] req_len = store_req[`REQ_LEN];

  // request at work: word address and whether it passed the last word there is, byte of the tail;
  // blocks that end before its end, and that there is none; the word in the block after those where the tail is, and the
  // tail's bytes left; whose it is
  reg                    cur_valid;
  reg  [        31-OW:0] cur_word;
  reg                    wrap;
  reg  [         OW-1:0] cur_byte;
  reg  [         LW-1:0] blocks;
  reg                    in_rest;
  reg  [            4:0] rest;
  reg  [         OW-1:0] tail;
  reg  [`OWNER_BITS-1:0] owner;
  // words in the FIFO that no burst was given for yet
  reg  [         NW-1:0] ready;

  wire                   f_ready;
  wire                   f_valid_unused;
  wire                   in_push = store_valid && store_ready;
  wire [         FW-1:0] f_count_unused;

  assign store_ready = f_ready && run;

  fifo_sync #(
      .WIDTH(AHB_W),
      .DEPTH(FIFO_DEPTH)
  ) u_fifo (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .in_valid (store_valid && run),
      .in_ready (f_ready),
      .in_data  (store_data),
      .out_valid(f_valid_unused),
      .out_ready(wd_pop),
      .out_data (wd_data),
      .count    (f_count_unused)
  );

  // the request's end, counted from the block in which it begins
  wire [24:0] req_stop = {1'b0, req_len} +
      {{(20 - OW) {1'b0}}, req_addr[OW+:5] & MASK_C, {OW{1'b0}}};

  // next burst of full words
  wire [4:0] from = cur_word[4:0] & MASK_C;
  wire [4:0] upto = in_rest ? rest : MAX_C;
  wire bulk = (upto != from);
  wire [4:0] beats = upto - from;
  wire [NW-1:0] beats_w = {{(NW - 5) {1'b0}}, beats};
  // the begin of the next block
  wire [32-OW:0] next_word = (({wrap, cur_word} >> MW) + 1'b1) << MW;

  // next piece of the tail: the largest power of two that is left
  reg [2:0] piece_size;
  integer i;
  always @* begin
    piece_size = 3'd0;
    for (i = 0; i < OW; i = i + 1) begin
      if (tail[i]) begin
        piece_size = i[2:0];
      end
    end
  end
  wire [OW-1:0] piece = {{(OW - 1) {1'b0}}, 1'b1} << piece_size;
  wire [OW-1:0] tail_next = tail & ~piece;
  wire          tail_done = (tail_next == {OW{1'b0}});

  wire          one_block = blocks == {{(LW - 1) {1'b0}}, 1'b1};
  wire          words_done = in_rest || (one_block && rest == 5'd0);

  // the proposal, in a register: a burst is settled in the cycle after the one before it was taken
  reg           want;
  always @(posedge clk) begin
    if (rst || flush) want <= 1'b0;
    else want <= cur_valid && !cmd_take && (bulk ? (ready >= beats_w) : (ready != {NW{1'b0}}));
  end
  assign cmd_want = !failed && want;
  assign cmd_addr = {cur_word, cur_byte};
  assign cmd_wrap = wrap;
  assign cmd_owner = owner;
  assign cmd_beats = bulk ? beats : 5'd1;
  assign cmd_size = bulk ? FULL_SIZE : piece_size;
  assign cmd_wpop = bulk || tail_done;
  assign cmd_last = bulk ? (words_done && tail == {OW{1'b0}}) : tail_done;
  assign store_req_ready = !cur_valid && run;
  assign idle = !cur_valid;

  wire [NW-1:0] spent = !cmd_take ? {NW{1'b0}} : bulk ? beats_w : {{(NW - 1) {1'b0}}, tail_done};

  always @(posedge clk) begin
    if (rst || flush) begin
      cur_valid <= 1'b0;
      wrap <= 1'b0;
    end else if (!cur_valid) begin
      // a request of no bytes is dropped
      cur_valid <= store_req_valid && run && req_len != 24'd0;
      wrap <= 1'b0;
    end else if (cmd_take) begin
      cur_valid <= !cmd_last;
      wrap <= (bulk && !in_rest) ? next_word[32-OW] : wrap;
    end
  end

  always @(posedge clk) begin
    if (!cur_valid) begin
      cur_word <= req_addr[31:OW];
      cur_byte <= {OW{1'b0}};
      blocks   <= req_stop[24:BB];
      in_rest  <= req_stop[24:BB] == {LW{1'b0}};
      rest     <= req_stop[OW+:5] & MASK_C;
      tail     <= req_stop[OW-1:0];
      owner    <= store_req[`REQ_OWNER];
    end else if (cmd_take) begin
      if (!bulk) begin
        // the pieces become smaller, so that no two of them share a bit
        cur_byte <= cur_byte | piece;
        tail <= tail_next;
      end else if (in_rest) begin
        // on to the tail
        cur_word <= (cur_word & ~WORD_MASK) | {{(27 - OW) {1'b0}}, rest};
      end else begin
        cur_word <= next_word[31-OW:0];
        blocks   <= blocks - 1'b1;
        in_rest  <= one_block;
      end
    end
  end

  always @(posedge clk) begin
    if (rst || flush) begin
      ready <= {NW{1'b0}};
    end else begin
      ready <= ready + {{(NW - 1) {1'b0}}, in_push} - spent;
    end
  end

  // the address of a request is one of a bus word
  wire _unused_ok = &{1'b0, req_addr[OW-1:0]};

`ifdef FORMAL_dma_write
  `include "dma_write_props.vh"
`endif

endmodule

`resetall
