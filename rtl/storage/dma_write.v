// SPDX-License-Identifier: Apache-2.0
//
// dma_write: the write channel of the DMAC.
//
// How it works: data words queue in a FIFO; a burst is proposed once all its words are there, each burst
// ending at a multiple of MAX_BURST words. The tail of a request whose length is not a multiple of the
// bus word is written by narrower single transfers (for 7 bytes of 16: 4, 2, 1), all from the same data
// word, which the last one pops. The FIFO keeps a word until it is written: the master may rewind, and
// then pops the same words again. A failed channel proposes nothing more until the flush.
// Handshake: the requester waits for store_req_ready until no request is active, and for store_ready
// until the FIFO has room; data may precede the request. cmd_take accepts the proposed burst; the master
// pops a data word with wd_pop, rewinds by wd_back words, and reports the oldest one as written with
// wd_free.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_write #(
    // data width of the bus
    parameter AHB_W = 32,
    // words of the FIFO: a power of two, at least 4
    parameter FIFO_DEPTH = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, flush; run = 0 refuses requests and data; propose no more bursts
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
    // proposed burst
    output wire                   cmd_want,
    input  wire                   cmd_take,
    output wire [`BURST_BITS-1:0] burst,
    // data to the master: pops a word, rewinds by 0 to 2 words, retires the oldest word
    output wire [      AHB_W-1:0] wd_data,
    input  wire                   wd_pop,
    input  wire [            1:0] wd_back,
    input  wire                   wd_free,
    // no active request
    output wire                   idle
);

  localparam HALF = FIFO_DEPTH / 2;
  localparam MAX_BURST = (HALF >= 16) ? 16 : (HALF >= 8) ? 8 : (HALF >= 4) ? 4 :
                         (HALF >= 2) ? 2 : 1;
  // blocks of MAX_BURST words, which no burst crosses; byte addresses within a block
  localparam MW = $clog2(MAX_BURST);
  localparam BB = OW + MW;
  // whole blocks: from 24 bits of bytes and the start within the block
  localparam LW = 25 - BB;
  // ready words: 0..FIFO_DEPTH, compared with a burst
  localparam PW = $clog2(FIFO_DEPTH);
  localparam FW = PW + 1;
  localparam NW = (FW > 5) ? FW : 5;
  localparam [4:0] MAX_C = MAX_BURST[4:0];
  localparam [4:0] MASK_C = MAX_C - 5'd1;
  localparam [2:0] FULL_SIZE = OW[2:0];
  localparam [31-OW:0] WORD_MASK = {{(27 - OW) {1'b0}}, MASK_C};

  generate
    if (FIFO_DEPTH < 4 || FIFO_DEPTH != (1 << PW)) begin : g_check
      ILLEGAL_DEPTH_POWER_OF_TWO_FROM_4 u_illegal ();
    end
  endgenerate

  wire [           31:0] req_addr = store_req[`REQ_ADDR];
  wire [           23:0] req_len = store_req[`REQ_LEN];

  // active request: word address and whether it passed the last address, byte of the tail; remaining
  // whole blocks, and none remain; words before the tail in its block, and the tail's remaining bytes;
  // owner
  reg                    cur_valid;
  reg  [        31-OW:0] cur_word;
  reg                    wrap;
  reg  [         OW-1:0] cur_byte;
  reg  [         LW-1:0] blocks;
  reg                    in_rest;
  reg  [            4:0] rest;
  reg  [         OW-1:0] tail;
  reg  [`OWNER_BITS-1:0] owner;
  // words in the FIFO not yet assigned to a burst
  reg  [         NW-1:0] ready;

  // the FIFO: words in it, including those that may be rewound; write and read pointer
  reg  [         FW-1:0] held;
  reg  [         PW-1:0] wr_ptr;
  reg  [         PW-1:0] rd_ptr;
  wire                   in_push = store_valid && store_ready;
  wire [           FW:0] held_next = {held, 1'b1} + {{FW{wd_free}}, in_push};

  assign store_ready = !held[FW-1] && run;

  ram_1r1w_async #(
      .WIDTH(AHB_W),
      .DEPTH(FIFO_DEPTH)
  ) u_words (
      .clk  (clk),
      .we   (in_push),
      .waddr(wr_ptr),
      .wdata(store_data),
      .raddr(rd_ptr),
      .rdata(wd_data)
  );

  always @(posedge clk) begin
    if (rst || flush) begin
      held   <= {FW{1'b0}};
      wr_ptr <= {PW{1'b0}};
      rd_ptr <= {PW{1'b0}};
    end else begin
      held   <= held_next[FW:1];
      wr_ptr <= wr_ptr + {{(PW - 1) {1'b0}}, in_push};
      // a pop and a rewind never coincide
      rd_ptr <= rd_ptr + {{(PW - 1) {wd_back != 2'd0}}, wd_pop || wd_back[0]};
    end
  end

  // end of the request, relative to the block in which it begins
  wire [24:0] req_stop = {1'b0, req_len} +
      {{(20 - OW) {1'b0}}, req_addr[OW+:5] & MASK_C, {OW{1'b0}}};

  // next burst of full words
  wire [4:0] from = cur_word[4:0] & MASK_C;
  wire [4:0] upto = in_rest ? rest : MAX_C;
  wire bulk = (upto != from);
  wire [4:0] beats = upto - from;
  wire [NW-1:0] beats_w = {{(NW - 5) {1'b0}}, beats};
  // start of the next block
  wire [32-OW:0] next_word = (({wrap, cur_word} >> MW) + 1'b1) << MW;

  // next piece of the tail: the largest power of two that fits
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

  // the proposal, registered: a burst is computed in the cycle after the previous one was accepted
  reg           want;
  always @(posedge clk) begin
    if (rst || flush) want <= 1'b0;
    else want <= cur_valid && !cmd_take && (bulk ? (ready >= beats_w) : (ready != {NW{1'b0}}));
  end
  assign cmd_want = !failed && want;
  wire cmd_last = bulk ? (words_done && tail == {OW{1'b0}}) : tail_done;

  wire [TAG_W-1:0] tag;
  assign tag[`DMA_TAG_TOP]   = {OW{1'b1}};
  assign tag[`DMA_TAG_OFF]   = {OW{1'b0}};
  assign tag[`DMA_TAG_LAST]  = cmd_last;
  assign tag[`DMA_TAG_CHAN]  = 3'd4;
  assign tag[`DMA_TAG_OWNER] = owner;

  wire [`CMD_BITS-1:0] cmd;
  assign cmd[`CMD_WRITE] = 1'b1;
  assign cmd[`CMD_ADDR] = {cur_word, cur_byte};
  assign cmd[`CMD_BEATS] = bulk ? beats : 5'd1;
  assign cmd[`CMD_SIZE] = bulk ? FULL_SIZE : piece_size;
  assign cmd[`CMD_WPOP] = bulk || tail_done;
  assign cmd[`CMD_TAG] = tag;
  assign burst[`BURST_CMD] = cmd;
  assign burst[`BURST_WRAP] = wrap;
  assign store_req_ready = !cur_valid && run;
  assign idle = !cur_valid;

  wire [NW-1:0] spent = !cmd_take ? {NW{1'b0}} : bulk ? beats_w : {{(NW - 1) {1'b0}}, tail_done};

  always @(posedge clk) begin
    if (rst || flush) begin
      cur_valid <= 1'b0;
      wrap <= 1'b0;
    end else if (!cur_valid) begin
      // a request of zero bytes is dropped
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
        // pieces shrink, so that no two of them share a bit
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

  // requests are aligned to bus words; the lowest bit of the sum is its carry in
  wire unused = &{1'b0, store_req, req_addr[OW-1:0], held_next[0]};

`ifdef FORMAL_dma_write
  `include "dma_write_props.vh"
`endif

endmodule

`resetall
