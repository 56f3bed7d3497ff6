// SPDX-License-Identifier: Apache-2.0
//
// axil_to_ahb: bridge from an AXI4-Lite slave to the AHB slave port of the device.
//
// How it works: one access at a time; pending reads and writes alternate. A write waits for address and
// data, in either order. Its strobes are split into AHB transfers of a word, half-words and bytes, lowest
// lane first: the AI RAM accepts all of them, a register only the whole word. A read is one word. A write
// without strobes performs no transfer.
// Errors: an ERROR response ends the access with SLVERR; the remaining transfers of that write are
// skipped.
// Handshake: AXI4-Lite; the bridge waits for valid before it asserts ready, and no output of the AXI
// side depends on an input of it in the same cycle. AxPROT[0] is HPROT[1], privileged.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module axil_to_ahb (
    // clock, synchronous reset
    input  wire        clk,
    input  wire        rst,
    // AXI4-Lite write address, data, response
    input  wire        s_axil_awvalid,
    output wire        s_axil_awready,
    input  wire [31:0] s_axil_awaddr,
    input  wire [ 2:0] s_axil_awprot,
    input  wire        s_axil_wvalid,
    output wire        s_axil_wready,
    input  wire [31:0] s_axil_wdata,
    input  wire [ 3:0] s_axil_wstrb,
    output wire        s_axil_bvalid,
    input  wire        s_axil_bready,
    output wire [ 1:0] s_axil_bresp,
    // AXI4-Lite read address, data
    input  wire        s_axil_arvalid,
    output wire        s_axil_arready,
    input  wire [31:0] s_axil_araddr,
    input  wire [ 2:0] s_axil_arprot,
    output wire        s_axil_rvalid,
    input  wire        s_axil_rready,
    output wire [31:0] s_axil_rdata,
    output wire [ 1:0] s_axil_rresp,
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

  localparam [1:0] TRANS_IDLE = 2'b00;
  localparam [1:0] TRANS_NONSEQ = 2'b10;
  localparam [2:0] IDLE = 3'd0;
  localparam [2:0] TAKE = 3'd1;
  localparam [2:0] ADDRESS = 3'd2;
  localparam [2:0] DATA = 3'd3;
  localparam [2:0] RESPOND = 3'd4;

  reg [2:0] state;
  // the access in progress
  reg write;
  reg [29:0] word;
  reg [31:0] data;
  reg [1:0] prot;
  reg error;
  // lanes of a write not yet covered by a transfer
  reg [3:0] strobes;

  wire write_waits = s_axil_awvalid && s_axil_wvalid;
  // the previous access was a write: a pending read goes first
  wire take_write = write_waits && !(write && s_axil_arvalid);
  wire some = write_waits || s_axil_arvalid;

  // the next transfer of a write: {offset, lanes, size}
  reg [1:0] place;
  reg [3:0] lanes;
  reg [2:0] size;
  always @* begin
    if (strobes == 4'b1111) {place, lanes, size} = {2'd0, 4'b1111, 3'd2};
    else if (strobes[1:0] == 2'b11) {place, lanes, size} = {2'd0, 4'b0011, 3'd1};
    else if (strobes[0]) {place, lanes, size} = {2'd0, 4'b0001, 3'd0};
    else if (strobes[1]) {place, lanes, size} = {2'd1, 4'b0010, 3'd0};
    else if (strobes[3:2] == 2'b11) {place, lanes, size} = {2'd2, 4'b1100, 3'd1};
    else if (strobes[2]) {place, lanes, size} = {2'd2, 4'b0100, 3'd0};
    else {place, lanes, size} = {2'd3, 4'b1000, 3'd0};
  end

  wire fails = m_ahb_hresp != 2'b00;
  wire over = m_ahb_hready && (fails || !write || strobes == 4'd0);
  wire answered = write ? s_axil_bready : s_axil_rready;

  always @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
    end else begin
      case (state)
        IDLE:    state <= some ? TAKE : IDLE;
        TAKE:    state <= (write && s_axil_wstrb == 4'd0) ? RESPOND : ADDRESS;
        ADDRESS: state <= m_ahb_hready ? DATA : ADDRESS;
        DATA:    state <= over ? RESPOND : m_ahb_hready ? ADDRESS : DATA;
        RESPOND: state <= answered ? IDLE : RESPOND;
        default: state <= IDLE;
      endcase
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      write <= 1'b0;
      word <= 30'd0;
      data <= 32'd0;
      prot <= 2'd0;
      error <= 1'b0;
      strobes <= 4'd0;
    end else begin
      write <= (state == IDLE && some) ? take_write : write;
      if (state == TAKE) begin
        word <= write ? s_axil_awaddr[31:2] : s_axil_araddr[31:2];
        data <= write ? s_axil_wdata : data;
        // privileged, data
        prot <= write ? {s_axil_awprot[0], !s_axil_awprot[2]}
                      : {s_axil_arprot[0], !s_axil_arprot[2]};
        error <= 1'b0;
        strobes <= write ? s_axil_wstrb : 4'd0;
      end else begin
        data <= (state == DATA && m_ahb_hready && !write) ? m_ahb_hrdata : data;
        error <= (state == DATA) ? fails : error;
        strobes <= (state == ADDRESS && m_ahb_hready) ? strobes & ~lanes : strobes;
      end
    end
  end

  assign s_axil_awready = state == TAKE && write;
  assign s_axil_wready = state == TAKE && write;
  assign s_axil_arready = state == TAKE && !write;
  assign s_axil_bvalid = state == RESPOND && write;
  assign s_axil_rvalid = state == RESPOND && !write;
  assign s_axil_bresp = {error, 1'b0};
  assign s_axil_rresp = {error, 1'b0};
  assign s_axil_rdata = data;

  assign m_ahb_haddr = {word, write ? place : 2'd0};
  assign m_ahb_htrans = (state == ADDRESS) ? TRANS_NONSEQ : TRANS_IDLE;
  assign m_ahb_hwrite = write;
  assign m_ahb_hsize = write ? size : 3'd2;
  assign m_ahb_hprot = {2'b00, prot};
  assign m_ahb_hwdata = data;

  // an access covers whole words; AxPROT[1], secure, has no counterpart on AHB
  wire unused = &{1'b0, s_axil_awaddr[1:0], s_axil_araddr[1:0], s_axil_awprot[1], s_axil_arprot[1]};

`ifdef FORMAL_axil_to_ahb
  `include "axil_to_ahb_props.vh"
`endif

endmodule

`resetall
