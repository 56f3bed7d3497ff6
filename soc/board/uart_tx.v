// SPDX-License-Identifier: Apache-2.0
//
// uart_tx: characters to a serial line, eight bits, no parity, one stop bit.
//
// How it works: characters wait in a FIFO. The oldest one leaves from a shift register, start bit first, a bit every
// CYCLES cycles.
// Handshake: put writes a character; full comes one character early, so that whoever looks at it before he writes
// loses none. A character that is put into a full FIFO is dropped.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module uart_tx #(
    // cycles of a bit, 2 to 65535
    parameter CYCLES = 50,
    // characters that wait
    parameter DEPTH  = 512
) (
    // clock, synchronous reset
    input  wire       clk,
    input  wire       rst,
    // characters
    input  wire       put,
    input  wire [7:0] data,
    output wire       full,
    // the line; nothing waits or is on the line
    output wire       tx,
    output wire       idle
);

  localparam COUNT_W = $clog2(DEPTH + 1);
  localparam [COUNT_W-1:0] ALMOST = DEPTH - 1;
  localparam [15:0] LAST = CYCLES - 1;

  wire [COUNT_W-1:0] count;
  wire valid, room;
  wire [7:0] next;
  reg [15:0] cycle;
  reg [8:0] bits;
  reg [3:0] left;
  wire take = valid && left == 4'd0;
  wire bit_end = cycle == LAST;

  fifo_ram #(
      .WIDTH(8),
      .DEPTH(DEPTH)
  ) u_waiting (
      .clk      (clk),
      .rst      (rst),
      .flush    (1'b0),
      .in_valid (put),
      .in_ready (room),
      .in_data  (data),
      .out_valid(valid),
      .out_ready(take),
      .out_data (next),
      .count    (count)
  );

  assign full = count >= ALMOST;
  assign tx   = bits[0];
  assign idle = count == {COUNT_W{1'b0}} && left == 4'd0;

  // start bit, eight bits, stop bit; the ones that are shifted in are the stop bit and the line at rest
  always @(posedge clk) begin
    if (rst) begin
      bits  <= 9'h1FF;
      left  <= 4'd0;
      cycle <= 16'd0;
    end else if (take) begin
      bits  <= {next, 1'b0};
      left  <= 4'd10;
      cycle <= 16'd0;
    end else if (left != 4'd0) begin
      bits  <= bit_end ? {1'b1, bits[8:1]} : bits;
      left  <= bit_end ? left - 4'd1 : left;
      cycle <= bit_end ? 16'd0 : cycle + 16'd1;
    end else begin
      bits  <= bits;
      left  <= left;
      cycle <= cycle;
    end
  end

  generate
    if (CYCLES < 2 || CYCLES > 65535) begin : g_illegal
      ILLEGAL_CYCLES_2_TO_65535 u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, room};

endmodule

`resetall
