// SPDX-License-Identifier: Apache-2.0
//
// desc_ahead: descriptors of decoded layers that wait for a consumer.
//
// How it works: a FIFO in a memory. Without layers (LAYERS = 0) the ports are connected, and the consumer
// accepts a descriptor in the cycle in which it is offered.
// Handshake: valid/ready on both sides; a descriptor is visible two cycles after it enters an empty FIFO. rst
// drops everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module desc_ahead #(
    // bits of a descriptor
    parameter WIDTH  = 32,
    // descriptors that wait: 0, or at least 2
    parameter LAYERS = 0
) (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    // decoded layers
    input  wire             in_valid,
    output wire             in_ready,
    input  wire [WIDTH-1:0] in_data,
    // the consumer
    output wire             out_valid,
    input  wire             out_ready,
    output wire [WIDTH-1:0] out_data,
    // none waits
    output wire             empty
);

  generate
    if (LAYERS == 0) begin : g_none
      assign in_ready  = out_ready;
      assign out_valid = in_valid;
      assign out_data  = in_data;
      assign empty     = 1'b1;
      wire unused = &{1'b0, clk, rst};
    end else begin : g_memory
      localparam COUNT_W = $clog2(LAYERS + 1);
      wire [COUNT_W-1:0] count;
      fifo_ram #(
          .WIDTH(WIDTH),
          .DEPTH(LAYERS)
      ) u_fifo (
          .clk      (clk),
          .rst      (rst),
          .flush    (1'b0),
          .in_valid (in_valid),
          .in_ready (in_ready),
          .in_data  (in_data),
          .out_valid(out_valid),
          .out_ready(out_ready),
          .out_data (out_data),
          .count    (count)
      );
      assign empty = count == {COUNT_W{1'b0}};
    end
  endgenerate

`ifdef FORMAL_desc_ahead
  `include "desc_ahead_props.vh"
`endif

endmodule

`resetall
