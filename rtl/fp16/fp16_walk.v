// SPDX-License-Identifier: Apache-2.0
//
// fp16_walk: reads B, a float16 matrix stored row by row in the AI RAM, group by group.
//
// How it works: rows of B are channels of a map, whose layout places them at a fixed distance of 16, 32
// or a multiple of 64 bytes. A group is some columns; the walk is group of rows of A > group of columns >
// row of B, so that B is read once for each group of rows of A. As in pool_walk the next word is a
// registered request, and the returned words enter a FIFO; a request is issued only when the FIFO has
// room for its data. A group begins at a multiple of its size, or, in short rows, of 16 bytes: then only
// its first bytes are valid, and the upper ones are don't-care.
// Handshake: begins with start, with stable counts. fill_req is held until fill_gnt, data arrive READ
// cycles later; words are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module fp16_walk #(
    // columns of a group; bytes of a word of the AI RAM
    parameter COLS = 8,
    parameter PATH = 16,
    // cycles from a grant to the data of the read, see ai_ram
    parameter READ = 1,
    // derived, not to be set: bits of a byte index in a word
    parameter PB   = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; groups of rows of A less one, of columns less one
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [          10:0] a_last,
    input  wire [          13:0] group_last,
    // read port of the AI RAM
    output reg                   fill_req,
    output reg  [       20-PB:0] fill_word,
    input  wire                  fill_gnt,
    input  wire [    8*PATH-1:0] fill_data,
    // columns of a row of B
    output wire                  out_valid,
    input  wire                  out_ready,
    output wire [   16*COLS-1:0] out_data
);

  localparam integer DEPTH = 6;
  localparam [2:0] PLACES = DEPTH[2:0];
  localparam integer GROUP = 2 * COLS;  // bytes of a group
  localparam integer UNIT = (GROUP < 16) ? GROUP : 16;
  localparam integer UNITS = PATH / UNIT;  // of a word
  localparam integer MINE = GROUP / UNIT;  // of a group
  localparam integer UB = $clog2(UNIT);
  localparam [20:0] STEP = GROUP[20:0];

  wire [1:0] ip = desc[`DESC_IP];
  wire [20:0] pitch = (ip == 2'd0) ? 21'd16 : (ip == 2'd1) ? 21'd32 : {1'b0, desc[`DESC_ICS], 6'd0};
  wire [20:0] base = {desc[`DESC_SRC], 6'd0};
  wire [13:0] k_top = desc[`DESC_C] - 14'd1;

  // ---- the walk
  reg active;
  reg [10:0] a_left;
  reg [13:0] k_left;
  reg [13:0] group_left;
  reg [20:0] first, addr;  // byte address of the group's first row, of this row
  wire go;
  wire k_end = k_left == 14'd0;
  wire group_end = k_end && group_left == 14'd0;
  wire a_end = group_end && a_left == 11'd0;
  wire [20:0] next_first = group_end ? base : first + STEP;

  always @(posedge clk) begin
    if (rst) active <= 1'b0;
    else active <= start || (active && !(go && a_end));
  end

  always @(posedge clk) begin
    if (start) begin
      {a_left, group_left, k_left} <= {a_last, group_last, k_top};
      {first, addr} <= {base, base};
    end else if (go && k_end) begin
      a_left <= group_end ? a_left - 11'd1 : a_left;
      group_left <= group_end ? group_last : group_left - 14'd1;
      k_left <= k_top;
      {first, addr} <= {next_first, next_first};
    end else if (go) begin
      k_left <= k_left - 14'd1;
      addr   <= addr + pitch;
    end else begin
      k_left <= k_left;
    end
  end

  // ---- a request, then its data
  reg [READ-1:0] on_way;  // reads in flight
  wire [READ:0] on_way_next;
  wire asked = on_way[READ-1];
  reg [2:0] used;  // FIFO entries in use or reserved
  wire done = fill_req && fill_gnt;
  assign on_way_next = {on_way, done};
  wire pop = out_valid && out_ready;
  assign go = active && used != PLACES && (!fill_req || fill_gnt);

  always @(posedge clk) begin
    if (rst) begin
      fill_req <= 1'b0;
      on_way <= {READ{1'b0}};
      used <= 3'd0;
    end else begin
      fill_req <= go || (fill_req && !fill_gnt);
      on_way <= on_way_next[READ-1:0];
      used <= used + {2'd0, go} - {2'd0, pop};
    end
  end

  always @(posedge clk) begin
    if (go) fill_word <= addr[20:PB];
    else fill_word <= fill_word;
  end

  // ---- the group's bytes in the word
  wire [8*GROUP-1:0] part;
  genvar i;
  generate
    if (UNITS == 1) begin : g_whole
      assign part = fill_data;
    end else begin : g_part
      localparam integer NB = $clog2(UNITS);
      reg [NB-1:0] req_unit;
      reg [NB*READ-1:0] numbers;
      wire [NB*(READ+1)-1:0] numbers_next = {numbers, req_unit};
      wire [NB-1:0] asked_unit = numbers[NB*READ-1-:NB];
      always @(posedge clk) begin
        if (go) req_unit <= addr[PB-1:UB];
        else req_unit <= req_unit;
        numbers <= numbers_next[NB*READ-1:0];
      end
      wire unused_unit = &{1'b0, numbers_next};
      for (i = 0; i < MINE; i = i + 1) begin : g_unit
        localparam [NB-1:0] I = i;
        wire [NB-1:0] at = asked_unit | I;
        assign part[8*UNIT*i+:8*UNIT] = fill_data[8*UNIT*at+:8*UNIT];
      end
    end
  endgenerate

  wire fifo_ready;
  wire [2:0] fifo_count;
  fifo_sync #(
      .WIDTH(8 * GROUP),
      .DEPTH(DEPTH)
  ) u_words (
      .clk(clk),
      .rst(rst),
      .flush(1'b0),
      .in_valid(asked),
      .in_ready(fifo_ready),
      .in_data(part),
      .out_valid(out_valid),
      .out_ready(out_ready),
      .out_data(out_data),
      .count(fifo_count)
  );

  wire unused = &{1'b0, desc, fifo_ready, fifo_count, addr, on_way_next};

endmodule

`resetall
