// SPDX-License-Identifier: Apache-2.0
//
// dma_read_ctrl: the read controller of the DMAC (claim C4 of docs/patent.md section 5). It chooses
// all bursts, writes too.
//
// How it works: every channel proposes its next burst when its FIFO has room for it. Reads go in
// the order list > pixel > bias > weight: pixels are requested only when everything needed before
// them was read, so whatever else is read at that time is needed later. Writes and reads alternate
// when both have something to do. At most one command per cycle goes to the master.
// A burst outside the blocks of 1 KiB that may be read or written, or beyond the end of the addresses,
// is taken but not given to the master: `refuse` tells of it for a cycle, with the command at cmd_*.
// Handshake: want/take with the channels, valid/ready with the master; `hold` stops new bursts,
// `refuse_hold` lets a burst that must be refused wait.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_read_ctrl #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1,
    parameter TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, stop issuing, no refusals now
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     hold,
    input  wire                     refuse_hold,
    // what may be read and written
    input  wire [  `GUARD_BITS-1:0] guard,
    // proposals of the read channels, 0 list, 1 bias, 2 weight, 3 pixel
    input  wire [              3:0] rd_want,
    output wire [              3:0] rd_take,
    input  wire [         4*32-1:0] rd_addr,
    input  wire [              3:0] rd_wrap,
    input  wire [          4*5-1:0] rd_beats,
    input  wire [              3:0] rd_first,
    input  wire [              3:0] rd_last,
    input  wire [         4*OW-1:0] rd_off,
    input  wire [         4*CW-1:0] rd_end,
    input  wire [4*`OWNER_BITS-1:0] rd_owner,
    // proposal of the write channel
    input  wire                     store_want,
    output wire                     store_take,
    input  wire [             31:0] store_addr,
    input  wire                     store_wrap,
    input  wire [              4:0] store_beats,
    input  wire [              2:0] store_size,
    input  wire                     store_pop,
    input  wire                     store_last,
    input  wire [  `OWNER_BITS-1:0] store_owner,
    // commands to the master
    output wire                     cmd_valid,
    input  wire                     cmd_ready,
    output wire                     cmd_write,
    output wire [             31:0] cmd_addr,
    output wire [              4:0] cmd_beats,
    output wire [              2:0] cmd_size,
    output wire                     cmd_wpop,
    output wire [        TAG_W-1:0] cmd_tag,
    // the burst at cmd_* is not allowed (pulse)
    output wire                     refuse
);

  localparam [2:0] FULL_SIZE = OW[2:0];

  // the last command was a read: a write may go first now
  reg        turn;

  wire       rd_any = (rd_want != 4'd0);
  wire       choose_wr = store_want && (turn || !rd_any);
  wire       given = cmd_valid && cmd_ready;
  wire       go = given || refuse;

  reg  [1:0] sel;
  always @* begin
    if (rd_want[0]) begin
      sel = 2'd0;
    end else if (rd_want[3]) begin
      sel = 2'd3;
    end else if (rd_want[1]) begin
      sel = 2'd1;
    end else begin
      sel = 2'd2;
    end
  end

  wire [TAG_W-1:0] rd_tag = {
    rd_owner[sel*`OWNER_BITS+:`OWNER_BITS],
    1'b0,
    sel,
    rd_first[sel],
    rd_last[sel],
    rd_off[sel*OW+:OW],
    rd_end[sel*CW+:CW]
  };
  wire [TAG_W-1:0] store_tag = {store_owner, 3'd4, 1'b0, store_last, {OW{1'b0}}, {CW{1'b0}}};

  // no burst crosses 1 KiB, so its first byte decides
  wire [21:0] block = cmd_addr[31:10];
  wire [21:0] first_block = choose_wr ? guard[`GUARD_WRITE_FIRST] : guard[`GUARD_READ_FIRST];
  wire [21:0] last_block = choose_wr ? guard[`GUARD_WRITE_LAST] : guard[`GUARD_READ_LAST];
  wire wrapped = choose_wr ? store_wrap : rd_wrap[sel];
  wire allowed = block >= first_block && block <= last_block && !wrapped;
  wire any = (rd_any || store_want) && !hold;

  assign cmd_valid = any && allowed;
  assign refuse = any && !allowed && !refuse_hold;
  assign cmd_write = choose_wr;
  assign cmd_addr = choose_wr ? store_addr : rd_addr[sel*32+:32];
  assign cmd_beats = choose_wr ? store_beats : rd_beats[sel*5+:5];
  assign cmd_size = choose_wr ? store_size : FULL_SIZE;
  assign cmd_wpop = choose_wr && store_pop;
  assign cmd_tag = choose_wr ? store_tag : rd_tag;

  assign store_take = go && choose_wr;
  assign rd_take = (go && !choose_wr) ? (4'd1 << sel) : 4'd0;

  always @(posedge clk) begin
    if (rst) begin
      turn <= 1'b0;
    end else begin
      turn <= go ? !choose_wr : turn;
    end
  end

endmodule

`resetall
