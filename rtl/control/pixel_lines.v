// SPDX-License-Identifier: Apache-2.0
//
// pixel_lines: loads a map line by line, each line with all channels, so that its layer can begin early.
//
// How it works: pixels are in storage in c, y, x order. A request and a load are made for each line of each
// channel: all channels of line 0, then those of line 1 and so on. Requests run ahead of the loads as far
// as the channel of the DMAC accepts them, at most one in two cycles: in between a register detects whether
// the next one is the last of a line. The bytes of a channel, lines times width, are added up bit by bit
// before the first request. Maps are wider than 32 pixels: one channel per row.
// Handshake: start is a pulse; shape is stable until done. Requests are valid/ready. Loads begin with
// allow, each after load_done of the previous one; row is the first row of the line. lines counts the lines
// that are loaded in all channels, done coincides with the last one.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pixel_lines (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // start; the map, its channels and lines less one; first byte in the storage, owner of the transfers
    input  wire                   start,
    input  wire [`SHAPE_BITS-1:0] shape,
    input  wire [           10:0] chans_m1,
    input  wire [            9:0] height_m1,
    input  wire [           31:0] adr,
    input  wire [`OWNER_BITS-1:0] owner,
    // the rows in the AI RAM are free
    input  wire                   allow,
    // pixel channel of the DMAC
    output reg                    req_valid,
    input  wire                   req_ready,
    output wire [  `REQ_BITS-1:0] req,
    // load of a line
    output reg                    load_start,
    output reg  [           14:0] row,
    input  wire                   load_done,
    // loaded lines; at least one; all
    output reg  [            9:0] lines,
    output reg                    there,
    output wire                   done
);

  wire [10:0] n_w = shape[`SHAPE_W];
  wire [ 9:0] n_h = shape[`SHAPE_H];
  wire [13:0] ics = shape[`SHAPE_ICS];
  wire [ 4:0] irl = shape[`SHAPE_IRL];

  // ---- bytes of a channel: 512 lines of 960 at most
  reg  [ 9:0] left;
  reg [19:0] plane, part;
  reg  adding;
  wire adds_on = adding && left != 10'd0;
  always @(posedge clk) begin
    if (rst) adding <= 1'b0;
    else adding <= start || adds_on;
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

  // ---- requests: address of the next one, and of its line in channel 0
  reg        asking;  // requests remain
  reg        ask_end;  // the next one is of the last channel
  reg        ask_last;  // ... of the last line
  reg [10:0] ask_c;
  reg [ 9:0] ask_y;
  reg [31:0] ask_adr, ask_line;
  wire        asked = req_valid && req_ready;
  wire [31:0] ask_next = (ask_end ? ask_line : ask_adr) + {12'd0, ask_end ? {9'd0, n_w} : plane};
  assign req = {owner, 13'd0, n_w, ask_adr};
  always @(posedge clk) begin
    if (rst) begin
      asking    <= 1'b0;
      req_valid <= 1'b0;
    end else begin
      asking    <= start || (asking && !(asked && ask_end && ask_last));
      req_valid <= asking && !adds_on && !asked;
    end
  end
  always @(posedge clk) begin
    ask_end  <= ask_c == chans_m1;
    ask_last <= ask_y == height_m1;
    if (start || (asked && ask_end)) ask_c <= 11'd0;
    else ask_c <= asked ? ask_c + 11'd1 : ask_c;
    if (start) ask_y <= 10'd0;
    else ask_y <= (asked && ask_end) ? ask_y + 10'd1 : ask_y;
    ask_adr  <= (start || asked) ? (start ? adr : ask_next) : ask_adr;
    ask_line <= (start || (asked && ask_end)) ? (start ? adr : ask_next) : ask_line;
  end

  // ---- loads: first row of the current one, and of its line in channel 0
  reg loading, waiting;
  reg load_end, last_line;  // of the last channel, the last line; a load takes more than two cycles
  reg [10:0] load_c;
  reg [14:0] line_row;
  wire loaded = waiting && load_done;
  wire [14:0] next_row = (load_end ? line_row : row) + (load_end ? {10'd0, irl} : {1'b0, ics});
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
    load_end  <= load_c == chans_m1;
    last_line <= lines == height_m1;
    there     <= !(start || rst) && (there || (loaded && load_end));
    if (start || rst || (loaded && load_end)) load_c <= 11'd0;
    else load_c <= loaded ? load_c + 11'd1 : load_c;
    if (start || rst) lines <= 10'd0;
    else lines <= (loaded && load_end) ? lines + 10'd1 : lines;
    row <= (start || loaded) ? (start ? shape[`SHAPE_SRC] : next_row) : row;
    line_row <= (start || (loaded && load_end)) ? (start ? shape[`SHAPE_SRC] : next_row) : line_row;
  end

  wire unused = &{1'b0, shape};

endmodule

`resetall
