// SPDX-License-Identifier: Apache-2.0
//
// mac_array: N_Z kernel modules of N_Y submodules of nine sign-gated units.
//
// How it works: a submodule is a cascade of nine units, the reduction of one pixel; the submodules of a
// kernel module share their weights, those of one output channel. Operands arrive column by column: column t
// carries, for each lane z*N_Y + y, a pixel with its valid, and for each kernel module z a weight, t cycles
// after column 0. In a convolution the lanes of all kernel modules carry the same N_Y pixels and each kernel
// module has its own weights; in a depthwise layer each lane carries its own pixel. In element-wise layers
// unit OWN can multiply by a byte of its lane, and the last two units can choose between the sum of the
// previous units and their own product, which both compute (see mac_unit). The sums leave eleven cycles after
// column 0 was applied.
// Handshake: none, a fixed pipeline.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module mac_array #(
    // pixels, output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // width of a weight
    parameter WEIGHT_BITS = 16,
    // width of the partial sum
    parameter PW = WEIGHT_BITS + 12,
    // operand gating, see mac_unit
    parameter GATE = 1,
    // 1: products are output, see mac_unit
    parameter TAP = 0
) (
    // clock and synchronous reset
    input  wire                         clk,
    input  wire                         rst,
    // operands: pixel (t, lane) at t*N_Y*N_Z + lane, weight (t, z) at t*N_Z + z
    input  wire [        9*N_Y*N_Z-1:0] valid,
    input  wire [      9*N_Y*N_Z*8-1:0] pixel,
    input  wire [9*N_Z*WEIGHT_BITS-1:0] weight,
    // pixels are signed
    input  wire                         sgn,
    // element-wise layer: choice of the last two units (see mac_unit); operands of each lane, zero unless the
    // layer multiplies: the weights of unit OWN are zero then
    input  wire                         best,
    input  wire                         least,
    input  wire [        N_Y*N_Z*8-1:0] own,
    // sums of each lane
    output reg  [       N_Y*N_Z*PW-1:0] psum,
    output reg  [       N_Y*N_Z*12-1:0] xsum,
    // lower bits of the products, grouped by lane
    output wire [     N_Y*N_Z*9*19-1:0] product
);

  localparam L = N_Y * N_Z;
  localparam N_X = 9;  // a cascade: nine taps, or nine channels
  localparam OWN = 6;  // unit with an operand per lane
  localparam CHOOSES = 7;  // unit that subtracts, before the last one

  // columns first, then units: a change of a column evaluates its own units only
  genvar t, y, z;
  generate
    for (t = 0; t < N_X; t = t + 1) begin : g_column
      wire [L-1:0] column_valid = valid[t*L+:L];
      wire [8*L-1:0] column_pixel = pixel[8*t*L+:8*L];
      wire [N_Z*WEIGHT_BITS-1:0] column_weight = weight[t*N_Z*WEIGHT_BITS+:N_Z*WEIGHT_BITS];
    end
    for (z = 0; z < N_Z; z = z + 1) begin : g_kernel
      for (y = 0; y < N_Y; y = y + 1) begin : g_sub
        localparam integer LANE = z * N_Y + y;
        wire [15:0] wide = {8'd0, own[8*LANE+:8]};
        wire unused_wide = &{1'b0, wide};
        for (t = 0; t < N_X; t = t + 1) begin : g_unit
          wire [WEIGHT_BITS-1:0] shared = g_column[t].column_weight[z*WEIGHT_BITS+:WEIGHT_BITS];
          wire [WEIGHT_BITS-1:0] factor;
          wire [PW-1:0] psum_in, psum_out;
          wire [11:0] xsum_in, xsum_out;
          if (t == OWN) begin : g_own
            assign factor = shared | wide[WEIGHT_BITS-1:0];
          end else begin : g_shared
            assign factor = shared;
          end
          if (t == 0) begin : g_first
            assign psum_in = {PW{1'b0}};
            assign xsum_in = 12'd0;
          end else begin : g_next
            assign psum_in = g_unit[t-1].psum_out;
            assign xsum_in = g_unit[t-1].xsum_out;
          end
          mac_unit #(
              .WEIGHT_BITS(WEIGHT_BITS),
              .NTH(t),
              .PW(PW),
              .GATE(GATE),
              .CHOICE((t < CHOOSES) ? 0 : t - CHOOSES + 1),
              .TAP(TAP)
          ) u_unit (
              .clk     (clk),
              .rst     (rst),
              .valid   (g_column[t].column_valid[LANE]),
              .sgn     (sgn),
              .pixel   (g_column[t].column_pixel[8*LANE+:8]),
              .weight  (factor),
              .best    (best),
              .least   (least),
              .psum_in (psum_in),
              .xsum_in (xsum_in),
              .psum_out(psum_out),
              .xsum_out(xsum_out),
              .shown   (product[(LANE*N_X+t)*19+:19])
          );
        end
        // a variable: Icarus propagates a net of slices bit by bit, to each of its readers
        always @* psum[LANE*PW+:PW] = g_unit[N_X-1].psum_out;
        always @* xsum[LANE*12+:12] = g_unit[N_X-1].xsum_out;
      end
    end
  endgenerate

endmodule

`resetall
