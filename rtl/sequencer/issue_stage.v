// SPDX-License-Identifier: Apache-2.0
//
// issue_stage: registers an issue: addresses, control of the lanes, and the tag of its sums.
//
// How it works: the position in the loop nest is turned into what the memories, lane_ctrl and the
// accumulators need; the edges of the map that the issue meets say where padding is.
// Handshake: none; valid follows go by a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module issue_stage #(
    // array: output channels
    parameter N_Z = 4,
    // derived, not to be set: width of a bank number
    parameter ZW  = $clog2(N_Z),
    // width of a tile entry and weight row address, of a parameter row counter
    parameter TA  = 5,
    parameter WA  = 10,
    parameter PRW = `PROW_BITS
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // the layer; the present issue is made; its place, see loop_nest
    input  wire [`DESC_BITS-1:0] desc,
    input  wire                  go,
    input  wire [        TA-1:0] entry,
    input  wire [        WA-1:0] wrow,
    input  wire [        ZW-1:0] wbank,
    input  wire [          10:0] grp,
    input  wire [          17:0] step,
    input  wire [           5:0] idx,
    input  wire [           1:0] plane,
    input  wire [           9:0] line,
    input  wire [           3:0] seg,
    input  wire [           9:0] chan,
    input  wire [        ZW-1:0] pass_bank,
    input  wire [           9:0] stripe_gx,
    input  wire [           8:0] stripe_gy,
    input  wire [           5:0] pos,
    input  wire [           6:0] wlim,
    input  wire [           2:0] slots,
    input  wire                  sweep_done,
    input  wire                  step_last,
    input  wire                  seg_last,
    input  wire                  line_last,
    input  wire                  whole,
    input  wire                  two,
    input  wire                  two_last,
    input  wire [       PRW-1:0] use_prow,
    // memories
    output reg                   issue_valid,
    output reg  [        TA-1:0] issue_entry,
    output reg  [        WA-1:0] issue_wrow,
    // lanes, see lane_ctrl
    output reg  [        ZW-1:0] issue_wsel,
    output reg  [           5:0] issue_pos,
    output reg  [           8:0] issue_taps,
    output reg  [           6:0] issue_wlim,
    output reg  [           2:0] issue_slots,
    output reg                   issue_left,
    output reg                   issue_right,
    output reg  [           5:0] issue_rpos,
    output reg                   issue_top,
    output reg                   issue_bot,
    output reg  [           1:0] issue_bslot,
    output reg  [          ZW:0] issue_nz,
    output reg                   issue_two,
    output reg                   issue_two_bot,
    // a last step once more, which does not count
    output wire                  issue_again,
    // sums
    output wire [ `TAG_BITS-1:0] issue_tag
);

  wire [1:0] mode = desc[`DESC_MODE];
  wire dw = desc[`DESC_DW];
  wire k3 = desc[`DESC_K3];
  wire [10:0] n_o = desc[`DESC_O];
  wire [10:0] n_w = desc[`DESC_W];
  wire [9:0] n_h = desc[`DESC_H];
  wire [3:0] lastn = desc[`DESC_LASTN];
  wire [1:0] stl = desc[`DESC_STL];
  wire ph = desc[`DESC_PH];
  wire taps_mode = mode == `MODE_TAPS;
  wire chan_mode = mode == `MODE_CHAN;
  wire dwrow_mode = mode == `MODE_DWROW;
  wire fc_mode = mode == `MODE_FC;
  wire dwst_mode = taps_mode && dw;  // depthwise with pooling
  wire [2:0] swl = dwrow_mode ? 3'd4 + {1'b0, desc[`DESC_IP]} : desc[`DESC_SWL];

  // ---- what the issue means for padding: which lines and columns of the map it meets
  wire [10:0] left_o = n_o - (grp << ZW);
  wire [ZW:0] nz = (left_o >= N_Z[10:0]) ? N_Z[ZW:0] : left_o[ZW:0];
  // line of the input under slot 0 and under this slot
  wire [1:0] slot_now = pos[5:4] >> (swl - 3'd4);
  wire [9:0] y_first = {1'b0, stripe_gy} << stl;
  wire [9:0] y_now = ({1'b0, stripe_gy} + {8'd0, slot_now}) << stl;
  wire [9:0] y_last_off = (n_h - 10'd1 - y_first) >> stl;  // slot of the last line, if it is met
  wire y_last_hit = (((n_h - 10'd1) & ((10'd1 << stl) - 10'd1)) == 10'd0) && y_last_off < 10'd4;
  wire [10:0] x_last = n_w - 11'd1 - {10'd0, ph};  // picked column that ends the line
  wire x_last_hit = (x_last & ((11'd1 << stl) - 11'd1)) == 11'd0;
  wire [10:0] x_last_off = (x_last >> stl) - {1'b0, stripe_gx};
  // width of the row of a depthwise line
  wire [10:0] seg_left = n_w - {1'b0, seg, 6'd0};
  wire [6:0] row_width = (seg_left > 11'd64) ? 7'd64 : seg_left[6:0];
  wire [3:0] last_taps = step_last ? lastn : 4'd9;
  wire [8:0] chan_taps = ~(9'h1ff << last_taps);

  // of the group, for drain and write-back
  reg first_q, last_q, end_q, whole_q;
  reg [    5:0] idx_q;
  reg [PRW-1:0] prow_q;
  reg [9:0] chan_q, gx_q;
  reg [8:0] gy_q;
  reg [6:0] width_q;
  reg [2:0] lines_q;
  reg [1:0] plane_q;
  assign issue_again = plane_q != 2'd0;

  always @(posedge clk) begin
    if (rst) issue_valid <= 1'b0;
    else issue_valid <= go;
  end

  always @(posedge clk) begin
    if (go) begin
      issue_entry <= entry;
      issue_wrow <= wrow;
      issue_wsel <= dw ? pass_bank : fc_mode ? wbank : {ZW{1'b0}};
      issue_pos <= pos;
      issue_taps <= desc[`DESC_EW] ? {2'b10, desc[`DESC_EWOP] == 2'd1, 6'b010010} : (chan_mode || fc_mode) ? chan_taps : k3 ? 9'h1ff : 9'h010;
      issue_wlim <= fc_mode ? 7'd64 : wlim;
      issue_slots <= fc_mode ? 3'd1 : slots;
      issue_left <= dwrow_mode ? seg == 4'd0 : stripe_gx == 10'd0 && !ph;
      issue_rpos <= dwrow_mode ? row_width[5:0] - 6'd1 : x_last_off[5:0];
      issue_right <= dwrow_mode ? seg_last : x_last_hit && x_last_off < 11'd64;
      issue_top <= dwrow_mode ? line == 10'd0 : dwst_mode ? stripe_gy == 9'd0 : y_now == 10'd0;
      issue_bot <= dwrow_mode ? line_last : dwst_mode ? y_last_hit : y_now == n_h - 10'd1;
      issue_bslot <= y_last_off[1:0];
      issue_two <= two;
      issue_two_bot <= two_last;
      // depthwise: rows
      issue_nz <= dw ? {{(ZW - 1) {1'b0}}, two, !two} : fc_mode ? {{ZW{1'b0}}, 1'b1} : nz;
      idx_q <= fc_mode ? 6'd0 : idx;
      first_q <= step == 18'd0;
      last_q <= step_last;
      end_q <= sweep_done && (dw || step_last);
      plane_q <= plane;
      whole_q <= whole;
      prow_q <= use_prow;
      chan_q  <= dwrow_mode ? chan : dwst_mode ? step[9:0] : fc_mode ? grp[9:0] :
          {grp[9-ZW:0], {ZW{1'b0}}};
      gx_q <= dwrow_mode ? {seg, 6'd0} : fc_mode ? 10'd0 : stripe_gx;
      gy_q <= dwrow_mode ? line[8:0] : fc_mode ? 9'd0 : stripe_gy;
      width_q <= fc_mode ? 7'd1 : wlim;
      lines_q <= fc_mode ? 3'd1 : slots;
    end
  end

  wire [ZW-1:0] pbank = dwrow_mode ? issue_wsel : chan_q[ZW-1:0];
  wire [`JOB_BITS-1:0] job = {whole_q, plane_q, chan_q, issue_nz, gx_q, gy_q, width_q, lines_q};
  wire [`META_BITS-1:0] meta = {prow_q, pbank, job};
  // the sum of a fully connected layer is the first pixel of its map
  wire [5:0] sum_pos = fc_mode ? 6'd0 : issue_pos;
  assign issue_tag = {idx_q, first_q, last_q, end_q, sum_pos, meta};

  wire unused = &{1'b0, desc, row_width};

endmodule

`resetall
