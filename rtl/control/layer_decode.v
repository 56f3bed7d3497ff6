// SPDX-License-Identifier: Apache-2.0
//
// layer_decode: turns the twelve words of a layer argument into a descriptor, and checks them.
//
// How it works: layer_flags stores words 0, 6 and 8 as they arrive, layer_fields the others. layer_sizes
// maps the layer onto the array; layer_alu computes and checks the rest, one step per cycle, and begins
// while words arrive. The first violated rule gives the code, in this order: flags, kernel, pool, sizes,
// addresses, weights; it is registered one cycle after the last step. Fields that follow from others
// (layout, totals) are derived, not read, as in the vendor's simulator.
// Handshake: words are accepted while a layer is being collected; the descriptor is valid/ready. An illegal
// layer gives one err pulse with its code instead, then the next layer is collected.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module layer_decode #(
    // bus width; pixels and output channels of the array, bits of a weight
    parameter AHB_W        = 32,
    parameter N_Y          = 4,
    parameter N_Z          = 4,
    parameter WEIGHT_BITS  = 16,
    // sizes of the memories; bytes of a tile word, at most 64; 1: pooling tasks, float16, sums of 32 bits,
    // kept weights, flat maps are supported; largest dilation
    parameter AI_RAM_ROWS  = 32768,
    parameter WBUF_ROWS    = 1024,
    parameter TILE_ROWS    = 32,
    parameter TILE_WORD    = 64,
    parameter POOLS        = 1,
    parameter FP16         = 0,
    parameter OUT32        = 1,
    parameter KEEP_WEIGHTS = 0,
    parameter FLAT_MAPS    = 0,
    parameter DILATION     = 1
) (
    // clock, synchronous reset; drop an unfinished layer
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  drop,
    // layer words
    input  wire                  w_valid,
    output wire                  w_ready,
    input  wire [          63:0] w_data,
    // table offsets, added to an address on arrival
    input  wire [          31:0] wgt_base,
    input  wire [          31:0] bias_base,
    // sampled with the last word: weights are u8, position in the network
    input  wire                  eight_bit,
    input  wire [           9:0] index,
    input  wire                  first,
    input  wire                  last,
    input  wire                  parity,
    // a layer was collected
    output wire                  collected,
    // descriptor
    output reg                   d_valid,
    input  wire                  d_ready,
    output wire [`DESC_BITS-1:0] desc,
    // refused layer
    output reg                   err,
    output reg  [           7:0] err_code,
    // no layer is being collected or processed
    output wire                  idle
);

  // ---- words
  reg [3:0] word;
  reg full;  // all words of a layer have arrived
  wire leave;  // ... and the layer is passed on or refused
  wire take = w_valid && w_ready;
  assign w_ready   = !full;
  assign collected = take && word == `ARG_WORD_DMA_PARAMETER;
  assign idle      = !full && word == 4'd0;
  always @(posedge clk) begin
    if (rst) begin
      word <= 4'd0;
      full <= 1'b0;
    end else begin
      word <= full ? word : (drop || collected) ? 4'd0 : word + {3'd0, w_valid};
      full <= collected || (full && !leave);
    end
  end

  // ---- fields
  wire [ 2:0] kernel_type;
  wire [ 3:0] pool_type;
  wire [ 5:0] loads_m1;
  wire [35:0] term;
  wire send, many, kept;
  wire [13:0] n_c, c_m1;
  wire [9:0] n_h, n_oh, o_m1;
  wire [10:0] n_o, n_coef, n_w, n_ow;
  wire [1:0] fp16;  // product of float16 matrices, with float32 results
  layer_fields u_fields (
      .clk        (clk),
      .take       (take),
      .word       (word),
      .w_data     (w_data),
      .wgt_base   (wgt_base),
      .bias_base  (bias_base),
      .kept       (kept),
      .src        (desc[`DESC_SRC]),
      .src2       (desc[`DESC_SRC2]),
      .dst        (desc[`DESC_DST]),
      .c_m1       (c_m1),
      .o_m1       (o_m1),
      .many       (many),
      .n_c        (n_c),
      .n_o        (n_o),
      .n_coef     (n_coef),
      .n_w        (n_w),
      .n_h        (n_h),
      .n_ow       (n_ow),
      .n_oh       (n_oh),
      .kernel_type(kernel_type),
      .pool_type  (pool_type),
      .pad_value  (desc[`DESC_PAD]),
      .loads_m1   (loads_m1),
      .para_size  (desc[`DESC_PSIZE]),
      .weight_adr (desc[`DESC_WADDR]),
      .norm_adr   (desc[`DESC_BADDR]),
      .act_adr    (desc[`DESC_AADDR]),
      .shr_w      (desc[`DESC_SHRW]),
      .shr_x      (desc[`DESC_SHRX]),
      .arg_w      (desc[`DESC_ARGW]),
      .arg_x      (desc[`DESC_ARGX]),
      .term       (term),
      .send       (send)
  );

  // ---- sampled with the last word
  reg wide, is_first, is_last, inf_parity;
  reg [9:0] layer;
  always @(posedge clk) begin
    if (collected) begin
      wide       <= !eight_bit || fp16[0];
      is_first   <= first;
      is_last    <= last;
      inf_parity <= parity;
      layer      <= index;
    end
  end

  wire word_8 = take && word == `ARG_WORD_WRITE_BACK_CFG;
  wire int_en, dw, sin, sout, fc, ew, one_map, in_xor, w_xor, out32;
  wire pools, bad_store, side;
  wire [3:0] pad, kernel_m1;
  wire [4:0] stride;
  wire [`PTASK_BITS-1:0] window;
  wire [1:0] ew_op, apart;
  wire [2:0] dilation;
  wire [7:0] bad_flags;
  wire [`MOVES_BITS-1:0] moves;
  layer_flags #(
      .AHB_W(AHB_W),
      .POOLS(POOLS),
      .FP16(FP16),
      .OUT32(OUT32),
      .KEEP_WEIGHTS(KEEP_WEIGHTS),
      .DILATION(DILATION)
  ) u_flags (
      .clk        (clk),
      .load       (take && word == `ARG_WORD_INTERRUPT_ENABE),
      .w_data     (w_data),
      .kernel_type(kernel_type),
      .pool_type  (pool_type),
      .load_8     (word_8),
      .ends       ({send, is_last, is_first}),
      .moves      (moves),
      .bad_store  (bad_store),
      .load_6     (take && word == `ARG_WORD_KERNEL_OFFSET),
      .pools      (pools),
      .window     (window),
      .side       (side),
      .pad        (pad),
      .kernel_m1  (kernel_m1),
      .stride     (stride),
      .int_en     (int_en),
      .dw         (dw),
      .sin        (sin),
      .sout       (sout),
      .fc         (fc),
      .ew         (ew),
      .ewop       (ew_op),
      .one        (one_map),
      .in_xor     (in_xor),
      .w_xor      (w_xor),
      .out32      (out32),
      .fp16       (fp16),
      .kept       (kept),
      .dilation   (dilation),
      .apart      (apart),
      .bad        (bad_flags)
  );

  // ---- mapping onto the array
  wire k3 = kernel_type == 3'd1;
  // a dilated depthwise layer is computed as one with a pool
  wire [1:0] mode = fc ? `MODE_FC : (dw && pool_type == 4'd0 && dilation == 3'd0) ? `MODE_DWROW :
      (dw || k3) ? `MODE_TAPS : `MODE_CHAN;
  wire whole_map = window[`PTASK_ALL];
  wire [1:0] fl, ip, op;
  wire [4:0] irl, orl;
  wire [10:0] n_kw;
  wire [ 9:0] n_kh;
  wire [ 3:0] share;
  wire [2:0] swl, pool;
  wire pick, flat, bad_size;
  layer_sizes #(
      .N_Y      (N_Y),
      .N_Z      (N_Z),
      .TILE_WORD(TILE_WORD),
      .TILE_ROWS(TILE_ROWS),
      .FP16     (FP16),
      .FLAT_MAPS(FLAT_MAPS)
  ) u_sizes (
      .clk      (clk),
      .pools    (pools),
      .whole_map(whole_map),
      .chan     (mode == `MODE_CHAN),
      .fc       (fc),
      .dw       (dw),
      .out32    (out32),
      .fp16     (fp16),
      .arrives  (moves[`MOVES_LOAD] && !moves[`MOVES_STORE]),
      .pool_type(pool_type),
      .n_c      (n_c),
      .many     (many),
      .n_o      (n_o),
      .n_w      (n_w),
      .n_ow     (n_ow),
      .n_h      (n_h),
      .n_oh     (n_oh),
      .bad      (bad_size),
      .ip       (ip),
      .op       (op),
      .irl      (irl),
      .orl      (orl),
      .fl       (fl),
      .pick     (pick),
      .flat     (flat),
      .share    (share),
      .n_kw     (n_kw),
      .n_kh     (n_kh),
      .swl      (swl),
      .pool     (pool)
  );

  // ---- computed values
  wire over, bad_steps, bad_place, bad_weights, touch;
  wire [21:0] in_bytes;
  wire [13:0] ics, ocs;
  wire [17:0] steps;
  wire [3:0] rem, block;
  wire [10:0] groups;
  wire [16:0] wlen, wlast;
  wire [35:0] addc;
  wire [15:0] wrows;
  layer_alu #(
      .N_Z         (N_Z),
      .AI_RAM_ROWS (AI_RAM_ROWS),
      .WBUF_ROWS   (WBUF_ROWS),
      .KEEP_WEIGHTS(KEEP_WEIGHTS)
  ) u_alu (
      .clk        (clk),
      .rst        (rst),
      .clear      (leave || (drop && !full)),
      .begun      (full || word > `ARG_WORD_KERNEL_POOL_TYPE_CFG),
      .full       (full),
      .desc       (desc),
      .c_m1       (c_m1),
      .o_m1       (o_m1),
      .coef       (n_coef),
      .loads_m1   (loads_m1),
      .term       (term),
      .load_apart ({word_8, take && word == `ARG_WORD_KERNEL_CALC_TYPE_CFG}),
      .word_apart (w_data[`ARG_CHANNEL_SWITCH_ADDR]),
      .apart      (apart),
      .side       (side),
      .pad        (pad),
      .kernel_m1  (kernel_m1),
      .stride     (stride),
      .share      (share),
      .over       (over),
      .bad_size   (bad_steps),
      .bad_place  (bad_place),
      .bad_weights(bad_weights),
      .inb        (in_bytes),
      .ics        (ics),
      .ocs        (ocs),
      .steps      (steps),
      .rem        (rem),
      .groups     (groups),
      .block      (block),
      .wlen       (wlen),
      .wlast      (wlast),
      .addc       (addc),
      .wrows      (wrows),
      .touch      (touch)
  );

  // ---- the first violated rule; the flags' part settles long before the last step
  wire bad_wide = wide && (w_xor || WEIGHT_BITS == 8);
  reg [7:0] bad_form;
  always @(posedge clk)
    bad_form <= (bad_flags != 8'd0) ? bad_flags : bad_size ? `ERROR_BAD_SIZE : 8'd0;
  wire [7:0] bad = (bad_form != 8'd0) ? bad_form : (bad_steps && !whole_map) ? `ERROR_BAD_SIZE :
      (bad_place || bad_store) ? `ERROR_BAD_ADDR :
      ((bad_weights || bad_wide) && !pools) ? `ERROR_BAD_WEIGHTS : 8'd0;
  reg refused;
  assign leave = refused || (d_valid && d_ready);
  always @(posedge clk) begin
    if (rst) begin
      d_valid  <= 1'b0;
      refused  <= 1'b0;
      err      <= 1'b0;
      err_code <= 8'd0;
    end else begin
      d_valid  <= over && bad == 8'd0 && !leave;
      refused  <= over && bad != 8'd0 && !leave;
      err      <= refused;
      err_code <= refused ? bad : err_code;
    end
  end

  // the stripe's input stays in the tile buffer if its steps, 64 per entry for a vector, leave room
  localparam [17:0] ENTRIES = TILE_ROWS[17:0];
  wire held = !dw && (fc ? steps <= {ENTRIES[11:0] - 12'd1, 6'd0} : steps < ENTRIES);

  // ---- the rest of the descriptor
  assign desc[`DESC_MODE] = mode;
  assign desc[`DESC_DW] = dw;
  assign desc[`DESC_K3] = k3;
  assign desc[`DESC_SIN] = sin;
  assign desc[`DESC_SOUT] = sout;
  assign desc[`DESC_HELD] = held;
  assign desc[`DESC_WIDE] = wide;
  assign desc[`DESC_C] = n_c;
  assign desc[`DESC_O] = n_o;
  assign desc[`DESC_W] = n_w;
  assign desc[`DESC_H] = n_h;
  assign desc[`DESC_OW] = n_ow;
  assign desc[`DESC_OH] = n_oh;
  assign desc[`DESC_KW] = n_kw;
  assign desc[`DESC_KH] = n_kh;
  assign desc[`DESC_IP] = ip;
  assign desc[`DESC_IRL] = irl;
  assign desc[`DESC_ICS] = ics;
  assign desc[`DESC_OP] = op;
  assign desc[`DESC_ORL] = orl;
  assign desc[`DESC_OCS] = ocs;
  assign desc[`DESC_STL] = pick ? fl : 2'd0;
  assign desc[`DESC_PH] = pool_type == 4'd6;
  assign desc[`DESC_SWL] = swl;
  assign desc[`DESC_POOL] = pool;
  assign desc[`DESC_S] = steps;
  assign desc[`DESC_LASTN] = rem + 4'd1;
  assign desc[`DESC_G] = fc ? n_o : dw ? 11'd1 : groups;
  assign desc[`DESC_B] = fc ? n_o : {7'd0, block};
  assign desc[`DESC_ADDC] = addc;
  assign desc[`DESC_LOADS] = {1'b0, loads_m1} + 7'd1;
  assign desc[`DESC_WLEN] = {7'd0, wlen};
  assign desc[`DESC_WLAST] = {7'd0, wlast};
  assign desc[`DESC_INTEN] = int_en;
  assign desc[`DESC_SEND] = send;
  assign desc[`DESC_FIRST] = is_first;
  assign desc[`DESC_LAST] = is_last;
  assign desc[`DESC_IDX] = layer;
  assign desc[`DESC_INB] = in_bytes;
  assign desc[`DESC_TOUCH] = touch || is_first;
  assign desc[`DESC_WROWS] = wrows;
  assign desc[`DESC_INF] = inf_parity;
  assign desc[`DESC_EW] = ew;
  assign desc[`DESC_EWOP] = ew_op;
  assign desc[`DESC_ONE] = one_map;
  assign desc[`DESC_INXOR] = in_xor;
  assign desc[`DESC_WXOR] = w_xor;
  assign desc[`DESC_OUT32] = out32;
  assign desc[`DESC_POOLS] = pools;
  assign desc[`DESC_PTASK] = window;
  assign desc[`DESC_FP16] = fp16[0];
  assign desc[`DESC_FP32] = fp16[1];
  assign desc[`DESC_MOVES] = moves;
  assign desc[`DESC_KEPT] = kept;
  assign desc[`DESC_FLAT] = flat;
  assign desc[`DESC_DIL] = dilation;

endmodule

`resetall
