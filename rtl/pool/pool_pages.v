// SPDX-License-Identifier: Apache-2.0
//
// pool_pages: packs the bytes of a pooling task into pages of 16; the last page of a line may be partial.
//
// How it works: there are two pages. With one byte per cycle a page is filled in place and moves to the
// other, which waits for the AI RAM, while the next one is filled. With more, a group is rotated to its
// position, and its bytes beyond a full page begin the other one; so both are filled and drained
// alternately.
// Handshake: bytes are accepted while move is high, which depends on registers alone; pages are
// valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module pool_pages #(
    // bytes per cycle: 1, 2, 4 or 8
    parameter LANES = 4,
    // derived, not to be set: width of a byte count
    parameter CW    = $clog2(LANES) + 1
) (
    // clock, synchronous reset; drops everything
    input  wire               clk,
    input  wire               rst,
    // bytes: count, last of a line
    output wire               move,
    input  wire               in_valid,
    input  wire [8*LANES-1:0] in_byte,
    input  wire [     CW-1:0] in_count,
    input  wire               in_end,
    // pages, and whether a page ends a line
    output wire               page_valid,
    input  wire               page_ready,
    output wire [      127:0] page,
    output wire               page_end
);

  reg [3:0] place;  // position of the next byte
  wire got = in_valid && move;
  wire sent = page_valid && page_ready;
  wire [4:0] reach = {1'b0, place} + {{(5 - CW) {1'b0}}, in_count};
  wire first_full = got && (reach[4] || in_end);  // the page being filled
  always @(posedge clk) begin
    if (rst) place <= 4'd0;
    else place <= !got ? place : in_end ? 4'd0 : reach[3:0];
  end

  genvar i;
  generate
    if (LANES == 1) begin : g_chain
      reg full, full_end, waits, waits_end, open;
      reg [127:0] filled, waiting;
      wire pass = full && !waits;
      wire next_full = first_full || (full && !pass);
      wire next_waits = pass || (waits && !sent);
      assign move = open;  // not both: all earlier stages depend on it
      always @(posedge clk) begin
        if (rst) {full, waits, open} <= 3'b001;
        else {full, waits, open} <= {next_full, next_waits, !next_full || !next_waits};
      end
      always @(posedge clk) begin
        if (got) full_end <= in_end;
        if (pass) {waits_end, waiting} <= {full_end, filled};
      end
      for (i = 0; i < 16; i = i + 1) begin : g_byte
        localparam [3:0] I = i;
        always @(posedge clk) if (got && place == I) filled[8*i+:8] <= in_byte;
      end
      assign page_valid = waits;
      assign page = waiting;
      assign page_end = waits_end;
    end else begin : g_turns
      localparam integer RB = $clog2(LANES);
      localparam integer MORE = LANES - 1;  // bytes of a group behind its first
      // page being filled, page that leaves; pending pages, and whether a line ends in them
      reg fill, leave;
      reg [1:0] full, line_ends;
      reg [128*2-1:0] pages;
      // the other page is also needed, where a group may end in it
      wire [4:0] far = {1'b0, place} + MORE[4:0];
      assign move = !full[fill] && !(full[!fill] && far[4]);

      wire [LANES-1:0] there;
      wire [16+LANES-1:0] places = {16'd0, there} << place;
      wire [15:0] here = places[15:0];
      wire [15:0] behind = {{(16 - LANES) {1'b0}}, places[16+LANES-1:16]};
      wire rests = behind != 16'd0;
      wire second_full = got && in_end && rests;
      wire [1:0] filled = fill ? {first_full, second_full} : {second_full, first_full};
      wire [1:0] left = {sent && leave, sent && !leave};
      always @(posedge clk) begin
        if (rst) begin
          {fill, leave} <= 2'b00;
          full <= 2'b00;
        end else begin
          fill  <= fill ^ first_full ^ second_full;
          leave <= leave ^ sent;
          full  <= filled | (full & ~left);
        end
      end
      always @(posedge clk) begin
        if (filled[0]) line_ends[0] <= in_end && (fill || !rests);
        if (filled[1]) line_ends[1] <= in_end && (!fill || !rests);
      end

      for (i = 0; i < LANES; i = i + 1) begin : g_there
        assign there[i] = in_count > i;
      end
      for (i = 0; i < 16; i = i + 1) begin : g_byte
        localparam integer AT = i % LANES;
        localparam [RB-1:0] I = AT[RB-1:0];
        wire [RB-1:0] number = I - place[RB-1:0];
        wire [7:0] turned = in_byte[8*number+:8];
        always @(posedge clk) begin
          if (got && (fill ? behind[i] : here[i])) pages[8*i+:8] <= turned;
          if (got && (fill ? here[i] : behind[i])) pages[128+8*i+:8] <= turned;
        end
      end
      assign page_valid = full[leave];
      assign page = leave ? pages[255:128] : pages[127:0];
      assign page_end = line_ends[leave];
      wire unused = &{1'b0, far};
    end
  endgenerate

`ifdef FORMAL_pool_pages
  `include "pool_pages_props.vh"
`endif

endmodule

`resetall
