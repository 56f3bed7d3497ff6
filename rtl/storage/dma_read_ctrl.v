// SPDX-License-Identifier: Apache-2.0
//
// dma_read_ctrl: the read controller of the DMAC (claim C4 of docs/patent.md section 5). It arbitrates
// all bursts, those of writes too.
//
// How it works: a read channel requests a burst one cycle ahead, when its FIFO has room for it; the
// winner is selected in that cycle. Reads have the priority list > pixel > bias > weight: pixels are
// requested only after everything needed before them was read, so all other reads at that time are needed
// later. With share that is not so, and pixels and the two others take turns. Writes and reads alternate
// when both are pending. The selected burst moves from its channel into registers, and is offered to the
// master from there, so that selection and check are two short paths. A burst is selected only when the
// master has room for it, so that it does not overtake a more urgent one that arrives later; earlier only
// behind a single-beat burst. The master gets at most one command per cycle. A burst outside the permitted
// 1 KiB blocks, or beyond the last address, is not issued: `refuse` reports it for a cycle, with the command
// at cmd. A burst whose channel fails before it is issued is dropped.
// Handshake: channels wait until their burst is accepted, the selected burst waits for cmd_ready; `hold`
// drops the selected burst and those accepted meanwhile, `refuse_hold` delays the refusal of a burst.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module dma_read_ctrl #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW = $clog2(AHB_W / 8),
    parameter TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, stop issuing, no refusals now
    input  wire                   clk,
    input  wire                   rst,
    input  wire                   hold,
    input  wire                   refuse_hold,
    // failed channels, including failures of this cycle
    input  wire [            4:0] failing,
    // pixels take turns with biases and weights
    input  wire                   share,
    // permitted windows of reads and writes
    input  wire [`GUARD_BITS-1:0] guard,
    // read channels that request a burst for the next cycle, 0 list, 1 bias, 2 weight, 3 pixel; the
    // channel selected for it
    input  wire [            3:0] rd_next,
    output reg  [            1:0] rd_next_sel,
    // channels that request one now; burst of the selected channel, accepted
    output reg  [            3:0] rd_want,
    output wire                   rd_take,
    input  wire [`BURST_BITS-1:0] rd_burst,
    // proposal of the write channel
    input  wire                   store_want,
    output wire                   store_take,
    input  wire [`BURST_BITS-1:0] store_burst,
    // commands to the master
    output wire                   cmd_valid,
    input  wire                   cmd_ready,
    output reg  [  `CMD_BITS-1:0] cmd,
    // the burst at cmd is not permitted (pulse); a burst is selected and not yet issued
    output wire                   refuse,
    output reg                    chosen
);

  // ---- selection
  // the last burst was a read: a write may go first now
  reg  turn;
  // the selected burst may lie beyond the last address
  reg  wrapped;

  wire rd_any = (rd_want != 4'd0);
  wire choose_wr = store_want && (turn || !rd_any);
  // the previous burst has one beat: without another directly behind it the bus would idle
  reg  short;
  // nothing is selected, or it leaves in this cycle
  wire free = chosen ? short && cmd_ready && !refuse_hold : short || cmd_ready;
  wire go = (rd_any || store_want) && free;

  // the present selection, and the last burst of a read, is that of the pixels
  reg pixels, after_pixels;
  wire yields = share && after_pixels && (rd_next[1] || rd_next[2]);
  always @(posedge clk) begin
    pixels <= rd_next_sel == 2'd3;
    after_pixels <= !rst && (rd_take ? pixels : after_pixels);
  end

  always @* begin
    if (rd_next[0]) begin
      rd_next_sel = 2'd0;
    end else if (rd_next[3] && !yields) begin
      rd_next_sel = 2'd3;
    end else if (rd_next[1]) begin
      rd_next_sel = 2'd1;
    end else begin
      rd_next_sel = 2'd2;
    end
  end

  always @(posedge clk) begin
    if (rst || hold) rd_want <= 4'd0;
    else rd_want <= rd_next;
  end

  wire [`BURST_BITS-1:0] burst = choose_wr ? store_burst : rd_burst;

  wire [`CMD_BITS-1:0] burst_cmd = burst[`BURST_CMD];
  wire [4:0] burst_beats = burst_cmd[`CMD_BEATS];

  assign store_take = go && choose_wr;
  assign rd_take = go && !choose_wr;

  // ---- the selected burst; none crosses 1 KiB, so its first byte decides whether it is permitted
  wire [31:0] addr = cmd[`CMD_ADDR];
  wire [21:0] block = addr[31:10];
  wire may_read = block >= guard[`GUARD_READ_FIRST] && block <= guard[`GUARD_READ_LAST];
  wire may_write = block >= guard[`GUARD_WRITE_FIRST] && block <= guard[`GUARD_WRITE_LAST];
  wire allowed = (cmd[`CMD_WRITE] ? may_write : may_read) && !wrapped;
  wire [7:0] fails_by_chan = {3'd0, failing};
  wire [TAG_W-1:0] tag = cmd[`CMD_TAG];
  wire fails = fails_by_chan[tag[`DMA_TAG_CHAN]];

  assign cmd_valid = chosen && allowed && !fails && !hold;
  assign refuse = chosen && !allowed && !fails && !hold && !refuse_hold;
  wire given = cmd_valid && cmd_ready;

  always @(posedge clk) begin
    if (rst) begin
      turn   <= 1'b0;
      chosen <= 1'b0;
    end else begin
      turn   <= go ? !choose_wr : turn;
      chosen <= !hold && (go || (chosen && !given && !refuse && !fails));
    end
  end

  // after a reset there is no previous burst
  always @(posedge clk) begin
    if (rst) begin
      cmd <= {`CMD_BITS{1'b0}};
      short <= 1'b0;
      wrapped <= 1'b0;
    end else if (go) begin
      cmd <= burst_cmd;
      short <= burst_beats == 5'd1;
      wrapped <= burst[`BURST_WRAP];
    end
  end

  // only owner, channel and block matter here
  wire unused = &{1'b0, addr[9:0], tag};

`ifdef FORMAL_dma_read_ctrl
  `include "dma_read_ctrl_props.vh"
`endif

endmodule

`resetall
