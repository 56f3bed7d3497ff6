// SPDX-License-Identifier: Apache-2.0
//
// perf: counters that say where the cycles went.
//
// How it works: every busy cycle is exactly one of: an issue to the array, or a wait for input,
// weights, output, the bus, or control. So the issues and the five stalls add up to the total.
// A wait for weights while the bus is reading counts as bus. Multiplications are counted column by
// column as they pass through the array. clear empties all counters.
// Handshake: none.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module perf (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    input  wire             clear,
    // device works; the array was issued work
    input  wire             busy,
    input  wire             issued,
    // causes, the first that is high counts: tile buffer empty, weights or parameters missing,
    // results not taken or draining, data on the way in or out; otherwise control
    input  wire             wait_input,
    input  wire             wait_weight,
    input  wire             wait_output,
    input  wire             wait_bus,
    input  wire             bus_reading,
    // multiplications of each column: issued, gated
    input  wire [  9*8-1:0] macs_issued,
    input  wire [  9*8-1:0] macs_gated,
    // events
    input  wire             layer_done,
    input  wire             inf_done,
    input  wire             inf_kept,
    input  wire             read_beat,
    input  wire             write_beat,
    // 14 counters of 64 bits, in the order of the register map
    output reg  [14*64-1:0] flat
);

  reg [10:0] sum_issued;
  reg [10:0] sum_gated;
  integer t;
  always @* begin
    sum_issued = 11'd0;
    sum_gated  = 11'd0;
    for (t = 0; t < 9; t = t + 1) begin
      sum_issued = sum_issued + {3'd0, macs_issued[8*t+:8]};
      sum_gated  = sum_gated + {3'd0, macs_gated[8*t+:8]};
    end
  end

  wire stall = busy && !issued;
  wire c_input = stall && wait_input;
  wire c_weight = stall && !wait_input && wait_weight && !bus_reading;
  wire c_output = stall && !wait_input && !wait_weight && wait_output;
  wire c_bus = stall && !wait_input && ((wait_weight && bus_reading) ||
      (!wait_weight && !wait_output && wait_bus));
  wire c_control = stall && !wait_input && !wait_weight && !wait_output && !wait_bus;

  wire [14*11-1:0] more = {
    {10'd0, inf_kept},
    {10'd0, write_beat},
    {10'd0, read_beat},
    {10'd0, inf_done},
    {10'd0, layer_done},
    {10'd0, c_control},
    {10'd0, c_bus},
    {10'd0, c_output},
    {10'd0, c_input},
    {10'd0, c_weight},
    sum_gated,
    sum_issued,
    {10'd0, busy && issued},
    {10'd0, busy}
  };

  integer i;
  always @(posedge clk) begin
    if (rst || clear) flat <= {14 * 64{1'b0}};
    else begin
      for (i = 0; i < 14; i = i + 1) flat[64*i+:64] <= flat[64*i+:64] + {53'd0, more[11*i+:11]};
    end
  end

endmodule

`resetall
