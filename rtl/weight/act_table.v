// SPDX-License-Identifier: Apache-2.0
//
// act_table: a ring of activation tables, and the copy of one to the post lanes.
//
// How it works: a table is 18 words of 64 bits: sixteen segments {start 36, mul 16, shift 8}, then the
// sixteen addends, a byte each. The tables of the next layers are stored in a memory; at the start of a layer
// its table is copied to the lanes, entry 15 first, a word per cycle. Eight addends are read before the eight
// segments they belong to. The copy replaces a start by the minimum start from there on (the search of the
// lanes requires starts that never fall), except that of entry 0, which is never compared. A multiplier is
// converted to sign and magnitude, a shift is limited. The lowest two bits of the shift move the multiplier
// up, so that a lane shifts by multiples of four. A magnitude of 2^15 is halved and its shift reduced by one:
// 18 bits are enough. With a shift of 0 any distance but 0 is clamped either way.
// Handshake: load begins the copy, a cycle later (it waits until the table is complete); ready is high from
// thirteen cycles before its end to the cycle after the next load. The last entry is written thirteen cycles
// after ready rises: a sum reaches the first table of a lane fifteen cycles after its issue by the sequencer.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module act_table #(
    // tables: 4, 8 or 16; derived, not to be set: log2 of it
    parameter TABLES = 4,
    parameter TN     = $clog2(TABLES)
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // words from the parameter loader
    input  wire                     at_we,
    input  wire [           TN+4:0] at_addr,
    input  wire [             63:0] at_data,
    // tables complete and released (running counts)
    input  wire [           TN+1:0] tables_filled,
    output reg  [           TN+1:0] tables_freed,
    // copy of the next table
    input  wire                     load,
    output reg                      ready,
    // entry for the post lanes
    output reg                      table_we,
    output reg  [              3:0] table_addr,
    output reg  [`SEGMENT_BITS-1:0] table_data
);

  localparam [4:0] LAST = 5'd17;
  // from here on the copy does not stall
  localparam [4:0] EARLY = LAST - 5'd11;

  reg begins;  // registered, because load has a long path
  reg copying;
  reg there;
  reg [4:0] count;
  wire [63:0] data;

  // ---- position of the copy: words 17, 15 to 8, 16, 7 to 0; the memory is a word ahead
  wire go = copying && there;
  wire last = count == LAST;
  wire [4:0] count_n = !go ? count : last ? 5'd0 : count + 5'd1;
  wire [TN+1:0] freed_n = tables_freed + {{(TN + 1) {1'b0}}, go && last};
  wire addends = count == 5'd0 || count == 5'd9;
  // 0 -> 17, 1..8 -> 15..8, 9 -> 16, 10..17 -> 7..0
  wire [ 4:0] word = (count_n == 5'd0) ? 5'd17 : (count_n == 5'd9) ? 5'd16 :
      ((count_n < 5'd9) ? 5'd16 : LAST) - count_n;

  ram_1r1w #(
      .WIDTH(64),
      .DEPTH(32 * TABLES)
  ) u_ram (
      .clk  (clk),
      .we   (at_we),
      .wlane(1'b1),
      .waddr(at_addr),
      .wdata(at_data),
      .re   (go || !there),
      .raddr({freed_n[TN-1:0], word}),
      .rdata(data)
  );

  always @(posedge clk) begin
    if (rst) begin
      begins       <= 1'b0;
      copying      <= 1'b0;
      ready        <= 1'b0;
      there        <= 1'b0;
      count        <= 5'd0;
      tables_freed <= {(TN + 2) {1'b0}};
    end else begin
      begins       <= load;
      copying      <= begins || copying && !(go && last);
      ready        <= !begins && (ready || go && count == EARLY);
      // a cycle late: the first word is read in that cycle
      there        <= tables_filled != freed_n;
      count        <= begins ? 5'd0 : count_n;
      tables_freed <= freed_n;
    end
  end

  // ---- an entry: registered first, because the memory is slow
  reg [63:0] word_q;
  reg word_valid, word_addends;
  reg [3:0] entry;
  always @(posedge clk) begin
    if (rst) word_valid <= 1'b0;
    else word_valid <= go;
  end
  always @(posedge clk) begin
    if (go) begin
      word_q       <= data;
      word_addends <= addends;
      entry        <= (count < 5'd9) ? 4'd0 - count[3:0] : 4'd1 - count[3:0];
    end
  end
  wire signed [35:0] start = word_q[59:24];
  wire        [15:0] mul = word_q[23:8];
  wire        [ 7:0] shift = word_q[7:0];
  reg         [63:0] add;
  wire        [15:0] magnitude = mul[15] ? -mul : mul;

  // two more registers: the second one after the shift of the multiplier
  reg                there_q;
  reg         [ 3:0] entry_q;
  reg signed  [35:0] start_q;  // the minimum start so far
  wire               lower = entry == 4'd15 || entry == 4'd0 || start < start_q;
  reg         [15:0] mul_q;
  reg                neg_q;
  reg         [ 5:0] shift_q;
  reg         [ 7:0] add_q;
  wire               half = mul_q[15] && shift_q != 6'd0;
  wire        [ 5:0] shift_n = shift_q - {5'd0, half};
  wire        [17:0] mul_n = {3'd0, mul_q[14] || mul_q[15], mul_q[13:0]};

  always @(posedge clk) begin
    if (rst) begin
      there_q  <= 1'b0;
      table_we <= 1'b0;
    end else begin
      there_q  <= word_valid && !word_addends;
      table_we <= there_q;
    end
  end

  always @(posedge clk) begin
    if (word_valid && word_addends) add <= word_q;
    if (word_valid && !word_addends) begin
      entry_q <= entry;
      start_q <= lower ? start : start_q;
      mul_q   <= magnitude;
      neg_q   <= mul[15];
      // saturates at 54 without changing the result: the product has 53 bits
      shift_q <= (shift > 8'd54) ? 6'd54 : shift[5:0];
      add_q   <= add[{entry[2:0], 3'd0}+:8];
    end
    if (there_q) begin
      table_addr <= entry_q;
      table_data[`SEGMENT_START] <= start_q;
      table_data[`SEGMENT_MUL] <= mul_n << ~shift_n[1:0];
      table_data[`SEGMENT_NEG] <= neg_q;
      table_data[`SEGMENT_SHIFT] <= shift_n[5:2];
      table_data[`SEGMENT_ADD] <= add_q;
    end
  end

endmodule

`resetall
