// SPDX-License-Identifier: Apache-2.0
//
// command: starts, soft resets and stops of the host, and the single definition of "occupied".
//
// How it works: a write to AI_CTRL sets registers, so its effect is visible in the next cycle. A start is
// accepted when the device is not occupied: no start is pending, the layer FIFO is empty and no work is in
// progress. For a start, work is sampled one cycle late, which cuts the longest path of the device: work
// begins only after a start or a word, and both count at once. A start in the cycle in which work ends is
// refused; one after a read of "free" never is. at_work, for writes that are refused meanwhile, has the
// same delay.
// A soft reset is pending until the controller has dropped everything; a start during that time is held and
// passed to the controller afterwards. Events from before a reset are muted while it is pending.
// Handshake: accept, reset_now and the two errors are valid in the cycle of the write. start and soft_reset
// are pulses to the controller, soft_reset in the cycle after the write; the controller responds with
// flushing from the cycle after soft_reset on.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module command (
    // clock, synchronous reset
    input  wire       clk,
    input  wire       rst,
    // AI_CTRL is written: {stop, soft reset, start}
    input  wire       wr,
    input  wire [2:0] wdata,
    // the configuration allows a start
    input  wire       possible,
    // the layer FIFO holds words; they are being discarded after an error
    input  wire       words,
    input  wire       hold,
    // controller: work in progress, flush in progress
    input  wire       work,
    input  wire       flushing,
    // in the cycle of the write: accepted start, reset, the words in the layer FIFO are discarded
    output wire       accept,
    output wire       reset_now,
    output wire       drop_words,
    // errors in the cycle of the write
    output wire       start_busy,
    output wire       bad_config,
    // to the controller
    output reg        start,
    output reg        soft_reset,
    // levels: a start or a reset is pending; a reset is pending (events are muted); the device is occupied;
    // it was in this cycle or the previous one; from the next cycle on, the run ends after the current
    // inference
    output wire       pending,
    output reg        muted,
    output wire       occupied,
    output wire       at_work,
    output wire       stopping
);

  reg  start_due;
  reg  stops;
  reg  worked;  // work in the previous cycle, or a start that begins it

  wire ask = wr && wdata[0];
  // words that are being discarded do not count
  wire waiting = start_due || (words && !hold);
  // a reset is in progress
  wire dropping = muted && (soft_reset || flushing);
  wire free = reset_now || !(waiting || (worked && !muted));

  assign reset_now  = wr && wdata[1];
  assign accept     = ask && free && possible;
  assign start_busy = ask && !free;
  assign bad_config = ask && free && !possible;
  assign drop_words = reset_now || (accept && hold);
  assign pending    = start_due || muted;
  assign occupied   = waiting || work || muted;
  assign at_work    = waiting || worked || muted;

  // start is registered because of its long routes
  wire comes = accept || (start_due && !start && !reset_now);
  wire mutes = reset_now || dropping;
  // a stop applies to the current run, or to the one that the same write starts
  assign stopping = accept ? wdata[2] : (wr && wdata[2] && !reset_now) || stops;

  always @(posedge clk) begin
    if (rst) begin
      start_due  <= 1'b0;
      start      <= 1'b0;
      soft_reset <= 1'b0;
      muted      <= 1'b0;
      stops      <= 1'b0;
      worked     <= 1'b0;
    end else begin
      start_due  <= comes;
      start      <= comes && !mutes;
      soft_reset <= reset_now;
      muted      <= mutes;
      stops      <= stopping;
      // work dropped by a reset no longer counts; words that arrive afterwards do
      worked     <= start || (work && !dropping);
    end
  end

`ifdef FORMAL_command
  `include "command_props.vh"
`endif

endmodule

`resetall
