// SPDX-License-Identifier: Apache-2.0
//
// piece_writer: writes the pixel stream (dense bytes, in bands of lines in c, y, x order) to the AI RAM, up
// to four bytes per cycle.
//
// How it works: pixel_writer for small arrays, without a byte ring and without a word buffer. A bus word
// waits in a register. Each cycle consumes its bytes within one line and one block of 16 bytes
// (byte_walk); the word is rotated into position, and the byte enables select the block's bytes. So a bus
// word costs a cycle, and one more where a block or a line ends within it.
// Handshake: start (one cycle, ignored while busy) begins a map, which is stable until done; pixel_ready
// only while busy, bytes beyond the map wait for the next start. load_req and its piece are held until
// load_gnt. band_done pulses after the last piece of a band was accepted, done after that of the map. stop
// (level or pulse) drops everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module piece_writer (
    // clock, synchronous reset, stop
    input  wire         clk,
    input  wire         rst,
    input  wire         stop,
    // map to load: first row, channels - 1, height - 1, width - 1; lines of a band, 0: all; rows from one
    // group of channels to the next
    input  wire         start,
    input  wire [ 14:0] base_row,
    input  wire [ 13:0] chans_m1,
    input  wire [  8:0] height_m1,
    input  wire [  9:0] width_m1,
    input  wire [  3:0] band,
    input  wire [ 13:0] apart,
    // pixel stream of the DMAC
    input  wire         pixel_valid,
    output wire         pixel_ready,
    input  wire [ 31:0] pixel_data,
    input  wire [  1:0] pixel_off,
    input  wire [  2:0] pixel_cnt,
    // write port of the AI RAM: the same four bytes in each quarter of a word
    output wire         load_req,
    output reg  [ 16:0] load_word,
    output reg  [ 15:0] load_be,
    output wire [127:0] load_data,
    input  wire         load_gnt,
    // state
    output wire         busy,
    output reg          band_done,
    output reg          done
);

  // begun: the walk is set up; filling: steps remain; out_valid: a piece waits for its grant
  reg begun, filling, out_valid, out_band, out_last;
  reg [31:0] out_data;
  // the bus word, its first byte not yet written, such bytes - 1
  reg have;
  reg [31:0] beat;
  reg [1:0] from;
  reg [1:0] left_m1;

  wire [16:0] block;
  wire [3:0] at;
  wire [1:0] count_m1;
  wire last, band_end, chan_end, all;

  wire go = start && !busy;
  wire step = filling && have && (!out_valid || load_gnt);
  wire beat_end = step && all;
  wire take = pixel_valid && pixel_ready;
  assign pixel_ready = filling && (!have || beat_end);
  assign busy = begun || filling || out_valid;

  byte_walk #(
      .CHAN (14),
      .BANDS(1)
  ) u_walk (
      .clk      (clk),
      .start    (go),
      .base_row (base_row),
      .chans_m1 (chans_m1),
      .height_m1(height_m1),
      .width_m1 (width_m1),
      .words    (1'b0),
      .apart    (apart),
      .band     (band),
      .next     (step),
      .most_m1  (left_m1),
      .block    (block),
      .at       (at),
      .count_m1 (count_m1),
      .full     (all),
      .chan_end (chan_end),
      .band_end (band_end),
      .last     (last)
  );

  // ---- byte i of the word goes to byte i + turn of each quarter, modulo four
  wire [ 1:0] turn = at[1:0] - from;
  wire [31:0] by_one = turn[0] ? {beat[23:0], beat[31:24]} : beat;
  wire [31:0] turned = turn[1] ? {by_one[15:0], by_one[31:16]} : by_one;
  // bytes from the start of the quarter in which the piece begins, into the next one
  wire [ 6:0] bytes = ~(7'h7E << count_m1) << at[1:0];
  wire [15:0] be;
  genvar g;
  generate
    for (g = 0; g < 16; g = g + 1) begin : g_be
      localparam integer QUARTER_I = g / 4;
      localparam [1:0] QUARTER = QUARTER_I[1:0];
      localparam [1:0] BEFORE = QUARTER - 2'd1;
      wire here = bytes[g%4] && at[3:2] == QUARTER;
      if (g < 4 || g % 4 == 3) begin : g_here
        assign be[g] = here;
      end else begin : g_next
        assign be[g] = here || (bytes[4+g%4] && at[3:2] == BEFORE);
      end
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || stop) begin
      begun     <= 1'b0;
      filling   <= 1'b0;
      have      <= 1'b0;
      out_valid <= 1'b0;
      band_done <= 1'b0;
      done      <= 1'b0;
    end else begin
      begun     <= go;
      filling   <= begun || (filling && !(step && last));
      have      <= take || (have && !beat_end);
      out_valid <= step || (out_valid && !load_gnt);
      band_done <= out_valid && load_gnt && out_band;
      done      <= out_valid && load_gnt && out_last;
    end
  end

  always @(posedge clk) begin
    if (take) beat <= pixel_data;
    if (take || step) begin
      from    <= take ? pixel_off : from + count_m1 + 2'd1;
      left_m1 <= take ? pixel_cnt[1:0] - 2'd1 : left_m1 - count_m1 - 2'd1;
    end
  end

  always @(posedge clk) begin
    if (step) begin
      out_band  <= band_end;
      out_last  <= last;
      load_word <= block;
      load_be   <= be;
      out_data  <= turned;
    end
  end

  assign load_req  = out_valid;
  assign load_data = {4{out_data}};

  wire unused = &{1'b0, chan_end, pixel_cnt};

endmodule

`resetall
