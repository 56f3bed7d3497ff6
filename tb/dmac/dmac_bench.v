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
  // bias channel
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
  // order of the reads, weight channel
  input  wire              wb_first,
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
  // pixel channel
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
  // write channel
  input  wire              wr_req_valid,
  output wire              wr_req_ready,
  input  wire [31:0]       wr_req_addr,
  input  wire [23:0]       wr_req_len,
  input  wire              wr_valid,
  output wire              wr_ready,
  input  wire [AHB_W-1:0]  wr_data,
  output wire              wr_done,
  // errors, status, performance
  output wire              err_valid,
  output wire [31:0]       err_addr,
  output wire [2:0]        err_chan,
  output wire              wb_fifo_full,
  output wire              dma_idle,
  output wire              rd_busy,
  output wire              bus_rd_beat,
  output wire              bus_wr_beat,
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
    .ls_req_valid(ls_req_valid), .ls_req_ready(ls_req_ready),
    .ls_req_addr(ls_req_addr), .ls_req_len(ls_req_len),
    .ls_valid(ls_valid), .ls_ready(ls_ready), .ls_data(ls_data),
    .ls_off(ls_off), .ls_cnt(ls_cnt), .ls_last(ls_last),
    .bs_req_valid(bs_req_valid), .bs_req_ready(bs_req_ready),
    .bs_req_addr(bs_req_addr), .bs_req_len(bs_req_len),
    .bs_valid(bs_valid), .bs_ready(bs_ready), .bs_data(bs_data),
    .bs_off(bs_off), .bs_cnt(bs_cnt), .bs_last(bs_last),
    .wb_first(wb_first), .wt_req_valid(wt_req_valid), .wt_req_ready(wt_req_ready),
    .wt_req_addr(wt_req_addr), .wt_req_len(wt_req_len),
    .wt_valid(wt_valid), .wt_ready(wt_ready), .wt_data(wt_data),
    .wt_off(wt_off), .wt_cnt(wt_cnt), .wt_last(wt_last),
    .px_req_valid(px_req_valid), .px_req_ready(px_req_ready),
    .px_req_addr(px_req_addr), .px_req_len(px_req_len),
    .px_valid(px_valid), .px_ready(px_ready), .px_data(px_data),
    .px_off(px_off), .px_cnt(px_cnt), .px_last(px_last),
    .wr_req_valid(wr_req_valid), .wr_req_ready(wr_req_ready), .wr_req_addr(wr_req_addr),
    .wr_req_len(wr_req_len), .wr_valid(wr_valid), .wr_ready(wr_ready), .wr_data(wr_data),
    .wr_done(wr_done),
    .err_valid(err_valid), .err_addr(err_addr), .err_chan(err_chan), .wb_fifo_full(wb_fifo_full),
    .dma_idle(dma_idle), .rd_busy(rd_busy), .bus_rd_beat(bus_rd_beat), .bus_wr_beat(bus_wr_beat),
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
