// SPDX-License-Identifier: Apache-2.0
//
// layer_steps: the table of the computations and checks of a layer, one step per cycle.
//
// How it works: a row of the table is a step: left and right operand, operation, destination in layer_alu's
// register file and among the other results, checks (layer_steps.vh). A one-hot bit moves from row to row,
// skipping those that a layer does not need; the step of its row is in registers. The product of a
// multiplication is valid one cycle late: the next row still reads the previous product, and where no other
// row fits there, the row that needs the product waits. Division by nine is a multiplication by its
// reciprocal, exact for the values that occur; a vector of up to 2 MiB is divided in two parts. A map
// occupies whole rows from its address on; its channel groups are contiguous or spaced by the rows in words
// 7 and 8. The rows of a first layer's input are the location of the inference's pixels. Checks are
// collected by kind, so the order of the rows does not affect the code.
// Handshake: the rows before LATE run as soon as begun is high (words 0 to 4 have arrived), the others with
// full. over is held until clear.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "layer_steps.vh"

module layer_steps (
    // clock, synchronous reset: drop this layer; words 0 to 4 have arrived, all have
    input  wire                          clk,
    input  wire                          clear,
    input  wire                          begun,
    input  wire                          full,
    // the layer: MODE_*, depthwise, second map, four planes per channel, kept weights, pooling task
    input  wire [                   1:0] mode,
    input  wire                          dw,
    input  wire                          two,
    input  wire                          out32,
    input  wire                          kept,
    input  wire                          pools,
    // windows of a pooling task: columns, after the lines; the previous row was a multiplication; repeat
    // the row
    input  wire                          side,
    input  wire                          multiplies,
    input  wire                          again,
    // a step executes: its operands, operation, results, checks; all are done
    output wire                          run,
    output wire [`STEP_OPERAND_BITS-1:0] left,
    output wire [`STEP_OPERAND_BITS-1:0] right,
    output wire [   `STEP_WHAT_BITS-1:0] what,
    output wire [`STEP_OPERAND_BITS-1:0] target,
    output wire [ `STEP_RESULT_BITS-1:0] result,
    output wire [  `STEP_CHECK_BITS-1:0] check,
    output wire                          over
);

  wire chan = mode == `MODE_CHAN;
  wire fc = mode == `MODE_FC;
  wire in_order = mode == `MODE_DWROW;

  localparam LATE = 15, END = 77;
  localparam BITS = 3 * `STEP_OPERAND_BITS + `STEP_WHAT_BITS + `STEP_RESULT_BITS + `STEP_CHECK_BITS;
  reg [END:0] at;  // the current row, one-hot
  // operands that depend on the layer: for the steps; input channels weighted by an output channel
  wire [`STEP_OPERAND_BITS-1:0] nines = chan ? `T_QUOTIENT : `NO_OPERAND;
  wire [`STEP_OPERAND_BITS-1:0] all = (chan || in_order) ? `RIGHT_ONE : `RIGHT_C;
  wire [`STEP_OPERAND_BITS-1:0] weighed = (dw || fc) ? `RIGHT_ONE : `RIGHT_C;
  // ... groups, steps of each, rows for all of them; sizes of a window's map
  wire [`STEP_OPERAND_BITS-1:0] parts = fc ? `LEFT_O : `T_QUOTIENT;
  wire [`STEP_OPERAND_BITS-1:0] each = dw ? `RIGHT_ONE : `RIGHT_S;
  wire [`STEP_OPERAND_BITS-1:0] rows = fc ? `LEFT_PACKED : `LEFT_P;
  wire columns = side || at[76];
  wire [`STEP_OPERAND_BITS-1:0] size = columns ? `LEFT_W : `LEFT_H;
  wire [`STEP_OPERAND_BITS-1:0] windows = columns ? `LEFT_OW : `LEFT_OH;

  // ---- the next row, skipping those that are not needed
  reg [END:0] next;
  always @* begin
    next = {at[END-1:0], 1'b0};
    if (at[15] && !out32) {next[17], next[16]} = 2'b10;
    if (at[17] && !out32) {next[19], next[18]} = 2'b10;
    if (at[21] && !out32) {next[23], next[22]} = 2'b10;
    if (at[23] && !two) {next[25], next[24]} = 2'b10;
    if (at[28] && !two) {next[32], next[31], next[29]} = {!in_order, in_order, 1'b0};
    if (at[30] && !in_order) {next[32], next[31]} = 2'b10;
    if (at[32] && !in_order) {next[34], next[33]} = 2'b10;
    if (at[35] && !two) {next[39], next[36]} = 2'b10;
    if (at[40] && pools) {next[71], next[41]} = 2'b10;
    if (at[43] && !fc) {next[45], next[44]} = 2'b10;
    if (at[53] && !kept) {next[55], next[54]} = 2'b10;
    if (at[55] && !kept) {next[67], next[57], next[56]} = {!fc, fc, 1'b0};
    if (at[56] && !fc) {next[67], next[57]} = 2'b10;
    if (at[70]) {next[END], next[71]} = 2'b10;
    if (at[76] && !side) {next[END], next[71]} = 2'b01;
  end

  // ---- the table: the next row, in columns of one bit; the end has none
  localparam [BITS-1:0] FIRST = {`LEFT_H, `RIGHT_C, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
  reg [BITS-1:0] step, coming;
  assign {left, right, what, target, result, check} = step;
  always @* begin
    coming = {BITS{1'b0}};
    // bytes of the input map, behind FIRST; a ninth of the channels
    if (next[1])
      coming = coming | {`LEFT_C2, `RIGHT_NINTH_2, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[2]) coming = coming | {`LEFT_W, `RIGHT_P, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[3]) coming = coming | {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_QUOTIENT, `TO_REM, `NO_CHECK};
    // channel groups of the input less one
    if (next[4])
      coming = coming | {`LEFT_C2, `RIGHT_IN_PITCH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[5]) coming = coming | {`LEFT_P, `NO_OPERAND, `ADD, `T_INB, `TO_INB, `NO_CHECK};
    // groups of output channels
    if (next[6])
      coming = coming | {`LEFT_O2, `RIGHT_BANKS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[7])
      coming = coming | {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_IN_GROUPS, `NO_RESULT, `NO_CHECK};
    // reduction steps: ceil(C / 9), C, or one; rows that must be in the weight buffer
    if (next[8]) coming = coming | {nines, all, `ADD, `T_BLOCK, `TO_S, `CHECK_ROOM};
    // channel groups of the output less one
    if (next[9])
      coming = coming | {`LEFT_O2, `RIGHT_OUT_PITCH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[10]) coming = coming | {`LEFT_HIGH, `RIGHT_ONE, `ADD, `T_QUOTIENT, `TO_G, `NO_CHECK};
    // rows of a channel group
    if (next[11]) coming = coming | {`LEFT_H, `RIGHT_IRL, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[12])
      coming = coming | {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_OUT_GROUPS, `NO_RESULT, `NO_CHECK};
    if (next[13])
      coming = coming | {`LEFT_OH, `RIGHT_ORL, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[14]) coming = coming | {`LEFT_P, `NO_OPERAND, `ADD, `T_OWN, `NO_RESULT, `NO_CHECK};
    // all words have arrived from here on; rows of all planes of a channel
    if (next[15])
      coming = coming | {`LEFT_P, `RIGHT_OCS, `GT, `T_OUT_OWN, `TO_OCS, `CHECK_NEAR_OUT};
    if (next[16])
      coming = coming | {`LEFT_P, `RIGHT_PLANES, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    // rows of the input and of the output; the row after the input, the second map, the output
    if (next[17]) coming = coming | {`T_OWN, `RIGHT_ICS, `GT, `NO_OPERAND, `TO_ICS, `CHECK_NEAR_IN};
    if (next[18]) coming = coming | {`LEFT_P, `NO_OPERAND, `ADD, `T_OUT_OWN, `NO_RESULT, `NO_CHECK};
    if (next[19])
      coming = coming | {`T_IN_GROUPS, `RIGHT_ICS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[20])
      coming = coming | {`T_OUT_GROUPS, `RIGHT_OCS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[21]) coming = coming | {`LEFT_P, `T_OWN, `ADD, `T_ROWS, `NO_RESULT, `CHECK_SPAN};
    if (next[22])
      coming = coming | {`LEFT_P, `RIGHT_PLANES, `MUL, `NO_OPERAND, `NO_RESULT, `CHECK_SPAN};
    if (next[23]) coming = coming | {`LEFT_SRC, `T_ROWS, `ADD, `T_IN_END, `NO_RESULT, `CHECK_LIMIT};
    if (next[24])
      coming = coming | {`LEFT_SRC2, `T_ROWS, `ADD, `T_IN_END2, `NO_RESULT, `CHECK_LIMIT};
    if (next[25]) coming = coming | {`LEFT_P, `T_OUT_OWN, `ADD, `T_ROWS, `NO_RESULT, `CHECK_SPAN};
    if (next[26]) coming = coming | {`LEFT_DST, `T_ROWS, `ADD, `T_STOP, `NO_RESULT, `CHECK_LIMIT};
    // does the input overlap the pixels? a first layer sets their location
    if (next[27]) coming = coming | {`LEFT_SRC, `T_HI, `GE, `T_LO, `TO_BELOW, `NO_CHECK};
    if (next[28]) coming = coming | {`T_IN_END, `T_LO, `GT, `T_HI, `TO_TOUCH, `NO_CHECK};
    if (next[29]) coming = coming | {`LEFT_SRC2, `T_HI, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
    if (next[30]) coming = coming | {`T_IN_END2, `T_LO, `GT, `NO_OPERAND, `TO_TOUCH, `NO_CHECK};
    // the output may overlap an input that begins no earlier, if the output's groups are no farther apart
    if (next[31])
      coming = coming | {`LEFT_ONE, `RIGHT_OCS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    // does the output overlap the input, the second map, the pixels?
    if (next[32]) coming = coming | {`LEFT_DST, `T_IN_END, `GE, `T_DST, `TO_BELOW, `NO_CHECK};
    if (next[33]) coming = coming | {`LEFT_P, `RIGHT_ICS, `GT, `NO_OPERAND, `TO_BEHIND, `NO_CHECK};
    if (next[34])
      coming = coming | {`LEFT_SRC, `T_STOP, `GE, `NO_OPERAND, `TO_BELOW_TOO, `NO_CHECK};
    if (next[35]) coming = coming | {`LEFT_SRC, `T_DST, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_MEET};
    if (next[36]) coming = coming | {`T_DST, `T_IN_END2, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
    if (next[37])
      coming = coming | {`LEFT_SRC2, `T_STOP, `GE, `NO_OPERAND, `TO_BELOW_TOO, `NO_CHECK};
    if (next[38]) coming = coming | {`LEFT_SRC2, `T_DST, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_MEET};
    if (next[39]) coming = coming | {`LEFT_DST, `T_HI, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
    if (next[40]) coming = coming | {`T_STOP, `T_LO, `GT, `NO_OPERAND, `TO_TOUCH, `NO_CHECK};
    // channels of the last load less one: at least one, and no more than in another load; bytes of an
    // output channel
    if (next[41])
      coming = coming | {`LEFT_LOADS, `RIGHT_COEF, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[42])
      coming = coming | {`LEFT_BYTES, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[43]) coming = coming | {`LEFT_O, `RIGHT_P, `SUB_1, `T_REST, `NO_RESULT, `CHECK_FEW};
    if (next[44]) coming = coming | {`T_INB, `RIGHT_P, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[45])
      coming = coming | {`T_REST, `RIGHT_COEF, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_OVER};
    if (next[46]) coming = coming | {`LEFT_P, `NO_OPERAND, `ADD, `T_UNIT, `NO_RESULT, `CHECK_HUGE};
    // bytes of a load, of the last load; constant term, modulo 2^36
    if (next[47])
      coming = coming | {`T_UNIT, `RIGHT_COEF, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[48]) coming = coming | {`T_UNIT, `T_REST, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[49])
      coming = coming | {`LEFT_P, `RIGHT_PSIZE, `GT, `NO_OPERAND, `TO_WLEN, `CHECK_LONG};
    if (next[50]) coming = coming | {`LEFT_TERM, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[51]) coming = coming | {`LEFT_P, `T_UNIT, `ADD, `NO_OPERAND, `TO_WLAST, `NO_CHECK};
    if (next[52])
      coming = coming | {`LEFT_TERM_HIGH, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[53])
      coming = coming | {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_OUT_OWN, `TO_ADDC, `NO_CHECK};
    // kept weights: end address
    if (next[54])
      coming = coming | {`LEFT_LOADS, `RIGHT_PSIZE, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[55])
      coming = coming | {`LEFT_P, `T_OUT_OWN, `ADD, `NO_OPERAND, `TO_ADDC_HIGH, `NO_CHECK};
    if (next[56])
      coming = coming | {`NO_OPERAND, `NO_OPERAND, `ADD, `NO_OPERAND, `NO_RESULT, `CHECK_KEPT_END};
    // steps of a vector: ceil(C * H * W / 9), by the quotient and the remainder of C * H
    if (next[57]) coming = coming | {`LEFT_H, `RIGHT_C, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[58])
      coming = coming | {`LEFT_P, `NO_OPERAND, `ADD, `T_QUOTIENT, `NO_RESULT, `NO_CHECK};
    if (next[59])
      coming = coming | {`T_QUOTIENT, `RIGHT_NINTH_LONG, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[60])
      coming = coming | {`LEFT_NINTH, `T_QUOTIENT, `GE, `T_IN_GROUPS, `TO_REM_FC, `NO_CHECK};
    if (next[61]) coming = coming | {`LEFT_W, `RIGHT_REM, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[62]) coming = coming | {`LEFT_P, `RIGHT_EIGHT, `ADD, `T_OWN, `NO_RESULT, `NO_CHECK};
    if (next[63])
      coming = coming | {`T_OWN, `RIGHT_NINTH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[64]) coming = coming | {`LEFT_HIGH, `T_OWN, `GE, `T_OUT_GROUPS, `TO_REM_FC, `NO_CHECK};
    if (next[65])
      coming = coming | {`LEFT_W, `T_IN_GROUPS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[66]) coming = coming | {`LEFT_P, `T_OUT_GROUPS, `ADD, `NO_OPERAND, `TO_S, `NO_CHECK};
    // rows of the weight buffer for all weights, packed for a vector; groups of a block, plus one group
    // of the next one
    if (next[67]) coming = coming | {parts, each, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[68]) coming = coming | {`T_BLOCK, `RIGHT_S, `ADD, `T_BLOCK, `NO_RESULT, `NO_CHECK};
    if (next[69])
      coming = coming | {rows, `RIGHT_PART, `ADD, `NO_OPERAND, `TO_WROWS, `CHECK_ROOM_DW};
    if (next[70]) coming = coming | {`T_BLOCK, `RIGHT_S, `ADD, `T_BLOCK, `TO_B, `NO_CHECK};
    // windows of a pooling task, lines, then columns: the last one fits, one more does not
    if (next[71])
      coming = coming | {windows, `RIGHT_STRIDE, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    if (next[72]) coming = coming | {size, `RIGHT_PAD, `ADD, `T_ROWS, `NO_RESULT, `NO_CHECK};
    if (next[73])
      coming = coming | {`T_ROWS, `RIGHT_KERNEL, `SUB_1, `T_ROWS, `NO_RESULT, `CHECK_WINDOW};
    if (next[74]) coming = coming | {`LEFT_P, `T_ROWS, `GT, `NO_OPERAND, `NO_RESULT, `CHECK_NEXT};
    if (next[75]) coming = coming | {`LEFT_P, `RIGHT_STRIDE, `SUB, `T_STOP, `NO_RESULT, `NO_CHECK};
    if (next[76]) coming = coming | {`T_STOP, `T_ROWS, `GT, `NO_OPERAND, `TO_SIDE, `CHECK_LAST};
  end

  wire waits = multiplies && (at[58] || at[60] || at[62] || at[64] || at[66]);
  assign run  = begun && (full || !at[LATE]) && !at[END] && !waits;
  assign over = at[END] && full;
  always @(posedge clk) begin
    if (clear) begin
      at   <= {{END{1'b0}}, 1'b1};
      step <= FIRST;
    end else begin
      at   <= (run && !again) ? next : at;
      step <= (run && !again) ? coming : step;
    end
  end

endmodule

`resetall
