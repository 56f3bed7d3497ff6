// SPDX-License-Identifier: Apache-2.0
//
// result_reader: reads a feature map from the AI RAM and outputs it as dense bytes, c, y, x order.
//
// How it works: the row sequencer requests words of PATH bytes while a buffer is free. The buffers are
// filled in turn: one is cut into bus words, the others wait. Free buffers are tracked in registers, so a
// released one is unavailable for three cycles: three buffers for words that may last one cycle, two for
// those of 64 bytes. A line begins at a multiple of 16 bytes, so its bus words are aligned in the word;
// nothing is shifted. They pass a byte gearbox, which closes the gaps between the lines. The last word is
// zero padded. With a path of 128 bytes a row is half a word. For a map of words a buffer is filled by
// four reads, one of each plane: byte k of four is that of plane k.
// Handshake: start (one cycle, ignored while busy) begins a map; dest 0 sends 64-bit words to result_*,
// dest 1 bus words to store_*. unload_req is held until unload_gnt, and the word is sampled in the next
// cycle. done pulses after the last word was accepted. stop (level or pulse) ends everything at once.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module result_reader #(
    // data width of the bus
    parameter AHB_W = 32,
    // bytes of a word of the AI RAM, at least those of the bus
    parameter PATH = 64,
    // derived, not to be set
    parameter PB = $clog2(PATH)
) (
    // clock, synchronous reset, stop
    input  wire              clk,
    input  wire              rst,
    input  wire              stop,
    // map to send: first row, channels - 1, height - 1, width - 1; words of four planes, rows from one
    // channel group to the next; destination
    input  wire              start,
    input  wire [      14:0] base_row,
    input  wire [       9:0] chans_m1,
    input  wire [       8:0] height_m1,
    input  wire [       9:0] width_m1,
    input  wire              words,
    input  wire [      13:0] apart,
    input  wire              dest,
    // read port of the AI RAM
    output wire              unload_req,
    output wire [   20-PB:0] unload_word,
    input  wire              unload_gnt,
    input  wire [8*PATH-1:0] unload_data,
    // the present read is the last one of its channel
    output wire              chan_end,
    // to the result FIFO of the host
    output wire              result_valid,
    input  wire              result_ready,
    output wire [      63:0] result_data,
    // to the write channel of the DMAC
    output wire              store_valid,
    input  wire              store_ready,
    output wire [ AHB_W-1:0] store_data,
    // state
    output reg               busy,
    output reg               done
);

  localparam BW = AHB_W / 8;
  localparam OW = $clog2(BW);
  localparam CW = OW + 1;
  localparam OB = (BW > 8) ? BW : 8;
  localparam UNIT = (BW < 8) ? BW : 8;
  localparam LVL_W = $clog2(OB + 2 * BW + 1);
  localparam TAKE_W = $clog2(OB + 1);
  // a step lies in one row
  localparam WORD = (PATH > 64) ? 64 : PATH;
  localparam WB = $clog2(WORD);
  localparam SLOTS = WORD / BW;
  // word buffers: 2 or 3
  localparam PLACES = (WORD < 64) ? 3 : 2;
  localparam [PLACES-1:0] PLACE_0 = 1;
  localparam [SLOTS-1:0] SLOT_0 = 1;
  localparam [CW-1:0] BW_C = BW[CW-1:0];
  localparam [LVL_W-1:0] BUS_L = BW[LVL_W-1:0];
  localparam [LVL_W-1:0] HOST_L = 8;
  // properties of a step: last of the map, bytes of its last bus word - 1, first block of 16 bytes, bus
  // words - 1 (WB bits hold them)
  localparam INFO_W = 1 + OW + 2 + WB;

  // -------------------------------------------------------------------------------------------
  // reading: one word may be in flight, others pending, in order; cut_*: the one being cut
  // -------------------------------------------------------------------------------------------
  reg               dest_now;
  reg               asking;
  // one bit per buffer in use, each from the grant of its word on
  reg  [PLACES-1:0] taken;
  reg               flight;
  reg  [INFO_W-1:0] flight_info;
  reg               wait_valid;
  reg  [INFO_W-1:0] wait_info;
  reg               behind_valid;
  reg  [INFO_W-1:0] behind_info;
  reg               cut_valid;
  reg               cut_last;
  reg  [    OW-1:0] cut_size;
  reg  [    WB-1:0] cut_left;
  // the buffers, one-hot: target of the next word, the one being cut
  reg  [PLACES-1:0] into;
  reg  [PLACES-1:0] from;

  // the last word is accepted in this cycle
  wire              finish;
  wire              go = start && !busy;
  wire              step = unload_req && unload_gnt;
  wire [       1:0] lane;
  wire [    WB-1:0] size_m1;
  wire              last;
  wire [   20-WB:0] row_word;
  wire [1:0] map_lane, plane, piece;
  wire [WB-1:0] map_size, words_size;
  wire map_last, words_last, map_chan_end, words_chan_end, map_band_end;
  wire [20-WB:0] map_word, words_word;

  row_sequencer #(
      .PATH(WORD)
  ) u_sequencer (
      .clk(clk),
      .start(go),
      .base_row(base_row),
      .chans_m1(chans_m1),
      .height_m1(height_m1),
      .width_m1(width_m1),
      .band(4'd0),
      .apart(14'd0),
      .next(step),
      .word(map_word),
      .lane(map_lane),
      .size_m1(map_size),
      .chan_end(map_chan_end),
      .band_end(map_band_end),
      .last(map_last)
  );

  // sums of 32 bits: a quarter of a word of each of four planes makes a word
  plane_sequencer #(
      .PATH(WORD)
  ) u_planes (
      .clk(clk),
      .start(go),
      .base_row(base_row),
      .chans_m1(chans_m1),
      .height_m1(height_m1),
      .width_m1(width_m1),
      .apart(apart),
      .next(step),
      .word(words_word),
      .piece(piece),
      .plane(plane),
      .size_m1(words_size),
      .chan_end(words_chan_end),
      .last(words_last)
  );
  reg words_now;
  assign row_word = words_now ? words_word : map_word;
  assign lane = words_now ? 2'd0 : map_lane;
  assign size_m1 = words_now ? words_size : map_size;
  assign last = words_now ? words_last : map_last;
  wire unused = map_band_end;
  assign chan_end = step && (words_now ? words_chan_end : map_chan_end);
  // the step reserves a buffer, fills it
  wire opens = step && (!words_now || plane == 2'd0);
  wire fills = !words_now || plane == 2'd3;
  reg  landed;  // the word in flight completes a buffer
  reg [1:0] piece_q, plane_q;
  always @(posedge clk) begin
    if (go) words_now <= words;
    if (step) {piece_q, plane_q} <= {piece, plane};
  end

  // the row of a wider word
  wire [8*WORD-1:0] row_data;
  assign unload_word = row_word[20-WB:PB-WB];
  generate
    if (PATH > WORD) begin : g_halves
      reg upper;
      always @(posedge clk) if (step) upper <= row_word[0];
      assign row_data = upper ? unload_data[8*PATH-1-:8*WORD] : unload_data[8*WORD-1:0];
    end else begin : g_whole
      assign row_data = unload_data;
    end
  endgenerate

  wire [INFO_W-1:0] info = {last, size_m1[OW-1:0], lane, size_m1 >> OW};

  wire gb_ready;
  wire final_slot = (cut_left == {WB{1'b0}});
  wire use_slot = cut_valid && gb_ready;
  wire leave = use_slot && final_slot;
  wire cut_free = !cut_valid || leave;

  assign unload_req = asking && (!taken[PLACES-1] || (words_now && plane != 2'd0));

  always @(posedge clk) begin
    if (rst || stop) begin
      busy <= 1'b0;
      dest_now <= 1'b0;
      asking <= 1'b0;
      taken <= {PLACES{1'b0}};
      flight <= 1'b0;
      landed <= 1'b0;
      flight_info <= {INFO_W{1'b0}};
    end else if (go) begin
      busy <= 1'b1;
      dest_now <= dest;
      asking <= 1'b1;
      taken <= {PLACES{1'b0}};
      flight <= 1'b0;
      landed <= 1'b0;
    end else begin
      busy <= busy && !finish;
      asking <= asking && !(step && last);
      taken  <= (opens == leave) ? taken :
          opens ? {taken[PLACES-2:0], 1'b1} : {1'b0, taken[PLACES-1:1]};
      flight <= step;
      landed <= step && fills;
      if (step) begin
        flight_info <= info;
      end
    end
  end

  wire [INFO_W-1:0] next_info = wait_valid ? wait_info : flight_info;

  // a word is cut at once when none is ahead of it; a word in flight has a buffer, so no further word is
  // queued then
  always @(posedge clk) begin
    if (rst || stop) begin
      wait_valid   <= 1'b0;
      wait_info    <= {INFO_W{1'b0}};
      behind_valid <= 1'b0;
      behind_info  <= {INFO_W{1'b0}};
      into         <= PLACE_0;
      from         <= PLACE_0;
      cut_valid    <= 1'b0;
      cut_last     <= 1'b0;
      cut_size     <= {OW{1'b0}};
      cut_left     <= {WB{1'b0}};
    end else begin
      wait_valid   <= cut_free ? (behind_valid || (wait_valid && landed)) : (wait_valid || landed);
      behind_valid <= !cut_free && (behind_valid || (wait_valid && landed));
      into         <= landed ? {into[PLACES-2:0], into[PLACES-1]} : into;
      from         <= next_from;
      if (cut_free || !wait_valid) begin
        wait_info <= behind_valid ? behind_info : flight_info;
      end
      if (landed) begin
        behind_info <= flight_info;
      end
      if (cut_free) begin
        cut_valid <= wait_valid || landed;
        cut_last  <= next_info[INFO_W-1];
        cut_size  <= next_info[WB+2+:OW];
        cut_left  <= next_info[WB-1:0];
      end else if (use_slot) begin
        cut_left <= cut_left - {{(WB - 1) {1'b0}}, 1'b1};
      end
    end
  end

  wire [PLACES-1:0] next_from = leave ? {from[PLACES-2:0], from[PLACES-1]} : from;

  wire [2*WORD-1:0] quarter = row_data[2*WORD*piece_q+:2*WORD];

  // all buffers in parallel, and their next bus words: one-hot selection, because a wide multiplexer is
  // fast and small that way
  wire [8*PLACES*WORD-1:0] held;
  reg [PLACES*SLOTS-1:0] pick;
  wire [WB-1:0] next_slot = {{(WB - 2) {1'b0}}, next_info[WB+:2]} << (4 - OW);
  wire [SLOTS-1:0] first_pick = SLOT_0 << next_slot;
  genvar g;
  generate
    for (g = 0; g < PLACES; g = g + 1) begin : g_place
      reg [8*WORD-1:0] data;
      integer b;
      always @(posedge clk) begin
        if (flight && into[g]) begin
          for (b = 0; b < WORD; b = b + 1) begin
            if (!words_now || plane_q == b[1:0]) begin
              data[8*b+:8] <= words_now ? quarter[8*(b/4)+:8] : row_data[8*b+:8];
            end
          end
        end
      end
      assign held[8*WORD*g+:8*WORD] = data;
      always @(posedge clk) begin
        if (cut_free) begin
          pick[SLOTS*g+:SLOTS] <= first_pick & {SLOTS{next_from[g]}};
        end else if (use_slot) begin
          pick[SLOTS*g+:SLOTS] <= pick[SLOTS*g+:SLOTS] << 1;
        end
      end
    end
  endgenerate

  reg [AHB_W-1:0] cut_data;
  integer i;
  always @* begin
    cut_data = {AHB_W{1'b0}};
    for (i = 0; i < PLACES * SLOTS; i = i + 1) begin
      cut_data = cut_data | ({AHB_W{pick[i]}} & held[AHB_W*i+:AHB_W]);
    end
  end

  // -------------------------------------------------------------------------------------------
  // packing
  // -------------------------------------------------------------------------------------------
  wire [    CW-1:0] cut_cnt = final_slot ? {1'b0, cut_size} + {{OW{1'b0}}, 1'b1} : BW_C;
  wire [ LVL_W-1:0] avail;
  wire [  8*OB-1:0] window;
  wire [TAKE_W-1:0] take;
  // the gearbox holds all remaining bytes
  reg               tail;

  byte_gearbox #(
      .IN_BYTES (BW),
      .OUT_BYTES(OB),
      .UNIT     (UNIT)
  ) u_gearbox (
      .clk     (clk),
      .rst     (rst),
      .flush   (stop || go),
      .in_valid(cut_valid),
      .in_ready(gb_ready),
      .in_data (cut_data),
      .in_off  ({OW{1'b0}}),
      .in_cnt  (cut_cnt),
      .avail   (avail),
      .out_data(window),
      .take    (take)
  );

  wire [LVL_W-1:0] word = dest_now ? BUS_L : HOST_L;
  wire             short = (avail <= word);
  wire             ready = dest_now ? store_ready : result_ready;
  wire             valid = busy && ((avail >= word) || (tail && avail != {LVL_W{1'b0}}));
  wire             used = valid && ready;
  assign finish = used && tail && short;

  assign take = !used ? {TAKE_W{1'b0}} : short ? avail[TAKE_W-1:0] : word[TAKE_W-1:0];
  assign store_valid = valid && dest_now;
  assign store_data = window[AHB_W-1:0];
  assign result_valid = valid && !dest_now;
  assign result_data = window[63:0];

  always @(posedge clk) begin
    if (rst || stop || go) begin
      tail <= 1'b0;
      done <= 1'b0;
    end else begin
      tail <= !finish && (tail || (leave && cut_last));
      done <= finish;
    end
  end

  generate
    if (PATH < BW) begin : g_illegal
      ILLEGAL_PATH_BELOW_THE_BUS u_illegal ();
    end
  endgenerate

endmodule

`resetall
