// SPDX-License-Identifier: Apache-2.0
//
// guard_regs: the address windows in which the device may read and write, their lock, the limit of the
// watchdog, and the rows of the AI RAM in which weights may wait; AI_READ_FIRST to AI_SPARE_ROWS.
//
// How it works: registers. Once AI_LOCK is set, only the hardware reset opens the windows again; a write to
// one of them is ignored and reported, and so are rows behind the end of the AI RAM. The DMAC compares each
// burst with the windows.
// Handshake: wr is a strobe; next carries its word address one cycle earlier; rdata is valid in the same
// cycle and zero for other addresses; locked and misplaced are pulses in the cycle of wr.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module guard_regs #(
    // rows of the AI RAM that may be spare: all, or 0 without a ring for weights, where none are stored
    parameter SPARE_MOST = 0
) (
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
    // a write of rows that do not exist was ignored
    output wire                   misplaced,
    // windows in blocks of 1 KiB; limit of the watchdog in cycles; rows for weights
    output wire [`GUARD_BITS-1:0] guard,
    output reg  [           31:0] watchdog,
    output reg  [`SPARE_BITS-1:0] spare
);

  localparam [31:0] WATCHDOG_DEFAULT = 32'h0010_0000;

  // decoded address of the access
  reg at_read_first, at_read_last, at_write_first, at_write_last, at_lock, at_watchdog, at_spare;
  wire [6:0] chosen = {
    next == `REG_AI_READ_FIRST,
    next == `REG_AI_READ_LAST,
    next == `REG_AI_WRITE_FIRST,
    next == `REG_AI_WRITE_LAST,
    next == `REG_AI_LOCK,
    next == `REG_AI_WATCHDOG,
    next == `REG_AI_SPARE_ROWS
  };
  always @(posedge clk) begin
    {at_read_first, at_read_last, at_write_first, at_write_last, at_lock, at_watchdog, at_spare} <= chosen;
    hit <= chosen != 7'd0;
  end

  reg  [21:0] read_first;
  reg  [21:0] read_last;
  reg  [21:0] write_first;
  reg  [21:0] write_last;
  reg         lock;

  wire        windows = at_read_first || at_read_last || at_write_first || at_write_last;
  wire        set = wr && !lock;
  assign locked = wr && windows && lock;
  // 17 bits: the first row and their number
  localparam [16:0] MOST = SPARE_MOST[16:0];
  wire [14:0] first = wdata[14:0];
  wire [15:0] rows = wdata[31:16];
  wire fits = rows == 16'd0 || MOST == 17'd0 || (!rows[15] && {2'd0, first} + {1'b0, rows} <= MOST);
  assign misplaced = wr && at_spare && !fits;
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
      spare       <= {`SPARE_BITS{1'b0}};
    end else begin
      read_first  <= (set && at_read_first) ? wdata[31:10] : read_first;
      read_last   <= (set && at_read_last) ? wdata[31:10] : read_last;
      write_first <= (set && at_write_first) ? wdata[31:10] : write_first;
      write_last  <= (set && at_write_last) ? wdata[31:10] : write_last;
      lock        <= (wr && at_lock && wdata[0]) || lock;
      watchdog    <= (wr && at_watchdog) ? wdata : watchdog;
      if (wr && at_spare && fits && MOST != 17'd0) begin
        spare[`SPARE_FIRST] <= first;
        spare[`SPARE_ROWS]  <= rows;
      end
    end
  end

  // OR of all registers, at most one of them selected
  assign rdata = {read_first & {22{at_read_first}}, 10'd0} | {read_last & {22{at_read_last}}, 10'd0} |
      {write_first & {22{at_write_first}}, 10'd0} | {write_last & {22{at_write_last}}, 10'd0} |
      {31'd0, lock & at_lock} | (watchdog & {32{at_watchdog}}) |
      ({spare[`SPARE_ROWS], 1'b0, spare[`SPARE_FIRST]} & {32{at_spare}});

`ifdef FORMAL_guard_regs
  `include "guard_regs_props.vh"
`endif

endmodule

`resetall
