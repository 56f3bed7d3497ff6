// SPDX-License-Identifier: Apache-2.0
//
// dma_distributor: the data distributor of the DMAC (claim C4 of docs/patent.md section 5).
//
// How it works: every word that the AHB master has read goes to the FIFO of its channel, selected by the
// tag returned with the beat. All its bytes are valid, except in the first word of a command (from the
// tag's offset) and in its last (up to the tag's top): both are bounds of the request, or the whole word.
// Combinational.
// Handshake: none. The FIFOs have room for everything requested, so nothing stalls.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_distributor #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter TAG_W = `DMA_TAG_BITS
) (
    // finished beats of the master
    input  wire                      rsp_valid,
    input  wire                      rsp_write,
    input  wire                      rsp_first,
    input  wire                      rsp_last,
    input  wire [         TAG_W-1:0] rsp_tag,
    input  wire [         AHB_W-1:0] rsp_data,
    // one strobe per read channel: 0 list, 1 bias, 2 weight, 3 pixel
    output wire [               3:0] push,
    // the word and its valid bytes
    output wire [`DMA_WORD_BITS-1:0] push_word,
    // a write request has completed
    output wire                      store_done
);

  wire [   2:0] chan = rsp_tag[`DMA_TAG_CHAN];
  wire          read = rsp_valid && !rsp_write;
  wire [OW-1:0] from = rsp_tag[`DMA_TAG_OFF] & {OW{rsp_first}};
  wire [OW-1:0] upto = rsp_tag[`DMA_TAG_TOP] | {OW{!rsp_last}};

  assign push = {
    read && chan == 3'd3, read && chan == 3'd2, read && chan == 3'd1, read && chan == 3'd0
  };
  assign push_word[`DMA_WORD_DATA] = rsp_data;
  assign push_word[`DMA_WORD_OFF] = from;
  assign push_word[`DMA_WORD_LESS] = upto - from;
  assign store_done = rsp_valid && rsp_write && rsp_last && rsp_tag[`DMA_TAG_LAST];

  // the owner matters only when a transfer fails
  wire unused = &{1'b0, rsp_tag[`DMA_TAG_OWNER]};

endmodule

`resetall
