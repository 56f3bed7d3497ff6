// SPDX-License-Identifier: Apache-2.0
//
// apb_to_ahb: bridge from an APB3 slave to the AHB slave port of the device.
//
// How it works: stateless. The setup phase of APB is the address phase of AHB, the access phase is its
// data phase: a register access takes two cycles, as on any APB slave, one to the AI RAM also its wait
// states. Every access is privileged and a word wide, because APB3 has neither strobes nor protection.
// Errors: ERROR becomes PSLVERR, which APB samples in the last cycle only.
// Handshake: APB3. The address is sampled in the setup phase, the write data in the access phase.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module apb_to_ahb (
    // APB3 slave
    input  wire        s_apb_psel,
    input  wire        s_apb_penable,
    input  wire [31:0] s_apb_paddr,
    input  wire        s_apb_pwrite,
    input  wire [31:0] s_apb_pwdata,
    output wire        s_apb_pready,
    output wire [31:0] s_apb_prdata,
    output wire        s_apb_pslverr,
    // AHB, to the slave port of the device, which is alone on this bus
    output wire [31:0] m_ahb_haddr,
    output wire [ 1:0] m_ahb_htrans,
    output wire        m_ahb_hwrite,
    output wire [ 2:0] m_ahb_hsize,
    output wire [ 3:0] m_ahb_hprot,
    output wire [31:0] m_ahb_hwdata,
    input  wire        m_ahb_hready,
    input  wire [ 1:0] m_ahb_hresp,
    input  wire [31:0] m_ahb_hrdata
);

  assign m_ahb_haddr   = {s_apb_paddr[31:2], 2'd0};
  assign m_ahb_htrans  = {s_apb_psel && !s_apb_penable, 1'b0};
  assign m_ahb_hwrite  = s_apb_pwrite;
  assign m_ahb_hsize   = 3'd2;
  assign m_ahb_hprot   = 4'b0011;
  assign m_ahb_hwdata  = s_apb_pwdata;

  assign s_apb_pready  = m_ahb_hready;
  assign s_apb_prdata  = m_ahb_hrdata;
  assign s_apb_pslverr = s_apb_psel && s_apb_penable && m_ahb_hready && m_ahb_hresp != 2'b00;

  // APB has no access narrower than a word
  wire unused = &{1'b0, s_apb_paddr[1:0]};

endmodule

`resetall
