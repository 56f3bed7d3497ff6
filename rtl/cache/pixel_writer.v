// SPDX-License-Identifier: Apache-2.0
//
// pixel_writer: writes the pixel stream (dense bytes, in bands of lines in c, y, x order) into words of the
// AI RAM.
//
// How it works: a byte gearbox aligns the stream to pieces of one bus word, which fill a word of PATH
// bytes; a filled step of the row sequencer moves to the output register with its byte enables, while the
// next one is being filled. Bytes of a row that no pixel covers are not written. With a path of 128 bytes
// a row is half a word.
// Handshake: start (one cycle, ignored while busy) begins a map, which is stable until done; pixel_ready
// only while busy, bytes beyond the map wait for the next start. load_req and its word are held until
// load_gnt. band_done pulses after the last word of a band was accepted, done after that of the map. stop
// (level or pulse) drops everything.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module pixel_writer #(
    // data width of the bus
    parameter AHB_W = 32,
    // bytes of a word of the AI RAM, at least those of the bus
    parameter PATH = 64,
    // derived, not to be set
    parameter PB = $clog2(PATH),
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1
) (
    // clock, synchronous reset, stop
    input  wire              clk,
    input  wire              rst,
    input  wire              stop,
    // map to load: first row, channels - 1, height - 1, width - 1; lines of a band, 0: all; rows from one
    // group of channels to the next
    input  wire              start,
    input  wire [      14:0] base_row,
    input  wire [      13:0] chans_m1,
    input  wire [       8:0] height_m1,
    input  wire [       9:0] width_m1,
    input  wire [       3:0] band,
    input  wire [      13:0] apart,
    // pixel stream of the DMAC
    input  wire              pixel_valid,
    output wire              pixel_ready,
    input  wire [ AHB_W-1:0] pixel_data,
    input  wire [    OW-1:0] pixel_off,
    input  wire [    CW-1:0] pixel_cnt,
    // write port of the AI RAM
    output wire              load_req,
    output wire [   20-PB:0] load_word,
    output wire [  PATH-1:0] load_be,
    output wire [8*PATH-1:0] load_data,
    input  wire              load_gnt,
    // state
    output wire              busy,
    output reg               band_done,
    output reg               done
);

  localparam BW = AHB_W / 8;
  // a step lies in one row
  localparam WORD = (PATH > 64) ? 64 : PATH;
  localparam WB = $clog2(WORD);
  localparam SLOTS = WORD / BW;
  localparam LVL_W = $clog2(3 * BW + 1);
  localparam TAKE_W = $clog2(BW + 1);
  localparam [CW-1:0] BW_C = BW[CW-1:0];

  // filling: steps of the sequencer remain; out_valid: a word waits for its grant
  reg               filling;
  reg               out_valid;
  reg               out_band;
  reg               out_last;
  reg  [   20-WB:0] out_word;
  reg  [  WORD-1:0] out_be;
  reg  [8*WORD-1:0] out_data;
  // complete bus words of the present step
  reg  [    WB-1:0] fill;

  wire              go = start && !busy;
  wire              step;
  wire [   20-WB:0] word;
  wire [       1:0] lane;
  wire [    WB-1:0] size_m1;
  wire              chan_end;
  wire              band_end;
  wire              last;

  row_sequencer #(
      .PATH (WORD),
      .CHAN (14),
      .BANDS(1)
  ) u_sequencer (
      .clk(clk),
      .start(go),
      .base_row(base_row),
      .chans_m1(chans_m1),
      .height_m1(height_m1),
      .width_m1(width_m1),
      .band(band),
      .apart(apart),
      .next(step),
      .word(word),
      .lane(lane),
      .size_m1(size_m1),
      .chan_end(chan_end),
      .band_end(band_end),
      .last(last)
  );

  wire              gb_ready;
  wire [ LVL_W-1:0] avail;
  wire [ AHB_W-1:0] piece;
  wire [TAKE_W-1:0] take;

  byte_gearbox #(
      .IN_BYTES (BW),
      .OUT_BYTES(BW)
  ) u_gearbox (
      .clk     (clk),
      .rst     (rst),
      .flush   (stop),
      .in_valid(pixel_valid && filling),
      .in_ready(gb_ready),
      .in_data (pixel_data),
      .in_off  (pixel_off),
      .in_cnt  (pixel_cnt),
      .avail   (avail),
      .out_data(piece),
      .take    (take)
  );

  // a piece is a whole bus word, or the end of the step
  wire          final_piece = (fill == size_m1 >> OW);
  wire [CW-1:0] want = final_piece ? {1'b0, size_m1[OW-1:0]} + {{OW{1'b0}}, 1'b1} : BW_C;
  wire          there = (avail >= {{(LVL_W - CW) {1'b0}}, want});
  wire          out_free = !out_valid || load_gnt;
  wire          use_piece = filling && there && (!final_piece || out_free);

  assign take = use_piece ? want[TAKE_W-1:0] : {TAKE_W{1'b0}};
  assign step = use_piece && final_piece;
  assign pixel_ready = filling && gb_ready;

  // the word with the present piece inserted
  wire [WB-1:0] slot = fill | {{(WB - 2) {1'b0}}, lane} << (4 - OW);
  wire [8*WORD-1:0] filled;
  genvar g;
  generate
    for (g = 0; g < SLOTS; g = g + 1) begin : g_slot
      localparam [WB-1:0] SLOT = g;
      wire here = slot == SLOT;
      reg [AHB_W-1:0] kept;
      always @(posedge clk) begin
        if (use_piece && here) kept <= piece;
        else kept <= kept;
      end
      assign filled[g*AHB_W+:AHB_W] = here ? piece : kept;
    end
  endgenerate

  // byte enables of the step, whose offset and last byte are counted in blocks of 16 bytes
  wire [     5:0] last_byte = {lane, 4'd0} + {{(6 - WB) {1'b0}}, size_m1};
  wire [     3:0] from_block = 4'b1111 << lane;
  wire [     3:0] below_last = ~(4'b1111 << last_byte[5:4]);
  wire [     3:0] upto_last = {below_last[2:0], 1'b1};
  wire [    15:0] upto_byte = ~(16'hFFFE << last_byte[3:0]);
  wire [WORD-1:0] be;
  generate
    for (g = 0; g < WORD / 16; g = g + 1) begin : g_block
      wire covered = from_block[g] && upto_last[g];
      assign be[16*g+:16] = {16{covered}} & (upto_byte | {16{below_last[g]}});
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || stop) begin
      filling <= 1'b0;
      fill <= {WB{1'b0}};
    end else if (go) begin
      filling <= 1'b1;
      fill <= {WB{1'b0}};
    end else if (use_piece) begin
      filling <= !(final_piece && last);
      fill <= final_piece ? {WB{1'b0}} : fill + {{(WB - 1) {1'b0}}, 1'b1};
    end
  end

  always @(posedge clk) begin
    if (rst || stop) begin
      out_valid <= 1'b0;
      band_done <= 1'b0;
      done <= 1'b0;
    end else begin
      band_done <= load_req && load_gnt && out_band;
      done <= load_req && load_gnt && out_last;
      out_valid <= step || (out_valid && !load_gnt);
    end
  end

  always @(posedge clk) begin
    if (step) begin
      out_band <= band_end;
      out_last <= last;
      out_word <= word;
      out_be   <= be;
      out_data <= filled;
    end
  end

  assign load_req  = out_valid;
  assign load_word = out_word[20-WB:PB-WB];
  assign load_data = {(PATH / WORD) {out_data}};
  generate
    if (PATH > WORD) begin : g_halves
      assign load_be = {out_be & {WORD{out_word[0]}}, out_be & {WORD{!out_word[0]}}};
    end else begin : g_whole
      assign load_be = out_be;
    end
  endgenerate
  assign busy = filling || out_valid;

  // a narrow word has fewer than four blocks; channels do not matter here
  wire unused = &{1'b0, chan_end, from_block, upto_last, below_last};

  generate
    if (PATH < BW) begin : g_illegal
      ILLEGAL_PATH_BELOW_THE_BUS u_illegal ();
    end
  endgenerate

endmodule

`resetall
