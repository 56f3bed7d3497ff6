// SPDX-License-Identifier: Apache-2.0
//
// MULT18X18D: model of the ECP5's multiplier, for netlists; Yosys brings its pins only.
//
// How it works: the product of A and B, each signed or not. Each factor and the product may have a
// register, as scripts/openkpu_tools/flows/dsp_registers.py makes them: all of one clock, enable and synchronous reset,
// never of both. Without a clock there is none. The pipeline register inside is not modelled.
// Handshake: none; one clock edge for each register on the way.
`resetall
`timescale 1ns/1ps
`default_nettype none

module MULT18X18D #(
  // clock, enable and reset of each register: the pins CLK0, CE0 and RST0, or no register
  parameter REG_INPUTA_CLK = "NONE",
  parameter REG_INPUTA_CE = "CE0",
  parameter REG_INPUTA_RST = "RST0",
  parameter REG_INPUTB_CLK = "NONE",
  parameter REG_INPUTB_CE = "CE0",
  parameter REG_INPUTB_RST = "RST0",
  parameter REG_OUTPUT_CLK = "NONE",
  parameter REG_OUTPUT_CE = "CE0",
  parameter REG_OUTPUT_RST = "RST0",
  parameter RESETMODE = "SYNC",
  parameter GSR = "ENABLED"
) (
  // clock, enable and reset of the registers
  input wire CLK0, CE0, RST0,
  // factors, the third one of the pre-adder (unused), signs, cascade (unused)
  input wire A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0,
  input wire B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0,
  input wire C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0,
  input wire SIGNEDA, SIGNEDB, SOURCEA, SOURCEB,
  // product
  output wire P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0
);
  wire [17:0] a_pins = {A17, A16, A15, A14, A13, A12, A11, A10, A9, A8, A7, A6, A5, A4, A3, A2, A1, A0};
  wire [17:0] b_pins = {B17, B16, B15, B14, B13, B12, B11, B10, B9, B8, B7, B6, B5, B4, B3, B2, B1, B0};
  reg  [17:0] a_q, b_q;
  reg  [35:0] p_q;
  wire [17:0] a_now = (REG_INPUTA_CLK == "NONE") ? a_pins : a_q;
  wire [17:0] b_now = (REG_INPUTB_CLK == "NONE") ? b_pins : b_q;
  wire signed [18:0] a = {SIGNEDA && a_now[17], a_now};
  wire signed [18:0] b = {SIGNEDB && b_now[17], b_now};
  wire signed [37:0] p = a * b;
  assign {P35, P34, P33, P32, P31, P30, P29, P28, P27, P26, P25, P24, P23, P22, P21, P20, P19, P18, P17, P16, P15, P14, P13, P12, P11, P10, P9, P8, P7, P6, P5, P4, P3, P2, P1, P0} = (REG_OUTPUT_CLK == "NONE") ? p[35:0] : p_q;

  always @(posedge CLK0)
    if (RST0) begin
      a_q <= 18'd0;
      b_q <= 18'd0;
      p_q <= 36'd0;
    end else if (CE0) begin
      a_q <= a_pins;
      b_q <= b_pins;
      p_q <= p[35:0];
    end

  // other clocks, enables and resets, and the pipeline register, are not modelled
  generate
    if ((REG_INPUTA_CLK != "NONE" && REG_INPUTA_CLK != "CLK0") || REG_INPUTA_CE != "CE0" || REG_INPUTA_RST != "RST0"
        || (REG_INPUTB_CLK != "NONE" && REG_INPUTB_CLK != "CLK0") || REG_INPUTB_CE != "CE0" || REG_INPUTB_RST != "RST0"
        || (REG_OUTPUT_CLK != "NONE" && REG_OUTPUT_CLK != "CLK0") || REG_OUTPUT_CE != "CE0" || REG_OUTPUT_RST != "RST0"
        || RESETMODE != "SYNC") begin : g_illegal
      ILLEGAL_REGISTER_OF_MULT18X18D u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, p[37:36], SOURCEA, SOURCEB, C17, C16, C15, C14, C13, C12, C11, C10, C9, C8, C7, C6, C5, C4, C3, C2, C1, C0};
endmodule

`resetall
