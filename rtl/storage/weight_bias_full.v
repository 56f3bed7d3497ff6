// SPDX-License-Identifier: Apache-2.0
//
// weight_bias_full: the AND circuit of the DMAC (docs/patent.md section 2, step 004).
//
// WB_FIFO_FULL = weight FIFO full AND bias FIFO full; full means no room for another burst of that
// channel. While it is 0 the read controller continues to read weights and biases; each FIFO also has
// back-pressure of its own. Combinational, no handshake.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module weight_bias_full (
    // full flags of the two FIFOs
    input  wire weight_full,
    input  wire bias_full,
    // both are full
    output wire weight_bias_full
);

  assign weight_bias_full = weight_full && bias_full;

endmodule

`resetall
