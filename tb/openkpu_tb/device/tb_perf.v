// SPDX-License-Identifier: Apache-2.0
//
// Records the performance counters at the end of every layer, as the host would read them in that
// cycle: what a counter is owed is added. Without counters (PERF = 0) only the finished inferences.
`resetall
`timescale 1ns/1ps
`default_nettype none
`ifdef AXI
  `define DUT u_axi.u_openkpu
`elsif APB
  `define DUT u_apb.u_openkpu
`else
  `define DUT dut
`endif

module tb_perf #(
  // size of the array; the device has counters; layers that are recorded
  parameter N_Y = 2,
  parameter N_Z = 2,
  parameter PERF = 1,
  parameter RECORDS = 4096
) (
  // a layer ends; forget the records; write them to perf_out.hex; how many there are
  input  wire        clk,
  input  wire        layer_done,
  input  wire        forget,
  input  wire        dump,
  output reg  [31:0] count
);
  localparam COUNTERS = 14;
  localparam FINISHED = 10;  // the counter of finished inferences
  localparam MACS_W = $clog2(9 * N_Y * N_Z + 1) + 5;  // lowest bits of two counters

  reg [63:0] rec [0:RECORDS*COUNTERS-1];
  wire       room = count < RECORDS;
  initial count = 32'd0;

  generate
    if (PERF != 0) begin : g_perf
      reg [58:0] upper;  // of a counter, what it is owed added
      integer    k;
      always @(posedge clk)
        if (layer_done && room)
          for (k = 0; k < COUNTERS; k = k + 1) begin
            upper =
                (tb_top.`DUT.u_host.g_perf.u_perf.held[k] ? tb_top.`DUT.u_host.g_perf.u_perf.u_copy.mem[k] : 59'd0)
                + {58'd0, tb_top.`DUT.u_host.g_perf.u_perf.owed[k]};
            rec[count * COUNTERS + k] <= (k == 2 || k == 3)
                ? {upper[63-MACS_W:0], tb_top.`DUT.u_host.g_perf.u_perf.low_macs[MACS_W*(k-2) +: MACS_W]}
                : {upper, tb_top.`DUT.u_host.g_perf.u_perf.low_16[5*k +: 5]};
          end
    end else begin : g_no_perf
      integer k;
      always @(posedge clk)
        if (layer_done && room)
          for (k = 0; k < COUNTERS; k = k + 1)
            rec[count * COUNTERS + k] <= (k == FINISHED) ? {32'd0, tb_top.`DUT.u_host.g_none.inferences} : 64'd0;
    end
  endgenerate

  always @(posedge clk) begin
    if (forget) count <= 32'd0;
    else if (layer_done && room) count <= count + 32'd1;
  end

  always @(posedge dump) $writememh("perf_out.hex", rec, 0, count * COUNTERS - 1);
endmodule

`resetall
