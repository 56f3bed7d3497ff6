// SPDX-License-Identifier: Apache-2.0
//
// weight_group: cuts a byte stream of bus words into groups of up to nine weights.
//
// How it works: a bus word is rotated so that its next byte is in the lane where the group continues: byte m
// of a group is in lane m mod 4. Lanes beyond the end of the group are zeroed. A weight has a register for
// its lower and one for its upper byte, which is zero in layers of bytes; a register is written as long as
// its byte may be the next one. Registers beyond the end of a short group are reset when the previous group
// has been read. The bytes of a word beyond the end of a group wait for a cycle, in which the registers are
// read, and then go to the first registers. So one bus word per cycle is accepted if it ends one group at
// most. byte_gearbox does the same for wider words with a ring and a window of all bytes, in twice the area.
// A group of a single weight may go to the middle.
// Handshake: in_ready comes from a register. done marks the end of the group of `want` bytes, and waits for
// ready; its weights are valid in the next cycle. want is stable from the cycle after a done, or from the
// first cycle with run, to the next done. The next group has want_next bytes; 0: none of its bytes are
// accepted yet.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module weight_group (
    // clock and synchronous reset
    input  wire         clk,
    input  wire         rst,
    // bus words: bytes in_off .. in_off + in_cnt - 1 are valid, one at least
    input  wire         in_valid,
    output wire         in_ready,
    input  wire [ 31:0] in_data,
    input  wire [  1:0] in_off,
    input  wire [  2:0] in_cnt,
    // layer: weights of two bytes; single weights, in the middle; upper bits of bytes are inverted
    input  wire         wide,
    input  wire         middle,
    input  wire         invert,
    // groups: sizes are valid; size of this one and the next one; may end, ends
    input  wire         run,
    input  wire [  4:0] want,
    input  wire [  4:0] want_next,
    input  wire         ready,
    output wire         done,
    // weights of the group that ended in the previous cycle, 16 bits each
    output wire [143:0] weights
);

  // ---- two bus words: the current one, and the next one
  reg [31:0] word, word_next;
  reg [1:0] off, off_next;
  reg [2:0] left, left_next;  // remaining bytes; 0: no word
  wire [2:0] take;
  wire       empty = left == take;
  assign in_ready = left_next == 3'd0;

  always @(posedge clk) begin
    if (rst) begin
      left      <= 3'd0;
      left_next <= 3'd0;
    end else begin
      left      <= !empty ? left - take : !in_ready ? left_next : in_valid ? in_cnt : 3'd0;
      left_next <= empty ? 3'd0 : (in_ready && in_valid) ? in_cnt : left_next;
    end
  end
  always @(posedge clk) begin
    if (empty) word <= in_ready ? in_data : word_next;
    off <= !empty ? off + take[1:0] : in_ready ? in_off : off_next;
    if (in_ready) begin
      word_next <= in_data;
      off_next  <= in_off;
    end
  end

  // ---- position in the group
  reg [4:0] pos;
  wire [4:0] need = want - pos;
  wire ends = {2'd0, left} >= need;
  wire [2:0] over = left - need[2:0];
  wire apart = pos[4:2] != 3'd0 || need == 5'd0;
  wire spill = apart && want_next >= {2'd0, over};
  assign done = run && ready && ends;
  assign take = !run || ends && !ready ? 3'd0 : ends && !spill ? need[2:0] : left;
  wire moves = done && spill;

  always @(posedge clk) begin
    if (rst) pos <= 5'd0;
    else if (done) pos <= moves ? {2'd0, over} : 5'd0;
    else pos <= pos + {2'd0, take};
  end

  // ---- its bytes, rotated to their lanes; those of the next group, delayed by a cycle
  function [31:0] halves(input [31:0] bytes, input swap, input other);
    halves = (swap ? {bytes[15:0], bytes[31:16]} : bytes) ^ {4{other, 7'd0}};
  endfunction

  wire [ 1:0] turn = off - pos[1:0];
  wire [ 1:0] turn_next = turn + want[1:0];
  wire [31:0] half = halves(word, turn[1], invert);
  wire [31:0] half_next = halves(word, turn_next[1], invert);
  wire [31:0] turned = turn[0] ? {half[7:0], half[31:8]} : half;
  wire [31:0] lanes, early;
  reg [31:0] waits;
  reg [3:0] waits_on;
  reg used;  // the registers have been read, or are empty
  always @(posedge clk) begin
    waits <= turn_next[0] ? {half_next[7:0], half_next[31:8]} : half_next;
    waits_on <= moves ? ~(4'hf << over) : 4'd0;
    used <= done || !run;
  end

  // next register of each lane: bit T for turn T
  wire [3:0] passed = {1'b0, &pos[1:0], pos[1], |pos[1:0]};  // lanes passed by the position
  wire [4:0] next[0:3];
  genvar l, m;
  generate
    for (l = 0; l < 4; l = l + 1) begin : g_lane
      // distance of the lane's byte from the next one
      localparam [1:0] LANE = l;
      wire [1:0] ahead = LANE - pos[1:0];
      wire in_group = need[4:2] != 3'd0 || ahead < need[1:0];
      assign lanes[8*l+:8] = in_group ? turned[8*l+:8] : 8'd0;
      assign early[8*l+:8] = waits_on[l] ? waits[8*l+:8] : lanes[8*l+:8];
      wire [2:0] place = pos[4:2] + {2'd0, passed[l]};
      assign next[l] = 5'd1 << place;
    end
  endgenerate

  // ---- a lower and an upper byte of each weight
  wire moved = waits_on != 4'd0;
  generate
    for (m = 0; m < 9; m = m + 1) begin : g_weight
      // lanes of the byte of a narrow weight, of the lower byte of a wide one
      localparam integer LANE = m % 4;
      localparam integer WIDE = 2 * m % 4;
      reg [7:0] low, high;
      wire low_next = (m == 4 && middle) ? next[0][0] : wide ? next[WIDE][m/2] : next[LANE][m/4];
      wire high_next = (m == 4 && middle) ? next[1][0] : next[WIDE+1][m/2];
      wire [7:0] low_wide = (m < 2) ? early[8*WIDE+:8] : lanes[8*WIDE+:8];
      wire [7:0] low_byte = (m < 4) ? early[8*LANE+:8] : lanes[8*LANE+:8];
      wire [7:0] high_byte = (m < 2) ? early[8*(WIDE+1)+:8] : lanes[8*(WIDE+1)+:8];
      // the first ones are never beyond the end of a group, and receive the delayed bytes
      wire first = m < 2 || m < 4 && !wide;
      wire low_clear = (m == 0 && middle) || used && !first && !low_next;
      wire high_clear = (m == 0 && middle) || !wide || used && m >= 2 && !high_next;
      always @(posedge clk) begin
        if (low_clear) low <= 8'd0;
        else if (low_next || moved && first) low <= wide ? low_wide : low_byte;
        if (high_clear) high <= 8'd0;
        else if (high_next || moved && m < 2) high <= high_byte;
      end
      assign weights[16*m+:16] = {high, low};
    end
  endgenerate

endmodule

`resetall
