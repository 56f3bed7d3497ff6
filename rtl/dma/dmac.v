// SPDX-License-Identifier: Apache-2.0
//
// dmac: the DMA controller between the AHB master and the core (patent claim 4).
//
// Four read channels (ls list, bs bias, wt weight, px pixel), each with a request queue and a
// FIFO; the read controller chooses bursts, the data distributor routes the words that come back
// by their tag; one write channel. cmd_*, wd_*, rsp_* and mst_* are wired name by name to the
// AHB master.
// Handshake: valid/ready on requests and streams. A request is bytes [addr, addr + len), any
// alignment for reads; the stream delivers the bus words that hold them, xx_off and xx_cnt say
// which bytes count, xx_last marks the last word. A channel takes its next request while the
// present one is read. Write data are whole bus words; the last one of a request may be partial.
// Errors: an ERROR answer gives one err_valid pulse, and the master takes no command until dma_abort
// has cleared it. dma_abort (level, one cycle is enough): bursts that were given to the master end
// legally, then all requests and FIFO contents are dropped; dma_idle: nothing is outstanding.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dmac #(
  // data width of the bus: 32, 64 or 128
  parameter AHB_W = 32,
  // depths of the FIFOs, in bus words
  parameter PIX_FIFO_DEPTH = 16,
  parameter WGT_FIFO_DEPTH = 64,
  parameter BIAS_FIFO_DEPTH = 32,
  parameter LIST_FIFO_DEPTH = 8,
  parameter WR_FIFO_DEPTH = 32,
  // derived, not to be set
  parameter OW = $clog2(AHB_W / 8),
  parameter CW = OW + 1,
  parameter TAG_W = 5 + OW + CW
) (
  // clock, synchronous reset, abort
  input  wire              clk,
  input  wire              rst,
  input  wire              dma_abort,
  // list channel: requests, stream
  input  wire              ls_req_valid,
  output wire              ls_req_ready,
  input  wire [31:0]       ls_req_addr,
  input  wire [23:0]       ls_req_len,
  output wire              ls_valid,
  input  wire              ls_ready,
  output wire [AHB_W-1:0]  ls_data,
  output wire [OW-1:0]     ls_off,
  output wire [CW-1:0]     ls_cnt,
  output wire              ls_last,
  // bias channel: requests, stream
  input  wire              bs_req_valid,
  output wire              bs_req_ready,
  input  wire [31:0]       bs_req_addr,
  input  wire [23:0]       bs_req_len,
  output wire              bs_valid,
  input  wire              bs_ready,
  output wire [AHB_W-1:0]  bs_data,
  output wire [OW-1:0]     bs_off,
  output wire [CW-1:0]     bs_cnt,
  output wire              bs_last,
  // weight channel: requests, stream
  input  wire              wt_req_valid,
  output wire              wt_req_ready,
  input  wire [31:0]       wt_req_addr,
  input  wire [23:0]       wt_req_len,
  output wire              wt_valid,
  input  wire              wt_ready,
  output wire [AHB_W-1:0]  wt_data,
  output wire [OW-1:0]     wt_off,
  output wire [CW-1:0]     wt_cnt,
  output wire              wt_last,
  // pixel channel: requests, stream
  input  wire              px_req_valid,
  output wire              px_req_ready,
  input  wire [31:0]       px_req_addr,
  input  wire [23:0]       px_req_len,
  output wire              px_valid,
  input  wire              px_ready,
  output wire [AHB_W-1:0]  px_data,
  output wire [OW-1:0]     px_off,
  output wire [CW-1:0]     px_cnt,
  output wire              px_last,
  // write channel: requests, stream, request finished
  input  wire              wr_req_valid,
  output wire              wr_req_ready,
  input  wire [31:0]       wr_req_addr,
  input  wire [23:0]       wr_req_len,
  input  wire              wr_valid,
  output wire              wr_ready,
  input  wire [AHB_W-1:0]  wr_data,
  output wire              wr_done,
  // bus error: channel 0 list, 1 bias, 2 weight, 3 pixel, 4 write
  output wire              err_valid,
  output wire [31:0]       err_addr,
  output wire [2:0]        err_chan,
  // status: AND circuit, nothing outstanding, a read is outstanding or could be issued
  output wire              wb_fifo_full,
  output wire              dma_idle,
  // all requests of the weight and of the bias channel are sent out
  output wire              wt_quiet,
  output wire              bs_quiet,
  output wire              rd_busy,
  // performance: one pulse per finished data beat
  output wire              bus_rd_beat,
  output wire              bus_wr_beat,
  // commands to the AHB master
  output wire              cmd_valid,
  input  wire              cmd_ready,
  output wire              cmd_write,
  output wire [31:0]       cmd_addr,
  output wire [4:0]        cmd_beats,
  output wire [2:0]        cmd_size,
  output wire              cmd_wpop,
  output wire [TAG_W-1:0]  cmd_tag,
  // write data to the AHB master
  output wire [AHB_W-1:0]  wd_data,
  input  wire              wd_pop,
  // finished beats from the AHB master
  input  wire              rsp_valid,
  input  wire              rsp_write,
  input  wire              rsp_first,
  input  wire              rsp_last,
  input  wire [TAG_W-1:0]  rsp_tag,
  input  wire [AHB_W-1:0]  rsp_data,
  // error and state of the AHB master
  input  wire              mst_err_valid,
  input  wire [31:0]       mst_err_addr,
  input  wire [TAG_W-1:0]  mst_err_tag,
  output wire              mst_clear,
  input  wire              mst_idle
);

  // -------------------------------------------------------------------------------------------
  // abort: refuse, wait for the master, drop everything
  // -------------------------------------------------------------------------------------------
  reg  aborting;
  reg  error;
  wire flush = aborting && mst_idle;
  wire run = !dma_abort && !aborting;

  always @(posedge clk) begin
    if (rst) begin
      aborting <= 1'b0;
      error <= 1'b0;
    end else begin
      aborting <= dma_abort || (aborting && !flush);
      error <= !flush && (error || mst_err_valid);
    end
  end

  assign mst_clear = flush;
  assign err_valid = mst_err_valid;
  assign err_addr = mst_err_addr;
  assign err_chan = mst_err_tag[TAG_W-1 -: 3];

  // -------------------------------------------------------------------------------------------
  // read channels
  // -------------------------------------------------------------------------------------------
  wire [3:0]       rd_want;
  wire [3:0]       rd_take;
  wire [4*32-1:0]  rd_addr;
  wire [4*5-1:0]   rd_beats;
  wire [3:0]       rd_first;
  wire [3:0]       rd_last;
  wire [4*OW-1:0]  rd_off;
  wire [4*CW-1:0]  rd_end;
  wire [3:0]       rd_full;
  wire [3:0]       rd_idle;
  wire [3:0]       push;
  wire [OW-1:0]    push_off;
  wire [CW-1:0]    push_cnt;
  wire             push_last;
  wire             write_end;

  dma_read_channel #(
    .AHB_W(AHB_W),
    .FIFO_DEPTH(LIST_FIFO_DEPTH)
  ) u_list (
    .clk(clk), .rst(rst), .flush(flush), .run(run),
    .req_valid(ls_req_valid), .req_ready(ls_req_ready),
    .req_addr(ls_req_addr), .req_len(ls_req_len),
    .cmd_want(rd_want[0]), .cmd_take(rd_take[0]), .cmd_addr(rd_addr[32*0 +: 32]),
    .cmd_beats(rd_beats[5*0 +: 5]), .cmd_first(rd_first[0]), .cmd_last(rd_last[0]),
    .cmd_off(rd_off[OW*0 +: OW]), .cmd_end(rd_end[CW*0 +: CW]),
    .push(push[0]), .push_data(rsp_data), .push_off(push_off), .push_cnt(push_cnt),
    .push_last(push_last),
    .out_valid(ls_valid), .out_ready(ls_ready), .out_data(ls_data), .out_off(ls_off),
    .out_cnt(ls_cnt), .out_last(ls_last),
    .full(rd_full[0]), .idle(rd_idle[0])
  );

  dma_read_channel #(
    .AHB_W(AHB_W),
    .FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_bias (
    .clk(clk), .rst(rst), .flush(flush), .run(run),
    .req_valid(bs_req_valid), .req_ready(bs_req_ready),
    .req_addr(bs_req_addr), .req_len(bs_req_len),
    .cmd_want(rd_want[1]), .cmd_take(rd_take[1]), .cmd_addr(rd_addr[32*1 +: 32]),
    .cmd_beats(rd_beats[5*1 +: 5]), .cmd_first(rd_first[1]), .cmd_last(rd_last[1]),
    .cmd_off(rd_off[OW*1 +: OW]), .cmd_end(rd_end[CW*1 +: CW]),
    .push(push[1]), .push_data(rsp_data), .push_off(push_off), .push_cnt(push_cnt),
    .push_last(push_last),
    .out_valid(bs_valid), .out_ready(bs_ready), .out_data(bs_data), .out_off(bs_off),
    .out_cnt(bs_cnt), .out_last(bs_last),
    .full(rd_full[1]), .idle(rd_idle[1])
  );

  dma_read_channel #(
    .AHB_W(AHB_W),
    .FIFO_DEPTH(WGT_FIFO_DEPTH)
  ) u_weight (
    .clk(clk), .rst(rst), .flush(flush), .run(run),
    .req_valid(wt_req_valid), .req_ready(wt_req_ready),
    .req_addr(wt_req_addr), .req_len(wt_req_len),
    .cmd_want(rd_want[2]), .cmd_take(rd_take[2]), .cmd_addr(rd_addr[32*2 +: 32]),
    .cmd_beats(rd_beats[5*2 +: 5]), .cmd_first(rd_first[2]), .cmd_last(rd_last[2]),
    .cmd_off(rd_off[OW*2 +: OW]), .cmd_end(rd_end[CW*2 +: CW]),
    .push(push[2]), .push_data(rsp_data), .push_off(push_off), .push_cnt(push_cnt),
    .push_last(push_last),
    .out_valid(wt_valid), .out_ready(wt_ready), .out_data(wt_data), .out_off(wt_off),
    .out_cnt(wt_cnt), .out_last(wt_last),
    .full(rd_full[2]), .idle(rd_idle[2])
  );

  dma_read_channel #(
    .AHB_W(AHB_W),
    .FIFO_DEPTH(PIX_FIFO_DEPTH)
  ) u_pixel (
    .clk(clk), .rst(rst), .flush(flush), .run(run),
    .req_valid(px_req_valid), .req_ready(px_req_ready),
    .req_addr(px_req_addr), .req_len(px_req_len),
    .cmd_want(rd_want[3]), .cmd_take(rd_take[3]), .cmd_addr(rd_addr[32*3 +: 32]),
    .cmd_beats(rd_beats[5*3 +: 5]), .cmd_first(rd_first[3]), .cmd_last(rd_last[3]),
    .cmd_off(rd_off[OW*3 +: OW]), .cmd_end(rd_end[CW*3 +: CW]),
    .push(push[3]), .push_data(rsp_data), .push_off(push_off), .push_cnt(push_cnt),
    .push_last(push_last),
    .out_valid(px_valid), .out_ready(px_ready), .out_data(px_data), .out_off(px_off),
    .out_cnt(px_cnt), .out_last(px_last),
    .full(rd_full[3]), .idle(rd_idle[3])
  );

  dma_wb_full u_wb_full (
    .weight_full(rd_full[2]), .bias_full(rd_full[1]), .wb_fifo_full(wb_fifo_full)
  );

  dma_distributor #(
    .AHB_W(AHB_W)
  ) u_distributor (
    .rsp_valid(rsp_valid), .rsp_write(rsp_write), .rsp_first(rsp_first), .rsp_last(rsp_last),
    .rsp_tag(rsp_tag), .push(push), .push_off(push_off), .push_cnt(push_cnt),
    .push_last(push_last), .wr_done(write_end)
  );

  // a write that ends during an abort is nobody's any more
  assign wr_done = write_end && run;

  // -------------------------------------------------------------------------------------------
  // write channel
  // -------------------------------------------------------------------------------------------
  wire         w_want;
  wire         w_take;
  wire [31:0]  w_addr;
  wire [4:0]   w_beats;
  wire [2:0]   w_size;
  wire         w_pop;
  wire         w_last;
  wire         w_idle;

  dma_write #(
    .AHB_W(AHB_W),
    .FIFO_DEPTH(WR_FIFO_DEPTH)
  ) u_write (
    .clk(clk), .rst(rst), .flush(flush), .run(run),
    .wr_req_valid(wr_req_valid), .wr_req_ready(wr_req_ready), .wr_req_addr(wr_req_addr),
    .wr_req_len(wr_req_len), .wr_valid(wr_valid), .wr_ready(wr_ready), .wr_data(wr_data),
    .cmd_want(w_want), .cmd_take(w_take), .cmd_addr(w_addr), .cmd_beats(w_beats),
    .cmd_size(w_size), .cmd_wpop(w_pop), .cmd_last(w_last),
    .wd_data(wd_data), .wd_pop(wd_pop), .idle(w_idle)
  );

  // -------------------------------------------------------------------------------------------
  // choice of the next burst
  // -------------------------------------------------------------------------------------------
  dma_read_ctrl #(
    .AHB_W(AHB_W)
  ) u_read_ctrl (
    .clk(clk), .rst(rst), .hold(!run),
    .rd_want(rd_want), .rd_take(rd_take), .rd_addr(rd_addr), .rd_beats(rd_beats),
    .rd_first(rd_first), .rd_last(rd_last), .rd_off(rd_off), .rd_end(rd_end),
    .wr_want(w_want), .wr_take(w_take), .wr_addr(w_addr), .wr_beats(w_beats),
    .wr_size(w_size), .wr_pop(w_pop), .wr_last(w_last),
    .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_write(cmd_write), .cmd_addr(cmd_addr),
    .cmd_beats(cmd_beats), .cmd_size(cmd_size), .cmd_wpop(cmd_wpop), .cmd_tag(cmd_tag)
  );

  // -------------------------------------------------------------------------------------------
  // status
  // -------------------------------------------------------------------------------------------
  // beats of reads that the master still owes
  reg  [15:0]  owed;
  wire [15:0]  owed_add = (rd_take != 4'd0) ? {11'd0, cmd_beats} : 16'd0;

  always @(posedge clk) begin
    if (rst || flush) begin
      owed <= 16'd0;
    end else begin
      owed <= owed + owed_add - {15'd0, bus_rd_beat};
    end
  end

  assign bs_quiet = rd_idle[1];
  assign wt_quiet = rd_idle[2];
  assign bus_rd_beat = rsp_valid && !rsp_write;
  assign bus_wr_beat = rsp_valid && rsp_write;
  assign rd_busy = (owed != 16'd0) || (rd_want != 4'd0);

  // the tag of a finished write is seen one cycle after the write channel went idle at the latest,
  // so idle waits for the master too
  assign dma_idle = mst_idle && (rd_idle == 4'b1111) && w_idle && !error && !mst_err_valid;

  // the rest of the tag of a failed beat is of no interest
  wire _unused_ok = &{1'b0, mst_err_tag[TAG_W-4:0], rd_full[3], rd_full[0]};

endmodule

`resetall
