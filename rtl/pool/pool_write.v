// SPDX-License-Identifier: Apache-2.0
//
// pool_write: collects the bytes of a pooling task to pieces of 16 and writes them to the output map.
//
// How it works: bytes come in order, some a cycle, and are turned to their place in the piece. A piece
// that is full, or a line's last one, goes to the AI RAM with byte enables; what of a group lies
// behind a full piece begins the next one. The walk over the output map is channel > line > piece.
// Handshake: bytes are taken while move is high; a word waits with writeback_req until
// writeback_gnt. busy from start until the last word is written.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_write #(
    // bytes a cycle; bytes of a word of the AI RAM
    parameter LANES = 4,
    parameter PATH  = 64,
    // derived, not to be set: width of a number of bytes, bits of a byte's number in a word
    parameter CW    = $clog2(LANES) + 1,
    parameter PB    = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    output reg                       busy,
    // bytes
    output wire                      move,
    input  wire                      in_valid,
    input  wire [       8*LANES-1:0] in_byte,
    input  wire [            CW-1:0] in_count,
    input  wire                      in_end,
    // write port of the AI RAM
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt
);

  localparam integer BLOCKS = PATH / 16;

  wire room;
  reg  pending;  // what is behind the last full piece of a line waits
  assign move = room && !pending;
  wire got = in_valid && move;

  // ---- bytes to their places
  reg [3:0] place;  // of the next byte
  reg [127:0] piece;
  reg [15:0] have;
  wire [15:0] here, next;
  wire [127:0] bytes;
  wire [127:0] merged;
  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : g_byte
      localparam [4:0] I = i;
      wire [4:0] number = I - {1'b0, place};  // of the group's byte, modulo 16
      wire hit = {1'b0, number[3:0]} < {{(5 - CW) {1'b0}}, in_count};
      assign here[i] = hit && !number[4];
      assign next[i] = hit && number[4];
      assign bytes[8*i+:8] = in_byte[8*number[CW-2:0]+:8];
      assign merged[8*i+:8] = here[i] ? bytes[8*i+:8] : piece[8*i+:8];
    end
  endgenerate
  wire [4:0] reach = {1'b0, place} + {{(5 - CW) {1'b0}}, in_count};
  wire full = reach[4];
  wire rests = next != 16'd0;
  wire put = pending || (got && (full || in_end));
  wire line_end = pending || (in_end && !rests);

  always @(posedge clk) begin
    if (rst || start) begin
      pending <= 1'b0;
      place <= 4'd0;
      have <= 16'd0;
    end else if (pending) begin
      pending <= !room;
      have <= room ? 16'd0 : have;
    end else if (got) begin
      pending <= in_end && rests;
      place <= in_end ? 4'd0 : reach[3:0];
      have <= put ? next : have | here;
    end
  end
  always @(posedge clk) if (got) piece <= put ? bytes : merged;

  // ---- the output map
  reg [9:0] chan_left;
  reg [8:0] lines_left;
  reg [5:0] k;
  reg [14:0] chan_row, row;
  reg [1:0] sub;
  wire [1:0] op = desc[`DESC_OP];
  wire [10:0] chans_m1 = desc[`DESC_O] - 11'd1;
  wire [9:0] lines_m1 = desc[`DESC_OH] - 10'd1;
  wire row_end = (op == 2'd0) ? sub == 2'd3 : (op == 2'd1) ? sub == 2'd1 : 1'b1;
  wire goes = put && room;
  wire ends_chan = line_end && lines_left == 9'd0;
  wire y_end = goes && ends_chan;
  wire [14:0] next_chan = row_end ? chan_row + {1'b0, desc[`DESC_OCS]} : chan_row;
  wire [16:0] block = {row, 2'b00} + {15'd0, (op == 2'd1) ? {sub[0], 1'b0} : sub} + {11'd0, k};

  always @(posedge clk) begin
    if (start) begin
      {chan_left, lines_left, k} <= {chans_m1[9:0], lines_m1[8:0], 6'd0};
      {chan_row, row, sub} <= {desc[`DESC_DST], desc[`DESC_DST], 2'd0};
    end else if (y_end) begin
      {chan_left, lines_left, k} <= {chan_left - 10'd1, lines_m1[8:0], 6'd0};
      {chan_row, row, sub} <= {next_chan, next_chan, row_end ? 2'd0 : sub + 2'd1};
    end else if (goes && line_end) begin
      {lines_left, k} <= {lines_left - 9'd1, 6'd0};
      row <= row + {10'd0, desc[`DESC_ORL]};
    end else if (goes) begin
      k <= k + 6'd1;
    end
  end

  // ---- to the AI RAM
  wire [15:0] put_be = pending ? have : have | here;
  wire [127:0] put_data = pending ? piece : merged;
  wire [16:0] to_block;
  wire [15:0] to_be;
  wire [127:0] to_data;
  wire to_end;
  wire empty;
  fifo_regs #(
      .WIDTH (1 + 17 + 16 + 128),
      .DEPTH (2),
      .BYPASS(1)
  ) u_words (
      .clk(clk),
      .rst(rst),
      .flush(1'b0),
      .in_valid(put),
      .in_ready(room),
      .in_data({ends_chan, block, put_be, put_data}),
      .out_valid(writeback_req),
      .out_ready(writeback_gnt),
      .out_data({to_end, to_block, to_be, to_data}),
      .empty(empty)
  );
  assign writeback[`ROWWRITE_DATA]  = {BLOCKS{to_data}};
  assign writeback[`ROWWRITE_WORD]  = to_block[16:PB-4];
  assign writeback[`ROWWRITE_CHANS] = {6'd0, to_end};
  generate
    if (BLOCKS > 1) begin : g_part
      assign writeback[`ROWWRITE_BE] = {{(PATH - 16) {1'b0}}, to_be} << {to_block[PB-5:0], 4'd0};
    end else begin : g_whole
      assign writeback[`ROWWRITE_BE] = to_be;
    end
  endgenerate

  reg ended;
  always @(posedge clk) begin
    if (rst) begin
      busy  <= 1'b0;
      ended <= 1'b0;
    end else begin
      busy  <= start || (busy && !(ended && empty));
      ended <= !start && (ended || (y_end && chan_left == 10'd0));
    end
  end

  wire unused = &{1'b0, desc, chans_m1[10], lines_m1[9]};

endmodule

`resetall
