// SPDX-License-Identifier: Apache-2.0
//
// weight_keep: decides whether the weights of a stream stay in the weight buffer.
//
// How it works: while the first inference of a stream is decoded, the rows that its layers need in
// the weight buffer and in the parameter buffer are added up. As long as they fit, no row is
// released (keep). When they no longer fit, keep falls before a loader runs out of room. Once
// the whole list is decoded and fits, `reuse` makes the fetch side skip weights and batch-norm
// words of the following inferences, and the array begin at the rows of the first one.
// Handshake: none; `seen` is high while a descriptor is valid, `given` in the last of these
// cycles.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_keep #(
    // output channels of the array, rows of the weight buffer and the parameter buffer
    parameter N_Z       = 4,
    parameter WBUF_ROWS = 1024,
    parameter PAR_ROWS  = 2048 / N_Z,
    parameter ZW        = $clog2(N_Z)
) (
    // clock, synchronous reset, flush
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // a run begins; it is a stream; its last inference is over
    input  wire                  begin_run,
    input  wire                  stream,
    input  wire                  ends,
    // descriptors as they are decoded
    input  wire                  seen,
    input  wire                  given,
    input  wire [`DESC_BITS-1:0] desc,
    // no row is released; the weights of the layer being decoded are in the buffer
    output reg                   keep,
    output reg                   reuse
);

  // the limits bound the sums: 16 bits of rows and a carry
  localparam [16:0] W_LIMIT = WBUF_ROWS[16:0];
  localparam [16:0] P_LIMIT = PAR_ROWS[16:0];

  reg  [16:0] w_sum;
  reg  [16:0] p_sum;
  reg         counted;

  wire        none = desc[`DESC_POOLS] || desc[`DESC_FP16];  // no parameters
  wire [11:0] chans = none ? 12'd0 : {1'b0, desc[`DESC_O]} + N_Z[11:0] - 12'd1;
  wire [16:0] w_next = w_sum + {1'b0, desc[`DESC_WROWS]};
  wire [16:0] p_next = p_sum + {5'd0, chans >> ZW};
  wire        add = seen && !counted && keep && !reuse;
  wire        over = add && (w_next > W_LIMIT || p_next > P_LIMIT);

  always @(posedge clk) begin
    if (rst || flush || ends) begin
      keep    <= 1'b0;
      reuse   <= 1'b0;
      counted <= 1'b0;
      w_sum   <= 17'd0;
      p_sum   <= 17'd0;
    end else begin
      keep    <= begin_run ? stream : keep && !over;
      reuse   <= reuse || (given && desc[`DESC_LAST] && keep && !over);
      counted <= seen && !given;
      w_sum   <= begin_run ? 17'd0 : add ? w_next : w_sum;
      p_sum   <= begin_run ? 17'd0 : add ? p_next : p_sum;
    end
  end

  wire unused = &{1'b0, desc};

endmodule

`resetall
