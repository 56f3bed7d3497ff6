// SPDX-License-Identifier: Apache-2.0
//
// kpu_regs: the register block of the K210 KPU (docs/kpu.md section 3), offsets 0x00..0x44.
//
// 64-bit registers, each accessed as two 32-bit words. A write to the high word of layer_argument_fifo
// pushes the 64-bit word made of it and the low word written before; a read of the high word of
// fifo_data_out pops. Where public sources are silent, this block works as follows:
// * the layer FIFO holds 16 layers. A layer is admitted as a whole: without room for 12 words when its first
//   word arrives, all its 12 words are dropped, and overrun pulses once;
// * eight_bit_mode is stored with each word, so a layer has the width in effect when it was pushed;
// * thresholds count complete layers in the FIFO (a layer counts until its last word is popped).
//   almost_empty: held <= empty threshold, almost_full: held >= full threshold. Each is raised when a change
//   of the number of layers leaves the FIFO in that state and stays set while the state lasts;
//   interrupt_clear silences it until the next change. So "clear, then push" never loses an interrupt, an
//   idle device with an empty FIFO does not storm, and a driver that pushes with interrupts masked and unmasks
//   them afterwards receives no stale one;
// * fifo_ctrl: 0 empties a FIFO for as long as it is 0: bit 1 the result FIFO behind fifo_data_out, bit 2
//   the layer FIFO; the other bits are stored and have no effect.
// Handshake: wr and rd are strobes; next carries their word address one cycle earlier; rdata is valid in
// the same cycle and zero for other addresses; arg_* and result_* are valid/ready.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_regs.vh"

