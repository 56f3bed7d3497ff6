// SPDX-License-Identifier: Apache-2.0
//
// States and transitions of the device's state machines, counted; a transition that
// coverage/fsm.toml does not list is an error. Written by coverage/fsm.py.
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

module tb_fsm (
  // clock and reset of the device; transitions that may not be
  input  wire        clk,
  input  wire        rst,
  output reg  [31:0] errors
);
  // a transition has both of its states outside of the reset
  reg on;
  initial on = 1'b0;
  reg was_rst, began;
  initial {was_rst, began} = 2'b10;
  always @(posedge clk) begin
    began <= began || rst === 1'b1;
    was_rst <= rst;
    on <= began && !rst && !was_rst;
  end

  // rtl/control/layer_runner.v
  wire [3:0] runner_now = tb_top.`DUT.u_control.u_runner.state;
  reg  [3:0] runner_was;
  always @(posedge clk) runner_was <= runner_now;
  reg runner_may;
  always @*
    case ({runner_was, runner_now})
      {4'd0, 4'd1},
      {4'd0, 4'd2},
      {4'd1, 4'd2},
      {4'd2, 4'd3},
      {4'd3, 4'd4},
      {4'd3, 4'd5},
      {4'd3, 4'd6},
      {4'd4, 4'd5},
      {4'd5, 4'd6},
      {4'd6, 4'd0},
      {4'd6, 4'd7},
      {4'd7, 4'd0},
      {4'd8, 4'd0},
      {4'd0, 4'd8},
      {4'd1, 4'd8},
      {4'd2, 4'd8},
      {4'd3, 4'd8},
      {4'd4, 4'd8},
      {4'd5, 4'd8},
      {4'd6, 4'd8},
      {4'd7, 4'd8}: runner_may = 1'b1;
      default: runner_may = runner_was == runner_now;
    endcase
`ifdef VERILATOR
  runner__IDLE: cover property (@(posedge clk) on && runner_now == 0);
  runner__PIXELS: cover property (@(posedge clk) on && runner_now == 1);
  runner__START: cover property (@(posedge clk) on && runner_now == 2);
  runner__RUN: cover property (@(posedge clk) on && runner_now == 3);
  runner__OUT: cover property (@(posedge clk) on && runner_now == 4);
  runner__OUT_WAIT: cover property (@(posedge clk) on && runner_now == 5);
  runner__LAYER_END: cover property (@(posedge clk) on && runner_now == 6);
  runner__INF_END: cover property (@(posedge clk) on && runner_now == 7);
  runner__FLUSH: cover property (@(posedge clk) on && runner_now == 8);
  runner__IDLE__PIXELS: cover property (@(posedge clk) on && runner_was == 0 && runner_now == 1);
  runner__IDLE__START: cover property (@(posedge clk) on && runner_was == 0 && runner_now == 2);
  runner__PIXELS__START: cover property (@(posedge clk) on && runner_was == 1 && runner_now == 2);
  runner__START__RUN: cover property (@(posedge clk) on && runner_was == 2 && runner_now == 3);
  runner__RUN__OUT: cover property (@(posedge clk) on && runner_was == 3 && runner_now == 4);
  runner__RUN__OUT_WAIT: cover property (@(posedge clk) on && runner_was == 3 && runner_now == 5);
  runner__RUN__LAYER_END: cover property (@(posedge clk) on && runner_was == 3 && runner_now == 6);
  runner__OUT__OUT_WAIT: cover property (@(posedge clk) on && runner_was == 4 && runner_now == 5);
  runner__OUT_WAIT__LAYER_END: cover property (@(posedge clk) on && runner_was == 5 && runner_now == 6);
  runner__LAYER_END__IDLE: cover property (@(posedge clk) on && runner_was == 6 && runner_now == 0);
  runner__LAYER_END__INF_END: cover property (@(posedge clk) on && runner_was == 6 && runner_now == 7);
  runner__INF_END__IDLE: cover property (@(posedge clk) on && runner_was == 7 && runner_now == 0);
  runner__FLUSH__IDLE: cover property (@(posedge clk) on && runner_was == 8 && runner_now == 0);
  runner__IDLE__FLUSH: cover property (@(posedge clk) on && runner_was == 0 && runner_now == 8);
  runner__PIXELS__FLUSH: cover property (@(posedge clk) on && runner_was == 1 && runner_now == 8);
  runner__START__FLUSH: cover property (@(posedge clk) on && runner_was == 2 && runner_now == 8);
  runner__RUN__FLUSH: cover property (@(posedge clk) on && runner_was == 3 && runner_now == 8);
  runner__OUT__FLUSH: cover property (@(posedge clk) on && runner_was == 4 && runner_now == 8);
  runner__OUT_WAIT__FLUSH: cover property (@(posedge clk) on && runner_was == 5 && runner_now == 8);
  runner__LAYER_END__FLUSH: cover property (@(posedge clk) on && runner_was == 6 && runner_now == 8);
  runner__INF_END__FLUSH: cover property (@(posedge clk) on && runner_was == 7 && runner_now == 8);
