// SPDX-License-Identifier: Apache-2.0
//
// inference_cfg: the registers that describe inferences, AI_CNN_MODE to AI_RES_STRIDE, and the only place
// that latches them for a run.
//
// How it works: an accepted start copies list, tables, pixels, result and weight width into the registers
// of the current inference. After that the host may write the values of the next job. In a stream inf_next
// advances to the next inference (docs/patent.md section 2, step 009) in one cycle: its pixels are the
// prefetched ones, or else those at AI_NPIX_ADR; its result goes to AI_RES_ADR plus the stride, or to the
// address that the host wrote during the previous inference. A host write in the same cycle has priority
// and counts as one after the change. Once a prefetch has sampled AI_NPIX_ADR, a value written there is the
// address of the inference after the next one. AI_PIX_ADR follows the current inference until the host
// writes it; then it is kept for the next start.
// AI_CNN_MODE and AI_INF_LEFT act at once: they decide whether another inference follows.
// A result address or stride that is not a multiple of the bus word is refused while the device is
// occupied, so a start has to check them only once.
// Handshake: wr is a strobe; next carries its word address one cycle earlier; rdata is valid in the same
// cycle and zero for other addresses; accept, npix_take, inf_next are pulses.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module inference_cfg #(
    // data width of the bus to the storage
    parameter AHB_W = 32
) (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // register access; word address of the next cycle's access
    input  wire                   wr,
    input  wire [            9:0] next,
    input  wire [           31:0] wdata,
    output wire [           31:0] rdata,
    output reg                    hit,
    // weight width set by the host; AI_WATCHDOG, AI_SPARE_ROWS
    input  wire                   eight_bit,
    input  wire [           31:0] watchdog,
    input  wire [`SPARE_BITS-1:0] spare,
    // accepted start; soft reset; from the next cycle on, the run ends after the current inference
    input  wire                   accept,
    input  wire                   reset_now,
    input  wire                   stopping,
    // the device is occupied: an unaligned address is refused
    input  wire                   occupied,
    output wire                   refused,
    // the configuration permits a start
    output wire                   possible,
    // controller: a prefetch samples AI_NPIX_ADR; the next inference begins
    input  wire                   npix_take,
    input  wire                   inf_next,
    // the next inference's pixels are being read; number of the inference since the start, 0 at rest and
    // for layers of the host
    output reg                    npix_taken,
    output reg  [            7:0] number,
    // configuration of the current inference
    output wire [  `CFG_BITS-1:0] cfg
);

  localparam OW = $clog2(AHB_W / 8);

  // decoded address of the access
  reg at_mode, at_pix, at_npix, at_wgt, at_bias, at_list, at_len;
  reg at_res, at_left, at_pix_stride, at_res_stride, at_taken;
  wire [11:0] chosen = {
    next == `REG_AI_CNN_MODE,
    next == `REG_AI_PIX_ADR,
    next == `REG_AI_NPIX_ADR,
    next == `REG_AI_WGT_ADR,
    next == `REG_AI_BIAS_ADR,
    next == `REG_AI_LIST_ADR,
    next == `REG_AI_LIST_LEN,
    next == `REG_AI_RES_ADR,
    next == `REG_AI_INF_LEFT,
    next == `REG_AI_PIX_STRIDE,
    next == `REG_AI_RES_STRIDE,
    next == `REG_AI_TAKEN_ADR
  };
  always @(posedge clk) begin
    {at_mode, at_pix, at_npix, at_wgt, at_bias, at_list, at_len,
        at_res, at_left, at_pix_stride, at_res_stride, at_taken} <= chosen;
    hit <= chosen != 12'd0;
  end

  // values that the host reads
  reg  [ 1:0] mode;
  reg  [31:0] pix;
  reg  [31:0] npix;
  reg  [31:0] wgt;
  reg  [31:0] bias;
  reg  [31:0] list;
  reg  [ 9:0] list_len;
  reg         listed;  // list_len is not 0
  reg  [31:0] res;
  reg  [31:0] inf_left;
  reg         some_left;  // inf_left is not 0
  reg  [31:0] pix_stride;
  reg  [31:0] res_stride;
  // values of the current inference
  reg  [31:0] taken;
  reg  [31:0] run_wgt;
  reg  [31:0] run_bias;
  reg  [31:0] run_list;
  reg  [ 9:0] run_len;
  reg  [31:0] run_res;
  reg         run_eight_bit;
  // written by the host: AI_PIX_ADR since the start, AI_RES_ADR since the change of inference, AI_NPIX_ADR
  // since a prefetch sampled it
  reg         pix_own;
  reg         res_own;
  reg         npix_own;

  wire        more = mode == 2'd2 && some_left;
  reg         follows;  // more, and the run is not stopped
  assign cfg = {
    spare, watchdog, follows, run_eight_bit, run_len, run_res, run_list, run_bias, run_wgt, taken
  };

  // ---- writes
  wire unaligned = wdata[OW-1:0] != {OW{1'b0}};
  assign refused = wr && (at_res || at_res_stride) && unaligned && occupied;
  wire wr_mode = wr && at_mode;
  wire wr_pix = wr && at_pix;
  wire wr_npix = wr && at_npix;
  wire wr_res = wr && at_res && !refused;
  wire wr_left = wr && at_left;
  wire wr_res_stride = wr && at_res_stride && !refused;
  assign possible = mode != 2'd0 && listed && res[OW-1:0] == {OW{1'b0}} &&
      res_stride[OW-1:0] == {OW{1'b0}};

  // ---- the change of inference
  // each inference has at most one prefetch, so the address sampled by it is also that of the next
  // inference
  wire [31:0] next_pix = (npix_taken && !npix_take) ? taken : npix;
  wire [31:0] next_res = res_own ? res : res + res_stride;
  wire pix_moves = inf_next && !pix_own;
  wire npix_moves = inf_next && !npix_own;
  // no inference follows the one that begins
  wire last = inf_left[31:1] == 31'd0;
  wire fall_back = (inf_next && last) || (accept && mode == 2'd2 && !more);

  wire [1:0] mode_next = wr_mode ? wdata[1:0] : fall_back ? 2'd1 : mode;
  wire left_next = wr_left ? wdata != 32'd0 : some_left && !(inf_next && last);

  // registered: follows has long routes and is used in the cycle of the change
  always @(posedge clk) begin
    if (rst) follows <= 1'b0;
    else follows <= mode_next == 2'd2 && left_next && !stopping;
  end

  always @(posedge clk) begin
    if (rst) begin
      mode <= 2'd0;
      pix <= 32'd0;
      npix <= 32'd0;
      wgt <= 32'd0;
      bias <= 32'd0;
      list <= 32'd0;
      list_len <= 10'd0;
      listed <= 1'b0;
      res <= 32'd0;
      inf_left <= 32'd0;
      some_left <= 1'b0;
      pix_stride <= 32'd0;
      res_stride <= 32'd0;
    end else begin
      mode <= mode_next;
      if (wr_pix || pix_moves) pix <= wr_pix ? wdata : next_pix;
      if (wr_npix || npix_moves) npix <= wr_npix ? wdata : npix + pix_stride;
      wgt <= (wr && at_wgt) ? wdata : wgt;
      bias <= (wr && at_bias) ? wdata : bias;
      list <= (wr && at_list) ? wdata : list;
      list_len <= (wr && at_len) ? wdata[9:0] : list_len;
      listed <= (wr && at_len) ? wdata[9:0] != 10'd0 : listed;
      if (wr_res || inf_next) res <= wr_res ? wdata : next_res;
      if (wr_left || (inf_next && some_left)) inf_left <= wr_left ? wdata : inf_left - 32'd1;
      some_left  <= left_next;
      pix_stride <= (wr && at_pix_stride) ? wdata : pix_stride;
      res_stride <= wr_res_stride ? wdata : res_stride;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      taken <= 32'd0;
      run_wgt <= 32'd0;
      run_bias <= 32'd0;
      run_list <= 32'd0;
      run_len <= 10'd0;
      run_res <= 32'd0;
      run_eight_bit <= 1'b0;
      npix_taken <= 1'b0;
      pix_own <= 1'b0;
      res_own <= 1'b0;
      npix_own <= 1'b0;
      number <= 8'd0;
    end else begin
      if (accept || npix_take || inf_next) taken <= (accept && !pix_moves) ? pix : next_pix;
      run_wgt  <= accept ? wgt : run_wgt;
      run_bias <= accept ? bias : run_bias;
      run_list <= accept ? list : run_list;
      run_len  <= accept ? list_len : run_len;
      if (accept || inf_next) run_res <= inf_next ? next_res : res;
      run_eight_bit <= accept ? eight_bit : run_eight_bit;
      npix_taken <= (accept || reset_now || inf_next) ? 1'b0 : npix_take ? 1'b1 : npix_taken && occupied;
      pix_own <= wr_pix ? 1'b1 : accept ? 1'b0 : pix_own;
      res_own <= wr_res ? 1'b1 : (accept || inf_next) ? 1'b0 : res_own;
      npix_own <= (accept || reset_now || inf_next) ? 1'b0 :
          (wr_npix && (npix_take || npix_taken)) ? 1'b1 : npix_own;
      number <= (accept || !occupied) ? 8'd0 : inf_next ? number + 8'd1 : number;
    end
  end

  // OR of all registers, at most one of them selected
  assign rdata = {30'd0, mode & {2{at_mode}}} | (pix & {32{at_pix}}) | (npix & {32{at_npix}}) |
      (wgt & {32{at_wgt}}) | (bias & {32{at_bias}}) | (list & {32{at_list}}) |
      {22'd0, list_len & {10{at_len}}} | (res & {32{at_res}}) | (inf_left & {32{at_left}}) |
      (pix_stride & {32{at_pix_stride}}) | (res_stride & {32{at_res_stride}}) | (taken & {32{at_taken}});

`ifdef FORMAL_inference_cfg
  `include "inference_cfg_props.vh"
`endif

endmodule

`resetall
