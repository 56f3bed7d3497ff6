// SPDX-License-Identifier: Apache-2.0
//
// dma_distributor: the data distributor of the DMAC (claim C4 of docs/patent.md section 5).
//
// Routes every word that the AHB master has read to the FIFO of its channel, by the tag that
// travelled with the burst, and works out which bytes of the word belong to the request: all of
// them, except in the first word of a request (from the offset) and in its last (up to the end).
// Combinational. The FIFOs have room for everything that was requested, so nothing waits.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_distributor #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1,
    parameter TAG_W = `DMA_TAG_BITS
) (
    // finished beats of the master
    input  wire                  rsp_valid,
    input  wire                  rsp_write,
    input  wire                  rsp_first,
    input  wire                  rsp_last,
    input  wire [     TAG_W-1:0] rsp_tag,
    input  wire [     AHB_W-1:0] rsp_data,
    // one strobe per read channel: 0 list, 1 bias, 2 weight, 3 pixel
    output wire [           3:0] push,
    // the word: its valid bytes, and whether it is the last of its request
    output wire [`BEAT_BITS-1:0] push_beat,
    // a write request is finished
    output wire                  store_done
);

  localparam BW = AHB_W / 8;
  localparam [CW-1:0] BW_C = BW[CW-1:0];

  wire [   2:0] chan = rsp_tag[`DMA_TAG_CHAN];
  wire          req_first = rsp_tag[`DMA_TAG_FIRST];
  wire          req_last = rsp_tag[`DMA_TAG_LAST];
  wire [OW-1:0] off = rsp_tag[`DMA_TAG_OFF];
  wire [CW-1:0] stop = rsp_tag[`DMA_TAG_STOP];

  wire          at_start = req_first && rsp_first;
  wire          at_end = req_last && rsp_last;
  wire          read = rsp_valid && !rsp_write;
  wire [OW-1:0] push_off = at_start ? off : {OW{1'b0}};
  wire [CW-1:0] from = {1'b0, push_off};
  wire [CW-1:0] upto = at_end ? stop : BW_C;

  assign push = {
    read && chan == 3'd3, read && chan == 3'd2, read && chan == 3'd1, read && chan == 3'd0
  };
  assign push_beat[`BEAT_DATA] = rsp_data;
  assign push_beat[`BEAT_OFF] = push_off;
  assign push_beat[`BEAT_CNT] = upto - from;
  assign push_beat[`BEAT_LAST] = at_end;
  assign store_done = rsp_valid && rsp_write && at_end;

  // whose words they are matters only when one fails
  wire unused = &{1'b0, rsp_tag[`DMA_TAG_OWNER]};

endmodule

`resetall
