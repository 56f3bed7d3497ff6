// SPDX-License-Identifier: Apache-2.0
//
// soc_ram: a RAM as an AHB slave without wait states.
//
// How it works: the address phase is kept for the data phase, in which the word is read, or its bytes are written at the
// end. A reset ends an access and keeps the contents, which come first from FILE, or in a simulation from the file that
// the plusarg NAME names, by $readmemh.
// Handshake: AMBA 2.0 AHB slave; always ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_ram #(
    // bits of the bus
    parameter W     = 32,
    // bytes
    parameter BYTES = 131072,
    // plusarg of the file, with its format
    parameter NAME  = "ram=%s",
    // file of the contents that an FPGA loads with its configuration; "" for none
    parameter FILE  = ""
) (
    // clock, synchronous reset
    input  wire         clk,
    input  wire         rst,
    // AHB slave
    input  wire         hsel,
    input  wire [ 31:0] haddr,
    input  wire [  1:0] htrans,
    input  wire         hwrite,
    input  wire [  2:0] hsize,
    input  wire [W-1:0] hwdata,
    input  wire         hready,
    output wire [W-1:0] hrdata
);

  localparam B = W / 8;
  localparam AW = $clog2(BYTES / B);

  reg [W-1:0] mem[0:BYTES/B-1];
  reg [AW-1:0] word;
  reg [B-1:0] strobes;

  // bytes of the transfer
  wire [15:0] size = (16'd1 << (16'd1 << hsize)) - 16'd1;
  wire [15:0] bytes = size << (haddr[3:0] & (B[3:0] - 4'd1));

  always @(posedge clk) begin
    word    <= hready ? haddr[$clog2(B)+:AW] : word;
    strobes <= rst ? {B{1'b0}} : hready ? ((hsel && htrans[1] && hwrite) ? bytes[B-1:0] : {B{1'b0}}) : strobes;
  end

  integer i;
  always @(posedge clk) begin
    for (i = 0; i < B; i = i + 1) begin
      if (!rst && hready && strobes[i]) mem[word][8*i+:8] <= hwdata[8*i+:8];
    end
  end

  assign hrdata = mem[word];

  wire unused = &{1'b0, bytes, haddr, htrans[0]};

  generate
    if (FILE != "") begin : g_loaded
      initial $readmemh(FILE, mem);
    end
`ifndef SYNTHESIS
    else begin : g_plusarg
      reg [8*512-1:0] file;
      initial begin
        if ($value$plusargs(NAME, file)) $readmemh(file, mem);
      end
    end
`endif
  endgenerate

endmodule

`resetall
