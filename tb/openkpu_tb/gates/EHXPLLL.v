// SPDX-License-Identifier: Apache-2.0
//
// EHXPLLL: the ECP5's PLL as far as a simulation in cycles needs it: its output is its input, locked at once.
//
// Handshake: none; frequencies and phases are not modelled.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module EHXPLLL #(
    // as soc/board sets them; without effect here
    parameter PLLRST_ENA      = "DISABLED",
    parameter INTFB_WAKE      = "DISABLED",
    parameter STDBY_ENABLE    = "DISABLED",
    parameter DPHASE_SOURCE   = "DISABLED",
    parameter OUTDIVIDER_MUXA = "DIVA",
    parameter OUTDIVIDER_MUXB = "DIVB",
    parameter OUTDIVIDER_MUXC = "DIVC",
    parameter OUTDIVIDER_MUXD = "DIVD",
    parameter CLKI_DIV        = 1,
    parameter CLKOP_ENABLE    = "ENABLED",
    parameter CLKOP_DIV       = 8,
    parameter CLKOP_CPHASE    = 0,
    parameter CLKOP_FPHASE    = 0,
    parameter FEEDBK_PATH     = "CLKOP",
    parameter CLKFB_DIV       = 1
) (
    // clocks, control and phase
    input  wire RST,
    input  wire STDBY,
    input  wire CLKI,
    output wire CLKOP,
    input  wire CLKFB,
    output wire CLKINTFB,
    input  wire PHASESEL0,
    input  wire PHASESEL1,
    input  wire PHASEDIR,
    input  wire PHASESTEP,
    input  wire PHASELOADREG,
    input  wire PLLWAKESYNC,
    input  wire ENCLKOP,
    output wire LOCK
);

  assign CLKOP = CLKI;
  assign CLKINTFB = 1'b0;
  assign LOCK = 1'b1;

  wire unused = &{
    1'b0, RST, STDBY, CLKFB, PHASESEL0, PHASESEL1, PHASEDIR, PHASESTEP, PHASELOADREG, PLLWAKESYNC, ENCLKOP
  };

endmodule

`resetall
