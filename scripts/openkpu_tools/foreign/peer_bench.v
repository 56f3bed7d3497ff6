// SPDX-License-Identifier: Apache-2.0
//
// An accelerator that NNgen has generated (module `peer`), in front of the storage of the whole-device
// bench: `make bench-peer`.
//
// Reads memory.hex into the storage, writes 1 to the accelerator's start register, counts, and writes
// the whole storage to result.hex. It prints the cycles from the one in which the start is written to
// the one in which the last word of the result is, and the number of words written. Storage without
// wait states: the first word of a read comes in the cycle behind its address, a word in each cycle
// behind it, and reads and writes pass each other.
`resetall
`timescale 1ns/1ps
`default_nettype none

module peer_bench #(
  // 32-bit words of storage, and of the result
  parameter DEPTH = 65536,
  parameter RESULT = 4096,
  // byte address of the start register; cycles after which the bench gives up
  parameter START = 16,
  parameter LIMIT = 1000000
) (
  input wire clk
);
  localparam RESET = 100;  // cycles
  localparam QUIET = 2000;  // cycles after the last word, in which none may follow

  wire [31:0] awaddr, wdata, araddr, rdata;
  wire [7:0] awlen, arlen;
  wire [2:0] awsize, arsize;
  wire [3:0] wstrb;
  wire [1:0] bresp, rresp;
  wire awvalid, awready, wvalid, wready, wlast, bvalid, bready;
  wire arvalid, arready, rvalid, rready, rlast;
  wire start_awready, start_wready;
  reg resetn, start_aw, start_w;
  integer now, start, last, words;

  axi_storage #(.AHB_W(32), .DEPTH(DEPTH)) u_storage (
    .clk(clk), .rst(!resetn), .rnd(32'd0), .words(DEPTH),
    .cfg_wait_prob(8'd0), .cfg_latency(5'd0), .cfg_err_lo(32'd0), .cfg_err_hi(32'd0),
    .cfg_mute(1'b0),
    .awaddr(awaddr), .awlen(awlen), .awsize(awsize), .awvalid(awvalid), .awready(awready),
    .wdata(wdata), .wstrb(wstrb), .wlast(wlast), .wvalid(wvalid), .wready(wready),
    .bresp(bresp), .bvalid(bvalid), .bready(bready),
    .araddr(araddr), .arlen(arlen), .arsize(arsize), .arvalid(arvalid), .arready(arready),
    .rdata(rdata), .rresp(rresp), .rlast(rlast), .rvalid(rvalid), .rready(rready),
    .beat(), .beat_write(), .beat_addr()
  );

  peer u_peer (
    .CLK(clk), .RESETN(resetn), .irq(),
    .maxi_awaddr(awaddr), .maxi_awlen(awlen), .maxi_awsize(awsize), .maxi_awburst(),
    .maxi_awlock(), .maxi_awcache(), .maxi_awprot(), .maxi_awqos(), .maxi_awuser(),
    .maxi_awvalid(awvalid), .maxi_awready(awready),
    .maxi_wdata(wdata), .maxi_wstrb(wstrb), .maxi_wlast(wlast), .maxi_wvalid(wvalid),
    .maxi_wready(wready), .maxi_bresp(bresp), .maxi_bvalid(bvalid), .maxi_bready(bready),
    .maxi_araddr(araddr), .maxi_arlen(arlen), .maxi_arsize(arsize), .maxi_arburst(),
    .maxi_arlock(), .maxi_arcache(), .maxi_arprot(), .maxi_arqos(), .maxi_aruser(),
    .maxi_arvalid(arvalid), .maxi_arready(arready),
    .maxi_rdata(rdata), .maxi_rresp(rresp), .maxi_rlast(rlast), .maxi_rvalid(rvalid),
    .maxi_rready(rready),
    .saxi_awaddr(START), .saxi_awcache(4'd0), .saxi_awprot(3'd0), .saxi_awvalid(start_aw),
    .saxi_awready(start_awready), .saxi_wdata(32'd1), .saxi_wstrb(4'hf), .saxi_wvalid(start_w),
    .saxi_wready(start_wready), .saxi_bresp(), .saxi_bvalid(), .saxi_bready(1'b1),
    .saxi_araddr(32'd0), .saxi_arcache(4'd0), .saxi_arprot(3'd0), .saxi_arvalid(1'b0),
    .saxi_arready(), .saxi_rdata(), .saxi_rresp(), .saxi_rvalid(), .saxi_rready(1'b1)
  );

  initial begin
    $readmemh("memory.hex", u_storage.mem);
    {now, start, last, words} = 128'd0;
    {resetn, start_aw, start_w} = 3'd0;
  end

  always @(posedge clk) begin
    now <= now + 1;
    resetn <= now >= RESET;
    start_aw <= now == 2 * RESET || start_aw && !start_awready;
    start_w <= now == 2 * RESET || start_w && !start_wready;
    if (start_w && start_wready) start <= now;
    if (wvalid && wready) begin
      last <= now;
      words <= words + 1;
    end
    if (words >= RESULT && now > last + QUIET || now > LIMIT) begin
      $display("cycles %0d words %0d", last - start, words);
      $writememh("result.hex", u_storage.mem);
      $finish;
    end
  end
endmodule

`resetall
