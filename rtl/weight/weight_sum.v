// SPDX-License-Identifier: Apache-2.0
//
// weight_sum: sums the weights of each channel of a layer, and converts the sums to constants.
//
// How it works: the nine weights of a word are added in one cycle, and the word's sum is added to that of its
// channel in the next. The sum of a channel goes to weight_constant, which multiplies it.
// Handshake: none; a channel's last word may come only while free is high, when its sum can be multiplied.
// The constant is written eleven cycles after the word at the latest.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_sum #(
    // bits of a weight; 1: one multiplier for all partial products
    parameter WEIGHT_BITS = 16,
    parameter SERIAL      = 1,
    // widths of a parameter row address, of a bank index
    parameter PAW         = 9,
    parameter ZW          = 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // layer: start with its descriptor; addend; sums may exceed 17 bits, 34 bits; no constants
    input  wire                     start,
    input  wire [   `DESC_BITS-1:0] desc,
    input  wire [             35:0] addc,
    input  wire                     above_17,
    input  wire                     above_34,
    input  wire                     bare,
    // a word: first, last one of its channel, destination of the constant; its weights a cycle later
    input  wire                     go,
    input  wire                     first,
    input  wire                     last,
    input  wire [          PAW-1:0] row,
    input  wire [           ZW-1:0] bank,
    input  wire [9*WEIGHT_BITS-1:0] weights,
    output wire                     free,
    // constant to the parameter buffer
    output wire                     kc_we,
    output wire [          PAW-1:0] kc_row,
    output wire [           ZW-1:0] kc_bank,
    output wire [             35:0] kc_data,
    // words, sums or constants are in flight
    output wire                     busy
);

  localparam WB = WEIGHT_BITS;

  // ---- sum of a word (in separate nets: synthesis makes one sum of several terms larger)
  (* keep *)wire [  WB:0] pair_0;
  (* keep *)wire [  WB:0] pair_1;
  (* keep *)wire [  WB:0] pair_2;
  (* keep *)wire [  WB:0] pair_3;
  (* keep *)wire [WB+1:0] four_0;
  (* keep *)wire [WB+1:0] four_1;
  (* keep *)wire [WB+2:0] eight;
  assign pair_0 = {1'b0, weights[0+:WB]} + {1'b0, weights[WB+:WB]};
  assign pair_1 = {1'b0, weights[2*WB+:WB]} + {1'b0, weights[3*WB+:WB]};
  assign pair_2 = {1'b0, weights[4*WB+:WB]} + {1'b0, weights[5*WB+:WB]};
  assign pair_3 = {1'b0, weights[6*WB+:WB]} + {1'b0, weights[7*WB+:WB]};
  assign four_0 = {1'b0, pair_0} + {1'b0, pair_1};
  assign four_1 = {1'b0, pair_2} + {1'b0, pair_3};
  assign eight  = {1'b0, four_0} + {1'b0, four_1};

  // ---- sum of a channel: 30 bits (1024 * 9 * 65535), for a vector of 2 MiB 37 bits
  reg q_valid, q_first, q_last, r_valid, r_last;
  reg [PAW-1:0] q_row, r_row;
  reg [ZW-1:0] q_bank, r_bank;
  reg  [WB+2:0] eight_q;
  reg  [WB-1:0] ninth_q;
  (* keep *)wire [WB+3:0] word_sum;
  assign word_sum = {1'b0, eight_q} + {4'd0, ninth_q};
  reg  [36:0] sum;  // of the previous words
  wire [36:0] sum_n = sum + {{(33 - WB) {1'b0}}, word_sum};

  always @(posedge clk) begin
    if (rst) begin
      q_valid <= 1'b0;
      r_valid <= 1'b0;
    end else begin
      q_valid <= go;
      r_valid <= q_valid;
    end
  end

  always @(posedge clk) begin
    if (go) begin
      q_first <= first;
      q_last  <= last;
      q_row   <= row;
      q_bank  <= bank;
    end
    if (q_valid) begin
      eight_q <= eight;
      ninth_q <= weights[8*WB+:WB];
      r_last  <= q_last;
      r_row   <= q_row;
      r_bank  <= q_bank;
    end
    // the last sum leaves as sum_n
    if (q_valid && q_first) sum <= 37'd0;
    else if (r_valid) sum <= sum_n;
  end

  // ---- cycles until the multiplier is free
  wire scaling, constant_busy;
  wire [2:0] cycles;
  reg  [2:0] hold;
  reg        rests;  // hold is 0
  wire       multiplies = go && last && !bare;
  assign free = rests && !scaling;
  always @(posedge clk) begin
    if (rst) begin
      hold  <= 3'd0;
      rests <= 1'b1;
    end else begin
      hold  <= multiplies ? cycles - 3'd1 : (hold != 3'd0) ? hold - 3'd1 : 3'd0;
      rests <= multiplies ? cycles == 3'd1 : hold[2:1] == 2'd0;
    end
  end

  weight_constant #(
      .SERIAL(SERIAL),
      .PAW   (PAW),
      .ZW    (ZW)
  ) u_constant (
      .clk     (clk),
      .rst     (rst),
      .start   (start),
      .arg_w   (desc[`DESC_ARGW]),
      .shr_w   (desc[`DESC_SHRW]),
      .addc    (addc),
      .above_17(above_17),
      .above_34(above_34),
      .scaling (scaling),
      .cycles  (cycles),
      .valid   (r_valid && r_last && !bare),
      .sum     (sum_n),
      .row     (r_row),
      .bank    (r_bank),
      .kc_we   (kc_we),
      .kc_row  (kc_row),
      .kc_bank (kc_bank),
      .kc_data (kc_data),
      .busy    (constant_busy)
  );

  assign busy = q_valid || r_valid || constant_busy;

  wire unused = &{1'b0, desc};

endmodule

`resetall
