// SPDX-License-Identifier: Apache-2.0
//
// dma_read_ctrl: the read controller of the DMAC (claim C4 of docs/patent.md section 5). It chooses
// all bursts, writes too.
//
// How it works: every channel proposes its next burst when its FIFO has room for it. Reads go in
// the order list > pixel > bias > weight: pixels are requested only when everything needed before
// them was read, so whatever else is read at that time is needed later. Writes and reads alternate
// when both have something to do. The burst that is chosen is taken from its channel into registers,
// and offered to the master from there, so that choice and check are two short paths. One is chosen
// when the master has room for it, so that it does not go before a more urgent one that comes later;
// earlier only behind a burst of one beat. At most one command per cycle goes to the master.
// A burst outside the blocks of 1 KiB that may be read or written, or beyond the end of the addresses,
// is not given to the master: `refuse` tells of it for a cycle, with the command at cmd_*. One whose
// channel fails before it is given is dropped.
// Handshake: want/take with the channels, valid/ready with the master; `hold` stops new bursts and
// drops the chosen one, `refuse_hold` lets a burst that must be refused wait.

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
    // channels that have failed, with the present cycle
    input  wire [              4:0] failing,
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
    output reg                      cmd_write,
    output reg  [             31:0] cmd_addr,
    output reg  [              4:0] cmd_beats,
    output reg  [              2:0] cmd_size,
    output reg                      cmd_wpop,
    output reg  [        TAG_W-1:0] cmd_tag,
    // the burst at cmd_* is not allowed (pulse); a burst is chosen and not yet given
    output wire                     refuse,
    output reg                      chosen
);

  localparam [2:0] FULL_SIZE = OW[2:0];

  // ---- the choice
  // the last burst was a read: a write may go first now
  reg        turn;
  // the chosen burst may be beyond the end of the addresses
  reg        wrapped;

  wire       rd_any = (rd_want != 4'd0);
  wire       choose_wr = store_want && (turn || !rd_any);
  // the burst before has one beat: without one right behind it the bus would stand still
  wire       short = cmd_beats == 5'd1;
  // nothing is chosen, or it leaves in this cycle
  wire       free = chosen ? short && cmd_ready && !refuse_hold : short || cmd_ready;
  wire       go = (rd_any || store_want) && free && !hold;

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

  assign store_take = go && choose_wr;
  assign rd_take = (go && !choose_wr) ? (4'd1 << sel) : 4'd0;

  // ---- the chosen burst; none crosses 1 KiB, so its first byte decides whether it is allowed
  wire [21:0] block = cmd_addr[31:10];
  wire may_read = block >= guard[`GUARD_READ_FIRST] && block <= guard[`GUARD_READ_LAST];
  wire may_write = block >= guard[`GUARD_WRITE_FIRST] && block <= guard[`GUARD_WRITE_LAST];
  wire allowed = (cmd_write ? may_write : may_read) && !wrapped;
  wire [7:0] fails_by_chan = {3'd0, failing};
  wire fails = fails_by_chan[cmd_tag[`DMA_TAG_CHAN]];

  assign cmd_valid = chosen && allowed && !fails && !hold;
  assign refuse = chosen && !allowed && !fails && !hold && !refuse_hold;
  wire given = cmd_valid && cmd_ready;

  always @(posedge clk) begin
    if (rst) begin
      turn <= 1'b0;
      chosen <= 1'b0;
      cmd_beats <= 5'd0;
    end else begin
      turn <= go ? !choose_wr : turn;
      cmd_beats <= !go ? cmd_beats : choose_wr ? store_beats : rd_beats[sel*5+:5];
      chosen <= go || (chosen && !given && !refuse && !fails && !hold);
    end
  end

  always @(posedge clk) begin
    if (go) begin
      cmd_write <= choose_wr;
      cmd_addr  <= choose_wr ? store_addr : rd_addr[sel*32+:32];
      wrapped   <= choose_wr ? store_wrap : rd_wrap[sel];
      cmd_size  <= choose_wr ? store_size : FULL_SIZE;
      cmd_wpop  <= choose_wr && store_pop;
      cmd_tag   <= choose_wr ? store_tag : rd_tag;
    end
  end

`ifdef FORMAL_dma_read_ctrl
  `include "dma_read_ctrl_props.vh"
`endif

endmodule

`resetall
