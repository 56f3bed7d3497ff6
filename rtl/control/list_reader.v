// SPDX-License-Identifier: Apache-2.0
//
// list_reader: reads the lists of a task-list run, and reports whether one is active.
//
// How it works: a start requests the list. In continuous mode the list of the next inference is requested
// as soon as the current one is decoded (committed), so that its first weights arrive early. From then on
// the next inference will run; therefore it happens only while the configuration is stable. Bytes of the
// list channel become 64-bit words. list_check compares the layers of each list with those of the first
// one.
// Handshake: list_req and the list stream are valid/ready; word_valid and word_take transfer a word.
// Everything else is pulses and levels.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module list_reader #(
    // bus width; derived, not to be set
    parameter AHB_W = 32,
    parameter OW    = $clog2(AHB_W / 8),
    parameter CW    = OW + 1
) (
    // clock, synchronous reset, flush
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // configuration; a run starts
    input  wire [ `CFG_BITS-1:0] cfg,
    input  wire                  start,
    // an inference is over; the configuration advances
    input  wire                  inf_over,
    input  wire                  inf_next,
    // list channel of the DMAC
    output reg                   list_req_valid,
    input  wire                  list_req_ready,
    output wire [ `REQ_BITS-1:0] list_req,
    input  wire                  list_valid,
    output wire                  list_ready,
    input  wire [`BEAT_BITS-1:0] list_beat,
    // words to the decoder; the last word of a layer is popped
    output wire                  word_valid,
    input  wire                  word_take,
    output wire [          63:0] word,
    input  wire                  collected,
    // a task-list run is active; the next inference's list is due or requested
    output reg                   list_mode,
    output reg                   committed,
    // layer being collected: its index, the last of the list, parity of its inference
    output reg  [           9:0] index,
    output wire                  last,
    output reg                   parity,
    // a collected layer differs from that of the first inference; its index
    output wire                  changed,
    output wire [           9:0] changed_index,
    // the configuration has advanced
    output reg                   moved_on
);

  localparam LEVEL_W = $clog2(8 + 2 * (AHB_W / 8) + 1);

  reg        list_due;  // a list is to be requested, after the previous one is collected
  reg        list_read;  // a list is being collected

  wire [9:0] list_len = cfg[`CFG_LIST_LEN];
  assign last = index == list_len - 10'd1;

  // ---- words
  wire [LEVEL_W-1:0] level;
  assign word_valid = list_read && level >= 8;
  byte_gearbox #(
      .IN_BYTES (AHB_W / 8),
      .OUT_BYTES(8),
      .UNIT     (8)
  ) u_gear (
      .clk     (clk),
      .rst     (rst || flush),
      .flush   (1'b0),
      .in_valid(list_valid),
      .in_ready(list_ready),
      .in_data (list_beat[`BEAT_DATA]),
      .in_off  (list_beat[`BEAT_OFF]),
      .in_cnt  (list_beat[`BEAT_CNT]),
      .avail   (level),
      .out_data(word),
      .take    (word_take ? 4'd8 : 4'd0)
  );

  // 96 bytes per layer
  assign list_req = {
    1'b0, parity, 10'd0, {8'd0, list_len, 6'd0} + {9'd0, list_len, 5'd0}, cfg[`CFG_LIST_ADR]
  };

  // ---- lists
  // The list is read and another inference follows. Not while the registers advance to the inference that
  // begins: only then is it settled whether one follows it. (In the cycle of inf_over itself either the
  // list of the next inference is already committed, or no other one follows.)
  wire commit = list_mode && !committed && !list_read && !list_due && cfg[`CFG_MORE] && !moved_on;
  wire ask = list_due && !list_req_valid;
  wire asked = list_req_valid && list_req_ready;
  wire layer_in = list_mode && collected;

  always @(posedge clk) begin
    if (rst || flush) begin
      list_mode      <= 1'b0;
      list_due       <= 1'b0;
      list_read      <= 1'b0;
      committed      <= 1'b0;
      list_req_valid <= 1'b0;
    end else if (start) begin
      list_mode <= 1'b1;
      list_due  <= 1'b1;
      committed <= 1'b0;
    end else begin
      list_mode      <= (inf_over && !committed) ? 1'b0 : list_mode;
      committed      <= commit ? 1'b1 : inf_over ? 1'b0 : committed;
      list_due       <= asked ? 1'b0 : commit ? 1'b1 : list_due;
      list_req_valid <= ask ? 1'b1 : asked ? 1'b0 : list_req_valid;
      list_read      <= layer_in ? !last : asked ? 1'b1 : list_read;
    end
  end

  always @(posedge clk) begin
    if (start) begin
      index  <= 10'd0;
      parity <= 1'b0;
    end else begin
      index  <= !layer_in ? index : last ? 10'd0 : index + 10'd1;
      parity <= (layer_in && last) ? !parity : parity;
    end
  end

  always @(posedge clk) begin
    if (rst) moved_on <= 1'b0;
    else moved_on <= inf_next;
  end

  list_check u_check (
      .clk(clk),
      .rst(rst),
      .start(start),
      .take(word_take),
      .word(word),
      .collected(word_take && collected),
      .index(index),
      .last(last),
      .changed(changed),
      .changed_index(changed_index)
  );

  wire unused = &{1'b0, cfg};

`ifdef FORMAL_list_reader
  `include "list_reader_props.vh"
`endif

endmodule

`resetall
