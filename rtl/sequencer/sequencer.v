// SPDX-License-Identifier: Apache-2.0
//
// sequencer: issues the work of a layer to the array, one array cycle at a time.
//
// How it works: loop_nest generates the issues, issue_credits checks that the operands are available and the
// sums have room, issue_stage registers the issue, lane_ctrl computes the valid lanes and their padding, and
// column_skew delays all of it for the nine columns.
// Handshake: start with a stable descriptor, done when everything has been issued. An issue waits for its
// tile entry and its weight row; one whose sums leave also waits for room in the collector and the
// parameters. The array never stalls. With SUM_PLANES plane_issue issues in parallel with the array.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module sequencer #(
    // array: pixels and output channels (powers of two)
    parameter N_Y        = 4,
    parameter N_Z        = 4,
    // entries of the tile buffer and rows of the weight buffer (powers of two)
    parameter TILE_ROWS  = 32,
    parameter WBUF_ROWS  = 1024,
    // bytes read from the tile buffer at once (128: two entries), width of a parameter row counter
    parameter TILE_W     = 64,
    parameter PRW        = `PROW_BITS,
    // sums that share a post lane; maps of 1x1 layers may be one line; largest dilation
    parameter POST_SHARE = 1,
    parameter FLAT_MAPS  = 0,
    parameter DILATION   = 1,
    // 1: bytes 1 to 3 of 32-bit sums leave while the array continues
    parameter SUM_PLANES = 0,
    // derived, not to be set: lanes, bytes of a tile word, lanes of a depthwise row, widths of an entry
    // index, of addresses, of counters, of a bank index
    parameter L          = N_Y * N_Z,
    parameter TILE_WORD  = (TILE_W > 64) ? 64 : TILE_W,
    parameter LD         = (L < TILE_WORD) ? L : TILE_WORD,
    parameter TE         = $clog2(TILE_ROWS),
    parameter TA         = TE + 6 - $clog2(TILE_WORD),
    parameter WA         = $clog2(WBUF_ROWS),
    parameter TW         = TE + 2,
    parameter WW         = WA + 2,
    parameter ZW         = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer start with its descriptor, absolute parameter row of the layer
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    input  wire [           PRW-1:0] prow_base,
    // weights are kept in their rows; the inference that begins reuses them
    input  wire                      keep,
    input  wire                      reuse,
    // weight rows of a side task: the first one; it has consumed the rows up to skip_to
    output wire [            WW-1:0] ring_row,
    input  wire                      skip,
    input  wire [            WW-1:0] skip_to,
    output wire                      running,
    output wire                      done,
    // tile entries and weight rows: filled, released (running counts)
    input  wire [            TW-1:0] tile_filled,
    output wire [            TW-1:0] tile_freed,
    input  wire [            WW-1:0] wrow_filled,
    output wire [            WW-1:0] wrow_freed,
    // room in the collector, reserved; parameter rows filled, table ready
    input  wire                      row_room,
    output wire                      row_take,
    input  wire [           PRW-1:0] prow_filled,
    input  wire                      act_ready,
    // columns: memory reads (words of the tile buffer; a cycle later weights); control a cycle after them
    output wire [               8:0] column_re,
    output wire [               8:0] column_wre,
    output wire [          9*TA-1:0] column_entry,
    output wire [          9*WA-1:0] column_wrow,
    output wire [9*`COLUMN_BITS-1:0] column_control,
    // an issue was made, a cycle later its tag (bit 1: another byte of kept sums leaves); reason for a
    // missing issue
    output wire                      issued,
    output wire [               1:0] tag_valid,
    output reg  [     `TAG_BITS-1:0] tag,
    output wire                      wait_tile,
    output wire                      wait_weight,
    output wire                      wait_output
);

  localparam PAIR = (TILE_W > 64) ? 1 : 0;

  // ---- position
  wire go, repeats;
  wire [WW-1:0] net_base, block_row;
  wire [`ISSUE_BITS-1:0] issue;
  assign ring_row = repeats ? net_base : block_row;
  // issues of the array, and of the other bytes of sums
  wire nest_running, nest_done, nest_take;
  wire planes_busy, plane_go, plane_take, lanes_busy;
  reg issue_tagged;

  loop_nest #(
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .TILE_WORD (TILE_WORD),
      .PAIR      (PAIR),
      .SUM_PLANES(SUM_PLANES),
      .FLAT_MAPS (FLAT_MAPS),
      .SHARE     (POST_SHARE),
      .TW        (TW),
      .WW        (WW)
  ) u_nest (
      .clk      (clk),
      .rst      (rst),
      .start    (start),
      .desc     (desc),
      .go       (go),
      .running  (nest_running),
      .done     (nest_done),
      .jump     (skip || (start && repeats)),
      .jump_to  (skip ? skip_to : net_base),
      .issue    (issue),
      .block_row(block_row)
  );

  // ---- credits
  issue_credits #(
      .N_Y       (N_Y),
      .N_Z       (N_Z),
      .TILE_ROWS (TILE_ROWS),
      .WBUF_ROWS (WBUF_ROWS),
      .POST_SHARE(POST_SHARE),
      .PRW       (PRW)
  ) u_credits (
      .clk(clk),
      .rst(rst),
      .start(start),
      .desc(desc),
      .prow_base(prow_base),
      .keep(keep),
      .reuse(reuse),
      .repeats(repeats),
      .net_base(net_base),
      .skip(skip),
      .skip_to(skip_to),
      .running(nest_running),
      .issue(issue),
      .go(go),
      .tile_filled(tile_filled),
      .tile_freed(tile_freed),
      .wrow_filled(wrow_filled),
      .wrow_freed(wrow_freed),
      .row_room(row_room),
      .row_take(nest_take),
      .planes_busy(planes_busy),
      .plane_go(plane_go),
      .lanes_busy(lanes_busy),
      .prow_filled(prow_filled),
      .act_ready(act_ready),
      .wait_tile(wait_tile),
      .wait_weight(wait_weight),
      .wait_output(wait_output)
  );

  // ---- other bytes of sums: a layer is done when the last one has been issued
  generate
    if (SUM_PLANES != 0) begin : g_planes
      wire over;
      reg ended;  // the array's last issue was made
      reg [1:0] plane_valid;
      plane_issue u_planes (
          .clk(clk),
          .rst(rst),
          .begins(go && issue[`ISSUE_LAST] && issue[`ISSUE_ENDS] && desc[`DESC_OUT32]),
          .last(issue[`ISSUE_IDX]),
          .row_room(row_room),
          .row_take(plane_take),
          .lanes_busy(lanes_busy),
          .busy(planes_busy),
          .go(plane_go),
          .over(over)
      );
      always @(posedge clk) begin
        if (rst) begin
          ended       <= 1'b0;
          plane_valid <= 2'd0;
        end else begin
          ended       <= (ended && !over) || (nest_done && planes_busy);
          plane_valid <= {plane_valid[0], plane_go};
        end
      end
      assign done = (nest_done && !planes_busy) || (ended && over);
      assign tag_valid = {plane_valid[1], issue_tagged};
    end else begin : g_no_planes
      assign {planes_busy, plane_go, plane_take} = 3'd0;
      assign done = nest_done;
      assign tag_valid = {1'b0, issue_tagged};
      wire unused_lanes = lanes_busy;
    end
  endgenerate
  assign running  = nest_running || planes_busy;
  assign row_take = nest_take || plane_take;

  // ---- the issue
  wire issue_valid;
  wire [`STAGED_BITS-1:0] staged;
  wire [`TAG_BITS-1:0] issue_tag;
  assign issued = issue_valid;
  // the memories have a latency of two cycles
  always @(posedge clk) begin
    if (rst) issue_tagged <= 1'b0;
    else issue_tagged <= issue_valid;
  end
  always @(posedge clk) tag <= issue_tag;

  issue_stage #(
      .DILATION(DILATION),
      .N_Z(N_Z),
      .TE(TE),
      .WA(WA),
      .PRW(PRW)
  ) u_issue (
      .clk      (clk),
      .rst      (rst),
      .desc     (desc),
      .prow_base(prow_base),
      .go       (go),
      .issue    (issue),
      .valid    (issue_valid),
      .staged   (staged),
      .tag      (issue_tag)
  );

  // ---- lanes and columns
  wire [L-1:0] lane_valid, lane_left, lane_right, lane_top, lane_bot;
  wire [7:0] lane_count;
  wire [1:0] mode = desc[`DESC_MODE];
  // registered: an issue comes some cycles after the start of its layer
  reg dw, single, by_slot, ew, one;
  reg [2:0] swl, apart;
  always @(posedge clk) begin
    apart   <= (DILATION > 1) ? desc[`DESC_DIL] : 3'd0;
    dw      <= desc[`DESC_DW];
    single  <= mode == `MODE_FC;
    by_slot <= mode != `MODE_DWROW;
    swl     <= (mode == `MODE_DWROW) ? 3'd4 + {1'b0, desc[`DESC_IP]} : desc[`DESC_SWL];
    ew      <= desc[`DESC_EW];
    one     <= desc[`DESC_ONE];
  end

  lane_ctrl #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .LD(LD),
      .PAIR(PAIR),
      .DILATION(DILATION),
      .TE(TE),
      .WA(WA)
  ) u_lanes (
      .clk(clk),
      .rst(rst),
      .dw(dw),
      .single(single),
      .by_slot(by_slot),
      .swl(swl),
      .apart(apart),
      .issue_valid(issue_valid),
      .staged(staged),
      .valid(lane_valid),
      .left(lane_left),
      .right(lane_right),
      .top(lane_top),
      .bot(lane_bot),
      .count(lane_count)
  );

  // the multiplications of a repeated step are not counted again
  reg again;
  always @(posedge clk) begin
    if (rst) again <= 1'b0;
    else again <= issue_valid && staged[`STAGED_AGAIN];
  end

  // word of the entry that contains the position
  wire [TE-1:0] issue_entry = staged[`STAGED_ENTRY];
  wire [5:0] issue_pos = staged[`STAGED_POS];
  wire [TA-1:0] issue_word;
  generate
    if (TA == TE) begin : g_entry
      assign issue_word = issue_entry;
    end else begin : g_word
      assign issue_word = {issue_entry, issue_pos[5-:TA-TE]};
    end
  endgenerate
  wire unused_pos = &{1'b0, issue_pos};

  // element-wise: the first row of the window is the pad value; with one map so is the last row
  column_skew #(
      .L (L),
      .ZW(ZW),
      .TA(TA),
      .TE(TE),
      .WA(WA)
  ) u_skew (
      .clk(clk),
      .rst(rst),
      .issue_valid(issue_valid),
      .issue_word(issue_word),
      .staged(staged),
      .lane_valid(lane_valid),
      .lane_left(lane_left & {L{!ew}}),
      .lane_right(lane_right & {L{!ew}}),
      .lane_top(ew ? {L{1'b1}} : lane_top),
      .lane_bot(ew ? {L{one}} : lane_bot),
      .lane_count(lane_count & {8{!again}}),
      .re(column_re),
      .entry(column_entry),
      .wre(column_wre),
      .wrow(column_wrow),
      .control(column_control)
  );

endmodule

`resetall
