// SPDX-License-Identifier: Apache-2.0
//
// ai_cfg: AI_CFG, the registers of task lists and inferences (docs/patent.md section 3), offsets
// 0x100..0x168, 0x1F8, 0x1FC.
//
// How it works: command accepts or refuses starts and resets, inference_cfg holds the configuration and
// latches it for a run, guard_regs holds windows, watchdog and spare rows. This module holds done, the interrupts, and
// the first error since the last acknowledgement. The error is held until AI_ERR_CODE is written, the next
// start is accepted, or a soft reset. A set has priority over a clear in the same cycle. Events of the
// controller count only while no reset is pending, so events before a reset leave no trace.
// Handshake: wr is a strobe; next carries its word address one cycle earlier; rdata is valid in the same
// cycle and zero for other addresses. All outputs to the core are registered levels and one-cycle pulses.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module ai_cfg #(
    // shape of the MAC array, for AI_CONFIG
    parameter N_Y = 4,
    parameter N_Z = 4,
    // data width of the bus to the storage
    parameter AHB_W = 32,
    // rows of the AI RAM for weights that wait; 0: they do not
    parameter SPARE_MOST = 0
) (
    // clock, synchronous reset
    input  wire                    clk,
    input  wire                    rst,
    // register access; word address of the next cycle's access; the access is a write to AI_CTRL
    input  wire                    wr,
    input  wire [             9:0] next,
    input  wire                    command,
    input  wire [            31:0] wdata,
    output wire [            31:0] rdata,
    output wire                    hit,
    // weight width set by the host; the layer FIFO holds words
    input  wire                    eight_bit_mode,
    input  wire                    words,
    // configuration and commands to the controller, windows to the DMAC
    output wire [   `CFG_BITS-1:0] cfg,
    output wire [  `HOST_BITS-1:0] host,
    output wire [ `GUARD_BITS-1:0] guard,
    // a soft reset is written; it is pending; the words in the layer FIFO are discarded
    output wire                    reset_now,
    output wire                    muted,
    output wire                    drop_words,
    // state and events of the controller, its error; AI_STATUS without the bits of this module
    input  wire [`STATUS_BITS-1:0] state,
    input  wire [ `EVENT_BITS-1:0] events,
    input  wire [   `ERR_BITS-1:0] err,
    input  wire [            31:0] status,
    // errors of the KPU registers
    input  wire                    overrun,
    input  wire                    underrun,
    // interrupt
    output wire                    irq
);

  localparam N_X = 9;
  localparam OW = $clog2(AHB_W / 8);
  localparam [31:0] MAGIC = 32'h5550_4B4F;
  localparam [31:0] CONFIG = {OW[7:0], N_Z[7:0], N_Y[7:0], N_X[7:0]};

  wire accept, start, soft_reset, pending, occupied, at_work, stopping, start_busy, bad_config, possible;
  wire inference_hit, guard_hit, refused, locked, misplaced, npix_taken;
  wire [7:0] number;
  wire [31:0] inference_rdata, guard_rdata, watchdog;
  wire [`SPARE_BITS-1:0] spare;

  // decoded address of the access
  reg at_done, at_status, at_int_status, at_int_mask, at_err_code, at_err_info;
  reg at_err_addr, at_id, at_config;
  reg own_hit;
  wire [8:0] chosen = {
    next == `REG_AI_CNN_DONE,
    next == `REG_AI_STATUS,
    next == `REG_AI_INT_STATUS,
    next == `REG_AI_INT_MASK,
    next == `REG_AI_ERR_CODE,
    next == `REG_AI_ERR_INFO,
    next == `REG_AI_ERR_ADDR,
    next == `REG_AI_ID,
    next == `REG_AI_CONFIG
  };
  always @(posedge clk) begin
    {at_done, at_status, at_int_status, at_int_mask, at_err_code, at_err_info,
        at_err_addr, at_id, at_config} <= chosen;
    own_hit <= chosen != 9'd0 || next == `REG_AI_CTRL;
  end
  assign hit = own_hit || inference_hit || guard_hit;

  // ---- events: muted by a reset; inf_next and npix_take still count in the cycle in which it is written
  wire heard = !reset_now && !muted;
  wire inf_next = events[`EVENT_INF_NEXT] && !muted;
  wire npix_take = events[`EVENT_NPIX_TAKE] && !muted;
  wire inf_done = events[`EVENT_INF_DONE] && heard;
  wire error = events[`EVENT_ERROR] && heard;

  wire ack = wr && at_err_code;
  assign host[`HOST_START] = start;
  assign host[`HOST_SOFT_RESET] = soft_reset;
  assign host[`HOST_ACK] = ack;
  assign host[`HOST_PENDING] = pending;

  command u_command (
      .clk(clk),
      .rst(rst),
      .wr(command),
      .wdata(wdata[2:0]),
      .possible(possible),
      .words(words),
      .hold(state[`STATUS_HOLD]),
      .work(state[`STATUS_BUSY]),
      .flushing(state[`STATUS_FLUSHING]),
      .accept(accept),
      .reset_now(reset_now),
      .drop_words(drop_words),
      .start_busy(start_busy),
      .bad_config(bad_config),
      .start(start),
      .soft_reset(soft_reset),
      .pending(pending),
      .muted(muted),
      .occupied(occupied),
      .at_work(at_work),
      .stopping(stopping)
  );

  inference_cfg #(
      .AHB_W(AHB_W)
  ) u_inference (
      .clk(clk),
      .rst(rst),
      .wr(wr),
      .next(next),
      .wdata(wdata),
      .rdata(inference_rdata),
      .hit(inference_hit),
      .eight_bit(eight_bit_mode),
      .watchdog(watchdog),
      .spare(spare),
      .accept(accept),
      .reset_now(reset_now),
      .stopping(stopping),
      .occupied(at_work),
      .refused(refused),
      .possible(possible),
      .npix_take(npix_take),
      .inf_next(inf_next),
      .npix_taken(npix_taken),
      .number(number),
      .cfg(cfg)
  );

  guard_regs #(
      .SPARE_MOST(SPARE_MOST)
  ) u_guard (
      .clk(clk),
      .rst(rst),
      .wr(wr),
      .next(next),
      .wdata(wdata),
      .rdata(guard_rdata),
      .hit(guard_hit),
      .locked(locked),
      .misplaced(misplaced),
      .guard(guard),
      .watchdog(watchdog),
      .spare(spare)
  );

  // ---- done, errors, interrupts
  reg done;
  reg [1:0] int_status;
  reg [1:0] int_mask;
  reg [7:0] kept_code;
  reg [31:0] kept_info;
  reg [31:0] kept_addr;
  reg fault;
  reg [7:0] fault_code;
  wire fresh = accept || reset_now;
  wire err_clear = ack || fresh;
  wire [1:0] int_clear = (wr && at_int_status) ? wdata[1:0] : 2'd0;
  wire err_any = kept_code != 8'd0;
  wire [31:0] info = {number, 1'b0, err[`ERR_WAITS], 1'b0, err[`ERR_STREAM], 6'd0, err[`ERR_LAYER]};

  assign irq = (int_status & ~int_mask) != 2'd0;

  always @* begin
    fault = 1'b1;
    if (error) fault_code = err[`ERR_CODE];
    else if (overrun) fault_code = `ERROR_FIFO_OVERRUN;
    else if (underrun) fault_code = `ERROR_FIFO_UNDERRUN;
    else if (start_busy) fault_code = `ERROR_START_BUSY;
    else if (bad_config || refused || misplaced) fault_code = `ERROR_BAD_CONFIG;
    else if (locked) fault_code = `ERROR_LOCKED;
    else begin
      fault = 1'b0;
      fault_code = 8'd0;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      done <= 1'b0;
      int_status <= 2'd0;
      int_mask <= 2'b11;
      kept_code <= 8'd0;
      kept_info <= 32'd0;
      kept_addr <= 32'd0;
    end else begin
      done <= inf_done || (done && !fresh && !(wr && at_done && wdata[0]));
      int_status[0] <= inf_done || (int_status[0] && !int_clear[0] && !fresh);
      int_status[1] <= fault || (int_status[1] && !int_clear[1] && !err_clear);
      int_mask <= (wr && at_int_mask) ? wdata[1:0] : int_mask;
      if (fault && (err_clear || !err_any)) begin
        kept_code <= fault_code;
        kept_info <= error ? info : 32'd0;
        kept_addr <= error ? err[`ERR_ADDR] : 32'd0;
      end else if (err_clear) begin
        kept_code <= 8'd0;
        kept_info <= 32'd0;
        kept_addr <= 32'd0;
      end
    end
  end

  // ---- reads
  wire [31:0] seen_status = {status[31:7], npix_taken && occupied, status[5:2], err_any, occupied};
  // OR of all registers, at most one of them selected
  assign rdata = {31'd0, done & at_done} | (seen_status & {32{at_status}}) |
      {30'd0, int_status & {2{at_int_status}}} | {30'd0, int_mask & {2{at_int_mask}}} |
      {24'd0, kept_code & {8{at_err_code}}} | (kept_info & {32{at_err_info}}) |
      (kept_addr & {32{at_err_addr}}) | (MAGIC & {32{at_id}}) | (CONFIG & {32{at_config}}) |
      inference_rdata | guard_rdata;

  wire unused = &{1'b0, status[6], status[1:0], state, events};

endmodule

`resetall
