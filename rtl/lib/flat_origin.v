// SPDX-License-Identifier: Apache-2.0
//
// flat_origin: line and column of the map at the start of each stripe of a flat layer.
//
// How it works: a flat layer treats its map as one line, in stripes of 64 pixels (stripe_iter walks
// them). From stripe to stripe the origin moves by 64 / width lines and 64 modulo width columns, and by
// one more line when the columns exceed the width.
// Handshake: restart selects the first stripe, next the following one (both at the clock edge); the
// outputs describe the present stripe.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module flat_origin (
    // clock
    input  wire       clk,
    // to the first stripe; to the next one
    input  wire       restart,
    input  wire       next,
    // pixels per line, 1 to 16
    input  wire [4:0] width,
    // origin of the stripe; first line of the next stripe
    output reg  [3:0] x,
    output reg  [8:0] y,
    output wire [8:0] y_next
);

  wire [6:0] lines;
  wire [3:0] rest;
  flat_lines u_lines (
      .width(width[3:0]),
      .lines(lines),
      .rest (rest)
  );

  wire [4:0] sum = {1'b0, x} + {1'b0, rest};
  wire over = sum >= width;
  wire [4:0] x_next = over ? sum - width : sum;
  assign y_next = y + {2'd0, lines} + {8'd0, over};

  always @(posedge clk) begin
    if (restart) begin
      x <= 4'd0;
      y <= 9'd0;
    end else if (next) begin
      x <= x_next[3:0];
      y <= y_next;
    end
  end

  wire unused = &{1'b0, x_next[4]};

endmodule

`resetall
