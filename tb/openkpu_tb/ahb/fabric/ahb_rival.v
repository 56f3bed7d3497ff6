// SPDX-License-Identifier: Apache-2.0
//
// The other master on the bus, and its default master: IDLE, or single reads of random words now and
// then (cfg_rival_prob in 256 per cycle), whose answers it ignores. It makes HREADY, HRESP and HRDATA
// move while the device waits for the bus.
//
// Drives NONSEQ only while it owns the address bus, and never two transfers at a time.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_rival (
  input  wire        clk,
  input  wire        rst,
  input  wire [31:0] rnd,
  input  wire [7:0]  cfg_rival_prob,
  // words of the storage
  input  wire [31:0] depth,
  output wire        hbusreq,
  // this master owns the address bus
  input  wire        own,
  input  wire        hready,
  output wire [1:0]  htrans,
  output wire [31:0] haddr
);
  reg        want;
  reg        waiting; // for the data phase of the last read
  reg [31:0] addr;

  assign hbusreq = want;
  assign htrans  = (own & want & ~waiting) ? 2'b10 : 2'b00;
  assign haddr   = addr;

  always @(posedge clk) begin
    if (rst) begin
      want    <= 1'b0;
      waiting <= 1'b0;
      addr    <= 32'd0;
    end else begin
      if (hready & htrans[1]) begin
        want    <= 1'b0;
        waiting <= 1'b1;
      end else begin
        waiting <= waiting & ~hready;
        if (~want & ~waiting & (rnd[23:16] < cfg_rival_prob)) begin
          want <= 1'b1;
          // now and then an unmapped address: ERROR answers that are not the device's
          addr <= (rnd[31:29] == 3'd0) ? 32'hF000_0000 : {rnd[29:0] % depth[29:0], 2'b00};
        end else begin
          want <= want;
        end
      end
    end
  end
endmodule

`resetall
