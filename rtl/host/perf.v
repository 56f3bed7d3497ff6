// SPDX-License-Identifier: Apache-2.0
//
// perf: counters that attribute each cycle to its cause.
//
// How it works: every busy cycle is exactly one of: an issue to the array, or a wait for input, weights,
// output, the bus, or control. So the issues and the five stalls add up to the total. A wait for weights
// while the bus is reading counts as bus. Multiplications are counted column by column as they pass through
// the array. All inputs are registered and counted one cycle later. clear zeroes all counters, from a
// register as well; they read as zeros from the cycle of clear on.
// The lowest bits of a counter are in registers. Their carry is held in `owed` until the counter's turn:
// the upper bits of all counters are in a memory, which updates one counter per cycle, before the lowest
// bits can carry again. The value read includes the pending carry, so it is always exact, except in its
// high word, where a full addition would be too slow: `carry` reports that one is to be added. After a
// clear a counter reads as zeros (`held` is low) until a turn has written its own.
// Handshake: value and carry follow index in the same cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module perf #(
    // lanes of a column: the most multiplications that it counts in a cycle
    parameter LANES = 128
) (
    // clock and synchronous reset
    input  wire           clk,
    input  wire           rst,
    input  wire           clear,
    // the device is busy; the array was issued work
    input  wire           busy,
    input  wire           issued,
    // causes, in order of priority: tile buffer empty, weights or parameters missing, output back-pressure
    // or draining, data in flight in or out; otherwise control
    input  wire           wait_input,
    input  wire           wait_weight,
    input  wire           wait_output,
    input  wire           wait_bus,
    input  wire           bus_reading,
    // multiplications of each column: issued, gated
    input  wire [9*8-1:0] macs_issued,
    input  wire [9*8-1:0] macs_gated,
    // events
    input  wire           layer_done,
    input  wire           inf_done,
    input  wire           inf_kept,
    input  wire           read_beat,
    input  wire           write_beat,
    // one of 14 counters, in the order of the register map; 14 and 15: none
    input  wire [    3:0] index,
    output wire [   63:0] value,
    output wire           carry
);

  localparam COUNTERS = 14;
  // multiplications of a cycle: all lanes of nine columns
  localparam LANE_W = $clog2(LANES + 1);
  localparam SUM_W = $clog2(9 * LANES + 1);
  // a turn comes every 16 cycles and takes two: at most 18 cycles of increments, fewer than 32
  localparam EVENT_W = 5;
  localparam MACS_W = SUM_W + 5;
  localparam UPPER_W = 64 - EVENT_W;
  // counters of multiplications
  localparam ISSUED = 2;
  localparam GATED = 3;

  reg clears;
  always @(posedge clk) clears <= rst || clear;

  // ---- counted events
  reg [SUM_W-1:0] sum_issued;
  reg [SUM_W-1:0] sum_gated;
  integer t;
  always @* begin
    sum_issued = {SUM_W{1'b0}};
    sum_gated  = {SUM_W{1'b0}};
    for (t = 0; t < 9; t = t + 1) begin
      sum_issued = sum_issued + {{(SUM_W - LANE_W) {1'b0}}, macs_issued[8*t+:LANE_W]};
      sum_gated  = sum_gated + {{(SUM_W - LANE_W) {1'b0}}, macs_gated[8*t+:LANE_W]};
    end
  end

  reg [SUM_W-1:0] more_issued;
  reg [SUM_W-1:0] more_gated;
  always @(posedge clk) {more_issued, more_gated} <= {sum_issued, sum_gated};

  wire stall = busy && !issued;
  wire c_input = stall && wait_input;
  wire c_weight = stall && !wait_input && wait_weight && !bus_reading;
  wire c_output = stall && !wait_input && !wait_weight && wait_output;
  wire c_bus = stall && !wait_input && ((wait_weight && bus_reading) ||
      (!wait_weight && !wait_output && wait_bus));
  wire c_control = stall && !wait_input && !wait_weight && !wait_output && !wait_bus;

  // the two counters of multiplications are separate
  reg [COUNTERS-1:0] event_now;
  wire [COUNTERS-1:0] event_next = {
    inf_kept,
    write_beat,
    read_beat,
    inf_done,
    layer_done,
    c_control,
    c_bus,
    c_output,
    c_input,
    c_weight,
    2'b00,
    busy && issued,
    busy
  };

  always @(posedge clk) event_now <= event_next;

  // ---- the lowest bits, padded to 16 entries for an index of four bits
  reg [COUNTERS-1:0] owed;
  reg [COUNTERS-1:0] held;
  wire [15:0] owed_16 = {2'b00, owed};
  wire [15:0] held_16 = {2'b00, held};
  wire [16*EVENT_W-1:0] low_16;
  wire [COUNTERS-1:0] carries;
  wire [2*MACS_W-1:0] low_macs;

  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : g_low
      if (i == ISSUED || i == GATED) begin : g_macs
        reg  [MACS_W-1:0] low;
        wire [  MACS_W:0] next = {1'b0, low} + {6'd0, (i == ISSUED) ? more_issued : more_gated};
        always @(posedge clk) begin
          if (clears) low <= {MACS_W{1'b0}};
          else low <= next[MACS_W-1:0];
        end
        assign carries[i] = next[MACS_W];
        assign low_16[i*EVENT_W+:EVENT_W] = low[EVENT_W-1:0];
        assign low_macs[(i-ISSUED)*MACS_W+:MACS_W] = low;
      end else if (i < COUNTERS) begin : g_event
        reg [EVENT_W-1:0] low;
        always @(posedge clk) begin
          if (clears) low <= {EVENT_W{1'b0}};
          else if (event_now[i]) low <= low + 1'b1;
        end
        assign carries[i] = event_now[i] && low == {EVENT_W{1'b1}};
        assign low_16[i*EVENT_W+:EVENT_W] = low;
      end else begin : g_none
        assign low_16[i*EVENT_W+:EVENT_W] = {EVENT_W{1'b0}};
      end
    end
  endgenerate

  // ---- the upper bits: a turn reads and adds to the lower half, then adds its carry to the upper half and
  // writes; an entry without a counter holds zeros
  localparam [3:0] ZEROS = 4'd15;
  reg [3:0] turn;
  reg [3:0] place;  // entry read by the counter in turn
  reg [3:0] served;
  reg serves;
  reg paid;
  localparam HALF = UPPER_W / 2;
  reg [HALF:0] sum_low;
  reg [UPPER_W-HALF-1:0] sum_high;
  wire [UPPER_W-1:0] sum = {
    sum_high + {{(UPPER_W - HALF - 1) {1'b0}}, sum_low[HALF]}, sum_low[HALF-1:0]
  };
  wire [3:0] turn_next = turn + 4'd1;
  wire [UPPER_W-1:0] stored;
  wire [UPPER_W-1:0] seen;

  always @(posedge clk) begin
    if (clears) begin
      turn   <= ZEROS;
      place  <= ZEROS;
      serves <= 1'b0;
    end else begin
      turn   <= turn_next;
      place  <= held_16[turn_next] ? turn_next : ZEROS;
      serves <= 1'b1;
    end
  end

  // the entry of zeros is already written in a reset
  always @(posedge clk) begin
    served <= turn;
    paid   <= owed_16[turn];
    if (turn == ZEROS) begin
      sum_low  <= {(HALF + 1) {1'b0}};
      sum_high <= {(UPPER_W - HALF) {1'b0}};
    end else begin
      sum_low  <= {1'b0, stored[HALF-1:0]} + {{HALF{1'b0}}, owed_16[turn]};
      sum_high <= stored[UPPER_W-1:HALF];
    end
  end

  generate
    for (i = 0; i < COUNTERS; i = i + 1) begin : g_owed
      localparam [3:0] PLACE = i;
      wire mine = serves && served == PLACE;
      always @(posedge clk) begin
        if (clears) begin
          owed[i] <= 1'b0;
          held[i] <= 1'b0;
        end else begin
          owed[i] <= carries[i] || (owed[i] && !(mine && paid));
          held[i] <= held[i] || mine;
        end
      end
    end
  endgenerate

  // Upper bits in the low word, fewer for the counters of multiplications. All-ones is detected when they
  // are written.
  localparam IN_LOW = 32 - EVENT_W;
  localparam MACS_IN_LOW = 32 - MACS_W;
  wire ones = sum[MACS_IN_LOW-1:0] == {MACS_IN_LOW{1'b1}} &&
      (served[3:1] == 3'd1 || sum[IN_LOW-1:MACS_IN_LOW] == {(MACS_W - EVENT_W) {1'b1}});
  wire seen_ones;

  // one memory for the turns, a copy of it for the reader
  ram_1r1w_async #(
      .WIDTH(UPPER_W),
      .DEPTH(16)
  ) u_turns (
      .clk  (clk),
      .we   (1'b1),
      .waddr(served),
      .wdata(sum),
      .raddr(place),
      .rdata(stored)
  );

  ram_1r1w_async #(
      .WIDTH(1 + UPPER_W),
      .DEPTH(16)
  ) u_copy (
      .clk  (clk),
      .we   (1'b1),
      .waddr(served),
      .wdata({ones, sum}),
      .raddr(index),
      .rdata({seen_ones, seen})
  );

  // ---- reads
  wire zero = clear || clears;
  wire owes = owed_16[index] && !zero;
  wire there = held_16[index] && !zero;
  wire [IN_LOW-1:0] owing = {{(IN_LOW - 1) {1'b0}}, owes};
  wire [IN_LOW-1:0] upper = there ? seen[IN_LOW-1:0] + owing : owing;
  wire [MACS_W-1:0] low_mac = low_macs[index[0]*MACS_W+:MACS_W] & {MACS_W{!zero}};
  wire [EVENT_W-1:0] low_event = low_16[index*EVENT_W+:EVENT_W] & {EVENT_W{!zero}};
  wire macs = index[3:1] == 3'd1;
  assign value[31:0] = macs ? {upper[MACS_IN_LOW-1:0], low_mac} : {upper, low_event};
  assign value[63:32] = (macs ? seen[MACS_IN_LOW+:32] : seen[IN_LOW+:32]) & {32{there}};
  assign carry = owes && there && seen_ones;

  generate
    if (LANES < 1 || LANES > 128) begin : g_illegal
      ILLEGAL_LANES_1_TO_128 u_illegal ();
    end
  endgenerate

  // the counts of a column have eight bits for all arrays
  wire unused = &{1'b0, macs_issued, macs_gated, event_now[GATED:ISSUED]};

endmodule

`resetall
