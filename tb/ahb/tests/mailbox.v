// SPDX-License-Identifier: Apache-2.0
//
// An AHB-Lite slave of sixteen words whose signals have other names than this project's: an active
// low reset, "hselx", "hreadyout", one bit of HRESP, no HPROT. Every access waits WAITS cycles;
// an access past the end is answered ERROR, in one cycle (which is wrong) with BROKEN.
`resetall
`timescale 1ns/1ps
`default_nettype none

module mailbox #(
  parameter WAITS  = 2,
  parameter BROKEN = 0
) (
  input  wire        hclk,
  input  wire        hresetn,
  input  wire        s_hselx,
  input  wire [31:0] s_haddr,
  input  wire [1:0]  s_htrans,
  input  wire        s_hwrite,
  input  wire [2:0]  s_hsize,
  input  wire [2:0]  s_hburst,
  input  wire [31:0] s_hwdata,
  input  wire        s_hready,
  output wire        s_hreadyout,
  output wire        s_hresp,
  output wire [31:0] s_hrdata
);
  reg [31:0] word [0:15];
  reg        active, write, refused, second;
  reg [5:0]  addr;
  reg [2:0]  size;
  reg [3:0]  left;

  wire ending = active & ~refused & (left == 4'd0);

  assign s_hreadyout = ~active | ending | (refused & ((BROKEN != 0) | second));
  assign s_hresp     = active & refused;
  assign s_hrdata    = (ending & ~write) ? word[addr[5:2]] : 32'hDEADBEEF;

  integer i;
  always @(posedge hclk) begin
    if (active & ~s_hreadyout) begin
      second <= refused;
      left   <= left - {3'd0, ~refused};
    end
    if (ending & write)
      for (i = 0; i < 4; i = i + 1)
        if ((i >> size) == (addr[1:0] >> size)) word[addr[5:2]][8*i +: 8] <= s_hwdata[8*i +: 8];
    if (s_hready) begin
      active  <= s_hselx & s_htrans[1];
      refused <= (s_haddr[31:6] != 26'd0);
      second  <= 1'b0;
      addr    <= s_haddr[5:0];
      size    <= s_hsize;
      write   <= s_hwrite;
      left    <= WAITS;
    end
    if (~hresetn) active <= 1'b0;
  end

  wire unused = &{s_hburst, 1'b0};
endmodule

`resetall
