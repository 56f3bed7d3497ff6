// SPDX-License-Identifier: Apache-2.0
//
// word_source: supplies the decoder with layer words, from the host or from a list.
//
// How it works: outside task-list runs the words come from the host. After an error in host mode they are
// discarded until the host acknowledges. Only whole layers are discarded, because words carry no layer
// mark: an acknowledgement in the middle of a layer takes effect at its end. One in the cycle in which the
// error is reported refers to an earlier error: the code stays, and so does the hold. While a start or a
// reset is pending the words wait: they belong to the time after it.
// Handshake: arg and dec_word are valid/ready; list_take pops list words.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module word_source (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // flush; commands of the host
    input  wire                  flush,
    input  wire [`HOST_BITS-1:0] host,
    // layer words of the host; arg_flush drops the words of an unfinished layer
    input  wire                  arg_valid,
    output wire                  arg_ready,
    input  wire [          63:0] arg_data,
    input  wire                  arg_flush,
    // words of a task list
    input  wire                  list_mode,
    input  wire                  list_valid,
    input  wire [          63:0] list_word,
    output wire                  list_take,
    // decoder: words, index of a host's layer, its last word is popped; the device is busy
    output wire                  dec_word_valid,
    input  wire                  dec_word_ready,
    output wire [          63:0] dec_word_data,
    output reg  [           9:0] host_index,
    input  wire                  collected,
    input  wire                  busy,
    // a refused layer is pending; an error ends the run; it is reported
    input  wire                  refused,
    input  wire                  ends,
    input  wire                  error,
    // words of the host are discarded
    output reg                   hold
);

  localparam [3:0] LAST_WORD = 4'd11;

  reg  [3:0] arg_word;  // words of the host's layer popped so far
  reg        ack_seen;

  wire       start = host[`HOST_START];
  wire       soft_reset = host[`HOST_SOFT_RESET];
  wire       ack_now = (host[`HOST_ACK] && !error) || start;

  // no word is discarded in the cycle in which the hold ends
  wire       unhold = arg_word == 4'd0 && (ack_now || ack_seen);
  wire       skip = (hold || flush) && !list_mode;
  wire       arg_pop = arg_valid && arg_ready;
  wire       take_arg = !list_mode && !host[`HOST_PENDING] && !refused && !flush;
  assign dec_word_valid = list_mode ? list_valid && !refused && !flush :
      arg_valid && !hold && take_arg;
  assign dec_word_data = list_mode ? list_word : arg_data;
  assign list_take = list_mode && dec_word_valid && dec_word_ready;
  assign arg_ready = skip ? hold && !unhold && !soft_reset : take_arg && dec_word_ready;

  always @(posedge clk) begin
    if (rst || soft_reset) begin
      hold       <= 1'b0;
      ack_seen   <= 1'b0;
      arg_word   <= 4'd0;
      host_index <= 10'd0;
    end else begin
      hold <= (ends && !list_mode) ? 1'b1 : unhold ? 1'b0 : hold;
      ack_seen <= hold && (ack_seen || ack_now);
      arg_word <= (arg_flush || (arg_pop && arg_word == LAST_WORD)) ? 4'd0 :
          arg_pop ? arg_word + 4'd1 : arg_word;
      host_index <= !busy ? 10'd0 : (collected && !list_mode) ? host_index + 10'd1 : host_index;
    end
  end

  wire unused = &{1'b0, host};

endmodule

`resetall