`endif

  // rtl/control/pixel_ctrl.v
  wire [2:0] pixels_now = tb_top.`DUT.u_control.u_prefetch.u_pixel_ctrl.state;
  reg  [2:0] pixels_was;
  always @(posedge clk) pixels_was <= pixels_now;
  reg pixels_may;
  always @*
    case ({pixels_was, pixels_now})
      {3'd0, 3'd1},
      {3'd1, 3'd2},
      {3'd2, 3'd3},
      {3'd3, 3'd4},
      {3'd1, 3'd0},
      {3'd2, 3'd0},
      {3'd3, 3'd0},
      {3'd4, 3'd0}: pixels_may = 1'b1;
      default: pixels_may = pixels_was == pixels_now;
    endcase
`ifdef VERILATOR
  pixels__P_IDLE: cover property (@(posedge clk) on && pixels_now == 0);
  pixels__P_ASK: cover property (@(posedge clk) on && pixels_now == 1);
  pixels__P_PLACE: cover property (@(posedge clk) on && pixels_now == 2);
  pixels__P_FILL: cover property (@(posedge clk) on && pixels_now == 3);
  pixels__P_READY: cover property (@(posedge clk) on && pixels_now == 4);
  pixels__P_IDLE__P_ASK: cover property (@(posedge clk) on && pixels_was == 0 && pixels_now == 1);
  pixels__P_ASK__P_PLACE: cover property (@(posedge clk) on && pixels_was == 1 && pixels_now == 2);
  pixels__P_PLACE__P_FILL: cover property (@(posedge clk) on && pixels_was == 2 && pixels_now == 3);
  pixels__P_FILL__P_READY: cover property (@(posedge clk) on && pixels_was == 3 && pixels_now == 4);
  pixels__P_ASK__P_IDLE: cover property (@(posedge clk) on && pixels_was == 1 && pixels_now == 0);
  pixels__P_PLACE__P_IDLE: cover property (@(posedge clk) on && pixels_was == 2 && pixels_now == 0);
  pixels__P_FILL__P_IDLE: cover property (@(posedge clk) on && pixels_was == 3 && pixels_now == 0);
  pixels__P_READY__P_IDLE: cover property (@(posedge clk) on && pixels_was == 4 && pixels_now == 0);
`endif

  // rtl/control/layer_decode.v
  wire [4:0] decode_now = tb_top.`DUT.u_control.u_decode.state;
  reg  [4:0] decode_was;
  always @(posedge clk) decode_was <= decode_now;
  reg decode_may;
  always @*
    case ({decode_was, decode_now})
      {5'd0, 5'd1},
      {5'd1, 5'd2},
      {5'd2, 5'd3},
      {5'd3, 5'd4},
      {5'd4, 5'd5},
      {5'd5, 5'd6},
      {5'd6, 5'd7},
      {5'd7, 5'd9},
      {5'd9, 5'd8},
      {5'd8, 5'd10},
      {5'd10, 5'd12},
      {5'd12, 5'd13},
      {5'd13, 5'd14},
      {5'd14, 5'd15},
      {5'd1, 5'd0},
      {5'd2, 5'd0},
      {5'd3, 5'd0},
      {5'd4, 5'd0},
      {5'd5, 5'd0},
      {5'd6, 5'd0},
      {5'd7, 5'd0},
      {5'd8, 5'd0},
      {5'd9, 5'd0},
      {5'd10, 5'd0},
      {5'd12, 5'd0},
      {5'd13, 5'd0},
      {5'd14, 5'd0},
      {5'd15, 5'd0}: decode_may = 1'b1;
      default: decode_may = decode_was == decode_now;
    endcase
`ifdef VERILATOR
  decode__S_WORDS: cover property (@(posedge clk) on && decode_now == 0);
  decode__S_CHECK: cover property (@(posedge clk) on && decode_now == 1);
  decode__S_ICS: cover property (@(posedge clk) on && decode_now == 2);
  decode__S_IROWS: cover property (@(posedge clk) on && decode_now == 3);
  decode__S_OCS: cover property (@(posedge clk) on && decode_now == 4);
  decode__S_OROWS: cover property (@(posedge clk) on && decode_now == 5);
  decode__S_CH: cover property (@(posedge clk) on && decode_now == 6);
  decode__S_CHW: cover property (@(posedge clk) on && decode_now == 7);
  decode__S_WLEN: cover property (@(posedge clk) on && decode_now == 8);
  decode__S_FULL: cover property (@(posedge clk) on && decode_now == 9);
  decode__S_REST: cover property (@(posedge clk) on && decode_now == 10);
  decode__S_DIV: cover property (@(posedge clk) on && decode_now == 12);
  decode__S_FIT: cover property (@(posedge clk) on && decode_now == 13);
  decode__S_BLOCK: cover property (@(posedge clk) on && decode_now == 14);
  decode__S_OUT: cover property (@(posedge clk) on && decode_now == 15);
  decode__S_WORDS__S_CHECK: cover property (@(posedge clk) on && decode_was == 0 && decode_now == 1);
  decode__S_CHECK__S_ICS: cover property (@(posedge clk) on && decode_was == 1 && decode_now == 2);
  decode__S_ICS__S_IROWS: cover property (@(posedge clk) on && decode_was == 2 && decode_now == 3);
  decode__S_IROWS__S_OCS: cover property (@(posedge clk) on && decode_was == 3 && decode_now == 4);
  decode__S_OCS__S_OROWS: cover property (@(posedge clk) on && decode_was == 4 && decode_now == 5);
  decode__S_OROWS__S_CH: cover property (@(posedge clk) on && decode_was == 5 && decode_now == 6);
  decode__S_CH__S_CHW: cover property (@(posedge clk) on && decode_was == 6 && decode_now == 7);
  decode__S_CHW__S_FULL: cover property (@(posedge clk) on && decode_was == 7 && decode_now == 9);
  decode__S_FULL__S_WLEN: cover property (@(posedge clk) on && decode_was == 9 && decode_now == 8);
  decode__S_WLEN__S_REST: cover property (@(posedge clk) on && decode_was == 8 && decode_now == 10);
  decode__S_REST__S_DIV: cover property (@(posedge clk) on && decode_was == 10 && decode_now == 12);
  decode__S_DIV__S_FIT: cover property (@(posedge clk) on && decode_was == 12 && decode_now == 13);
  decode__S_FIT__S_BLOCK: cover property (@(posedge clk) on && decode_was == 13 && decode_now == 14);
  decode__S_BLOCK__S_OUT: cover property (@(posedge clk) on && decode_was == 14 && decode_now == 15);
  decode__S_CHECK__S_WORDS: cover property (@(posedge clk) on && decode_was == 1 && decode_now == 0);
  decode__S_ICS__S_WORDS: cover property (@(posedge clk) on && decode_was == 2 && decode_now == 0);
  decode__S_IROWS__S_WORDS: cover property (@(posedge clk) on && decode_was == 3 && decode_now == 0);
  decode__S_OCS__S_WORDS: cover property (@(posedge clk) on && decode_was == 4 && decode_now == 0);
  decode__S_OROWS__S_WORDS: cover property (@(posedge clk) on && decode_was == 5 && decode_now == 0);
  decode__S_CH__S_WORDS: cover property (@(posedge clk) on && decode_was == 6 && decode_now == 0);
  decode__S_CHW__S_WORDS: cover property (@(posedge clk) on && decode_was == 7 && decode_now == 0);
  decode__S_WLEN__S_WORDS: cover property (@(posedge clk) on && decode_was == 8 && decode_now == 0);
  decode__S_FULL__S_WORDS: cover property (@(posedge clk) on && decode_was == 9 && decode_now == 0);
  decode__S_REST__S_WORDS: cover property (@(posedge clk) on && decode_was == 10 && decode_now == 0);
  decode__S_DIV__S_WORDS: cover property (@(posedge clk) on && decode_was == 12 && decode_now == 0);
  decode__S_FIT__S_WORDS: cover property (@(posedge clk) on && decode_was == 13 && decode_now == 0);
  decode__S_BLOCK__S_WORDS: cover property (@(posedge clk) on && decode_was == 14 && decode_now == 0);
  decode__S_OUT__S_WORDS: cover property (@(posedge clk) on && decode_was == 15 && decode_now == 0);
