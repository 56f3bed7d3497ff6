// SPDX-License-Identifier: Apache-2.0
//
// Host of the whole-device bench on AXI4-Lite: an AHB slave, which the bench's host drives, that
// performs each transfer as an access of AXI4-Lite. Address and data of a write are offered in the
// order and at the times that the random bits say (cfg_wait_prob in 256 that a channel waits).
//
// Transfers wider than a word or misaligned are none of AXI4-Lite: they are answered ERROR here.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_to_axil (
  input  wire        clk,
  input  wire        rst,
  input  wire [31:0] rnd,
  input  wire [7:0]  cfg_wait_prob,
  // AHB slave
  input  wire [31:0] haddr,
  input  wire [1:0]  htrans,
  input  wire        hwrite,
  input  wire [2:0]  hsize,
  input  wire [3:0]  hprot,
  input  wire [31:0] hwdata,
  output reg         hready,
  output reg  [1:0]  hresp,
  output reg  [31:0] hrdata,
  // AXI4-Lite master
  output reg         awvalid,
  input  wire        awready,
  output wire [31:0] awaddr,
  output wire [2:0]  awprot,
  output reg         wvalid,
  input  wire        wready,
  output wire [31:0] wdata,
  output wire [3:0]  wstrb,
  input  wire        bvalid,
  output reg         bready,
  input  wire [1:0]  bresp,
  output reg         arvalid,
  input  wire        arready,
  output wire [31:0] araddr,
  output wire [2:0]  arprot,
  input  wire        rvalid,
  output reg         rready,
  input  wire [31:0] rdata,
  input  wire [1:0]  rresp
);
  localparam [1:0] IDLE = 2'd0, WORK = 2'd1, REFUSE = 2'd2;
  reg [1:0]  state;
  reg        write, aw_left, w_left, ar_left;
  reg [31:0] addr;
  reg [2:0]  size, prot;

  wire take = hready && htrans[1];
  wire legal = hsize <= 3'd2 && (haddr & ((32'd1 << hsize) - 32'd1)) == 32'd0;
  wire ended = write ? bvalid && bready : rvalid && rready;
  wire bad = write ? bresp[1] : rresp[1];

  assign awaddr = addr;
  assign araddr = addr;
  assign awprot = prot;
  assign arprot = prot;
  assign wdata = hwdata;
  assign wstrb = (size == 3'd0 ? 4'b0001 : size == 3'd1 ? 4'b0011 : 4'b1111) << addr[1:0];

  wire go_aw = rnd[7:0] >= cfg_wait_prob, go_w = rnd[15:8] >= cfg_wait_prob;
  wire go_ar = rnd[23:16] >= cfg_wait_prob, go_end = rnd[31:24] >= cfg_wait_prob;

  always @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      {awvalid, wvalid, bready, arvalid, rready, aw_left, w_left, ar_left, write} <= 9'd0;
      {hready, hresp} <= 3'b100;
      addr <= 32'd0;
      size <= 3'd0;
      prot <= 3'd0;
      hrdata <= 32'd0;
    end else begin
      if (take) begin
        write <= hwrite;
        addr <= haddr;
        size <= hsize;
        prot <= {!hprot[0], 1'b0, hprot[1]};
        hready <= 1'b0;
        hresp <= legal ? 2'b00 : 2'b01;
        state <= legal ? WORK : REFUSE;
        aw_left <= legal && hwrite;
        w_left <= legal && hwrite;
        ar_left <= legal && !hwrite;
      end else if (state == WORK) begin
        awvalid <= (awvalid && !awready) || (aw_left && go_aw);
        wvalid <= (wvalid && !wready) || (w_left && go_w);
        arvalid <= (arvalid && !arready) || (ar_left && go_ar);
        aw_left <= aw_left && !go_aw;
        w_left <= w_left && !go_w;
        ar_left <= ar_left && !go_ar;
        bready <= write && go_end && !ended;
        rready <= !write && go_end && !ended;
        if (ended) begin
          state <= bad ? REFUSE : IDLE;
          hready <= !bad;
          hresp <= bad ? 2'b01 : 2'b00;
          hrdata <= rdata;
        end
      end else if (state == REFUSE) begin
        state <= IDLE;
        hready <= 1'b1;
      end else begin
        hready <= 1'b1;
        hresp <= 2'b00;
      end
    end
  end
endmodule

`resetall
