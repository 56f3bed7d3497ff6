// SPDX-License-Identifier: Apache-2.0
//
// result_reader: reads a feature map from the AI RAM and emits it as dense bytes, c, y, x order.
//
// How it works: the row sequencer asks for the rows; a row that was read waits in a buffer of one
// until the row at work has been cut into bus words; these go through a byte gearbox, which closes
// the gaps between the lines. The last word is zero padded.
// Handshake: start (one cycle, ignored while busy) begins a map; dest 0 sends 64-bit words to
// result_*, dest 1 bus words to store_*. unload_req is held until unload_gnt, and the data of the
// row are taken in the next cycle. done pulses after the last word was accepted. stop (level or
// pulse) ends everything at once.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module result_reader #(
    // data width of the bus
    parameter AHB_W = 32
) (
    // clock, synchronous reset, stop
    input  wire             clk,
    input  wire             rst,
    input  wire             stop,
    // map to send: first row, channels - 1, height - 1, width - 1; where to
    input  wire             start,
    input  wire [     14:0] base_row,
    input  wire [      9:0] chans_m1,
    input  wire [      8:0] height_m1,
    input  wire [      9:0] width_m1,
    input  wire             dest,
    // read port of the AI RAM
    output wire             unload_req,
    output wire [     14:0] unload_row,
    input  wire             unload_gnt,
    input  wire [    511:0] unload_data,
    // to the result FIFO of the host
    output wire             result_valid,
    input  wire             result_ready,
    output wire [     63:0] result_data,
    // to the write channel of the DMAC
    output wire             store_valid,
    input  wire             store_ready,
    output wire [AHB_W-1:0] store_data,
    // state
    output reg              busy,
    output reg              done
);

  localparam BW = AHB_W / 8;
  localparam OW = $clog2(BW);
  localparam CW = OW + 1;
  localparam OB = (BW > 8) ? BW : 8;
  localparam LVL_W = $clog2(OB + 2 * BW + 1);
  localparam TAKE_W = $clog2(OB + 1);
  localparam [6:0] BW_C = BW[6:0];
  localparam [LVL_W-1:0] BUS_L = BW[LVL_W-1:0];
  localparam [LVL_W-1:0] HOST_L = 8;

  // -------------------------------------------------------------------------------------------
  // reading rows: one may be on its way, one may wait in the buffer
  // -------------------------------------------------------------------------------------------
  reg          dest_now;
  reg          asking;
  reg          flight;
  reg  [  7:0] flight_info;
  reg  [  1:0] flight_lane;
  reg          buf_valid;
  reg  [511:0] held;
  reg  [  7:0] buf_info;
  reg          cut_valid;
  reg  [511:0] cut;
  reg  [  7:0] cut_info;

  // the last word is accepted in this cycle
  wire         finish;
  wire         go = start && !busy;
  wire         step = unload_req && unload_gnt;
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

  // row at work: {last, bytes left}
  wire       gb_ready;
  wire [6:0] cut_left = cut_info[6:0];
  wire       cut_last = cut_info[7];
  wire       final_slot = (cut_left <= BW_C);
  wire       use_slot = cut_valid && gb_ready;
  wire       cut_free = !cut_valid || (use_slot && final_slot);
  wire       buf_free = !buf_valid || cut_free;

  assign unload_req = asking && !flight && buf_free;
  assign unload_row = row;

  // the row that arrives, its first valid byte moved to byte 0
  wire [511:0] arrived = unload_data >> {flight_lane, 7'd0};

  always @(posedge clk) begin
    if (rst || stop) begin
      busy <= 1'b0;
      dest_now <= 1'b0;
      asking <= 1'b0;
      flight <= 1'b0;
      flight_info <= 8'd0;
      flight_lane <= 2'd0;
    end else if (go) begin
      busy <= 1'b1;
      dest_now <= dest;
      asking <= 1'b1;
      flight <= 1'b0;
    end else begin
      busy   <= busy && !finish;
      asking <= asking && !(step && last);
      flight <= step;
      if (step) begin
        flight_info <= {last, len};
        flight_lane <= lane;
      end
    end
  end

  // a row goes straight to work when nothing is in front of it
  wire to_cut = flight && cut_free && !buf_valid;

  always @(posedge clk) begin
    if (rst || stop) begin
      buf_valid <= 1'b0;
      held <= 512'd0;
      buf_info <= 8'd0;
      cut_valid <= 1'b0;
      cut <= 512'd0;
      cut_info <= 8'd0;
    end else begin
      buf_valid <= (flight && !to_cut) || (buf_valid && !cut_free);
      if (flight && !to_cut) begin
        held <= arrived;
        buf_info <= flight_info;
      end
      if (cut_free) begin
        cut_valid <= buf_valid || flight;
        cut <= buf_valid ? held : arrived;
        cut_info <= buf_valid ? buf_info : flight_info;
      end else if (use_slot) begin
        cut <= cut >> AHB_W;
        cut_info <= {cut_last, cut_left - BW_C};
      end
    end
  end

  // -------------------------------------------------------------------------------------------
  // packing
  // -------------------------------------------------------------------------------------------
  wire [    CW-1:0] cut_cnt = final_slot ? cut_left[CW-1:0] : BW_C[CW-1:0];
  wire [ LVL_W-1:0] avail;
  wire [  8*OB-1:0] window;
  wire [TAKE_W-1:0] take;
  // everything is in the gearbox
  reg               tail;

  byte_gearbox #(
      .IN_BYTES (BW),
      .OUT_BYTES(OB)
  ) u_gearbox (
      .clk     (clk),
      .rst     (rst),
      .flush   (stop),
      .in_valid(cut_valid),
      .in_ready(gb_ready),
      .in_data (cut[AHB_W-1:0]),
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
      tail <= !finish && (tail || (use_slot && final_slot && cut_last));
      done <= finish;
    end
  end

endmodule

`resetall
