// SPDX-License-Identifier: Apache-2.0
//
// layer_fields: the fields of a layer argument that are stored unchanged.
//
// How it works: each word has registers, which the next layer's word overwrites. Words come from a block
// RAM, late in their cycle: sizes are stored minus one, as in the words, and incremented one cycle later; a
// table's offset is added to an address likewise. Nothing uses a size before the following word has
// arrived.
// Handshake: take strobes with a word and its number; a field is valid from the next cycle on, a size or an
// address one cycle later.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module layer_fields (
    // clock; a word of a layer arrives, its number, the word
    input  wire        clk,
    input  wire        take,
    input  wire [ 3:0] word,
    input  wire [63:0] w_data,
    // table offsets, added to an address on arrival; kept weights are addressed in the AI RAM instead
    input  wire [31:0] wgt_base,
    input  wire [31:0] bias_base,
    input  wire        kept,
    // rows of the maps
    output reg  [14:0] src,
    output reg  [14:0] src2,
    output reg  [14:0] dst,
    // channels less one; more than 9216 input channels, nine for each of 1024 rows of the weight buffer
    output reg  [13:0] c_m1,
    output reg  [ 9:0] o_m1,
    output reg         many,
    // sizes: channels, output channels of a load, columns and lines
    output reg  [13:0] n_c,
    output reg  [10:0] n_o,
    output reg  [10:0] n_coef,
    output reg  [10:0] n_w,
    output reg  [ 9:0] n_h,
    output reg  [10:0] n_ow,
    output reg  [ 9:0] n_oh,
    // kernel, pool, padding
    output reg  [ 2:0] kernel_type,
    output reg  [ 3:0] pool_type,
    output reg  [ 7:0] pad_value,
    // weight loads less one, bytes of a load
    output reg  [ 5:0] loads_m1,
    output reg  [16:0] para_size,
    // addresses of weights, batch norm, activation
    output reg  [31:0] weight_adr,
    output reg  [31:0] norm_adr,
    output reg  [31:0] act_adr,
    // zero points; constant term, modulo 2^36, which is exact while the sum fits 36 bits
    output reg  [ 3:0] shr_w,
    output reg  [ 3:0] shr_x,
    output reg  [23:0] arg_w,
    output reg  [23:0] arg_x,
    output reg  [35:0] term,
    // the map goes to the host
    output reg         send
);

  wire [13:0] in_m1 = w_data[`ARG_I_CH_NUM_M1];
  wire [ 9:0] out_m1 = w_data[`ARG_O_CH_NUM_M1];  // output columns have the same bits
  reg [9:0] coef_m1, w_m1, ow_m1;
  reg [8:0] h_m1, oh_m1;

  always @(posedge clk) begin
    if (take) begin
      case (word)
        `ARG_WORD_IMAGE_ADDR: begin
          src  <= w_data[`ARG_IMAGE_SRC_ADDR];
          src2 <= w_data[`ARG_IMAGE_SRC2_ADDR];
          dst  <= w_data[`ARG_IMAGE_DST_ADDR];
        end
        `ARG_WORD_IMAGE_CHANNEL_NUM: begin
          many    <= in_m1[13:10] > 4'd8;
          c_m1    <= in_m1;
          o_m1    <= out_m1;
          coef_m1 <= w_data[`ARG_O_CH_NUM_COEF_M1];
        end
        `ARG_WORD_IMAGE_SIZE: begin
          w_m1  <= in_m1[9:0];
          h_m1  <= w_data[`ARG_I_COL_HIGH_M1];
          ow_m1 <= out_m1;
          oh_m1 <= w_data[`ARG_O_COL_HIGH_M1];
        end
        `ARG_WORD_KERNEL_POOL_TYPE_CFG: begin
          kernel_type <= w_data[`ARG_KERNEL_TYPE];
          pool_type   <= w_data[`ARG_POOL_TYPE];
          pad_value   <= w_data[`ARG_PAD_VALUE];
        end
        `ARG_WORD_KERNEL_LOAD_CFG: begin
          loads_m1  <= w_data[`ARG_LOAD_TIME_M1];
          para_size <= w_data[`ARG_PARA_SIZE];
        end
        `ARG_WORD_CONV_VALUE: begin
          shr_w <= w_data[`ARG_SHR_W];
          shr_x <= w_data[`ARG_SHR_X];
          arg_w <= w_data[`ARG_ARG_W];
          arg_x <= w_data[`ARG_ARG_X];
        end
        `ARG_WORD_CONV_VALUE2: term <= w_data[35:0];
        `ARG_WORD_DMA_PARAMETER: send <= w_data[`ARG_SEND_DATA_OUT];
        default: send <= send;  // words 0, 6 and 8: layer_flags, layer_alu
      endcase
    end
  end

  always @(posedge clk) begin
    n_c    <= c_m1 + 14'd1;
    n_o    <= {1'b0, o_m1} + 11'd1;
    n_coef <= {1'b0, coef_m1} + 11'd1;
    n_w    <= {1'b0, w_m1} + 11'd1;
    n_h    <= {1'b0, h_m1} + 10'd1;
    n_ow   <= {1'b0, ow_m1} + 11'd1;
    n_oh   <= {1'b0, oh_m1} + 10'd1;
  end

  // ---- addresses: the upper half of a word
  reg [31:0] offset;
  reg adds_norm, adds_weight, adds_act;
  wire [31:0] base = !adds_weight ? bias_base : kept ? 32'd0 : wgt_base;
  wire [31:0] address = offset + base;
  always @(posedge clk) begin
    offset      <= w_data[`ARG_PARA_START_ADDR];
    adds_norm   <= take && word == `ARG_WORD_KERNEL_POOL_TYPE_CFG;
    adds_weight <= take && word == `ARG_WORD_KERNEL_LOAD_CFG;
    adds_act    <= take && word == `ARG_WORD_KERNEL_CALC_TYPE_CFG;
    norm_adr    <= adds_norm ? address : norm_adr;
    weight_adr  <= adds_weight ? address : weight_adr;
    act_adr     <= adds_act ? address : act_adr;
  end

  wire unused = &{1'b0, w_data};

endmodule

`resetall
