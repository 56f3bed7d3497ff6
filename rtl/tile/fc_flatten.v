// SPDX-License-Identifier: Apache-2.0
//
// fc_flatten: lines up the pixels of a map as one vector, for fully connected layers.
//
// How it works: words arrive in c, y, x order. Element e of the vector belongs to reduction step
// e / 9 and unit e mod 9; step s is byte s mod 64 of entry s / 64 of the tile buffer. Up to nine
// bytes of the word at work are placed each cycle, one in each bank; a second word may wait.
// Handshake: ready says that a word may be requested (sent: it was); it then comes with valid. An
// entry is written only when it is free.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fc_flatten #(
    // entries of the tile buffer; bytes of a word
    parameter TILE_ROWS = 32,
    parameter TILE_W    = 64,
    // derived, not to be set: log2 of the word, widths of an entry counter, of an entry number
    parameter TB        = $clog2(TILE_W),
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter AW        = $clog2(TILE_ROWS)
) (
    // clock and synchronous reset; restart at the start of a layer
    input  wire                clk,
    input  wire                rst,
    input  wire                restart,
    // entries released and completed so far (running counts)
    input  wire [      TW-1:0] tile_freed,
    input  wire [      TW-1:0] tile_filled,
    // a word may be requested, one was; word: bytes from base on count, last word of the vector
    output wire                ready,
    input  wire                sent,
    input  wire                valid,
    input  wire [8*TILE_W-1:0] word,
    input  wire [      TB-1:0] base,
    input  wire [        TB:0] bytes,
    input  wire                lastword,
    // a byte for each bank: enable, byte, place in the entry, entry
    output reg  [         8:0] we,
    output reg  [        71:0] bytes_out,
    output reg  [        53:0] ats,
    output reg  [    9*AW-1:0] entries,
    // entries complete with what is written in this cycle
    output wire [         4:0] done
);

  localparam HW = (TILE_W < 9) ? 72 : 8 * TILE_W;  // nine bytes are looked at
  localparam LW = (TB < 4) ? 5 : TB + 1;  // bytes that are left: a word, or nine

  // the word at work, and the one that waits for it
  reg          busy;
  reg [HW-1:0] hold;
  reg [LW-1:0] left;
  reg          last;
  reg          next_valid;
  reg [HW-1:0] next_word;
  reg [LW-1:0] next_left;
  reg          next_last;
  reg [   1:0] wanted;  // words requested and not done with
  // the next element: its unit, its step in the entry, the entry
  reg [   3:0] unit;
  reg [   5:0] step;
  reg [TW-1:0] entry;

  assign ready = !wanted[1];

  wire [TW-1:0] ahead = entry + {{(TW - 1) {1'b0}}, 1'b1} - tile_freed;
  wire          go = busy && ahead < TILE_ROWS[TW-1:0];
  wire          nine = left > 9;
  wire [   3:0] take = nine ? 4'd9 : left[3:0];
  wire          ends = go && left <= 9;
  wire          vec_end = ends && last;
  wire [   4:0] unit_sum = {1'b0, unit} + {1'b0, take};
  wire          wraps = unit_sum >= 5'd9;
  wire [   3:0] unit_next = wraps ? unit_sum[3:0] - 4'd9 : unit_sum[3:0];
  wire          crosses = wraps && step == 6'd63;
  // the last entry of a vector is complete although it may not be full
  wire          partial = vec_end && !(crosses && unit_next == 4'd0);
  assign done = !go ? 5'd0 : {4'd0, crosses} + {4'd0, partial};

  wire          free = !busy || ends;
  wire [HW-1:0] arrived = {{(HW - 8 * TILE_W) {1'b0}}, word >> {base, 3'd0}};
  wire [LW-1:0] arrived_left = {{(LW - TB - 1) {1'b0}}, bytes};

  always @(posedge clk) begin
    if (rst || restart) begin
      busy       <= 1'b0;
      next_valid <= 1'b0;
      wanted     <= 2'd0;
      unit       <= 4'd0;
      step       <= 6'd0;
      entry      <= tile_filled;
    end else begin
      busy       <= !free || next_valid || valid;
      next_valid <= free ? next_valid && valid : next_valid || valid;
      wanted     <= wanted + {1'b0, sent} - {1'b0, ends};
      if (go) begin
        unit  <= vec_end ? 4'd0 : unit_next;
        step  <= vec_end ? 6'd0 : step + {5'd0, wraps};
        entry <= entry + {{(TW - 5) {1'b0}}, done};
      end
    end
  end

  always @(posedge clk) begin
    if (free) begin
      hold <= next_valid ? next_word : arrived;
      left <= next_valid ? next_left : arrived_left;
      last <= next_valid ? next_last : lastword;
    end else if (go) begin
      hold <= hold >> 72;
      left <= left - 9;
    end
    if (valid) begin
      next_word <= arrived;
      next_left <= arrived_left;
      next_last <= lastword;
    end
  end

  wire [71:0] front = hold[71:0];

  // bank t takes byte number `nth` of this cycle, perhaps of the next step
  integer t;
  reg [4:0] gap;
  reg [4:0] nth;
  reg [6:0] at;
  reg [TW-1:0] mine;
  always @* begin
    t = 0;  // a loop that is skipped would leave it as it was: a latch
    we    = 9'd0;
    bytes_out = 72'd0;
    ats   = 54'd0;
    entries = {9 * AW{1'b0}};
    gap   = 5'd0;
    nth   = 5'd0;
    at    = 7'd0;
    mine  = entry;
    if (go) begin
      for (t = 0; t < 9; t = t + 1) begin
        gap = t[4:0] + 5'd9 - {1'b0, unit};
        nth = (gap < 5'd9) ? gap : gap - 5'd9;
        at = {1'b0, step} + {6'd0, gap < 5'd9};
        mine = entry + {{(TW - 1) {1'b0}}, at[6]};
        we[t] = nth < {1'b0, take};
        bytes_out[8*t+:8] = front[{nth[3:0], 3'd0}+:8];
        ats[6*t+:6] = at[5:0];
        entries[AW*t+:AW] = mine[AW-1:0];
      end
    end
  end

  wire unused = &{1'b0, mine};

endmodule

`resetall
