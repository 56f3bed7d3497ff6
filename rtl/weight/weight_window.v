// SPDX-License-Identifier: Apache-2.0
//
// weight_window: extracts nine weights from a stream of wide words, of the bus or of kept weights.
//
// How it works: a gearbox for each stream has a window of the next 18 bytes. One of the windows is cut into
// nine weights of one or two bytes each; those beyond the end of a group are zero, and a single weight may go
// to the middle. The result is registered.
// Handshake: bus_go and kept_go mark the end of a group, and wait for ready; its weights are valid in the
// next cycle. bytes, on and the layer's arguments are those of the group that ends next.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module weight_window #(
    // bus width; 1: accepts words of the bus; 1: accepts kept weights
    parameter AHB_W = 64,
    parameter BUS   = 1,
    parameter KEEP_WEIGHTS  = 0,
    // widths
    parameter OW    = $clog2(AHB_W / 8),
    parameter CW    = OW + 1
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // words of the bus, pieces of kept weights
    input  wire                  weight_valid,
    output wire                  weight_ready,
    input  wire [     AHB_W-1:0] weight_data,
    input  wire [        OW-1:0] weight_off,
    input  wire [        CW-1:0] weight_cnt,
    input  wire                  kept_valid,
    output wire                  kept_ready,
    input  wire [`KEPT_BITS-1:0] kept,
    // layer: source is the kept weights, weights of two bytes, single ones in the middle, inverted upper bits
    input  wire                  from_kept,
    input  wire                  wide,
    input  wire                  middle,
    input  wire                  invert,
    // groups: enable, bytes, weights in use; may end; ends
    input  wire                  run,
    input  wire [           4:0] bytes,
    input  wire [           8:0] on,
    input  wire                  ready,
    output wire                  bus_go,
    output wire                  kept_go,
    // weights of the group that ended in the previous cycle, 16 bits each
    output reg  [         143:0] weights
);

  wire [143:0] window, bus_window, kept_window;
  generate
    if (BUS != 0) begin : g_bus
      localparam LVL_W = $clog2(18 + 2 * (AHB_W / 8) + 1);
      wire [LVL_W-1:0] level;
      assign bus_go = run && !from_kept && ready && level >= {{(LVL_W - 5) {1'b0}}, bytes};
      byte_gearbox #(
          .IN_BYTES (AHB_W / 8),
          .OUT_BYTES(18)
      ) u_gear (
          .clk     (clk),
          .rst     (rst),
          .flush   (1'b0),
          .in_valid(weight_valid),
          .in_ready(weight_ready),
          .in_data (weight_data),
          .in_off  (weight_off),
          .in_cnt  (weight_cnt),
          .avail   (level),
          .out_data(bus_window),
          .take    (bus_go ? bytes : 5'd0)
      );
    end else begin : g_no_bus
      assign bus_go = 1'b0;
      assign weight_ready = 1'b0;
      assign bus_window = 144'd0;
      wire unused_bus = &{1'b0, weight_valid, weight_data, weight_off, weight_cnt};
    end

    if (KEEP_WEIGHTS != 0) begin : g_kept
      localparam KEPT_W = $clog2(18 + 2 * 16 + 1);
      wire [KEPT_W-1:0] level;
      assign kept_go = run && from_kept && ready && level >= {{(KEPT_W - 5) {1'b0}}, bytes};
      byte_gearbox #(
          .IN_BYTES (16),
          .OUT_BYTES(18)
      ) u_kept (
          .clk     (clk),
          .rst     (rst),
          .flush   (1'b0),
          .in_valid(kept_valid),
          .in_ready(kept_ready),
          .in_data (kept[`KEPT_DATA]),
          .in_off  (kept[`KEPT_OFF]),
          .in_cnt  (kept[`KEPT_CNT]),
          .avail   (level),
          .out_data(kept_window),
          .take    (kept_go ? bytes : 5'd0)
      );
    end else begin : g_no_kept
      assign kept_go = 1'b0;
      assign kept_ready = 1'b0;
      assign kept_window = 144'd0;
      wire unused_kept = &{1'b0, kept_valid, kept};
    end

    if (BUS == 0) begin : g_of_kept
      assign window = kept_window;
    end else if (KEEP_WEIGHTS == 0) begin : g_of_bus
      assign window = bus_window;
    end else begin : g_of_both
      assign window = from_kept ? kept_window : bus_window;
    end
  endgenerate

  reg [143:0] nine;
  integer i;
  always @* begin
    nine = 144'd0;
    for (i = 0; i < 9; i = i + 1) begin
      if (on[i]) nine[16*i+:16] = wide ? window[16*i+:16] : {8'd0, window[8*i+:8] ^ {invert, 7'd0}};
    end
    if (middle) nine[64+:16] = {wide ? window[15:8] : 8'd0, window[7:0] ^ {invert, 7'd0}};
  end
  always @(posedge clk) if (bus_go || kept_go) weights <= nine;

  wire unused = &{1'b0, run, ready, bus_window, kept_window};

endmodule

`resetall
