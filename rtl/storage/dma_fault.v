// SPDX-License-Identifier: Apache-2.0
//
// dma_fault: tracks failed channels of the DMAC, and reports their faults.
//
// How it works: a channel fails on an ERROR response or a refused burst. From then until the flush it
// proposes no more bursts. After an ERROR it is muted too: words of later commands already in the master
// are not forwarded (earlier words were). A refused burst never reached the master, so the words in
// flight precede it and are forwarded. Only the first fault of a channel is reported. The read controller
// refuses nothing in the cycle of an ERROR (err_valid), and no burst of a failed channel, so at most one
// fault occurs per cycle.
// Handshake: bus_err is a pulse, bus_fault valid with it; `failing` includes an ERROR of the present
// cycle, `failed` is a register. With run = 0 (abort) nothing is reported.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_fault #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, flush (clears all failures), faults are reported
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   flush,
    input  wire                   run,
    // ERROR on the bus (pulse)
    input  wire                   err_valid,
    input  wire [           31:0] err_addr,
    input  wire [      TAG_W-1:0] err_tag,
    // burst not permitted (pulse)
    input  wire                   refuse,
    input  wire [           31:0] refuse_addr,
    input  wire [      TAG_W-1:0] refuse_tag,
    // channels (0 list, 1 bias, 2 weight, 3 pixel, 4 store): issue no bursts, forward no words
    output reg  [            4:0] failed,
    output wire [            4:0] failing,
    output reg  [            4:0] mute,
    // report
    output reg                    bus_err,
    output reg  [`FAULT_BITS-1:0] bus_fault
);

  wire [TAG_W-1:0] tag = err_valid ? err_tag : refuse_tag;
  wire [      4:0] err_here = err_valid ? 5'd1 << err_tag[`DMA_TAG_CHAN] : 5'd0;
  wire [      4:0] refuse_here = refuse ? 5'd1 << refuse_tag[`DMA_TAG_CHAN] : 5'd0;
  wire             fresh = refuse || (err_here & ~failed) != 5'd0;

  assign failing = failed | err_here;

  always @(posedge clk) begin
    if (rst || flush) begin
      failed <= 5'd0;
      mute   <= 5'd0;
    end else begin
      failed <= failing | refuse_here;
      mute   <= mute | err_here;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      bus_err   <= 1'b0;
      bus_fault <= {`FAULT_BITS{1'b0}};
    end else begin
      bus_err <= fresh && run;
      if (fresh) begin
        bus_fault[`FAULT_ADDR] <= err_valid ? err_addr : refuse_addr;
        bus_fault[`FAULT_CHAN] <= tag[`DMA_TAG_CHAN];
        bus_fault[`FAULT_OWNER] <= tag[`DMA_TAG_OWNER];
        bus_fault[`FAULT_REFUSED] <= !err_valid;
      end
    end
  end

  // the rest of a tag concerns the valid bytes of the words
  wire unused = &{1'b0, tag};

endmodule

`resetall
