// SPDX-License-Identifier: Apache-2.0
//
// layer_flags: the flags of a layer argument, and the rules by which they exclude each other.
//
// How it works: word 0 is stored in registers. Kernel, pool and the window of a pooling task are checked
// here too, since the flags decide what is allowed. The first check that fails gives the code: flags,
// kernel, pool. layer_moves holds the maps that move between the storage and the AI RAM, pool_check the
// window.
// Handshake: load strobes with word 0, load_6 and load_8 with theirs; bad is valid after the last word.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module layer_flags #(
    // data width of the bus
    parameter AHB_W = 32,
    // 1: there is an engine for pooling tasks
    parameter POOLS = 1,
    // 1: there are lanes for products of float16 matrices
    parameter FP16 = 0,
    // 1: sums may be output as 32 bits
    parameter OUT32 = 1,
    // 1: weights may be kept in the AI RAM
    parameter KEEP_WEIGHTS = 0,
    // largest dilation; 1: none
    parameter DILATION = 1
) (
    // clock; word 0 of a layer argument
    input  wire                   clk,
    input  wire                   load,
    input  wire [           63:0] w_data,
    // fields of a later word
    input  wire [            2:0] kernel_type,
    input  wire [            3:0] pool_type,
    // word 8; the map goes to the host, last and first layer of an inference; maps that move between the AI
    // RAM and the storage; a store address is misaligned
    input  wire                   load_8,
    input  wire [            2:0] ends,
    output wire [`MOVES_BITS-1:0] moves,
    output wire                   bad_store,
    // word 6: a pooling task; its window, in one direction (pool_check)
    input  wire                   load_6,
    output wire                   pools,
    output wire [`PTASK_BITS-1:0] window,
    input  wire                   side,
    output wire [            3:0] pad,
    output wire [            3:0] kernel_m1,
    output wire [            4:0] stride,
    // flags; fp16: product of float16 matrices, with float32 results
    output reg                    int_en,
    output reg                    dw,
    output reg                    sin,
    output reg                    sout,
    output reg                    fc,
    output reg                    ew,
    output reg  [            1:0] ewop,
    output reg                    one,
    output reg                    in_xor,
    output reg                    w_xor,
    output wire                   out32,
    output wire [            1:0] fp16,
    output wire                   kept,
    // pixels between the taps of a window, less one
    output wire [            2:0] dilation,
    // words 8 and 7 give the rows between the channel groups of the output, of the input
    output reg  [            1:0] apart,
    // error code, 0: none
    output reg  [            7:0] bad
);

  reg fp16_q, fp32_q, kept_q, out32_q;
  reg [2:0] dilation_q;
  always @(posedge clk) begin
    if (load) begin
      {fp16_q, fp32_q} <= {w_data[`ARG_FP16], w_data[`ARG_FP32]};
      kept_q           <= w_data[`ARG_KEPT_WEIGHTS];
      dilation_q       <= w_data[`ARG_DILATION_M1];
      int_en           <= w_data[`ARG_INT_EN];
      dw               <= w_data[`ARG_DEPTH_WISE_LAYER];
      sin              <= w_data[`ARG_SIGNED_IN];
      sout             <= w_data[`ARG_SIGNED_OUT];
      fc               <= w_data[`ARG_FC];
      ew               <= w_data[`ARG_ELEMENTWISE];
      ewop             <= w_data[`ARG_EW_OP];
      one              <= w_data[`ARG_EW_ONE];
      in_xor           <= w_data[`ARG_IN_XOR];
      w_xor            <= w_data[`ARG_W_XOR];
      out32_q          <= w_data[`ARG_OUT32];
      apart            <= {w_data[`ARG_OUT_STRIDED], w_data[`ARG_IN_STRIDED]};
    end
  end

  wire bad_moves;
  layer_moves #(
      .AHB_W(AHB_W)
  ) u_moves (
      .clk      (clk),
      .word_0   (load),
      .word_8   (load_8),
      .w_data   (w_data),
      .first    (ends[0]),
      .last     (ends[1]),
      .send     (ends[2]),
      .moves    (moves),
      .bad_flags(bad_moves),
      .bad_place(bad_store)
  );

  wire bad_window;
  pool_check u_pool (
      .clk       (clk),
      .take      (load_6),
      .word      (w_data),
      .pools     (pools),
      .window    (window),
      .bad_window(bad_window),
      .side      (side),
      .pad       (pad),
      .kernel_m1 (kernel_m1),
      .stride    (stride)
  );

  wire taps = kernel_type == 3'd1;
  wire bad_task, bad_fp16;
  generate
    if (FP16 != 0) begin : g_fp16
      assign fp16 = {fp32_q && fp16_q, fp16_q};
      assign bad_fp16 = fp16_q && (dw || fc || ew || in_xor || w_xor || out32 || pools);
    end else begin : g_no_fp16
      assign fp16 = 2'b00;
      assign bad_fp16 = fp16_q;
      wire unused_fp32 = &{1'b0, fp32_q};
    end
    if (POOLS != 0) begin : g_pools
      assign bad_task = pools && (dw || fc || in_xor || w_xor || out32);
    end else begin : g_none
      assign bad_task = pools;
    end
  endgenerate
  // without support the bit is a constant, so that their logic is removed from the device
  assign out32 = (OUT32 != 0) && out32_q;
  wire bad_out32 = (OUT32 == 0) && out32_q;
  // a pooling task has no weights
  assign kept = (KEEP_WEIGHTS != 0) && kept_q;
  wire bad_kept = kept_q && (KEEP_WEIGHTS == 0 || pools);
  assign dilation = (DILATION > 1) ? dilation_q : 3'd0;
  localparam integer BEYOND_I = DILATION;
  localparam [3:0] BEYOND = BEYOND_I[3:0];
  // fc and float16 have no 3x3 kernel, but the flags come first
  wire bad_dilation = dilation_q != 3'd0 &&
      ({1'b0, dilation_q} >= BEYOND || !taps || pool_type > 4'd4 || fc || ew || pools || fp16_q);
  wire bad_kinds = (dw && fc) || (ew && !dw) || (out32 && (dw || fc));
  wire no_pool = fc || out32 || pools || fp16[0];
  // maps that are loaded from the storage or stored there have contiguous channel groups
  wire load_any = moves[`MOVES_LOAD] || ends[0];
  wire store_any = moves[`MOVES_STORE] || ends[1] || ends[2];
  wire bad_apart = (apart[0] && load_any) || (apart[1] && store_any) ||
      (apart != 2'b00 && (fc || out32 || fp16_q));
  always @* begin
    if (bad_kinds || bad_task || bad_fp16 || bad_out32 || bad_moves || bad_kept || bad_apart ||
        bad_dilation)
      bad = `ERROR_BAD_FLAGS;
    else if (kernel_type > 3'd1 || ((fc || pools || fp16[0]) && taps) || (ew && !taps))
      bad = `ERROR_BAD_KERNEL;
    else if (pool_type > 4'd9 || (no_pool && pool_type != 4'd0) || (pools && bad_window))
      bad = `ERROR_BAD_POOL;
    else bad = 8'd0;
  end

  wire unused = &{1'b0, w_data};

endmodule

`resetall