module kpu_regs (
    // clock, synchronous reset
    input  wire        clk,
    input  wire        rst,
    // the words in the layer FIFO are discarded; a soft reset is written (clears the interrupts); it is
    // pending (earlier work has no effect)
    input  wire        drop_words,
    input  wire        reset_now,
    input  wire        muted,
    // register access; word address of the next cycle's access
    input  wire        wr,
    input  wire        rd,
    input  wire [ 9:0] next,
    input  wire [31:0] wdata,
    output wire [31:0] rdata,
    output reg         hit,
    // layer argument words to the core, their weight width; the FIFO was emptied in the previous cycle, so
    // none is in flight; it holds words
    output wire        arg_valid,
    input  wire        arg_ready,
    output wire [63:0] arg_data,
    output wire        arg_eight_bit,
    output reg         arg_flush,
    output reg         words,
    // result words from the core
    input  wire        result_valid,
    output wire        result_ready,
    input  wire [63:0] result_data,
    // weight width, event, fill levels (layers, result words), interrupt
    output wire        eight_bit_mode,
    input  wire        ev_calc_done,
    output wire [ 4:0] layers_held,
    output wire        layers_full,
    output wire [ 4:0] results_held,
    output wire        irq,
    // errors: layer pushed without room, result read from the empty FIFO
    output wire        overrun,
    output wire        underrun
);

  localparam LAYERS = 16;
  localparam WORDS = 12;
  localparam DEPTH = LAYERS * WORDS;
  localparam COUNT_W = $clog2(DEPTH + 1);
  localparam ADMIT_I = DEPTH - WORDS;
  localparam [COUNT_W-1:0] ADMIT = ADMIT_I[COUNT_W-1:0];
  localparam [3:0] LAST_WORD = 4'd11;

  localparam [9:0] END = `REG_EIGHT_BIT_MODE_HI + 10'd1;

  // decoded address of the access
  reg at_layer, at_layer_hi, at_status, at_raw, at_mask, at_clear;
  reg at_threshold, at_result, at_result_hi, at_ctrl, at_eight_bit;
  always @(posedge clk) begin
    hit          <= next < END;
    at_layer     <= next == `REG_LAYER_ARGUMENT_FIFO;
    at_layer_hi  <= next == `REG_LAYER_ARGUMENT_FIFO_HI;
    at_status    <= next == `REG_INTERRUPT_STATUS;
    at_raw       <= next == `REG_INTERRUPT_RAW;
    at_mask      <= next == `REG_INTERRUPT_MASK;
    at_clear     <= next == `REG_INTERRUPT_CLEAR;
    at_threshold <= next == `REG_FIFO_THRESHOLD;
    at_result    <= next == `REG_FIFO_DATA_OUT;
    at_result_hi <= next == `REG_FIFO_DATA_OUT_HI;
    at_ctrl      <= next == `REG_FIFO_CTRL;
    at_eight_bit <= next == `REG_EIGHT_BIT_MODE;
  end

  reg [31:0] low;
  reg [ 2:0] mask;
  reg [ 7:0] threshold;
  reg [ 4:0] fifo_ctrl;
  reg        eight_bit;

  assign eight_bit_mode = eight_bit;

  always @(posedge clk) begin
    if (rst) begin
      low <= 32'd0;
      mask <= 3'b111;
      threshold <= 8'h1C;
      fifo_ctrl <= 5'h1F;
      eight_bit <= 1'b0;
    end else begin
      low       <= (wr && at_layer) ? wdata : low;
      mask      <= (wr && at_mask) ? wdata[2:0] : mask;
      threshold <= (wr && at_threshold) ? wdata[7:0] : threshold;
      fifo_ctrl <= (wr && at_ctrl) ? wdata[4:0] : fifo_ctrl;
      eight_bit <= (wr && at_eight_bit) ? wdata[0] : eight_bit;
    end
  end

  // -------------------------------------------------------------------------------------------
  // layer FIFO
  // -------------------------------------------------------------------------------------------
  reg  [        3:0] in_word;
  reg                dropping;
  reg  [        3:0] out_word;
  reg  [        4:0] held;
  wire [COUNT_W-1:0] arg_count;
  wire               arg_in_ready_unused;

  wire               empties = drop_words || !fifo_ctrl[2];
  always @(posedge clk) arg_flush <= !rst && empties;

  wire push = wr && at_layer_hi && fifo_ctrl[2];
  wire first = (in_word == 4'd0);
  wire room = (arg_count <= ADMIT);
  wire drop = first ? !room : dropping;
  wire layer_in = push && !drop && (in_word == LAST_WORD);
  wire pop = arg_valid && arg_ready;
  wire layer_out = pop && (out_word == LAST_WORD);

  assign overrun = push && first && !room;
  assign layers_held = held;
  assign layers_full = !room;

  fifo_ram #(
      .WIDTH(65),
      .DEPTH(DEPTH)
  ) u_layers (
      .clk      (clk),
      .rst      (rst),
      .flush    (empties),
      .in_valid (push && !drop),
      .in_ready (arg_in_ready_unused),
      .in_data  ({eight_bit, wdata, low}),
      .out_valid(arg_valid),
      .out_ready(arg_ready),
      .out_data ({arg_eight_bit, arg_data}),
      .count    (arg_count)
  );

  always @(posedge clk) begin
    if (rst || empties) begin
      words <= 1'b0;
      in_word <= 4'd0;
      dropping <= 1'b0;
      out_word <= 4'd0;
      held <= 5'd0;
    end else begin
      if (push) begin
        in_word  <= (in_word == LAST_WORD) ? 4'd0 : in_word + 4'd1;
        dropping <= drop;
      end
      words <= (push && !drop) || (words && !(pop && arg_count == {{(COUNT_W - 1) {1'b0}}, 1'b1}));
      if (pop) begin
        out_word <= (out_word == LAST_WORD) ? 4'd0 : out_word + 4'd1;
      end
      held <= held + {4'd0, layer_in} - {4'd0, layer_out};
    end
  end

  // -------------------------------------------------------------------------------------------
  // result FIFO
  // -------------------------------------------------------------------------------------------
  wire        res_valid;
  wire [63:0] res_data;

  fifo_sync #(
      .WIDTH(64),
      .DEPTH(16)
  ) u_results (
      .clk      (clk),
      .rst      (rst),
      .flush    (reset_now || muted || !fifo_ctrl[1]),
      .in_valid (result_valid),
      .in_ready (result_ready),
      .in_data  (result_data),
      .out_valid(res_valid),
      .out_ready(rd && at_result_hi),
      .out_data (res_data),
      .count    (results_held)
  );

  assign underrun = rd && (at_result || at_result_hi) && !res_valid;

  // -------------------------------------------------------------------------------------------
  // interrupts
  // -------------------------------------------------------------------------------------------
  reg        calc_done;
  reg        empty_flag;
  reg        full_flag;
  reg        changed;

  wire       empty_state = (held <= {1'b0, threshold[7:4]});
  wire       full_state = (held >= {1'b0, threshold[3:0]});
  wire       empty_now = empty_state && (empty_flag || changed);
  wire       full_now = full_state && (full_flag || changed);
  wire [2:0] raw = {full_now, empty_now, calc_done};
  wire [2:0] status = raw & ~mask;
  wire [2:0] clear = (wr && at_clear) ? wdata[2:0] : 3'd0;

  assign irq = (status != 3'd0);

  always @(posedge clk) begin
    if (rst || reset_now) begin
      calc_done <= 1'b0;
      empty_flag <= 1'b0;
      full_flag <= 1'b0;
      changed <= 1'b0;
    end else begin
      // an event in the cycle of a clear is newer than the status that the host has read, so it is kept
      calc_done <= (ev_calc_done && !muted) || (calc_done && !clear[0]);
      empty_flag <= empty_state && (changed || (empty_flag && !clear[1]));
      full_flag <= full_state && (changed || (full_flag && !clear[2]));
      changed <= (layer_in != layer_out) && !empties;
    end
  end

  // OR of all registers, at most one of them selected
  wire read_low = at_result && res_valid;
  wire read_high = at_result_hi && res_valid;
  assign rdata = {29'd0, status & {3{at_status}}} | {29'd0, raw & {3{at_raw}}} |
      {29'd0, mask & {3{at_mask}}} | {24'd0, threshold & {8{at_threshold}}} |
      {27'd0, fifo_ctrl & {5{at_ctrl}}} | {31'd0, eight_bit & at_eight_bit} |
      (res_data[31:0] & {32{read_low}}) | (res_data[63:32] & {32{read_high}});

endmodule

`resetall
