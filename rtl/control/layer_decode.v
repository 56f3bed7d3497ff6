// SPDX-License-Identifier: Apache-2.0
//
// layer_decode: turns the twelve words of a layer argument into a descriptor, and checks them.
//
// How it works: the fields are stored as the words arrive. Then one multiplier computes sizes in
// rows and bytes, a divider the number of reduction steps, and a counter how many output groups
// share one reading of the input (their weights stay in half of the weight buffer). A state is a row
// of a table: two operands, and what becomes of their product, which is there a cycle later: where it
// goes and what is checked of it. The checks run in this order: flags, kernel, pool, sizes,
// addresses, weights. Fields that follow from others (layout, totals) are derived, not read, as the
// vendor's simulator does.
// Handshake: words are taken while a layer is being collected; the descriptor is valid/ready. An
// illegal layer gives one err pulse with its code instead, then the next layer is collected.
// layer_place checks rows of maps, layer_sizes derives widths and groups, layer_flags holds word 0.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module layer_decode #(
    // bus width; pixels and output channels of the array, bits of a weight
    parameter AHB_W       = 32,
    parameter N_Y         = 4,
    parameter N_Z         = 4,
    parameter WEIGHT_BITS = 16,
    // sizes of the memories, bytes of a tile word; there are pooling tasks, float16, sums of 32 bits,
    // kept weights, flat maps
    parameter AI_RAM_ROWS = 32768,
    parameter WBUF_ROWS   = 1024,
    parameter TILE_ROWS   = 32,
    parameter TILE_W      = 64,
    parameter POOLS       = 1,
    parameter FP16        = 0,
    parameter OUT32       = 1,
    parameter KEEP        = 0,
    parameter FLAT        = 0,
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
    // table offsets, added as an address comes
    input  wire [          31:0] wgt_base,
    input  wire [          31:0] bias_base,
    // taken with the last word: weights are u8, place in the network
    input  wire                  eight_bit,
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

  localparam [3:0] S_WORDS = 4'd0, S_CHECK = 4'd1, S_ICS = 4'd2, S_IROWS = 4'd3, S_OCS = 4'd4,
      S_OROWS = 4'd5, S_CH = 4'd6, S_CHW = 4'd7, S_FULL = 4'd8, S_WLEN = 4'd9, S_REST = 4'd10,
      S_DIV = 4'd11, S_FIT = 4'd12, S_BLOCK = 4'd13, S_OUT = 4'd14;
  reg [3:0] state;
  reg [3:0] word, made;  // made: the state whose product is there
  // ---- fields
  reg [14:0] f_src, f_src2, f_dst;
  reg [2:0] f_kernel;
  reg [3:0] f_pool, f_shrw, f_shrx, lastn;
  reg [7:0] f_pad, bad;
  reg [31:0] f_bn, f_par, f_act;
  reg [5:0] f_loads;
  reg [16:0] f_psize, wlen, wlast;
  reg [23:0] f_argw, f_argx;
  reg [35:0] f_add;
  // many: over 9216 input channels, nine for each of 1024 rows of the weight buffer
  reg f_send, f_wide, f_first, f_last, f_inf, many;
  wire f_int_en, f_dw, f_sin, f_sout, f_fc, f_ew, f_one, f_in_xor, f_w_xor, f_out32, f_kept;
  // sizes come minus one, those of output channels where those of lines do
  reg [13:0] n_c, mul_b;
  reg [10:0] n_o, n_coef, n_w, n_ow;
  reg [9:0] n_h, n_oh, f_index;
  // addresses lie in the upper half of their words; kept weights have places in the AI RAM
  wire [31:0] base = (word != `ARG_WORD_KERNEL_LOAD_CFG) ? bias_base : f_kept ? 32'd0 : wgt_base;
  wire [31:0] address = w_data[`ARG_PARA_START_ADDR] + base;
  wire [13:0] low_size = w_data[`ARG_I_CH_NUM_M1];
  wire [10:0] high_size = {1'b0, w_data[`ARG_O_CH_NUM_M1]} + 11'd1;

  assign w_ready   = state == S_WORDS;
  assign collected = w_valid && w_ready && word == 4'd11;
  assign idle      = state == S_WORDS && word == 4'd0;
  always @(posedge clk) begin
    if (w_valid && w_ready) begin
      case (word)
        `ARG_WORD_IMAGE_ADDR:
        {f_src, f_src2, f_dst} <= {
          w_data[`ARG_IMAGE_SRC_ADDR], w_data[`ARG_IMAGE_SRC2_ADDR], w_data[`ARG_IMAGE_DST_ADDR]
        };
        `ARG_WORD_IMAGE_CHANNEL_NUM: begin
          {many, n_c}   <= {low_size[13:10] > 4'd8, low_size + 14'd1};
          {n_o, n_coef} <= {high_size, {1'b0, w_data[`ARG_O_CH_NUM_COEF_M1]} + 11'd1};
        end
        `ARG_WORD_IMAGE_SIZE: begin
          n_w  <= {1'b0, low_size[9:0]} + 11'd1;
          n_h  <= {1'b0, w_data[`ARG_I_COL_HIGH_M1]} + 10'd1;
          n_ow <= high_size;
          n_oh <= {1'b0, w_data[`ARG_O_COL_HIGH_M1]} + 10'd1;
        end
        `ARG_WORD_KERNEL_POOL_TYPE_CFG: begin
          f_kernel <= w_data[`ARG_KERNEL_TYPE];
          f_pool   <= w_data[`ARG_POOL_TYPE];
          f_pad    <= w_data[`ARG_PAD_VALUE];
          f_bn     <= address;
        end
        `ARG_WORD_KERNEL_LOAD_CFG:
        {f_loads, f_psize, f_par} <= {w_data[`ARG_LOAD_TIME_M1], w_data[`ARG_PARA_SIZE], address};
        `ARG_WORD_KERNEL_CALC_TYPE_CFG: f_act <= address;
        `ARG_WORD_CONV_VALUE:
        {f_shrw, f_shrx, f_argw, f_argx} <= {
          w_data[`ARG_SHR_W], w_data[`ARG_SHR_X], w_data[`ARG_ARG_W], w_data[`ARG_ARG_X]
        };
        // modulo 2^36, which is exact while the sum fits 36 bits
        `ARG_WORD_CONV_VALUE2: f_add <= w_data[35:0];
        `ARG_WORD_DMA_PARAMETER: begin
          {f_send, f_wide} <= {w_data[`ARG_SEND_DATA_OUT], !eight_bit || float[0]};
          {f_first, f_last, f_inf} <= {first, last, parity};
          f_index <= index;
        end
        default: f_send <= f_send;  // word 0: layer_flags; word 6: layer_sizes
      endcase
    end
  end

  wire [1:0] f_ewop, float, apart;  // product of float16 matrices, of float32 results; rows between groups
  wire [7:0] bad_flags;
  wire word_8 = w_valid && w_ready && word == `ARG_WORD_WRITE_BACK_CFG;
  wire pools, bad_window, bad_store, bad_place, touch, pick, flat, bad_size, serial_busy;
  wire [`MOVES_BITS-1:0] moves;
  layer_flags #(
      .AHB_W(AHB_W),
      .POOLS(POOLS),
      .FP16 (FP16),
      .OUT32(OUT32),
      .KEEP (KEEP)
  ) u_flags (
      .clk        (clk),
      .load       (w_valid && w_ready && word == `ARG_WORD_INTERRUPT_ENABE),
      .w_data     (w_data),
      .kernel_type(f_kernel),
      .pool_type  (f_pool),
      .load_8     (word_8),
      .ends       ({f_send, f_last, f_first}),
      .moves      (moves),
      .bad_store  (bad_store),
      .pools      (pools),
      .bad_window (bad_window),
      .int_en     (f_int_en),
      .dw         (f_dw),
      .sin        (f_sin),
      .sout       (f_sout),
      .fc         (f_fc),
      .ew         (f_ew),
      .ewop       (f_ewop),
      .one        (f_one),
      .in_xor     (f_in_xor),
      .w_xor      (f_w_xor),
      .out32      (f_out32),
      .fp16       (float),
      .kept       (f_kept),
      .apart      (apart),
      .bad        (bad_flags)
  );

  // ---- sizes
  wire [6:0] n_loads = {1'b0, f_loads} + 7'd1;
  wire [1:0] fl, ip, op;
  wire [`PTASK_BITS-1:0] window;
  wire [4:0] irl, orl;
  wire [13:0] in_groups;
  wire [10:0] out_groups, n_kw, z_groups;
  wire [9:0] n_kh;
  wire [2:0] swl, pool;
  wire [17:0] taps_out, nines;
  layer_sizes #(
      .N_Y   (N_Y),
      .N_Z   (N_Z),
      .TILE_W(TILE_W),
      .TILE_ROWS(TILE_ROWS),
      .FLAT  (FLAT)
  ) u_sizes (
      .clk       (clk),
      .take      (w_valid && w_ready && word == `ARG_WORD_KERNEL_OFFSET),
      .word      (w_data),
      .pools     (pools),
      .window    (window),
      .bad_window(bad_window),
      .chan      (mode == `MODE_CHAN),
      .fc        (f_fc),
      .dw        (f_dw),
      .out32     (f_out32),
      .fp16      (float),
      .pool_type (f_pool),
      .n_c       (n_c),
      .many      (many),
      .n_o       (n_o),
      .n_w       (n_w),
      .n_ow      (n_ow),
      .n_h       (n_h),
      .n_oh      (n_oh),
      .bad       (bad_size),
      .ip        (ip),
      .op        (op),
      .irl       (irl),
      .orl       (orl),
      .in_groups (in_groups),
      .out_groups(out_groups),
      .z_groups  (z_groups),
      .taps_out  (taps_out),
      .fl        (fl),
      .pick      (pick),
      .flat      (flat),
      .share     (share),
      .n_kw      (n_kw),
      .n_kh      (n_kh),
      .swl       (swl),
      .pool      (pool)
  );

  wire taps = f_kernel == 3'd1;
  wire [1:0] mode = f_fc ? `MODE_FC : (f_dw && f_pool == 4'd0) ? `MODE_DWROW :
             (f_dw || taps) ? `MODE_TAPS : `MODE_CHAN;

  // ---- results of the multiplier
  wire [13:0] ics, ocs;
  wire [17:0] group_rows;  // from a channel group, or out32's channel, to the next
  reg  [21:0] in_bytes;
  reg  [15:0] wrows;
  wire [35:0] addc;
  reg [17:0] steps, per_out, mul_a;  // per_out: weights of an output channel
  reg [10:0] block, rest;  // rest: channels of the last load
  // a block takes half of the buffer at most, and another group no more than all of it
  localparam RW = $clog2(WBUF_ROWS + 1) + 1;
  localparam [RW-1:0] HALF_ROWS = WBUF_ROWS[RW:1];
  reg [RW-1:0] rows_in_block;
  // mul_a: channels * lines is below 2^18 when the map fits, whose rows hold four channels at most
  reg [28:0] product;
  // what one output channel needs: the whole map, a kernel, or a kernel of each channel
  wire [17:0] per_now = f_fc ? product[17:0] : f_dw ? (taps ? 18'd9 : 18'd1) :
             taps ? taps_out : {4'd0, n_c};
  wire [10:0] rest_now = n_o - product[10:0];
  always @* begin
    case (state)
      S_ICS: {mul_a, mul_b} = {8'd0, n_h, 9'd0, irl};
      S_IROWS: {mul_a, mul_b} = {group_rows, in_groups - 14'd1};
      S_OCS: {mul_a, mul_b} = {8'd0, n_oh, 9'd0, orl};
      S_OROWS: {mul_a, mul_b} = {group_rows, 3'd0, out_groups - 11'd1};
      S_CH: {mul_a, mul_b} = {4'd0, n_c, 4'd0, n_h};
      S_CHW: {mul_a, mul_b} = {product[17:0], 3'd0, n_w};
      S_WLEN: {mul_a, mul_b} = {per_out, 3'd0, n_coef};
      S_FULL: {mul_a, mul_b} = {12'd0, f_loads, 3'd0, n_coef};
      S_REST: {mul_a, mul_b} = {per_out, 3'd0, rest};
      S_DIV: {mul_a, mul_b} = {1'b0, f_psize, 8'd0, f_loads};
      default: {mul_a, mul_b} = {steps, 3'd0, groups};  // S_BLOCK
    endcase
  end

  // ---- division by nine, constant term
  wire [3:0] rem, share;
  layer_serial u_serial (
      .clk     (clk),
      .rst     (rst),
      .load    (f_fc ? state == S_WLEN : state == S_CHECK),
      .busy    (serial_busy),
      .dividend(f_fc ? in_bytes : {8'd0, n_c}),
      .quotient(nines),
      .rest    (rem),
      .term    (f_add),
      .times   ((f_dw || f_fc) ? 14'd1 : n_c),
      .sum     (addc)
  );

  // groups of output channels, of channels of a depthwise layer
  wire [10:0] groups = f_fc ? n_o : f_dw ? 11'd1 : z_groups;
  wire [RW-1:0] rows_more = rows_in_block + steps[RW-1:0];
  wire more = rows_more <= HALF_ROWS && block < groups && block < {7'd0, share};
  wire [11:0] entries = (mode == `MODE_FC) ? steps[17:6] + {11'd0, steps[5:0] != 6'd0} :
             (steps[17:12] != 6'd0 || (steps[11] && steps[10:0] != 11'd0)) ? 12'd2048 : steps[11:0];
  wire [29:0] wlen_now = f_wide ? {product, 1'b0} : {1'b0, product};

  // after the division: reduction steps of a group, rows that must be in the buffer at once
  wire [17:0] steps_all = (mode == `MODE_DWROW) ? 18'd1 :
             (mode == `MODE_TAPS) ? {4'd0, n_c} : nines + {17'd0, rem != 4'd0};
  wire [17:0] wbuf_need = f_fc ? 18'd0 : f_dw ? {7'd0, z_groups} : steps;
  // rows of the weight buffer that the whole layer takes, up to 65535
  wire [28:0] packed_rows = f_fc ? product >> ZW : product;
  wire part_row = f_fc && product[ZW-1:0] != {ZW{1'b0}};
  wire [16:0] rows_all = f_dw ? {6'd0, z_groups} : {1'b0, packed_rows[15:0]} + {16'd0, part_row};
  wire rows_many = rows_all[16] || (!f_dw && packed_rows[28:16] != 13'd0);
  reg rows_there, huge;  // the product of steps and groups; more weights than a load holds

  // ---- the rows of the maps
  layer_place #(
      .AI_RAM_ROWS(AI_RAM_ROWS)
  ) u_place (
      .clk       (clk),
      .rst       (rst),
      .words     ({word_8, w_valid && w_ready && word == `ARG_WORD_KERNEL_CALC_TYPE_CFG}),
      .w_data    (w_data),
      .apart     (apart),
      .step      ({made == S_OROWS, made == S_OCS, made == S_IROWS, made == S_ICS}),
      .product   (product),
      .planes    (f_out32 ? op : 2'd0),
      .group_rows(group_rows),
      .ics       (ics),
      .ocs       (ocs),
      .src       (f_src),
      .two       (f_ew && !f_one),
      .src2      (f_src2),
      .dst       (f_dst),
      .first     (f_first),
      .in_order  (mode == `MODE_DWROW),
      .bad       (bad_place),
      .touch     (touch)
  );

  // kept weights end in the AI RAM: loads before the last one are multiplied during the division
  localparam [32:0] AI_RAM_BYTES = AI_RAM_ROWS * 64;
  wire [32:0] kept_end = {1'b0, f_par} + {10'd0, product[22:0]} + {16'd0, wlast};

  // ---- the checks: of the products, each in the cycle in which it is there, and of what needs none
  wire bad_loads = product[17:11] != 7'd0 || product[10:0] >= n_o || rest_now > n_coef;
  wire too_long = huge || wlen_now[29:17] != 13'd0 || wlen_now[16:0] > f_psize;
  wire bad_wide = f_wide && (f_w_xor || WEIGHT_BITS == 8);
  reg bad_map, bad_weights;
  always @* begin
    {bad_map, bad_weights} = 2'b00;
    case (made)
      S_IROWS, S_OROWS: bad_map = bad_place || bad_store;
      S_FULL: bad_weights = !pools && bad_loads;
      S_WLEN: bad_weights = !pools && (too_long || bad_wide);
      S_DIV: bad_weights = state == S_FIT && f_kept && kept_end > AI_RAM_BYTES;
      S_FIT: bad_weights = !pools && wbuf_need > WBUF_ROWS[17:0];
      default: bad_map = 1'b0;
    endcase
    bad = (state != S_CHECK) ? (bad_map ? `ERROR_BAD_ADDR : bad_weights ? `ERROR_BAD_WEIGHTS : 8'd0) :
        (bad_flags == 8'd0 && bad_size) ? `ERROR_BAD_SIZE : bad_flags;
  end

  always @(posedge clk) begin
    if (rst) begin
      state    <= S_WORDS;
      made     <= S_WORDS;
      word     <= 4'd0;
      err      <= 1'b0;
      err_code <= 8'd0;
    end else begin
      err      <= bad != 8'd0;
      err_code <= (bad != 8'd0) ? bad : err_code;
      made     <= (bad != 8'd0) ? S_WORDS : state;
      word     <= (state != S_WORDS) ? word : (drop || collected) ? 4'd0 : word + {3'd0, w_valid};
      case (state)
        S_WORDS: state <= collected ? S_CHECK : S_WORDS;
        S_CHECK: state <= (bad != 8'd0) ? S_WORDS : S_ICS;
        S_ICS: state <= S_IROWS;
        S_IROWS: state <= S_OCS;
        S_OCS: state <= (bad != 8'd0) ? S_WORDS : S_OROWS;
        S_OROWS: state <= S_CH;
        S_CH: state <= (bad != 8'd0) ? S_WORDS : S_CHW;
        S_CHW: state <= S_FULL;
        S_FULL: state <= S_WLEN;
        S_WLEN: state <= (bad != 8'd0) ? S_WORDS : S_REST;
        S_REST: state <= (bad != 8'd0) ? S_WORDS : S_DIV;
        S_DIV: state <= serial_busy ? S_DIV : S_FIT;
        S_FIT: state <= (bad != 8'd0) ? S_WORDS : S_BLOCK;
        S_BLOCK:
        state <= (bad != 8'd0) ? S_WORDS : (made == S_FIT || (more && !f_dw && !f_fc)) ? S_BLOCK : S_OUT;
        S_OUT: state <= d_ready ? S_WORDS : S_OUT;
        default: state <= S_WORDS;
      endcase
    end
  end
  always @(posedge clk) begin
    rows_there <= made == S_FIT;
    product    <= mul_a * mul_b;
    case (made)
      S_CHW: {in_bytes, per_out, huge} <= {product[21:0], per_now, f_fc && product[21:18] != 4'd0};
      S_FULL: rest <= rest_now;
      S_WLEN: wlen <= wlen_now[16:0];
      S_REST: wlast <= wlen_now[16:0];
      default: rest <= rest;
    endcase
    case (state)
      S_FIT: begin
        // steps of a group: channels, nines of channels or elements, one
        lastn <= (rem == 4'd0) ? 4'd9 : rem;
        {steps, rows_in_block, block} <= {steps_all, steps_all[RW-1:0], 11'd1};
      end
      S_BLOCK: begin
        if (rows_there) wrows <= pools ? 16'd0 : rows_many ? 16'hffff : rows_all[15:0];
        if (f_fc) block <= groups;
        else if (more && !f_dw) begin
          block         <= block + 11'd1;
          rows_in_block <= rows_more;
        end
      end
      default: block <= block;
    endcase
  end

  // ---- the descriptor
  assign d_valid = state == S_OUT;
  assign {desc[`DESC_MODE], desc[`DESC_DW], desc[`DESC_K3]} = {mode, f_dw, taps};
  assign {desc[`DESC_SIN], desc[`DESC_SOUT], desc[`DESC_WIDE]} = {f_sin, f_sout, f_wide};
  assign {desc[`DESC_HELD], desc[`DESC_LASTN]} = {!f_dw && entries < TILE_ROWS[11:0], lastn};
  assign {desc[`DESC_C], desc[`DESC_O], desc[`DESC_W], desc[`DESC_H]} = {n_c, n_o, n_w, n_h};
  assign {desc[`DESC_OW], desc[`DESC_OH], desc[`DESC_KW], desc[`DESC_KH]} = {
    n_ow, n_oh, n_kw, n_kh
  };
  assign {desc[`DESC_SRC], desc[`DESC_DST], desc[`DESC_AADDR]} = {f_src, f_dst, f_act};
  assign {desc[`DESC_IP], desc[`DESC_IRL], desc[`DESC_ICS]} = {ip, irl, ics};
  assign {desc[`DESC_OP], desc[`DESC_ORL], desc[`DESC_OCS]} = {op, orl, ocs};
  assign {desc[`DESC_STL], desc[`DESC_PH]} = {pick ? fl : 2'd0, f_pool == 4'd6};
  assign {desc[`DESC_SWL], desc[`DESC_POOL], desc[`DESC_PAD]} = {swl, pool, f_pad};
  assign {desc[`DESC_S], desc[`DESC_G], desc[`DESC_B]} = {steps, groups, block};
  assign {desc[`DESC_ARGX], desc[`DESC_SHRX], desc[`DESC_ARGW]} = {f_argx, f_shrx, f_argw};
  assign {desc[`DESC_ADDC], desc[`DESC_WADDR], desc[`DESC_BADDR]} = {addc, f_par, f_bn};
  assign {desc[`DESC_PSIZE], desc[`DESC_LOADS], desc[`DESC_SHRW]} = {f_psize, n_loads, f_shrw};
  assign desc[`DESC_WLEN] = {7'd0, (n_loads == 7'd1) ? wlast : wlen};
  assign {desc[`DESC_INTEN], desc[`DESC_SEND], desc[`DESC_WLAST]} = {f_int_en, f_send, 7'd0, wlast};
  assign {desc[`DESC_FIRST], desc[`DESC_LAST], desc[`DESC_POOLS]} = {f_first, f_last, pools};
  assign {desc[`DESC_IDX], desc[`DESC_INB], desc[`DESC_PTASK]} = {f_index, in_bytes, window};
  assign {desc[`DESC_TOUCH], desc[`DESC_WROWS], desc[`DESC_INF]} = {touch, wrows, f_inf};
  assign {desc[`DESC_SRC2], desc[`DESC_ONE], desc[`DESC_EWOP], desc[`DESC_EW]} = {
    f_src2, f_one, f_ewop, f_ew
  };
  assign {desc[`DESC_OUT32], desc[`DESC_WXOR], desc[`DESC_INXOR]} = {f_out32, f_w_xor, f_in_xor};
  assign {desc[`DESC_FLAT], desc[`DESC_KEPT], desc[`DESC_MOVES], desc[`DESC_FP32], desc[`DESC_FP16]} = {
    flat, f_kept, moves, float
  };

endmodule

`resetall
