// SPDX-License-Identifier: Apache-2.0
//
// map_mover: moves feature maps between the AI RAM and the streams of the DMAC.
//
// How it works: pixel_writer writes the dense bytes of an input map into words of the AI RAM (load), whole
// or in bands of lines, and reports each band;
// result_reader reads an output map back as dense bytes (unload), for the storage through the store
// channel, requested as the unload begins, or for the host's result FIFO. A map may be unloaded while it
// is being written: unload_gate releases the finished channels to the reader. With NARROW, for arrays
// that produce a few bytes per cycle, piece_writer and piece_reader replace them.
// Handshake: load_start and unload_start are pulses, answered by load_done and unload_done (the latter
// when the last byte is stored). load must be stable from load_start to load_done, unload_map from the
// cycle before unload_start on. load_band pulses for each band, with load_done for the last one. stop
// drops everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module map_mover #(
    // data width of the bus
    parameter AHB_W = 32,
    // bytes of a word of the AI RAM, at least those of the bus
    parameter PATH = 64,
    // 1: four bytes of a word of the AI RAM at a time; only where AHB_W is 32 and PATH is 16
    parameter NARROW = 0,
    // cycles from a grant to the data of the read, see ai_ram: 1, with NARROW 1 or 3
    parameter READ = 1,
    // derived, not to be set
    parameter PB = $clog2(PATH),
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1
) (
    // clock, synchronous reset, stop
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   stop,
    // load: map, a band has arrived; pixel stream, write port of the AI RAM
    input  wire                   load_start,
    input  wire [ `LOAD_BITS-1:0] load,
    output wire                   load_busy,
    output wire                   load_band,
    output wire                   load_done,
    input  wire                   pixel_valid,
    output wire                   pixel_ready,
    input  wire [ `BEAT_BITS-1:0] pixel_beat,
    output wire                   load_req,
    output wire [        20-PB:0] load_word,
    output wire [       PATH-1:0] load_be,
    output wire [     8*PATH-1:0] load_data,
    input  wire                   load_gnt,
    // unload: map, address in the storage, to the storage or to the host, owner; finished channels, see
    // unload_gate; read port of the AI RAM
    input  wire                   unload_start,
    input  wire [  `MAP_BITS-1:0] unload_map,
    input  wire [           31:0] unload_adr,
    input  wire                   unload_store,
    input  wire [`OWNER_BITS-1:0] unload_owner,
    input  wire                   unload_words,
    input  wire [           13:0] unload_apart,
    input  wire                   unload_whole,
    input  wire                   unload_held,
    input  wire [            6:0] unload_written,
    output wire                   unload_busy,
    output wire                   unload_done,
    output wire                   unload_req,
    output wire [        20-PB:0] unload_word,
    input  wire                   unload_gnt,
    input  wire [     8*PATH-1:0] unload_data,
    // result words for the host
    output wire                   result_valid,
    input  wire                   result_ready,
    output wire [           63:0] result_data,
    // store channel: request, stream, request completed
    output reg                    store_req_valid,
    input  wire                   store_req_ready,
    output wire [  `REQ_BITS-1:0] store_req,
    output wire                   store_valid,
    input  wire                   store_ready,
    output wire [      AHB_W-1:0] store_data,
    input  wire                   store_done
);

  // ---- the map being loaded
  wire [`MAP_BITS-1:0] load_map = load[`LOAD_MAP];

  // ---- the map being unloaded: its bytes
  wire [13:0] map_chans_m1 = unload_map[`MAP_CHANS_M1];
  wire [9:0] chans_m1 = map_chans_m1[9:0];  // an unloaded map has 1024 at most
  wire sized;
  wire [23:0] size;
  map_size u_size (
      .clk(clk),
      .rst(rst),
      .start(unload_start),
      .chans_m1(chans_m1),
      .height_m1(unload_map[`MAP_HEIGHT_M1]),
      .width_m1(unload_map[`MAP_WIDTH_M1]),
      .valid(sized),
      .bytes(size)
  );
  assign store_req = {1'b0, unload_owner, unload_words ? {size[21:0], 2'd0} : size, unload_adr};

  wire read_done;
  reg read_start, read_over, store_over, wanted;
  always @(posedge clk) begin
    if (rst || stop) begin
      read_start      <= 1'b0;
      wanted          <= 1'b0;
      store_req_valid <= 1'b0;
      read_over       <= 1'b0;
      store_over      <= 1'b0;
    end else begin
      read_start <= unload_start;
      wanted <= (unload_start && unload_store) || (wanted && !sized);
      store_req_valid <= (wanted && sized) || (store_req_valid && !store_req_ready);
      read_over <= !unload_start && !unload_done && (read_over || read_done);
      store_over <= !unload_start && !unload_done && (store_over || store_done);
    end
  end
  assign unload_done = (read_over || read_done) && (!unload_store || store_over || store_done);

  wire reads, open, chan_end;
  assign unload_req = reads && open;
  unload_gate u_gate (
      .clk(clk),
      .rst(rst || stop),
      .start(unload_start),
      .width_m1(unload_map[`MAP_WIDTH_M1]),
      .words(unload_words),
      .written(unload_written),
      .whole(unload_whole),
      .held(unload_held),
      .chan_end(chan_end),
      .open(open)
  );

  generate
    if (NARROW != 0) begin : g_narrow
      piece_writer u_load (
          .clk(clk),
          .rst(rst),
          .stop(stop),
          .start(load_start),
          .base_row(load_map[`MAP_BASE]),
          .chans_m1(load_map[`MAP_CHANS_M1]),
          .height_m1(load_map[`MAP_HEIGHT_M1]),
          .width_m1(load_map[`MAP_WIDTH_M1]),
          .band(load[`LOAD_BAND]),
          .apart(load[`LOAD_APART]),
          .pixel_valid(pixel_valid),
          .pixel_ready(pixel_ready),
          .pixel_data(pixel_beat[`BEAT_DATA]),
          .pixel_off(pixel_beat[`BEAT_OFF]),
          .pixel_cnt(pixel_beat[`BEAT_CNT]),
          .load_req(load_req),
          .load_word(load_word),
          .load_be(load_be),
          .load_data(load_data),
          .load_gnt(load_gnt),
          .busy(load_busy),
          .band_done(load_band),
          .done(load_done)
      );
      piece_reader #(
          .READ(READ)
      ) u_unload (
          .clk(clk),
          .rst(rst),
          .stop(stop),
          .begin_map(unload_start),
          .start(read_start),
          .base_row(unload_map[`MAP_BASE]),
          .chans_m1(chans_m1),
          .height_m1(unload_map[`MAP_HEIGHT_M1]),
          .width_m1(unload_map[`MAP_WIDTH_M1]),
          .words(unload_words),
          .apart(unload_apart),
          .dest(unload_store),
          .unload_req(reads),
          .unload_word(unload_word),
          .unload_gnt(unload_gnt && open),
          .unload_data(unload_data),
          .chan_end(chan_end),
          .result_valid(result_valid),
          .result_ready(result_ready),
          .result_data(result_data),
          .store_valid(store_valid),
          .store_ready(store_ready),
          .store_data(store_data),
          .busy(unload_busy),
          .done(read_done)
      );
      if (AHB_W != 32 || PATH != 16) begin : g_illegal
        ILLEGAL_NARROW_NEEDS_BUS_32_PATH_16 u_illegal ();
      end
    end else begin : g_wide
      if (READ != 1) begin : g_illegal
        ILLEGAL_READ_1_WITHOUT_NARROW u_illegal ();
      end
      pixel_writer #(
          .AHB_W(AHB_W),
          .PATH (PATH)
      ) u_load (
          .clk(clk),
          .rst(rst),
          .stop(stop),
          .start(load_start),
          .base_row(load_map[`MAP_BASE]),
          .chans_m1(load_map[`MAP_CHANS_M1]),
          .height_m1(load_map[`MAP_HEIGHT_M1]),
          .width_m1(load_map[`MAP_WIDTH_M1]),
          .band(load[`LOAD_BAND]),
          .apart(load[`LOAD_APART]),
          .pixel_valid(pixel_valid),
          .pixel_ready(pixel_ready),
          .pixel_data(pixel_beat[`BEAT_DATA]),
          .pixel_off(pixel_beat[`BEAT_OFF]),
          .pixel_cnt(pixel_beat[`BEAT_CNT]),
          .load_req(load_req),
          .load_word(load_word),
          .load_be(load_be),
          .load_data(load_data),
          .load_gnt(load_gnt),
          .busy(load_busy),
          .band_done(load_band),
          .done(load_done)
      );
      result_reader #(
          .AHB_W(AHB_W),
          .PATH (PATH)
      ) u_unload (
          .clk(clk),
          .rst(rst),
          .stop(stop),
          .start(read_start),
          .base_row(unload_map[`MAP_BASE]),
          .chans_m1(chans_m1),
          .height_m1(unload_map[`MAP_HEIGHT_M1]),
          .width_m1(unload_map[`MAP_WIDTH_M1]),
          .words(unload_words),
          .apart(unload_apart),
          .dest(unload_store),
          .unload_req(reads),
          .unload_word(unload_word),
          .unload_gnt(unload_gnt && open),
          .unload_data(unload_data),
          .chan_end(chan_end),
          .result_valid(result_valid),
          .result_ready(result_ready),
          .result_data(result_data),
          .store_valid(store_valid),
          .store_ready(store_ready),
          .store_data(store_data),
          .busy(unload_busy),
          .done(read_done)
      );
    end
  endgenerate

  wire unused = &{1'b0, map_chans_m1[13:10]};

endmodule

`resetall
