// SPDX-License-Identifier: Apache-2.0
//
// piece_reader: reads a feature map from the AI RAM and outputs it as dense bytes, up to four per cycle.
//
// How it works: result_reader for small arrays, without buffers for words of the AI RAM. A read covers
// the missing bytes of the present bus word, as far as they lie in one line and in one block of 16 bytes
// (byte_walk); a word is read again for its next bytes. Each of the four bytes from the first one on is
// selected from its quarter of the word; a cycle later they are rotated to their lanes in the bus word,
// which is in a ring of eight. Of a map of planes each read gives one byte. A register follows the ring:
// for the storage, with the bytes behind the last one zeroed; for the host a second register builds words
// of 64 bits.
// Handshake: begin_map, a pulse, samples the start address, and start in the next cycle the map, whose
// size must be stable from there on. dest 0 sends 64-bit words to result_*, dest 1 bus words to store_*.
// unload_req is held until unload_gnt, and the word is sampled READ cycles later. done pulses after the
// last word was accepted. stop (level or pulse) ends everything at once.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module piece_reader #(
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ = 1
) (
    // clock, synchronous reset, stop
    input  wire         clk,
    input  wire         rst,
    input  wire         stop,
    // map to send: first row, channels - 1, height - 1, width - 1; words of four planes, rows from one
    // channel group to the next; destination
    input  wire         begin_map,
    input  wire         start,
    input  wire [ 14:0] base_row,
    input  wire [  9:0] chans_m1,
    input  wire [  8:0] height_m1,
    input  wire [  9:0] width_m1,
    input  wire         words,
    input  wire [ 13:0] apart,
    input  wire         dest,
    // read port of the AI RAM
    output wire         unload_req,
    output wire [ 16:0] unload_word,
    input  wire         unload_gnt,
    input  wire [127:0] unload_data,
    // the present read is the last one of its channel
    output wire         chan_end,
    // to the result FIFO of the host
    output wire         result_valid,
    input  wire         result_ready,
    output wire [ 63:0] result_data,
    // to the write channel of the DMAC
    output wire         store_valid,
    input  wire         store_ready,
    output wire [ 31:0] store_data,
    // state
    output reg          busy,
    output reg          done
);

  // ---- reads: requested bytes of the present bus word, its index in the ring
  reg asking;
  reg [1:0] fill;
  reg [2:0] into;
  // words of the ring before this one are complete; the next one to leave
  wire [2:0] there;
  reg [2:0] from;
  wire [3:0] at;
  wire [1:0] count_m1;
  wire walk_chan_end, walk_band_end, last, full;
  wire [2:0] used = into - from;
  wire [2:0] fill_next = {1'b0, fill} + {1'b0, count_m1} + 3'd1;
  wire step = unload_req && unload_gnt;
  // the word being filled has an entry behind those in use: seven at most, since one may be added before
  // room reflects it
  reg room;
  always @(posedge clk) room <= used < 3'd6;
  assign unload_req = asking && room;
  reg by_plane;
  always @(posedge clk) by_plane <= words;
  assign chan_end = step && walk_chan_end;

  byte_walk #(
      .PLANES(1)
  ) u_walk (
      .clk      (clk),
      .start    (begin_map),
      .base_row (base_row),
      .chans_m1 (chans_m1),
      .height_m1(height_m1),
      .width_m1 (width_m1),
      .words    (words),
      .apart    (apart),
      .band     (4'd0),
      .next     (step),
      .most_m1  (~fill & {2{!by_plane}}),
      .block    (unload_word),
      .at       (at),
      .count_m1 (count_m1),
      .full     (full),
      .chan_end (walk_chan_end),
      .band_end (walk_band_end),
      .last     (last)
  );

  // ---- reads in flight: quarter of the word for each byte modulo four, until data arrive; rotation,
  // bytes of the bus word (none without a read), index in the ring, a cycle longer
  wire [3:0] first_lanes = 4'hF << fill;
  wire [3:0] last_lanes = ~(4'hE << (fill + count_m1));
  wire [7:0] quarters = {
    at[3:2], at[3:2] + {1'b0, &at[1:0]}, at[3:2] + {1'b0, at[1]}, at[3:2] + {1'b0, |at[1:0]}
  };
  wire [8:0] placed = {into, fill - at[1:0], first_lanes & last_lanes & {4{step}}};
  reg [8*READ-1:0] quarters_q;
  reg [9*(READ+1)-1:0] placed_q;
  reg [3*(READ+1)-1:0] into_q;
  wire [8*(READ+1)-1:0] quarters_on = {quarters_q, quarters};
  wire [9*(READ+2)-1:0] placed_on = {placed_q, placed};
  wire [3*(READ+2)-1:0] into_on = {into_q, into};
  wire [7:0] quarter = quarters_q[8*READ-1-:8];
  wire [2:0] place;
  wire [1:0] turn;
  wire [3:0] lanes;
  assign {place, turn, lanes} = placed_q[9*(READ+1)-1-:9];
  assign there = into_q[3*(READ+1)-1-:3];
  always @(posedge clk) begin
    quarters_q <= quarters_on[8*READ-1:0];
    placed_q   <= placed_on[9*(READ+1)-1:0];
  end

  // ---- the bytes, and the ring
  reg [31:0] piece;
  wire [31:0] by_one, turned, ring;
  assign by_one = turn[0] ? {piece[23:0], piece[31:24]} : piece;
  assign turned = turn[1] ? {by_one[15:0], by_one[31:16]} : by_one;
  genvar g;
  generate
    for (g = 0; g < 4; g = g + 1) begin : g_lane
      wire [1:0] q = quarter[2*g+:2];
      always @(posedge clk) begin
        piece[8*g+:8] <= q[1] ? (q[0] ? unload_data[96+8*g+:8] : unload_data[64+8*g+:8]) :
            q[0] ? unload_data[32+8*g+:8] : unload_data[8*g+:8];
      end
      ram_1r1w_async #(
          .WIDTH(8),
          .DEPTH(8)
      ) u_ring (
          .clk  (clk),
          .we   (lanes[g]),
          .waddr(place),
          .wdata(turned[8*g+:8]),
          .raddr(from),
          .rdata(ring[8*g+:8])
      );
    end
  endgenerate

  // ---- output: high follows the ring, low pairs it for the host
  reg dest_now, high_valid, low_valid;
  reg [31:0] high, low;
  wire over = !asking && used == 3'd0;  // the ring has drained
  wire final_word = !asking && used == 3'd1;
  wire pair = low_valid && (high_valid || over);
  wire go = high_valid && (dest_now ? store_ready : !low_valid || result_ready);
  wire load = there != from && (go || !high_valid);
  wire finish = busy && over && (dest_now ? high_valid && store_ready : pair && result_ready);
  wire [3:0] ends = (fill == 2'd0) ? 4'd0 : 4'hF << fill;  // bytes behind the last one
  wire drop = rst || stop || start;
  generate
    for (g = 0; g < 4; g = g + 1) begin : g_high
      always @(posedge clk) begin
        if (drop || (go && !load) || (load && final_word && ends[g])) high[8*g+:8] <= 8'd0;
        else if (load) high[8*g+:8] <= ring[8*g+:8];
      end
    end
  endgenerate
  always @(posedge clk) begin
    if (!low_valid) low <= high;
  end
  assign store_valid  = high_valid && dest_now;
  assign store_data   = high;
  assign result_valid = pair && !dest_now;
  assign result_data  = {high, low};

  always @(posedge clk) begin
    if (drop) begin
      fill       <= 2'd0;
      into       <= 3'd0;
      into_q     <= {3 * (READ + 1) {1'b0}};
      from       <= 3'd0;
      high_valid <= 1'b0;
      low_valid  <= 1'b0;
      done       <= 1'b0;
    end else begin
      fill       <= step ? fill_next[1:0] : fill;
      into       <= into + {2'd0, step && (fill_next[2] || last)};
      into_q     <= into_on[3*(READ+1)-1:0];
      from       <= from + {2'd0, load};
      high_valid <= load || (high_valid && !go);
      low_valid  <= !dest_now && ((low_valid && !(pair && result_ready)) || (!low_valid && go));
      done       <= finish;
    end
  end

  always @(posedge clk) begin
    if (rst || stop) begin
      busy     <= 1'b0;
      asking   <= 1'b0;
      dest_now <= 1'b0;
    end else begin
      busy     <= (busy || start) && !finish;
      asking   <= (asking || start) && !(step && last);
      dest_now <= start ? dest : dest_now;
    end
  end

  wire unused = &{1'b0, full, walk_band_end, quarters_on, placed_on, into_on};

endmodule

`resetall
