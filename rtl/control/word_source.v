// SPDX-License-Identifier: Apache-2.0
//
// word_source: gives the decoder its words, from the host or from a list, and reports errors.
//
// How it works: outside task-list runs the words come from the host. A layer that the decoder
// refuses is reported when all layers before it are done (refuse), an ERROR on the bus at once
// (trouble). After an error in host mode the host's words are discarded until it acknowledges.
// Only whole layers are discarded, because words carry no layer mark: an acknowledgement in the
// middle of a layer takes effect at its end.
// Handshake: arg and dec_word are valid/ready; list words go with list_take.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module word_source (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // everything is being dropped; commands of the host
    input  wire                  flush,
    input  wire [`HOST_BITS-1:0] host,
    // layer words of the host; forget what was taken of an unfinished layer
    input  wire                  arg_valid,
    output wire                  arg_ready,
    input  wire [          63:0] arg_data,
    input  wire                  arg_flush,
    // words of a task list
    input  wire                  list_mode,
    input  wire                  list_valid,
    input  wire [          63:0] list_word,
    output wire                  list_take,
    // decoder: words, what goes with them, a layer was taken or refused
    output wire                  dec_word_valid,
    input  wire                  dec_word_ready,
    output wire [          63:0] dec_word_data,
    output reg  [           9:0] host_index,
    input  wire                  collected,
    input  wire                  dec_err,
    input  wire [           7:0] dec_err_code,
    input  wire [           9:0] dec_err_index,
    // the device works; all layers before a refused one are done; layer at work
    input  wire                  busy,
    input  wire                  drained,
    input  wire [           9:0] layer,
    // errors of the bus
    input  wire                  bus_err,
    input  wire [          31:0] bus_err_addr,
    // an error ends what is going on; it waits to be reported; the host is to be heard
    output wire                  refuse,
    output wire                  trouble,
    output reg                   refused,
    output reg                   hold,
    // to the host: event with its description
    output reg                   error,
    output reg  [ `ERR_BITS-1:0] err
);

  localparam [3:0] LAST_WORD = 4'd11;

  reg  [3:0] arg_word;  // words of the host's layer taken so far
  reg        ack_seen;
  reg  [9:0] bad_index;

  wire       start = host[`HOST_START];
  wire       soft_reset = host[`HOST_SOFT_RESET];
  wire       ack_now = host[`HOST_ACK] || start || soft_reset;

  assign refuse  = refused && drained;
  assign trouble = bus_err && !flush;

  // ---- words
  // in the cycle in which the hold ends no word is discarded any more
  wire unhold = arg_word == 4'd0 && (ack_now || ack_seen);
  wire skip = (hold || flush) && !list_mode;
  wire arg_pop = arg_valid && arg_ready;
  assign dec_word_valid = !refused && !flush && (list_mode ? list_valid : arg_valid && !hold);
  assign dec_word_data = list_mode ? list_word : arg_data;
  assign list_take = list_valid && dec_word_ready && dec_word_valid;
  assign arg_ready = skip ? hold && !unhold : !list_mode && !refused && !flush && dec_word_ready;

  always @(posedge clk) begin
    if (rst) begin
      hold       <= 1'b0;
      ack_seen   <= 1'b0;
      arg_word   <= 4'd0;
      host_index <= 10'd0;
      refused    <= 1'b0;
    end else begin
      hold <= (refuse || trouble) && !list_mode ? 1'b1 : unhold ? 1'b0 : hold;
      ack_seen <= hold && (ack_seen || ack_now);
      arg_word   <= (arg_flush || (arg_pop && arg_word == LAST_WORD)) ? 4'd0 :
          arg_pop ? arg_word + 4'd1 : arg_word;
      host_index <= !busy ? 10'd0 : (collected && !list_mode) ? host_index + 10'd1 : host_index;
      refused <= (flush || start) ? 1'b0 : dec_err ? 1'b1 : refused;
    end
  end

  // ---- errors
  always @(posedge clk) begin
    if (rst) error <= 1'b0;
    else error <= (trouble || refuse) && !soft_reset;
  end
  always @(posedge clk) begin
    if (dec_err) bad_index <= dec_err_index;
    else bad_index <= bad_index;
    if (trouble) err <= {bus_err_addr, 6'd0, layer, `ERROR_BUS_ERROR};
    else if (refuse) err <= {32'd0, 6'd0, bad_index, dec_err_code};
    else err <= err;
  end

  wire unused = &{1'b0, host};

endmodule

`resetall
