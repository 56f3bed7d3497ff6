// SPDX-License-Identifier: Apache-2.0
//
// ahb_beats: queues the burst commands of the AHB master until they retire, and splits them into beats.
//
// How it works: a memory of four rows with three running counters whose low bits address a row: the next
// command, the command being split into beats, and the oldest command. The address and the data stage
// hold two beats, so the last two counters are at most two apart; at most two more commands queue behind,
// so four rows are enough. A command stays in its row until it retires, because beats may have to be
// issued again.
// Handshake: the DMAC waits for cmd_ready, which depends on registers alone: at most one command is
// pending behind the one being split. beat_valid marks the next beat as valid; `step` advances to the
// beat after it, `back` returns to a beat of the oldest command, `second` to the first beat of the
// command after that: one of the three in a cycle.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module ahb_beats #(
    // derived, not to be set: width of the tag returned with the beats
    parameter TAG_W = 1
) (
    // clock, synchronous reset, drop all commands
    input  wire             clk,
    input  wire             rst,
    input  wire             clear,
    // burst commands
    input  wire             cmd_valid,
    output wire             cmd_ready,
    input  wire             cmd_write,
    input  wire [     31:0] cmd_addr,
    input  wire [      4:0] cmd_beats,
    input  wire [      2:0] cmd_size,
    input  wire             cmd_wpop,
    input  wire [TAG_W-1:0] cmd_tag,
    // the next beat: belongs to the oldest command, first of its command, beats remaining with this one,
    // ..., pops a word of write data
    output wire             beat_valid,
    output wire             beat_oldest,
    output wire             beat_first,
    output wire [      4:0] beat_rem,
    output wire             beat_write,
    output wire [     31:0] beat_addr,
    output wire [      2:0] beat_size,
    output wire             beat_pop,
    // advance, or jump; the beat to return to
    input  wire             step,
    input  wire             second,
    input  wire             back,
    input  wire             back_first,
    input  wire [      4:0] back_rem,
    input  wire [      9:0] back_low,
    // the oldest command: its 1 KiB block and its tag; it retires
    output wire [     21:0] old_block,
    output wire [TAG_W-1:0] old_tag,
    input  wire             old_leaves,
    // a row holds a read
    output wire             reading
);

  // -------------------------------------------------------------------------------------------
  // commands
  // -------------------------------------------------------------------------------------------
  reg  [ 2:0] put;
  reg  [ 2:0] gen;
  reg  [ 2:0] old;
  wire [ 2:0] queued = put - gen;
  wire [ 2:0] old_next = old + 3'd1;
  wire        enter = cmd_valid && cmd_ready;
  wire        ends = step && beat_rem == 5'd1;
  wire [31:0] addr;
  wire [ 4:0] beats;
  wire        wpop;

  assign cmd_ready   = queued[2:1] == 2'd0;
  assign beat_valid  = queued != 3'd0;
  assign beat_oldest = gen == old;

  always @(posedge clk) begin
    if (rst || clear) begin
      put <= 3'd0;
      gen <= 3'd0;
      old <= 3'd0;
    end else begin
      put <= put + {2'd0, enter};
      gen <= back ? old : second ? old_next : gen + {2'd0, ends};
      old <= old_leaves ? old_next : old;
    end
  end

  // fields of the beats, and of the responses to the oldest command; free rows are don't-care, so the
  // write enable does not depend on cmd_valid
  ram_1r1w_async #(
      .WIDTH(42),
      .DEPTH(4)
  ) u_next (
      .clk  (clk),
      .we   (cmd_ready),
      .waddr(put[1:0]),
      .wdata({cmd_wpop, cmd_size, cmd_beats, cmd_addr, cmd_write}),
      .raddr(gen[1:0]),
      .rdata({wpop, beat_size, beats, addr, beat_write})
  );

  ram_1r1w_async #(
      .WIDTH(TAG_W + 22),
      .DEPTH(4)
  ) u_oldest (
      .clk  (clk),
      .we   (cmd_ready),
      .waddr(put[1:0]),
      .wdata({cmd_tag, cmd_addr[31:10]}),
      .raddr(old[1:0]),
      .rdata({old_tag, old_block})
  );

  // rows holding reads
  reg  [3:0] reads;
  wire [3:0] put_row = {4{enter && !cmd_write}} & (4'd1 << put[1:0]);
  wire [3:0] old_row = {4{old_leaves}} & (4'd1 << old[1:0]);
  always @(posedge clk) begin
    if (rst || clear) reads <= 4'd0;
    else reads <= put_row | (reads & ~old_row);
  end
  assign reading = reads != 4'd0;

  // -------------------------------------------------------------------------------------------
  // position inside the command being split; a command does not leave its 1 KiB block
  // -------------------------------------------------------------------------------------------
  reg       started;
  reg [9:0] rest_low;
  reg [4:0] rest_rem;

  assign beat_first = !started;
  assign beat_addr  = {addr[31:10], started ? rest_low : addr[9:0]};
  assign beat_rem   = started ? rest_rem : beats;
  assign beat_pop   = beat_write && wpop;

  always @(posedge clk) begin
    if (rst || clear) started <= 1'b0;
    else started <= back ? !back_first : !second && (step ? !ends : started);
  end
  always @(posedge clk) begin
    rest_low <= back ? back_low : step ? beat_addr[9:0] + (10'd1 << beat_size) : rest_low;
    rest_rem <= back ? back_rem : step ? beat_rem - 5'd1 : rest_rem;
  end

endmodule

`resetall
