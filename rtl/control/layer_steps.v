// SPDX-License-Identifier: Apache-2.0
//
// layer_steps: the table of what is computed of a layer, and checked, a step a cycle.
//
// How it works: a row of the table is a step: left and right operand, what is done with them, the
// register of layer_alu's file and the other results that it goes to, what is checked
// (layer_steps.vh). A bit walks from row to row, past those that a layer does not need. Division by
// nine is a multiplication by its reciprocal, exact for what comes; a vector of up to 2 MiB is divided
// in two parts. A map takes whole rows from its address on; its channel groups follow each other or
// lie as many rows apart as words 7 and 8 say. The rows of a first layer's input are the place of the
// inference's pixels. Checks are collected by their kind, so the order of the rows does not decide
// about the code.
// Handshake: the rows in front of LATE run as soon as begun is high (words 0 to 4 are there), the
// others with full. over stays until clear.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "layer_steps.vh"

module layer_steps (
    // clock, synchronous reset: forget this layer; words 0 to 4 are there, all are
    input  wire                          clk,
    input  wire                          clear,
    input  wire                          begun,
    input  wire                          full,
    // the layer: MODE_*, depthwise, second map, four planes a channel, kept weights, pooling task
    input  wire [                   1:0] mode,
    input  wire                          dw,
    input  wire                          two,
    input  wire                          out32,
    input  wire                          kept,
    input  wire                          pools,
    // windows of a pooling task: columns, after the lines; the row is done once more
    input  wire                          side,
    input  wire                          again,
    // a step is done: its operands, what, results, checks; all are done
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
  // operands that depend on the layer: of steps; channels whose weights an output channel has
  wire [`STEP_OPERAND_BITS-1:0] nines = chan ? `T_QUOTIENT : `NO_OPERAND;
  wire [`STEP_OPERAND_BITS-1:0] all = (chan || in_order) ? `RIGHT_ONE : `RIGHT_C;
  wire [`STEP_OPERAND_BITS-1:0] weighed = (dw || fc) ? `RIGHT_ONE : `RIGHT_C;
  // ... groups, steps of each, rows for all of them; sizes of a window's map
  wire [`STEP_OPERAND_BITS-1:0] parts = fc ? `LEFT_O : `T_QUOTIENT;
  wire [`STEP_OPERAND_BITS-1:0] each = dw ? `RIGHT_ONE : `RIGHT_S;
  wire [`STEP_OPERAND_BITS-1:0] rows = fc ? `LEFT_PACKED : `LEFT_P;
  wire [`STEP_OPERAND_BITS-1:0] size = side ? `LEFT_W : `LEFT_H;
  wire [`STEP_OPERAND_BITS-1:0] windows = side ? `LEFT_OW : `LEFT_OH;

  // ---- the table
  localparam LATE = 15, END = 76;
  reg [END:0] at;  // the row, one of them
  reg [3 * `STEP_OPERAND_BITS + `STEP_WHAT_BITS + `STEP_RESULT_BITS + `STEP_CHECK_BITS - 1:0] step;
  assign {left, right, what, target, result, check} = step;
  always @* begin
    (* parallel_case *)
    case (1'b1)
      // bytes of the input map
      at[0]:   step = {`LEFT_H, `RIGHT_C, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[1]:   step = {`LEFT_W, `RIGHT_P, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[2]:   step = {`LEFT_P, `NO_OPERAND, `ADD, `T_INB, `TO_INB, `NO_CHECK};
      // reduction steps: ceil(C / 9), C, or one; rows that must be in the weight buffer
      at[3]:   step = {`LEFT_C2, `RIGHT_NINTH_2, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[4]:   step = {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_QUOTIENT, `TO_REM, `NO_CHECK};
      at[5]:   step = {nines, all, `ADD, `T_BLOCK, `TO_S, `CHECK_ROOM};
      // channel groups of the input less one; groups of output channels; ... of the output less one
      at[6]:   step = {`LEFT_C2, `RIGHT_IN_PITCH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[7]:   step = {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_IN_GROUPS, `NO_RESULT, `NO_CHECK};
      at[8]:   step = {`LEFT_O2, `RIGHT_BANKS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[9]:   step = {`LEFT_HIGH, `RIGHT_ONE, `ADD, `T_QUOTIENT, `TO_G, `NO_CHECK};
      at[10]:  step = {`LEFT_O2, `RIGHT_OUT_PITCH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[11]:  step = {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_OUT_GROUPS, `NO_RESULT, `NO_CHECK};
      // rows of a channel group
      at[12]:  step = {`LEFT_H, `RIGHT_IRL, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[13]:  step = {`LEFT_P, `NO_OPERAND, `ADD, `T_OWN, `NO_RESULT, `NO_CHECK};
      at[14]:  step = {`LEFT_OH, `RIGHT_ORL, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      // the last words are there; of all planes of a channel
      at[15]:  step = {`LEFT_P, `RIGHT_OCS, `GT, `T_OUT_OWN, `TO_OCS, `CHECK_NEAR_OUT};
      at[16]:  step = {`LEFT_P, `RIGHT_PLANES, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[17]:  step = {`LEFT_P, `NO_OPERAND, `ADD, `T_OUT_OWN, `NO_RESULT, `NO_CHECK};
      // rows of the input; the row behind it, behind the second map
      at[18]:  step = {`T_OWN, `RIGHT_ICS, `GT, `NO_OPERAND, `TO_ICS, `CHECK_NEAR_IN};
      at[19]:  step = {`T_IN_GROUPS, `RIGHT_ICS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[20]:  step = {`LEFT_P, `T_OWN, `ADD, `T_ROWS, `NO_RESULT, `CHECK_SPAN};
      at[21]:  step = {`LEFT_SRC, `T_ROWS, `ADD, `T_IN_END, `NO_RESULT, `CHECK_LIMIT};
      at[22]:  step = {`LEFT_SRC2, `T_ROWS, `ADD, `T_IN_END2, `NO_RESULT, `CHECK_LIMIT};
      // does it meet the place of the pixels? a first layer sets it
      at[23]:  step = {`LEFT_SRC, `T_HI, `GE, `T_LO, `TO_BELOW, `NO_CHECK};
      at[24]:  step = {`T_IN_END, `T_LO, `GT, `T_HI, `TO_TOUCH, `NO_CHECK};
      at[25]:  step = {`LEFT_SRC2, `T_HI, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
      at[26]:  step = {`T_IN_END2, `T_LO, `GT, `NO_OPERAND, `TO_TOUCH, `NO_CHECK};
      // rows of the output, the row behind it
      at[27]:  step = {`T_OUT_GROUPS, `RIGHT_OCS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[28]:  step = {`LEFT_P, `RIGHT_PLANES, `MUL, `NO_OPERAND, `NO_RESULT, `CHECK_SPAN};
      at[29]:  step = {`LEFT_P, `T_OUT_OWN, `ADD, `T_ROWS, `NO_RESULT, `CHECK_SPAN};
      at[30]:  step = {`LEFT_DST, `T_ROWS, `ADD, `T_STOP, `NO_RESULT, `CHECK_LIMIT};
      // may it meet an input in front of it: its groups are no farther apart
      at[31]:  step = {`LEFT_ONE, `RIGHT_OCS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[32]:  step = {`LEFT_P, `RIGHT_ICS, `GT, `NO_OPERAND, `TO_BEHIND, `NO_CHECK};
      // does it meet the input, the second map, the place of the pixels?
      at[33]:  step = {`LEFT_DST, `T_IN_END, `GE, `T_DST, `TO_BELOW, `NO_CHECK};
      at[34]:  step = {`LEFT_SRC, `T_STOP, `GE, `NO_OPERAND, `TO_BELOW_TOO, `NO_CHECK};
      at[35]:  step = {`LEFT_SRC, `T_DST, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_MEET};
      at[36]:  step = {`T_DST, `T_IN_END2, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
      at[37]:  step = {`LEFT_SRC2, `T_STOP, `GE, `NO_OPERAND, `TO_BELOW_TOO, `NO_CHECK};
      at[38]:  step = {`LEFT_SRC2, `T_DST, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_MEET};
      at[39]:  step = {`LEFT_DST, `T_HI, `GE, `NO_OPERAND, `TO_BELOW, `NO_CHECK};
      at[40]:  step = {`T_STOP, `T_LO, `GT, `NO_OPERAND, `TO_TOUCH, `NO_CHECK};
      // channels of the last load less one: one at least, and no more than of another load
      at[41]:  step = {`LEFT_LOADS, `RIGHT_COEF, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[42]:  step = {`LEFT_O, `RIGHT_P, `SUB_1, `T_REST, `NO_RESULT, `CHECK_FEW};
      at[43]:  step = {`T_REST, `RIGHT_COEF, `GE, `NO_OPERAND, `NO_RESULT, `CHECK_OVER};
      // bytes of an output channel, of a load, of the last load
      at[44]:  step = {`LEFT_BYTES, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[45]:  step = {`T_INB, `RIGHT_P, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[46]:  step = {`LEFT_P, `NO_OPERAND, `ADD, `T_UNIT, `NO_RESULT, `CHECK_HUGE};
      at[47]:  step = {`T_UNIT, `RIGHT_COEF, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[48]:  step = {`LEFT_P, `RIGHT_PSIZE, `GT, `NO_OPERAND, `TO_WLEN, `CHECK_LONG};
      at[49]:  step = {`T_UNIT, `T_REST, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[50]:  step = {`LEFT_P, `T_UNIT, `ADD, `NO_OPERAND, `TO_WLAST, `NO_CHECK};
      // kept weights: where they end
      at[51]:  step = {`LEFT_LOADS, `RIGHT_PSIZE, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[52]:  step = {`NO_OPERAND, `NO_OPERAND, `ADD, `NO_OPERAND, `NO_RESULT, `CHECK_KEPT_END};
      // constant term, modulo 2^36
      at[53]:  step = {`LEFT_TERM, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[54]:  step = {`LEFT_HIGH, `NO_OPERAND, `ADD, `T_OUT_OWN, `TO_ADDC, `NO_CHECK};
      at[55]:  step = {`LEFT_TERM_HIGH, weighed, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[56]:  step = {`LEFT_P, `T_OUT_OWN, `ADD, `NO_OPERAND, `TO_ADDC_HIGH, `NO_CHECK};
      // steps of a vector: ceil(C * H * W / 9), by the quotient and the rest of C * H
      at[57]:  step = {`LEFT_H, `RIGHT_C, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[58]:  step = {`LEFT_P, `NO_OPERAND, `ADD, `T_QUOTIENT, `NO_RESULT, `NO_CHECK};
      at[59]:  step = {`T_QUOTIENT, `RIGHT_NINTH_LONG, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[60]:  step = {`LEFT_NINTH, `T_QUOTIENT, `GE, `T_IN_GROUPS, `TO_REM_FC, `NO_CHECK};
      at[61]:  step = {`LEFT_W, `RIGHT_REM, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[62]:  step = {`LEFT_P, `RIGHT_EIGHT, `ADD, `T_OWN, `NO_RESULT, `NO_CHECK};
      at[63]:  step = {`T_OWN, `RIGHT_NINTH, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[64]:  step = {`LEFT_HIGH, `T_OWN, `GE, `T_OUT_GROUPS, `TO_REM_FC, `NO_CHECK};
      at[65]:  step = {`LEFT_W, `T_IN_GROUPS, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[66]:  step = {`LEFT_P, `T_OUT_GROUPS, `ADD, `NO_OPERAND, `TO_S, `NO_CHECK};
      // rows of the weight buffer for all weights: of a vector packed in rows; groups of a block
      at[67]:  step = {parts, each, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[68]:  step = {rows, `RIGHT_PART, `ADD, `NO_OPERAND, `TO_WROWS, `CHECK_ROOM_DW};
      at[69]:  step = {`T_BLOCK, `RIGHT_S, `ADD, `T_BLOCK, `TO_B, `NO_CHECK};
      // windows of a pooling task, lines, then pixels: the last one fits, one more does not
      at[70]:  step = {size, `RIGHT_PAD, `ADD, `T_ROWS, `NO_RESULT, `NO_CHECK};
      at[71]:  step = {`T_ROWS, `RIGHT_KERNEL, `SUB_1, `T_ROWS, `NO_RESULT, `CHECK_WINDOW};
      at[72]:  step = {windows, `RIGHT_STRIDE, `MUL, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
      at[73]:  step = {`LEFT_P, `T_ROWS, `GT, `NO_OPERAND, `NO_RESULT, `CHECK_NEXT};
      at[74]:  step = {`LEFT_P, `RIGHT_STRIDE, `SUB, `T_STOP, `NO_RESULT, `NO_CHECK};
      at[75]:  step = {`T_STOP, `T_ROWS, `GT, `NO_OPERAND, `TO_SIDE, `CHECK_LAST};
      default: step = {`NO_OPERAND, `NO_OPERAND, `ADD, `NO_OPERAND, `NO_RESULT, `NO_CHECK};
    endcase
  end

  // ---- from row to row, past those that are not needed
  reg [END:0] next;
  always @* begin
    next = {at[END-1:0], 1'b0};
    if (at[15] && !out32) {next[18], next[16]} = 2'b10;
    if (at[21] && !two) {next[23], next[22]} = 2'b10;
    if (at[24] && !two) {next[27], next[25]} = 2'b10;
    if (at[27] && !out32) {next[29], next[28]} = 2'b10;
    if (at[30] && !in_order) {next[33], next[31]} = 2'b10;
    if (at[35] && !two) {next[39], next[36]} = 2'b10;
    if (at[40] && pools) {next[70], next[41]} = 2'b10;
    if (at[44] && !fc) {next[46], next[45]} = 2'b10;
    if (at[50] && !kept) {next[53], next[51]} = 2'b10;
    if (at[56] && !fc) {next[67], next[57]} = 2'b10;
    if (at[69] && !again) {next[END], next[70]} = 2'b10;
    if (at[69] && again) {next[70], next[69]} = 2'b01;
    if (at[75] && !side) {next[END], next[70]} = 2'b01;
  end
  assign run  = begun && (full || !at[LATE]) && !at[END];
  assign over = at[END] && full;
  always @(posedge clk) begin
    if (clear) at <= {{END{1'b0}}, 1'b1};
    else at <= run ? next : at;
  end

endmodule

`resetall
