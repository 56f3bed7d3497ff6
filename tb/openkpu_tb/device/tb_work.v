// SPDX-License-Identifier: Apache-2.0
//
// What the host's command block assumes of the controller (rtl/host/command_props.vh): work begins in
// the cycle after a start, or with a word of a layer that waits; what a soft reset drops is no work.
// Counted when it does not hold.
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
`include "openkpu_fields.vh"

module tb_work (
  // clock and reset of the device; cycles in which work began from nothing
  input  wire        clk,
  input  wire        rst,
  output reg  [31:0] errors
);
  wire work  = tb_top.`DUT.u_host.u_regs.u_ai.u_command.work;
  wire words = tb_top.`DUT.u_host.u_regs.u_ai.u_command.words;
  wire hold  = tb_top.`DUT.u_host.u_regs.u_ai.u_command.hold;
  wire start = tb_top.`DUT.u_host.u_regs.u_ai.u_command.start;
  wire drop  = tb_top.`DUT.u_host.u_regs.u_ai.u_command.muted &&
      (tb_top.`DUT.u_host.u_regs.u_ai.u_command.soft_reset || tb_top.`DUT.flush);

  reg begins;
  initial {begins, errors} = {1'b1, 32'd0};
  always @(posedge clk) begin
    begins <= rst || start || (work && !drop);
    if (!rst && work && !drop && !(words && !hold) && !begins) begin
      errors <= errors + 32'd1;
      $display("tb_work: work began without a start and without a word at %0t", $time);
    end
  end
endmodule

`resetall
