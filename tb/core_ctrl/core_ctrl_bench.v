// SPDX-License-Identifier: Apache-2.0
//
// core_ctrl_bench: the central controller with the layer decoder, its neighbours left to Python.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module core_ctrl_bench #(
    // as in core_ctrl
    parameter AHB_W = 32,
    parameter PRW   = 13,
    parameter N_Z   = 2,
    parameter OW    = $clog2(AHB_W / 8),
    parameter CW    = OW + 1
) (
    // clock and synchronous reset
    input  wire                            clk,
    input  wire                            rst,
    // configuration and commands
    input  wire [              1:0]        cfg_mode,
    input  wire [             31:0]        cfg_pix_adr,
    input  wire [             31:0]        cfg_wgt_adr,
    input  wire [             31:0]        cfg_bias_adr,
    input  wire [             31:0]        cfg_list_adr,
    input  wire [              9:0]        cfg_list_len,
    input  wire [             31:0]        cfg_res_adr,
    input  wire                            start_pulse,
    input  wire                            soft_reset_pulse,
    input  wire                            stop_pulse,
    input  wire                            host_ack,
    output wire                            inf_next,
    // layer words of the host
    input  wire                            la_valid,
    output wire                            la_ready,
    input  wire [             63:0]        la_data,
    input  wire                            la_flush,
    // list channel
    output wire                            ls_req_valid,
    input  wire                            ls_req_ready,
    output wire [             31:0]        ls_req_addr,
    output wire [             23:0]        ls_req_len,
    input  wire                            ls_valid,
    output wire                            ls_ready,
    input  wire [        AHB_W-1:0]        ls_data,
    input  wire [           OW-1:0]        ls_off,
    input  wire [           CW-1:0]        ls_cnt,
    // fetch side
    output wire                            fetch_start,
    input  wire                            fetch_busy,
    output wire                            wl_start,
    input  wire                            wl_busy,
    output wire                            pl_start,
    input  wire                            pl_busy,
    // compute side
    output wire                            run_start,
    output wire [`DESC_W_TOTAL-1:0]        desc,
    input  wire                            seq_done,
    input  wire                            data_idle,
    output wire [          PRW-1:0]        prow_base,
    // pixel writer and its channel
    output wire                            pw_start,
    input  wire                            pw_done,
    output wire                            px_req_valid,
    input  wire                            px_req_ready,
    output wire [             31:0]        px_req_addr,
    output wire [             23:0]        px_req_len,
    // result reader and the write channel
    output wire                            rr_start,
    output wire                            rr_dest,
    input  wire                            rr_done,
    output wire                            wr_req_valid,
    input  wire                            wr_req_ready,
    output wire [             31:0]        wr_req_addr,
    output wire [             23:0]        wr_req_len,
    input  wire                            wr_done,
    // errors, flush
    input  wire                            bus_err,
    input  wire [             31:0]        bus_err_addr,
    output wire                            flush,
    output wire                            dma_abort,
    input  wire                            dma_idle,
    // status and events
    output wire                            st_busy,
    output wire                            st_fc_layer,
    output wire [              9:0]        st_layer,
    output wire                            waiting_bus,
    output wire                            waiting_drain,
    output wire                            ev_calc_done,
    output wire                            ev_inf_done,
    output wire                            layer_done,
    output wire                            ev_err,
    output wire [              7:0]        err_code,
    output wire [             15:0]        err_layer,
    output wire [             31:0]        err_addr,
    // the descriptor that the fetch side takes, the refusal of the decoder
    output wire [`DESC_W_TOTAL-1:0]        d_desc,
    output wire                            dec_err
);

  wire dw_valid, dw_ready, dec_first, dec_last, dec_collected, dec_idle, d_valid, d_ready;
  wire [63:0] dw_data;
  wire [31:0] dec_wgt_base, dec_bias_base;
  wire [9:0] dec_index;
  wire [7:0] dec_err_code;

  core_ctrl #(
      .AHB_W(AHB_W),
      .PRW  (PRW),
      .N_Z  (N_Z)
  ) u_ctrl (
      .clk          (clk),
      .rst          (rst),
      .cfg_mode     (cfg_mode),
      .cfg_pix_adr  (cfg_pix_adr),
      .cfg_wgt_adr  (cfg_wgt_adr),
      .cfg_bias_adr (cfg_bias_adr),
      .cfg_list_adr (cfg_list_adr),
      .cfg_list_len (cfg_list_len),
      .cfg_res_adr  (cfg_res_adr),
      .start_pulse  (start_pulse),
      .soft_reset_pulse(soft_reset_pulse),
      .stop_pulse   (stop_pulse),
      .host_ack     (host_ack),
      .inf_next     (inf_next),
      .la_valid     (la_valid),
      .la_ready     (la_ready),
      .la_data      (la_data),
      .la_flush     (la_flush),
      .ls_req_valid (ls_req_valid),
      .ls_req_ready (ls_req_ready),
      .ls_req_addr  (ls_req_addr),
      .ls_req_len   (ls_req_len),
      .ls_valid     (ls_valid),
      .ls_ready     (ls_ready),
      .ls_data      (ls_data),
      .ls_off       (ls_off),
      .ls_cnt       (ls_cnt),
      .dw_valid     (dw_valid),
      .dw_ready     (dw_ready),
      .dw_data      (dw_data),
      .dec_wgt_base (dec_wgt_base),
      .dec_bias_base(dec_bias_base),
      .dec_index    (dec_index),
      .dec_first    (dec_first),
      .dec_last     (dec_last),
      .dec_collected(dec_collected),
      .dec_idle     (dec_idle),
      .dec_err      (dec_err),
      .dec_err_code (dec_err_code),
      .d_valid      (d_valid),
      .d_ready      (d_ready),
      .d_desc       (d_desc),
      .fetch_start  (fetch_start),
      .fetch_busy   (fetch_busy),
      .wl_start     (wl_start),
      .wl_busy      (wl_busy),
      .pl_start     (pl_start),
      .pl_busy      (pl_busy),
      .run_start    (run_start),
      .desc         (desc),
      .seq_done     (seq_done),
      .data_idle    (data_idle),
      .prow_base    (prow_base),
      .pw_start     (pw_start),
      .pw_done      (pw_done),
      .px_req_valid (px_req_valid),
      .px_req_ready (px_req_ready),
      .px_req_addr  (px_req_addr),
      .px_req_len   (px_req_len),
      .rr_start     (rr_start),
      .rr_dest      (rr_dest),
      .rr_done      (rr_done),
      .wr_req_valid (wr_req_valid),
      .wr_req_ready (wr_req_ready),
      .wr_req_addr  (wr_req_addr),
      .wr_req_len   (wr_req_len),
      .wr_done      (wr_done),
      .bus_err      (bus_err),
      .bus_err_addr (bus_err_addr),
      .flush        (flush),
      .dma_abort    (dma_abort),
      .dma_idle     (dma_idle),
      .st_busy      (st_busy),
      .st_fc_layer  (st_fc_layer),
      .st_layer     (st_layer),
      .waiting_bus  (waiting_bus),
      .waiting_drain(waiting_drain),
      .ev_calc_done (ev_calc_done),
      .ev_inf_done  (ev_inf_done),
      .layer_done   (layer_done),
      .ev_err       (ev_err),
      .err_code     (err_code),
      .err_layer    (err_layer),
      .err_addr     (err_addr)
  );

  layer_decode #(
      .N_Y(2),
      .N_Z(N_Z)
  ) u_decode (
      .clk      (clk),
      .rst      (rst || flush),
      .w_valid  (dw_valid),
      .w_ready  (dw_ready),
      .w_data   (dw_data),
      .eight_bit(1'b1),
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

endmodule

`resetall
