// SPDX-License-Identifier: Apache-2.0
//
// dma_wb_full: the AND circuit of the DMAC (patent claim 4, step 004).
//
// WB_FIFO_FULL = weight FIFO full AND bias FIFO full; full means: no room for another burst of
// that channel. While it is 0 the read controller goes on reading weights and biases; each FIFO
// has back-pressure of its own besides. Combinational, no handshake.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dma_wb_full (
  // full flags of the two FIFOs
  input  wire  weight_full,
  input  wire  bias_full,
  // both are full
  output wire  wb_fifo_full
);

  assign wb_fifo_full = weight_full && bias_full;

endmodule

`resetall
