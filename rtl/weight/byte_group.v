// SPDX-License-Identifier: Apache-2.0
//
// byte_group: cuts a byte stream of bus words into groups of bytes.
//
// How it works: a bus word is rotated so that its next byte comes to the lane where the group
// continues: byte m of a group lies on lane m mod 4, and each register of a lane is written as long
// as it may be the next one. What a word has beyond the end of a group goes to the first registers,
// whose old contents move to a copy for the cycle in which the group is used. So a bus word a
// cycle is taken as long as it ends one group at most. byte_gearbox does the same for wider words
// with a ring and a window of all bytes, for twice the area.
// Handshake: in_ready comes from a register. done says that the group of `want` bytes ends in this
// cycle, it waits for ready; its bytes are on `data` in the cycle after. want stands from the cycle
// after a done, or from the first cycle with run, to the next done. The next group has want_next
// bytes; 0: nothing of it is taken yet. Bytes of `data` beyond `want` are not defined.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_group #(
    // most bytes of a group, at least 5
    parameter BYTES = 18,
    // derived, not to be set: width of a number of bytes
    parameter BW    = $clog2(BYTES + 1)
) (
    // clock and synchronous reset
    input  wire               clk,
    input  wire               rst,
    // bus words: bytes in_off .. in_off + in_cnt - 1 count, one at least
    input  wire               in_valid,
    output wire               in_ready,
    input  wire [       31:0] in_data,
    input  wire [        1:0] in_off,
    input  wire [        2:0] in_cnt,
    // groups: their sizes are known; this one and the next one; may end, ends
    input  wire               run,
    input  wire [     BW-1:0] want,
    input  wire [     BW-1:0] want_next,
    input  wire               ready,
    output wire               done,
    // bytes of the group that ended in the cycle before
    output reg  [8*BYTES-1:0] data
);

  // ---- two bus words: the one whose bytes are taken, and the next one
  reg [31:0] word, word_next;
  reg [1:0] off, off_next;
  reg [2:0] left, left_next;  // bytes that are left; 0: no word
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

  // ---- where the group is
  reg [BW-1:0] pos;
  wire [BW-1:0] need = want - pos;
  wire [BW-1:0] have = {{(BW - 3) {1'b0}}, left};
  wire ends = have >= need;
  wire [2:0] over = left - need[2:0];
  wire apart = pos[BW-1:2] != {(BW - 2) {1'b0}} || need == {BW{1'b0}};
  wire spill = apart && want_next >= {{(BW - 3) {1'b0}}, over};
  assign done = run && ready && ends;
  assign take = !run || ends && !ready ? 3'd0 : ends && !spill ? need[2:0] : left;

  always @(posedge clk) begin
    if (rst) pos <= {BW{1'b0}};
    else if (done) pos <= moves ? {{(BW - 3) {1'b0}}, over} : {BW{1'b0}};
    else pos <= pos + {{(BW - 3) {1'b0}}, take};
  end

  // ---- its bytes: rotated to their lanes; the first registers get what belongs to the next group
  wire moves = done && spill;
  wire [1:0] turn = off - pos[1:0];
  wire [1:0] turn_0 = moves ? turn + want[1:0] : turn;
  wire [31:0] half = turn[1] ? {word[15:0], word[31:16]} : word;
  wire [31:0] lanes = turn[0] ? {half[7:0], half[31:8]} : half;
  wire [31:0] half_0 = turn_0[1] ? {word[15:0], word[31:16]} : word;
  wire [31:0] lanes_0 = turn_0[0] ? {half_0[7:0], half_0[31:8]} : half_0;
  reg [31:0] copy;
  reg moved;
  always @(posedge clk) begin
    moved <= moves;
    copy  <= {g_byte[3].value, g_byte[2].value, g_byte[1].value, g_byte[0].value};
  end

  genvar m;
  generate
    for (m = 0; m < BYTES; m = m + 1) begin : g_byte
      localparam integer LANE = m % 4;
      localparam integer TURN = m / 4;
      // the register of its lane that comes next
      wire [BW-3:0] place;
      if (LANE == 3) begin : g_last
        assign place = pos[BW-1:2];
      end else begin : g_lane
        assign place = pos[BW-1:2] + {{(BW - 3) {1'b0}}, pos[1:0] > LANE[1:0]};
      end
      reg [7:0] value;
      if (m < 4) begin : g_first
        always @(posedge clk) if (moves || place == TURN[BW-3:0]) value <= lanes_0[8*LANE+:8];
        always @* data[8*m+:8] = moved ? copy[8*m+:8] : value;
      end else begin : g_other
        always @(posedge clk) if (place == TURN[BW-3:0]) value <= lanes[8*LANE+:8];
        always @* data[8*m+:8] = value;
      end
    end
  endgenerate

  generate
    if (BYTES < 5) begin : g_illegal
      ILLEGAL_GROUP_BELOW_FIVE_BYTES u_illegal ();
    end
  endgenerate

endmodule

`resetall
