// SPDX-License-Identifier: Apache-2.0
//
// guard_regs: the address windows in which the device may read and write, their lock, and the limit of the
// watchdog; AI_READ_FIRST to AI_WATCHDOG.
//
// How it works: registers. Once AI_LOCK is set, only the hardware reset opens the windows again; a write to
// one of them is ignored and reported. The DMAC compares each burst with the windows.
// Handshake: wr is a strobe; next carries its word address one cycle earlier; rdata is valid in the same
// cycle and zero for other addresses; locked is a pulse in the cycle of wr.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module guard_regs (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // register access; word address of the next cycle's access
    input  wire                   wr,
    input  wire [            9:0] next,
    input  wire [           31:0] wdata,
    output wire [           31:0] rdata,
    output reg                    hit,
    // a write to a window was ignored
    output wire                   locked,
    // windows in blocks of 1 KiB; limit of the watchdog in cycles
    output wire [`GUARD_BITS-1:0] guard,
    output reg  [           31:0] watchdog
);

  localparam [31:0] WATCHDOG_DEFAULT = 32'h0010_0000;

  // decoded address of the access
  reg at_read_first, at_read_last, at_write_first, at_write_last, at_lock, at_watchdog;
  wire [5:0] chosen = {
    next == `REG_AI_READ_FIRST,
    next == `REG_AI_READ_LAST,
    next == `REG_AI_WRITE_FIRST,
    next == `REG_AI_WRITE_LAST,
    next == `REG_AI_LOCK,
    next == `REG_AI_WATCHDOG
  };
  always @(posedge clk) begin
    {at_read_first, at_read_last, at_write_first, at_write_last, at_lock, at_watchdog} <= chosen;
    hit <= chosen != 6'd0;
  end

  reg  [21:0] read_first;
  reg  [21:0] read_last;
  reg  [21:0] write_first;
  reg  [21:0] write_last;
  reg         lock;

  wire        windows = at_read_first || at_read_last || at_write_first || at_write_last;
  wire        set = wr && !lock;
  assign locked = wr && windows && lock;
  assign guard[`GUARD_READ_FIRST] = read_first;
  assign guard[`GUARD_READ_LAST] = read_last;
  assign guard[`GUARD_WRITE_FIRST] = write_first;
  assign guard[`GUARD_WRITE_LAST] = write_last;

  always @(posedge clk) begin
    if (rst) begin
      read_first  <= 22'd0;
      read_last   <= 22'h3FFFFF;
      write_first <= 22'd0;
      write_last  <= 22'h3FFFFF;
      lock        <= 1'b0;
      watchdog    <= WATCHDOG_DEFAULT;
    end else begin
      read_first  <= (set && at_read_first) ? wdata[31:10] : read_first;
      read_last   <= (set && at_read_last) ? wdata[31:10] : read_last;
      write_first <= (set && at_write_first) ? wdata[31:10] : write_first;
      write_last  <= (set && at_write_last) ? wdata[31:10] : write_last;
      lock        <= (wr && at_lock && wdata[0]) || lock;
      watchdog    <= (wr && at_watchdog) ? wdata : watchdog;
    end
  end

  // OR of all registers, at most one of them selected
  assign rdata = {read_first & {22{at_read_first}}, 10'd0} | {read_last & {22{at_read_last}}, 10'd0} |
      {write_first & {22{at_write_first}}, 10'd0} | {write_last & {22{at_write_last}}, 10'd0} |
      {31'd0, lock & at_lock} | (watchdog & {32{at_watchdog}});

`ifdef FORMAL_guard_regs
  `include "guard_regs_props.vh"
`endif

endmodule

`resetall
