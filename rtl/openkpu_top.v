// SPDX-License-Identifier: Apache-2.0
//
// openkpu_top: the CNN coprocessor, an AHB slave for the host and an AHB master for the storage.
//
// How it works: the slave reaches the register block and the AI RAM. Layer arguments come from the
// host (layer_argument_fifo) or as a task list from storage; core_ctrl decodes them one after the
// other, the DMAC brings weights, batch-norm words, tables and pixels through its FIFOs, the core
// computes a layer from AI RAM to AI RAM, and the last map goes to storage or to the host.
// Handshake: AMBA 2.0 AHB on both ports; irq is a level.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module openkpu_top #(
    // array: units in cascade, pixels, output channels
    parameter N_X             = 9,
    parameter N_Y             = 4,
    parameter N_Z             = 4,
    // data width of the master: 32, 64 or 128
    parameter AHB_W           = 32,
    // 64-byte rows of the AI RAM
    parameter AI_RAM_ROWS     = 32768,
    // rows of the weight buffer (9 * N_Z weights each) and bits of a weight (8 or 16)
    parameter WBUF_ROWS       = 1024,
    parameter WEIGHT_BITS     = 16,
    // entries of the tile buffer
    parameter TILE_ROWS       = 32,
    // depths of the FIFOs, in bus words
    parameter PIX_FIFO_DEPTH  = 16,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32,
    // rounding of the activation: 0 nncase, 1 v01, 2 trunc
    parameter ROUNDING        = 0,
    // 1: operands of gated multiplications do not toggle
    parameter GATE            = 1
) (
    // clock and synchronous reset
    input  wire             clk,
    input  wire             rst,
    // AHB slave, 32 bits
    input  wire             s_ahb_hsel,
    input  wire [     31:0] s_ahb_haddr,
    input  wire [      1:0] s_ahb_htrans,
    input  wire             s_ahb_hwrite,
    input  wire [      2:0] s_ahb_hsize,
    input  wire [      2:0] s_ahb_hburst,
    input  wire [      3:0] s_ahb_hprot,
    input  wire [     31:0] s_ahb_hwdata,
    input  wire             s_ahb_hready_in,
    output wire             s_ahb_hready_out,
    output wire [      1:0] s_ahb_hresp,
    output wire [     31:0] s_ahb_hrdata,
    // AHB master
    output wire             m_ahb_hbusreq,
    output wire             m_ahb_hlock,
    input  wire             m_ahb_hgrant,
    output wire [     31:0] m_ahb_haddr,
    output wire [      1:0] m_ahb_htrans,
    output wire             m_ahb_hwrite,
    output wire [      2:0] m_ahb_hsize,
    output wire [      2:0] m_ahb_hburst,
    output wire [      3:0] m_ahb_hprot,
    output wire [AHB_W-1:0] m_ahb_hwdata,
    input  wire             m_ahb_hready,
    input  wire [      1:0] m_ahb_hresp,
    input  wire [AHB_W-1:0] m_ahb_hrdata,
    // interrupt, level
    output wire             irq
);

  localparam RAW = $clog2(AI_RAM_ROWS);
  localparam OW = $clog2(AHB_W / 8);
  localparam CW = OW + 1;
  localparam TAG_W = 6 + 2 * OW;

  // ---- nets between the blocks, by name of the port that drives them
  wire ar_gnt, ar_req;
  wire [14:0] ar_row;
  wire array_issued;
  wire [63:0] aw_be;
  wire [511:0] aw_data;
  wire aw_gnt, aw_req;
  wire [14:0] aw_row;
  wire [CW-1:0] bs_cnt;
  wire [AHB_W-1:0] bs_data;
  wire bs_last;
  wire [OW-1:0] bs_off;
  wire bs_ready;
  wire [ 31:0] bs_req_addr;
  wire [ 23:0] bs_req_len;
  wire bs_req_ready, bs_req_valid, bs_valid, bus_err;
  wire [31:0] bus_err_addr;
  wire [2:0] bus_err_chan;
  wire [31:0] cfg_bias_adr;
  wire [31:0] cfg_list_adr;
  wire [9:0] cfg_list_len;
  wire [31:0] cfg_npix_adr;
  wire [31:0] cfg_pix_adr;
  wire [31:0] cfg_res_adr;
  wire [31:0] cfg_wgt_adr;
  wire [31:0] cmd_addr;
  wire [4:0] cmd_beats;
  wire cmd_ready;
  wire [2:0] cmd_size;
  wire [TAG_W-1:0] cmd_tag;
  wire cmd_valid, cmd_wpop, cmd_write, core_rst, cfg_more, again, boundary, bs_quiet, keep;
  wire [`DESC_W_TOTAL-1:0] d_desc;
  wire d_ready, d_valid, data_idle;
  wire [ 31:0] dec_bias_base;
  wire dec_collected, dec_err;
  wire [ 7:0] dec_err_code;
  wire dec_first, dec_idle;
  wire [ 9:0] dec_index;
  wire dec_last, dec_rst;
  wire [ 63:0] dec_w_data;
  wire dec_w_ready, dec_w_valid;
  wire [ 31:0] dec_wgt_base;
  wire [`DESC_W_TOTAL-1:0] desc;
  wire dma_abort, dma_idle, eight_bit_mode;
  wire [ 31:0] err_addr;
  wire err_any;
  wire [ 7:0] err_code;
  wire [ 15:0] err_layer;
  wire ev_calc_done, ev_err, ev_inf_done, fetch_busy, fetch_start, fl_gnt, fl_req;
  wire [ 14:0] fl_row;
  wire flush;
  wire host_ack, hr_ack;
  wire [20:0] hr_addr;
  wire [ 31:0] hr_rdata;
  wire hr_req;
  wire [31:0] hr_wdata;
  wire hr_we;
  wire [3:0] hr_wstrb;
  wire inf_next;
  wire [63:0] la_data;
  wire la_flush, la_ready, la_valid, late_output;
  wire [CW-1:0] ls_cnt;
  wire [AHB_W-1:0] ls_data;
  wire ls_last;
  wire [OW-1:0] ls_off;
  wire ls_ready;
  wire [ 31:0] ls_req_addr;
  wire [ 23:0] ls_req_len;
  wire ls_req_ready, ls_req_valid, ls_valid, mst_clear;
  wire [31:0] mst_err_addr;
  wire [TAG_W-1:0] mst_err_tag;
  wire mst_err_valid, mst_idle;
  wire [ 71:0] n_gated;
  wire [ 71:0] n_issued;
  wire [9:0] out_chans_m1;
  wire [8:0] out_height_m1;
  wire [9:0] out_width_m1;
  wire perf_clear, wt_quiet, wb_first;
  wire [14*64-1:0] perf_flat;
  wire perf_layer_done, pl_busy, pl_start;
  wire [12:0] prow_base, prow_freed;
  wire npix_take, npix_taken, pw_busy, pw_done, pw_start, ev_inf_kept;
  wire [14:0] pw_row;
  wire [9:0] pw_chans_m1, pw_width_m1;
  wire [8:0] pw_height_m1;
  wire [31:0] taken_adr;
  wire [CW-1:0] px_cnt;
  wire [AHB_W-1:0] px_data;
  wire px_last;
  wire [OW-1:0] px_off;
  wire px_ready;
  wire [ 31:0] px_req_addr;
  wire [ 23:0] px_req_len;
  wire px_req_ready, px_req_valid, px_valid;
  wire [RAW-1:0] ram_raddr;
  wire [ 511:0] ram_rdata;
  wire ram_re;
  wire [RAW-1:0] ram_waddr;
  wire [ 63:0] ram_wbe;
  wire [ 511:0] ram_wdata;
  wire ram_we, rd_beat, rd_busy;
  wire [11:0] reg_addr;
  wire reg_err, reg_rd;
  wire [31:0] reg_rdata;
  wire [31:0] reg_wdata;
  wire reg_wr;
  wire [63:0] rf_data;
  wire rf_ready, rf_valid, rr_busy, rr_dest, rr_done, rr_start;
  wire [AHB_W-1:0] rsp_data;
  wire rsp_first, rsp_last;
  wire [TAG_W-1:0] rsp_tag;
  wire rsp_valid, rsp_write, run_start, seq_done, soft_reset_pulse, st_busy, st_fc_layer;
  wire [ 9:0] st_layer;
  wire st_wb_fifo_full, start_pulse, stop_pulse, wait_output, wait_tile, wait_weight, waiting_bus;
  wire waiting_bus_data, waiting_drain;
  wire [ 63:0] wb_be;
  wire [ 511:0] wb_data;
  wire wb_fifo_full, wb_gnt, wb_req;
  wire [ 14:0] wb_row;
  wire [AHB_W-1:0] wd_data;
  wire wd_pop;
  wire wl_busy, wl_start, wr_beat;
  wire [AHB_W-1:0] wr_data;
  wire wr_done, wr_ready;
  wire [ 31:0] wr_req_addr;
  wire [ 23:0] wr_req_len;
  wire wr_req_ready, wr_req_valid, wr_valid;
  wire [CW-1:0] wt_cnt;
  wire [AHB_W-1:0] wt_data;
  wire wt_last;
  wire [OW-1:0] wt_off;
  wire wt_ready;
  wire [ 31:0] wt_req_addr;
  wire [ 23:0] wt_req_len;
  wire wt_req_ready, wt_req_valid, wt_valid;

  // ---- host side: bus, registers
  ahb_slave #(
      .AI_RAM_ROWS(AI_RAM_ROWS)
  ) u_slave (
      .clk             (clk),
      .rst             (rst),
      .s_ahb_hsel      (s_ahb_hsel),
      .s_ahb_haddr     (s_ahb_haddr),
      .s_ahb_htrans    (s_ahb_htrans),
      .s_ahb_hwrite    (s_ahb_hwrite),
      .s_ahb_hsize     (s_ahb_hsize),
      .s_ahb_hburst    (s_ahb_hburst),
      .s_ahb_hprot     (s_ahb_hprot),
      .s_ahb_hwdata    (s_ahb_hwdata),
      .s_ahb_hready_in (s_ahb_hready_in),
      .s_ahb_hready_out(s_ahb_hready_out),
      .s_ahb_hresp     (s_ahb_hresp),
      .s_ahb_hrdata    (s_ahb_hrdata),
      .reg_wr          (reg_wr),
      .reg_rd          (reg_rd),
      .reg_addr        (reg_addr),
      .reg_wdata       (reg_wdata),
      .reg_rdata       (reg_rdata),
      .reg_err         (reg_err),
      .hr_req          (hr_req),
      .hr_we           (hr_we),
      .hr_addr         (hr_addr),
      .hr_wstrb        (hr_wstrb),
      .hr_wdata        (hr_wdata),
      .hr_ack          (hr_ack),
      .hr_rdata        (hr_rdata)
  );

  reg_block #(
      .N_X  (N_X),
      .N_Y  (N_Y),
      .N_Z  (N_Z),
      .AHB_W(AHB_W)
  ) u_regs (
      .clk             (clk),
      .rst             (rst),
      .reg_wr          (reg_wr),
      .reg_rd          (reg_rd),
      .reg_addr        (reg_addr),
      .reg_wdata       (reg_wdata),
      .reg_rdata       (reg_rdata),
      .reg_err         (reg_err),
      .la_valid        (la_valid),
      .la_ready        (la_ready),
      .la_data         (la_data),
      .la_flush        (la_flush),
      .rf_valid        (rf_valid),
      .rf_ready        (rf_ready),
      .rf_data         (rf_data),
      .eight_bit_mode  (eight_bit_mode),
      .cfg_more        (cfg_more),
      .cfg_pix_adr     (cfg_pix_adr),
      .cfg_npix_adr    (cfg_npix_adr),
      .cfg_wgt_adr     (cfg_wgt_adr),
      .cfg_bias_adr    (cfg_bias_adr),
      .cfg_list_adr    (cfg_list_adr),
      .cfg_list_len    (cfg_list_len),
      .cfg_res_adr     (cfg_res_adr),
      .start_pulse     (start_pulse),
      .soft_reset_pulse(soft_reset_pulse),
      .stop_pulse      (stop_pulse),
      .inf_next        (inf_next),
      .npix_take       (npix_take),
      .npix_taken      (npix_taken),
      .taken_adr       (taken_adr),
      .st_busy         (st_busy),
      .st_fc_layer     (st_fc_layer),
      .st_kept         (again),
      .st_wb_fifo_full (st_wb_fifo_full),
      .st_layer        (st_layer),
      .ev_calc_done    (ev_calc_done),
      .ev_inf_done     (ev_inf_done),
      .ev_err          (ev_err),
      .err_code        (err_code),
      .err_layer       (err_layer),
      .err_addr        (err_addr),
      .err_any         (err_any),
      .perf_flat       (perf_flat),
      .irq             (irq)
  );

  // ---- storage side: bus, DMA, pixels in and results out
  ahb_master #(
      .AHB_W(AHB_W)
  ) u_master (
      .clk          (clk),
      .rst          (rst),
      .m_ahb_hbusreq(m_ahb_hbusreq),
      .m_ahb_hlock  (m_ahb_hlock),
      .m_ahb_hgrant (m_ahb_hgrant),
      .m_ahb_haddr  (m_ahb_haddr),
      .m_ahb_htrans (m_ahb_htrans),
      .m_ahb_hwrite (m_ahb_hwrite),
      .m_ahb_hsize  (m_ahb_hsize),
      .m_ahb_hburst (m_ahb_hburst),
      .m_ahb_hprot  (m_ahb_hprot),
      .m_ahb_hwdata (m_ahb_hwdata),
      .m_ahb_hready (m_ahb_hready),
      .m_ahb_hresp  (m_ahb_hresp),
      .m_ahb_hrdata (m_ahb_hrdata),
      .cmd_valid    (cmd_valid),
      .cmd_ready    (cmd_ready),
      .cmd_write    (cmd_write),
      .cmd_addr     (cmd_addr),
      .cmd_beats    (cmd_beats),
      .cmd_size     (cmd_size),
      .cmd_wpop     (cmd_wpop),
      .cmd_tag      (cmd_tag),
      .wd_data      (wd_data),
      .wd_pop       (wd_pop),
      .rsp_valid    (rsp_valid),
      .rsp_write    (rsp_write),
      .rsp_first    (rsp_first),
      .rsp_last     (rsp_last),
      .rsp_tag      (rsp_tag),
      .rsp_data     (rsp_data),
      .mst_err_valid(mst_err_valid),
      .mst_err_addr (mst_err_addr),
      .mst_err_tag  (mst_err_tag),
      .mst_clear    (mst_clear),
      .mst_idle     (mst_idle)
  );

  dmac #(
      .AHB_W          (AHB_W),
      .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
      .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
      .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
  ) u_dmac (
      .clk          (clk),
      .rst          (rst),
      .dma_abort    (dma_abort),
      .ls_req_valid (ls_req_valid),
      .ls_req_ready (ls_req_ready),
      .ls_req_addr  (ls_req_addr),
      .ls_req_len   (ls_req_len),
      .ls_valid     (ls_valid),
      .ls_ready     (ls_ready),
      .ls_data      (ls_data),
      .ls_off       (ls_off),
      .ls_cnt       (ls_cnt),
      .ls_last      (ls_last),
      .bs_req_valid (bs_req_valid),
      .bs_req_ready (bs_req_ready),
      .bs_req_addr  (bs_req_addr),
      .bs_req_len   (bs_req_len),
      .bs_valid     (bs_valid),
      .bs_ready     (bs_ready),
      .bs_data      (bs_data),
      .bs_off       (bs_off),
      .bs_cnt       (bs_cnt),
      .bs_last      (bs_last),
      .wb_first     (wb_first),
      .wt_req_valid (wt_req_valid),
      .wt_req_ready (wt_req_ready),
      .wt_req_addr  (wt_req_addr),
      .wt_req_len   (wt_req_len),
      .wt_valid     (wt_valid),
      .wt_ready     (wt_ready),
      .wt_data      (wt_data),
      .wt_off       (wt_off),
      .wt_cnt       (wt_cnt),
      .wt_last      (wt_last),
      .px_req_valid (px_req_valid),
      .px_req_ready (px_req_ready),
      .px_req_addr  (px_req_addr),
      .px_req_len   (px_req_len),
      .px_valid     (px_valid),
      .px_ready     (px_ready),
      .px_data      (px_data),
      .px_off       (px_off),
      .px_cnt       (px_cnt),
      .px_last      (px_last),
      .wr_req_valid (wr_req_valid),
      .wr_req_ready (wr_req_ready),
      .wr_req_addr  (wr_req_addr),
      .wr_req_len   (wr_req_len),
      .wr_valid     (wr_valid),
      .wr_ready     (wr_ready),
      .wr_data      (wr_data),
      .wr_done      (wr_done),
      .err_valid    (bus_err),
      .err_addr     (bus_err_addr),
      .err_chan     (bus_err_chan),
      .wb_fifo_full (wb_fifo_full),
      .dma_idle     (dma_idle),
      .wt_quiet     (wt_quiet),
      .bs_quiet     (bs_quiet),
      .rd_busy      (rd_busy),
      .bus_rd_beat  (rd_beat),
      .bus_wr_beat  (wr_beat),
      .cmd_valid    (cmd_valid),
      .cmd_ready    (cmd_ready),
      .cmd_write    (cmd_write),
      .cmd_addr     (cmd_addr),
      .cmd_beats    (cmd_beats),
      .cmd_size     (cmd_size),
      .cmd_wpop     (cmd_wpop),
      .cmd_tag      (cmd_tag),
      .wd_data      (wd_data),
      .wd_pop       (wd_pop),
      .rsp_valid    (rsp_valid),
      .rsp_write    (rsp_write),
      .rsp_first    (rsp_first),
      .rsp_last     (rsp_last),
      .rsp_tag      (rsp_tag),
      .rsp_data     (rsp_data),
      .mst_err_valid(mst_err_valid),
      .mst_err_addr (mst_err_addr),
      .mst_err_tag  (mst_err_tag),
      .mst_clear    (mst_clear),
      .mst_idle     (mst_idle)
  );

  pixel_writer #(
      .AHB_W(AHB_W)
  ) u_pixels (
      .clk      (clk),
      .rst      (rst),
      .stop     (flush),
      .start    (pw_start),
      .base_row (pw_row),
      .chans_m1 (pw_chans_m1),
      .height_m1(pw_height_m1),
      .width_m1 (pw_width_m1),
      .px_valid (px_valid),
      .px_ready (px_ready),
      .px_data  (px_data),
      .px_off   (px_off),
      .px_cnt   (px_cnt),
      .aw_req   (aw_req),
      .aw_row   (aw_row),
      .aw_be    (aw_be),
      .aw_data  (aw_data),
      .aw_gnt   (aw_gnt),
      .busy     (pw_busy),
      .done     (pw_done)
  );

  result_reader #(
      .AHB_W(AHB_W)
  ) u_results (
      .clk      (clk),
      .rst      (rst),
      .stop     (flush),
      .start    (rr_start),
      .base_row (desc[`DESC_DST]),
      .chans_m1 (out_chans_m1),
      .height_m1(out_height_m1),
      .width_m1 (out_width_m1),
      .dest     (rr_dest),
      .ar_req   (ar_req),
      .ar_row   (ar_row),
      .ar_gnt   (ar_gnt),
      .ar_data  (ram_rdata),
      .rf_valid (rf_valid),
      .rf_ready (rf_ready),
      .rf_data  (rf_data),
      .wr_valid (wr_valid),
      .wr_ready (wr_ready),
      .wr_data  (wr_data),
      .busy     (rr_busy),
      .done     (rr_done)
  );

  // ---- control
  core_ctrl #(
      .AHB_W    (AHB_W),
      .N_Z      (N_Z),
      .WBUF_ROWS(WBUF_ROWS)
  ) u_ctrl (
      .clk             (clk),
      .rst             (rst),
      .cfg_more        (cfg_more),
      .cfg_pix_adr     (cfg_pix_adr),
      .cfg_npix_adr    (cfg_npix_adr),
      .cfg_wgt_adr     (cfg_wgt_adr),
      .cfg_bias_adr    (cfg_bias_adr),
      .cfg_list_adr    (cfg_list_adr),
      .cfg_list_len    (cfg_list_len),
      .cfg_res_adr     (cfg_res_adr),
      .start_pulse     (start_pulse),
      .soft_reset_pulse(soft_reset_pulse),
      .stop_pulse      (stop_pulse),
      .host_ack        (host_ack),
      .inf_next        (inf_next),
      .npix_take       (npix_take),
      .npix_taken      (npix_taken),
      .taken_adr       (taken_adr),
      .la_valid        (la_valid),
      .la_ready        (la_ready),
      .la_data         (la_data),
      .la_flush        (la_flush),
      .ls_req_valid    (ls_req_valid),
      .ls_req_ready    (ls_req_ready),
      .ls_req_addr     (ls_req_addr),
      .ls_req_len      (ls_req_len),
      .ls_valid        (ls_valid),
      .ls_ready        (ls_ready),
      .ls_data         (ls_data),
      .ls_off          (ls_off),
      .ls_cnt          (ls_cnt),
      .dw_valid        (dec_w_valid),
      .dw_ready        (dec_w_ready),
      .dw_data         (dec_w_data),
      .dec_wgt_base    (dec_wgt_base),
      .dec_bias_base   (dec_bias_base),
      .dec_index       (dec_index),
      .dec_first       (dec_first),
      .dec_last        (dec_last),
      .dec_collected   (dec_collected),
      .dec_idle        (dec_idle),
      .dec_err         (dec_err),
      .dec_err_code    (dec_err_code),
      .d_valid         (d_valid),
      .d_ready         (d_ready),
      .d_desc          (d_desc),
      .fetch_start     (fetch_start),
      .fetch_busy      (fetch_busy),
      .boundary        (boundary),
      .again           (again),
      .wl_start        (wl_start),
      .wl_busy         (wl_busy),
      .pl_start        (pl_start),
      .pl_busy         (pl_busy),
      .run_start       (run_start),
      .desc            (desc),
      .seq_done        (seq_done),
      .data_idle       (data_idle),
      .prow_base       (prow_base),
      .prow_freed      (prow_freed),
      .keep            (keep),
      .pw_start        (pw_start),
      .pw_done         (pw_done),
      .pw_row          (pw_row),
      .pw_chans_m1     (pw_chans_m1),
      .pw_height_m1    (pw_height_m1),
      .pw_width_m1     (pw_width_m1),
      .px_req_valid    (px_req_valid),
      .px_req_ready    (px_req_ready),
      .px_req_addr     (px_req_addr),
      .px_req_len      (px_req_len),
      .rr_start        (rr_start),
      .rr_dest         (rr_dest),
      .rr_done         (rr_done),
      .wr_req_valid    (wr_req_valid),
      .wr_req_ready    (wr_req_ready),
      .wr_req_addr     (wr_req_addr),
      .wr_req_len      (wr_req_len),
      .wr_done         (wr_done),
      .bus_err         (bus_err),
      .bus_err_addr    (bus_err_addr),
      .flush           (flush),
      .dma_abort       (dma_abort),
      .dma_idle        (dma_idle),
      .st_busy         (st_busy),
      .st_fc_layer     (st_fc_layer),
      .st_layer        (st_layer),
      .waiting_bus     (waiting_bus),
      .waiting_drain   (waiting_drain),
      .ev_calc_done    (ev_calc_done),
      .ev_inf_done     (ev_inf_done),
      .ev_inf_kept     (ev_inf_kept),
      .layer_done      (perf_layer_done),
      .ev_err          (ev_err),
      .err_code        (err_code),
      .err_layer       (err_layer),
      .err_addr        (err_addr)
  );

  layer_decode #(
      .N_Y        (N_Y),
      .N_Z        (N_Z),
      .WEIGHT_BITS(WEIGHT_BITS),
      .AI_RAM_ROWS(AI_RAM_ROWS),
      .WBUF_ROWS  (WBUF_ROWS),
      .TILE_ROWS  (TILE_ROWS)
  ) u_decode (
      .clk      (clk),
      .rst      (dec_rst),
      .w_valid  (dec_w_valid),
      .w_ready  (dec_w_ready),
      .w_data   (dec_w_data),
      .eight_bit(eight_bit_mode),
      .wgt_base (dec_wgt_base),
      .bias_base(dec_bias_base),
      .index    (dec_index),
      .first    (dec_first),
      .last     (dec_last),
      .collected(dec_collected),
      .d_valid  (d_valid),
      .d_ready  (d_ready),
      .desc     (d_desc),
      .err      (dec_err),
      .err_code (dec_err_code),
      .idle     (dec_idle)
  );

  fetch_ctrl u_fetch (
      .clk         (clk),
      .rst         (core_rst),
      .start       (fetch_start),
      .desc        (d_desc),
      .again       (again),
      .busy        (fetch_busy),
      .boundary    (boundary),
      .wt_quiet    (wt_quiet),
      .bs_quiet    (bs_quiet),
      .wb_first    (wb_first),
      .wt_req_valid(wt_req_valid),
      .wt_req_ready(wt_req_ready),
      .wt_req_addr (wt_req_addr),
      .wt_req_len  (wt_req_len),
      .bs_req_valid(bs_req_valid),
      .bs_req_ready(bs_req_ready),
      .bs_req_addr (bs_req_addr),
      .bs_req_len  (bs_req_len)
  );

  // ---- data path and data cache
  openkpu_core #(
      .N_X      (N_X),
      .N_Y      (N_Y),
      .N_Z      (N_Z),
      .AHB_W    (AHB_W),
      .WB       (WEIGHT_BITS),
      .ROUNDING (ROUNDING),
      .GATE     (GATE),
      .TILE_ROWS(TILE_ROWS),
      .WBUF_ROWS(WBUF_ROWS)
  ) u_core (
      .clk        (clk),
      .rst        (core_rst),
      .start      (run_start),
      .desc       (desc),
      .prow_base  (prow_base),
      .prow_freed (prow_freed),
      .keep       (keep),
      .again      (again),
      .seq_done   (seq_done),
      .idle       (data_idle),
      .wl_start   (wl_start),
      .wl_busy    (wl_busy),
      .pl_start   (pl_start),
      .pl_busy    (pl_busy),
      .ld_desc    (d_desc),
      .wt_valid   (wt_valid),
      .wt_ready   (wt_ready),
      .wt_data    (wt_data),
      .wt_off     (wt_off),
      .wt_cnt     (wt_cnt),
      .bs_valid   (bs_valid),
      .bs_ready   (bs_ready),
      .bs_data    (bs_data),
      .bs_off     (bs_off),
      .bs_cnt     (bs_cnt),
      .fl_req     (fl_req),
      .fl_row     (fl_row),
      .fl_gnt     (fl_gnt),
      .fl_data    (ram_rdata),
      .wb_req     (wb_req),
      .wb_row     (wb_row),
      .wb_be      (wb_be),
      .wb_data    (wb_data),
      .wb_gnt     (wb_gnt),
      .issued     (array_issued),
      .wait_tile  (wait_tile),
      .wait_weight(wait_weight),
      .wait_output(wait_output),
      .n_issued   (n_issued),
      .n_gated    (n_gated)
  );

  ai_ram_arb #(
      .ROWS(AI_RAM_ROWS)
  ) u_arb (
      .clk     (clk),
      .rst     (rst),
      .fl_req  (fl_req),
      .fl_row  (fl_row),
      .fl_gnt  (fl_gnt),
      .ar_req  (ar_req),
      .ar_row  (ar_row),
      .ar_gnt  (ar_gnt),
      .wb_req  (wb_req),
      .wb_row  (wb_row),
      .wb_be   (wb_be),
      .wb_data (wb_data),
      .wb_gnt  (wb_gnt),
      .aw_req  (aw_req),
      .aw_row  (aw_row),
      .aw_be   (aw_be),
      .aw_data (aw_data),
      .aw_gnt  (aw_gnt),
      .hr_req  (hr_req),
      .hr_we   (hr_we),
      .hr_addr (hr_addr),
      .hr_wstrb(hr_wstrb),
      .hr_wdata(hr_wdata),
      .hr_ack  (hr_ack),
      .hr_rdata(hr_rdata),
      .re      (ram_re),
      .raddr   (ram_raddr),
      .rdata   (ram_rdata),
      .we      (ram_we),
      .waddr   (ram_waddr),
      .wbe     (ram_wbe),
      .wdata   (ram_wdata)
  );

  ai_ram #(
      .ROWS(AI_RAM_ROWS)
  ) u_ai_ram (
      .clk  (clk),
      .we   (ram_we),
      .waddr(ram_waddr),
      .wbe  (ram_wbe),
      .wdata(ram_wdata),
      .re   (ram_re),
      .raddr(ram_raddr),
      .rdata(ram_rdata)
  );

  perf u_perf (
      .clk        (clk),
      .rst        (rst),
      .clear      (perf_clear),
      .busy       (st_busy),
      .issued     (array_issued),
      .wait_input (wait_tile),
      .wait_weight(wait_weight),
      .wait_output(late_output),
      .wait_bus   (waiting_bus_data),
      .bus_reading(rd_busy),
      .n_issued   (n_issued),
      .n_gated    (n_gated),
      .layer_done (perf_layer_done),
      .inf_done   (ev_inf_done),
      .inf_kept   (ev_inf_kept),
      .rd_beat    (rd_beat),
      .wr_beat    (wr_beat),
      .flat       (perf_flat)
  );

  // ---- glue
  assign core_rst = rst || flush;
  assign dec_rst = rst || flush || (la_flush && !rr_dest);  // rr_dest: a task-list run
  assign st_wb_fifo_full = wb_fifo_full;
  // an error in host mode is acknowledged by clearing it, or by the clear that begins every layer
  assign host_ack = reg_wr && (reg_addr == 12'h140 || reg_addr == 12'h020);
  assign perf_clear = start_pulse || soft_reset_pulse;
  assign late_output = wait_output || (waiting_drain && !wait_tile && !wait_weight);
  assign waiting_bus_data = waiting_bus || (rd_busy && !waiting_drain);
  // sizes of the last layer's output, minus one
  wire [10:0] out_chans = desc[`DESC_O] - 11'd1;
  wire [ 9:0] out_height = desc[`DESC_OH] - 10'd1;
  wire [10:0] out_width = desc[`DESC_OW] - 11'd1;
  assign out_chans_m1 = out_chans[9:0];
  assign out_height_m1 = out_height[8:0];
  assign out_width_m1 = out_width[9:0];

  wire unused = &{1'b0, bus_err_chan, err_any, ls_last, bs_last, wt_last, px_last, pw_busy, rr_busy,
                  out_chans[10], out_height[9], out_width[10]};

endmodule

`resetall
