// SPDX-License-Identifier: Apache-2.0
//
// Rules of AXI4 that a master of one identifier keeps, of each channel in every cycle; `errors` counts
// the breaches and the log names each.
//
// A valid stays with its payload until its ready. A burst is INCR, of at most 16 beats, within 1 KB,
// aligned to its size, and no wider than the bus. WLAST marks the last beat of the oldest address
// whose data are not complete; strobes lie on the lanes of the beat. After reset valid is low and no
// control line is unknown.
`resetall
`timescale 1ns/1ps
`default_nettype none

module axi_checker #(
  // width of the data bus
  parameter AHB_W = 32
) (
  input  wire               clk,
  input  wire               rst,
  // AXI4 from the master
  input  wire [31:0]        awaddr,
  input  wire [7:0]         awlen,
  input  wire [2:0]         awsize,
  input  wire               awvalid,
  input  wire               awready,
  input  wire [AHB_W-1:0]   wdata,
  input  wire [AHB_W/8-1:0] wstrb,
  input  wire               wlast,
  input  wire               wvalid,
  input  wire               wready,
  input  wire               bvalid,
  input  wire               bready,
  input  wire [31:0]        araddr,
  input  wire [7:0]         arlen,
  input  wire [2:0]         arsize,
  input  wire               arvalid,
  input  wire               arready,
  input  wire               rvalid,
  input  wire               rready,
  // breaches since the start
  output reg  [31:0]        errors
);
  localparam Q = 16;
  localparam LANES = AHB_W / 8;

  reg was_aw, was_w, was_ar, was_rst;
  reg [42:0] aw, ar;
  reg [AHB_W+LANES:0] w;
  reg [42:0] bursts [0:Q-1];
  reg [42:0] burst;
  reg [7:0] number;
  integer first, next, lane;
  reg [31:0] at;
  reg [LANES-1:0] lanes;

  initial errors = 32'd0;

  task breach(input [8*40-1:0] what);
    begin
      errors = errors + 32'd1;
      $display("%0t AXI rule: %0s", $time, what);
    end
  endtask

  function bad_burst(input [42:0] burst);
    bad_burst = burst[39:32] > 8'd15 || (32'd1 << burst[42:40]) > LANES
        || (burst[31:0] & ((32'd1 << burst[42:40]) - 32'd1)) != 32'd0
        || burst[31:10] != ((burst[31:0] + (({24'd0, burst[39:32]} + 32'd1) << burst[42:40]) - 32'd1) >> 10);
  endfunction

  always @(posedge clk) begin
    was_rst <= rst;
    if (rst) begin
      {was_aw, was_w, was_ar} <= 3'd0;
      first = 0;
      next = 0;
      number = 8'd0;
    end else begin
      if ((^{awvalid, wvalid, arvalid, bready, rready}) === 1'bx) breach("an unknown control line");
      if (was_rst && (awvalid || wvalid || arvalid)) breach("valid right after reset");
      if (was_aw && !(awvalid && aw === {awsize, awlen, awaddr})) breach("AW changed before ready");
      if (was_ar && !(arvalid && ar === {arsize, arlen, araddr})) breach("AR changed before ready");
      if (was_w && !(wvalid && w === {wlast, wstrb, wdata})) breach("W changed before ready");
      if (awvalid && bad_burst({awsize, awlen, awaddr})) breach("AW of an illegal burst");
      if (arvalid && bad_burst({arsize, arlen, araddr})) breach("AR of an illegal burst");
      was_aw <= awvalid && !awready;
      was_ar <= arvalid && !arready;
      was_w <= wvalid && !wready;
      aw <= {awsize, awlen, awaddr};
      ar <= {arsize, arlen, araddr};
      w <= {wlast, wstrb, wdata};
      // data may be taken before their address is, but are not offered before it
      if (wvalid && wready) begin
        burst = first < next ? bursts[first % Q] : {awsize, awlen, awaddr};
        if (first > next || (first == next && !awvalid)) breach("W without an address");
        at = burst[31:0] + ({24'd0, number} << burst[42:40]);
        for (lane = 0; lane < LANES; lane = lane + 1)
          lanes[lane] = (lane >> burst[42:40]) == ((at % LANES) >> burst[42:40]);
        if (wlast != (number == burst[39:32])) breach("WLAST at another beat");
        if ((wstrb & ~lanes) != {LANES{1'b0}}) breach("a strobe outside the lanes");
        first = wlast ? first + 1 : first;
        number = wlast ? 8'd0 : number + 8'd1;
      end
      if (awvalid && awready) begin
        bursts[next % Q] = {awsize, awlen, awaddr};
        next = next + 1;
      end
      if (bvalid === 1'bx || rvalid === 1'bx) breach("an unknown answer");
    end
  end
endmodule

`resetall
