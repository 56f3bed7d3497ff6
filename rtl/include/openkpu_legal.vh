// SPDX-License-Identifier: Apache-2.0
//
// Limits of openkpu_top's parameters; openkpu_top includes this file behind its ports.
//
// An illegal value instantiates a module that does not exist, whose name lists the legal values, and
// elaboration stops. The lower modules have the defaults then, so that no message of theirs comes first.

// ---- each by itself, docs/integration.md section 3
localparam OK_N_Y = N_Y == 2 || N_Y == 4 || N_Y == 8 || N_Y == 16;
localparam OK_N_Z = N_Z == 2 || N_Z == 4 || N_Z == 8 || N_Z == 16 || N_Z == 32 || N_Z == 64;
localparam OK_AHB_W = AHB_W == 32 || AHB_W == 64 || AHB_W == 128;
localparam OK_AI_RAM_ROWS = AI_RAM_ROWS >= 16 && AI_RAM_ROWS <= 32768;
localparam OK_WBUF_ROWS = WBUF_ROWS >= 64 && WBUF_ROWS <= 32768 && (WBUF_ROWS & (WBUF_ROWS - 1)) == 0;
localparam OK_WEIGHT_BITS = WEIGHT_BITS == 8 || WEIGHT_BITS == 16;
localparam OK_PARAM_CHANS = PARAM_CHANS == 1024 || PARAM_CHANS == 2048;
localparam OK_LOOK_AHEAD = LOOK_AHEAD == 4 || LOOK_AHEAD == 8 || LOOK_AHEAD == 16;
localparam OK_TILE_ROWS = TILE_ROWS >= 32 && TILE_ROWS <= 2048 && (TILE_ROWS & (TILE_ROWS - 1)) == 0;
localparam OK_POST_SHARE = POST_SHARE == 1 || POST_SHARE == 2 || POST_SHARE == 4;
localparam OK_POOL_LANES = POOL_LANES == 0 || POOL_LANES == 1 || POOL_LANES == 2 || POOL_LANES == 4 ||
    POOL_LANES == 8;
localparam OK_FP16_LANES = FP16_LANES == 0 || (FP16_LANES >= 4 && (FP16_LANES & (FP16_LANES - 1)) == 0);
localparam OK_KEEP_WEIGHTS = KEEP_WEIGHTS == 0 || KEEP_WEIGHTS == 1;
localparam OK_WEIGHT_AHEAD = WEIGHT_AHEAD == 0 || WEIGHT_AHEAD == 1;
localparam OK_FLAT_MAPS = FLAT_MAPS == 0 || FLAT_MAPS == 1;
localparam OK_DILATION = DILATION >= 1 && DILATION <= 8;
localparam OK_SUM_PLANES = SUM_PLANES == 0 || SUM_PLANES == 1;
localparam OK_OUT32 = OUT32 == 0 || OUT32 == 1;
localparam OK_POST_TABLES = POST_TABLES == 0 || POST_TABLES == 1;
localparam OK_MUL_BITS = MUL_BITS == 17 || MUL_BITS == 18;
localparam OK_PATH = PATH == 16 || PATH == 32 || PATH == 64 || PATH == 128;
localparam OK_PIX_FIFO_DEPTH = PIX_FIFO_DEPTH >= 2;
localparam OK_WGT_FIFO_DEPTH = WGT_FIFO_DEPTH >= 2;
localparam OK_BIAS_FIFO_DEPTH = BIAS_FIFO_DEPTH >= 2;
localparam OK_ROUNDING = ROUNDING == 0 || ROUNDING == 1 || ROUNDING == 2;
localparam OK_GATE = GATE == 0 || GATE == 1;
localparam OK_PERF = PERF == 0 || PERF == 1;
localparam OK_PRIVILEGED = PRIVILEGED == 0 || PRIVILEGED == 1;
localparam OK_EACH =
    OK_N_Y && OK_N_Z && OK_AHB_W && OK_AI_RAM_ROWS && OK_WBUF_ROWS && OK_WEIGHT_BITS && OK_PARAM_CHANS &&
    OK_LOOK_AHEAD && OK_TILE_ROWS && OK_POST_SHARE && OK_POOL_LANES && OK_FP16_LANES && OK_KEEP_WEIGHTS &&
    OK_WEIGHT_AHEAD && OK_FLAT_MAPS && OK_DILATION && OK_SUM_PLANES && OK_OUT32 && OK_POST_TABLES &&
    OK_MUL_BITS && OK_PATH && OK_PIX_FIFO_DEPTH && OK_WGT_FIFO_DEPTH && OK_BIAS_FIFO_DEPTH && OK_ROUNDING &&
    OK_GATE && OK_PERF && OK_PRIVILEGED;
