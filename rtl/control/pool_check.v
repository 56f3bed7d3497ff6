// SPDX-License-Identifier: Apache-2.0
//
// pool_check: the window of a pooling task, as it is in the layer argument, and whether it can be.
//
// How it works: word 6 is kept. The map and its padding have room for so many steps between the
// first window and the last one: the lines, less those of a window, are at least the steps before
// the last window and less than one more. So nothing is divided. Lines and pixels are checked one
// after the other by the same adders; the words of the sizes come before word 6, and enough words
// come behind it.
// Handshake: take with the word; the outputs are stable from the fourth cycle after it on.
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
  wire one = n_ow == 11'd1 && n_oh == 10'd1;
  assign pools = kind != 3'd0;

  // ---- one direction: lines in the first cycle behind the word, then pixels
  reg [1:0] turn;
  wire lines = turn[0];
  wire [10:0] size = lines ? {1'b0, n_h} : n_w;
  wire [10:0] made = (lines ? {1'b0, n_oh} : n_ow) - 11'd1;
  wire [2:0] ahead = lines ? top : left;
  wire [2:0] behind = lines ? bottom : right;
  wire [3:0] kernel_m1 = lines ? kh_m1 : kw_m1;
  wire [3:0] step_m1 = lines ? sy_m1 : sx_m1;

  // room for steps, negative where not even one window fits; steps to the last window
  reg [11:0] room;
  reg [14:0] last;
  reg [3:0] room_step_m1;
  // the last step does not fit, or one more would
  wire few = room[11] || {3'd0, room} < last;
  wire many = {4'd0, room} > {1'b0, last} + {12'd0, room_step_m1};
  reg bad_lines;
  always @(posedge clk) begin
    turn <= {turn[0], take};
    room <= {1'b0, size} + {9'd0, ahead} + {9'd0, behind} - {8'd0, kernel_m1} - 12'd1;
    // a size times a step of 1 to 16; adders, for a multiplier would take one from the array
    last <= {4'd0, made} + (step_m1[0] ? {4'd0, made} : 15'd0) +
        (step_m1[1] ? {3'd0, made, 1'b0} : 15'd0) + (step_m1[2] ? {2'd0, made, 2'b00} : 15'd0) +
        (step_m1[3] ? {1'b0, made, 3'b000} : 15'd0);
    room_step_m1 <= step_m1;
    bad_lines <= turn[1] ? few || many : bad_lines;
    bad_size <= all ? !one : (bad_lines || few || many);
    bad_window <= kind > 3'd4 || (all && !plain) || pad_y || pad_x;
  end

  wire unused = &{1'b0, word};

endmodule

`resetall
