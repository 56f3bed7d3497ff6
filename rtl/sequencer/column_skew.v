// SPDX-License-Identifier: Apache-2.0
//
// column_skew: delays an issue for the nine columns of the array, column t by t cycles.
//
// How it works: column t adds its products to the sums of column t - 1 a cycle later, so it reads its
// memories t cycles after column 0: the tile buffer, a cycle later the weights, whose memory has no second
// register, and another cycle later it uses its control. The outputs of lane_ctrl arrive a cycle after the
// issue; the fields that bypass lane_ctrl are registered for that cycle.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module column_skew #(
    // lanes and width of a bank index
    parameter L  = 16,
    parameter ZW = 2,
    // widths of a tile word address, a tile entry and a weight row address
    parameter TA = 5,
    parameter TE = 5,
    parameter WA = 10
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // issue: word of the tile buffer; other fields, see issue_stage
    input  wire                      issue_valid,
    input  wire [            TA-1:0] issue_word,
    input  wire [  `STAGED_BITS-1:0] staged,
    // a cycle later: lanes, from lane_ctrl
    input  wire [             L-1:0] lane_valid,
    input  wire [             L-1:0] lane_left,
    input  wire [             L-1:0] lane_right,
    input  wire [             L-1:0] lane_top,
    input  wire [             L-1:0] lane_bot,
    input  wire [               7:0] lane_count,
    // columns: read enables, tile words; a cycle later those of the weights; a cycle later control
    output wire [               8:0] re,
    output wire [          9*TA-1:0] entry,
    output wire [               8:0] wre,
    output wire [          9*WA-1:0] wrow,
    output wire [9*`COLUMN_BITS-1:0] control
);

  localparam CW = `COLUMN_BITS;

  reg [9:1] re_q;
  reg [8*TA-1:0] entry_q;
  reg [9*WA-1:0] wrow_q;
  reg [9*CW-1:0] control_q;
  reg [`COLUMN_BITS-5*L-9:0] kept;  // fields that bypass lane_ctrl, the lowest ones
  wire [`COLUMN_BITS-5*L-9:0] now;
  assign now[`COLUMN_TAPS] = staged[`STAGED_TAPS];
  assign now[`COLUMN_WSEL] = staged[`STAGED_WSEL];
  assign now[`COLUMN_POS]  = staged[`STAGED_POS];

  always @(posedge clk) begin
    if (rst) kept <= {(CW - 5 * L - 8) {1'b0}};
    else kept <= issue_valid ? now : kept;
  end

  wire [CW-1:0] control_0 = {
    lane_valid, lane_left, lane_right, lane_top, lane_bot, lane_count, kept
  };
  always @(posedge clk) begin
    if (rst) begin
      re_q      <= 9'd0;
      control_q <= {9 * CW{1'b0}};
    end else begin
      re_q      <= {re_q[8:1], issue_valid};
      control_q <= {control_q[8*CW-1:0], control_0};
    end
  end
  always @(posedge clk) begin
    entry_q <= {entry_q[7*TA-1:0], issue_word};
    wrow_q  <= {wrow_q[8*WA-1:0], staged[`STAGED_WROW]};
  end

  assign re      = {re_q[8:1], issue_valid};
  assign wre     = re_q;
  assign entry   = {entry_q, issue_word};
  assign wrow    = wrow_q;
  assign control = control_q;

  wire unused = &{1'b0, staged};

endmodule

`resetall
