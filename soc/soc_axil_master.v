// SPDX-License-Identifier: Apache-2.0
//
// soc_axil_master: from the AHB of the computer to the AXI4-Lite slave of a device.
//
// How it works: the address phase is kept; the access is then made on AXI4-Lite, and the data phase lasts until its
// response. SLVERR and DECERR become the two cycles of ERROR.
// Handshake: AMBA 2.0 AHB slave, AXI4-Lite master; waits for the response.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_axil_master (
    // clock, synchronous reset
    input  wire        clk,
    input  wire        rst,
    // AHB slave
    input  wire        hsel,
    input  wire [31:0] haddr,
    input  wire [ 1:0] htrans,
    input  wire        hwrite,
    input  wire [ 2:0] hsize,
    input  wire [31:0] hwdata,
    input  wire        hready_in,
    output wire        hready,
    output wire [ 1:0] hresp,
    output reg  [31:0] hrdata,
    // AXI4-Lite master
    output reg         awvalid,
    input  wire        awready,
    output reg         wvalid,
    input  wire        wready,
    output reg         arvalid,
    input  wire        arready,
    output reg  [31:0] addr,
    output wire [31:0] wdata,
    output reg  [ 3:0] wstrb,
    input  wire        bvalid,
    input  wire [ 1:0] bresp,
    input  wire        rvalid,
    input  wire [31:0] rdata,
    input  wire [ 1:0] rresp
);

  // an access has no response yet; first and second cycle of ERROR
  reg busy, refused, ending;

  wire take = hsel && htrans[1] && hready_in;
  wire ended = busy && (bvalid || rvalid);
  wire bad = bvalid ? bresp[1] : rresp[1];
  wire [3:0] bytes = (4'd1 << (4'd1 << hsize[1:0])) - 4'd1;

  assign hready = !busy && !refused;
  assign hresp  = {1'b0, refused || ending};
  assign wdata  = hwdata;

  always @(posedge clk) begin
    if (rst) begin
      busy    <= 1'b0;
      refused <= 1'b0;
      ending  <= 1'b0;
      awvalid <= 1'b0;
      wvalid  <= 1'b0;
      arvalid <= 1'b0;
    end else begin
      busy    <= take || (busy && !ended);
      refused <= ended && bad;
      ending  <= refused;
      awvalid <= (take && hwrite) || (awvalid && !awready);
      wvalid  <= (take && hwrite) || (wvalid && !wready);
      arvalid <= (take && !hwrite) || (arvalid && !arready);
    end
    addr   <= take ? haddr : addr;
    wstrb  <= take ? bytes << haddr[1:0] : wstrb;
    hrdata <= ended ? rdata : hrdata;
  end

  wire unused = &{1'b0, htrans[0], hsize[2], bresp[0], rresp[0]};

endmodule

`resetall
