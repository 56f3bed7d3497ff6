// SPDX-License-Identifier: Apache-2.0
//
// pixel_writer: writes the pixel stream (dense bytes, c, y, x order) into rows of the AI RAM.
//
// How it works: a byte gearbox aligns the stream to pieces of one bus word, which fill a row
// register; a filled step of the row sequencer moves to the output register with its byte enables,
// while the next one is being filled. Bytes of a row that no pixel covers are not touched.
// Handshake: start (one cycle, ignored while busy) begins a map; pixel_ready only while busy, bytes
// beyond the map wait for the next start. A row is offered with load_req until the cycle with
// load_gnt. done pulses after the last row was accepted. stop (level or pulse) drops everything.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module pixel_writer #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1
) (
    // clock, synchronous reset, stop
    input  wire             clk,
    input  wire             rst,
    input  wire             stop,
    // map to load: first row, channels - 1, height - 1, width - 1
    input  wire             start,
    input  wire [     14:0] base_row,
    input  wire [      9:0] chans_m1,
    input  wire [      8:0] height_m1,
    input  wire [      9:0] width_m1,
    // pixel stream of the DMAC
    input  wire             pixel_valid,
    output wire             pixel_ready,
    input  wire [AHB_W-1:0] pixel_data,
    input  wire [   OW-1:0] pixel_off,
    input  wire [   CW-1:0] pixel_cnt,
    // write port of the AI RAM
    output wire             load_req,
    output wire [     14:0] load_row,
    output wire [     63:0] load_be,
    output wire [    511:0] load_data,
    input  wire             load_gnt,
    // state
    output wire             busy,
    output reg              done
);

  localparam BW = AHB_W / 8;
  localparam SLOTS = 64 / BW;
  localparam SW = $clog2(SLOTS);
  localparam LVL_W = $clog2(3 * BW + 1);
  localparam TAKE_W = $clog2(BW + 1);
  localparam [6:0] BW_C = BW[6:0];

  // filling: steps are still to be taken from the sequencer; out_valid: a row waits for its grant
  reg          filling;
  reg          out_valid;
  reg          out_last;
  reg  [ 14:0] out_row;
  reg  [ 63:0] out_be;
  reg  [511:0] out_data;
  reg  [511:0] row_data;
  // bytes of the present step that are in the row register
  reg  [  6:0] fill;

  wire         go = start && !busy;
  wire         step;
  wire [ 14:0] row;
  wire [  1:0] lane;
  wire [  6:0] len;
  wire         last;

  row_sequencer u_sequencer (
      .clk(clk),
      .start(go),
      .base_row(base_row),
      .chans_m1(chans_m1),
      .height_m1(height_m1),
      .width_m1(width_m1),
      .next(step),
      .row(row),
      .lane(lane),
      .len(len),
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
  wire [   6:0] left = len - fill;
  wire          final_piece = (left <= BW_C);
  wire [   6:0] want = final_piece ? left : BW_C;
  wire          there = ({{(7 - LVL_W) {1'b0}}, avail} >= want);
  wire          out_free = !out_valid || load_gnt;
  wire          use_piece = filling && there && (!final_piece || out_free);
  wire [   5:0] place = fill[5:0] | {lane, 4'd0};
  wire [SW-1:0] slot = place[5:OW];

  assign take = use_piece ? want[TAKE_W-1:0] : {TAKE_W{1'b0}};
  assign step = use_piece && final_piece;
  assign pixel_ready = filling && gb_ready;

  // row with the present piece put in
  reg     [511:0] row_data_next;
  integer         i;
  always @* begin
    row_data_next = row_data;
    for (i = 0; i < SLOTS; i = i + 1) begin
      if (slot == i[SW-1:0]) begin
        row_data_next[AHB_W*i+:AHB_W] = piece;
      end
    end
  end

  // byte enables of the step: len ones from its lane on
  wire [63:0] ones = ~(64'hFFFF_FFFF_FFFF_FFFE << (len - 7'd1));
  wire [63:0] be = ones << {lane, 4'd0};

  always @(posedge clk) begin
    if (rst || stop) begin
      filling <= 1'b0;
      fill <= 7'd0;
    end else if (go) begin
      filling <= 1'b1;
      fill <= 7'd0;
    end else if (use_piece) begin
      filling <= !(final_piece && last);
      fill <= final_piece ? 7'd0 : fill + BW_C;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      row_data <= 512'd0;
    end else if (use_piece) begin
      row_data <= row_data_next;
    end
  end

  always @(posedge clk) begin
    if (rst || stop) begin
      out_valid <= 1'b0;
      out_last <= 1'b0;
      out_row <= 15'd0;
      out_be <= 64'd0;
      out_data <= 512'd0;
      done <= 1'b0;
    end else begin
      done <= load_req && load_gnt && out_last;
      out_valid <= step || (out_valid && !load_gnt);
      if (step) begin
        out_last <= last;
        out_row  <= row;
        out_be   <= be;
        out_data <= row_data_next;
      end
    end
  end

  assign load_req = out_valid;
  assign load_row = out_row;
  assign load_be = out_be;
  assign load_data = out_data;
  assign busy = filling || out_valid;

  // pieces start at whole bus words of a row
  wire _unused_ok = &{1'b0, place[OW-1:0]};

endmodule

`resetall
