// SPDX-License-Identifier: Apache-2.0
//
// kept_reader: supplies the weight loader with weights kept in the AI RAM (docs/kpu.md 1.14).
//
// How it works: a request addresses bytes of the AI RAM, as one of the DMAC addresses bytes of the
// storage. Its words are read in order into a FIFO, and leave it in pieces of 16 bytes; the first and the
// last one may be partial. The words of a request are read while the pieces of the previous one are
// output, and one more request may be pending.
// Handshake: requests are valid/ready; ram_req is held until ram_gnt, data follow by READ cycles; pieces
// are valid/ready. rst drops everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module kept_reader #(
    // bytes of a word of the AI RAM: 16, 32, 64 or 128
    parameter PATH = 64,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ = 1,
    // derived, not to be set
    parameter PB   = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // requests: byte address in the AI RAM, bytes
    input  wire                  req_valid,
    output wire                  req_ready,
    input  wire [ `REQ_BITS-1:0] req,
    // read port of the AI RAM
    output wire                  ram_req,
    output wire [       20-PB:0] ram_word,
    input  wire                  ram_gnt,
    input  wire [    8*PATH-1:0] ram_data,
    // pieces of 16 bytes
    output wire                  kept_valid,
    input  wire                  kept_ready,
    output wire [`KEPT_BITS-1:0] kept
);

  // enough entries for the words in flight when each is consumed at once
  localparam integer PLACES = READ + 3;
  localparam [2:0] DEPTH = PLACES[2:0];

  // ---- the pending request
  reg waits;
  reg [20:0] w_at;
  reg [23:0] w_len;
  wire [31:0] first = req[`REQ_ADDR];
  wire [23:0] bytes = req[`REQ_LEN];
  wire [20:0] w_end = w_at + w_len[20:0] - 21'd1;
  assign req_ready = !waits;

  // ---- reading: remaining words, words requested that have not left the FIFO
  reg reading;
  reg [20-PB:0] word, last_word;
  reg  [     2:0] held;
  reg  [READ-1:0] on_way;  // granted reads in flight
  wire [  READ:0] on_way_next = {on_way, ram_gnt};
  wire            due = on_way[READ-1];
  wire            pop;
  // ---- pieces: of the active request, and of the next one, already being read
  reg busy, follows;
  reg [PB-1:0] at, n_at;  // next byte, offset in its word
  reg [23:0] left, n_left;
  wire begins = waits && !reading && !follows;
  wire [PB-1:0] piece_end = at | {{(PB - 4) {1'b0}}, 4'd15};
  wire [4:0] room = 5'd16 - {1'b0, at[3:0]};
  wire all = left <= {19'd0, room};
  wire [4:0] count = all ? left[4:0] : room;
  wire [8*PATH-1:0] data;
  wire taken = kept_valid && kept_ready;
  wire over = !busy || (taken && all);  // the next request may become active
  assign pop      = taken && (all || piece_end == {PB{1'b1}});
  assign ram_req  = reading && held != DEPTH;
  assign ram_word = word;

  always @(posedge clk) begin
    if (rst) begin
      waits   <= 1'b0;
      reading <= 1'b0;
      busy    <= 1'b0;
      follows <= 1'b0;
      on_way  <= {READ{1'b0}};
      held    <= 3'd0;
    end else begin
      waits   <= waits ? !begins : req_valid && bytes != 24'd0;
      reading <= begins || (reading && !(ram_gnt && word == last_word));
      busy    <= !over || begins || follows;
      follows <= over ? 1'b0 : begins || follows;
      on_way  <= on_way_next[READ-1:0];
      held    <= held + {2'd0, ram_gnt} - {2'd0, pop};
    end
  end

  always @(posedge clk) begin
    if (!waits) begin
      w_at  <= first[20:0];
      w_len <= bytes;
    end
    if (begins) begin
      word      <= w_at[20:PB];
      last_word <= w_end[20:PB];
      n_at      <= w_at[PB-1:0];
      n_left    <= w_len;
    end else if (ram_gnt) begin
      word <= word + {{(20 - PB) {1'b0}}, 1'b1};
    end
    if (over) begin
      at   <= follows ? n_at : w_at[PB-1:0];
      left <= follows ? n_left : w_len;
    end else if (taken) begin
      at   <= piece_end + {{(PB - 1) {1'b0}}, 1'b1};
      left <= left - {19'd0, count};
    end
  end

  wire fifo_ready;
  wire [2:0] fifo_count;
  fifo_sync #(
      .WIDTH(8 * PATH),
      .DEPTH(PLACES)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .flush    (1'b0),
      .in_valid (due),
      .in_ready (fifo_ready),
      .in_data  (ram_data),
      .out_valid(kept_valid),
      .out_ready(pop),
      .out_data (data),
      .count    (fifo_count)
  );

  wire [127:0] piece;
  generate
    if (PATH == 16) begin : g_whole
      assign piece = data;
    end else begin : g_part
      assign piece = data[{at[PB-1:4], 7'd0}+:128];
    end
  endgenerate
  assign kept[`KEPT_DATA] = piece;
  assign kept[`KEPT_OFF]  = at[3:0];
  assign kept[`KEPT_CNT]  = count;

  // layer_decode keeps the upper bits of an address 0; the FIFO always has room
  wire unused = &{1'b0, req, first[31:21], w_end[PB-1:0], fifo_ready, fifo_count, on_way_next};

endmodule

`resetall
