// SPDX-License-Identifier: Apache-2.0
//
// ai_cfg: AI_CFG, the registers of an inference (docs/patent.md section 3), offsets 0x100..0x14C,
// 0x1F8, 0x1FC.
//
// Start: a write of 1 to AI_CTRL[0] is refused while the device is busy (START_BUSY), and with an
// impossible configuration (BAD_CONFIG: mode 0, list length 0, AI_RES_ADR - in mode 2 with further
// inferences also AI_RES_STRIDE - not a multiple of the bus word). An accepted start clears
// AI_CNN_DONE, AI_INT_STATUS and the error registers. Mode 2 without further inferences is a
// single inference: AI_CNN_MODE becomes 1 at the start, as it does when the last one of a stream
// begins. inf_next (docs/patent.md section 2, step 009) moves on to the next inference; a value
// that the host writes in the same cycle wins. Once the core has taken AI_NPIX_ADR for a prefetch
// (npix_taken), that address becomes AI_PIX_ADR whatever the host writes; what it writes then is
// the address of the inference after the next one and stays as it is when AI_CFG moves on.
// Errors: the first one is kept in AI_ERR_* until AI_ERR_CODE is written or the next start.
// Handshake: wr strobes with addr, rdata in the same cycle; all outputs to the core are registered
// levels and one-cycle pulses.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module ai_cfg #(
    // shape of the MAC array, for AI_CONFIG
    parameter N_Y   = 4,
    parameter N_Z   = 4,
    // data width of the bus to the storage
    parameter AHB_W = 32
) (
    // clock, synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // register access
    input  wire                    wr,
    input  wire [            11:0] addr,
    input  wire [            31:0] wdata,
    output reg  [            31:0] rdata,
    output wire                    hit,
    // configuration to the controller; eight_bit is put in elsewhere
    input  wire                    eight_bit_mode,
    output wire [   `CFG_BITS-1:0] cfg,
    // commands to the controller; an error is acknowledged here
    output reg                     start_pulse,
    output reg                     soft_reset_pulse,
    output reg                     stop_pulse,
    output wire                    err_ack,
    // state and events of the controller, its error; AI_STATUS without the error bit
    input  wire [`STATUS_BITS-1:0] state,
    input  wire [ `EVENT_BITS-1:0] events,
    input  wire [   `ERR_BITS-1:0] err,
    input  wire [            31:0] status,
    // errors of the KPU registers
    input  wire                    overrun,
    input  wire                    underrun,
    // an error is recorded, interrupt
    output wire                    err_any,
    output wire                    irq
);

  localparam N_X = 9;
  localparam OW = $clog2(AHB_W / 8);
  localparam [31:0] MAGIC = 32'h5550_4B4F;
  localparam [31:0] CONFIG = {OW[7:0], N_Z[7:0], N_Y[7:0], N_X[7:0]};

  wire [9:0] word = addr[11:2];

  assign hit = (word >= `REG_AI_CNN_MODE && word <= `REG_AI_TAKEN_ADR) || (word == `REG_AI_ID) || (word == `REG_AI_CONFIG);

  reg  [ 1:0] mode;
  reg         done;
  reg  [31:0] pix;
  reg  [31:0] npix;
  // what the controller took last, of AI_PIX_ADR or of AI_NPIX_ADR
  reg  [31:0] taken;
  // AI_NPIX_ADR was written after it had been taken
  reg         later;
  reg  [31:0] wgt;
  reg  [31:0] bias;
  reg  [31:0] list;
  reg  [ 9:0] list_len;
  reg  [31:0] res;
  reg  [31:0] inf_left;
  reg  [31:0] pix_stride;
  reg  [31:0] res_stride;
  reg  [ 1:0] int_status;
  reg  [ 1:0] int_mask;
  reg  [ 7:0] kept_code;
  reg  [15:0] kept_layer;
  reg  [31:0] kept_addr;

  wire        more = (mode == 2'd2) && (inf_left != 32'd0);
  assign cfg = {eight_bit_mode, more, list_len, res, list, bias, wgt, taken};
  assign err_ack = wr && (word == `REG_AI_ERR_CODE);

  wire st_busy = state[`STATUS_BUSY];
  wire npix_taken = state[`STATUS_NPIX_TAKEN];
  wire inf_next = events[`EVENT_INF_NEXT];
  wire npix_take = events[`EVENT_NPIX_TAKE];
  wire ev_inf_done = events[`EVENT_INF_DONE];
  wire ev_err = events[`EVENT_ERROR];
  assign err_any = (kept_code != 8'd0);
  assign irq = ((int_status & ~int_mask) != 2'd0);

  // -------------------------------------------------------------------------------------------
  // start, soft reset, stop
  // -------------------------------------------------------------------------------------------
  wire ctrl = wr && (word == `REG_AI_CTRL);
  wire reset_now = ctrl && wdata[1];
  wire start_now = ctrl && wdata[0] && !wdata[1];
  // a start that the core has not seen yet counts as busy
  wire occupied = st_busy || start_pulse;
  wire res_bad = (res[OW-1:0] != {OW{1'b0}});
  wire stride_bad = more && (res_stride[OW-1:0] != {OW{1'b0}});
  wire bad = (mode == 2'd0) || (list_len == 10'd0) || res_bad || stride_bad;
  wire accept = start_now && !occupied && !bad;

  always @(posedge clk) begin
    if (rst) begin
      start_pulse <= 1'b0;
      soft_reset_pulse <= 1'b0;
      stop_pulse <= 1'b0;
    end else begin
      start_pulse <= accept;
      soft_reset_pulse <= reset_now;
      stop_pulse <= ctrl && wdata[2] && !wdata[1];
    end
  end

  // -------------------------------------------------------------------------------------------
  // configuration
  // -------------------------------------------------------------------------------------------
  // the inference that starts with inf_next is the last one
  wire last_inf = (inf_left <= 32'd1);
  wire fall_back = (inf_next && last_inf) || (accept && mode == 2'd2 && !more);

  always @(posedge clk) begin
    if (rst) begin
      mode <= 2'd0;
      pix <= 32'd0;
      npix <= 32'd0;
      taken <= 32'd0;
      later <= 1'b0;
      wgt <= 32'd0;
      bias <= 32'd0;
      list <= 32'd0;
      list_len <= 10'd0;
      res <= 32'd0;
      inf_left <= 32'd0;
      pix_stride <= 32'd0;
      res_stride <= 32'd0;
      int_mask <= 2'b11;
    end else begin
      mode <= (wr && word == `REG_AI_CNN_MODE) ? wdata[1:0] : fall_back ? 2'd1 : mode;
      pix <= (wr && word == `REG_AI_PIX_ADR) ? wdata : inf_next ? (npix_taken ? taken : npix) : pix;
      npix <= (wr && word == `REG_AI_NPIX_ADR) ? wdata :
                  (inf_next && !last_inf && !later) ? npix + pix_stride : npix;
      taken <= events[`EVENT_PIX_TAKE] ? pix : npix_take ? npix : taken;
      later <= inf_next || accept || reset_now ? 1'b0 :
                   (wr && word == `REG_AI_NPIX_ADR && (npix_take || npix_taken)) ? 1'b1 : later;
      wgt <= (wr && word == `REG_AI_WGT_ADR) ? wdata : wgt;
      bias <= (wr && word == `REG_AI_BIAS_ADR) ? wdata : bias;
      list <= (wr && word == `REG_AI_LIST_ADR) ? wdata : list;
      list_len <= (wr && word == `REG_AI_LIST_LEN) ? wdata[9:0] : list_len;
      res <= (wr && word == `REG_AI_RES_ADR) ? wdata : inf_next ? res + res_stride : res;
      inf_left <= (wr && word == `REG_AI_INF_LEFT) ? wdata :
                      (inf_next && inf_left != 32'd0) ? inf_left - 32'd1 : inf_left;
      pix_stride <= (wr && word == `REG_AI_PIX_STRIDE) ? wdata : pix_stride;
      res_stride <= (wr && word == `REG_AI_RES_STRIDE) ? wdata : res_stride;
      int_mask <= (wr && word == `REG_AI_INT_MASK) ? wdata[1:0] : int_mask;
    end
  end

  // -------------------------------------------------------------------------------------------
  // done, errors, interrupts
  // -------------------------------------------------------------------------------------------
  reg        fault;
  reg  [7:0] fault_code;
  wire       err_clear = err_ack || accept || reset_now;
  wire [1:0] int_clear = (wr && word == `REG_AI_INT_STATUS) ? wdata[1:0] : 2'd0;

  always @* begin
    fault = 1'b1;
    if (ev_err) begin
      fault_code = err[`ERR_CODE];
    end else if (overrun) begin
      fault_code = `ERROR_FIFO_OVERRUN;
    end else if (underrun) begin
      fault_code = `ERROR_FIFO_UNDERRUN;
    end else if (start_now && occupied) begin
      fault_code = `ERROR_START_BUSY;
    end else if (start_now && bad) begin
      fault_code = `ERROR_BAD_CONFIG;
    end else begin
      fault = 1'b0;
      fault_code = 8'd0;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      done <= 1'b0;
      int_status <= 2'd0;
      kept_code <= 8'd0;
      kept_layer <= 16'd0;
      kept_addr <= 32'd0;
    end else begin
      done <= ev_inf_done || (done && !accept && !reset_now && !(wr && word == `REG_AI_CNN_DONE && wdata[0]));
      int_status[0] <= ev_inf_done || (int_status[0] && !int_clear[0] && !accept && !reset_now);
      int_status[1] <= fault || (int_status[1] && !int_clear[1] && !err_clear);
      if (fault && (err_clear || !err_any)) begin
        kept_code  <= fault_code;
        kept_layer <= ev_err ? err[`ERR_LAYER] : 16'd0;
        kept_addr  <= ev_err ? err[`ERR_ADDR] : 32'd0;
      end else if (err_clear) begin
        kept_code  <= 8'd0;
        kept_layer <= 16'd0;
        kept_addr  <= 32'd0;
      end
    end
  end

  always @* begin
    case (word)
      `REG_AI_CNN_MODE:   rdata = {30'd0, mode};
      `REG_AI_CNN_DONE:   rdata = {31'd0, done};
      `REG_AI_PIX_ADR:    rdata = pix;
      `REG_AI_NPIX_ADR:   rdata = npix;
      `REG_AI_WGT_ADR:    rdata = wgt;
      `REG_AI_BIAS_ADR:   rdata = bias;
      `REG_AI_LIST_ADR:   rdata = list;
      `REG_AI_LIST_LEN:   rdata = {22'd0, list_len};
      `REG_AI_RES_ADR:    rdata = res;
      `REG_AI_INF_LEFT:   rdata = inf_left;
      `REG_AI_PIX_STRIDE: rdata = pix_stride;
      `REG_AI_RES_STRIDE: rdata = res_stride;
      `REG_AI_STATUS:     rdata = {status[31:2], err_any, status[0]};
      `REG_AI_INT_STATUS: rdata = {30'd0, int_status};
      `REG_AI_INT_MASK:   rdata = {30'd0, int_mask};
      `REG_AI_ERR_CODE:   rdata = {24'd0, kept_code};
      `REG_AI_ERR_INFO:   rdata = {16'd0, kept_layer};
      `REG_AI_ERR_ADDR:   rdata = kept_addr;
      `REG_AI_TAKEN_ADR:  rdata = taken;
      `REG_AI_ID:         rdata = MAGIC;
      `REG_AI_CONFIG:     rdata = CONFIG;
      default:            rdata = 32'd0;
    endcase
  end

  // all registers are words; the error bit of AI_STATUS is put in here
  wire unused = &{1'b0, addr[1:0], status[1], state, events};

endmodule

`resetall