// ---- together
localparam OK_LANES = N_Y * N_Z <= 128;
localparam OK_SHARE = POST_SHARE <= N_Z;
localparam OK_FLAT = FLAT_MAPS == 0 || N_Y * N_Z >= 16;
localparam OK_RING = WEIGHT_AHEAD == 0 || 4 * PATH >= AHB_W;
localparam OK_FP16 = FP16_LANES == 0 || WEIGHT_BITS == 16;
localparam OK_FP16_MANY = FP16_LANES <= 4 * N_Y * N_Z;
localparam OK_FP16_ROWS = FP16_LANES <= ((PATH > 64) ? 32 : PATH / 2) * N_Z;
localparam OK_FP16_COLS = FP16_LANES == 0 || N_Y <= ((PATH > 64) ? 32 : PATH / 2);
localparam LEGAL =
    OK_EACH && OK_LANES && OK_SHARE && OK_FLAT && OK_RING && OK_FP16 && OK_FP16_MANY && OK_FP16_ROWS &&
    OK_FP16_COLS;

generate
  if (!OK_N_Y) begin : g_n_y
    ILLEGAL_N_Y_2_4_8_16 u_illegal ();
  end
  if (!OK_N_Z) begin : g_n_z
    ILLEGAL_N_Z_2_4_8_16_32_64 u_illegal ();
  end
  if (!OK_AHB_W) begin : g_ahb_w
    ILLEGAL_AHB_W_32_64_128 u_illegal ();
  end
  if (!OK_AI_RAM_ROWS) begin : g_ai_ram_rows
    ILLEGAL_AI_RAM_ROWS_16_TO_32768 u_illegal ();
  end
  if (!OK_WBUF_ROWS) begin : g_wbuf_rows
    ILLEGAL_WBUF_ROWS_POWER_OF_TWO_64_TO_32768 u_illegal ();
  end
  if (!OK_WEIGHT_BITS) begin : g_weight_bits
    ILLEGAL_WEIGHT_BITS_8_16 u_illegal ();
  end
  if (!OK_PARAM_CHANS) begin : g_param_chans
    ILLEGAL_PARAM_CHANS_1024_2048 u_illegal ();
  end
  if (!OK_LOOK_AHEAD) begin : g_look_ahead
    ILLEGAL_LOOK_AHEAD_4_8_16 u_illegal ();
  end
  if (!OK_TILE_ROWS) begin : g_tile_rows
    ILLEGAL_TILE_ROWS_POWER_OF_TWO_32_TO_2048 u_illegal ();
  end
  if (!OK_POST_SHARE) begin : g_post_share
    ILLEGAL_POST_SHARE_1_2_4 u_illegal ();
  end
  if (!OK_POOL_LANES) begin : g_pool_lanes
    ILLEGAL_POOL_LANES_0_1_2_4_8 u_illegal ();
  end
  if (!OK_FP16_LANES) begin : g_fp16_lanes
    ILLEGAL_FP16_LANES_0_OR_POWER_OF_TWO_FROM_4 u_illegal ();
  end
  if (!OK_KEEP_WEIGHTS) begin : g_keep_weights
    ILLEGAL_KEEP_WEIGHTS_0_1 u_illegal ();
  end
  if (!OK_WEIGHT_AHEAD) begin : g_weight_ahead
    ILLEGAL_WEIGHT_AHEAD_0_1 u_illegal ();
  end
  if (!OK_FLAT_MAPS) begin : g_flat_maps
    ILLEGAL_FLAT_MAPS_0_1 u_illegal ();
  end
  if (!OK_DILATION) begin : g_dilation
    ILLEGAL_DILATION_1_TO_8 u_illegal ();
  end
  if (!OK_SUM_PLANES) begin : g_sum_planes
    ILLEGAL_SUM_PLANES_0_1 u_illegal ();
  end
  if (!OK_OUT32) begin : g_out32
    ILLEGAL_OUT32_0_1 u_illegal ();
  end
  if (!OK_POST_TABLES) begin : g_post_tables
    ILLEGAL_POST_TABLES_0_1 u_illegal ();
  end
  if (!OK_MUL_BITS) begin : g_mul_bits
    ILLEGAL_MUL_BITS_17_18 u_illegal ();
  end
  if (!OK_PATH) begin : g_path
    ILLEGAL_PATH_16_32_64_128 u_illegal ();
  end
  if (!OK_PIX_FIFO_DEPTH) begin : g_pix_fifo_depth
    ILLEGAL_PIX_FIFO_DEPTH_FROM_2 u_illegal ();
  end
  if (!OK_WGT_FIFO_DEPTH) begin : g_wgt_fifo_depth
    ILLEGAL_WGT_FIFO_DEPTH_FROM_2 u_illegal ();
  end
  if (!OK_BIAS_FIFO_DEPTH) begin : g_bias_fifo_depth
    ILLEGAL_BIAS_FIFO_DEPTH_FROM_2 u_illegal ();
  end
  if (!OK_ROUNDING) begin : g_rounding
    ILLEGAL_ROUNDING_0_1_2 u_illegal ();
  end
  if (!OK_GATE) begin : g_gate
    ILLEGAL_GATE_0_1 u_illegal ();
  end
  if (!OK_PERF) begin : g_perf
    ILLEGAL_PERF_0_1 u_illegal ();
  end
  if (!OK_PRIVILEGED) begin : g_privileged
    ILLEGAL_PRIVILEGED_0_1 u_illegal ();
  end
  if (OK_EACH && !OK_LANES) begin : g_together_lanes
    ILLEGAL_N_Y_N_Z_MORE_THAN_128_LANES u_illegal ();
  end
  if (OK_EACH && !OK_SHARE) begin : g_together_share
    ILLEGAL_POST_SHARE_UP_TO_N_Z u_illegal ();
  end
  if (OK_EACH && !OK_FLAT) begin : g_together_flat
    ILLEGAL_FLAT_MAPS_BELOW_16_LANES u_illegal ();
  end
  if (OK_EACH && !OK_RING) begin : g_together_ring
    ILLEGAL_WEIGHT_AHEAD_PATH_BELOW_TWO_BUS_WORDS u_illegal ();
  end
  if (OK_EACH && !OK_FP16) begin : g_together_fp16
    ILLEGAL_FP16_LANES_WITHOUT_16_BIT_WEIGHTS u_illegal ();
  end
  if (OK_EACH && !OK_FP16_MANY) begin : g_together_fp16_many
    ILLEGAL_FP16_LANES_UP_TO_4_N_Y_N_Z u_illegal ();
  end
  if (OK_EACH && !OK_FP16_ROWS) begin : g_together_fp16_rows
    ILLEGAL_FP16_LANES_UP_TO_HALF_PATH_OR_32_N_Z u_illegal ();
  end
  if (OK_EACH && !OK_FP16_COLS) begin : g_together_fp16_cols
    ILLEGAL_FP16_LANES_N_Y_UP_TO_HALF_PATH u_illegal ();
  end
