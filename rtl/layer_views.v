// SPDX-License-Identifier: Apache-2.0
//
// layer_views: the descriptor of a layer as the sequencer, the MAC stage and the post lanes see it.
//
// How it works: an inference that begins with pooling tasks begins, for the weight rows, with its first
// other layer, so the sequencer sees the first flag on that layer. Operands and sums reach the MAC stage
// and the lanes many cycles after the start of their layer, when its descriptor has long been stable:
// registers remove the queue of layers from their paths.
// Handshake: start is a pulse; desc is stable from it until the last sum of the layer has left the
// lanes. array_desc is combinational; all other outputs follow desc by one cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_views (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer, of a side task or of the array
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    // for the sequencer; for the MAC stage
    output wire [`DESC_BITS-1:0] array_desc,
    output reg  [`DESC_BITS-1:0] late_desc,
    // for every post lane: all kernels use one bank, a bank of their channel; depthwise; log2 of the slot
    // width; signed bytes, 32-bit sums
    output reg                   one_bank,
    output reg                   by_chan,
    output reg                   by_lane,
    output reg  [           2:0] swl,
    output reg                   signed_out,
    output reg                   out32
);

  wire dw = desc[`DESC_DW];
  wire taps_mode = desc[`DESC_MODE] == `MODE_TAPS;
  wire fc_mode = desc[`DESC_MODE] == `MODE_FC;
  wire dwrow_mode = desc[`DESC_MODE] == `MODE_DWROW;

  reg  pooled_first;
  always @(posedge clk) begin
    if (rst) pooled_first <= 1'b0;
    else if (start) pooled_first <= desc[`DESC_POOLS] && (pooled_first || desc[`DESC_FIRST]);
  end
  assign array_desc = desc | {{(`DESC_BITS - 1) {1'b0}}, pooled_first} << `DESC_FIRST;

  always @(posedge clk) begin
    late_desc  <= desc;
    one_bank   <= fc_mode || (taps_mode && dw) || (dwrow_mode && desc[`DESC_IP] == 2'd2);
    by_chan    <= dwrow_mode;
    by_lane    <= dw;
    swl        <= dwrow_mode ? 3'd4 + {1'b0, desc[`DESC_IP]} : desc[`DESC_SWL];
    signed_out <= desc[`DESC_SOUT];
    out32      <= desc[`DESC_OUT32];
  end

endmodule

`resetall
