// SPDX-License-Identifier: Apache-2.0
//
// dma_cutter: cuts the requests of the four read channels into bursts of whole bus words.
//
// How it works: a request is a row of a small memory: its next word, the remaining words, the valid bytes
// of its first and last word. A channel has two rows, one active and one pending. The active row of
// channel `sel` is read, and is written back, advanced by its next burst, when that burst is accepted:
// one circuit serves all channels. The length of a row's next burst is stored in a second memory in the
// cycle after the row is written; it is not read before the cycle after that. A burst ends at a multiple
// of the channel's maximum burst length, so none crosses 1 KiB. A request passes a register of its
// channel, which is zero otherwise, so that an OR merges the four; it enters the memory in the first
// cycle without an accepted burst. A request of zero bytes is dropped there.
// Handshake: a requester waits while both rows of its channel or one of the registers are full, and while
// a channel of higher priority offers a request. `sel` follows next_sel a cycle later; `burst` is its
// next burst while live[sel], and `take` accepts it. A burst is marked as wrapped when the previous one
// ended at the last address, or its request begins beyond it.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_cutter #(
    // data width of the bus: 32, 64 or 128
    parameter        AHB_W = 32,
    // words of the longest burst - 1, channel 0 in the lowest bits: a power of two - 1
    parameter [15:0] MASKS = 16'hFFF3,
    // derived, not to be set
    parameter        OW    = $clog2(AHB_W / 8),
    parameter        TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, flush; run = 0 refuses requests
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    input  wire                   run,
    // byte requests, channel 0 in the lowest bits
    input  wire [            3:0] req_valid,
    output wire [            3:0] req_ready,
    input  wire [4*`REQ_BITS-1:0] req,
    // channels with an active request, and with no request at all
    output reg  [            3:0] live,
    output wire [            3:0] idle,
    // channel selected for the next cycle, and now; its next burst, words of the burst - 1; burst
    // accepted
    input  wire [            1:0] next_sel,
    output wire [            1:0] sel,
    input  wire                   take,
    output wire [`BURST_BITS-1:0] burst,
    output wire [            3:0] burst_less
);

  // remaining words - 1: from 24 bits of bytes, plus the invalid bytes of the first word
  localparam LW = 25 - OW;
  localparam WORD_W = 32 - OW;
  localparam [2:0] FULL_SIZE = OW[2:0];

  // -------------------------------------------------------------------------------------------
  // a request on its way into the memory
  // -------------------------------------------------------------------------------------------
  // channels with a pending row; index of each channel's active row
  reg [3:0] waiting;
  reg [3:0] phase;
  // a register holds a request; its channel
  reg coming;
  reg [1:0] coming_sel;

  wire [3:0] may = req_valid & ~waiting & {4{run && !coming}};
  assign req_ready = ~waiting & {4{run && !coming}} & ~{
      may[0], may[3] || may[1] || may[0], may[3] || may[0], 1'b0
  };
  wire [3:0] accept = req_valid & req_ready;
  wire loads = coming && !take;

  always @(posedge clk) begin
    if (rst || flush) coming <= 1'b0;
    else coming <= accept != 4'd0 || (coming && take);
  end
  always @(posedge clk) begin
    coming_sel <= coming ? coming_sel : {accept[3] || accept[2], accept[3] || accept[1]};
  end

  wire [4*`REQ_BITS-1:0] reqs;
  genvar c;
  generate
    for (c = 0; c < 4; c = c + 1) begin : g_request
      reg [`REQ_BITS-1:0] held;
      always @(posedge clk) begin
        if (rst || flush || loads) held <= {`REQ_BITS{1'b0}};
        else held <= accept[c] ? req[c*`REQ_BITS+:`REQ_BITS] : held;
      end
      assign reqs[c*`REQ_BITS+:`REQ_BITS] = held;
    end
  endgenerate

  wire [`REQ_BITS-1:0] new_req = reqs[0*`REQ_BITS+:`REQ_BITS] | reqs[1*`REQ_BITS+:`REQ_BITS] |
      reqs[2*`REQ_BITS+:`REQ_BITS] | reqs[3*`REQ_BITS+:`REQ_BITS];
  wire [31:0] new_addr = new_req[`REQ_ADDR];
  wire [23:0] new_len = new_req[`REQ_LEN];
  // its last byte, relative to the start of its first word
  wire [OW-1:0] new_off = new_addr[OW-1:0];
  wire [OW-1:0] off_less = new_off - 1'b1;
  wire [24:0] new_last = {1'b0, new_len} + {{(25 - OW) {new_off == {OW{1'b0}}}}, off_less};

  // -------------------------------------------------------------------------------------------
  // the next burst of the selected channel, and the row advanced by it
  // -------------------------------------------------------------------------------------------
  wire [`OWNER_BITS-1:0] owner;
  wire [OW-1:0] off;
  wire [OW-1:0] top;
  wire [LW-1:0] left;
  wire wrap;
  wire [WORD_W-1:0] word;

  // its row, and the row of an incoming request
  reg [2:0] row_sel;
  assign sel = row_sel[1:0];
  // a channel issues no burst in the cycle in which its phase changes
  always @(posedge clk) row_sel <= {phase[next_sel], next_sel};
  wire [2:0] new_sel = {phase[coming_sel] ^ live[coming_sel], coming_sel};

  wire [3:0] mask = MASKS[4*sel+:4];
  // words to the end of the block, less one
  wire [3:0] most = mask & ~word[3:0];
  wire last;
  wire [WORD_W:0] next_word = {1'b0, word[WORD_W-1:4], word[3:0] | mask} + 1'b1;
  wire [LW-1:0] next_left = left + {{(LW - 4) {1'b1}}, ~most};

  wire [TAG_W-1:0] tag;
  assign tag[`DMA_TAG_TOP]   = top | {OW{!last}};
  assign tag[`DMA_TAG_OFF]   = off;
  assign tag[`DMA_TAG_LAST]  = last;
  assign tag[`DMA_TAG_CHAN]  = {1'b0, sel};
  assign tag[`DMA_TAG_OWNER] = owner;

  wire [`CMD_BITS-1:0] cmd;
  assign cmd[`CMD_WRITE] = 1'b0;
  assign cmd[`CMD_ADDR] = {word, {OW{1'b0}}};
  assign cmd[`CMD_BEATS] = {1'b0, burst_less} + 5'd1;
  assign cmd[`CMD_SIZE] = FULL_SIZE;
  assign cmd[`CMD_WPOP] = 1'b0;
  assign cmd[`CMD_TAG] = tag;
  assign burst[`BURST_CMD] = cmd;
  assign burst[`BURST_WRAP] = wrap;

  // fields constant over all bursts of a request, and fields that each burst changes
  ram_1r1w_async #(
      .WIDTH(`OWNER_BITS + OW),
      .DEPTH(8)
  ) u_whole (
      .clk  (clk),
      .we   (loads),
      .waddr(new_sel),
      .wdata({new_req[`REQ_OWNER], new_last[OW-1:0]}),
      .raddr(row_sel),
      .rdata({owner, top})
  );

  ram_1r1w_async #(
      .WIDTH(OW + LW + 1 + WORD_W),
      .DEPTH(8)
  ) u_rest (
      .clk(clk),
      .we(take || loads),
      .waddr(take ? row_sel : new_sel),
      .wdata(take ? {{OW{1'b0}}, next_left, next_word} :
             {new_off, new_last[24:OW], new_req[`REQ_BEYOND], new_addr[31:OW]}),
      .raddr(row_sel),
      .rdata({off, left, wrap, word})
  );

  // ---- the next burst of the row just written: its words - 1, and whether it is the last
  reg cut;
  reg [2:0] cut_row;
  reg [LW-1:0] cut_left;
  reg [3:0] cut_low;
  wire [3:0] cut_most = MASKS[4*cut_row[1:0]+:4] & ~cut_low;
  wire cut_last = cut_left[LW-1:4] == {(LW - 4) {1'b0}} && cut_left[3:0] <= cut_most;
  always @(posedge clk) begin
    cut <= take || loads;
    cut_row <= take ? row_sel : new_sel;
    cut_left <= take ? next_left : new_last[24:OW];
    cut_low <= take ? next_word[3:0] : new_addr[OW+:4];
  end
  ram_1r1w_async #(
      .WIDTH(5),
      .DEPTH(8)
  ) u_next (
      .clk  (clk),
      .we   (cut),
      .waddr(cut_row),
      .wdata({cut_last, cut_last ? cut_left[3:0] : cut_most}),
      .raddr(row_sel),
      .rdata({last, burst_less})
  );

  wire [3:0] ended = {4{take && last}} & (4'd1 << sel);
  wire [3:0] loaded = {4{loads && new_len != 24'd0}} & (4'd1 << coming_sel);
  always @(posedge clk) begin
    if (rst || flush) begin
      live <= 4'd0;
      waiting <= 4'd0;
      phase <= 4'd0;
    end else begin
      live <= loaded | (live & ~ended) | (waiting & ended);
      waiting <= (loaded & live) | (waiting & ~ended);
      phase <= phase ^ ended;
    end
  end

  // no channel has a lower priority than the weights
  wire unused = &{1'b0, may[2]};

  assign idle = ~live & ~({4{coming}} & (4'd1 << coming_sel));

endmodule

`resetall