endgenerate

// ---- what the lower modules have
localparam LEGAL_N_Y = LEGAL ? N_Y : 4;
localparam LEGAL_N_Z = LEGAL ? N_Z : 4;
localparam LEGAL_AHB_W = LEGAL ? AHB_W : 32;
localparam LEGAL_AI_RAM_ROWS = LEGAL ? AI_RAM_ROWS : 32768;
localparam LEGAL_WBUF_ROWS = LEGAL ? WBUF_ROWS : 1024;
localparam LEGAL_WEIGHT_BITS = LEGAL ? WEIGHT_BITS : 16;
localparam LEGAL_PARAM_CHANS = LEGAL ? PARAM_CHANS : 2048;
localparam LEGAL_LOOK_AHEAD = LEGAL ? LOOK_AHEAD : 4;
localparam LEGAL_TILE_ROWS = LEGAL ? TILE_ROWS : 32;
localparam LEGAL_POST_SHARE = LEGAL ? POST_SHARE : 1;
localparam LEGAL_POOL_LANES = LEGAL ? POOL_LANES : 4;
localparam LEGAL_FP16_LANES = LEGAL ? FP16_LANES : 0;
localparam LEGAL_KEEP_WEIGHTS = LEGAL ? KEEP_WEIGHTS : 0;
localparam LEGAL_WEIGHT_AHEAD = LEGAL ? WEIGHT_AHEAD : 0;
localparam LEGAL_FLAT_MAPS = LEGAL ? FLAT_MAPS : 0;
localparam LEGAL_DILATION = LEGAL ? DILATION : 1;
localparam LEGAL_SUM_PLANES = LEGAL ? SUM_PLANES : 0;
localparam LEGAL_OUT32 = LEGAL ? OUT32 : 1;
localparam LEGAL_POST_TABLES = LEGAL ? POST_TABLES : 0;
localparam LEGAL_MUL_BITS = LEGAL ? MUL_BITS : 18;
localparam LEGAL_PATH = LEGAL ? PATH : 64;
localparam LEGAL_PIX_FIFO_DEPTH = LEGAL ? PIX_FIFO_DEPTH : 64;
localparam LEGAL_WGT_FIFO_DEPTH = LEGAL ? WGT_FIFO_DEPTH : 64;
localparam LEGAL_BIAS_FIFO_DEPTH = LEGAL ? BIAS_FIFO_DEPTH : 32;
localparam LEGAL_ROUNDING = LEGAL ? ROUNDING : 0;
localparam LEGAL_GATE = LEGAL ? GATE : 1;
localparam LEGAL_PERF = LEGAL ? PERF : 1;
localparam LEGAL_PRIVILEGED = LEGAL ? PRIVILEGED : 0;
