// SPDX-License-Identifier: Apache-2.0
//
// Everything around openkpu_axi in the whole-device bench: the host's adapter, the storage, the rules
// and the counters of beats. Ports, counters and names inside are those of ahb_fabric where the bench
// looks at them; the bus has no rival, and a burst is never lost.
`resetall
`timescale 1ns/1ps
`default_nettype none

module axi_fabric #(
  // as in ahb_fabric
  parameter AHB_W = 32,
  parameter DEPTH = 65536,
  parameter USUAL = DEPTH,
  parameter REC_DEPTH = 1024,
  parameter CHECK = 1
) (
  input  wire               clk,
  input  wire               rst,
  // seed of all random decisions; the rest as in axi_storage
  input  wire [31:0]        cfg_seed,
  input  wire [7:0]         cfg_wait_prob,
  input  wire [4:0]         cfg_latency,
  input  wire [31:0]        cfg_err_lo,
  input  wire [31:0]        cfg_err_hi,
  input  wire               cfg_mute,
  // AXI4 of the device, channels of the master, then of the storage
  input  wire [31:0]        awaddr,
  input  wire [7:0]         awlen,
  input  wire [2:0]         awsize,
  input  wire               awvalid,
  output wire               awready,
  input  wire [AHB_W-1:0]   wdata,
  input  wire [AHB_W/8-1:0] wstrb,
  input  wire               wlast,
  input  wire               wvalid,
  output wire               wready,
  output wire [1:0]         bresp,
  output wire               bvalid,
  input  wire               bready,
  input  wire [31:0]        araddr,
  input  wire [7:0]         arlen,
  input  wire [2:0]         arsize,
  input  wire               arvalid,
  output wire               arready,
  output wire [AHB_W-1:0]   rdata,
  output wire [1:0]         rresp,
  output wire               rlast,
  output wire               rvalid,
  input  wire               rready,
  // as in ahb_fabric
  output wire [31:0]        rnd_out,
  output wire [31:0]        errors,
  output reg  [31:0]        rd_beats,
  output reg  [31:0]        wr_beats,
  output reg  [31:0]        error_answers,
  output reg  [31:0]        bursts,
  output reg  [31:0]        wr_lo,
  output reg  [31:0]        wr_hi
);
  reg  [31:0] rnd;
  wire [31:0] rnd_a = rnd ^ (rnd << 13);
  wire [31:0] rnd_b = rnd_a ^ (rnd_a >> 17);
  always @(posedge clk) rnd <= rst ? (cfg_seed ^ 32'h9E37_79B9) | 32'd1 : rnd_b ^ (rnd_b << 5);
  assign rnd_out = rnd;

  reg [31:0] words;
  initial begin
    if (!$value$plusargs("store_words=%d", words)) words = USUAL;
    if (words > DEPTH) begin
      $display("store_words=%0d: expected at most %0d", words, DEPTH);
      $fatal;
    end
  end

  wire beat, dp_write;
  wire [31:0] dp_addr;
  axi_storage #(.AHB_W(AHB_W), .DEPTH(DEPTH)) u_storage (
    .clk(clk), .rst(rst), .rnd({rnd[12:0], rnd[31:13]}), .words(words), .cfg_wait_prob(cfg_wait_prob),
    .cfg_latency(cfg_latency), .cfg_err_lo(cfg_err_lo), .cfg_err_hi(cfg_err_hi), .cfg_mute(cfg_mute),
    .awaddr(awaddr), .awlen(awlen), .awsize(awsize), .awvalid(awvalid), .awready(awready),
    .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready),
    .bresp(bresp), .bvalid(bvalid), .bready(bready),
    .araddr(araddr), .arlen(arlen), .arsize(arsize), .arvalid(arvalid), .arready(arready),
    .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready),
    .beat(beat), .beat_write(dp_write), .beat_addr(dp_addr)
  );

  generate
    if (CHECK != 0) begin : g_check
      axi_checker #(.AHB_W(AHB_W)) u_check (
        .clk(clk), .rst(rst), .awaddr(awaddr), .awlen(awlen), .awsize(awsize), .awvalid(awvalid),
        .awready(awready), .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready),
        .bvalid(bvalid), .bready(bready), .araddr(araddr), .arlen(arlen), .arsize(arsize),
        .arvalid(arvalid), .arready(arready), .rvalid(rvalid), .rready(rready), .errors(errors)
      );
    end else begin : g_no_check
      assign errors = 32'd0;
    end
  endgenerate

  // beats are not recorded; a transfer is on the bus while one waits or ends
  reg [69:0] rec [0:REC_DEPTH-1];
  wire dp_dut = arvalid | rvalid | awvalid | wvalid | bready;

  always @(posedge clk) begin
    if (rst) begin
      {rd_beats, wr_beats, error_answers, bursts} <= 128'd0;
      wr_lo <= 32'hFFFF_FFFF;
      wr_hi <= 32'd0;
    end else begin
      bursts <= bursts + {31'd0, arvalid & arready} + {31'd0, awvalid & awready};
      rd_beats <= rd_beats + {31'd0, rvalid & rready & ~rresp[1]};
      wr_beats <= wr_beats + {31'd0, wvalid & wready};
      error_answers <= error_answers + {31'd0, rvalid & rready & rresp[1]} + {31'd0, bvalid & bready & bresp[1]};
      if (beat && dp_write) begin
        wr_lo <= (dp_addr < wr_lo) ? dp_addr : wr_lo;
        wr_hi <= (dp_addr > wr_hi) ? dp_addr : wr_hi;
      end
    end
  end
endmodule

`resetall