`endif

  // rtl/host/ahb_slave.v
  wire [2:0] slave_now = tb_top.`DUT.u_host.u_slave.state;
  reg  [2:0] slave_was;
  always @(posedge clk) slave_was <= slave_now;
  reg slave_may;
  always @*
    case ({slave_was, slave_now})
      {3'd0, 3'd1},
      {3'd0, 3'd2},
      {3'd0, 3'd3},
      {3'd1, 3'd0},
      {3'd1, 3'd2},
      {3'd1, 3'd3},
      {3'd1, 3'd4},
      {3'd2, 3'd0},
      {3'd2, 3'd1},
      {3'd2, 3'd3},
      {3'd3, 3'd4},
      {3'd4, 3'd0},
      {3'd4, 3'd1},
      {3'd4, 3'd2},
      {3'd4, 3'd3}: slave_may = 1'b1;
      default: slave_may = slave_was == slave_now;
    endcase
`ifdef VERILATOR
  slave__IDLE: cover property (@(posedge clk) on && slave_now == 0);
  slave__REGS: cover property (@(posedge clk) on && slave_now == 1);
  slave__RAM: cover property (@(posedge clk) on && slave_now == 2);
  slave__FAULT: cover property (@(posedge clk) on && slave_now == 3);
  slave__FAULT2: cover property (@(posedge clk) on && slave_now == 4);
  slave__IDLE__REGS: cover property (@(posedge clk) on && slave_was == 0 && slave_now == 1);
  slave__IDLE__RAM: cover property (@(posedge clk) on && slave_was == 0 && slave_now == 2);
  slave__IDLE__FAULT: cover property (@(posedge clk) on && slave_was == 0 && slave_now == 3);
  slave__REGS__IDLE: cover property (@(posedge clk) on && slave_was == 1 && slave_now == 0);
  slave__REGS__RAM: cover property (@(posedge clk) on && slave_was == 1 && slave_now == 2);
  slave__REGS__FAULT: cover property (@(posedge clk) on && slave_was == 1 && slave_now == 3);
  slave__REGS__FAULT2: cover property (@(posedge clk) on && slave_was == 1 && slave_now == 4);
  slave__RAM__IDLE: cover property (@(posedge clk) on && slave_was == 2 && slave_now == 0);
  slave__RAM__REGS: cover property (@(posedge clk) on && slave_was == 2 && slave_now == 1);
  slave__RAM__FAULT: cover property (@(posedge clk) on && slave_was == 2 && slave_now == 3);
  slave__FAULT__FAULT2: cover property (@(posedge clk) on && slave_was == 3 && slave_now == 4);
  slave__FAULT2__IDLE: cover property (@(posedge clk) on && slave_was == 4 && slave_now == 0);
  slave__FAULT2__REGS: cover property (@(posedge clk) on && slave_was == 4 && slave_now == 1);
  slave__FAULT2__RAM: cover property (@(posedge clk) on && slave_was == 4 && slave_now == 2);
  slave__FAULT2__FAULT: cover property (@(posedge clk) on && slave_was == 4 && slave_now == 3);
`endif

  initial errors = 32'd0;
  always @(posedge clk)
    if (on && {runner_may, pixels_may, decode_may, slave_may} !== 4'b1111) begin
      errors <= errors + 32'd1;
      $display("tb_fsm: a transition that is not listed, runner %0d > %0d, pixels %0d > %0d, decode %0d > %0d, slave %0d > %0d",
        runner_was, runner_now, pixels_was, pixels_now, decode_was, decode_now, slave_was, slave_now);
    end
endmodule

`resetall
