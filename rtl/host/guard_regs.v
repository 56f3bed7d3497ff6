// SPDX-License-Identifier: Apache-2.0
//
// guard_regs: where the device may read and write, the lock of these windows, the watchdog's limit;
// AI_READ_FIRST to AI_WATCHDOG.
//
// How it works: registers. Once AI_LOCK is set, only the hardware reset opens the windows again; a
// write to one of them is ignored and reported. The DMAC compares each burst with the windows.
// Handshake: wr strobes with addr, rdata in the same cycle; locked is a pulse in the cycle of wr.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module guard_regs (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // register access
    input  wire                   wr,
    input  wire [           11:0] addr,
    input  wire [           31:0] wdata,
    output reg  [           31:0] rdata,
    output wire                   hit,
    // a write to a window was ignored
    output wire                   locked,
    // windows in blocks of 1 KiB; limit of the watchdog in cycles
    output wire [`GUARD_BITS-1:0] guard,
    output reg  [           31:0] watchdog
);

  localparam [31:0] WATCHDOG_DEFAULT = 32'h0010_0000;

  wire [9:0] word = addr[11:2];
  assign hit = word >= `REG_AI_READ_FIRST && word <= `REG_AI_WATCHDOG;

  reg  [21:0] read_first;
  reg  [21:0] read_last;
  reg  [21:0] write_first;
  reg  [21:0] write_last;
  reg         lock;

  wire        windows = word >= `REG_AI_READ_FIRST && word <= `REG_AI_WRITE_LAST;
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
      read_first  <= (set && word == `REG_AI_READ_FIRST) ? wdata[31:10] : read_first;
      read_last   <= (set && word == `REG_AI_READ_LAST) ? wdata[31:10] : read_last;
      write_first <= (set && word == `REG_AI_WRITE_FIRST) ? wdata[31:10] : write_first;
      write_last  <= (set && word == `REG_AI_WRITE_LAST) ? wdata[31:10] : write_last;
      lock        <= (wr && word == `REG_AI_LOCK && wdata[0]) || lock;
      watchdog    <= (wr && word == `REG_AI_WATCHDOG) ? wdata : watchdog;
    end
  end

  always @* begin
    case (word)
      `REG_AI_READ_FIRST:  rdata = {read_first, 10'd0};
      `REG_AI_READ_LAST:   rdata = {read_last, 10'd0};
      `REG_AI_WRITE_FIRST: rdata = {write_first, 10'd0};
      `REG_AI_WRITE_LAST:  rdata = {write_last, 10'd0};
      `REG_AI_LOCK:        rdata = {31'd0, lock};
      `REG_AI_WATCHDOG:    rdata = watchdog;
      default:             rdata = 32'd0;
    endcase
  end

  // all registers are words
  wire unused = &{1'b0, addr[1:0]};

`ifdef FORMAL_guard_regs
  `include "guard_regs_props.vh"
`endif

endmodule

`resetall
