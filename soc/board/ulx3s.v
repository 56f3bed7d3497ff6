// SPDX-License-Identifier: Apache-2.0
//
// ulx3s: the computer of soc.v on a ULX3S with an LFE5U-85F (docs/silicon.md section 5).
//
// How it works: a PLL makes the clock of the 25 MHz oscillator. Program, network and images lie in block RAM, loaded
// with the configuration. The console leaves by the USB serial port. LEDs 0 to 3 are the exit code of the program, 4 the
// interrupt, 5 characters on their way, 6 a fault of the processor, 7 the end of the program. Button 1 (FIRE1) starts the
// program again with the memories as they are then.
// Handshake: reset lasts until the PLL has locked and the button is released, and eight cycles more.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module ulx3s #(
    // the PLL: 25 MHz * PLL_FEEDBACK / PLL_INPUT, times PLL_OUTPUT between 400 and 800 MHz
    parameter PLL_INPUT       = 1,
    parameter PLL_FEEDBACK    = 2,
    parameter PLL_OUTPUT      = 12,
    // cycles of a bit on the serial line
    parameter BIT_CYCLES      = 50,
    // of the computer: bytes of RAM and storage, and the files of what they hold
    parameter RAM_BYTES       = 32768,
    parameter STORE_BYTES     = 65536,
    parameter RAM_FILE        = "ram.hex",
    parameter STORE_FILE      = "store.hex",
    // of openkpu_top
    parameter N_Y             = 2,
    parameter N_Z             = 2,
    parameter AHB_W           = 32,
    parameter AI_RAM_ROWS     = 2048,
    parameter WBUF_ROWS       = 512,
    parameter WEIGHT_BITS     = 16,
    parameter PARAM_CHANS     = 1024,
    parameter LOOK_AHEAD      = 4,
    parameter TILE_ROWS       = 64,
    parameter POST_SHARE      = 1,
    parameter POOL_LANES      = 1,
    parameter FP16_LANES      = 0,
    parameter KEEP_WEIGHTS    = 0,
    parameter WEIGHT_AHEAD    = 0,
    parameter FLAT_MAPS       = 0,
    parameter DILATION        = 1,
    parameter SUM_PLANES      = 0,
    parameter OUT32           = 1,
    parameter POST_TABLES     = 0,
    parameter MUL_BITS        = 18,
    parameter PERF            = 1,
    parameter PATH            = 16,
    parameter PIX_FIFO_DEPTH  = 64,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32
) (
    // oscillator, button 1
    input  wire       clk_25mhz,
    input  wire       btn_fire1,
    // serial line to the USB bridge
    output wire       ftdi_rxd,
    // LEDs; high, or the ESP32 starts and loads a configuration of its own
    output wire [7:0] led,
    output wire       wifi_gpio0
);

  wire clk, locked, put, finish, fault, irq, full, printed, transfer;
  wire [31:0] value;
  wire [ 2:0] master;
  reg  [ 2:0] resets;
  reg         rst;
  reg         ended;
  reg  [ 3:0] code;

  EHXPLLL #(
      .PLLRST_ENA      ("DISABLED"),
      .INTFB_WAKE      ("DISABLED"),
      .STDBY_ENABLE    ("DISABLED"),
      .DPHASE_SOURCE   ("DISABLED"),
      .OUTDIVIDER_MUXA ("DIVA"),
      .OUTDIVIDER_MUXB ("DIVB"),
      .OUTDIVIDER_MUXC ("DIVC"),
      .OUTDIVIDER_MUXD ("DIVD"),
      .CLKI_DIV        (PLL_INPUT),
      .CLKOP_ENABLE    ("ENABLED"),
      .CLKOP_DIV       (PLL_OUTPUT),
      .CLKOP_CPHASE    (PLL_OUTPUT / 2 - 1),
      .CLKOP_FPHASE    (0),
      .FEEDBK_PATH     ("CLKOP"),
      .CLKFB_DIV       (PLL_FEEDBACK)
  ) u_pll (
      .RST         (1'b0),
      .STDBY       (1'b0),
      .CLKI        (clk_25mhz),
      .CLKOP       (clk),
      .CLKFB       (clk),
      .CLKINTFB    (),
      .PHASESEL0   (1'b0),
      .PHASESEL1   (1'b0),
      .PHASEDIR    (1'b1),
      .PHASESTEP   (1'b1),
      .PHASELOADREG(1'b1),
      .PLLWAKESYNC (1'b0),
      .ENCLKOP     (1'b0),
      .LOCK        (locked)
  );

  // the button and the lock are of no clock: they reset at once, and the end of a reset is counted
  wire stop = btn_fire1 || !locked;
  always @(posedge clk or posedge stop) begin
    if (stop) begin
      resets <= 3'd0;
      rst    <= 1'b1;
    end else begin
      resets <= (resets == 3'd7) ? resets : resets + 3'd1;
      rst    <= resets != 3'd7;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      ended <= 1'b0;
      code  <= 4'd0;
    end else begin
      ended <= ended || finish;
      code  <= (finish && !ended) ? value[3:0] : code;
    end
  end

  assign led        = {ended, fault, !printed, irq, code};
  assign wifi_gpio0 = 1'b1;

  soc #(
      .DEVICES        (1),
      .AXI            (0),
      .RAM_BYTES      (RAM_BYTES),
      .STORE_BYTES    (STORE_BYTES),
      .RAM_FILE       (RAM_FILE),
      .STORE_FILE     (STORE_FILE),
      .N_Y            (N_Y),
      .N_Z            (N_Z),
      .AHB_W          (AHB_W),
      .AI_RAM_ROWS    (AI_RAM_ROWS),
      .WBUF_ROWS      (WBUF_ROWS),
      .WEIGHT_BITS    (WEIGHT_BITS),
      .PARAM_CHANS    (PARAM_CHANS),
      .LOOK_AHEAD     (LOOK_AHEAD),
      .TILE_ROWS      (TILE_ROWS),
      .POST_SHARE     (POST_SHARE),
      .POOL_LANES     (POOL_LANES),
      .FP16_LANES     (FP16_LANES),
      .KEEP_WEIGHTS   (KEEP_WEIGHTS),
      .WEIGHT_AHEAD   (WEIGHT_AHEAD),
      .FLAT_MAPS      (FLAT_MAPS),
      .DILATION       (DILATION),
      .SUM_PLANES     (SUM_PLANES),
      .OUT32          (OUT32),
      .POST_TABLES    (POST_TABLES),
      .MUL_BITS       (MUL_BITS),
      .PERF           (PERF),
      .PATH           (PATH),
      .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_soc (
      .clk     (clk),
      .rst     (rst),
      .put_full(full),
      .put     (put),
      .finish  (finish),
      .value   (value),
      .fault   (fault),
      .irq     (irq),
      .transfer(transfer),
      .master  (master)
  );

  uart_tx #(
      .CYCLES(BIT_CYCLES)
  ) u_uart (
      .clk (clk),
      .rst (rst),
      .put (put),
      .data(value[7:0]),
      .full(full),
      .tx  (ftdi_rxd),
      .idle(printed)
  );

  wire unused = &{1'b0, value, transfer, master};

endmodule

`resetall
