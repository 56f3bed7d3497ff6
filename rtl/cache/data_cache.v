// SPDX-License-Identifier: Apache-2.0
//
// data_cache: the AI RAM, its arbiter, and the units that move maps in and out of it.
//
// How it works: a memory with a read and a write port; ai_ram_arb grants them to the fill of the tile
// buffer, the map mover, kept_reader, the output stage and the host by priority, and bounds their waits.
// The map mover loads input maps from the pixel stream and unloads output maps; kept_reader reads
// weights that stay here, weight_ring stores and reads those that arrive before the loader accepts them; the
// two share a read port, and weight_ring and the map mover a write port. A reset clears the descriptor of
// the write-back's layer one cycle before the core: writes of that cycle have no bytes enabled.
// Handshake: a requester holds req until gnt; read data follow the grant by READ cycles. The host holds
// window_req until window_ack. Loads and unloads start and end with pulses, see map_mover.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module data_cache #(
    // 64-byte rows, data width of the bus
    parameter ROWS         = 32768,
    parameter AHB_W        = 32,
    // maximum wait of a lower-priority requester in cycles
    parameter PATIENCE     = 8,
    // bytes of a word of the AI RAM, at least those of the bus
    parameter PATH         = 64,
    // 1: weights may be kept here
    parameter KEEP_WEIGHTS = 0,
    // 1: weights that arrive early may wait here
    parameter WEIGHT_AHEAD = 0,
    // 1: maps are moved in pieces of four bytes, see map_mover
    parameter NARROW       = 0,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ         = 1,
    // derived, not to be set
    parameter PB           = $clog2(PATH),
    parameter OW           = $clog2(AHB_W / 8),
    parameter CW           = OW + 1
) (
    // clock, synchronous reset; drop loads and unloads
    input  wire                      clk,
    input  wire                      rst,
    input  wire                      stop,
    // fill of the tile buffer
    input  wire                      fill_req,
    input  wire [           20-PB:0] fill_word,
    output wire                      fill_gnt,
    output wire [        8*PATH-1:0] fill_data,
    // output stage
    input  wire                      writeback_req,
    input  wire [`ROWWRITE_BITS-1:0] writeback,
    output wire                      writeback_gnt,
    // requests of the controller for weights: from the bus, or kept here
    input  wire                      weight_wanted,
    output wire                      weight_granted,
    input  wire                      weight_kept,
    input  wire [     `REQ_BITS-1:0] weight_req,
    output wire                      weight_req_valid,
    input  wire                      weight_req_ready,
    // weights of the bus: from the DMAC, for the loader; rows for those that wait
    input  wire                      early_valid,
    output wire                      early_ready,
    input  wire [    `BEAT_BITS-1:0] early_beat,
    output wire                      weight_valid,
    input  wire                      weight_ready,
    output wire [    `KEPT_BITS-1:0] weight_piece,
    input  wire [   `SPARE_BITS-1:0] spare,
    // kept weights, for the loader
    output wire                      kept_valid,
    input  wire                      kept_ready,
    output wire [    `KEPT_BITS-1:0] kept,
    // host window
    input  wire                      window_req,
    input  wire [  `WINDOW_BITS-1:0] window,
    output wire                      window_ack,
    output wire [              31:0] window_rdata,
    // load: map, a band has arrived; pixel stream
    input  wire                      load_start,
    input  wire [    `LOAD_BITS-1:0] load,
    output wire                      load_band,
    output wire                      load_done,
    input  wire                      pixel_valid,
    output wire                      pixel_ready,
    input  wire [    `BEAT_BITS-1:0] pixel_beat,
    // unload of a map
    input  wire                      unload_start,
    input  wire [  `UNLOAD_BITS-1:0] unload,
    output wire                      unload_done,
    // result words for the host
    output wire                      result_valid,
    input  wire                      result_ready,
    output wire [              63:0] result_data,
    // store channel: request, stream, request completed
    output wire                      store_req_valid,
    input  wire                      store_req_ready,
    output wire [     `REQ_BITS-1:0] store_req,
    output wire                      store_valid,
    input  wire                      store_ready,
    output wire [         AHB_W-1:0] store_data,
    input  wire                      store_done
);

  localparam AW = $clog2(ROWS) + 6 - PB;

  wire load_req, load_gnt, unload_req, unload_gnt, load_busy, unload_busy;
  wire [20-PB:0] load_word, unload_word;
  wire kept_req_valid, kept_req_ready, kept_ram_req, early_write, early_read, weights_gnt, stored_gnt;
  wire [20-PB:0] kept_ram_word, early_write_word, early_read_word;
  wire [8*PATH-1:0] early_data;
  wire [  PATH-1:0] load_be;
  wire [8*PATH-1:0] load_data, rdata;
  wire re, we;
  wire [AW-1:0] raddr, waddr;
  wire [PATH-1:0] wbe;
  wire [8*PATH-1:0] wdata;

  // here and not at the request, which is in the path of every grant
  reg dropped;
  always @(posedge clk) dropped <= rst || stop;
  wire [PATH-1:0] writeback_be = writeback[`ROWWRITE_BE] & {PATH{!dropped}};

  ai_ram_arb #(
      .ROWS(ROWS),
      .PATIENCE(PATIENCE),
      .PATH(PATH),
      .PIECE((NARROW != 0 && WEIGHT_AHEAD == 0) ? 4 : PATH),  // weights that wait are whole words
      .READ(READ)
  ) u_arb (
      .clk(clk),
      .rst(rst),
      .fill_req(fill_req),
      .fill_word(fill_word),
      .fill_gnt(fill_gnt),
      .unload_req(unload_req),
      .unload_word(unload_word),
      .unload_gnt(unload_gnt),
      .kept_req(kept_ram_req || early_read),
      .kept_word(kept_ram_req ? kept_ram_word : early_read_word),
      .kept_gnt(weights_gnt),
      .writeback_req(writeback_req),
      .writeback_word(writeback[`ROWWRITE_WORD]),
      .writeback_be(writeback_be),
      .writeback_data(writeback[`ROWWRITE_DATA]),
      .writeback_gnt(writeback_gnt),
      .load_req(load_req || early_turn),
      .load_word(load_req ? load_word : early_write_word),
      .load_be(load_be | {PATH{!load_req}}),
      .load_data(load_req ? load_data : early_data),
      .load_gnt(stored_gnt),
      .window_req(window_req),
      .window_we(window[`WINDOW_WE]),
      .window_addr(window[`WINDOW_ADDR]),
      .window_wstrb(window[`WINDOW_WSTRB]),
      .window_wdata(window[`WINDOW_WDATA]),
      .window_ack(window_ack),
      .window_rdata(window_rdata),
      .re(re),
      .raddr(raddr),
      .rdata(rdata),
      .we(we),
      .waddr(waddr),
      .wbe(wbe),
      .wdata(wdata)
  );

  ai_ram #(
      .ROWS(ROWS),
      .PATH(PATH),
      .READ(READ)
  ) u_ai_ram (
      .clk(clk),
      .we(we),
      .waddr(waddr),
      .wbe(wbe),
      .wdata(wdata),
      .re(re),
      .raddr(raddr),
      .rdata(rdata)
  );

  assign fill_data = rdata;
  // a map and kept weights go before weights that wait, and use a port in a fraction of the cycles; so does the
  // write-back, until the bus would stall
  assign load_gnt  = stored_gnt && load_req;
  wire early_late;
  wire early_turn = early_write && (!writeback_req || early_late);

  weight_route u_route (
      .wanted(weight_wanted),
      .kept(weight_kept),
      .ready(weight_granted),
      .bus_valid(weight_req_valid),
      .bus_ready(weight_req_ready),
      .kept_valid(kept_req_valid),
      .kept_ready(kept_req_ready)
  );

  generate
    if (WEIGHT_AHEAD != 0) begin : g_ahead
      wire [14:0] first = spare[`SPARE_FIRST];
      wire [15:0] rows = spare[`SPARE_ROWS];
      // rows in words of the AI RAM: of two rows, whole ones only
      wire [20:0] from = {first + {14'd0, PATH > 64 && first[0]}, 6'd0};
      wire [21:0] bytes = {rows - {15'd0, PATH > 64 && first[0] && rows != 16'd0}, 6'd0};
      weight_ring #(
          .AHB_W(AHB_W),
          .PATH (PATH),
          .READ (READ)
      ) u_ring (
          .clk       (clk),
          .rst       (rst || stop),
          .base      (from[20:PB]),
          .words     (bytes[20:PB]),
          .in_valid  (early_valid),
          .in_ready  (early_ready),
          .in_beat   (early_beat),
          .out_valid (weight_valid),
          .out_ready (weight_ready),
          .out_piece (weight_piece),
          .write_req (early_write),
          .write_word(early_write_word),
          .write_data(early_data),
          .write_gnt (stored_gnt && !load_req),
          .write_late(early_late),
          .read_req  (early_read),
          .read_word (early_read_word),
          .read_gnt  (weights_gnt && !kept_ram_req),
          .read_data (rdata)
      );
      wire unused_ahead = &{1'b0, from, bytes};
    end else begin : g_direct
      assign {early_late, early_write, early_read, early_write_word, early_read_word} = {(45 - 2 * PB) {1'b0}};
      assign early_data = {(8 * PATH) {1'b0}};
      assign early_ready = weight_ready;
      assign weight_valid = early_valid;
      // a bus word, in the lower bytes
      wire [127+AHB_W:0] data_16 = {128'd0, early_beat[`BEAT_DATA]};
      wire [3+OW:0] off_16 = {4'd0, early_beat[`BEAT_OFF]};
      wire [4+CW:0] count_16 = {5'd0, early_beat[`BEAT_CNT]};
      assign weight_piece[`KEPT_DATA] = data_16[127:0];
      assign weight_piece[`KEPT_OFF]  = off_16[3:0];
      assign weight_piece[`KEPT_CNT]  = count_16[4:0];
      wire unused_direct = &{1'b0, spare, data_16, off_16, count_16};
    end
  endgenerate

  generate
    if (KEEP_WEIGHTS != 0) begin : g_keep
      kept_reader #(
          .PATH(PATH),
          .READ(READ)
      ) u_kept (
          .clk       (clk),
          .rst       (rst || stop),
          .req_valid (kept_req_valid),
          .req_ready (kept_req_ready),
          .req       (weight_req),
          .ram_req   (kept_ram_req),
          .ram_word  (kept_ram_word),
          .ram_gnt   (weights_gnt && kept_ram_req),
          .ram_data  (rdata),
          .kept_valid(kept_valid),
          .kept_ready(kept_ready),
          .kept      (kept)
      );
    end else begin : g_none
      assign kept_req_ready = 1'b0;
      assign kept_ram_req = 1'b0;
      assign kept_ram_word = {(21 - PB) {1'b0}};
      assign kept_valid = 1'b0;
      assign kept = {`KEPT_BITS{1'b0}};
      wire unused_kept = &{1'b0, kept_req_valid, weight_req, kept_ready, weights_gnt};
    end
  endgenerate

  map_mover #(
      .AHB_W (AHB_W),
      .PATH  (PATH),
      .NARROW(NARROW),
      .READ  (READ)
  ) u_mover (
      .clk(clk),
      .rst(rst),
      .stop(stop),
      .load_start(load_start),
      .load(load),
      .load_busy(load_busy),
      .load_band(load_band),
      .load_done(load_done),
      .pixel_valid(pixel_valid),
      .pixel_ready(pixel_ready),
      .pixel_beat(pixel_beat),
      .load_req(load_req),
      .load_word(load_word),
      .load_be(load_be),
      .load_data(load_data),
      .load_gnt(load_gnt),
      .unload_start(unload_start),
      .unload_map(unload[`UNLOAD_MAP]),
      .unload_adr(unload[`UNLOAD_ADR]),
      .unload_store(unload[`UNLOAD_STORE]),
      .unload_owner(unload[`UNLOAD_OWNER]),
      .unload_words(unload[`UNLOAD_WORDS]),
      .unload_apart(unload[`UNLOAD_APART]),
      .unload_whole(unload[`UNLOAD_WHOLE]),
      .unload_held(unload[`UNLOAD_HELD]),
      .unload_written(writeback[`ROWWRITE_CHANS] & {7{writeback_gnt}}),
      .unload_busy(unload_busy),
      .unload_done(unload_done),
      .unload_req(unload_req),
      .unload_word(unload_word),
      .unload_gnt(unload_gnt),
      .unload_data(rdata),
      .result_valid(result_valid),
      .result_ready(result_ready),
      .result_data(result_data),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req(store_req),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .store_done(store_done)
  );

  wire unused = &{1'b0, load_busy, unload_busy};

endmodule

`resetall
