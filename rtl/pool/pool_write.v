// SPDX-License-Identifier: Apache-2.0
//
// pool_write: writes the bytes of a pooling task to the output map.
//
// How it works: pool_pages packs them into pages of 16 bytes. The walk over the output map, channel >
// line > page, advances with each written page; only the last page of a line is partial, by the same
// amount in all lines.
// Handshake: bytes are accepted while move is high; a page waits with writeback_req until writeback_gnt.
// busy from start until the last page is written.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_write #(
    // bytes per cycle: 1, 2, 4 or 8; bytes of a word of the AI RAM
    parameter LANES = 4,
    parameter PATH  = 64,
    // derived, not to be set: width of a byte count, bits of a byte index in a word
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

  wire [127:0] page;
  wire line_end;
  wire sent = writeback_req && writeback_gnt;
  pool_pages #(
      .LANES(LANES)
  ) u_pages (
      .clk(clk),
      .rst(rst || start),
      .move(move),
      .in_valid(in_valid),
      .in_byte(in_byte),
      .in_count(in_count),
      .in_end(in_end),
      .page_valid(writeback_req),
      .page_ready(writeback_gnt),
      .page(page),
      .page_end(line_end)
  );

  // ---- the output map
  reg [9:0] chan_left;
  reg [8:0] lines_left;
  reg [14:0] chan_row, row;  // of the channel, of the line
  reg [16:0] block;  // 16-byte block of the AI RAM that the page is written to
  reg [1:0] sub;
  wire [1:0] op = desc[`DESC_OP];
  wire [10:0] chans_m1 = desc[`DESC_O] - 11'd1;
  wire [9:0] lines_m1 = desc[`DESC_OH] - 10'd1;
  wire [10:0] columns_m1 = desc[`DESC_OW] - 11'd1;
  wire row_end = (op == 2'd0) ? sub == 2'd3 : (op == 2'd1) ? sub == 2'd1 : 1'b1;
  wire chan_end = line_end && lines_left == 9'd0;
  wire [1:0] next_sub = row_end ? 2'd0 : sub + 2'd1;
  wire [14:0] next_chan = row_end ? chan_row + {1'b0, desc[`DESC_OCS]} : chan_row;
  wire [14:0] next_row = chan_end ? next_chan : row + {10'd0, desc[`DESC_ORL]};
  wire [1:0] new_sub = chan_end ? next_sub : sub;
  // start of a channel in its row
  wire [1:0] new_block = (op == 2'd1) ? {new_sub[0], 1'b0} : new_sub;

  always @(posedge clk) begin
    if (start) begin
      {chan_left, lines_left} <= {chans_m1[9:0], lines_m1[8:0]};
      {chan_row, row, sub} <= {desc[`DESC_DST], desc[`DESC_DST], 2'd0};
      block <= {desc[`DESC_DST], 2'd0};
    end else if (sent && line_end) begin
      chan_left  <= chan_end ? chan_left - 10'd1 : chan_left;
      lines_left <= chan_end ? lines_m1[8:0] : lines_left - 9'd1;
      chan_row   <= chan_end ? next_chan : chan_row;
      {row, sub} <= {next_row, new_sub};
      block      <= {next_row, new_block};
    end else if (sent) begin
      block <= block + 17'd1;
    end
  end

  always @(posedge clk) begin
    if (rst) busy <= 1'b0;
    else busy <= start || (busy && !(sent && chan_end && chan_left == 10'd0));
  end

  // ---- to the AI RAM
  wire [15:0] enable;
  wire [ 4:0] in_last = {1'b0, columns_m1[3:0]} + 5'd1;  // bytes of a line's last piece
  genvar i;
  generate
    for (i = 0; i < 16; i = i + 1) begin : g_enable
      assign enable[i] = !line_end || in_last > i;
    end
  endgenerate
  assign writeback[`ROWWRITE_DATA]  = {BLOCKS{page}};
  assign writeback[`ROWWRITE_WORD]  = block[16:PB-4];
  assign writeback[`ROWWRITE_CHANS] = {6'd0, chan_end};
  generate
    if (BLOCKS > 1) begin : g_part
      assign writeback[`ROWWRITE_BE] = {{(PATH - 16) {1'b0}}, enable} << {block[PB-5:0], 4'd0};
    end else begin : g_whole
      assign writeback[`ROWWRITE_BE] = enable;
    end
  endgenerate

  wire unused = &{1'b0, desc, chans_m1, lines_m1, columns_m1};

endmodule

`resetall
