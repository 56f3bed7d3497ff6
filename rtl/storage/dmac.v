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
// Faults (dma_fault): a channel whose burst was answered ERROR, or may not go to the bus, stands still
// until the abort, the others go on; bus_err tells of the first fault of a channel.
// dma_abort (level, one cycle is enough): bursts that were given to the master end legally, then all
// requests and FIFO contents are dropped; with dma_abandon the bus is not waited for. dma_idle:
// nothing is outstanding, no channel has failed.

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
    parameter TAG_W = `DMA_TAG_BITS
) (
    // clock, synchronous reset, abort, do not wait for the bus in an abort
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     dma_abort,
    input  wire                     dma_abandon,
    // what may be read and written
    input  wire [  `GUARD_BITS-1:0] guard,
    // list channel: requests, stream
    input  wire                     list_req_valid,
    output wire                     list_req_ready,
    input  wire [    `REQ_BITS-1:0] list_req,
    output wire                     list_valid,
    input  wire                     list_ready,
    output wire [   `BEAT_BITS-1:0] list_beat,
    // bias channel: requests, stream
    input  wire                     bias_req_valid,
    output wire                     bias_req_ready,
    input  wire [    `REQ_BITS-1:0] bias_req,
    output wire                     bias_valid,
    input  wire                     bias_ready,
    output wire [   `BEAT_BITS-1:0] bias_beat,
    // weight channel: requests, stream
    input  wire                     weight_req_valid,
    output wire                     weight_req_ready,
    input  wire [    `REQ_BITS-1:0] weight_req,
    output wire                     weight_valid,
    input  wire                     weight_ready,
    output wire [   `BEAT_BITS-1:0] weight_beat,
    // pixel channel: requests, stream
    input  wire                     pixel_req_valid,
    output wire                     pixel_req_ready,
    input  wire [    `REQ_BITS-1:0] pixel_req,
    output wire                     pixel_valid,
    input  wire                     pixel_ready,
    output wire [   `BEAT_BITS-1:0] pixel_beat,
    // write channel: requests, stream, request finished
    input  wire                     store_req_valid,
    output wire                     store_req_ready,
    input  wire [    `REQ_BITS-1:0] store_req,
    input  wire                     store_valid,
    output wire                     store_ready,
    input  wire [        AHB_W-1:0] store_data,
    output wire                     store_done,
    // first fault of a channel (pulse)
    output wire                     bus_err,
    output wire [  `FAULT_BITS-1:0] bus_fault,
    // what it does
    output wire [`TRAFFIC_BITS-1:0] traffic,
    // commands to the AHB master
    output wire                     cmd_valid,
    input  wire                     cmd_ready,
    output wire [    `CMD_BITS-1:0] cmd,
    // write data to the AHB master
    output wire [        AHB_W-1:0] wd_data,
    input  wire                     wd_pop,
    // finished beats from the AHB master
    input  wire                     rsp_valid,
    input  wire                     rsp_write,
    input  wire                     rsp_first,
    input  wire                     rsp_last,
    input  wire [        TAG_W-1:0] rsp_tag,
    input  wire [        AHB_W-1:0] rsp_data,
    // AHB master: failed beat with the beats that will not come, drop everything, nothing to do
    input  wire                     mst_err_valid,
    input  wire [             31:0] mst_err_addr,
    input  wire [        TAG_W-1:0] mst_err_tag,
    input  wire [              4:0] mst_err_beats,
    output wire                     mst_abandon,
    input  wire                     mst_idle
);

  // -------------------------------------------------------------------------------------------
  // abort: refuse, wait for the master, drop everything
  // -------------------------------------------------------------------------------------------
  reg  aborting;
  wire flush = aborting && mst_idle;
  wire run = !dma_abort && !aborting;

  always @(posedge clk) begin
    if (rst) begin
      aborting <= 1'b0;
    end else begin
      aborting <= dma_abort || (aborting && !flush);
    end
  end

  assign mst_abandon = aborting && dma_abandon;

  // -------------------------------------------------------------------------------------------
  // faults
  // -------------------------------------------------------------------------------------------
  wire [4:0] failed, failing;
  wire [4:0] mute;
  wire       refuse;

  dma_fault #(
      .AHB_W(AHB_W)
  ) u_fault (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .err_valid(mst_err_valid),
      .err_addr(mst_err_addr),
      .err_tag(mst_err_tag),
      .refuse(refuse),
      .refuse_addr(cmd[`CMD_ADDR]),
      .refuse_tag(cmd[`CMD_TAG]),
      .failed(failed),
      .failing(failing),
      .mute(mute),
      .bus_err(bus_err),
      .bus_fault(bus_fault)
  );

  // -------------------------------------------------------------------------------------------
  // read channels
  // -------------------------------------------------------------------------------------------
  wire [              3:0] rd_want;
  wire [              3:0] rd_take;
  wire [         4*32-1:0] rd_addr;
  wire [              3:0] rd_wrap;
  wire [          4*5-1:0] rd_beats;
  wire [              3:0] rd_first;
  wire [              3:0] rd_last;
  wire [         4*OW-1:0] rd_off;
  wire [         4*CW-1:0] rd_end;
  wire [4*`OWNER_BITS-1:0] rd_owner;
  wire [              3:0] rd_full;
  wire [              3:0] rd_idle;
  wire [              3:0] rd_word;
  wire [              3:0] push = rd_word & ~mute[3:0];
  wire [   `BEAT_BITS-1:0] push_beat;
  wire                     write_end;

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(LIST_FIFO_DEPTH)
  ) u_list (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .failed(failed[0]),
      .req_valid(list_req_valid),
      .req_ready(list_req_ready),
      .req(list_req),
      .cmd_want(rd_want[0]),
      .cmd_take(rd_take[0]),
      .cmd_addr(rd_addr[32*0+:32]),
      .cmd_wrap(rd_wrap[0]),
      .cmd_beats(rd_beats[5*0+:5]),
      .cmd_first(rd_first[0]),
      .cmd_last(rd_last[0]),
      .cmd_off(rd_off[OW*0+:OW]),
      .cmd_end(rd_end[CW*0+:CW]),
      .cmd_owner(rd_owner[`OWNER_BITS*0+:`OWNER_BITS]),
      .push(push[0]),
      .push_beat(push_beat),
      .out_valid(list_valid),
      .out_ready(list_ready),
      .out_beat(list_beat),
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
      .failed(failed[1]),
      .req_valid(bias_req_valid),
      .req_ready(bias_req_ready),
      .req(bias_req),
      .cmd_want(rd_want[1]),
      .cmd_take(rd_take[1]),
      .cmd_addr(rd_addr[32*1+:32]),
      .cmd_wrap(rd_wrap[1]),
      .cmd_beats(rd_beats[5*1+:5]),
      .cmd_first(rd_first[1]),
      .cmd_last(rd_last[1]),
      .cmd_off(rd_off[OW*1+:OW]),
      .cmd_end(rd_end[CW*1+:CW]),
      .cmd_owner(rd_owner[`OWNER_BITS*1+:`OWNER_BITS]),
      .push(push[1]),
      .push_beat(push_beat),
      .out_valid(bias_valid),
      .out_ready(bias_ready),
      .out_beat(bias_beat),
      .full(rd_full[1]),
      .idle(rd_idle[1])
  );

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(WGT_FIFO_DEPTH),
      .BLOCK_RAM(WGT_FIFO_DEPTH > 32 ? 1 : 0)
  ) u_weight (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .failed(failed[2]),
      .req_valid(weight_req_valid),
      .req_ready(weight_req_ready),
      .req(weight_req),
      .cmd_want(rd_want[2]),
      .cmd_take(rd_take[2]),
      .cmd_addr(rd_addr[32*2+:32]),
      .cmd_wrap(rd_wrap[2]),
      .cmd_beats(rd_beats[5*2+:5]),
      .cmd_first(rd_first[2]),
      .cmd_last(rd_last[2]),
      .cmd_off(rd_off[OW*2+:OW]),
      .cmd_end(rd_end[CW*2+:CW]),
      .cmd_owner(rd_owner[`OWNER_BITS*2+:`OWNER_BITS]),
      .push(push[2]),
      .push_beat(push_beat),
      .out_valid(weight_valid),
      .out_ready(weight_ready),
      .out_beat(weight_beat),
      .full(rd_full[2]),
      .idle(rd_idle[2])
  );

  dma_read_channel #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(PIX_FIFO_DEPTH),
      .BLOCK_RAM(PIX_FIFO_DEPTH > 32 ? 1 : 0)
  ) u_pixel (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .failed(failed[3]),
      .req_valid(pixel_req_valid),
      .req_ready(pixel_req_ready),
      .req(pixel_req),
      .cmd_want(rd_want[3]),
      .cmd_take(rd_take[3]),
      .cmd_addr(rd_addr[32*3+:32]),
      .cmd_wrap(rd_wrap[3]),
      .cmd_beats(rd_beats[5*3+:5]),
      .cmd_first(rd_first[3]),
      .cmd_last(rd_last[3]),
      .cmd_off(rd_off[OW*3+:OW]),
      .cmd_end(rd_end[CW*3+:CW]),
      .cmd_owner(rd_owner[`OWNER_BITS*3+:`OWNER_BITS]),
      .push(push[3]),
      .push_beat(push_beat),
      .out_valid(pixel_valid),
      .out_ready(pixel_ready),
      .out_beat(pixel_beat),
      .full(rd_full[3]),
      .idle(rd_idle[3])
  );

  wire weight_bias_full;

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
      .rsp_data(rsp_data),
      .push(rd_word),
      .push_beat(push_beat),
      .store_done(write_end)
  );

  // the unit whose write ends during an abort has been flushed and waits for no answer
  assign store_done = write_end && run && !mute[4];

  // -------------------------------------------------------------------------------------------
  // write channel
  // -------------------------------------------------------------------------------------------
  wire                   w_want;
  wire                   w_take;
  wire [           31:0] w_addr;
  wire                   w_wrap;
  wire [            4:0] w_beats;
  wire [            2:0] w_size;
  wire                   w_pop;
  wire                   w_last;
  wire [`OWNER_BITS-1:0] w_owner;
  wire                   w_idle;

  dma_write #(
      .AHB_W(AHB_W),
      .FIFO_DEPTH(WR_FIFO_DEPTH)
  ) u_write (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .failed(failed[4]),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req(store_req),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .cmd_want(w_want),
      .cmd_take(w_take),
      .cmd_addr(w_addr),
      .cmd_wrap(w_wrap),
      .cmd_beats(w_beats),
      .cmd_size(w_size),
      .cmd_wpop(w_pop),
      .cmd_last(w_last),
      .cmd_owner(w_owner),
      .wd_data(wd_data),
      .wd_pop(wd_pop),
      .idle(w_idle)
  );

  // -------------------------------------------------------------------------------------------
  // choice of the next burst
  // -------------------------------------------------------------------------------------------
  wire chosen;
  dma_read_ctrl #(
      .AHB_W(AHB_W)
  ) u_read_ctrl (
      .clk(clk),
      .rst(rst),
      .hold(!run),
      .refuse_hold(mst_err_valid),
      .failing(failing),
      .guard(guard),
      .rd_want(rd_want),
      .rd_take(rd_take),
      .rd_addr(rd_addr),
      .rd_wrap(rd_wrap),
      .rd_beats(rd_beats),
      .rd_first(rd_first),
      .rd_last(rd_last),
      .rd_off(rd_off),
      .rd_end(rd_end),
      .rd_owner(rd_owner),
      .store_want(w_want),
      .store_take(w_take),
      .store_addr(w_addr),
      .store_wrap(w_wrap),
      .store_beats(w_beats),
      .store_size(w_size),
      .store_pop(w_pop),
      .store_last(w_last),
      .store_owner(w_owner),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd_write(cmd[`CMD_WRITE]),
      .cmd_addr(cmd[`CMD_ADDR]),
      .cmd_beats(cmd[`CMD_BEATS]),
      .cmd_size(cmd[`CMD_SIZE]),
      .cmd_wpop(cmd[`CMD_WPOP]),
      .cmd_tag(cmd[`CMD_TAG]),
      .refuse(refuse),
      .chosen(chosen)
  );

  // -------------------------------------------------------------------------------------------
  // status
  // -------------------------------------------------------------------------------------------
  wire read_beat = rsp_valid && !rsp_write;
  wire write_beat = rsp_valid && rsp_write;

  // beats of reads that the master still owes
  reg [15:0] owed;
  wire read_fails = mst_err_valid && mst_err_tag[`DMA_TAG_CHAN] != 3'd4;
  wire read_given = cmd_valid && cmd_ready && !cmd[`CMD_WRITE];
  wire [15:0] owed_more = read_given ? {11'd0, cmd[`CMD_BEATS]} : 16'd0;
  wire [15:0] owed_less = read_fails ? {11'd0, mst_err_beats} : {15'd0, read_beat};

  always @(posedge clk) begin
    if (rst || flush) begin
      owed <= 16'd0;
    end else begin
      owed <= owed + owed_more - owed_less;
    end
  end

  assign traffic[`TRAFFIC_WEIGHT_BIAS_FULL] = weight_bias_full;
  assign traffic[`TRAFFIC_READING] = (owed != 16'd0) || (rd_want != 4'd0) ||
      (chosen && !cmd[`CMD_WRITE]);
  assign traffic[`TRAFFIC_READ_BEAT] = read_beat;
  assign traffic[`TRAFFIC_WRITE_BEAT] = write_beat;
  // the tag of a finished write is seen one cycle after the write channel went idle at the latest,
  // so idle waits for the master too
  assign traffic[`TRAFFIC_IDLE] = mst_idle && !chosen && (rd_idle == 4'b1111) && w_idle &&
      (failing == 5'd0);
  // all bursts of the weight and of the bias channel are chosen, so that later ones go behind them
  assign traffic[`TRAFFIC_WEIGHT_QUIET] = rd_idle[2];
  assign traffic[`TRAFFIC_BIAS_QUIET] = rd_idle[1];

  // only the weight and the bias FIFO take part in the AND circuit
  wire unused = &{1'b0, rd_full[3], rd_full[0]};

endmodule

`resetall
