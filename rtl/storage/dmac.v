// SPDX-License-Identifier: Apache-2.0
//
// dmac: the DMA controller between the AHB master and the core (claim C4 of docs/patent.md
// section 5).
//
// How it works: four read channels (list, bias, weight, pixel), each with a FIFO. One cutter holds their
// requests and splits them into bursts, the read controller arbitrates the bursts, the data distributor
// routes the returned words by their tag; one write channel (store). cmd, wd_*, rsp_* and mst_* belong to
// the AHB master.
// Handshake: valid/ready on requests and streams: the requester waits for the channel, a stream for its
// consumer. A request covers bytes [addr, addr + len), any alignment for reads; the stream delivers the
// bus words that contain them, and marks the valid bytes of each. A channel accepts its next request
// while the present one is being read. Write data are whole bus words; the last one of a request may be
// partial.
// Faults (dma_fault): a channel with an ERROR response or a burst that is not permitted stops until the
// abort, the others continue; bus_err reports the first fault of a channel.
// dma_abort (level, one cycle is enough): bursts issued to the master end legally, then all requests and
// FIFO contents are dropped; with dma_abandon the DMAC does not wait for the bus. The idle flag of
// `traffic`: nothing is outstanding, no channel has failed.

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
    // permitted windows of reads and writes
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
    input  wire                     pixel_share,
    output wire                     pixel_valid,
    input  wire                     pixel_ready,
    output wire [   `BEAT_BITS-1:0] pixel_beat,
    // write channel: requests, stream, request completed
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
    // activity
    output wire [`TRAFFIC_BITS-1:0] traffic,
    // commands to the AHB master
    output wire                     cmd_valid,
    input  wire                     cmd_ready,
    output wire [    `CMD_BITS-1:0] cmd,
    // write data to the AHB master
    output wire [        AHB_W-1:0] wd_data,
    input  wire                     wd_pop,
    input  wire [              1:0] wd_back,
    input  wire                     wd_free,
    // finished beats from the AHB master
    input  wire                     rsp_valid,
    input  wire                     rsp_write,
    input  wire                     rsp_first,
    input  wire                     rsp_last,
    input  wire [        TAG_W-1:0] rsp_tag,
    input  wire [        AHB_W-1:0] rsp_data,
    // AHB master: failed beat, drop everything, idle, outstanding reads
    input  wire                     mst_err_valid,
    input  wire [             31:0] mst_err_addr,
    input  wire [        TAG_W-1:0] mst_err_tag,
    output wire                     mst_abandon,
    input  wire                     mst_idle,
    input  wire                     mst_reading
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
  // read channels: 0 list, 1 bias, 2 weight, 3 pixel
  // -------------------------------------------------------------------------------------------
  // longest burst: half the FIFO, so that one half fills while the other drains
  function integer longest;
    input integer depth;
    longest = (depth >= 32) ? 16 : (depth >= 16) ? 8 : (depth >= 8) ? 4 : (depth >= 4) ? 2 : 1;
  endfunction
  localparam LIST_BURST = longest(LIST_FIFO_DEPTH);
  localparam BIAS_BURST = longest(BIAS_FIFO_DEPTH);
  localparam WGT_BURST = longest(WGT_FIFO_DEPTH);
  localparam PIX_BURST = longest(PIX_FIFO_DEPTH);
  localparam MASKS_I = (PIX_BURST - 1) << 12 | (WGT_BURST - 1) << 8 | (BIAS_BURST - 1) << 4 |
      (LIST_BURST - 1);

  wire [               3:0] out_valid;
  wire [               3:0] out_ready = {pixel_ready, weight_ready, bias_ready, list_ready};
  wire [  4*`BEAT_BITS-1:0] out_beat;
  wire [               3:0] rd_live;
  wire [               3:0] rd_want;
  wire [               3:0] rd_next;
  wire [               1:0] rd_next_sel;
  wire [               1:0] rd_sel;
  wire                      rd_take;
  wire [   `BURST_BITS-1:0] rd_burst;
  wire [               3:0] rd_less;
  wire [               3:0] rd_full;
  wire [               3:0] rd_idle;
  wire [               3:0] rd_word;
  wire [               3:0] push = rd_word & ~mute[3:0];
  wire [`DMA_WORD_BITS-1:0] push_word;
  wire                      write_end;

  assign {pixel_valid, weight_valid, bias_valid, list_valid} = out_valid;
  assign {pixel_beat, weight_beat, bias_beat, list_beat} = out_beat;

  dma_cutter #(
      .AHB_W(AHB_W),
      .MASKS(MASKS_I[15:0])
  ) u_cutter (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .run(run),
      .req_valid({pixel_req_valid, weight_req_valid, bias_req_valid, list_req_valid}),
      .req_ready({pixel_req_ready, weight_req_ready, bias_req_ready, list_req_ready}),
      .req({pixel_req, weight_req, bias_req, list_req}),
      .live(rd_live),
      .idle(rd_idle),
      .next_sel(rd_next_sel),
      .sel(rd_sel),
      .take(rd_take),
      .burst(rd_burst),
      .burst_less(rd_less)
  );

  genvar c;
  generate
    for (c = 0; c < 4; c = c + 1) begin : g_channel
      dma_read_channel #(
          .AHB_W(AHB_W),
          .FIFO_DEPTH((c == 0) ? LIST_FIFO_DEPTH : (c == 1) ? BIAS_FIFO_DEPTH :
                      (c == 2) ? WGT_FIFO_DEPTH : PIX_FIFO_DEPTH),
          .MAX_BURST((c == 0) ? LIST_BURST : (c == 1) ? BIAS_BURST : (c == 2) ? WGT_BURST : PIX_BURST)
      ) u_channel (
          .clk(clk),
          .rst(rst),
          .flush(flush),
          .run(run),
          .failed(failed[c]),
          .live(rd_live[c]),
          .next(rd_next[c]),
          .take(rd_take && rd_sel == c),
          .take_less(rd_less),
          .push(push[c]),
          .push_word(push_word),
          .out_valid(out_valid[c]),
          .out_ready(out_ready[c]),
          .out_beat(out_beat[c*`BEAT_BITS+:`BEAT_BITS]),
          .full(rd_full[c])
      );
    end
  endgenerate

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
      .push_word(push_word),
      .store_done(write_end)
  );

  // a unit whose write ends during an abort has been flushed and expects no response
  assign store_done = write_end && run && !mute[4];

  // -------------------------------------------------------------------------------------------
  // write channel
  // -------------------------------------------------------------------------------------------
  wire                   w_want;
  wire                   w_take;
  wire [`BURST_BITS-1:0] w_burst;
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
      .burst(w_burst),
      .wd_data(wd_data),
      .wd_pop(wd_pop),
      .wd_back(wd_back),
      .wd_free(wd_free),
      .idle(w_idle)
  );

  // -------------------------------------------------------------------------------------------
  // arbitration of bursts
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
      .share(pixel_share),
      .guard(guard),
      .rd_next(rd_next),
      .rd_next_sel(rd_next_sel),
      .rd_want(rd_want),
      .rd_take(rd_take),
      .rd_burst(rd_burst),
      .store_want(w_want),
      .store_take(w_take),
      .store_burst(w_burst),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd(cmd),
      .refuse(refuse),
      .chosen(chosen)
  );

  // -------------------------------------------------------------------------------------------
  // status
  // -------------------------------------------------------------------------------------------
  wire read_beat = rsp_valid && !rsp_write;
  wire write_beat = rsp_valid && rsp_write;

  assign traffic[`TRAFFIC_WEIGHT_BIAS_FULL] = weight_bias_full;
  assign traffic[`TRAFFIC_READING] = mst_reading || (rd_want != 4'd0) ||
      (chosen && !cmd[`CMD_WRITE]);
  assign traffic[`TRAFFIC_READ_BEAT] = read_beat;
  assign traffic[`TRAFFIC_WRITE_BEAT] = write_beat;
  // the tag of a finished write arrives one cycle after the write channel went idle at the latest, so
  // idle waits for the master too
  assign traffic[`TRAFFIC_IDLE] = mst_idle && !chosen && (rd_idle == 4'b1111) && w_idle &&
      (failing == 5'd0);
  // all bursts of the weight and of the bias channel are selected, so that later bursts queue behind them
  assign traffic[`TRAFFIC_WEIGHT_QUIET] = rd_idle[2];
  assign traffic[`TRAFFIC_BIAS_QUIET] = rd_idle[1];

  // only the weight and the bias FIFO feed the AND circuit
  wire unused = &{1'b0, rd_full[3], rd_full[0]};

endmodule

`resetall
