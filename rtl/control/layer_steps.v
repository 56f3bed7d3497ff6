// SPDX-License-Identifier: Apache-2.0
//
// layer_steps: what is computed of a layer, and checked, a step a cycle.
//
// How it works: a table has a row for each step: two operands, what is done with them, where the
// result goes, what is checked, and how many rows are left out behind it. There is one multiplier,
// whose product stands until the next multiplication, one adder that compares as well, and a file of
// 16 registers (T_*). Other results are fields of the descriptor. Division by nine is a multiplication
// by its reciprocal, exact for what comes; a vector of up to 2 MiB is divided in two parts. Maps: each
// takes whole rows from its address on, its channel groups follow each other or lie as many rows apart
// as words 7 and 8 say. The rows of a first layer's input are the place of the inference's pixels;
// touch tells whether a map meets it. What is not allowed is collected by its kind, so the order of the
// rows does not decide about the code.
// Handshake: the rows in front of LATE run as soon as begun is high (words 0 to 4 are there), the others
// with full. over stays with all results until clear.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_steps #(
    // output channels of the array, rows of the memories; weights may be kept in the AI RAM
    parameter N_Z         = 4,
    parameter AI_RAM_ROWS = 32768,
    parameter WBUF_ROWS   = 1024,
    parameter KEEP        = 0,
    // derived, not to be set: width of a bank number
    parameter ZW          = $clog2(N_Z)
) (
    // clock, synchronous reset, forget this layer; words 0 to 4 are there, all are
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  clear,
    input  wire                  begun,
    input  wire                  full,
    // fields of the layer, and those that the descriptor does not have: channels less one, a load's
    // channels, loads less one, the constant term of a channel, 3x3 weights are looked at
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [          13:0] c_m1,
    input  wire [           9:0] o_m1,
    input  wire [          10:0] coef,
    input  wire [           5:0] loads_m1,
    input  wire [          35:0] term,
    // rows between channel groups: of words 8 and 7 as they come, and whether they count
    input  wire [           1:0] load_apart,
    input  wire [          14:0] word_apart,
    input  wire [           1:0] apart,
    // window of a pooling task in one direction, that of pixels with side
    output reg                   side,
    input  wire [           3:0] pad,
    input  wire [           3:0] kernel_m1,
    input  wire [           4:0] stride,
    // groups that share a reading of the input
    input  wire [           3:0] share,
    // all steps are done; what is not allowed
    output wire                  over,
    output reg                   bad_size,
    output reg                   bad_place,
    output reg                   bad_weights,
    // results, as the descriptor names them; rem: steps' last one less one
    output reg  [          21:0] inb,
    output reg  [          13:0] ics,
    output reg  [          13:0] ocs,
    output reg  [          17:0] steps,
    output reg  [           3:0] rem,
    output reg  [          10:0] groups,
    output reg  [           3:0] block,
    output reg  [          16:0] wlen,
    output reg  [          16:0] wlast,
    output reg  [          35:0] addc,
    output reg  [          15:0] wrows,
    output reg                   touch
);

  // ---- the layer
  wire [1:0] mode = desc[`DESC_MODE];
  wire chan = mode == `MODE_CHAN;
  wire fc = mode == `MODE_FC;
  wire in_order = mode == `MODE_DWROW;  // every row is read once, before that of its number is written
  wire dw = desc[`DESC_DW];
  wire k3 = desc[`DESC_K3];
  wire two = desc[`DESC_EW] && !desc[`DESC_ONE];  // there is a second map
  wire out32 = desc[`DESC_OUT32];
  wire pools = desc[`DESC_POOLS];
  wire wide = desc[`DESC_WIDE];
  wire first = desc[`DESC_FIRST];
  wire kept = (KEEP != 0) && desc[`DESC_KEPT];
  wire [1:0] ip = desc[`DESC_IP];
  wire [1:0] op = desc[`DESC_OP];
  wire [31:0] waddr = desc[`DESC_WADDR];

  // ---- operands: registers of the file have the top bit; ZERO for either
  localparam [5:0] ZERO = 6'd0, T_INB = 6'd32, T_QUOTIENT = 6'd33, T_IN_GROUPS = 6'd34, T_OWN = 6'd35,
      T_OUT_GROUPS = 6'd36, T_OUT_OWN = 6'd37, T_ROWS = 6'd38, T_IN_END = 6'd39, T_IN_END2 = 6'd40,
      T_LO = 6'd41, T_HI = 6'd42, T_DST = 6'd43, T_STOP = 6'd44, T_REST = 6'd45, T_UNIT = 6'd46,
      T_BLOCK = 6'd47;
  // ... left: slices of the product, fields; twice the channels less one, for shifts by multiplication
  localparam [5:0] A_P = 6'd1, A_HIGH = 6'd2, A_NINTH = 6'd3, A_PACKED = 6'd4, A_C2 = 6'd5, A_O2 = 6'd6,
      A_H = 6'd7, A_OH = 6'd8, A_W = 6'd9, A_OW = 6'd10, A_O = 6'd11, A_SRC = 6'd12, A_SRC2 = 6'd13,
      A_DST = 6'd14, A_LOADS = 6'd15, A_TERM = 6'd16, A_TERM_HIGH = 6'd17, A_BYTES = 6'd18, A_ONE = 6'd19;
  // ... right: the product, fields, constants
  localparam [5:0] B_P = 6'd1, B_C = 6'd2, B_ONE = 6'd3, B_COEF = 6'd4, B_ICS = 6'd5, B_OCS = 6'd6,
      B_IRL = 6'd7, B_ORL = 6'd8, B_PLANES = 6'd9, B_IN_PITCH = 6'd10, B_OUT_PITCH = 6'd11, B_BANKS = 6'd12,
      B_NINTH_2 = 6'd13, B_NINTH = 6'd14, B_NINTH_LONG = 6'd15, B_S = 6'd16, B_EIGHT = 6'd17, B_REM = 6'd18,
      B_PART = 6'd19, B_PAD = 6'd20, B_KERNEL = 6'd21, B_STRIDE = 6'd22, B_PSIZE = 6'd23;
  // what is done: the product, a sum, differences; a passed on, carry: it is at least b, or above it
  localparam [2:0] MUL = 3'd0, ADD = 3'd1, SUB = 3'd2, SUB_1 = 3'd3, GE = 3'd4, GT = 3'd5;
  // where the result goes besides the file
  localparam [4:0] NONE = 5'd0, D_INB = 5'd1, D_REM = 5'd2, D_REM_FC = 5'd3, D_S = 5'd4, D_G = 5'd5,
      D_ICS = 5'd6, D_OCS = 5'd7, D_BELOW = 5'd8, D_BELOW_TOO = 5'd9, D_TOUCH = 5'd10, D_BEHIND = 5'd11,
      D_WLEN = 5'd12, D_WLAST = 5'd13, D_ADDC = 5'd14, D_ADDC_HIGH = 5'd15, D_WROWS = 5'd16, D_B = 5'd17,
      D_SIDE = 5'd18;
  // what is checked
  localparam [3:0] FINE = 4'd0, NEAR_IN = 4'd1, NEAR_OUT = 4'd2, SPAN = 4'd3, LIMIT = 4'd4, MEET = 4'd5,
      FEW = 4'd6, OVER = 4'd7, HUGE = 4'd8, LONG = 4'd9, KEPT_END = 4'd10, ROOM = 4'd11, ROOM_DW = 4'd12,
      WINDOW = 4'd13, NEXT = 4'd14, LAST = 4'd15;
  localparam [6:0] LATE = 7'd15, END = 7'd76;
  localparam [4:0] TO_POOLS = 5'd29, PAST_FC = 5'd10;

  reg [6:0] row;
  reg [5:0] a, b, t;
  reg [2:0] what;
  reg [4:0] dest, skip;
  reg [3:0] check;

  // ---- the table
  always @* begin
    case (row)
      // bytes of the input map
      7'd0: {a, b, what, t, dest, check} = {A_H, B_C, MUL, ZERO, NONE, FINE};
      7'd1: {a, b, what, t, dest, check} = {A_W, B_P, MUL, ZERO, NONE, FINE};
      7'd2: {a, b, what, t, dest, check} = {A_P, ZERO, ADD, T_INB, D_INB, FINE};
      // reduction steps: ceil(C / 9), C, or one; rows that must be in the weight buffer
      7'd3: {a, b, what, t, dest, check} = {A_C2, B_NINTH_2, MUL, ZERO, NONE, FINE};
      7'd4: {a, b, what, t, dest, check} = {A_HIGH, ZERO, ADD, T_QUOTIENT, D_REM, FINE};
      7'd5:
      {a, b, what, t, dest, check} = {
        chan ? T_QUOTIENT : ZERO, (chan || in_order) ? B_ONE : B_C, ADD, T_BLOCK, D_S, ROOM
      };
      // channel groups of the input less one; groups of output channels; ... of the output less one
      7'd6: {a, b, what, t, dest, check} = {A_C2, B_IN_PITCH, MUL, ZERO, NONE, FINE};
      7'd7: {a, b, what, t, dest, check} = {A_HIGH, ZERO, ADD, T_IN_GROUPS, NONE, FINE};
      7'd8: {a, b, what, t, dest, check} = {A_O2, B_BANKS, MUL, ZERO, NONE, FINE};
      7'd9: {a, b, what, t, dest, check} = {A_HIGH, B_ONE, ADD, T_QUOTIENT, D_G, FINE};
      7'd10: {a, b, what, t, dest, check} = {A_O2, B_OUT_PITCH, MUL, ZERO, NONE, FINE};
      7'd11: {a, b, what, t, dest, check} = {A_HIGH, ZERO, ADD, T_OUT_GROUPS, NONE, FINE};
      // rows of a channel group
      7'd12: {a, b, what, t, dest, check} = {A_H, B_IRL, MUL, ZERO, NONE, FINE};
      7'd13: {a, b, what, t, dest, check} = {A_P, ZERO, ADD, T_OWN, NONE, FINE};
      7'd14: {a, b, what, t, dest, check} = {A_OH, B_ORL, MUL, ZERO, NONE, FINE};
      // LATE; of all planes of a channel
      7'd15: {a, b, what, t, dest, check} = {A_P, B_OCS, GT, T_OUT_OWN, D_OCS, NEAR_OUT};
      7'd16: {a, b, what, t, dest, check} = {A_P, B_PLANES, MUL, ZERO, NONE, FINE};
      7'd17: {a, b, what, t, dest, check} = {A_P, ZERO, ADD, T_OUT_OWN, NONE, FINE};
      // rows of the input; the row behind it, behind the second map
      7'd18: {a, b, what, t, dest, check} = {T_OWN, B_ICS, GT, ZERO, D_ICS, NEAR_IN};
      7'd19: {a, b, what, t, dest, check} = {T_IN_GROUPS, B_ICS, MUL, ZERO, NONE, FINE};
      7'd20: {a, b, what, t, dest, check} = {A_P, T_OWN, ADD, T_ROWS, NONE, SPAN};
      7'd21: {a, b, what, t, dest, check} = {A_SRC, T_ROWS, ADD, T_IN_END, NONE, LIMIT};
      7'd22: {a, b, what, t, dest, check} = {A_SRC2, T_ROWS, ADD, T_IN_END2, NONE, LIMIT};
      // does it meet the place of the pixels? a first layer sets it
      7'd23: {a, b, what, t, dest, check} = {A_SRC, T_HI, GE, T_LO, D_BELOW, FINE};
      7'd24: {a, b, what, t, dest, check} = {T_IN_END, T_LO, GT, T_HI, D_TOUCH, FINE};
      7'd25: {a, b, what, t, dest, check} = {A_SRC2, T_HI, GE, ZERO, D_BELOW, FINE};
      7'd26: {a, b, what, t, dest, check} = {T_IN_END2, T_LO, GT, ZERO, D_TOUCH, FINE};
      // rows of the output, the row behind it
      7'd27: {a, b, what, t, dest, check} = {T_OUT_GROUPS, B_OCS, MUL, ZERO, NONE, FINE};
      7'd28: {a, b, what, t, dest, check} = {A_P, B_PLANES, MUL, ZERO, NONE, SPAN};
      7'd29: {a, b, what, t, dest, check} = {A_P, T_OUT_OWN, ADD, T_ROWS, NONE, SPAN};
      7'd30: {a, b, what, t, dest, check} = {A_DST, T_ROWS, ADD, T_STOP, NONE, LIMIT};
      // may it meet an input in front of it: its groups are no farther apart
      7'd31: {a, b, what, t, dest, check} = {A_ONE, B_OCS, MUL, ZERO, NONE, FINE};
      7'd32: {a, b, what, t, dest, check} = {A_P, B_ICS, GT, ZERO, D_BEHIND, FINE};
      // does it meet the input, the second map, the place of the pixels?
      7'd33: {a, b, what, t, dest, check} = {A_DST, T_IN_END, GE, T_DST, D_BELOW, FINE};
      7'd34: {a, b, what, t, dest, check} = {A_SRC, T_STOP, GE, ZERO, D_BELOW_TOO, FINE};
      7'd35: {a, b, what, t, dest, check} = {A_SRC, T_DST, GE, ZERO, NONE, MEET};
      7'd36: {a, b, what, t, dest, check} = {T_DST, T_IN_END2, GE, ZERO, D_BELOW, FINE};
      7'd37: {a, b, what, t, dest, check} = {A_SRC2, T_STOP, GE, ZERO, D_BELOW_TOO, FINE};
      7'd38: {a, b, what, t, dest, check} = {A_SRC2, T_DST, GE, ZERO, NONE, MEET};
      7'd39: {a, b, what, t, dest, check} = {A_DST, T_HI, GE, ZERO, D_BELOW, FINE};
      7'd40: {a, b, what, t, dest, check} = {T_STOP, T_LO, GT, ZERO, D_TOUCH, FINE};
      // channels of the last load less one: one at least, and no more than of another load
      7'd41: {a, b, what, t, dest, check} = {A_LOADS, B_COEF, MUL, ZERO, NONE, FINE};
      7'd42: {a, b, what, t, dest, check} = {A_O, B_P, SUB_1, T_REST, NONE, FEW};
      7'd43: {a, b, what, t, dest, check} = {T_REST, B_COEF, GE, ZERO, NONE, OVER};
      // bytes of an output channel, of a load, of the last load
      7'd44:
      {a, b, what, t, dest, check} = {A_BYTES, (dw || fc) ? B_ONE : B_C, MUL, ZERO, NONE, FINE};
      7'd45: {a, b, what, t, dest, check} = {T_INB, B_P, MUL, ZERO, NONE, FINE};
      7'd46: {a, b, what, t, dest, check} = {A_P, ZERO, ADD, T_UNIT, NONE, HUGE};
      7'd47: {a, b, what, t, dest, check} = {T_UNIT, B_COEF, MUL, ZERO, NONE, FINE};
      7'd48: {a, b, what, t, dest, check} = {A_P, B_PSIZE, GT, ZERO, D_WLEN, LONG};
      7'd49: {a, b, what, t, dest, check} = {T_UNIT, T_REST, MUL, ZERO, NONE, FINE};
      7'd50: {a, b, what, t, dest, check} = {A_P, T_UNIT, ADD, ZERO, D_WLAST, FINE};
      // kept weights: where they end
      7'd51: {a, b, what, t, dest, check} = {A_LOADS, B_PSIZE, MUL, ZERO, NONE, FINE};
      7'd52: {a, b, what, t, dest, check} = {ZERO, ZERO, ADD, ZERO, NONE, KEPT_END};
      // constant term, modulo 2^36
      7'd53:
      {a, b, what, t, dest, check} = {A_TERM, (dw || fc) ? B_ONE : B_C, MUL, ZERO, NONE, FINE};
      7'd54: {a, b, what, t, dest, check} = {A_HIGH, ZERO, ADD, T_OUT_OWN, D_ADDC, FINE};
      7'd55:
      {a, b, what, t, dest, check} = {A_TERM_HIGH, (dw || fc) ? B_ONE : B_C, MUL, ZERO, NONE, FINE};
      7'd56: {a, b, what, t, dest, check} = {A_P, T_OUT_OWN, ADD, ZERO, D_ADDC_HIGH, FINE};
      // steps of a vector: ceil(C * H * W / 9), by the quotient and the rest of C * H
      7'd57: {a, b, what, t, dest, check} = {A_H, B_C, MUL, ZERO, NONE, FINE};
      7'd58: {a, b, what, t, dest, check} = {A_P, ZERO, ADD, T_QUOTIENT, NONE, FINE};
      7'd59: {a, b, what, t, dest, check} = {T_QUOTIENT, B_NINTH_LONG, MUL, ZERO, NONE, FINE};
      7'd60: {a, b, what, t, dest, check} = {A_NINTH, T_QUOTIENT, GE, T_IN_GROUPS, D_REM_FC, FINE};
      7'd61: {a, b, what, t, dest, check} = {A_W, B_REM, MUL, ZERO, NONE, FINE};
      7'd62: {a, b, what, t, dest, check} = {A_P, B_EIGHT, ADD, T_OWN, NONE, FINE};
      7'd63: {a, b, what, t, dest, check} = {T_OWN, B_NINTH, MUL, ZERO, NONE, FINE};
      7'd64: {a, b, what, t, dest, check} = {A_HIGH, T_OWN, GE, T_OUT_GROUPS, D_REM_FC, FINE};
      7'd65: {a, b, what, t, dest, check} = {A_W, T_IN_GROUPS, MUL, ZERO, NONE, FINE};
      7'd66: {a, b, what, t, dest, check} = {A_P, T_OUT_GROUPS, ADD, ZERO, D_S, FINE};
      // rows of the weight buffer for all weights: of a vector packed in rows; groups of a block
      7'd67:
      {a, b, what, t, dest, check} = {
        fc ? A_O : T_QUOTIENT, dw ? B_ONE : B_S, MUL, ZERO, NONE, FINE
      };
      7'd68:
      {a, b, what, t, dest, check} = {fc ? A_PACKED : A_P, B_PART, ADD, ZERO, D_WROWS, ROOM_DW};
      7'd69: {a, b, what, t, dest, check} = {T_BLOCK, B_S, ADD, T_BLOCK, D_B, FINE};
      // windows of a pooling task, lines, then pixels: the last one fits, one more does not
      7'd70: {a, b, what, t, dest, check} = {side ? A_W : A_H, B_PAD, ADD, T_ROWS, NONE, FINE};
      7'd71: {a, b, what, t, dest, check} = {T_ROWS, B_KERNEL, SUB_1, T_ROWS, NONE, WINDOW};
      7'd72: {a, b, what, t, dest, check} = {side ? A_OW : A_OH, B_STRIDE, MUL, ZERO, NONE, FINE};
      7'd73: {a, b, what, t, dest, check} = {A_P, T_ROWS, GT, ZERO, NONE, NEXT};
      7'd74: {a, b, what, t, dest, check} = {A_P, B_STRIDE, SUB, T_STOP, NONE, FINE};
      7'd75: {a, b, what, t, dest, check} = {T_STOP, T_ROWS, GT, ZERO, D_SIDE, LAST};
      default: {a, b, what, t, dest, check} = {ZERO, ZERO, ADD, ZERO, NONE, FINE};  // END
    endcase
    // rows that are left out
    case (row)
      7'd15:   skip = out32 ? 5'd0 : 5'd2;
      7'd21:   skip = two ? 5'd0 : 5'd1;
      7'd24:   skip = two ? 5'd0 : 5'd2;
      7'd27:   skip = out32 ? 5'd0 : 5'd1;
      7'd30:   skip = in_order ? 5'd0 : 5'd2;
      7'd35:   skip = two ? 5'd0 : 5'd3;
      7'd40:   skip = pools ? TO_POOLS : 5'd0;
      7'd44:   skip = fc ? 5'd0 : 5'd1;
      7'd50:   skip = kept ? 5'd0 : 5'd2;
      7'd56:   skip = fc ? 5'd0 : PAST_FC;
      7'd69:   skip = 5'd6;
      default: skip = 5'd0;
    endcase
  end

  // ---- operands, product, sum
  wire again;  // the row once more
  wire run = begun && (full || row < LATE) && row != END;
  reg [35:0] product;
  reg [17:0] left, right, left_now, right_now;
  wire [17:0] t_a, t_b;
  always @* begin
    case (a)
      A_P: left = product[17:0];
      A_HIGH: left = product[35:18];
      A_NINTH: left = {3'd0, product[35:21]};
      A_PACKED: left = product[ZW+:18];
      A_C2: left = {3'd0, c_m1, 1'b0};
      A_O2: left = {7'd0, o_m1, 1'b0};
      A_H: left = {8'd0, desc[`DESC_H]};
      A_OH: left = {8'd0, desc[`DESC_OH]};
      A_W: left = {7'd0, desc[`DESC_W]};
      A_OW: left = {7'd0, desc[`DESC_OW]};
      A_O: left = {7'd0, desc[`DESC_O]};
      A_SRC: left = {3'd0, desc[`DESC_SRC]};
      A_SRC2: left = {3'd0, desc[`DESC_SRC2]};
      A_DST: left = {3'd0, desc[`DESC_DST]};
      A_LOADS: left = {12'd0, loads_m1};
      A_TERM: left = term[17:0];
      A_TERM_HIGH: left = term[35:18];
      // bytes of the weights of an input channel: one or nine, of one or two bytes
      A_BYTES: left = k3 ? (wide ? 18'd18 : 18'd9) : (wide ? 18'd2 : 18'd1);
      A_ONE: left = 18'd1;
      default: left = 18'd0;
    endcase
    case (b)
      B_P: right = product[17:0];
      B_C: right = {4'd0, desc[`DESC_C]};
      B_ONE: right = 18'd1;
      B_COEF: right = {7'd0, coef};
      B_ICS: right = {4'd0, ics};
      B_OCS: right = {4'd0, ocs};
      B_IRL: right = {13'd0, desc[`DESC_IRL]};
      B_ORL: right = {13'd0, desc[`DESC_ORL]};
      B_PLANES: right = 18'd1 << op;
      // four, two, one channel in a row; the product is looked at from bit 18 on
      B_IN_PITCH: right = 18'h08000 << ip;
      B_OUT_PITCH: right = out32 ? 18'h20000 : 18'h08000 << op;
      B_BANKS: right = 18'h20000 >> ZW;
      B_NINTH_2: right = 18'd14564;  // of twice a number: half of the next one
      B_NINTH: right = 18'd29128;  // 2^18 / 9: exact below 2^15
      B_NINTH_LONG: right = 18'd233017;  // 2^21 / 9: exact below 2^21
      B_S: right = steps;
      B_EIGHT: right = 18'd8;
      B_REM: right = {14'd0, rem};
      B_PART: right = {17'd0, fc && product[ZW-1:0] != {ZW{1'b0}}};
      B_PAD: right = {14'd0, pad};
      B_KERNEL: right = {14'd0, kernel_m1};
      B_STRIDE: right = {13'd0, stride};
      B_PSIZE: right = {1'b0, desc[`DESC_PSIZE]};
      default: right = 18'd0;
    endcase
    left_now  = a[5] ? t_a : left;
    right_now = b[5] ? t_b : right;
  end

  wire inverted = what != ADD && what != MUL;
  wire [17:0] second = right_now ^ {18{inverted}};
  wire carry;
  wire [17:0] sum;
  wire unused_low;
  assign {carry, sum, unused_low} = {1'b0, left_now, 1'b1} + {1'b0, second, what == SUB || what == GE};
  wire [17:0] result = (what == GE || what == GT) ? left_now : sum;
  // a first layer sets the place of the pixels
  wire write = run && t[5] && ((t != T_LO && t != T_HI) || first) && !(dest == D_B && !again);
  ram_1r1w_async #(
      .WIDTH(18),
      .DEPTH(16)
  ) u_left (
      .clk  (clk),
      .we   (write),
      .waddr(t[3:0]),
      .wdata(result),
      .raddr(a[3:0]),
      .rdata(t_a)
  );
  ram_1r1w_async #(
      .WIDTH(18),
      .DEPTH(16)
  ) u_right (
      .clk  (clk),
      .we   (write),
      .waddr(t[3:0]),
      .wdata(result),
      .raddr(b[3:0]),
      .rdata(t_b)
  );

  // ---- checks
  localparam [17:0] ROWS_LIMIT = AI_RAM_ROWS[17:0];
  localparam [17:0] WBUF_LIMIT = WBUF_ROWS[17:0];
  localparam [17:0] HALF = WBUF_ROWS[18:1];
  localparam [32:0] AI_RAM_BYTES = AI_RAM_ROWS * 64;
  reg [1:0] far;  // distances beyond 14 bits
  reg below, behind, placed;
  wire high = product[35:18] != 18'd0;
  wire crowded = result > WBUF_LIMIT;
  wire [32:0] kept_end = {1'b0, waddr} + {10'd0, product[22:0]} + {16'd0, wlast};
  reg size_now, place_now, weights_now;
  always @* begin
    {size_now, place_now, weights_now} = 3'd0;
    case (check)
      NEAR_IN: place_now = apart[0] && (far[0] || carry);
      NEAR_OUT: place_now = apart[1] && (far[1] || carry);
      SPAN: place_now = high || carry;
      LIMIT: place_now = carry || sum > ROWS_LIMIT;
      MEET: place_now = below && !(behind && carry);
      FEW: weights_now = !carry;
      OVER: weights_now = carry;
      HUGE: weights_now = fc && (high || inb[21:18] != 4'd0);
      LONG: weights_now = carry || high;
      KEPT_END: weights_now = (KEEP != 0) && kept_end > AI_RAM_BYTES;
      ROOM: weights_now = crowded && !fc && !dw;
      ROOM_DW: weights_now = crowded && dw;
      WINDOW: size_now = !carry;
      NEXT: size_now = !carry;
      LAST: size_now = carry;
      default: size_now = 1'b0;
    endcase
  end

  // ---- rows, one after the other; a block grows by a group as long as there is room and use
  assign over = row == END && full;
  wire [10:0] block_11 = {7'd0, block};
  assign again = result <= HALF && block_11 < groups && block < share && !dw && !fc;
  always @(posedge clk) begin
    if (rst || clear) begin
      row <= 7'd0;
      {bad_size, bad_place, bad_weights} <= 3'd0;
      touch <= 1'b0;
      behind <= 1'b0;
      block <= 4'd1;
      side <= 1'b0;
    end else if (run) begin
      row <= (dest == D_B && again) ? row : (dest == D_SIDE && !side) ? row - 7'd5 : row + 7'd1 + {2'd0, skip};
      bad_size <= bad_size || size_now;
      bad_place <= bad_place || place_now;
      bad_weights <= bad_weights || weights_now;
      touch <= touch || (dest == D_TOUCH && below && carry && placed);
      behind <= (dest == D_BEHIND) ? !carry : behind;
      block <= (dest == D_B && again) ? block + 4'd1 : block;
      side <= side || dest == D_SIDE;
    end else begin
      row <= row;
    end
  end
  always @(posedge clk) begin
    if (rst) placed <= 1'b0;
    else placed <= placed || (run && dest == D_TOUCH && first);
  end

  // ---- results
  wire [3:0] whole = (dest == D_REM) ? c_m1[3:0] : right_now[3:0];
  always @(posedge clk) begin
    if (what == MUL && run) product <= left_now * right_now;
    if (run) begin
      case (dest)
        D_INB: inb <= product[21:0];
        D_REM, D_REM_FC: rem <= whole - left_now[3:0] - {left_now[0], 3'd0};
        D_S: steps <= result;
        D_G: groups <= result[10:0];
        D_BELOW: below <= !carry;
        D_BELOW_TOO: below <= below && !carry;
        D_WLEN: wlen <= result[16:0];
        D_WLAST: {wlen, wlast} <= {(loads_m1 == 6'd0) ? result[16:0] : wlen, result[16:0]};
        D_ADDC: addc[17:0] <= product[17:0];
        D_ADDC_HIGH: addc[35:18] <= result;
        default: below <= below;
      endcase
    end
  end
  wire many = result[17:16] != 2'd0 || (fc ? product[35:ZW+18] != {(18 - ZW) {1'b0}} : high);
  always @(posedge clk) begin
    if (clear) wrows <= 16'd0;
    else wrows <= !(run && dest == D_WROWS) ? wrows : many ? 16'hffff : result[15:0];
  end
  always @(posedge clk) begin
    if (load_apart[0]) {far[0], ics} <= word_apart;
    else if (run && dest == D_ICS && !apart[0]) ics <= result[13:0];
    if (load_apart[1]) {far[1], ocs} <= word_apart;
    else if (run && dest == D_OCS && !apart[1]) ocs <= result[13:0];
  end

  wire unused = &{1'b0, desc, unused_low, waddr, kept_end};

endmodule

`resetall
