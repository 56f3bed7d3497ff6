// SPDX-License-Identifier: Apache-2.0
//
// walk_groups: the walker of convolutions, and of depthwise layers with a pool.
//
// How it works: block of output groups > stripe > group > reduction step > pixels of the stripe. A depthwise
// layer with a pool is the same with channels as groups and one step. Without SUM_PLANES the last step of a
// group whose 32-bit sums leave is issued four times, once per byte. Sums of a last step occupy a shared post
// lane for SHARE cycles: the last SHARE steps of a group (all, if it has fewer) alternate, pixels by pixels,
// so that issues stall only where a group has fewer steps.
// Handshake: none, combinational. The position describes the current issue, the move its changes.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module walk_groups #(
    // sums that share a post lane; 1: the bytes of 32-bit sums leave beside the array's work
    parameter SHARE      = 1,
    parameter SUM_PLANES = 0
) (
    // layer: depthwise, a stripe's input stays in the tile buffer for a block, 32-bit sums leave
    input  wire                  dw,
    input  wire                  held,
    input  wire                  out32,
    // position, last of: pixels of the stripe, reduction steps, channels of a weight row (depthwise), groups
    // of the block, groups, stripes; one of the alternating steps; index of the byte
    input  wire                  sweep_end,
    input  wire                  step_last,
    input  wire                  bank_last,
    input  wire                  block_last,
    input  wire                  unit_last,
    input  wire                  stripe_last,
    input  wire                  in_turns,
    input  wire [           1:0] plane,
    // changes made by the issue
    output wire [`MOVE_BITS-1:0] move
);

  wire bytes = SUM_PLANES == 0 && out32;
  wire again = bytes && step_last && plane != 2'd3;
  wire turns = SHARE > 1 && in_turns && !bytes;
  wire turn = turns && !step_last;
  wire step_end = sweep_end && !again && !turn;
  wire step_on = turn || (step_end && !step_last);
  wire group_end = step_end && step_last;
  wire pass_end = group_end && block_last;
  wire block_end = pass_end && stripe_last;
  wire row_end = !dw || bank_last || unit_last;
  wire entry_back = group_end && held && !block_last;
  wire row_back = pass_end && !stripe_last;

  assign move[`MOVE_POS_ON]     = !turn;
  assign move[`MOVE_STEP_ON]    = step_on;
  assign move[`MOVE_STEP_CLEAR] = group_end;
  assign move[`MOVE_BACK]       = turns && step_last && !sweep_end;
  assign move[`MOVE_UNIT_ON]    = group_end;
  assign move[`MOVE_UNIT_BACK]  = row_back;
  assign move[`MOVE_GROUP_END]  = group_end;
  assign move[`MOVE_PASS_END]   = pass_end;
  assign move[`MOVE_ENTRY_ON]   = step_on || group_end;
  assign move[`MOVE_ENTRY_BACK] = entry_back;
  assign move[`MOVE_ROW_ON]     = step_on || (group_end && row_end);
  assign move[`MOVE_ROW_BACK]   = row_back;
  assign move[`MOVE_ROW_KEEP]   = block_end;
  assign move[`MOVE_FREE_ENTRY] = sweep_end && !again && (!held || block_last);
  assign move[`MOVE_FREE_ROWS]  = {1'b0, sweep_end && !again && stripe_last && row_end};
  assign move[`MOVE_AGAIN]      = again;
  assign move[`MOVE_WHOLE]      = stripe_last && !again;
  assign move[`MOVE_OVER]       = block_end && unit_last;

endmodule

`resetall
