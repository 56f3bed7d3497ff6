// SPDX-License-Identifier: Apache-2.0
//
// ai_ram: the data cache in words of PATH bytes (2 MiB at 32,768 rows of 64 bytes), one read and one
// write per cycle.
//
// How it works: byte i of a word is bits 8i+7:8i. Read data follow re by READ cycles: with 1 the memory
// connects directly to the ports; with 3 it has registers on both sides, because the block RAMs of an
// FPGA are spread over the die. A write passes as many registers as a read address, so their order is
// preserved. A read of the word being written returns undefined data; this model gives the old content.
// No user relies on it: a layer starts when the previous one is completely written, and rows of a map
// leave only once written. With 128 bytes this holds for each half of a word, a row, separately: the
// other half may be read, and a memory should have an enable for each. With CUT the words beyond the
// largest power of two are a separate memory: tools then build the first one from block RAMs without a
// multiplexer behind them. An ASIC flow replaces this file by its macro.
// Handshake: none; ai_ram_arb owns both ports.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ai_ram #(
    // number of 64-byte rows
    parameter ROWS = 32768,
    // bytes of a word
    parameter PATH = 64,
    // cycles from re to rdata: 1 or 3
    parameter READ = 1,
    // 1: two memories where the number of words is no power of two, only with READ = 3. Simulations keep
    // all words in one, where tests find them.
`ifdef SYNTHESIS
    parameter CUT  = (READ == 3) ? 1 : 0,
`else
    parameter CUT  = 0,
`endif
    // derived, not to be set: width of a word address
    parameter AW   = $clog2(ROWS) + 6 - $clog2(PATH)
) (
    // clock
    input  wire              clk,
    // write port, one enable per byte
    input  wire              we,
    input  wire [    AW-1:0] waddr,
    input  wire [  PATH-1:0] wbe,
    input  wire [8*PATH-1:0] wdata,
    // read port
    input  wire              re,
    input  wire [    AW-1:0] raddr,
    output wire [8*PATH-1:0] rdata
);

  // an odd row at the end has a whole word of 128 bytes
  localparam integer WORDS = (64 * ROWS + PATH - 1) / PATH;
  localparam integer BELOW = 1 << ($clog2(WORDS + 1) - 1);  // largest power of two
  localparam integer LOW = (CUT != 0) ? BELOW : WORDS;
  localparam integer HIGH = WORDS - LOW;

  (* no_rw_check *)
  reg [8*PATH-1:0] mem[0:LOW-1];
  reg [8*PATH-1:0] read;

  integer i;
  generate
    if (READ == 1) begin : g_direct
      always @(posedge clk) begin
        if (we) begin
          for (i = 0; i < PATH; i = i + 1) begin
            if (wbe[i]) mem[waddr][i*8+:8] <= wdata[i*8+:8];
          end
        end
      end
      always @(posedge clk) begin
        if (re) read <= mem[raddr];
      end
      assign rdata = read;
    end else begin : g_staged
      localparam LW = $clog2(LOW);
      // the enables select the memory, so that no logic is between a register and its block RAMs
      wire w_high = HIGH != 0 && waddr[AW-1];
      reg [PATH-1:0] be_low, be_high;
      reg re_q;
      reg [AW-1:0] raddr_q, waddr_q;
      reg [8*PATH-1:0] wdata_q, low;
      always @(posedge clk) begin
        re_q    <= re;
        raddr_q <= raddr;
        be_low  <= wbe & {PATH{we && !w_high}};
        be_high <= wbe & {PATH{we && w_high}};
        waddr_q <= waddr;
        wdata_q <= wdata;
        low     <= read;
      end
      always @(posedge clk) begin
        for (i = 0; i < PATH; i = i + 1) begin
          if (be_low[i]) mem[waddr_q[LW-1:0]][i*8+:8] <= wdata_q[i*8+:8];
        end
      end
      always @(posedge clk) begin
        if (re_q) read <= mem[raddr_q[LW-1:0]];
      end
      if (HIGH != 0) begin : g_high
        localparam HW = (HIGH > 1) ? $clog2(HIGH) : 1;
        (* no_rw_check *)
        reg [8*PATH-1:0] mem_high[0:HIGH-1];
        reg [8*PATH-1:0] read_high, high;
        reg from_high, from_high_q;
        integer j;
        always @(posedge clk) begin
          for (j = 0; j < PATH; j = j + 1) begin
            if (be_high[j]) mem_high[waddr_q[HW-1:0]][j*8+:8] <= wdata_q[j*8+:8];
          end
        end
        always @(posedge clk) begin
          if (re_q) read_high <= mem_high[raddr_q[HW-1:0]];
          high <= read_high;
          if (re_q) from_high <= raddr_q[AW-1];
          from_high_q <= from_high;
        end
        assign rdata = from_high_q ? high : low;
      end else begin : g_low
        assign rdata = low;
      end
      wire unused = &{1'b0, raddr_q, waddr_q, be_high};
    end
    if (READ != 1 && (READ != 3)) begin : g_illegal
      ILLEGAL_READ_1_OR_3 u_illegal ();
    end
    if (CUT != 0 && READ != 3) begin : g_illegal_cut
      ILLEGAL_CUT_NEEDS_READ_3 u_illegal ();
    end
  endgenerate

endmodule

`resetall
