// SPDX-License-Identifier: Apache-2.0
//
// Rules for the arbiter and the decoder; see README.md of this folder for the numbers.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_arbiter_checker #(
  // masters and slaves on the bus; master 0 is the default one
  parameter MASTERS = 2,
  parameter SLAVES  = 2
) (
  input  wire               clk,
  input  wire               rst,
  input  wire [MASTERS-1:0] hbusreq,
  input  wire [MASTERS-1:0] hlock,
  input  wire [MASTERS-1:0] hgrant,
  // index of the master that owns the address bus
  input  wire [3:0]         hmaster,
  input  wire [1:0]         htrans,
  input  wire [SLAVES-1:0]  hsel,
  input  wire               hready,
  input  wire [1:0]         hresp,
  // masters whose SPLIT transfer may be tried again
  input  wire [MASTERS-1:0] hsplit,
  output reg  [36:0]        rule,
  output reg  [31:0]        errors
);
  localparam [1:0] SPLIT = 2'b11;

  function one_hot;
    input [31:0] bits;
    one_hot = (bits != 32'd0) & ((bits & (bits - 32'd1)) == 32'd0);
  endfunction

  reg               seen_reset = 1'b0;
  reg               settled;
  reg [MASTERS-1:0] grant_at_ready, prev_hgrant, prev_hbusreq, split;
  reg [3:0]         data_master;
  reg               data_active;

  wire [MASTERS-1:0] now_split = (data_active & (hresp == SPLIT) & hready)
                               ? ({{(MASTERS-1){1'b0}}, 1'b1} << data_master) : {MASTERS{1'b0}};
  wire [MASTERS-1:0] owner     = {{(MASTERS-1){1'b0}}, 1'b1} << hmaster;
  wire idle_bus = (prev_hbusreq == {MASTERS{1'b0}}) & (htrans == 2'b00);

  reg [36:0] hit;
  always @(posedge clk) begin : check // once per cycle, on the values before the edge
    hit = 37'd0;
    if (~rst & seen_reset) begin
      // one grant; nobody new is granted who did not ask, except the default master
      hit[32] = ~one_hot({{(32-MASTERS){1'b0}}, hgrant})
              | (settled & idle_bus & hready & ((hgrant & ~prev_hgrant & ~1) != {MASTERS{1'b0}}));
      hit[33] = ((split & hgrant) != {MASTERS{1'b0}})
              | (settled & ((owner & hlock & prev_hgrant) != {MASTERS{1'b0}}) & htrans[1]
                 & ((owner & hgrant) == {MASTERS{1'b0}}));
      hit[34] = ~one_hot({{(32-SLAVES){1'b0}}, hsel});
      hit[35] = settled & (owner !== grant_at_ready);
    end
    rule   <= seen_reset ? rule | hit : 37'd0;
    errors <= seen_reset ? errors + {31'd0, hit !== 37'd0} : 32'd0;
  end

  always @(posedge clk) begin
    if (rst) begin
      seen_reset  <= 1'b1;
      settled     <= 1'b0;
      split       <= {MASTERS{1'b0}};
      data_active <= 1'b0;
      data_master <= 4'd0;
      grant_at_ready <= {MASTERS{1'b0}};
    end else begin
      split  <= (split | now_split) & ~hsplit;
      if (hready) begin
        settled        <= 1'b1;
        grant_at_ready <= hgrant;
        data_active    <= htrans[1];
        data_master    <= hmaster;
      end
    end
    prev_hgrant  <= hgrant;
    prev_hbusreq <= hbusreq;
  end
endmodule

`resetall
