// SPDX-License-Identifier: Apache-2.0
//
// storage_port: connects the core to the storage, AHB master and DMA controller.
//
// How it works: the DMAC turns byte requests into bursts and sorts the returned words into streams; the
// AHB master performs the bursts.
// Handshake: valid/ready on requests and streams, see dmac. An ERROR response, or a burst outside
// `guard`, pulses bus_err with bus_fault and stops its channel until dma_abort; the others continue. With
// dma_abandon an abort does not wait for the bus. `waiting` reports, at any time, whether the oldest beat
// is stalled and why.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module storage_port #(
    // data width of the bus: 32, 64 or 128
    parameter AHB_W           = 32,
    // depths of the FIFOs, in bus words
    parameter PIX_FIFO_DEPTH  = 16,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32,
    // derived, not to be set
    parameter OW              = $clog2(AHB_W / 8),
    parameter CW              = OW + 1
) (
    // clock, synchronous reset, abort, do not wait for the bus in an abort
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     dma_abort,
    input  wire                     dma_abandon,
    // permitted windows of reads and writes
    input  wire [  `GUARD_BITS-1:0] guard,
    // AHB master
    output wire                     m_ahb_hbusreq,
    output wire                     m_ahb_hlock,
    input  wire                     m_ahb_hgrant,
    output wire [             31:0] m_ahb_haddr,
    output wire [              1:0] m_ahb_htrans,
    output wire                     m_ahb_hwrite,
    output wire [              2:0] m_ahb_hsize,
    output wire [              2:0] m_ahb_hburst,
    output wire [              3:0] m_ahb_hprot,
    output wire [        AHB_W-1:0] m_ahb_hwdata,
    input  wire                     m_ahb_hready,
    input  wire [              1:0] m_ahb_hresp,
    input  wire [        AHB_W-1:0] m_ahb_hrdata,
    // burst commands in advance, for a bridge behind the AHB master
    output wire [  `AHEAD_BITS-1:0] m_ahb_ahead,
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
    // store channel: requests, stream, request completed
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
    // activity, for the counters, AI_STATUS and the controller
    output wire [`TRAFFIC_BITS-1:0] traffic,
    // reason for the stall
    output wire [`WAITING_BITS-1:0] waiting
);

  localparam TAG_W = `DMA_TAG_BITS;

  wire cmd_valid, cmd_ready, wd_pop, wd_free, rsp_valid, rsp_write, rsp_first, rsp_last;
  wire [`CMD_BITS-1:0] cmd;
  wire [1:0] wd_back;
  wire [AHB_W-1:0] wd_data, rsp_data;
  wire [TAG_W-1:0] rsp_tag, mst_err_tag, wait_tag;
  wire [31:0] mst_err_addr;
  wire mst_err_valid, mst_abandon, mst_idle, mst_reading;

  assign m_ahb_ahead[`AHEAD_VALID] = cmd_valid && cmd_ready;
  assign m_ahb_ahead[`AHEAD_DROP] = mst_abandon;
  assign m_ahb_ahead[`AHEAD_WRITE] = cmd[`CMD_WRITE];
  assign m_ahb_ahead[`AHEAD_ADDR] = cmd[`CMD_ADDR];
  assign m_ahb_ahead[`AHEAD_BEATS] = cmd[`CMD_BEATS];
  assign m_ahb_ahead[`AHEAD_SIZE] = cmd[`CMD_SIZE];

  assign waiting[`WAITING_CHAN] = wait_tag[`DMA_TAG_CHAN];
  assign waiting[`WAITING_OWNER] = wait_tag[`DMA_TAG_OWNER];

  dmac #(
      .AHB_W          (AHB_W),
      .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_dmac (
      .clk(clk),
      .rst(rst),
      .dma_abort(dma_abort),
      .dma_abandon(dma_abandon),
      .guard(guard),
      .list_req_valid(list_req_valid),
      .list_req_ready(list_req_ready),
      .list_req(list_req),
      .list_valid(list_valid),
      .list_ready(list_ready),
      .list_beat(list_beat),
      .bias_req_valid(bias_req_valid),
      .bias_req_ready(bias_req_ready),
      .bias_req(bias_req),
      .bias_valid(bias_valid),
      .bias_ready(bias_ready),
      .bias_beat(bias_beat),
      .weight_req_valid(weight_req_valid),
      .weight_req_ready(weight_req_ready),
      .weight_req(weight_req),
      .weight_valid(weight_valid),
      .weight_ready(weight_ready),
      .weight_beat(weight_beat),
      .pixel_req_valid(pixel_req_valid),
      .pixel_req_ready(pixel_req_ready),
      .pixel_req(pixel_req),
      .pixel_share(pixel_share),
      .pixel_valid(pixel_valid),
      .pixel_ready(pixel_ready),
      .pixel_beat(pixel_beat),
      .store_req_valid(store_req_valid),
      .store_req_ready(store_req_ready),
      .store_req(store_req),
      .store_valid(store_valid),
      .store_ready(store_ready),
      .store_data(store_data),
      .store_done(store_done),
      .bus_err(bus_err),
      .bus_fault(bus_fault),
      .traffic(traffic),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd(cmd),
      .wd_data(wd_data),
      .wd_pop(wd_pop),
      .wd_back(wd_back),
      .wd_free(wd_free),
      .rsp_valid(rsp_valid),
      .rsp_write(rsp_write),
      .rsp_first(rsp_first),
      .rsp_last(rsp_last),
      .rsp_tag(rsp_tag),
      .rsp_data(rsp_data),
      .mst_err_valid(mst_err_valid),
      .mst_err_addr(mst_err_addr),
      .mst_err_tag(mst_err_tag),
      .mst_abandon(mst_abandon),
      .mst_idle(mst_idle),
      .mst_reading(mst_reading)
  );

  ahb_master #(
      .AHB_W(AHB_W),
      .TAG_W(TAG_W)
  ) u_master (
      .clk(clk),
      .rst(rst),
      .m_ahb_hbusreq(m_ahb_hbusreq),
      .m_ahb_hlock(m_ahb_hlock),
      .m_ahb_hgrant(m_ahb_hgrant),
      .m_ahb_haddr(m_ahb_haddr),
      .m_ahb_htrans(m_ahb_htrans),
      .m_ahb_hwrite(m_ahb_hwrite),
      .m_ahb_hsize(m_ahb_hsize),
      .m_ahb_hburst(m_ahb_hburst),
      .m_ahb_hprot(m_ahb_hprot),
      .m_ahb_hwdata(m_ahb_hwdata),
      .m_ahb_hready(m_ahb_hready),
      .m_ahb_hresp(m_ahb_hresp),
      .m_ahb_hrdata(m_ahb_hrdata),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd_write(cmd[`CMD_WRITE]),
      .cmd_addr(cmd[`CMD_ADDR]),
      .cmd_beats(cmd[`CMD_BEATS]),
      .cmd_size(cmd[`CMD_SIZE]),
      .cmd_wpop(cmd[`CMD_WPOP]),
      .cmd_tag(cmd[`CMD_TAG]),
      .wd_data(wd_data),
      .wd_pop(wd_pop),
      .wd_back(wd_back),
      .wd_free(wd_free),
      .rsp_valid(rsp_valid),
      .rsp_write(rsp_write),
      .rsp_first(rsp_first),
      .rsp_last(rsp_last),
      .rsp_tag(rsp_tag),
      .rsp_data(rsp_data),
      .mst_err_valid(mst_err_valid),
      .mst_err_addr(mst_err_addr),
      .mst_err_tag(mst_err_tag),
      .mst_abandon(mst_abandon),
      .mst_idle(mst_idle),
      .mst_reading(mst_reading),
      .wait_why(waiting[`WAITING_WHY]),
      .wait_addr(waiting[`WAITING_ADDR]),
      .wait_tag(wait_tag)
  );

  // the rest of the tag concerns the valid bytes of the words
  wire unused = &{1'b0, wait_tag};

endmodule

`resetall
