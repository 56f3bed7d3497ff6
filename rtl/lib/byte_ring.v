// SPDX-License-Identifier: Apache-2.0
//
// byte_ring: the byte gearbox for any window size and any take.
//
// How it works: the bytes lie in a ring of words, one small memory per byte lane. The valid bytes of an
// input word are rotated to the lanes at the ring's end; the words at the ring's start are rotated back,
// so that the oldest byte is on lane 0. A window wider than a word reads a copy of the lanes per word.
// Both rotations are of one word at most, and a consumer whose takes are all multiples of UNIT
// bytes needs less of the second one or none. Bytes beyond `avail` are zero, so a short last window is
// zero padded without further logic.
// Handshake: as byte_gearbox. in_ready depends on the fill level alone (never on take), and
// out_data/avail on registers alone, so there is no combinational path through the module. The consumer
// sets take in 0..min(avail, OUT_BYTES) in the cycle in which it uses the bytes. One input word per cycle
// is sustained as long as the consumer takes OUT_BYTES whenever that many are available.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module byte_ring #(
    // bytes of an input word, a power of two
    parameter IN_BYTES = 4,
    // bytes of the output window, and the maximum of one take
    parameter OUT_BYTES = 18,
    // takes are multiples of this power of two; only a flush may follow any other take
    parameter UNIT = 1,
    // derived widths, not to be set: offset, count of an input word, level, take
    parameter OFF_W = (IN_BYTES > 1) ? $clog2(IN_BYTES) : 1,
    parameter CNT_W = $clog2(IN_BYTES) + 1,
    parameter LVL_W = $clog2(OUT_BYTES + 2 * IN_BYTES + 1),
    parameter TAKE_W = $clog2(OUT_BYTES + 1)
) (
    // clock, synchronous reset, and flush (drops everything, including a word offered in that cycle)
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    // input words: bytes in_off .. in_off + in_cnt - 1 are valid
    input  wire                   in_valid,
    output wire                   in_ready,
    input  wire [ 8*IN_BYTES-1:0] in_data,
    input  wire [      OFF_W-1:0] in_off,
    input  wire [      CNT_W-1:0] in_cnt,
    // window: oldest byte lowest, zero from byte `avail` on
    output wire [      LVL_W-1:0] avail,
    output wire [8*OUT_BYTES-1:0] out_data,
    input  wire [     TAKE_W-1:0] take
);

  localparam CAP = OUT_BYTES + 2 * IN_BYTES;
  localparam [LVL_W-1:0] ROOM = CAP[LVL_W-1:0] - IN_BYTES[LVL_W-1:0];
  // words of the ring: a power of two that holds CAP bytes
  localparam WORD_W = $clog2((CAP + IN_BYTES - 1) / IN_BYTES);
  localparam PTR_W = WORD_W + OFF_W;
  // copies of the lanes; bytes in all copies
  localparam COPIES = (OUT_BYTES + IN_BYTES - 1) / IN_BYTES;
  localparam SEEN = COPIES * IN_BYTES;
  // where takes are multiples of UNIT, these bits of the start offset are zero
  localparam STILL = (UNIT >= IN_BYTES) ? OFF_W : $clog2(UNIT);

  generate
    if (IN_BYTES < 2 || IN_BYTES != (1 << OFF_W) || OUT_BYTES < 1) begin : g_illegal_bytes
      ILLEGAL_BYTES_OF_GEARBOX u_illegal ();
    end
    if (UNIT < 1 || UNIT != (1 << $clog2(UNIT))) begin : g_illegal_unit
      ILLEGAL_UNIT_MUST_BE_A_POWER_OF_TWO u_illegal ();
    end
  endgenerate

  // the ring: level, end (word, lane), start
  reg [LVL_W-1:0] level;
  reg [WORD_W-1:0] end_word;
  reg [OFF_W-1:0] end_lane;
  reg [WORD_W-1:0] first_word;
  reg [OFF_W-1:0] first_lane;

  wire push = in_valid && in_ready;
  wire [PTR_W-1:0] end_next = {end_word, end_lane} + {{(PTR_W - CNT_W) {1'b0}}, in_cnt};
  wire [PTR_W:0] first_sum = {1'b0, first_word, first_lane} + {{(PTR_W + 1 - TAKE_W) {1'b0}}, take};
  wire [LVL_W-1:0] kept = level - {{(LVL_W - TAKE_W) {1'b0}}, take};
  wire [LVL_W-1:0] added = {{(LVL_W - CNT_W) {1'b0}}, push ? in_cnt : {CNT_W{1'b0}}};

  assign in_ready = (level <= ROOM);
  assign avail = level;

  always @(posedge clk) begin
    if (rst || flush) begin
      level <= {LVL_W{1'b0}};
      {end_word, end_lane} <= {PTR_W{1'b0}};
      {first_word, first_lane} <= {PTR_W{1'b0}};
    end else begin
      level <= kept + added;
      {end_word, end_lane} <= push ? end_next : {end_word, end_lane};
      first_word <= first_sum[PTR_W-1:OFF_W];
      first_lane <= first_sum[OFF_W-1:0] & ~{OFF_W{1'b0}} << STILL;
    end
  end

  // ---- into the ring: byte i of the word goes to lane (i + turn) mod IN_BYTES
  wire [     OFF_W-1:0] turn = end_lane - in_off;
  wire [8*IN_BYTES-1:0] turned;
  // lane after the last valid byte, over two words; lanes before it, and before the ring's end
  wire [     OFF_W+1:0] stop = {2'b00, end_lane} + {1'b0, in_cnt};
  wire [2*IN_BYTES-1:0] below_stop = ~({2 * IN_BYTES{1'b1}} << stop);
  wire [    WORD_W-1:0] end_word_1 = end_word + {{(WORD_W - 1) {1'b0}}, 1'b1};
  wire [  IN_BYTES-1:0] below_end = ~({IN_BYTES{1'b1}} << end_lane);

  // ---- out of the ring: SEEN bytes, each on its lane; the first lanes may hold bytes of a later word
  wire [    8*SEEN-1:0] seen;
  wire [  IN_BYTES-1:0] below_first = ~({IN_BYTES{1'b1}} << first_lane);
  wire [ OUT_BYTES-1:0] there = ~({OUT_BYTES{1'b1}} << level);

  genvar l, c, s;
  generate
    for (s = 0; s < OFF_W; s = s + 1) begin : g_turn
      localparam BY = 8 << s;
      wire [8*IN_BYTES-1:0] given;
      wire [8*IN_BYTES-1:0] moved;
      if (s == 0) begin : g_from
        assign given = in_data;
      end else begin : g_from
        assign given = g_turn[s-1].moved;
      end
      assign moved = turn[s] ? {given[8*IN_BYTES-BY-1:0], given[8*IN_BYTES-1-:BY]} : given;
    end
    assign turned = g_turn[OFF_W-1].moved;

    for (l = 0; l < IN_BYTES; l = l + 1) begin : g_lane
      // in the word at the ring's end, or in the next one
      wire we = push && (below_end[l] ? below_stop[l+IN_BYTES] : below_stop[l]);
      wire [WORD_W-1:0] waddr = below_end[l] ? end_word_1 : end_word;

      for (c = 0; c < COPIES; c = c + 1) begin : g_copy
        localparam [WORD_W-1:0] AHEAD = c;
        localparam [WORD_W-1:0] BEHIND = AHEAD + COPIES[WORD_W-1:0];
        wire [WORD_W-1:0] raddr = first_word + ((c == 0 && below_first[l]) ? BEHIND : AHEAD);

        ram_1r1w_async #(
            .WIDTH(8),
            .DEPTH(1 << WORD_W)
        ) u_ram (
            .clk(clk),
            .we(we),
            .waddr(waddr),
            .wdata(turned[8*l+:8]),
            .raddr(raddr),
            .rdata(seen[8*(c*IN_BYTES+l)+:8])
        );
      end
    end

    for (s = 0; s < OFF_W; s = s + 1) begin : g_back
      localparam BY = 8 << s;
      wire [8*SEEN-1:0] given;
      wire [8*SEEN-1:0] moved;
      if (s == 0) begin : g_from
        assign given = seen;
      end else begin : g_from
        assign given = g_back[s-1].moved;
      end
      assign moved = first_lane[s] ? {given[BY-1:0], given[8*SEEN-1:BY]} : given;
    end

    for (l = 0; l < OUT_BYTES; l = l + 1) begin : g_out
      assign out_data[8*l+:8] = g_back[OFF_W-1].moved[8*l+:8] & {8{there[l]}};
    end
  endgenerate

  wire unused = &{1'b0, first_sum[PTR_W], g_back[OFF_W-1].moved};

`ifdef FORMAL_byte_ring
  `include "byte_ring_props.vh"
`endif

endmodule

`resetall
