// SPDX-License-Identifier: Apache-2.0
//
// soc_cpu: picorv32 (RV32IMC) as an AHB master.
//
// How it works: the core holds an access until it is acknowledged. In the address phase the access is driven as a single
// transfer of its size, which follows from the byte strobes; the data phase acknowledges it. After an ERROR response the
// core stops, and `fault` stays high.
// Handshake: AMBA 2.0 AHB master without bursts; waits for HGRANT and HREADY.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc_cpu #(
    // bits of the bus
    parameter W     = 32,
    // address behind the RAM, where the stack begins
    parameter STACK = 32'h0002_0000
) (
    // clock, synchronous reset
    input  wire         clk,
    input  wire         rst,
    // AHB master
    output wire         hbusreq,
    input  wire         hgrant,
    output wire [ 31:0] haddr,
    output wire [  1:0] htrans,
    output wire         hwrite,
    output wire [  2:0] hsize,
    output wire [W-1:0] hwdata,
    input  wire         hready,
    input  wire [  1:0] hresp,
    input  wire [W-1:0] hrdata,
    // interrupts 3 and up, levels
    input  wire [  2:0] irq,
    // the core has stopped, or met an ERROR response
    output wire         fault
);

  localparam LANES = W / 32;

  wire mem_valid, trap;
  wire [31:0] mem_addr, mem_wdata;
  wire [3:0] mem_wstrb;
  reg owner, data, failed;

  // ---- address phase: the byte strobes give the size and the lowest bits
  wire write = mem_wstrb != 4'd0;
  wire half = mem_wstrb == 4'b0011 || mem_wstrb == 4'b1100;
  wire whole = !write || mem_wstrb == 4'b1111;
  wire [1:0] low = whole ? 2'd0 : half ? {mem_wstrb[2], 1'b0} : {mem_wstrb[3] | mem_wstrb[2], mem_wstrb[3] | mem_wstrb[1]};
  wire asks = mem_valid && !data && !failed;

  assign hbusreq = asks;
  assign haddr   = {mem_addr[31:2], low};
  assign htrans  = (owner && asks) ? 2'b10 : 2'b00;
  assign hwrite  = write;
  assign hsize   = whole ? 3'd2 : half ? 3'd1 : 3'd0;
  assign hwdata  = {LANES{mem_wdata}};

  always @(posedge clk) begin
    if (rst) begin
      owner  <= 1'b0;
      data   <= 1'b0;
      failed <= 1'b0;
    end else begin
      owner  <= hready ? hgrant : owner;
      data   <= hready ? htrans[1] : data;
      failed <= failed || (data && hready && hresp != 2'b00);
    end
  end

  // ---- data phase
  wire [31:0] word;
  generate
    if (LANES == 1) begin : g_narrow
      assign word = hrdata;
    end else begin : g_wide
      reg [$clog2(LANES)-1:0] lane;
      always @(posedge clk) lane <= hready ? mem_addr[2+:$clog2(LANES)] : lane;
      assign word = hrdata[32*lane+:32];
    end
  endgenerate

  assign fault = trap || failed;
  wire unused = &{1'b0, mem_addr[1:0]};

  picorv32 #(
      .COMPRESSED_ISA  (1),
      .ENABLE_MUL      (1),
      .ENABLE_DIV      (1),
      .BARREL_SHIFTER  (1),
      .ENABLE_IRQ      (1),
      .ENABLE_IRQ_QREGS(0),
      .MASKED_IRQ      (32'hffff_ffc0),
      .LATCHED_IRQ     (32'h0000_0007),
      .PROGADDR_RESET  (32'h0000_0000),
      .PROGADDR_IRQ    (32'h0000_0010),
      .STACKADDR       (STACK)
  ) u_core (
      .clk         (clk),
      .resetn      (!rst),
      .trap        (trap),
      .mem_valid   (mem_valid),
      .mem_instr   (),
      .mem_ready   (data && hready && hresp == 2'b00),
      .mem_addr    (mem_addr),
      .mem_wdata   (mem_wdata),
      .mem_wstrb   (mem_wstrb),
      .mem_rdata   (word),
      .mem_la_read (),
      .mem_la_write(),
      .mem_la_addr (),
      .mem_la_wdata(),
      .mem_la_wstrb(),
      .pcpi_valid  (),
      .pcpi_insn   (),
      .pcpi_rs1    (),
      .pcpi_rs2    (),
      .pcpi_wr     (1'b0),
      .pcpi_rd     (32'd0),
      .pcpi_wait   (1'b0),
      .pcpi_ready  (1'b0),
      .irq         ({26'd0, irq, 3'd0}),
      .eoi         (),
      .trace_valid (),
      .trace_data  ()
  );

endmodule

`resetall
