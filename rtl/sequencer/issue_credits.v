// SPDX-License-Identifier: Apache-2.0
//
// issue_credits: decides whether the current issue can be made, from counts of its resources.
//
// How it works: an issue needs its tile entry and its weight row. The sums of a group's last step (depthwise:
// of every issue) leave for the post lanes, so it also needs the parameters, the activation table and room in
// the collector; where POST_SHARE sums share a post lane, it is issued at least that many cycles after the
// previous one; and it waits until the other bytes of earlier sums have left (plane_issue). Resources are
// checked at the start of a sweep over a stripe's pixels. Entries and weight rows are released after their
// last use has been issued, delayed by the nine or ten cycles until the last column of the array has read
// them. While a stream keeps its weights no row is released, and each inference begins at the rows of the
// first one.
// Handshake: go is combinational; the array never stalls. All counts wrap at their width.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module issue_credits #(
    // array: pixels and output channels (powers of two)
    parameter N_Y        = 4,
    parameter N_Z        = 4,
    // entries of the tile buffer and rows of the weight buffer (powers of two)
    parameter TILE_ROWS  = 32,
    parameter WBUF_ROWS  = 1024,
    // sums that share a post lane
    parameter POST_SHARE = 1,
    // derived, not to be set: width of a tile entry counter, weight row counter, bank index
    parameter TW         = $clog2(TILE_ROWS) + 2,
    parameter WW         = $clog2(WBUF_ROWS) + 2,
    parameter ZW         = $clog2(N_Z),
    // width of a parameter row counter
    parameter PRW        = `PROW_BITS
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // layer start with its descriptor, absolute parameter row of the layer
    input  wire                   start,
    input  wire [ `DESC_BITS-1:0] desc,
    input  wire [        PRW-1:0] prow_base,
    // weights are kept in their rows; the inference that begins reuses them
    input  wire                   keep,
    input  wire                   reuse,
    output wire                   repeats,
    output reg  [         WW-1:0] net_base,
    // another unit has consumed the weight rows up to these
    input  wire                   skip,
    input  wire [         WW-1:0] skip_to,
    // current issue, see loop_nest; it is made
    input  wire                   running,
    input  wire [`ISSUE_BITS-1:0] issue,
    output wire                   go,
    // tile entries: filled, released here
    input  wire [         TW-1:0] tile_filled,
    output reg  [         TW-1:0] tile_freed,
    // weight rows: filled by the loader, released here
    input  wire [         WW-1:0] wrow_filled,
    output wire [         WW-1:0] wrow_freed,
    // last step, depthwise: room in the collector, reserved; bytes of earlier sums are pending, one leaves;
    // post lanes busy; parameter rows filled, table ready
    input  wire                   row_room,
    output wire                   row_take,
    input  wire                   planes_busy,
    input  wire                   plane_go,
    output wire                   lanes_busy,
    input  wire [        PRW-1:0] prow_filled,
    input  wire                   act_ready,
    // reason for a missing issue
    output wire                   wait_tile,
    output wire                   wait_weight,
    output wire                   wait_output
);

  // fields of the current issue
  wire [TW-1:0] entry = issue[`ISSUE_ENTRY];
  wire [WW-1:0] wrow = issue[`ISSUE_WROW];
  wire two = issue[`ISSUE_TWO];
  wire fresh = issue[`ISSUE_OPENS];  // resources are checked once per sweep
  wire leaves = issue[`ISSUE_LAST];  // its sums go to the post lanes

  // `go` ends the longest paths of the sequencer, so comparisons are made one cycle ahead, for the current
  // issue and the next. Entries and rows are filled in order and used in order: the one of an issue is filled
  // unless it is the next to be filled, and then as soon as the count changes.
  reg tile_waits, wrow_waits;  // by the previous cycle's counts
  reg  [TW-1:0] tile_q;
  reg  [WW-1:0] wrow_q;
  wire [TW-1:0] entry_next = entry + {{(TW - 2) {1'b0}}, two, !two};
  wire [WW-1:0] wrow_next = wrow + {{(WW - 1) {1'b0}}, 1'b1};
  always @(posedge clk) begin
    tile_q <= tile_filled;
    wrow_q <= wrow_filled;
    tile_waits <= (go && issue[`ISSUE_ENTRY_ON]) ? tile_filled == entry_next : tile_filled == entry;
    wrow_waits <= (go && issue[`ISSUE_WROW_ON]) ? wrow_filled == wrow_next : wrow_filled == wrow;
  end
  wire tile_only = tile_filled == entry + {{(TW - 1) {1'b0}}, 1'b1};  // the following entry is not filled
  wire tile_ok = !(tile_waits && tile_filled == tile_q) && !(two && tile_only);
  wire wrow_ok = !(wrow_waits && wrow_filled == wrow_q);
  // Counts less one: filled parameter rows from the layer's first one on, minus the issue's, minus one, is
  // not negative. Nothing is issued in the first cycle of a layer.
  wire [PRW-1:0] prow_more = prow_filled - prow_base + ~{{(PRW - 11) {1'b0}}, issue[`ISSUE_PROW]};
  wire prow_only = prow_more == {PRW{1'b0}};  // the following row is not filled
  reg prow_ok;
  always @(posedge clk) begin
    prow_ok <= act_ready && !prow_more[PRW-1] && !(go && issue[`ISSUE_PROW_ON] && prow_only);
  end
  wire out_ok = !leaves || (row_room && !planes_busy);
  // departing sums occupy the post lanes for POST_SHARE cycles
  generate
    if (POST_SHARE == 1) begin : g_own_lanes
      assign lanes_busy = 1'b0;
      wire unused_plane = plane_go;
    end else begin : g_shared_lanes
      localparam integer MORE = POST_SHARE - 1;
      localparam [1:0] REST = MORE[1:0];
      reg [1:0] rest;
      always @(posedge clk) begin
        if (rst) rest <= 2'd0;
        else rest <= ((go && leaves) || plane_go) ? REST : (rest == 2'd0) ? 2'd0 : rest - 2'd1;
      end
      assign lanes_busy = rest != 2'd0;
    end
  endgenerate
  // a depthwise row of four channels switches to a second weight row halfway
  reg dw;
  always @(posedge clk) dw <= desc[`DESC_DW];
  wire w_ask = fresh || (N_Z == 2 && dw);
  wire tile_ready = !fresh || (tile_ok && out_ok);
  wire row_ready = !w_ask || (wrow_ok && (!leaves || prow_ok));
  wire ready = tile_ready && row_ready && !(leaves && lanes_busy);
  assign go = running && ready;

  assign wait_tile = running && fresh && !tile_ok;
  assign wait_weight = running && !wait_tile && w_ask && (!wrow_ok || leaves && !prow_ok);
  assign wait_output = running && !wait_tile && !wait_weight && (fresh && !out_ok || leaves && lanes_busy);
  assign row_take = go && leaves && fresh;

  localparam DLY = 9;
  reg [WW-1:0] wrow_used;
  assign repeats = reuse && desc[`DESC_FIRST];
  assign wrow_freed = keep ? net_base : wrow_used;
  reg [2*DLY-1:0] rel_tile_q;
  reg [2*DLY+1:0] rel_wrow_q;
  always @(posedge clk) begin
    if (rst) begin
      rel_tile_q <= {(2 * DLY) {1'b0}};
      rel_wrow_q <= {(2 * DLY + 2) {1'b0}};
      tile_freed <= {TW{1'b0}};
      wrow_used  <= {WW{1'b0}};
      net_base   <= {WW{1'b0}};
    end else begin
      rel_tile_q <= {rel_tile_q[2*DLY-3:0], issue[`ISSUE_FREE_ENTRIES] & {2{go}}};
      rel_wrow_q <= {rel_wrow_q[2*DLY-1:0], issue[`ISSUE_FREE_ROWS] & {2{go}}};
      tile_freed <= tile_freed + {{(TW - 2) {1'b0}}, rel_tile_q[2*DLY-1-:2]};
      // rows after their last use; all are read before an inference ends
      wrow_used  <= skip ? skip_to : (start && repeats) ? net_base :
          wrow_used + {{(WW - 2) {1'b0}}, rel_wrow_q[2*DLY+1-:2]};
      net_base <= keep ? net_base : wrow_used;
    end
  end

  generate
    if (N_Y < 2 || N_Y > 16 || (N_Y & (N_Y - 1)) != 0) begin : g_illegal_ny
      ILLEGAL_N_Y_2_4_8_16 u_illegal_ny ();
    end
    if (N_Z < 2 || N_Z > 64 || (N_Z & (N_Z - 1)) != 0) begin : g_illegal_nz
      ILLEGAL_N_Z_2_TO_64 u_illegal_nz ();
    end
    if (N_Y * N_Z > 128) begin : g_illegal_lanes
      ILLEGAL_MORE_THAN_128_LANES u_illegal_lanes ();
    end
    if (TILE_ROWS < 32 || TILE_ROWS > 2048 || (TILE_ROWS & (TILE_ROWS - 1)) != 0) begin : g_tile
      ILLEGAL_TILE_ROWS_POWER_OF_TWO_32_TO_2048 u_illegal ();
    end
    if (WBUF_ROWS < 64 || WBUF_ROWS > 32768 || (WBUF_ROWS & (WBUF_ROWS - 1)) != 0) begin : g_wbuf
      ILLEGAL_WBUF_ROWS_POWER_OF_TWO_64_TO_32768 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, desc, issue};

endmodule

`resetall
