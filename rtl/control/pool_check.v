// SPDX-License-Identifier: Apache-2.0
//
// pool_check: the window of a pooling task, as it is in the layer argument, and whether it can be.
//
// How it works: word 6 is kept. The map and its padding have room for so many steps between the first
// window and the last one: the lines, less those of a window, are at least the steps before the last
// window and less than one more. So nothing is divided. Everything is in registers, two steps behind
// the words; the words of the sizes and of the window come long before a layer's last one.
// Handshake: take with the word; the outputs are stable from the third cycle after it on.
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
    // sizes of the map and of the output
    input  wire [           10:0] n_w,
    input  wire [            9:0] n_h,
    input  wire [           10:0] n_ow,
    input  wire [            9:0] n_oh,
    // it is a pooling task; its window
    output wire                   pools,
    output reg  [`PTASK_BITS-1:0] window,
    // no such kind, or a window that cannot be; sizes that do not follow from it
    output reg                    bad_window,
    output reg                    bad_size
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

  // a size times a step of 1 to 16; adders, for a multiplier would take one from the array
  function [14:0] times(input [10:0] n, input [3:0] step_m1);
    times = {4'd0, n} + (step_m1[0] ? {4'd0, n} : 15'd0) + (step_m1[1] ? {3'd0, n, 1'b0} : 15'd0) +
        (step_m1[2] ? {2'd0, n, 2'b00} : 15'd0) + (step_m1[3] ? {1'b0, n, 3'b000} : 15'd0);
  endfunction

  // room for steps, negative where not even one window fits; steps to the last window
  reg [11:0] room_y, room_x;
  reg [14:0] last_y, last_x;
  // one more step would fit, the last one does not
  wire short_y = room_y[11] || {3'd0, room_y} < last_y;
  wire short_x = room_x[11] || {3'd0, room_x} < last_x;
  wire more_y = {4'd0, room_y} > {1'b0, last_y} + {12'd0, sy_m1};
  wire more_x = {4'd0, room_x} > {1'b0, last_x} + {12'd0, sx_m1};
  wire one = n_ow == 11'd1 && n_oh == 10'd1;
  always @(posedge clk) begin
    room_y <= {2'd0, n_h} + {9'd0, top} + {9'd0, bottom} - {8'd0, kh_m1} - 12'd1;
    room_x <= {1'b0, n_w} + {9'd0, left} + {9'd0, right} - {8'd0, kw_m1} - 12'd1;
    last_y <= times({1'b0, n_oh} - 11'd1, sy_m1);
    last_x <= times(n_ow - 11'd1, sx_m1);
    bad_size <= all ? !one : (short_y || short_x || more_y || more_x);
    bad_window <= kind > 3'd4 || (all && !plain) || pad_y || pad_x;
  end

  wire unused = &{1'b0, word};

endmodule

`resetall
