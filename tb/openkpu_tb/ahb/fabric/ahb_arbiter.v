// SPDX-License-Identifier: Apache-2.0
//
// AMBA 2.0 arbiter of the test bench: the device under test and a rival, which is also the default
// master. Takes the bus away at random (cfg_loss_prob), at any beat and in wait states too, so that
// a master sees every kind of early termination.
//
// HGRANT may change in any cycle; ownership of the address bus (owner) follows it at the next edge
// with HREADY high. A SPLIT master is not granted until hsplit. A fixed burst keeps its grant without
// HBUSREQ. A locked master keeps the bus.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_arbiter (
  input  wire        clk,
  input  wire        rst,
  // random bits, new every cycle, and the chance in 256 per cycle that the device loses its grant
  input  wire [31:0] rnd,
  input  wire [7:0]  cfg_loss_prob,
  // the device is not granted the bus
  input  wire        cfg_deny,
  // bit 1 the device, bit 0 the rival
  input  wire [1:0]  hbusreq,
  input  wire        hlock,
  output wire [1:0]  hgrant,
  // index of the master that owns the address bus, and of the one whose data phase it is
  output reg         owner,
  output reg         data_owner,
  // the shared bus
  input  wire [1:0]  htrans,
  input  wire [2:0]  hburst,
  input  wire        hready,
  input  wire [1:0]  hresp,
  // the split transfer may be tried again
  input  wire        hsplit
);
  localparam [1:0] NONSEQ = 2'b10, SEQ = 2'b11;
  localparam [1:0] SPLIT = 2'b11;

  reg        grant_dut;
  reg        split_mask;
  reg  [2:0] away;        // cycles until the device may have the bus again
  reg  [3:0] beats_left;  // of the fixed burst that the owner has begun
  reg        data_active; // the present data phase belongs to a transfer

  assign hgrant = {grant_dut, ~grant_dut};

  wire split_now = data_active & data_owner & (hresp == SPLIT);
  wire masked    = (split_mask | split_now) & ~hsplit;
  wire in_burst  = owner & (beats_left > 4'd1);
  wire locked    = owner & grant_dut & hlock;
  wire lose      = (rnd[7:0] < cfg_loss_prob) & ~locked;

  reg [3:0] beats_of;
  always @* begin
    case (hburst[2:1])
      2'b01:   beats_of = 4'd3;
      2'b10:   beats_of = 4'd7;
      2'b11:   beats_of = 4'd15;
      default: beats_of = 4'd0;
    endcase
  end

  always @(posedge clk) begin
    if (rst) begin
      grant_dut   <= 1'b0;
      split_mask  <= 1'b0;
      away        <= 3'd0;
      owner       <= 1'b0;
      data_owner  <= 1'b0;
      data_active <= 1'b0;
      beats_left  <= 4'd0;
    end else begin
      split_mask <= masked;
      if (masked | cfg_deny) begin
        grant_dut <= 1'b0;
        away      <= 3'd0;
      end else if (grant_dut & lose) begin
        grant_dut <= 1'b0;
        away      <= rnd[10:8];
      end else begin
        grant_dut <= (away == 3'd0) & (hbusreq[1] | (grant_dut & in_burst));
        away      <= (away == 3'd0) ? 3'd0 : away - 3'd1;
      end
      if (hready) begin
        owner       <= grant_dut;
        data_owner  <= owner;
        data_active <= htrans[1];
        if (htrans == NONSEQ)   beats_left <= beats_of;
        else if (htrans == SEQ) beats_left <= (beats_left == 4'd0) ? 4'd0 : beats_left - 4'd1;
        else                    beats_left <= htrans[0] ? beats_left : 4'd0;
      end
    end
  end
endmodule

`resetall
