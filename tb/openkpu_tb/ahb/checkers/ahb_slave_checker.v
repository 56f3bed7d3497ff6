// SPDX-License-Identifier: Apache-2.0
//
// Rules that AMBA 2.0 puts on a slave, checked at its port in every cycle; see README.md of this
// folder for the numbers. Policy of this project in rule 31: a misaligned transfer, or one wider than
// the bus, must end in ERROR.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_slave_checker #(
  // width of the data bus; wait states allowed
  parameter DATA_W   = 32,
  parameter MAX_WAIT = 16
) (
  input  wire              clk,
  input  wire              rst,
  input  wire              hsel,
  input  wire [31:0]       haddr,
  input  wire [1:0]        htrans,
  input  wire              hwrite,
  input  wire [2:0]        hsize,
  input  wire              hready_in,
  input  wire              hready_out,
  input  wire [1:0]        hresp,
  input  wire [DATA_W-1:0] hrdata,
  output reg  [36:0]       rule,
  output reg  [31:0]       errors
);
  localparam [1:0] OKAY = 2'b00;
  localparam BYTES    = DATA_W / 8;
  localparam MAX_SIZE = (DATA_W == 128) ? 4 : (DATA_W == 64) ? 3 : 2;

  reg        seen_reset = 1'b0;
  reg        dp_active, dp_idle, dp_write, legal;
  reg [31:0] dp_addr;
  reg [2:0]  dp_size;
  reg        prev_hready;
  reg [1:0]  prev_hresp;
  reg [7:0]  waits;

  wire second = dp_active & ~prev_hready & (prev_hresp != OKAY);
  wire done   = dp_active & hready_out & (hresp == OKAY);

  function covered;
    input [31:0] lane;
    input [31:0] addr;
    input [2:0]  size;
    covered = ((lane >> size) == ((addr & (BYTES - 1)) >> size));
  endfunction

  reg [36:0] hit;
  integer    i;
  always @(posedge clk) begin : check // once per cycle, on the values before the edge
    hit = 37'd0;
    if (~rst & seen_reset) begin
      hit[24] = ~dp_active & ~dp_idle & ({hready_out, hresp} !== {1'b1, OKAY});
      hit[25] = dp_idle & ({hready_out, hresp} !== {1'b1, OKAY});
      // two cycles: HREADY low, then high, with the same response, and nothing else between
      hit[27] = (second & ({hready_out, hresp} !== {1'b1, prev_hresp}))
              | (dp_active & ~second & hready_out & (hresp !== OKAY));
      hit[28] = (waits > MAX_WAIT);
      for (i = 0; i < BYTES; i = i + 1)
        if (done & ~dp_write & covered(i, dp_addr, dp_size))
          hit[30] = hit[30] | (^hrdata[8*i +: 8] === 1'bx);
      hit[31] = done & ~legal;
    end
    rule   <= seen_reset ? rule | hit : 37'd0;
    errors <= seen_reset ? errors + {31'd0, hit !== 37'd0} : 32'd0;
  end

  always @(posedge clk) begin
    if (rst) begin
      seen_reset <= 1'b1;
      {dp_active, dp_idle, dp_write, legal} <= 4'd0;
      prev_hready <= 1'b1;
      prev_hresp  <= OKAY;
      waits       <= 8'd0;
    end else begin
      waits  <= (dp_active & ~hready_out & (hresp == OKAY)) ? waits + 8'd1 : 8'd0;
      prev_hready <= hready_out;
      prev_hresp  <= hresp;
      if (hready_in) begin
        dp_active <= hsel & htrans[1];
        dp_idle   <= hsel & ~htrans[1];
        dp_write  <= hwrite;
        dp_addr   <= haddr;
        dp_size   <= hsize;
        legal     <= (hsize <= MAX_SIZE) & ((haddr & ((32'd1 << hsize) - 32'd1)) == 32'd0);
      end
    end
  end
endmodule

`resetall
