// SPDX-License-Identifier: Apache-2.0
//
// layer_alu: computes and checks the derived values of a layer, by the steps of layer_steps' table.
//
// How it works: there is one multiplier, whose product is held until the next multiplication, one adder
// that compares as well, and a file of 16 registers. Operands are those registers, slices of the product
// and fields of the layer; other results are fields of the descriptor. The operands of a multiplication are
// registered: its product is valid after the next step. Sum and carry are registered too, and compared with
// the limits one cycle later; only a size may be refused by the last step, so bad_size includes the
// comparison in progress.
// Handshake: begun and full as in layer_steps; over is held with all results until clear, which drops the
// layer. The location of the inference's pixels is kept, from a first layer to the next reset.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "layer_steps.vh"

module layer_alu #(
    // output channels of the array, rows of the memories; weights may be kept in the AI RAM
    parameter N_Z          = 4,
    parameter AI_RAM_ROWS  = 32768,
    parameter WBUF_ROWS    = 1024,
    parameter KEEP_WEIGHTS = 0,
    // derived, not to be set: width of a bank number
    parameter ZW           = $clog2(N_Z)
) (
    // clock, synchronous reset, drop this layer; words 0 to 4 have arrived, all have
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  clear,
    input  wire                  begun,
    input  wire                  full,
    // fields of the layer, and those that the descriptor lacks: channels less one, channels of a load,
    // loads less one, constant term of a channel
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [          13:0] c_m1,
    input  wire [           9:0] o_m1,
    input  wire [          10:0] coef,
    input  wire [           5:0] loads_m1,
    input  wire [          35:0] term,
    // rows between channel groups: words 8 and 7 arrive, their value, whether it applies
    input  wire [           1:0] load_apart,
    input  wire [          14:0] word_apart,
    input  wire [           1:0] apart,
    // window of a pooling task in one direction: columns with side, else lines
    output reg                   side,
    input  wire [           3:0] pad,
    input  wire [           3:0] kernel_m1,
    input  wire [           4:0] stride,
    // groups that share one read of the input
    input  wire [           3:0] share,
    // all steps are done; violations
    output wire                  over,
    output wire                  bad_size,
    output reg                   bad_place,
    output reg                   bad_weights,
    // results, named as in the descriptor; rem: LASTN less one
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
  wire fc = desc[`DESC_MODE] == `MODE_FC;
  wire dw = desc[`DESC_DW];
  wire k3 = desc[`DESC_K3];
  wire out32 = desc[`DESC_OUT32];
  wire wide = desc[`DESC_WIDE];
  wire first = desc[`DESC_FIRST];
  wire [1:0] ip = desc[`DESC_IP];
  wire [1:0] op = desc[`DESC_OP];

  // ---- the step: operands, operation, destination of the result, checks; repeat of the row
  wire run, again;
  reg multiplies;  // the factors are valid
  wire [`STEP_OPERAND_BITS-1:0] left, right, target;
  wire [  `STEP_WHAT_BITS-1:0] what;
  wire [`STEP_RESULT_BITS-1:0] dest;
  wire [ `STEP_CHECK_BITS-1:0] check;
  layer_steps u_steps (
      .clk       (clk),
      .clear     (rst || clear),
      .begun     (begun),
      .full      (full),
      .mode      (desc[`DESC_MODE]),
      .dw        (dw),
      .two       (desc[`DESC_EW] && !desc[`DESC_ONE]),
      .out32     (out32),
      .kept      (desc[`DESC_KEPT]),
      .pools     (desc[`DESC_POOLS]),
      .side      (side),
      .multiplies(multiplies),
      .again     (again),
      .run       (run),
      .left      (left),
      .right     (right),
      .what      (what),
      .target    (target),
      .result    (dest),
      .check     (check),
      .over      (over)
  );

  // ---- operands
  function [17:0] of(input is, input [17:0] value);
    of = value & {18{is}};
  endfunction
  reg [35:0] product;
  wire [17:0] left_file, right_file;
  reg [17:0] left_now, right_now;
  always @* begin
    left_now = of(left[`STEP_FILE], left_file);
    left_now = left_now | of(|(left & `LEFT_P), product[17:0]);
    left_now = left_now | of(|(left & `LEFT_HIGH), product[35:18]);
    left_now = left_now | of(|(left & `LEFT_NINTH), {3'd0, product[35:21]});
    left_now = left_now | of(|(left & `LEFT_PACKED), product[ZW+:18]);
    left_now = left_now | of(|(left & `LEFT_C2), {3'd0, c_m1, 1'b0});
    left_now = left_now | of(|(left & `LEFT_O2), {7'd0, o_m1, 1'b0});
    left_now = left_now | of(|(left & `LEFT_H), {8'd0, desc[`DESC_H]});
    left_now = left_now | of(|(left & `LEFT_OH), {8'd0, desc[`DESC_OH]});
    left_now = left_now | of(|(left & `LEFT_W), {7'd0, desc[`DESC_W]});
    left_now = left_now | of(|(left & `LEFT_OW), {7'd0, desc[`DESC_OW]});
    left_now = left_now | of(|(left & `LEFT_O), {7'd0, desc[`DESC_O]});
    left_now = left_now | of(|(left & `LEFT_SRC), {3'd0, desc[`DESC_SRC]});
    left_now = left_now | of(|(left & `LEFT_SRC2), {3'd0, desc[`DESC_SRC2]});
    left_now = left_now | of(|(left & `LEFT_DST), {3'd0, desc[`DESC_DST]});
    left_now = left_now | of(|(left & `LEFT_LOADS), {12'd0, loads_m1});
    left_now = left_now | of(|(left & `LEFT_TERM), term[17:0]);
    left_now = left_now | of(|(left & `LEFT_TERM_HIGH), term[35:18]);
    left_now = left_now |
        of(|(left & `LEFT_BYTES), k3 ? (wide ? 18'd18 : 18'd9) : (wide ? 18'd2 : 18'd1));
    left_now = left_now | of(|(left & `LEFT_ONE), 18'd1);
    right_now = of(right[`STEP_FILE], right_file);
    right_now = right_now | of(|(right & `RIGHT_P), product[17:0]);
    right_now = right_now | of(|(right & `RIGHT_C), {4'd0, desc[`DESC_C]});
    right_now = right_now | of(|(right & `RIGHT_ONE), 18'd1);
    right_now = right_now | of(|(right & `RIGHT_COEF), {7'd0, coef});
    right_now = right_now | of(|(right & `RIGHT_ICS), {4'd0, ics});
    right_now = right_now | of(|(right & `RIGHT_OCS), {4'd0, ocs});
    right_now = right_now | of(|(right & `RIGHT_IRL), {13'd0, desc[`DESC_IRL]});
    right_now = right_now | of(|(right & `RIGHT_ORL), {13'd0, desc[`DESC_ORL]});
    right_now = right_now | of(|(right & `RIGHT_PLANES), 18'd1 << op);
    right_now = right_now | of(|(right & `RIGHT_IN_PITCH), 18'h08000 << ip);
    right_now = right_now | of(|(right & `RIGHT_OUT_PITCH), out32 ? 18'h20000 : 18'h08000 << op);
    right_now = right_now | of(|(right & `RIGHT_BANKS), 18'h20000 >> ZW);
    right_now = right_now | of(|(right & `RIGHT_NINTH_2), 18'd14564);
    right_now = right_now | of(|(right & `RIGHT_NINTH), 18'd29128);
    right_now = right_now | of(|(right & `RIGHT_NINTH_LONG), 18'd233017);
    right_now = right_now | of(|(right & `RIGHT_S), steps);
    right_now = right_now | of(|(right & `RIGHT_EIGHT), 18'd8);
    right_now = right_now | of(|(right & `RIGHT_REM), {14'd0, rem});
    right_now = right_now |
        of(|(right & `RIGHT_PART), {17'd0, fc && product[ZW-1:0] != {ZW{1'b0}}});
    right_now = right_now | of(|(right & `RIGHT_PAD), {14'd0, pad});
    right_now = right_now | of(|(right & `RIGHT_KERNEL), {14'd0, kernel_m1});
    right_now = right_now | of(|(right & `RIGHT_STRIDE), {13'd0, stride});
    right_now = right_now | of(|(right & `RIGHT_PSIZE), {1'b0, desc[`DESC_PSIZE]});
  end

  // ---- sum, comparison, registers
  wire inverted = what[`STEP_INVERTED];
  wire carry, unused_low;
  wire [17:0] sum;
  assign {carry, sum, unused_low} = {1'b0, left_now, 1'b1} + {1'b0, right_now ^ {18{inverted}}, what[`STEP_CARRY]};
  wire [17:0] result = what[`STEP_PASS] ? left_now : sum;
  // a first layer sets the location of the pixels
  wire place = target == `T_LO || target == `T_HI;
  wire write = run && target[`STEP_FILE] && (!place || first);
  ram_1r1w_async #(
      .WIDTH(18),
      .DEPTH(16)
  ) u_left (
      .clk  (clk),
      .we   (write),
      .waddr(target[`STEP_NUMBER]),
      .wdata(result),
      .raddr(left[`STEP_NUMBER]),
      .rdata(left_file)
  );
  ram_1r1w_async #(
      .WIDTH(18),
      .DEPTH(16)
  ) u_right (
      .clk  (clk),
      .we   (write),
      .waddr(target[`STEP_NUMBER]),
      .wdata(result),
      .raddr(right[`STEP_NUMBER]),
      .rdata(right_file)
  );

  // ---- checks; the weight buffer has a power of two of rows
  localparam [17:0] ROWS = AI_RAM_ROWS[17:0];
  localparam WL = $clog2(WBUF_ROWS);
  localparam [32:0] AI_RAM_BYTES = AI_RAM_ROWS * 64;
  reg [1:0] far;  // distances beyond 14 bits
  reg below, behind, placed, refused_size;
  wire high = product[35:18] != 18'd0;
  // the previous cycle's step: its sum and its checks
  reg [`STEP_CHECK_BITS-1:0] check_q;
  reg [`STEP_RESULT_BITS-1:0] dest_q;
  reg [17:0] sum_q;
  reg carry_q, high_q, beyond_q;
  always @(posedge clk) begin
    {check_q, dest_q} <= (run && !rst && !clear) ? {check, dest} : {`NO_CHECK, `NO_RESULT};
    {carry_q, sum_q} <= {carry, sum};
    high_q <= high;
    beyond_q <= fc ? product[35:ZW+18] != {(18 - ZW) {1'b0}} : high;
  end
  wire ends_behind = sum_q > ROWS;
  wire crowded = sum_q[17:WL+1] != {(17 - WL) {1'b0}} || (sum_q[WL] && sum_q[WL-1:0] != {WL{1'b0}});
  // product and wlast are still valid: the row after this check neither multiplies nor writes wlast
  wire [32:0] kept_end = {1'b0, desc[`DESC_WADDR]} + {10'd0, product[22:0]} + {16'd0, wlast};
  wire behind_ram = (KEEP_WEIGHTS != 0) && kept_end > AI_RAM_BYTES;
  wire size_now = (|(check_q & (`CHECK_WINDOW | `CHECK_NEXT)) && !carry_q) || (|(check_q & `CHECK_LAST) && carry_q);
  wire place_now = (|(check_q & `CHECK_NEAR_IN) && apart[0] && (far[0] || carry_q)) ||
      (|(check_q & `CHECK_NEAR_OUT) && apart[1] && (far[1] || carry_q)) ||
      (|(check_q & `CHECK_SPAN) && (high_q || carry_q)) || (|(check_q & `CHECK_LIMIT) && (carry_q || ends_behind)) ||
      (|(check_q & `CHECK_MEET) && below && !(behind && carry_q));
  wire weights_now = (|(check_q & `CHECK_FEW) && !carry_q) || (|(check_q & `CHECK_OVER) && carry_q) ||
      (|(check_q & `CHECK_HUGE) && fc && (high_q || inb[21:18] != 4'd0)) ||
      (|(check_q & `CHECK_LONG) && (high_q || carry_q)) || (|(check_q & `CHECK_KEPT_END) && behind_ram) ||
      (|(check_q & `CHECK_ROOM) && crowded && !fc && !dw) || (|(check_q & `CHECK_ROOM_DW) && crowded && dw);

  assign bad_size = refused_size || size_now;

  // A block grows by a group while there are more groups to share a read, and the buffer has room for the
  // rows of the block and of one group of the next one. A lack of room is detected one cycle later: the step
  // ends then, and the group is removed again.
  reg grown;
  wire full_up = grown && crowded;
  wire grows = |(dest & `TO_B) && (groups[10:4] != 7'd0 || block < groups[3:0]) && block < share && !dw && !fc;
  assign again = grows && !full_up;

  always @(posedge clk) begin
    if (rst || clear) begin
      {refused_size, bad_place, bad_weights} <= 3'd0;
      touch <= 1'b0;
      behind <= 1'b0;
      side <= 1'b0;
      grown <= 1'b0;
      block <= 4'd1;
      wrows <= 16'd0;
    end else begin
      refused_size <= bad_size;
      bad_place <= bad_place || place_now;
      bad_weights <= bad_weights || weights_now;
      touch <= touch || (|(dest_q & `TO_TOUCH) && below && carry_q && placed);
      behind <= |(dest_q & `TO_BEHIND) ? !carry_q : behind;
      side <= side || (run && |(dest & `TO_SIDE));
      grown <= run && again;
      block <= full_up ? block - 4'd1 : (run && grows) ? block + 4'd1 : block;
      wrows <= !(|(dest_q & `TO_WROWS)) ? wrows : many ? 16'hffff : sum_q[15:0];
    end
  end
  wire many = sum_q[17:16] != 2'd0 || beyond_q;
  always @(posedge clk) begin
    below <= |(dest_q & `TO_BELOW) ? !carry_q : |(dest_q & `TO_BELOW_TOO) ? below && !carry_q : below;
    if (rst) placed <= 1'b0;
    else placed <= placed || (|(dest_q & `TO_TOUCH) && first);
  end

  // ---- the other results; those of additions alone need no choice behind the adder
  wire from_channels = |(dest & `TO_REM);
  wire [3:0] whole = from_channels ? c_m1[3:0] : right_now[3:0];
  wire [3:0] rest = whole - left_now[3:0] - {left_now[0], 3'd0};
  wire to_wlen = |(dest & `TO_WLEN) || (|(dest & `TO_WLAST) && loads_m1 == 6'd0);
  reg [17:0] factor_left, factor_right;
  always @(posedge clk) begin
    multiplies <= run && what[`STEP_MUL];
    {factor_left, factor_right} <= {left_now, right_now};
    product <= multiplies ? factor_left * factor_right : product;
  end
  always @(posedge clk) begin
    if (run) begin
      inb <= |(dest & `TO_INB) ? product[21:0] : inb;
      rem <= from_channels || |(dest & `TO_REM_FC) ? rest : rem;
      steps <= |(dest & `TO_S) ? sum : steps;
      groups <= |(dest & `TO_G) ? sum[10:0] : groups;
    end
  end
  // a pooling task has no weights
  always @(posedge clk) begin
    if (rst || clear) begin
      {wlen, wlast} <= 34'd0;
      addc <= 36'd0;
    end else if (run) begin
      wlen <= to_wlen ? result[16:0] : wlen;
      wlast <= |(dest & `TO_WLAST) ? sum[16:0] : wlast;
      addc[17:0] <= |(dest & `TO_ADDC) ? product[17:0] : addc[17:0];
      addc[35:18] <= |(dest & `TO_ADDC_HIGH) ? sum : addc[35:18];
    end else begin
      wlen <= wlen;
    end
  end
  wire to_ics = run && |(dest & `TO_ICS) && !apart[0];
  wire to_ocs = run && |(dest & `TO_OCS) && !apart[1];
  always @(posedge clk) begin
    {far[0], ics} <= load_apart[0] ? word_apart : {far[0], to_ics ? result[13:0] : ics};
    {far[1], ocs} <= load_apart[1] ? word_apart : {far[1], to_ocs ? result[13:0] : ocs};
  end

  wire unused = &{1'b0, desc, unused_low, kept_end, behind_ram};

endmodule

`resetall
