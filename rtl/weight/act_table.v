// SPDX-License-Identifier: Apache-2.0
//
// act_table: a ring of four activation tables, and registers with the one in use.
//
// How it works: a table is 18 words of 64 bits: sixteen segments {start 36, mul 16, shift 8}, then
// the sixteen addends, a byte each. The tables of the next layers arrive in a memory; at the start
// of a layer its table is copied into registers that all post lanes read.
// Handshake: load begins the copy (it waits until the table is there); ready is high from its end
// to the next load.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module act_table (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    // words from the parameter loader
    input  wire             at_we,
    input  wire [      6:0] at_addr,
    input  wire [     63:0] at_data,
    // tables complete and released (running counts)
    input  wire [      3:0] tables_filled,
    output reg  [      3:0] tables_freed,
    // copy of the next table
    input  wire             load,
    output reg              ready,
    // table in use: entry i at i*width
    output reg  [16*36-1:0] t_start,
    output reg  [16*16-1:0] t_mul,
    output reg  [ 16*8-1:0] t_shift,
    output reg  [ 16*8-1:0] t_add
);

  reg         copying;
  reg  [ 4:0] word;
  wire [63:0] data;

  ram_1r1w_async #(
      .WIDTH(64),
      .DEPTH(128)
  ) u_ram (
      .clk  (clk),
      .we   (at_we),
      .waddr(at_addr),
      .wdata(at_data),
      .raddr({tables_freed[1:0], word}),
      .rdata(data)
  );

  wire there = tables_filled != tables_freed;
  wire go = copying && there;
  wire last = word == 5'd17;

  always @(posedge clk) begin
    if (rst) begin
      copying      <= 1'b0;
      ready        <= 1'b0;
      word         <= 5'd0;
      tables_freed <= 4'd0;
    end else if (load) begin
      copying <= 1'b1;
      ready   <= 1'b0;
      word    <= 5'd0;
    end else if (go) begin
      copying      <= !last;
      ready        <= last;
      word         <= last ? 5'd0 : word + 5'd1;
      tables_freed <= last ? tables_freed + 4'd1 : tables_freed;
    end
  end

  always @(posedge clk) begin
    if (go) begin
      if (!word[4]) begin
        t_shift[{word[3:0], 3'd0}+:8] <= data[7:0];
        t_mul[{word[3:0], 4'd0}+:16]  <= data[23:8];
        t_start[36*word[3:0]+:36]     <= data[59:24];
      end else begin
        t_add[{word[0], 6'd0}+:64] <= data;
      end
    end
  end

endmodule

`resetall
