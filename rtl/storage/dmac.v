// SPDX-License-Identifier: Apache-2.0
//
// dmac: the DMA controller between the AHB master and the core (claim C4 of docs/patent.md
// section 5).
//
// How it works: four read channels (list, bias, weight, pixel), each with a request queue and a
// FIFO; the read controller chooses bursts, the data distributor routes the words that come back
// by their tag; one write channel (store). cmd_*, wd_*, rsp_* and mst_* belong to the AHB master.
// Handshake: valid/ready on requests and streams. A request is bytes [addr, addr + len), any
// alignment for reads; the stream delivers the bus words that hold them, and says for each which
// bytes count and whether it is the last. A channel accepts its next request while the present one
// is read. Write data are whole bus words; the last one of a request may be partial.
// Errors: after an ERROR answer (mst_err_valid) the master takes no command until dma_abort has
// cleared it. dma_abort (level, one cycle is enough): bursts that were given to the master end
// legally, then all requests and FIFO contents are dropped; dma_idle: nothing is outstanding.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

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
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  dma_abort,
    // list channel: requests, stream
    input  wire                  list_req_valid,
    output wire                  list_req_ready,
    input  wire [ `REQ_BITS-1:0] list_req,
    output wire                  list_valid,
    input  wire                  list_ready,
    output wire [`BEAT_BITS-1:0] list_beat,
    // bias channel: requests, stream
    input  wire                  bias_req_valid,
    output wire                  bias_req_ready,
    input  wire [ `REQ_BITS-1:0] bias_req,
    output wire                  bias_valid,
    input  wire                  bias_ready,
    output wire [`BEAT_BITS-1:0] bias_beat,
    // weight channel: requests, stream
    input  wire                  weight_req_valid,
    output wire                  weight_req_ready,
    input  wire [ `REQ_BITS-1:0] weight_req,
    output wire                  weight_valid,
    input  wire                  weight_ready,
    output wire [`BEAT_BITS-1:0] weight_beat,
    // pixel channel: requests, stream
    input  wire                  pixel_req_valid,
    output wire                  pixel_req_ready,
    input  wire [ `REQ_BITS-1:0] pixel_req,
    output wire                  pixel_valid,
    input  wire                  pixel_ready,
    output wire [`BEAT_BITS-1:0] pixel_beat,
    // write channel: requests, stream, request finished
    input  wire                  store_req_valid,
    output wire                  store_req_ready,
    input  wire [ `REQ_BITS-1:0] store_req,
    input  wire                  store_valid,
    output wire                  store_ready,
    input  wire [     AHB_W-1:0] store_data,
    output wire                  store_done,
    // status: AND circuit, nothing outstanding, a read is outstanding or could be issued
    output wire                  weight_bias_full,
    output wire                  dma_idle,
    // all requests of the weight and of the bias channel are sent out
    output wire                  weight_quiet,
    output wire                  bias_quiet,
    output wire                  reading,
    // performance: one pulse per finished data beat
    output wire                  read_beat,
    output wire                  write_beat,
    // commands to the AHB master
    output wire                  cmd_valid,
    input  wire                  cmd_ready,
    output wire [ `CMD_BITS-1:0] cmd,
    // write data to the AHB master
    output wire [     AHB_W-1:0] wd_data,
    input  wire                  wd_pop,
    // finished beats from the AHB master
    input  wire                  rsp_valid,
    input  wire                  rsp_write,
    input  wire                  rsp_first,
    input  wire                  rsp_last,
    input  wire [     TAG_W-1:0] rsp_tag,
    input  wire [     AHB_W-1:0] rsp_data,
    // error and state of the AHB master
    input  wire                  mst_err_valid,
    output wire                  mst_clear,
    input  wire                  mst_idle
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

  // -------------------------------------------------------------------------------------------
  // read channels
  // -------------------------------------------------------------------------------------------
  wire [     3:0] rd_want;
  wire [     3:0] rd_take;
  wire [4*32-1:0] rd_addr;
  wire [ 4*5-1:0] rd_beats;
  wire [     3:0] rd_first;
  wire [     3:0] rd_last;
  wire [4*OW-1:0] rd_off;
  wire [4*CW-1:0] rd_end;
  wire [     3:0] rd_full;
  wire [     3:0] rd_idle;
  wire [     3:0] push;
  wire [  OW-1:0] push_off;
  wire [  CW-1:0] push_cnt;
  wire            push_last;
  wire            write_end;

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(LIST_FIFO_DEPTH)
  ) u_list (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .req_valid(list_req_valid),
      .req_ready(list_req_ready),
      .req_addr(list_req[`REQ_ADDR]),
      .req_len(list_req[`REQ_LEN]),
      .cmd_want(rd_want[0]),
      .cmd_take(rd_take[0]),
      .cmd_addr(rd_addr[32*0+:32]),
      .cmd_beats(rd_beats[5*0+:5]),
      .cmd_first(rd_first[0]),
      .cmd_last(rd_last[0]),
      .cmd_off(rd_off[OW*0+:OW]),
      .cmd_end(rd_end[CW*0+:CW]),
      .push(push[0]),
      .push_data(rsp_data),
      .push_off(push_off),
      .push_cnt(push_cnt),
      .push_last(push_last),
      .out_valid(list_valid),
      .out_ready(list_ready),
      .out_data(list_beat[`BEAT_DATA]),
      .out_off(list_beat[`BEAT_OFF]),
      .out_cnt(list_beat[`BEAT_CNT]),
      .out_last(list_beat[`BEAT_LAST]),
      .full(rd_full[0]),
      .idle(rd_idle[0])
  );

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_bias (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .req_valid(bias_req_valid),
      .req_ready(bias_req_ready),
      .req_addr(bias_req[`REQ_ADDR]),
      .req_len(bias_req[`REQ_LEN]),
      .cmd_want(rd_want[1]),
      .cmd_take(rd_take[1]),
      .cmd_addr(rd_addr[32*1+:32]),
      .cmd_beats(rd_beats[5*1+:5]),
      .cmd_first(rd_first[1]),
      .cmd_last(rd_last[1]),
      .cmd_off(rd_off[OW*1+:OW]),
      .cmd_end(rd_end[CW*1+:CW]),
      .push(push[1]),
      .push_data(rsp_data),
      .push_off(push_off),
      .push_cnt(push_cnt),
      .push_last(push_last),
      .out_valid(bias_valid),
      .out_ready(bias_ready),
      .out_data(bias_beat[`BEAT_DATA]),
      .out_off(bias_beat[`BEAT_OFF]),
      .out_cnt(bias_beat[`BEAT_CNT]),
      .out_last(bias_beat[`BEAT_LAST]),
      .full(rd_full[1]),
      .idle(rd_idle[1])
  );

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(WGT_FIFO_DEPTH)
  ) u_weight (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .req_valid(weight_req_valid),
      .req_ready(weight_req_ready),
      .req_addr(weight_req[`REQ_ADDR]),
      .req_len(weight_req[`REQ_LEN]),
      .cmd_want(rd_want[2]),
      .cmd_take(rd_take[2]),
      .cmd_addr(rd_addr[32*2+:32]),
      .cmd_beats(rd_beats[5*2+:5]),
      .cmd_first(rd_first[2]),
      .cmd_last(rd_last[2]),
      .cmd_off(rd_off[OW*2+:OW]),
      .cmd_end(rd_end[CW*2+:CW]),
      .push(push[2]),
      .push_data(rsp_data),
      .push_off(push_off),
      .push_cnt(push_cnt),
      .push_last(push_last),
      .out_valid(weight_valid),
      .out_ready(weight_ready),
      .out_data(weight_beat[`BEAT_DATA]),
      .out_off(weight_beat[`BEAT_OFF]),
      .out_cnt(weight_beat[`BEAT_CNT]),
      .out_last(weight_beat[`BEAT_LAST]),
      .full(rd_full[2]),
      .idle(rd_idle[2])
  );

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(PIX_FIFO_DEPTH)
  ) u_pixel (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .req_valid(pixel_req_valid),
      .req_ready(pixel_req_ready),
      .req_addr(pixel_req[`REQ_ADDR]),
      .req_len(pixel_req[`REQ_LEN]),
      .cmd_want(rd_want[3]),
      .cmd_take(rd_take[3]),
      .cmd_addr(rd_addr[32*3+:32]),
      .cmd_beats(rd_beats[5*3+:5]),
      .cmd_first(rd_first[3]),
      .cmd_last(rd_last[3]),
      .cmd_off(rd_off[OW*3+:OW]),
      .cmd_end(rd_end[CW*3+:CW]),
      .push(push[3]),
      .push_data(rsp_data),
      .push_off(push_off),
      .push_cnt(push_cnt),
      .push_last(push_last),
      .out_valid(pixel_valid),
      .out_ready(pixel_ready),
      .out_data(pixel_beat[`BEAT_DATA]),
      .out_off(pixel_beat[`BEAT_OFF]),
      .out_cnt(pixel_beat[`BEAT_CNT]),
      .out_last(pixel_beat[`BEAT_LAST]),
      .full(rd_full[3]),
      .idle(rd_idle[3])
  );

  weight_bias_full u_both_full (
      .weight_full(rd_full[2]),
      .bias_full(rd_full[1]),
      .weight_bias_full(weight_bias_full)
  );

  dma_distributor #(
      .AHB_W(AHB_W)
  ) u_distributor (
      .rsp_valid(rsp_valid),
      .rsp_write(rsp_write),
      .rsp_first(rsp_first),
      .rsp_last(rsp_last),
      .rsp_tag(rsp_tag),
      .push(push),
      .push_off(push_off),
      .push_cnt(push_cnt),
      .push_last(push_last),
      .store_done(write_end)
  );

  // the unit whose write ends during an abort has been flushed and waits for no answer
  assign store_done = write_end && run;

  // -------------------------------------------------------------------------------------------
  // write channel
  // -------------------------------------------------------------------------------------------
  wire        w_want;
  wire        w_take;
  wire [31:0] w_addr;
  wire [ 4:0] w_beats;
  wire [ 2:0] w_size;
  wire        w_pop;
  wire        w_last;
  wire        w_idle;

  dma_write #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(WR_FIFO_DEPTH)
  ) u_write (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req_addr(store_req[`REQ_ADDR]),
      .store_req_len(store_req[`REQ_LEN]),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .cmd_want(w_want),
      .cmd_take(w_take),
      .cmd_addr(w_addr),
      .cmd_beats(w_beats),
      .cmd_size(w_size),
      .cmd_wpop(w_pop),
      .cmd_last(w_last),
      .wd_data(wd_data),
      .wd_pop(wd_pop),
      .idle(w_idle)
  );

  // -------------------------------------------------------------------------------------------
  // choice of the next burst
  // -------------------------------------------------------------------------------------------
  dma_read_ctrl #(
      .AHB_W(AHB_W)
  ) u_read_ctrl (
      .clk(clk),
      .rst(rst),
      .hold(!run),
      .rd_want(rd_want),
      .rd_take(rd_take),
      .rd_addr(rd_addr),
      .rd_beats(rd_beats),
      .rd_first(rd_first),
      .rd_last(rd_last),
      .rd_off(rd_off),
      .rd_end(rd_end),
      .store_want(w_want),
      .store_take(w_take),
      .store_addr(w_addr),
      .store_beats(w_beats),
      .store_size(w_size),
      .store_pop(w_pop),
      .store_last(w_last),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd_write(cmd[`CMD_WRITE]),
      .cmd_addr(cmd[`CMD_ADDR]),
      .cmd_beats(cmd[`CMD_BEATS]),
      .cmd_size(cmd[`CMD_SIZE]),
      .cmd_wpop(cmd[`CMD_WPOP]),
      .cmd_tag(cmd[`CMD_TAG])
  );

  // -------------------------------------------------------------------------------------------
  // status
  // -------------------------------------------------------------------------------------------
  // beats of reads that the master still owes
  reg  [15:0] owed;
  wire [15:0] owed_add = (rd_take != 4'd0) ? {11'd0, cmd[`CMD_BEATS]} : 16'd0;

  always @(posedge clk) begin
    if (rst || flush) begin
      owed <= 16'd0;
    end else begin
      owed <= owed + owed_add - {15'd0, read_beat};
    end
  end

  assign bias_quiet = rd_idle[1];
  assign weight_quiet = rd_idle[2];
  assign read_beat = rsp_valid && !rsp_write;
  assign write_beat = rsp_valid && rsp_write;
  assign reading = (owed != 16'd0) || (rd_want != 4'd0);

  // the tag of a finished write is seen one cycle after the write channel went idle at the latest,
  // so idle waits for the master too
  assign dma_idle = mst_idle && (rd_idle == 4'b1111) && w_idle && !error && !mst_err_valid;

  // only the weight and the bias FIFO take part in the AND circuit
  wire unused = &{1'b0, rd_full[3], rd_full[0]};

endmodule

`resetall
