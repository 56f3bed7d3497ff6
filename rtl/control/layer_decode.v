// SPDX-License-Identifier: Apache-2.0
//
// layer_decode: turns the twelve words of a layer argument into a descriptor, and checks them.
//
// How it works: the fields are stored as the words arrive. Then one multiplier computes sizes in
// rows and bytes, a divider the number of reduction steps, and a counter how many output groups
// share one reading of the input (their weights stay in half of the weight buffer). The checks run
// in this order: flags, kernel, pool, sizes, addresses, weights. Fields that follow from others
// (layout, totals) are derived, not read, as the vendor's simulator does.
// Handshake: words are taken while a layer is being collected; the descriptor is valid/ready. An
// illegal layer gives one err pulse with its code instead, then the next layer is collected.
// layer_place checks the rows of the maps, layer_share how many groups share a reading.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module layer_decode #(
    // pixels and output channels of the array, bits of a weight
    parameter N_Y         = 4,
    parameter N_Z         = 4,
    parameter WEIGHT_BITS = 16,
    // sizes of the memories, bytes of a tile word
    parameter AI_RAM_ROWS = 32768,
    parameter WBUF_ROWS   = 1024,
    parameter TILE_ROWS   = 32,
    parameter TILE_W      = 64,
    // width of a bank number
    parameter ZW          = $clog2(N_Z)
) (
    // clock, synchronous reset; forget an unfinished layer
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  drop,
    // layer words
    input  wire                  w_valid,
    output wire                  w_ready,
    input  wire [          63:0] w_data,
    // taken with the last word: weights are u8, table offsets, place in the network
    input  wire                  eight_bit,
    input  wire [          31:0] wgt_base,
    input  wire [          31:0] bias_base,
    input  wire [           9:0] index,
    input  wire                  first,
    input  wire                  last,
    input  wire                  parity,
    // a layer was collected
    output wire                  collected,
    // descriptor
    output wire                  d_valid,
    input  wire                  d_ready,
    output wire [`DESC_BITS-1:0] desc,
    // refused layer
    output reg                   err,
    output reg  [           7:0] err_code,
    // nothing collected or worked on
    output wire                  idle
);

  localparam [4:0] S_WORDS = 5'd0, S_CHECK = 5'd1, S_ICS = 5'd2, S_IROWS = 5'd3, S_OCS = 5'd4,
      S_OROWS = 5'd5, S_CH = 5'd6, S_CHW = 5'd7, S_WLEN = 5'd8, S_FULL = 5'd9, S_REST = 5'd10,
      S_ADDC = 5'd11, S_DIV = 5'd12, S_FIT = 5'd13, S_BLOCK = 5'd14, S_OUT = 5'd15;

  reg [4:0] state;
  reg [3:0] word;

  // ---- fields
  reg f_int_en, f_dw, f_sin, f_sout, f_fc;
  reg [14:0] f_src, f_dst;
  reg [9:0] f_c, f_o, f_coef;
  reg [9:0] f_w, f_ow;
  reg [8:0] f_h, f_oh;
  reg [2:0] f_kernel;
  reg [3:0] f_pool;
  reg [7:0] f_pad;
  reg [31:0] f_bn, f_par, f_act;
  reg [ 5:0] f_loads;
  reg [16:0] f_psize;
  reg [3:0] f_shrw, f_shrx;
  reg [23:0] f_argw, f_argx;
  reg [35:0] f_add;
  reg f_send, f_wide, f_first, f_last, f_inf;
  reg [9:0] f_index;

  assign w_ready   = state == S_WORDS;
  assign collected = w_valid && w_ready && word == 4'd11;
  assign idle      = state == S_WORDS && word == 4'd0;

  always @(posedge clk) begin
    if (w_valid && w_ready) begin
      case (word)
        `ARG_WORD_INTERRUPT_ENABE: begin
          f_int_en <= w_data[`ARG_INT_EN];
          f_dw     <= w_data[`ARG_DEPTH_WISE_LAYER];
          f_sin    <= w_data[`ARG_SIGNED_IN];
          f_sout   <= w_data[`ARG_SIGNED_OUT];
          f_fc     <= w_data[`ARG_FC];
        end
        `ARG_WORD_IMAGE_ADDR:
        {f_src, f_dst} <= {w_data[`ARG_IMAGE_SRC_ADDR], w_data[`ARG_IMAGE_DST_ADDR]};
        `ARG_WORD_IMAGE_CHANNEL_NUM:
        {f_c, f_o, f_coef} <= {
          w_data[`ARG_I_CH_NUM_M1], w_data[`ARG_O_CH_NUM_M1], w_data[`ARG_O_CH_NUM_COEF_M1]
        };
        `ARG_WORD_IMAGE_SIZE: begin
          f_w  <= w_data[`ARG_I_ROW_WID_M1];
          f_h  <= w_data[`ARG_I_COL_HIGH_M1];
          f_ow <= w_data[`ARG_O_ROW_WID_M1];
          f_oh <= w_data[`ARG_O_COL_HIGH_M1];
        end
        `ARG_WORD_KERNEL_POOL_TYPE_CFG: begin
          f_kernel <= w_data[`ARG_KERNEL_TYPE];
          f_pool   <= w_data[`ARG_POOL_TYPE];
          f_pad    <= w_data[`ARG_PAD_VALUE];
          f_bn     <= w_data[`ARG_BWSX_BASE_ADDR];
        end
        `ARG_WORD_KERNEL_LOAD_CFG:
        {f_loads, f_psize, f_par} <= {
          w_data[`ARG_LOAD_TIME_M1], w_data[`ARG_PARA_SIZE], w_data[`ARG_PARA_START_ADDR]
        };
        `ARG_WORD_KERNEL_CALC_TYPE_CFG: f_act <= w_data[`ARG_ACTIVE_ADDR];
        `ARG_WORD_CONV_VALUE:
        {f_shrw, f_shrx, f_argw, f_argx} <= {
          w_data[`ARG_SHR_W], w_data[`ARG_SHR_X], w_data[`ARG_ARG_W], w_data[`ARG_ARG_X]
        };
        // modulo 2^36, which is exact while the sum fits 36 bits
        `ARG_WORD_CONV_VALUE2: f_add <= w_data[35:0];
        `ARG_WORD_DMA_PARAMETER: begin
          {f_send, f_wide} <= {w_data[`ARG_SEND_DATA_OUT], !eight_bit};
          {f_first, f_last, f_inf} <= {first, last, parity};
          f_index <= index;
          f_par   <= f_par + wgt_base;
          f_bn    <= f_bn + bias_base;
          f_act   <= f_act + bias_base;
        end
        default: f_send <= f_send;  // words 6 and 8 follow from the sizes
      endcase
    end
  end

  // ---- sizes
  wire [10:0] n_c = {1'b0, f_c} + 11'd1;
  wire [10:0] n_o = {1'b0, f_o} + 11'd1;
  wire [10:0] n_w = {1'b0, f_w} + 11'd1;
  wire [10:0] n_ow = {1'b0, f_ow} + 11'd1;
  wire [9:0] n_h = {1'b0, f_h} + 10'd1;
  wire [9:0] n_oh = {1'b0, f_oh} + 10'd1;
  wire [10:0] n_coef = {1'b0, f_coef} + 11'd1;
  wire [6:0] n_loads = {1'b0, f_loads} + 7'd1;

  wire [1:0] fl = (f_pool == 4'd3 || f_pool == 4'd4 || f_pool == 4'd7) ? 2'd2 :
             (f_pool == 4'd0 || f_pool == 4'd8 || f_pool == 4'd9) ? 2'd0 : 2'd1;
  wire pick = f_pool == 4'd5 || f_pool == 4'd6 || f_pool == 4'd7;
  wire [10:0] want_ow = f_fc ? 11'd1 : n_w >> fl;
  wire [9:0] want_oh = f_fc ? 10'd1 : n_h >> fl;

  function [1:0] pitch_of(input [10:0] w);
    pitch_of = (w <= 11'd16) ? 2'd0 : (w <= 11'd32) ? 2'd1 : 2'd2;
  endfunction
  wire [ 1:0] ip = pitch_of(n_w);
  wire [ 1:0] op = pitch_of(n_ow);
  wire [10:0] w_up = n_w + 11'd63;
  wire [10:0] ow_up = n_ow + 11'd63;
  wire [ 4:0] irl = (ip == 2'd2) ? w_up[10:6] : 5'd1;
  wire [ 4:0] orl = (op == 2'd2) ? ow_up[10:6] : 5'd1;

  // ceil(channels / channels in a row)
  function [10:0] groups_of(input [10:0] n, input [1:0] pitch);
    groups_of = (pitch == 2'd0) ? (n + 11'd3) >> 2 : (pitch == 2'd1) ? (n + 11'd1) >> 1 : n;
  endfunction

  wire taps = f_kernel == 3'd1;
  wire [1:0] mode = f_fc ? `MODE_FC : (f_dw && f_pool == 4'd0) ? `MODE_DWROW :
             (f_dw || taps) ? `MODE_TAPS : `MODE_CHAN;

  // ---- the grid that is computed, the stripe
  wire [10:0] n_kw = f_fc ? 11'd1 : pick ? n_ow : (fl != 2'd0) ? n_ow << fl : n_w;
  wire [9:0] n_kh = f_fc ? 10'd1 : pick ? n_oh : (fl != 2'd0) ? n_oh << fl : n_h;
  wire pools = f_pool != 4'd0 && !pick;
  wire narrow = f_fc || (pools && fl != 2'd1) || n_kw <= 11'd16;
  wire [2:0] swl = narrow ? 3'd4 : (pools || n_kw <= 11'd32) ? 3'd5 : 3'd6;
  reg [2:0] pool;
  always @* begin
    case (f_pool)
      4'd1: pool = `POOL_MAX2;
      4'd2: pool = `POOL_MEAN2;
      4'd3: pool = `POOL_MAX4;
      4'd4: pool = `POOL_MEAN4;
      4'd8: pool = `POOL_MEANS1;
      4'd9: pool = `POOL_MAXS1;
      default: pool = `POOL_NONE;
    endcase
  end

  // ---- results of the multiplier
  reg [13:0] ics, ocs;
  reg [35:0] per_out;  // weights of an output channel
  reg [23:0] wlen, wlast;
  reg  [21:0] in_bytes;
  reg  [15:0] wrows;
  reg  [10:0] rest;  // channels of the last load
  reg  [35:0] addc;
  reg  [17:0] steps;
  reg  [ 3:0] lastn;
  reg  [10:0] block;
  reg  [18:0] rows_in_block;

  reg  [35:0] mul_a;
  reg  [11:0] mul_b;
  wire [35:0] mul_p = mul_a * mul_b;

  wire [35:0] taps_out = {25'd0, n_c} + {22'd0, n_c, 3'd0};  // 9 * channels

  always @* begin
    mul_a = 36'd0;
    mul_b = 12'd0;
    case (state)
      S_ICS: {mul_a, mul_b} = {26'd0, n_h, 7'd0, irl};
      S_IROWS: {mul_a, mul_b} = {22'd0, ics, 1'b0, groups_of(n_c, ip)};
      S_OCS: {mul_a, mul_b} = {26'd0, n_oh, 7'd0, orl};
      S_OROWS: {mul_a, mul_b} = {22'd0, ocs, 1'b0, groups_of(n_o, op)};
      S_CH: {mul_a, mul_b} = {25'd0, n_c, 2'd0, n_h};
      S_CHW: {mul_a, mul_b} = {per_out, 1'b0, n_w};
      S_WLEN: {mul_a, mul_b} = {per_out, 1'b0, n_coef};
      S_FULL: {mul_a, mul_b} = {30'd0, f_loads, 1'b0, n_coef};
      S_REST: {mul_a, mul_b} = {per_out, 1'b0, rest};
      S_ADDC: {mul_a, mul_b} = {f_add, (f_dw || f_fc) ? 12'd1 : {1'b0, n_c}};
      S_BLOCK: {mul_a, mul_b} = {18'd0, steps, 1'b0, groups};
      default: {mul_a, mul_b} = {36'd0, 12'd0};
    endcase
  end

  // ---- divider by nine, a bit a cycle: dividend - 1 = 9 * (steps - 1) + (lastn - 1)
  reg [20:0] dividend;
  reg [3:0] rem;
  reg [4:0] div_n;
  wire [4:0] rem_in = {rem, dividend[20]};
  wire div_bit = rem_in >= 5'd9;
  wire [4:0] rem_out = div_bit ? rem_in - 5'd9 : rem_in;

  wire [10:0] groups = (mode == `MODE_FC) ? n_o : f_dw ? 11'd1 : (n_o + N_Z[10:0] - 11'd1) >> ZW;
  wire [18:0] rows_more = rows_in_block + {1'b0, steps};
  wire more = rows_more <= WBUF_ROWS[18:0] >> 1 && block < groups && block < {7'd0, share};
  wire [3:0] share;
  layer_share #(
      .N_Y   (N_Y),
      .TILE_W(TILE_W)
  ) u_share (
      .clk   (clk),
      .chan  (mode == `MODE_CHAN),
      .kw    (n_kw),
      .swl   (swl),
      .ip    (ip),
      .stride(pick ? fl : 2'd0),
      .share (share)
  );
  wire [11:0] entries = (mode == `MODE_FC) ? steps[17:6] + {11'd0, steps[5:0] != 6'd0} :
             (steps > 18'd2048) ? 12'd2048 : steps[11:0];
  wire [35:0] wlen_now = f_wide ? {mul_p[34:0], 1'b0} : mul_p;

  // after the division: reduction steps of a group, rows that must be in the buffer at once
  wire [17:0] steps_all = (mode == `MODE_DWROW) ? 18'd1 :
             (mode == `MODE_TAPS) ? {7'd0, n_c} : steps + 18'd1;
  wire [10:0] dw_rows = (n_c + N_Z[10:0] - 11'd1) >> ZW;
  wire [17:0] wbuf_need = f_fc ? 18'd0 : f_dw ? {7'd0, dw_rows} : steps_all;
  // rows of the weight buffer that the whole layer takes
  wire [35:0] fc_rows = (mul_p + {4'd0, N_Z[31:0]} - 36'd1) >> ZW;
  wire [35:0] rows_all = f_dw ? {25'd0, dw_rows} : f_fc ? fc_rows : mul_p;

  // ---- the rows of the maps
  wire bad_place;
  wire touch;
  layer_place #(
      .AI_RAM_ROWS(AI_RAM_ROWS)
  ) u_place (
      .clk     (clk),
      .rst     (rst),
      .in_step (state == S_IROWS),
      .out_step(state == S_OROWS),
      .rows    (mul_p),
      .src     (f_src),
      .dst     (f_dst),
      .first   (f_first),
      .in_order(mode == `MODE_DWROW),
      .bad     (bad_place),
      .touch   (touch)
  );

  // ---- the checks of each state
  reg [7:0] bad;
  always @* begin
    bad = 8'd0;
    case (state)
      S_CHECK:
      if (f_dw && f_fc) bad = `ERROR_BAD_FLAGS;
      else if (f_kernel > 3'd1 || (f_fc && taps)) bad = `ERROR_BAD_KERNEL;
      else if (f_pool > 4'd9 || (f_fc && f_pool != 4'd0)) bad = `ERROR_BAD_POOL;
      else if (n_ow != want_ow || n_oh != want_oh || irl > 5'd15 || (f_dw && n_c != n_o))
        bad = `ERROR_BAD_SIZE;
      else bad = 8'd0;
      S_IROWS, S_OROWS: bad = bad_place ? `ERROR_BAD_ADDR : 8'd0;
      S_WLEN:
      bad = (wlen_now > {19'd0, f_psize} || (f_wide && WEIGHT_BITS == 8)) ? `ERROR_BAD_WEIGHTS : 8'd0;
      S_FULL:
      bad = (mul_p[17:0] >= {7'd0, n_o} || n_o - mul_p[10:0] > n_coef) ? `ERROR_BAD_WEIGHTS : 8'd0;
      S_FIT: bad = (wbuf_need > WBUF_ROWS[17:0]) ? `ERROR_BAD_WEIGHTS : 8'd0;
      default: bad = 8'd0;
    endcase
  end

  always @(posedge clk) begin
    if (rst) begin
      state    <= S_WORDS;
      word     <= 4'd0;
      err      <= 1'b0;
      err_code <= 8'd0;
    end else begin
      err <= bad != 8'd0;
      if (bad != 8'd0) err_code <= bad;
      case (state)
        S_WORDS: begin
          word  <= (drop || collected) ? 4'd0 : w_valid ? word + 4'd1 : word;
          state <= collected ? S_CHECK : S_WORDS;
        end
        S_CHECK: state <= (bad != 8'd0) ? S_WORDS : S_ICS;
        S_ICS: state <= S_IROWS;
        S_IROWS: state <= (bad != 8'd0) ? S_WORDS : S_OCS;
        S_OCS: state <= S_OROWS;
        S_OROWS: state <= (bad != 8'd0) ? S_WORDS : S_CH;
        S_CH: state <= S_CHW;
        S_CHW: state <= S_WLEN;
        S_WLEN: state <= (bad != 8'd0) ? S_WORDS : S_FULL;
        S_FULL: state <= (bad != 8'd0) ? S_WORDS : S_REST;
        S_REST: state <= S_ADDC;
        S_ADDC: state <= S_DIV;
        S_DIV: state <= (div_n == 5'd20) ? S_FIT : S_DIV;
        S_FIT: state <= (bad != 8'd0) ? S_WORDS : S_BLOCK;
        S_BLOCK: state <= (more && !f_dw && !f_fc) ? S_BLOCK : S_OUT;
        S_OUT: state <= d_ready ? S_WORDS : S_OUT;
        default: state <= S_WORDS;
      endcase
    end
  end

  always @(posedge clk) begin
    case (state)
      S_ICS:   ics <= mul_p[13:0];
      S_OCS:   ocs <= mul_p[13:0];
      S_CH:    per_out <= mul_p;
      // what one output channel needs: the whole map, a kernel, or a kernel of each channel
      S_CHW: begin
        in_bytes <= mul_p[21:0];
        per_out  <= f_fc ? mul_p : f_dw ? (taps ? 36'd9 : 36'd1) : taps ? taps_out : {25'd0, n_c};
      end
      S_WLEN:  wlen <= wlen_now[23:0];
      S_FULL:  rest <= n_o - mul_p[10:0];
      S_REST:  wlast <= wlen_now[23:0];
      S_ADDC: begin
        addc     <= mul_p;
        dividend <= ((f_fc) ? per_out[20:0] : {10'd0, n_c}) - 21'd1;
        rem      <= 4'd0;
        div_n    <= 5'd0;
        steps    <= 18'd0;
      end
      S_DIV: begin
        dividend <= {dividend[19:0], 1'b0};
        rem      <= rem_out[3:0];
        steps    <= {steps[16:0], div_bit};
        div_n    <= div_n + 5'd1;
      end
      S_FIT: begin
        // steps of a group: channels, nines of channels or elements, one
        lastn         <= rem + 4'd1;
        steps         <= steps_all;
        rows_in_block <= {1'b0, steps_all};
        block         <= 11'd1;
      end
      S_BLOCK: begin
        wrows <= (rows_all[35:16] != 20'd0) ? 16'hffff : rows_all[15:0];
        if (f_fc) block <= groups;
        else if (more && !f_dw) begin
          block         <= block + 11'd1;
          rows_in_block <= rows_more;
        end
      end
      default: rest <= rest;
    endcase
  end

  // ---- the descriptor
  assign d_valid = state == S_OUT;
  assign desc[`DESC_MODE] = mode;
  assign desc[`DESC_DW] = f_dw;
  assign desc[`DESC_K3] = taps;
  assign desc[`DESC_SIN] = f_sin;
  assign desc[`DESC_SOUT] = f_sout;
  assign desc[`DESC_HELD] = !f_dw && entries < TILE_ROWS[11:0];
  assign desc[`DESC_WIDE] = f_wide;
  assign desc[`DESC_C] = n_c;
  assign desc[`DESC_O] = n_o;
  assign desc[`DESC_W] = n_w;
  assign desc[`DESC_H] = n_h;
  assign desc[`DESC_OW] = n_ow;
  assign desc[`DESC_OH] = n_oh;
  assign desc[`DESC_KW] = n_kw;
  assign desc[`DESC_KH] = n_kh;
  assign desc[`DESC_SRC] = f_src;
  assign desc[`DESC_DST] = f_dst;
  assign desc[`DESC_IP] = ip;
  assign desc[`DESC_IRL] = irl;
  assign desc[`DESC_ICS] = ics;
  assign desc[`DESC_OP] = op;
  assign desc[`DESC_ORL] = orl;
  assign desc[`DESC_OCS] = ocs;
  assign desc[`DESC_STL] = pick ? fl : 2'd0;
  assign desc[`DESC_PH] = f_pool == 4'd6;
  assign desc[`DESC_SWL] = swl;
  assign desc[`DESC_POOL] = pool;
  assign desc[`DESC_S] = steps;
  assign desc[`DESC_LASTN] = lastn;
  assign desc[`DESC_G] = groups;
  assign desc[`DESC_B] = block;
  assign desc[`DESC_PAD] = f_pad;
  assign desc[`DESC_ARGX] = f_argx;
  assign desc[`DESC_SHRX] = f_shrx;
  assign desc[`DESC_ARGW] = f_argw;
  assign desc[`DESC_SHRW] = f_shrw;
  assign desc[`DESC_ADDC] = addc;
  assign desc[`DESC_WADDR] = f_par;
  assign desc[`DESC_PSIZE] = f_psize;
  assign desc[`DESC_LOADS] = n_loads;
  assign desc[`DESC_WLEN] = (n_loads == 7'd1) ? wlast : wlen;
  assign desc[`DESC_WLAST] = wlast;
  assign desc[`DESC_BADDR] = f_bn;
  assign desc[`DESC_AADDR] = f_act;
  assign desc[`DESC_INTEN] = f_int_en;
  assign desc[`DESC_SEND] = f_send;
  assign desc[`DESC_FIRST] = f_first;
  assign desc[`DESC_LAST] = f_last;
  assign desc[`DESC_IDX] = f_index;
  assign desc[`DESC_INB] = in_bytes;
  assign desc[`DESC_TOUCH] = touch;
  assign desc[`DESC_WROWS] = wrows;
  assign desc[`DESC_INF] = f_inf;

  wire unused = &{1'b0, w_up[5:0], ow_up[5:0], rem_out[4]};
endmodule

`resetall
