// SPDX-License-Identifier: Apache-2.0
//
// dma_read_channel: FIFO and credit counter of one read stream of the DMAC (list, bias, weight or pixel).
//
// How it works: `used` counts the words in the FIFO and in flight. A burst is requested while the channel
// has an active request and the FIFO has room for the longest burst, so no word is ever lost, whatever
// the other channels do.
// Handshake: `next` requests a burst for the next cycle; take accepts one and adds its words to `used`,
// and next is low meanwhile. push writes a word (there is always room). Stream: valid/ready, the consumer
// waits; off and cnt give the bytes of a word that belong to the request. flush drops everything. A
// failed channel requests no more bursts; the content of its FIFO can still be read.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_read_channel #(
    // data width of the bus
    parameter AHB_W = 32,
    // words of the FIFO, at least 2
    parameter FIFO_DEPTH = 16,
    // words of the longest burst: 1, 2, 4, 8 or 16, at most half the FIFO
    parameter MAX_BURST = 8,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1
) (
    // clock, synchronous reset, flush; run = 0 outputs no words; issue no more bursts
    input  wire                      clk,
    input  wire                      rst,
    input  wire                      flush,
    input  wire                      run,
    input  wire                      failed,
    // the channel has an active request; requests a burst for the next cycle; burst accepted, its words -
    // 1
    input  wire                      live,
    output wire                      next,
    input  wire                      take,
    input  wire [               3:0] take_less,
    // words from the distributor
    input  wire                      push,
    input  wire [`DMA_WORD_BITS-1:0] push_word,
    // stream to the consumer
    output wire                      out_valid,
    input  wire                      out_ready,
    output wire [    `BEAT_BITS-1:0] out_beat,
    // no room for another burst
    output wire                      full
);

  localparam NW = $clog2(FIFO_DEPTH + 1);
  localparam FULL_I = FIFO_DEPTH - MAX_BURST;
  localparam [NW-1:0] FULL_C = FULL_I[NW-1:0];

  // -------------------------------------------------------------------------------------------
  // credits
  // -------------------------------------------------------------------------------------------
  reg  [  NW-1:0] used;
  wire            pop = out_valid && out_ready;
  // words added by a burst, less one; without a burst: -1
  wire [NW+3 : 0] more = {{NW{!take}}, take_less | {4{!take}}};
  wire [    NW:0] sum = {used, 1'b1} + {more[NW-1:0], !pop};

  always @(posedge clk) begin
    if (rst || flush) begin
      used <= {NW{1'b0}};
    end else begin
      used <= sum[NW:1];
    end
  end

  wire unused = &{1'b0, more, sum[0]};

  assign next = live && !take && used <= FULL_C && !failed;

  // -------------------------------------------------------------------------------------------
  // FIFO
  // -------------------------------------------------------------------------------------------
  wire                      f_valid;
  wire                      f_ready_unused;
  wire [            NW-1:0] f_count;
  wire [`DMA_WORD_BITS-1:0] word;

  assign out_valid = f_valid && run;
  assign full = f_count > FULL_C;
  assign out_beat[`BEAT_DATA] = word[`DMA_WORD_DATA];
  assign out_beat[`BEAT_OFF] = word[`DMA_WORD_OFF];
  assign out_beat[`BEAT_CNT] = {1'b0, word[`DMA_WORD_LESS]} + 1'b1;

  generate
    if (FIFO_DEPTH > 32) begin : g_block
      // a block RAM, whose words become visible a cycle later: a word of 32 bits fits one of 36
      fifo_ram #(
          .WIDTH(`DMA_WORD_BITS),
          .DEPTH(FIFO_DEPTH)
      ) u_fifo (
          .clk      (clk),
          .rst      (rst),
          .flush    (flush),
          .in_valid (push),
          .in_ready (f_ready_unused),
          .in_data  (push_word),
          .out_valid(f_valid),
          .out_ready(out_ready && run),
          .out_data (word),
          .count    (f_count)
      );
    end else begin : g_lut
      fifo_sync #(
          .WIDTH(`DMA_WORD_BITS),
          .DEPTH(FIFO_DEPTH)
      ) u_fifo (
          .clk      (clk),
          .rst      (rst),
          .flush    (flush),
          .in_valid (push),
          .in_ready (f_ready_unused),
          .in_data  (push_word),
          .out_valid(f_valid),
          .out_ready(out_ready && run),
          .out_data (word),
          .count    (f_count)
      );
    end
  endgenerate

endmodule

`resetall
