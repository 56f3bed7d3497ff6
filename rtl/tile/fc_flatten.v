// SPDX-License-Identifier: Apache-2.0
//
// fc_flatten: packs the pixels of a map into one vector, for fully connected layers.
//
// How it works: words arrive in c, y, x order. Element e of the vector belongs to reduction step e / 9 and
// unit e mod 9; step s is byte s mod 64 of entry s / 64 of the tile buffer. Up to nine bytes of the current
// word are written each cycle, one per bank: they are rotated by the unit of the first one, and those of the
// banks before it belong to the next step (place 0). A second word may be pending. A third one is in flight
// when words are short (two cycles at most) and no entry can stall the work: each then arrives as the word
// two before it completes. The bank inputs are registered.
// Handshake: while ready is high a word may be requested (sent: it was); it arrives with valid. An entry is
// written only when it is free.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fc_flatten #(
    // entries of the tile buffer; bytes of a word
    parameter TILE_ROWS = 32,
    parameter TILE_WORD = 64,
    // derived, not to be set: log2 of the word, widths of an entry counter, of a word address
    parameter TB        = $clog2(TILE_WORD),
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter AW        = $clog2(TILE_ROWS) + 6 - TB
) (
    // clock and synchronous reset; restart at the start of a layer
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   restart,
    // entries released and filled (running counts)
    input  wire [         TW-1:0] tile_freed,
    input  wire [         TW-1:0] tile_filled,
    // request permitted, request issued; word: `bytes` bytes are valid from base (a multiple of 16) on, last
    // word of the vector
    output wire                   ready,
    input  wire                   sent,
    input  wire                   valid,
    input  wire [8*TILE_WORD-1:0] word,
    input  wire [         TB-1:0] base,
    input  wire [           TB:0] bytes,
    input  wire                   lastword,
    // one byte per bank: enable, byte, belongs to the next step
    output reg  [            8:0] we,
    output reg  [           71:0] bytes_out,
    output reg  [            8:0] zero,
    // word address of the next step and of this one, byte enables
    output reg  [         AW-1:0] addr_0,
    output reg  [         AW-1:0] addr_1,
    output wire [  TILE_WORD-1:0] lanes_0,
    output wire [  TILE_WORD-1:0] lanes_1,
    // entries completed by the writes of this cycle
    output reg  [            4:0] done
);

  localparam HW = (TILE_WORD < 9) ? 72 : 8 * TILE_WORD;  // at least nine bytes
  localparam LW = (TB < 4) ? 4 : TB + 1;  // remaining bytes: a word, or nine

  // current word, and the pending one
  reg          busy;
  reg [HW-1:0] hold;
  reg [LW-1:0] left;
  reg          last;
  reg          next_valid;
  reg [HW-1:0] next_word;
  reg [LW-1:0] next_left;
  reg          next_last;
  reg [   1:0] wanted;  // words requested and not yet consumed
  reg          roomy;  // free entries for all of them
  // next element: unit, step in the entry, entry
  reg [   3:0] unit;
  reg [   5:0] step;
  reg [TW-1:0] entry;

  // a word completes at most two entries; three words and the entries of this cycle, eight
  localparam THIRD = (TB <= 4) ? 1 : 0;
  wire [TW-1:0] far = entry + {{(TW - 4) {1'b0}}, 4'd8} - tile_freed;
  always @(posedge clk) begin
    if (rst || restart) roomy <= 1'b0;
    else roomy <= THIRD != 0 && far < TILE_ROWS[TW-1:0];
  end
  assign ready = !wanted[1] || (roomy && !wanted[0]);

  wire [TW-1:0] ahead = entry + {{(TW - 1) {1'b0}}, 1'b1} - tile_freed;
  wire          go = busy && ahead < TILE_ROWS[TW-1:0];
  wire          nine;  // more than nine bytes remain
  wire [   3:0] take = nine ? 4'd9 : left[3:0];
  wire          ends = go && !nine;
  wire          vec_end = ends && last;
  wire [   4:0] unit_sum = {1'b0, unit} + {1'b0, take};
  wire          wraps = unit_sum >= 5'd9;
  wire [   3:0] unit_next = wraps ? unit_sum[3:0] - 4'd9 : unit_sum[3:0];
  wire          crosses = wraps && step == 6'd63;
  // the last entry of a vector is complete although it may not be full
  wire          partial = vec_end && !(crosses && unit_next == 4'd0);
  wire [   4:0] done_now = !go ? 5'd0 : {4'd0, crosses} + {4'd0, partial};

  wire          free = !busy || ends;
  wire [HW-1:0] arrived;
  wire [LW-1:0] arrived_left = {{(LW - TB - 1) {1'b0}}, bytes};
  wire [HW-1:0] moved;  // the word without its first nine bytes
  generate
    if (TB > 4) begin : g_wide
      assign arrived = word >> {base[TB-1:4], 7'd0};
      assign nine = left > 9;
      assign moved = hold >> 72;
    end else if (TB == 4) begin : g_row
      assign arrived = word;
      assign nine = left > 9;
      assign moved = hold >> 72;
    end else begin : g_narrow
      assign arrived = {8'd0, word};
      assign nine = 1'b0;
      assign moved = hold;
    end
  endgenerate

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
        entry <= entry + {{(TW - 5) {1'b0}}, done_now};
      end
    end
  end

  always @(posedge clk) begin
    if (free) begin
      hold <= next_valid ? next_word : arrived;
      left <= next_valid ? next_left : arrived_left;
      last <= next_valid ? next_last : lastword;
    end else if (go) begin
      hold <= moved;
      left <= left - 9;
    end
    if (valid) begin
      next_word <= arrived;
      next_left <= arrived_left;
      next_last <= lastword;
    end
  end

  // ---- bytes and their enables, rotated by the unit: 1, 2, 4 and 8 places
  genvar s, t;
  generate
    for (s = 0; s <= 4; s = s + 1) begin : g_turn
      wire [80:0] lanes;
      for (t = 0; t < 9; t = t + 1) begin : g_lane
        localparam [3:0] T = t;
        if (s == 0) begin : g_from
          assign lanes[9*t+:9] = {T < take, hold[8*t+:8]};
        end else begin : g_rotate
          localparam integer FROM = (t + 9 - (1 << (s - 1))) % 9;
          assign lanes[9*t+:9] = unit[s-1] ? g_turn[s-1].lanes[9*FROM+:9] : g_turn[s-1].lanes[9*t+:9];
        end
        if (s == 4) begin : g_out
          always @(posedge clk) begin
            bytes_out[8*t+:8] <= lanes[9*t+:8];
            zero[t] <= T < unit;
            if (rst) we[t] <= 1'b0;
            else we[t] <= go && lanes[9*t+8];
          end
        end
      end
    end
  endgenerate

  // ---- addresses
  wire [6:0] step_1 = {1'b0, step} + 7'd1;
  wire [TW-1:0] entry_1 = entry + {{(TW - 1) {1'b0}}, step_1[6]};
  reg [TB-1:0] at;
  always @(posedge clk) begin
    at <= step[TB-1:0];
    if (rst) done <= 5'd0;
    else done <= done_now;
  end
  generate
    if (TB == 6) begin : g_entry
      always @(posedge clk) begin
        addr_0 <= entry_1[AW-1:0];
        addr_1 <= entry[AW-1:0];
      end
    end else begin : g_word
      always @(posedge clk) begin
        addr_0 <= {entry_1[AW+TB-7:0], step_1[5:TB]};
        addr_1 <= {entry[AW+TB-7:0], step[5:TB]};
      end
    end
  endgenerate
  assign lanes_1 = {{(TILE_WORD - 1) {1'b0}}, 1'b1} << at;
  assign lanes_0 = {lanes_1[TILE_WORD-2:0], lanes_1[TILE_WORD-1]};

  wire unused = &{1'b0, base, entry_1, step_1};

endmodule

`resetall
