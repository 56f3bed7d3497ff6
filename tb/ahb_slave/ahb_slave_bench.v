// SPDX-License-Identifier: Apache-2.0
//
// ahb_slave_bench: the AHB slave with 16 registers behind it, and HREADY as the decoder makes it.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module ahb_slave_bench #(
  parameter PRIVILEGED = 0,
  parameter AI_RAM_ROWS = 16384
) (
  input  wire         clk,
  input  wire         rst,
  // another slave owns the data phase, and is ready
  input  wire         other_phase,
  input  wire         other_ready,
  input  wire         s_ahb_hsel,
  input  wire [31:0]  s_ahb_haddr,
  input  wire [1:0]   s_ahb_htrans,
  input  wire         s_ahb_hwrite,
  input  wire [2:0]   s_ahb_hsize,
  input  wire [2:0]   s_ahb_hburst,
  input  wire [3:0]   s_ahb_hprot,
  input  wire [31:0]  s_ahb_hwdata,
  output wire         s_ahb_hready_in,
  output wire         s_ahb_hready_out,
  output wire [1:0]   s_ahb_hresp,
  output wire [31:0]  s_ahb_hrdata,
  // AI RAM side
  output wire         window_req,
  output wire         window_we,
  output wire [20:0]  window_addr,
  output wire [3:0]   window_wstrb,
  output wire [31:0]  window_wdata,
  input  wire         window_ack,
  input  wire [31:0]  window_rdata,
  // strobes on the register side
  output reg  [31:0]  reg_writes,
  output reg  [31:0]  reg_reads
);

  wire         reg_wr;
  wire         reg_rd;
  wire [9:0]   reg_next;
  reg  [9:0]   reg_word;
  wire         reg_command;
  wire [31:0]  reg_wdata;
  reg  [31:0]  regs [0:15];
  // registers exist at 0x000..0x03C
  wire         reg_err = (reg_word >= 10'h010);
  integer      i;

  assign s_ahb_hready_in = other_phase ? other_ready : s_ahb_hready_out;

  ahb_slave #(
    .AI_RAM_ROWS(AI_RAM_ROWS), .PRIVILEGED(PRIVILEGED)
  ) u_slave (
    .clk(clk), .rst(rst),
    .s_ahb_hsel(s_ahb_hsel), .s_ahb_haddr(s_ahb_haddr), .s_ahb_htrans(s_ahb_htrans),
    .s_ahb_hwrite(s_ahb_hwrite), .s_ahb_hsize(s_ahb_hsize), .s_ahb_hburst(s_ahb_hburst),
    .s_ahb_hprot(s_ahb_hprot), .s_ahb_hwdata(s_ahb_hwdata), .s_ahb_hready_in(s_ahb_hready_in),
    .s_ahb_hready_out(s_ahb_hready_out), .s_ahb_hresp(s_ahb_hresp), .s_ahb_hrdata(s_ahb_hrdata),
    .reg_wr(reg_wr), .reg_rd(reg_rd), .reg_next(reg_next), .reg_command(reg_command), .reg_wdata(reg_wdata),
    .reg_rdata(regs[reg_word[3:0]]), .reg_err((reg_wr || reg_rd) && reg_err),
    .window_req(window_req), .window_we(window_we), .window_addr(window_addr), .window_wstrb(window_wstrb), .window_wdata(window_wdata),
    .window_ack(window_ack), .window_rdata(window_rdata)
  );

  always @(posedge clk) reg_word <= reg_next;
  always @(posedge clk) begin
    if (rst) begin
      reg_writes <= 32'd0;
      reg_reads <= 32'd0;
      for (i = 0; i < 16; i = i + 1) begin
        regs[i] <= 32'd0;
      end
    end else begin
      if (reg_wr && !reg_err) begin
        regs[reg_word[3:0]] <= reg_wdata;
        reg_writes <= reg_writes + 32'd1;
      end
      if (reg_rd && !reg_err) begin
        reg_reads <= reg_reads + 32'd1;
      end
    end
  end

endmodule

`resetall
