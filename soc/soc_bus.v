// SPDX-License-Identifier: Apache-2.0
//
// soc_bus: arbiter, decoder and multiplexers of an AHB with M masters and M + 3 slaves.
//
// How it works: masters have the bus in turn. Whoever has it keeps it while it asks for it, for at most 16 transfers when
// another one asks; without requests it is left to master 0. Slaves are chosen by the address: the RAM below 0x1000_0000,
// the console at 0x1000_0000, devices from 0x4000_0000 on, 4 MiB each, the storage from 0x8000_0000 on. Everything else,
// and memory that is not there, answers ERROR.
// Handshake: AMBA 2.0 AHB; HREADY is that of the slave in the data phase.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_bus #(
    // bits of the bus
    parameter W           = 32,
    // masters: the processor and the devices
    parameter M           = 2,
    // bytes of RAM and storage
    parameter RAM_BYTES   = 131072,
    parameter STORE_BYTES = 1048576
) (
    // clock, synchronous reset
    input  wire               clk,
    input  wire               rst,
    // masters, number 0 in the lowest bits
    input  wire [      M-1:0] hbusreq,
    output wire [      M-1:0] hgrant,
    input  wire [   32*M-1:0] m_haddr,
    input  wire [    2*M-1:0] m_htrans,
    input  wire [      M-1:0] m_hwrite,
    input  wire [    3*M-1:0] m_hsize,
    input  wire [    W*M-1:0] m_hwdata,
    // the bus
    output wire [       31:0] haddr,
    output wire [        1:0] htrans,
    output wire               hwrite,
    output wire [        2:0] hsize,
    output wire [      W-1:0] hwdata,
    output wire               hready,
    output wire [        1:0] hresp,
    output reg  [      W-1:0] hrdata,
    // slaves: RAM, storage, console, devices
    output reg  [      M+1:0] hsel,
    input  wire [      M+1:0] s_hready,
    input  wire [    2*M+3:0] s_hresp,
    input  wire [W*M+2*W-1:0] s_hrdata,
    // whose transfer is in the data phase; none
    output reg  [        2:0] data_owner,
    output reg                data_valid
);

  localparam S = M + 2;
  localparam HOLD = 4'd15;

  // ---- arbiter: the next owner
  reg [2:0] granted, owner;
  reg  [3:0] used;
  reg  [2:0] other;
  reg        wanted;
  // requests, for any number of an owner
  wire [7:0] asked = {{(8 - M) {1'b0}}, hbusreq};
  wire [7:0] writes = {{(8 - M) {1'b0}}, m_hwrite};
  integer k, n;
  always @* begin
    other  = 3'd0;
    wanted = 1'b0;
    for (k = M; k >= 1; k = k - 1) begin
      n = {29'd0, granted} + k;
      if (n >= M) n = n - M;
      if (n != {29'd0, granted} && asked[n]) begin
        other  = n[2:0];
        wanted = 1'b1;
      end
    end
  end

  wire keeps = asked[granted] && !(wanted && used == HOLD);
  always @(posedge clk) begin
    if (rst) begin
      granted <= 3'd0;
      owner   <= 3'd0;
      used    <= 4'd0;
    end else begin
      granted <= keeps ? granted : wanted ? other : asked[granted] ? granted : 3'd0;
      owner   <= hready ? granted : owner;
      used    <= !keeps ? 4'd0 : (hready && used != HOLD) ? used + 4'd1 : used;
    end
  end

  genvar g;
  generate
    for (g = 0; g < M; g = g + 1) begin : g_grant
      assign hgrant[g] = granted == g;
    end
  endgenerate

  // ---- address phase
  assign haddr  = m_haddr[32*owner+:32];
  assign htrans = m_htrans[2*owner+:2];
  assign hwrite = writes[owner];
  assign hsize  = m_hsize[3*owner+:3];

  integer i;
  always @* begin
    hsel = {S{1'b0}};
    hsel[0] = haddr < RAM_BYTES;
    hsel[1] = haddr[31] && {1'b0, haddr[30:0]} < STORE_BYTES;
    hsel[2] = haddr[31:4] == 28'h1000_000;
    for (i = 1; i < M; i = i + 1) hsel[2+i] = haddr[31:22] == 10'h100 + i[9:0] - 10'd1;
  end

  // ---- data phase
  reg [S-1:0] chosen;
  reg failing, second;
  always @(posedge clk) begin
    if (rst) begin
      chosen     <= {S{1'b0}};
      data_owner <= 3'd0;
      data_valid <= 1'b0;
      failing    <= 1'b0;
      second     <= 1'b0;
    end else begin
      chosen     <= hready ? (htrans[1] ? hsel : {S{1'b0}}) : chosen;
      data_owner <= hready ? owner : data_owner;
      data_valid <= hready ? htrans[1] : data_valid;
      failing    <= hready ? htrans[1] && hsel == {S{1'b0}} : failing;
      second     <= hready ? 1'b0 : failing;
    end
  end

  assign hwdata = m_hwdata[W*data_owner+:W];
  assign hready = failing ? second : &(s_hready | ~chosen);

  reg [1:0] resp;
  integer j;
  always @* begin
    hrdata = {W{1'b0}};
    resp   = 2'd0;
    for (j = 0; j < S; j = j + 1) begin
      if (chosen[j]) hrdata = hrdata | s_hrdata[W*j+:W];
      if (chosen[j]) resp = resp | s_hresp[2*j+:2];
    end
  end
  assign hresp = failing ? 2'd1 : resp;

endmodule

`resetall
