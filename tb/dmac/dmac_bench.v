// SPDX-License-Identifier: Apache-2.0
//
// dmac_bench: the DMA controller with its AHB master, wired name by name, for the block test.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module dmac_bench #(
  // data width of the bus, depths of the FIFOs
  parameter AHB_W = 32,
  parameter PIX_FIFO_DEPTH = 16,
  parameter WGT_FIFO_DEPTH = 64,
  parameter BIAS_FIFO_DEPTH = 32,
  // derived
  parameter OW = $clog2(AHB_W / 8),
  parameter CW = OW + 1
) (
  input  wire              clk,
  input  wire              rst,
  input  wire              dma_abort,
  // list channel
  input  wire              list_req_valid,
  output wire              list_req_ready,
  input  wire [31:0]       list_req_addr,
  input  wire [23:0]       list_req_len,
  output wire              list_valid,
  input  wire              list_ready,
  output wire [AHB_W-1:0]  list_data,
  output wire [OW-1:0]     list_off,
  output wire [CW-1:0]     list_cnt,
  output wire              list_last,
  // bias channel
  input  wire              bias_req_valid,
  output wire              bias_req_ready,
  input  wire [31:0]       bias_req_addr,
  input  wire [23:0]       bias_req_len,
  output wire              bias_valid,
  input  wire              bias_ready,
  output wire [AHB_W-1:0]  bias_data,
  output wire [OW-1:0]     bias_off,
  output wire [CW-1:0]     bias_cnt,
  output wire              bias_last,
  // weight channel
  input  wire              weight_req_valid,
  output wire              weight_req_ready,
  input  wire [31:0]       weight_req_addr,
  input  wire [23:0]       weight_req_len,
  output wire              weight_valid,
  input  wire              weight_ready,
  output wire [AHB_W-1:0]  weight_data,
  output wire [OW-1:0]     weight_off,
  output wire [CW-1:0]     weight_cnt,
  output wire              weight_last,
  // pixel channel
  input  wire              pixel_req_valid,
  output wire              pixel_req_ready,
  input  wire [31:0]       pixel_req_addr,
  input  wire [23:0]       pixel_req_len,
  output wire              pixel_valid,
  input  wire              pixel_ready,
  output wire [AHB_W-1:0]  pixel_data,
  output wire [OW-1:0]     pixel_off,
  output wire [CW-1:0]     pixel_cnt,
  output wire              pixel_last,
  // write channel
  input  wire              store_req_valid,
  output wire              store_req_ready,
  input  wire [31:0]       store_req_addr,
  input  wire [23:0]       store_req_len,
  input  wire              store_valid,
  output wire              store_ready,
  input  wire [AHB_W-1:0]  store_data,
  output wire              store_done,
  // errors, status, performance
  output wire              err_valid,
  output wire [31:0]       err_addr,
  output wire [2:0]        err_chan,
  output wire              weight_bias_full,
  output wire              dma_idle,
  output wire              reading,
  output wire              read_beat,
  output wire              write_beat,
  // AHB
  output wire              m_ahb_hbusreq,
  output wire              m_ahb_hlock,
  input  wire              m_ahb_hgrant,
  output wire [31:0]       m_ahb_haddr,
  output wire [1:0]        m_ahb_htrans,
  output wire              m_ahb_hwrite,
  output wire [2:0]        m_ahb_hsize,
  output wire [2:0]        m_ahb_hburst,
  output wire [3:0]        m_ahb_hprot,
  output wire [AHB_W-1:0]  m_ahb_hwdata,
  input  wire              m_ahb_hready,
  input  wire [1:0]        m_ahb_hresp,
  input  wire [AHB_W-1:0]  m_ahb_hrdata
);

  localparam TAG_W = 6 + 2 * $clog2(AHB_W / 8);

  wire              cmd_valid;
  wire              cmd_ready;
  wire              cmd_write;
  wire [31:0]       cmd_addr;
  wire [4:0]        cmd_beats;
  wire [2:0]        cmd_size;
  wire              cmd_wpop;
  wire [TAG_W-1:0]  cmd_tag;
  wire [AHB_W-1:0]  wd_data;
  wire              wd_pop;
  wire              rsp_valid;
  wire              rsp_write;
  wire              rsp_first;
  wire              rsp_last;
  wire [TAG_W-1:0]  rsp_tag;
  wire [AHB_W-1:0]  rsp_data;
  wire              mst_err_valid;
  wire [31:0]       mst_err_addr;
  wire [TAG_W-1:0]  mst_err_tag;
  wire              mst_clear;
  wire              mst_idle;

  dmac #(
    .AHB_W(AHB_W), .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH), .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH),
    .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_dmac (
    .clk(clk), .rst(rst), .dma_abort(dma_abort),
    .list_req_valid(list_req_valid), .list_req_ready(list_req_ready),
    .list_req_addr(list_req_addr), .list_req_len(list_req_len),
    .list_valid(list_valid), .list_ready(list_ready), .list_data(list_data),
    .list_off(list_off), .list_cnt(list_cnt), .list_last(list_last),
    .bias_req_valid(bias_req_valid), .bias_req_ready(bias_req_ready),
    .bias_req_addr(bias_req_addr), .bias_req_len(bias_req_len),
    .bias_valid(bias_valid), .bias_ready(bias_ready), .bias_data(bias_data),
    .bias_off(bias_off), .bias_cnt(bias_cnt), .bias_last(bias_last),
    .weight_req_valid(weight_req_valid), .weight_req_ready(weight_req_ready),
    .weight_req_addr(weight_req_addr), .weight_req_len(weight_req_len),
    .weight_valid(weight_valid), .weight_ready(weight_ready), .weight_data(weight_data),
    .weight_off(weight_off), .weight_cnt(weight_cnt), .weight_last(weight_last),
    .pixel_req_valid(pixel_req_valid), .pixel_req_ready(pixel_req_ready),
    .pixel_req_addr(pixel_req_addr), .pixel_req_len(pixel_req_len),
    .pixel_valid(pixel_valid), .pixel_ready(pixel_ready), .pixel_data(pixel_data),
    .pixel_off(pixel_off), .pixel_cnt(pixel_cnt), .pixel_last(pixel_last),
    .store_req_valid(store_req_valid), .store_req_ready(store_req_ready), .store_req_addr(store_req_addr),
    .store_req_len(store_req_len), .store_valid(store_valid), .store_ready(store_ready), .store_data(store_data),
    .store_done(store_done),
    .err_valid(err_valid), .err_addr(err_addr), .err_chan(err_chan), .weight_bias_full(weight_bias_full),
    .dma_idle(dma_idle), .reading(reading), .read_beat(read_beat), .write_beat(write_beat),
    .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_write(cmd_write), .cmd_addr(cmd_addr),
    .cmd_beats(cmd_beats), .cmd_size(cmd_size), .cmd_wpop(cmd_wpop), .cmd_tag(cmd_tag),
    .wd_data(wd_data), .wd_pop(wd_pop), .rsp_valid(rsp_valid), .rsp_write(rsp_write),
    .rsp_first(rsp_first), .rsp_last(rsp_last), .rsp_tag(rsp_tag), .rsp_data(rsp_data),
    .mst_err_valid(mst_err_valid), .mst_err_addr(mst_err_addr),
    .mst_err_tag(mst_err_tag), .mst_clear(mst_clear), .mst_idle(mst_idle)
  );

  ahb_master #(
    .AHB_W(AHB_W)
  ) u_master (
    .clk(clk), .rst(rst),
    .m_ahb_hbusreq(m_ahb_hbusreq), .m_ahb_hlock(m_ahb_hlock),
    .m_ahb_hgrant(m_ahb_hgrant), .m_ahb_haddr(m_ahb_haddr),
    .m_ahb_htrans(m_ahb_htrans), .m_ahb_hwrite(m_ahb_hwrite),
    .m_ahb_hsize(m_ahb_hsize), .m_ahb_hburst(m_ahb_hburst),
    .m_ahb_hprot(m_ahb_hprot), .m_ahb_hwdata(m_ahb_hwdata),
    .m_ahb_hready(m_ahb_hready), .m_ahb_hresp(m_ahb_hresp),
    .m_ahb_hrdata(m_ahb_hrdata),
    .cmd_valid(cmd_valid), .cmd_ready(cmd_ready), .cmd_write(cmd_write), .cmd_addr(cmd_addr),
    .cmd_beats(cmd_beats), .cmd_size(cmd_size), .cmd_wpop(cmd_wpop), .cmd_tag(cmd_tag),
    .wd_data(wd_data), .wd_pop(wd_pop), .rsp_valid(rsp_valid), .rsp_write(rsp_write),
    .rsp_first(rsp_first), .rsp_last(rsp_last), .rsp_tag(rsp_tag), .rsp_data(rsp_data),
    .mst_err_valid(mst_err_valid), .mst_err_addr(mst_err_addr),
    .mst_err_tag(mst_err_tag), .mst_clear(mst_clear), .mst_idle(mst_idle)
  );

endmodule

`resetall
