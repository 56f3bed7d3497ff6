// SPDX-License-Identifier: Apache-2.0
//
// pool_check: the window of a pooling task in the layer argument, and whether it is legal.
//
// How it works: word 6 is stored. layer_steps checks the sizes against the window, first for lines, then
// for columns: side selects the direction. Padding is smaller than the window.
// Handshake: take strobes with the word; the outputs are stable from the next cycle on.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module pool_check (
    // clock
    input  wire                   clk,
    // word 6 of a layer argument
    input  wire                   take,
    input  wire [           63:0] word,
    // the layer is a pooling task; its window; unknown kind or illegal window
    output wire                   pools,
    output reg  [`PTASK_BITS-1:0] window,
    output wire                   bad_window,
    // one direction (1: columns): padding on both sides, window less one, stride
    input  wire                   side,
    output wire [            3:0] pad,
    output wire [            3:0] kernel_m1,
    output wire [            4:0] stride
);

  reg [2:0] bottom, right;
  always @(posedge clk) begin
    if (take) begin
      window[`PTASK_KIND] <= word[`ARG_POOL_TASK];
      window[`PTASK_ALL] <= word[`ARG_POOL_ALL];
      window[`PTASK_KH_M1] <= word[`ARG_POOL_KH_M1];
      window[`PTASK_KW_M1] <= word[`ARG_POOL_KW_M1];
      window[`PTASK_SY_M1] <= word[`ARG_POOL_SY_M1];
      window[`PTASK_SX_M1] <= word[`ARG_POOL_SX_M1];
      window[`PTASK_TOP] <= word[`ARG_POOL_TOP];
      window[`PTASK_LEFT] <= word[`ARG_POOL_LEFT];
      {bottom, right} <= {word[`ARG_POOL_BOTTOM], word[`ARG_POOL_RIGHT]};
    end
  end

  wire [2:0] kind = window[`PTASK_KIND];
  wire all = window[`PTASK_ALL];
  wire [3:0] kh_m1 = window[`PTASK_KH_M1];
  wire [3:0] kw_m1 = window[`PTASK_KW_M1];
  wire [3:0] sy_m1 = window[`PTASK_SY_M1];
  wire [3:0] sx_m1 = window[`PTASK_SX_M1];
  wire [2:0] top = window[`PTASK_TOP];
  wire [2:0] left = window[`PTASK_LEFT];
  wire plain = {kh_m1, kw_m1, sy_m1, sx_m1, top, left, bottom, right} == 28'd0;
  wire pad_y = {1'b0, top} > kh_m1 || {1'b0, bottom} > kh_m1;
  wire pad_x = {1'b0, left} > kw_m1 || {1'b0, right} > kw_m1;
  assign pools = kind != 3'd0;
  assign bad_window = kind > 3'd4 || (all && !plain) || pad_y || pad_x;

  assign pad = side ? {1'b0, left} + {1'b0, right} : {1'b0, top} + {1'b0, bottom};
  assign kernel_m1 = side ? kw_m1 : kh_m1;
  assign stride = {1'b0, side ? sx_m1 : sy_m1} + 5'd1;

  wire unused = &{1'b0, word};

endmodule

`resetall
