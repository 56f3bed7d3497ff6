// SPDX-License-Identifier: Apache-2.0
//
// watchdog: ends a run without progress, and reports the reason for the stall.
//
// How it works: a counter of cycles without progress, while there is a limit, the device works and does not
// wait for the host; a register detects one cycle ahead that it reaches the limit. At the limit stuck pulses, with the
// reason: the bus first, since in the end everything waits for it; then the state of the controller. During
// a flush the same counter bounds the wait for the end of the bursts on the bus: at the limit, or at once
// after stuck, give_up makes the DMAC continue without the bus.
// Handshake: stuck is a pulse that begins a flush; give_up is a level, for the flush only.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module watchdog (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // limit of cycles without progress; 0: none, except for a flush
    input  wire [             31:0] limit,
    // the device works and does not wait for the host; progress; flush
    input  wire                     works,
    input  wire                     progress,
    input  wire                     flush,
    // reason for the stall: bus, pixels, array, output
    input  wire [`WAITING_BITS-1:0] waiting,
    input  wire                     waits_pixels,
    input  wire                     waits_array,
    input  wire                     waits_output,
    // no progress, AI_ERR_INFO.waits; the bus is abandoned
    output reg                      stuck,
    output reg  [              2:0] waits,
    output reg                      give_up
);

  localparam [31:0] LEAST = 32'd256;
  localparam [31:0] FLUSH_LIMIT = 32'd65536;

  reg  [31:0] still;
  reg         flushed;  // flush of the previous cycle: a flush restarts the count
  reg  [31:0] most;
  reg         full;  // still >= most
  wire        limited = limit != 32'd0;
  wire        counts = ((works && limited) || flush) && !progress;
  wire        fires = full && works && !flush && !stuck && limited;

  wire        anew = !counts || fires || flush != flushed;

  always @(posedge clk) begin
    most <= !limited ? FLUSH_LIMIT : (limit[31:8] == 24'd0) ? LEAST : limit;
  end

  always @(posedge clk) begin
    if (rst) begin
      still   <= 32'd0;
      full    <= 1'b0;
      flushed <= 1'b0;
      stuck   <= 1'b0;
      give_up <= 1'b0;
    end else begin
      flushed <= flush;
      still   <= anew ? 32'd0 : full ? still : still + 32'd1;
      full    <= !anew && (full || still + 32'd1 >= most);
      stuck   <= fires;
      // from the cycle in which it fires to the end of the flush that follows
      give_up <= (stuck || fires || (flush && flushed && full)) ? 1'b1 : flush ? give_up : 1'b0;
    end
  end

  always @(posedge clk) begin
    if (waiting[`WAITING_WHY] != 2'd0) waits <= {1'b0, waiting[`WAITING_WHY]};
    else if (waits_pixels) waits <= 3'd4;
    else if (waits_array) waits <= 3'd5;
    else if (waits_output) waits <= 3'd6;
    else waits <= 3'd7;
  end

  wire unused = &{1'b0, waiting};

`ifdef FORMAL_watchdog
  `include "watchdog_props.vh"
`endif

endmodule

`resetall
