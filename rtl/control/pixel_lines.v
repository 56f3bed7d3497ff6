// SPDX-License-Identifier: Apache-2.0
//
// pixel_lines: loads a map line by line, of each line all channels, so that its layer can begin early.
//
// How it works: pixels lie in storage in c, y, x order. A request and a load are made for each line
// of each channel: all channels of line 0, then those of line 1 and so on. Requests run ahead of the
// loads as far as the channel of the DMAC takes them. The bytes of a channel, lines times width, are
// added up bit by bit before the first request. Maps are wider than 32 pixels: a channel a row.
// Handshake: start is a pulse; desc stays until done. Requests are valid/ready. Loads begin with
// allow, each waits for load_done of the one before; lines counts the lines that are there, all
// channels of them, done comes with the last one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pixel_lines (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // begin; the layer whose map it is; first byte in the storage, whose transfer it is
    input  wire                   start,
    input  wire [`SHAPE_BITS-1:0] shape,
    input  wire [           31:0] adr,
    input  wire [`OWNER_BITS-1:0] owner,
    // the place in the AI RAM is free
    input  wire                   allow,
    // pixel channel of the DMAC
    output wire                   req_valid,
    input  wire                   req_ready,
    output wire [  `REQ_BITS-1:0] req,
    // load of a line
    output reg                    load_start,
    output wire [  `MAP_BITS-1:0] load_map,
    input  wire                   load_done,
    // lines that are there; the last one is
    output reg  [            9:0] lines,
    output wire                   done
);

  wire [13:0] chans = shape[`SHAPE_C];
  wire [10:0] n_c = chans[10:0];  // of a 3x3 layer: 1024 at most
  wire [10:0] n_w = shape[`SHAPE_W];
  wire [ 9:0] n_h = shape[`SHAPE_H];
  wire [14:0] ics = {1'b0, shape[`SHAPE_ICS]};
  wire [14:0] irl = {10'd0, shape[`SHAPE_IRL]};
  wire [10:0] width_m1 = n_w - 11'd1;

  // ---- bytes of a channel: 512 lines of 960 at most
  reg  [ 9:0] left;
  reg [19:0] plane, part;
  reg adding;
  always @(posedge clk) begin
    if (rst) adding <= 1'b0;
    else adding <= start || (adding && left != 10'd0);
  end
  always @(posedge clk) begin
    if (start) begin
      left  <= n_h;
      plane <= 20'd0;
      part  <= {9'd0, n_w};
    end else if (adding) begin
      left  <= left >> 1;
      plane <= left[0] ? plane + part : plane;
      part  <= part << 1;
    end
  end

  // ---- requests: the next one, and where its line begins in channel 0
  reg        asking;
  reg [10:0] ask_c;
  reg [ 9:0] ask_y;
  reg [31:0] ask_adr, ask_line;
  wire        ask_end = ask_c == n_c - 11'd1;
  wire        asked = req_valid && req_ready;
  wire [31:0] next_line = ask_line + {21'd0, n_w};
  assign req_valid = asking && !adding;
  assign req = {owner, 13'd0, n_w, ask_adr};
  always @(posedge clk) begin
    if (rst) asking <= 1'b0;
    else asking <= start || (asking && !(asked && ask_end && ask_y == n_h - 10'd1));
  end
  always @(posedge clk) begin
    if (start) begin
      ask_c    <= 11'd0;
      ask_y    <= 10'd0;
      ask_adr  <= adr;
      ask_line <= adr;
    end else if (asked) begin
      ask_c    <= ask_end ? 11'd0 : ask_c + 11'd1;
      ask_y    <= ask_end ? ask_y + 10'd1 : ask_y;
      ask_adr  <= ask_end ? next_line : ask_adr + {12'd0, plane};
      ask_line <= ask_end ? next_line : ask_line;
    end
  end

  // ---- loads: the line that is loaded, and the row where it begins in channel 0
  reg loading, waiting;
  reg [10:0] load_c;
  reg [14:0] row, line_row;
  wire load_end = load_c == n_c - 11'd1;
  wire loaded = waiting && load_done;
  wire last_line = lines == n_h - 10'd1;
  wire [14:0] next_row = line_row + irl;
  assign load_map = {width_m1[9:0], 9'd0, 14'd0, row};
  assign done = loaded && load_end && last_line;
  always @(posedge clk) begin
    if (rst) begin
      loading    <= 1'b0;
      waiting    <= 1'b0;
      load_start <= 1'b0;
    end else begin
      loading    <= start || (loading && !done);
      load_start <= loading && allow && !waiting && !load_start;
      waiting    <= load_start || (waiting && !load_done);
    end
  end
  always @(posedge clk) begin
    if (start || rst) begin
      load_c   <= 11'd0;
      lines    <= 10'd0;
      row      <= shape[`SHAPE_SRC];
      line_row <= shape[`SHAPE_SRC];
    end else if (loaded) begin
      load_c   <= load_end ? 11'd0 : load_c + 11'd1;
      lines    <= load_end ? lines + 10'd1 : lines;
      row      <= load_end ? next_row : row + ics;
      line_row <= load_end ? next_row : line_row;
    end else begin
      load_c <= load_c;
    end
  end

  wire unused = &{1'b0, shape, width_m1[10], chans[13:11]};

endmodule

`resetall
