// SPDX-License-Identifier: Apache-2.0
//
// segment_search: finds the last segment whose start is below a value, one lane.
//
// How it works: act_table replaces each start by the minimum from that entry on. These never decrease
// from entry to entry, whatever the order of the table, and the last entry below v is the same. So four
// comparisons find it: with entries 4, 8 and 12 at once, then with one of entries 2, 6, 10, 14, then with
// one of the odd ones. Segment 0 when no start is below v. Three registers.
// Handshake: none, a fixed pipeline of three cycles; valid enables each stage. The memories are
// written while no value is in flight.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module segment_search #(
    // 1: a value equal to a start belongs to that segment
    parameter EQUAL = 0
) (
    // clock
    input  wire        clk,
    // stage enables
    input  wire [ 2:0] valid,
    // entries 4, 8 and 12; write port of the others
    input  wire [35:0] start_4,
    input  wire [35:0] start_8,
    input  wire [35:0] start_12,
    input  wire        table_we,
    input  wire [ 3:0] table_addr,
    input  wire [35:0] table_start,
    // value of the first stage
    input  wire [35:0] v,
    // segment and value after the third stage
    output reg  [ 3:0] segment,
    output reg  [35:0] value
);

  // ---- first stage
  wire above_4;
  above #(
      .EQUAL(EQUAL)
  ) u_above_4 (
      .value(v),
      .bound(start_4),
      .yes  (above_4)
  );
  wire above_8;
  above #(
      .EQUAL(EQUAL)
  ) u_above_8 (
      .value(v),
      .bound(start_8),
      .yes  (above_8)
  );
  wire above_12;
  above #(
      .EQUAL(EQUAL)
  ) u_above_12 (
      .value(v),
      .bound(start_12),
      .yes  (above_12)
  );
  reg [ 1:0] quarter;
  reg [35:0] v_1;
  always @(posedge clk) begin
    if (valid[0]) begin
      quarter <= {above_8, above_8 ? above_12 : above_4};
      v_1     <= v;
    end
  end

  // ---- second stage
  wire [35:0] start_2;
  ram_1r1w_async #(
      .WIDTH(36),
      .DEPTH(4)
  ) u_twos (
      .clk  (clk),
      .we   (table_we && table_addr[1:0] == 2'd2),
      .waddr(table_addr[3:2]),
      .wdata(table_start),
      .raddr(quarter),
      .rdata(start_2)
  );
  wire above_2;
  above #(
      .EQUAL(EQUAL)
  ) u_above_2 (
      .value(v_1),
      .bound(start_2),
      .yes  (above_2)
  );
  reg [ 2:0] eighth;
  reg [35:0] v_2;
  always @(posedge clk) begin
    if (valid[1]) begin
      eighth <= {quarter, above_2};
      v_2    <= v_1;
    end
  end

  // ---- third stage
  wire [35:0] start_1;
  ram_1r1w_async #(
      .WIDTH(36),
      .DEPTH(8)
  ) u_ones (
      .clk  (clk),
      .we   (table_we && table_addr[0]),
      .waddr(table_addr[3:1]),
      .wdata(table_start),
      .raddr(eighth),
      .rdata(start_1)
  );
  wire above_1;
  above #(
      .EQUAL(EQUAL)
  ) u_above_1 (
      .value(v_2),
      .bound(start_1),
      .yes  (above_1)
  );
  always @(posedge clk) begin
    if (valid[2]) begin
      segment <= {eighth, above_1};
      value   <= v_2;
    end
  end

endmodule

`resetall
