// SPDX-License-Identifier: Apache-2.0
//
// mac_tags: delays the tag of an issue until its sums leave the array.
//
// How it works: a shift register of tags, as long as the latency of memory and array. With SUM_PLANES a
// second one delays the request that kept sums leave again.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_tags #(
    // width of a tag; cycles from an issue to its sums; 1: finished sums can leave again
    parameter TW         = 32,
    parameter DELAY      = 12,
    parameter SUM_PLANES = 0
) (
    // clock and synchronous reset
    input  wire          clk,
    input  wire          rst,
    // an issue was made, with its tag; bit 1: the next kept sums leave again
    input  wire [   1:0] issued,
    input  wire [TW-1:0] issue_tag,
    // sums leave the array: their tag, that of the next sums
    output wire          valid,
    output wire [TW-1:0] tag,
    output wire [TW-1:0] tag_next,
    // kept sums leave again
    output wire          again,
    // neither is in flight
    output wire          idle
);

  reg [DELAY-1:0] valids;
  reg [DELAY*TW-1:0] tags;
  wire again_idle;
  assign valid = valids[DELAY-1];
  assign tag = tags[DELAY*TW-1-:TW];
  assign tag_next = tags[(DELAY-1)*TW-1-:TW];
  assign idle = valids == {DELAY{1'b0}} && again_idle;
  always @(posedge clk) begin
    if (rst) valids <= {DELAY{1'b0}};
    else valids <= {valids[DELAY-2:0], issued[0]};
  end
  always @(posedge clk) tags <= {tags[(DELAY-1)*TW-1:0], issue_tag};

  generate
    if (SUM_PLANES != 0) begin : g_again
      reg [DELAY-1:0] agains;
      always @(posedge clk) begin
        if (rst) agains <= {DELAY{1'b0}};
        else agains <= {agains[DELAY-2:0], issued[1]};
      end
      assign again = agains[DELAY-1];
      assign again_idle = agains == {DELAY{1'b0}};
    end else begin : g_once
      assign {again, again_idle} = 2'b01;
      wire unused_again = issued[1];
    end
  endgenerate

endmodule

`resetall
