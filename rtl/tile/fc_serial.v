// SPDX-License-Identifier: Apache-2.0
//
// fc_serial: packs the pixels of a map into one vector, for fully connected layers, three per cycle.
//
// How it works: words of eight bytes arrive in c, y, x order. Element e of the vector belongs to reduction
// step e / 9 and unit e mod 9; step s is byte s mod 64 of entry s / 64 of the tile buffer. The nine units are
// three tap rows of three columns, and tile_scatter presents the bytes of a word from byte v on to column v.
// So up to three elements go to one tap row at a time, with the word rotated so that the first of them is in
// its byte lane. A word takes one cycle per tap row it reaches, one to four.
// Handshake: an arrived word cannot be stalled. So ready permits a request (sent) only when the earlier words
// will be finished on its arrival, two cycles after its grant at the earliest: fill_seq waits. The last word
// of a vector completes its entry, and the next word is requested only after that.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module fc_serial (
    // clock and synchronous reset; restart at the start of a layer
    input  wire       clk,
    input  wire       rst,
    input  wire       restart,
    // request permitted, request issued: bytes of the word, last word of the vector; its read is granted
    output wire       ready,
    input  wire       sent,
    input  wire [3:0] sent_bytes,
    input  wire       sent_last,
    input  wire       granted,
    // arrived word: the same attributes, held until the next one arrives
    input  wire       valid,
    input  wire [3:0] bytes,
    input  wire       last,
    // its elements are written: banks written, byte of the word that is rotated to byte 0
    output wire       work,
    output wire [8:0] on,
    output wire [2:0] base,
    // step in the entry; the entry is complete
    output reg  [5:0] step,
    output wire       done
);

  // ---- requests
  reg [1:0] sent_col;  // column of the first requested element
  reg [1:0] rows_m1;  // tap rows, less one, of the word whose read is not yet granted
  reg [1:0] pause;  // remaining cycles without a request
  reg vector_ends;  // the vector's last word is in flight
  wire [3:0] sent_upto = sent_bytes + {2'd0, sent_col};
  wire [1:0] sent_rows_m1 = (sent_upto > 4'd9) ? 2'd3 : (sent_upto > 4'd6) ? 2'd2 : {1'b0, sent_upto > 4'd3};
  wire [3:0] sent_rest = sent_upto - {1'b0, sent_rows_m1, 1'b0} - {2'd0, sent_rows_m1};  // in the last row
  // from registers: with a request that waits for its grant, none is made either way
  assign ready = !vector_ends && rows_m1 == 2'd0 && pause == 2'd0;

  // ---- arrived word: index of an element, and its unit, as tap row and column
  reg [2:0] at;
  reg [1:0] row;
  reg [1:0] col;
  reg more;  // more elements remain
  assign work = valid || more;
  wire [3:0] left = bytes - {1'b0, at};
  wire [3:0] upto = left + {2'd0, col};  // column after the last element
  wire ends = upto <= 4'd3;
  wire fills = upto >= 4'd3;  // the tap row is complete
  wire vector_end = ends && last;
  wire next_step = fills && row == 2'd2;
  assign done = work && (vector_end || (next_step && step == 6'd63));
  assign base = at + 3'd1 - {1'b0, col} - step[2:0];

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      localparam integer ROW_I = t / 3;
      localparam integer COL_I = t % 3;
      localparam [1:0] ROW = ROW_I[1:0];
      localparam [1:0] COL = COL_I[1:0];
      assign on[t] = row == ROW && (col == COL || (COL != 2'd0 && col < COL && upto > {2'd0, COL}));
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || restart) begin
      sent_col    <= 2'd0;
      rows_m1     <= 2'd0;
      pause       <= 2'd0;
      vector_ends <= 1'b0;
      at          <= 3'd0;
      row         <= 2'd0;
      col         <= 2'd0;
      step        <= 6'd0;
      more        <= 1'b0;
    end else begin
      if (sent) sent_col <= (sent_last || sent_rest == 4'd3) ? 2'd0 : sent_rest[1:0];
      rows_m1 <= sent ? sent_rows_m1 : granted ? 2'd0 : rows_m1;
      vector_ends <= (sent && sent_last) || (vector_ends && !(work && vector_end));
      pause <= (granted && rows_m1 != 2'd0) ? rows_m1 - 2'd1 : (pause != 2'd0) ? pause - 2'd1 : 2'd0;
      more <= work && !ends;
      if (work) begin
        at   <= ends ? 3'd0 : at + 3'd3 - {1'b0, col};
        col  <= (ends && !fills && !last) ? upto[1:0] : 2'd0;
        row  <= (vector_end || next_step) ? 2'd0 : fills ? row + 2'd1 : row;
        step <= vector_end ? 6'd0 : next_step ? step + 6'd1 : step;
      end
    end
  end

endmodule

`resetall
