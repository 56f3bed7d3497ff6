// SPDX-License-Identifier: Apache-2.0
//
// soc_axi_slave: from the AXI4 master of a device to the AHB of the computer.
//
// How it works: a burst becomes single AHB transfers in consecutive cycles while the bus is granted. The next read burst
// is accepted with the last transfer of the one before; a FIFO holds what R does not accept at once. A beat without
// strobes is dropped. A write is responded to after its last data phase, with SLVERR when one of them ended with ERROR.
// Handshake: AXI4 slave of one identifier, bursts of type INCR; AMBA 2.0 AHB master, waits for HGRANT and HREADY.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_axi_slave #(
    // bits of both buses
    parameter W = 32
) (
    // clock, synchronous reset
    input  wire           clk,
    input  wire           rst,
    // AXI4 slave
    input  wire [   31:0] awaddr,
    input  wire [    7:0] awlen,
    input  wire [    2:0] awsize,
    input  wire           awvalid,
    output wire           awready,
    input  wire [  W-1:0] wdata,
    input  wire [W/8-1:0] wstrb,
    input  wire           wvalid,
    output wire           wready,
    output reg  [    1:0] bresp,
    output reg            bvalid,
    input  wire           bready,
    input  wire [   31:0] araddr,
    input  wire [    7:0] arlen,
    input  wire [    2:0] arsize,
    input  wire           arvalid,
    output wire           arready,
    output wire [  W-1:0] rdata,
    output wire [    1:0] rresp,
    output wire           rlast,
    output wire           rvalid,
    input  wire           rready,
    // AHB master
    output wire           hbusreq,
    input  wire           hgrant,
    output wire [   31:0] haddr,
    output wire [    1:0] htrans,
    output wire           hwrite,
    output wire [    2:0] hsize,
    output reg  [  W-1:0] hwdata,
    input  wire           hready,
    input  wire [    1:0] hresp,
    input  wire [  W-1:0] hrdata
);

  // words that R may leave waiting: one is in its data phase when the next is asked for
  localparam DEPTH = 4;
  localparam [2:0] ROOM = 3'd3;

  // ---- the burst in its address phases
  reg active, write, owner;
  reg [31:0] addr;
  reg [ 7:0] left;
  reg [ 2:0] size;
  // the transfer in its data phase
  reg data, data_write, data_last;
  // all transfers of a write are begun; one of them has failed
  reg closing, failed;

  wire [2:0] held;
  wire room = held < ROOM;
  wire strobed = wstrb != {W / 8{1'b0}};
  wire asks = active && (write ? wvalid && strobed : room);
  wire issued = owner && asks && hready;
  wire dropped = active && write && wvalid && !strobed;
  wire beat = issued || dropped;
  wire last = left == 8'd0;
  wire bad = data && hready && hresp != 2'b00;

  assign hbusreq = asks;
  assign htrans  = (owner && asks) ? 2'b10 : 2'b00;
  assign haddr   = addr;
  assign hwrite  = write;
  assign hsize   = size;

  wire free = (!active && !closing && !bvalid) || (active && !write && last && issued);
  assign awready = free;
  assign arready = free && !awvalid;
  assign wready  = write && beat;
  wire take_write = awvalid && awready;
  wire take_read = arvalid && arready;

  // addresses of further beats are aligned to their size
  wire [31:0] step = 32'd1 << size;
  wire [31:0] next = (addr & ~(step - 32'd1)) + step;

  always @(posedge clk) begin
    if (rst) begin
      active  <= 1'b0;
      owner   <= 1'b0;
      data    <= 1'b0;
      closing <= 1'b0;
      failed  <= 1'b0;
      bvalid  <= 1'b0;
    end else begin
      active  <= take_write || take_read || (active && !(beat && last));
      owner   <= hready ? hgrant : owner;
      data    <= hready ? issued : data;
      closing <= (write && beat && last) || (closing && data && !hready);
      failed  <= !take_write && (failed || (bad && data_write));
      bvalid  <= (closing && (!data || hready)) || (bvalid && !bready);
    end
    write      <= take_write || (write && !take_read);
    addr       <= take_write ? awaddr : take_read ? araddr : beat ? next : addr;
    left       <= take_write ? awlen : take_read ? arlen : beat ? left - 8'd1 : left;
    size       <= take_write ? awsize : take_read ? arsize : size;
    data_write <= issued ? write : data_write;
    data_last  <= issued ? last : data_last;
    hwdata     <= issued ? wdata : hwdata;
    bresp      <= closing ? {failed || (bad && data_write), 1'b0} : bresp;
  end

  // ---- words that were read
  wire always_room;
  fifo_sync #(
      .WIDTH(W + 2),
      .DEPTH(DEPTH)
  ) u_words (
      .clk      (clk),
      .rst      (rst),
      .flush    (1'b0),
      .in_valid (data && hready && !data_write),
      .in_ready (always_room),
      .in_data  ({data_last, bad, hrdata}),
      .out_valid(rvalid),
      .out_ready(rready),
      .out_data ({rlast, rresp[1], rdata}),
      .count    (held)
  );
  assign rresp[0] = 1'b0;

  wire unused = &{1'b0, always_room};

endmodule

`resetall
