// SPDX-License-Identifier: Apache-2.0
//
// issue_stage: registers an issue, for lane_ctrl and the columns, and as the tag of its sums.
//
// How it works: the edges of the map follow from the origin of the stripe and the layer's last line and
// column, both in the computed grid; where a pool picks, a last line or column that is not computed is never
// reached. With dilation an edge is as many lines or columns wide, and a stripe may lie within it. loop_nest
// provides the ends of depthwise rows.
// Handshake: none; valid follows go by a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module issue_stage #(
    // array: output channels; largest dilation
    parameter N_Z = 4,
    parameter DILATION = 1,
    // derived, not to be set: width of a bank index
    parameter ZW = $clog2(N_Z),
    // widths of a tile entry and its counter, of a weight row and its counter, of a parameter row counter
    parameter TE = 5,
    parameter TW = TE + 2,
    parameter WA = 10,
    parameter WW = WA + 2,
    parameter PRW = `PROW_BITS
) (
    // clock and synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // layer, its first parameter row; current issue, and it is made
    input  wire [  `DESC_BITS-1:0] desc,
    input  wire [         PRW-1:0] prow_base,
    input  wire                    go,
    input  wire [ `ISSUE_BITS-1:0] issue,
    // registered issue, tag of its sums
    output reg                     valid,
    output reg  [`STAGED_BITS-1:0] staged,
    output wire [   `TAG_BITS-1:0] tag
);

  wire [1:0] mode = desc[`DESC_MODE];
  wire nines = mode == `MODE_CHAN || mode == `MODE_FC;
  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [1:0] stl = desc[`DESC_STL];
  wire new_ph = desc[`DESC_PH];
  wire [3:0] lastn = desc[`DESC_LASTN];

  // ---- registered fields of the layer: nothing is issued in its first cycle
  wire [2:0] apart = (DILATION > 1) ? desc[`DESC_DIL] : 3'd0;  // pixels between taps, less one
  // first column and line at the right and lower edge; below 0 in a map smaller than the edge
  wire [10:0] x_last = n_w - 11'd1 - {10'd0, new_ph} - {8'd0, apart};
  wire [9:0] y_last = n_h - 10'd1 - {7'd0, apart};
  wire x_none = DILATION > 1 && x_last[10];
  wire y_none = DILATION > 1 && y_last[9];
  wire [1:0] skipped = {stl[1], stl != 2'd0};  // position bits that a pick drops
  reg [10:0] x_end;  // these, in the computed grid
  reg [9:0] y_end;
  reg x_met, y_met;  // they are computed
  reg [8:0] taps, last_taps;
  reg rows, vector, ph;
  reg [2:0] far;
  always @(posedge clk) begin
    {rows, vector, ph} <= {mode == `MODE_DWROW, mode == `MODE_FC, new_ph};
    far <= apart;
    x_end <= x_none ? 11'd0 : x_last >> stl;
    y_end <= y_none ? 10'd0 : y_last >> stl;
    x_met <= (x_last[1:0] & skipped) == 2'd0;
    y_met <= (y_last[1:0] & skipped) == 2'd0;
    taps      <= desc[`DESC_EW] ? {2'b10, desc[`DESC_EWOP] == 2'd1, 6'b010010} :
        (nines || desc[`DESC_K3]) ? 9'h1ff : 9'h010;
    last_taps <= nines ? ~(9'h1ff << lastn) : 9'h1ff;
  end

  // ---- the edges
  wire [9:0] gx = issue[`ISSUE_GX];
  wire [8:0] gy = issue[`ISSUE_GY];
  wire [10:0] x_left = x_end - {1'b0, gx};
  wire [9:0] y_left = y_end - {1'b0, gy};
  // the stripe begins within the edge
  wire x_in = DILATION > 1 && x_left[10];
  wire y_in = DILATION > 1 && y_left[9];
  wire right = x_met && (x_in || x_left[10:6] == 5'd0);
  wire bot = y_met && (y_in || y_left[9:2] == 8'd0);
  wire [9:0] y_above = {7'd0, far} - {1'b0, gy};  // line of the stripe, the last one at the upper edge
  wire top = (DILATION > 1) ? !y_above[9] : gy == 9'd0;
  wire [1:0] top_at = (DILATION == 1) ? 2'd0 : (y_above[2] ? 2'd3 : y_above[1:0]);

  wire [`STAGED_BITS-1:0] next;
  wire [TW-1:0] entry = issue[`ISSUE_ENTRY];
  wire [WW-1:0] wrow = issue[`ISSUE_WROW];
  wire last = issue[`ISSUE_LAST];
  assign next[`STAGED_ENTRY]    = entry[TE-1:0];
  assign next[`STAGED_WROW]     = wrow[WA-1:0];
  assign next[`STAGED_WSEL]     = issue[`ISSUE_BANK];
  assign next[`STAGED_TAPS]     = taps & (last_taps | {9{!last}});
  assign next[`STAGED_POS]      = issue[`ISSUE_POS];
  assign next[`STAGED_WIDTH]    = issue[`ISSUE_WIDTH];
  assign next[`STAGED_LINES]    = issue[`ISSUE_LINES];
  assign next[`STAGED_LEFT]     = gx == 10'd0 && !ph;
  assign next[`STAGED_RIGHT]    = rows ? issue[`ISSUE_END_X] : right;
  assign next[`STAGED_RIGHT_AT] = rows ? x_end[5:0] : x_in ? 6'd0 : x_left[5:0];
  assign next[`STAGED_TOP]      = top;
  assign next[`STAGED_TOP_AT]   = top_at;
  assign next[`STAGED_BOT]      = rows ? issue[`ISSUE_END_Y] : bot;
  assign next[`STAGED_BOT_AT]   = y_in ? 2'd0 : y_left[1:0];
  assign next[`STAGED_NZ]       = issue[`ISSUE_NZ];
  assign next[`STAGED_TWO]      = issue[`ISSUE_TWO];
  assign next[`STAGED_TWO_END]  = issue[`ISSUE_TWO_END];
  assign next[`STAGED_AGAIN]    = issue[`ISSUE_PLANE] != 2'd0;

  // ---- tag of the sums: pixel, group, for accumulators and write-back
  wire [9:0] chan = issue[`ISSUE_CHAN];
  wire [`JOB_BITS-1:0] job;
  assign job[`JOB_LINES] = issue[`ISSUE_LINES];
  assign job[`JOB_WIDTH] = issue[`ISSUE_WIDTH];
  assign job[`JOB_GY]    = gy;
  assign job[`JOB_GX]    = gx;
  assign job[`JOB_NZ]    = issue[`ISSUE_NZ];
  assign job[`JOB_CHAN]  = chan;
  assign job[`JOB_PLANE] = issue[`ISSUE_PLANE];
  assign job[`JOB_WHOLE] = issue[`ISSUE_WHOLE];
  wire [`META_BITS-1:0] meta;
  assign meta[`META_JOB]   = job;
  assign meta[`META_PBANK] = rows ? issue[`ISSUE_BANK] : chan[ZW-1:0];
  assign meta[`META_PROW]  = prow_base + {{(PRW - 11) {1'b0}}, issue[`ISSUE_PROW]};
  wire [`TAG_BITS-1:0] sums;
  assign sums[`TAG_META]  = meta;
  // the sum of a fully connected layer is the first pixel of its map
  assign sums[`TAG_POS]   = vector ? 6'd0 : issue[`ISSUE_POS];
  assign sums[`TAG_END]   = issue[`ISSUE_ENDS] && last;
  assign sums[`TAG_LAST]  = last;
  assign sums[`TAG_FIRST] = issue[`ISSUE_FIRST];
  assign sums[`TAG_IDX]   = issue[`ISSUE_IDX];

  reg [`TAG_BITS-1:0] sums_q;
  always @(posedge clk) begin
    if (rst) valid <= 1'b0;
    else valid <= go;
  end
  always @(posedge clk) begin
    staged <= go ? next : staged;
    sums_q <= go ? sums : sums_q;
  end
  assign tag = sums_q;

  wire unused = &{1'b0, desc, issue, entry, wrow, y_above};

endmodule

`resetall
