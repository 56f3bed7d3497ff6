// SPDX-License-Identifier: Apache-2.0
//
// fc_serial: lines up the pixels of a map as one vector, for fully connected layers, three a cycle.
//
// How it works: words of eight bytes arrive in c, y, x order. Element e of the vector belongs to
// reduction step e / 9 and unit e mod 9; step s is byte s mod 64 of entry s / 64 of the tile buffer. The
// nine units are three tap rows of three columns, and tile_scatter shows column v the bytes of a word from
// byte v on. So up to three elements go to one tap row at a time, the word turned so that the first of
// them comes to its byte. A word takes three or four cycles, while it stays where it arrived, and one
// more, in which it is turned for the last time.
// Handshake: ready says that a word may be requested (sent: it was); it then comes with valid, and its
// entry is free. fill_seq waits for ready, nothing waits here. work, with what is written, is of the
// word that is there.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fc_serial (
    // clock and synchronous reset; restart at the start of a layer
    input  wire       clk,
    input  wire       rst,
    input  wire       restart,
    // a word may be requested, one was; it arrives: bytes of it, last word of the vector. They stand
    // until the next one arrives.
    output wire       ready,
    input  wire       sent,
    input  wire       valid,
    input  wire [3:0] bytes,
    input  wire       lastword,
    // elements go to the banks: those of the nine; byte of the word that comes to byte 0
    output wire       work,
    output wire [8:0] on,
    output wire [2:0] base,
    // their step in the entry; the entry is complete
    output reg  [5:0] step,
    output wire       done
);

  // an element of the word, and its place among the nine: tap row, column
  reg [2:0] at;
  reg [1:0] row;
  reg [1:0] col;
  reg more;  // the word that is there has further elements
  reg asked;  // a word was requested that has not arrived

  assign work = valid || more;
  wire [3:0] left = bytes - {1'b0, at};
  wire [3:0] upto = left + {2'd0, col};  // column behind the last element
  wire ends = upto <= 4'd3;
  wire fills = upto >= 4'd3;  // the tap row
  wire vector_end = ends && lastword;
  wire next_step = fills && row == 2'd2;
  assign done  = work && (vector_end || (next_step && step == 6'd63));
  assign base  = at + 3'd1 - {1'b0, col} - step[2:0];

  // A word may arrive in the second cycle after the last element at the earliest, which is the third
  // after its request. A vector's last one completes its entry, and the next word may need another.
  assign ready = !asked && (!work || (upto <= 4'd6 && !lastword));

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      localparam integer ROW_I = t / 3;
      localparam integer COL_I = t % 3;
      localparam [1:0] ROW = ROW_I[1:0];
      localparam [3:0] COL = COL_I[3:0];
      assign on[t] = row == ROW && {2'd0, col} <= COL && COL < upto;
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || restart) begin
      at    <= 3'd0;
      row   <= 2'd0;
      col   <= 2'd0;
      step  <= 6'd0;
      more  <= 1'b0;
      asked <= 1'b0;
    end else begin
      asked <= sent || (asked && !valid);
      more  <= work && !ends;
      if (work) begin
        at   <= ends ? 3'd0 : at + 3'd3 - {1'b0, col};
        col  <= (ends && !fills && !lastword) ? upto[1:0] : 2'd0;
        row  <= (vector_end || next_step) ? 2'd0 : fills ? row + 2'd1 : row;
        step <= vector_end ? 6'd0 : next_step ? step + 6'd1 : step;
      end
    end
  end

endmodule

`resetall
