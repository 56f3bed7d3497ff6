// SPDX-License-Identifier: Apache-2.0
//
// core_ctrl: the central controller.
//
// How it works: layer words come from the host's FIFO or, in a task-list run, from the list channel
// of the DMAC. Decoded layers go three ways: to fetch_ctrl and the loaders, which run ahead, and
// into a queue of four for the array. The array takes one layer at a time: the first one of an
// inference waits for its pixels, the last one's map is sent to storage (host mode: a layer with
// send_data_out streams it to the result FIFO). In continuous mode the next inference's list is
// requested as soon as the present one is decoded, so its first weights arrive while this one
// computes. Its pixels are asked for when all reads of this one and those of its own first layer
// are sent out and the computation is in the fully connected layers (a network without: when the input map's place is free).
// AI_CFG moves on when an inference ends. A layer that is refused, an ERROR on the bus or a soft
// reset flush everything; after an error in host mode words are discarded, layer by layer, until
// the host acknowledges.
// Handshake: start, stop and acknowledge are pulses; everything else is valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module core_ctrl #(
    // bus width
    parameter AHB_W = 32,
    // width of a parameter row counter, output channels of the array
    parameter PRW   = 13,
    parameter N_Z   = 4,
    parameter ZW    = $clog2(N_Z),
    // rows of the weight buffer
    parameter WBUF_ROWS = 1024,
    parameter OW    = $clog2(AHB_W / 8),
    parameter CW    = OW + 1
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // configuration and commands of AI_CFG
    input  wire                     cfg_more,
    input  wire [             31:0] cfg_pix_adr,
    input  wire [             31:0] cfg_npix_adr,
    input  wire [             31:0] cfg_wgt_adr,
    input  wire [             31:0] cfg_bias_adr,
    input  wire [             31:0] cfg_list_adr,
    input  wire [              9:0] cfg_list_len,
    input  wire [             31:0] cfg_res_adr,
    input  wire                     start_pulse,
    input  wire                     soft_reset_pulse,
    input  wire                     stop_pulse,
    input  wire                     host_ack,
    output reg                      inf_next,
    // the next inference's pixel address was taken: now, since then, which
    output wire                     npix_take,
    output wire                     npix_taken,
    output wire [             31:0] taken_adr,
    // layer words of the host
    input  wire                     la_valid,
    output wire                     la_ready,
    input  wire [             63:0] la_data,
    input  wire                     la_flush,
    // list channel of the DMAC
    output reg                      ls_req_valid,
    input  wire                     ls_req_ready,
    output wire [             31:0] ls_req_addr,
    output wire [             23:0] ls_req_len,
    input  wire                     ls_valid,
    output wire                     ls_ready,
    input  wire [        AHB_W-1:0] ls_data,
    input  wire [           OW-1:0] ls_off,
    input  wire [           CW-1:0] ls_cnt,
    // decoder
    output wire                     dw_valid,
    input  wire                     dw_ready,
    output wire [             63:0] dw_data,
    output wire [             31:0] dec_wgt_base,
    output wire [             31:0] dec_bias_base,
    output wire [              9:0] dec_index,
    output wire                     dec_first,
    output wire                     dec_last,
    input  wire                     dec_collected,
    input  wire                     dec_idle,
    input  wire                     dec_err,
    input  wire [              7:0] dec_err_code,
    input  wire                     d_valid,
    output wire                     d_ready,
    input  wire [`DESC_W_TOTAL-1:0] d_desc,
    // fetch side: each takes the descriptor once
    output wire                     fetch_start,
    input  wire                     fetch_busy,
    input  wire                     first_out,
    output wire                     again,
    output wire                     wl_start,
    input  wire                     wl_busy,
    output wire                     pl_start,
    input  wire                     pl_busy,
    // compute side
    output wire                     run_start,
    output wire [`DESC_W_TOTAL-1:0] desc,
    input  wire                     seq_done,
    input  wire                     data_idle,
    output reg  [          PRW-1:0] prow_base,
    output wire [          PRW-1:0] prow_freed,
    output wire                     keep,
    // pixel writer and its channel
    output wire                     pw_start,
    input  wire                     pw_done,
    output wire [             14:0] pw_row,
    output wire [              9:0] pw_chans_m1,
    output wire [              8:0] pw_height_m1,
    output wire [              9:0] pw_width_m1,
    output wire                     px_req_valid,
    input  wire                     px_req_ready,
    output wire [             31:0] px_req_addr,
    output wire [             23:0] px_req_len,
    // result reader and the write channel
    output reg                      rr_start,
    output wire                     rr_dest,
    input  wire                     rr_done,
    output reg                      wr_req_valid,
    input  wire                     wr_req_ready,
    output wire [             31:0] wr_req_addr,
    output wire [             23:0] wr_req_len,
    input  wire                     wr_done,
    // errors of the bus, flush of the core
    input  wire                     bus_err,
    input  wire [             31:0] bus_err_addr,
    output wire                     flush,
    output wire                     dma_abort,
    input  wire                     dma_idle,
    // status and events
    output wire                     st_busy,
    output wire                     st_fc_layer,
    output wire [              9:0] st_layer,
    output wire                     waiting_bus,
    output wire                     waiting_drain,
    output reg                      ev_calc_done,
    output reg                      ev_inf_done,
    output reg                      ev_inf_kept,
    output reg                      layer_done,
    output reg                      ev_err,
    output reg  [              7:0] err_code,
    output reg  [             15:0] err_layer,
    output reg  [             31:0] err_addr
);

  localparam [7:0] E_BUS = 8'd7;
  localparam [3:0] C_IDLE = 4'd0, C_PIX = 4'd1, C_START = 4'd3, C_RUN = 4'd4,
      C_OUT = 4'd5, C_OUTW = 4'd6, C_END = 4'd7, C_NEXT = 4'd8, C_FLUSH = 4'd9;

  reg  [3:0] state;
  reg        list_mode;  // a task-list run is on
  reg        hold;  // host mode after an error: discard until acknowledged
  reg        stopping;

  // ---- list: one request for each inference, words through a gearbox
  reg  [1:0] lists_due;
  reg        list_read;  // a list is being collected
  reg        committed;  // the next inference's list is due or under way
  reg        settle;  // AI_CFG is moving on
  reg  [9:0] list_idx;

  wire [4:0] ls_level;
  wire [63:0] ls_word;
  wire [3:0] ls_take;
  localparam LVL_W = $clog2(8 + 2 * (AHB_W / 8) + 1);
  wire [LVL_W-1:0] level;
  assign ls_level = (level >= 8) ? 5'd8 : 5'd0;
  byte_gearbox #(
      .IN_BYTES (AHB_W / 8),
      .OUT_BYTES(8)
  ) u_gear (
      .clk     (clk),
      .rst     (rst || flush),
      .flush   (1'b0),
      .in_valid(ls_valid),
      .in_ready(ls_ready),
      .in_data (ls_data),
      .in_off  (ls_off),
      .in_cnt  (ls_cnt),
      .avail   (level),
      .out_data(ls_word),
      .take    (ls_take)
  );

  assign ls_req_addr = cfg_list_adr;
  assign ls_req_len  = {8'd0, cfg_list_len, 6'd0} + {9'd0, cfg_list_len, 5'd0};  // 96 bytes each
  wire list_word = list_read && ls_level == 5'd8;
  assign ls_take = (list_word && dw_ready && dw_valid) ? 4'd8 : 4'd0;

  // ---- words to the decoder
  reg  [3:0] la_word;  // words of the host's layer taken so far
  reg  [9:0] host_idx;
  reg        dec_bad;  // a refused layer waits until those before it are done
  wire       la_drop = hold || (state == C_FLUSH);
  wire       la_skip = la_drop && !list_mode;
  assign dw_valid = !dec_bad && state != C_FLUSH &&
      (list_mode ? list_word : la_valid && !hold);
  assign dw_data  = list_mode ? ls_word : la_data;
  // in the cycle in which the hold ends no word is discarded any more
  reg  ack_seen;
  wire unhold = la_word == 4'd0 && (host_ack || start_pulse || soft_reset_pulse || ack_seen);
  assign la_ready = la_skip ? hold && !unhold : !list_mode && !dec_bad && state != C_FLUSH && dw_ready;
  wire la_pop = la_valid && la_ready;

  wire list_end = list_idx == cfg_list_len - 10'd1;
  assign dec_wgt_base  = list_mode ? cfg_wgt_adr : 32'd0;
  assign dec_bias_base = list_mode ? cfg_bias_adr : 32'd0;
  assign dec_index     = list_mode ? list_idx : host_idx;
  assign dec_first     = list_mode && list_idx == 10'd0;
  assign dec_last      = list_mode && list_end;

  // ---- the descriptor goes to four takers
  reg  t_fetch, t_wl, t_pl, t_queue;
  wire q_ready;
  wire give_fetch = d_valid && !t_fetch && !fetch_busy;
  wire give_wl = d_valid && !t_wl && !wl_busy;
  wire give_pl = d_valid && !t_pl && !pl_busy;
  wire give_queue = d_valid && !t_queue && q_ready;
  assign fetch_start = give_fetch;
  assign wl_start    = give_wl && !again;
  assign pl_start    = give_pl;
  assign d_ready = (t_fetch || give_fetch) && (t_wl || give_wl) && (t_pl || give_pl) &&
      (t_queue || give_queue);

  wire q_valid;
  wire [2:0] q_count;
  wire [`DESC_W_TOTAL-1:0] q_desc;
  // between layers the data path sees zeros, not what is left in the queue
  assign desc = q_valid ? q_desc : {`DESC_W_TOTAL{1'b0}};
  reg  q_pop;
  fifo_sync #(
      .WIDTH(`DESC_W_TOTAL),
      .DEPTH(4)
  ) u_queue (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .in_valid (give_queue),
      .in_ready (q_ready),
      .in_data  (d_desc),
      .out_valid(q_valid),
      .out_ready(q_pop),
      .out_data (q_desc),
      .count    (q_count)
  );

  // ---- weights that stay, pixels that come early
  reg        inf_on;  // an inference is past its first start
  reg  [1:0] reads;  // inferences whose first layer's reads are sent out, from the one at work on
  reg        fc_any, has_fc;  // of the list that is decoded, of the whole list
  reg        fc_reached;
  reg  [9:0] touch_idx, free_after;  // last layer that uses the input map's place
  reg        kept;  // the inference at work reads no weights
  reg  [PRW-1:0] prow_net;  // first parameter row of the network that is kept
  wire       given = d_valid && d_ready;
  wire       first_given = given && list_mode && d_desc[`DESC_FIRST];
  wire       fc_given = d_desc[`DESC_MODE] == `MODE_FC;
  wire [9:0] touch_now = d_desc[`DESC_TOUCH] ? d_desc[`DESC_IDX] : touch_idx;
  wire       pix_ready;
  wire       pix_take = state == C_START && list_mode && desc[`DESC_FIRST];
  wire       place_free = !inf_on || (q_valid && !q_pop && desc[`DESC_IDX] > free_after);
  wire       ask_ok = inf_on && committed && cfg_more && !stopping && reads == 2'd2 &&
      (has_fc ? fc_reached : place_free);
  assign prow_freed = keep ? prow_net : prow_base;

  weight_keep #(
      .N_Z      (N_Z),
      .WBUF_ROWS(WBUF_ROWS)
  ) u_keep (
      .clk      (clk),
      .rst      (rst),
      .flush    (flush),
      .begin_run(start_pulse),
      .stream   (cfg_more),
      .ends     (state == C_NEXT && !go_on),
      .seen     (d_valid && list_mode),
      .given    (given),
      .desc     (d_desc),
      .keep     (keep),
      .again    (again)
  );

  pixel_ctrl u_pixel_ctrl (
      .clk         (clk),
      .rst         (rst),
      .flush       (flush),
      .first_valid (first_given),
      .first_desc  (d_desc),
      .begin_run   (start_pulse),
      .move_on     (settle),
      .ask_ok      (ask_ok),
      .place_free  (place_free),
      .cfg_pix_adr (cfg_pix_adr),
      .cfg_npix_adr(cfg_npix_adr),
      .ready       (pix_ready),
      .take        (pix_take),
      .npix_take   (npix_take),
      .npix_taken  (npix_taken),
      .taken_adr   (taken_adr),
      .px_req_valid(px_req_valid),
      .px_req_ready(px_req_ready),
      .px_req_addr (px_req_addr),
      .px_req_len  (px_req_len),
      .pw_start    (pw_start),
      .pw_done     (pw_done),
      .pw_row      (pw_row),
      .pw_chans_m1 (pw_chans_m1),
      .pw_height_m1(pw_height_m1),
      .pw_width_m1 (pw_width_m1)
  );

  // ---- size in bytes of the map that leaves
  reg  [20:0] plane;
  reg  [23:0] total;
  wire [20:0] plane_n = {11'd0, desc[`DESC_OH]} * {10'd0, desc[`DESC_OW]};
  wire [31:0] total_n = {11'd0, plane} * {21'd0, desc[`DESC_O]};
  always @(posedge clk) begin
    plane <= plane_n;
    total <= total_n[23:0];
  end

  assign wr_req_addr = cfg_res_adr;
  assign wr_req_len  = total;
  assign rr_dest     = list_mode;

  // ---- the layer at the head of the queue
  wire l_first = desc[`DESC_FIRST];
  wire l_last = desc[`DESC_LAST];
  wire l_out = list_mode ? l_last : desc[`DESC_SEND];
  assign run_start = state == C_START;
  reg  seq_over;
  reg  rr_over, wr_over;
  wire out_over = (rr_over || rr_done) && (!list_mode || wr_over || wr_done);
  wire go_on = committed && cfg_more && !stopping && !stop_pulse;

  // a refused layer is reported when all layers before it are done
  wire refuse = dec_bad && state == C_IDLE && !q_valid && !d_valid && !q_pop;
  wire trouble = bus_err && state != C_FLUSH;
  assign flush     = state == C_FLUSH;
  assign dma_abort = state == C_FLUSH;
  reg  flush_seen;  // the abort was on for a cycle, dma_idle speaks of now

  wire [10:0] prows = (desc[`DESC_O] + N_Z[10:0] - 11'd1) >> ZW;

  always @(posedge clk) begin
    if (rst) begin
      state <= C_IDLE;
    end else if (soft_reset_pulse || trouble || refuse) begin
      state <= C_FLUSH;
    end else begin
      case (state)
        C_IDLE: state <= (!q_valid || q_pop) ? C_IDLE : (l_first && !pix_ready) ? C_PIX : C_START;
        C_PIX: state <= pix_ready ? C_START : C_PIX;
        C_START: state <= C_RUN;
        C_RUN: state <= !(seq_over && data_idle) ? C_RUN : l_out ? C_OUT : C_END;
        C_OUT: state <= C_OUTW;
        C_OUTW: state <= out_over ? C_END : C_OUTW;
        C_END: state <= (list_mode && l_last) ? C_NEXT : C_IDLE;
        // the inference is over: the next one, or stop (and drop what was fetched ahead)
        C_NEXT: state <= (go_on || !committed) ? C_IDLE : C_FLUSH;
        C_FLUSH: state <= (flush_seen && dma_idle) ? C_IDLE : C_FLUSH;
        default: state <= C_IDLE;
      endcase
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      list_mode    <= 1'b0;
      hold         <= 1'b0;
      stopping     <= 1'b0;
      lists_due    <= 2'd0;
      list_read    <= 1'b0;
      committed    <= 1'b0;
      settle       <= 1'b0;
      list_idx     <= 10'd0;
      la_word      <= 4'd0;
      host_idx     <= 10'd0;
      dec_bad      <= 1'b0;
      t_fetch      <= 1'b0;
      t_wl         <= 1'b0;
      t_pl         <= 1'b0;
      t_queue      <= 1'b0;
      q_pop        <= 1'b0;
      seq_over     <= 1'b0;
      rr_over      <= 1'b0;
      wr_over      <= 1'b0;
      flush_seen   <= 1'b0;
      prow_base    <= {PRW{1'b0}};
      rr_start     <= 1'b0;
      wr_req_valid <= 1'b0;
      ls_req_valid <= 1'b0;
      inf_next     <= 1'b0;
      ev_calc_done <= 1'b0;
      ev_inf_done  <= 1'b0;
      ev_inf_kept  <= 1'b0;
      layer_done   <= 1'b0;
    end else begin
      // commands
      flush_seen <= flush;
      hold <= (refuse || trouble) && !list_mode ? 1'b1 :
          unhold ? 1'b0 : hold;
      stopping <= start_pulse ? 1'b0 : stop_pulse ? 1'b1 : stopping;
      la_word <= la_flush ? 4'd0 : !la_pop ? la_word : (la_word == 4'd11) ? 4'd0 : la_word + 4'd1;
      host_idx <= !st_busy ? 10'd0 : (dec_collected && !list_mode) ? host_idx + 10'd1 : host_idx;
      dec_bad <= (flush || start_pulse) ? 1'b0 : dec_err ? 1'b1 : dec_bad;

      // task list
      settle <= inf_next;
      if (flush) begin
        list_mode    <= 1'b0;
        lists_due    <= 2'd0;
        list_read    <= 1'b0;
        committed    <= 1'b0;
        list_idx     <= 10'd0;
        ls_req_valid <= 1'b0;
      end else if (start_pulse) begin
        list_mode <= 1'b1;
        lists_due <= 2'd1;
        committed <= 1'b0;
        list_idx  <= 10'd0;
      end else begin
        if (state == C_NEXT && !committed) list_mode <= 1'b0;
        // commit to the next inference when this one's list is read and AI_CFG stands still
        if (list_mode && !committed && !list_read && lists_due == 2'd0 && cfg_more &&
            !stopping && !inf_next && !settle && state != C_NEXT) begin
          committed <= 1'b1;
          lists_due <= 2'd1;
        end else if (state == C_NEXT) begin
          committed <= 1'b0;
        end
        if (lists_due != 2'd0 && !list_read && !ls_req_valid) ls_req_valid <= 1'b1;
        else if (ls_req_valid && ls_req_ready) begin
          ls_req_valid <= 1'b0;
          list_read    <= 1'b1;
          lists_due    <= lists_due - 2'd1;
        end
        if (list_mode && dec_collected) begin
          list_idx  <= list_end ? 10'd0 : list_idx + 10'd1;
          list_read <= !list_end;
        end
      end

      // hand-over of descriptors
      t_fetch <= !flush && !d_ready && (t_fetch || give_fetch);
      t_wl    <= !flush && !d_ready && (t_wl || give_wl);
      t_pl    <= !flush && !d_ready && (t_pl || give_pl);
      t_queue <= !flush && !d_ready && (t_queue || give_queue);

      // run
      seq_over <= state == C_RUN && (seq_over || seq_done);

      // results out
      rr_start <= state == C_OUT;
      wr_req_valid <= !flush && ((state == C_OUT && list_mode) || (wr_req_valid && !wr_req_ready));
      rr_over <= state == C_OUTW && (rr_over || rr_done);
      wr_over <= state == C_OUTW && (wr_over || wr_done);

      // end of a layer
      q_pop        <= state == C_END;
      layer_done   <= state == C_END;
      ev_calc_done <= state == C_END && desc[`DESC_INTEN] && !list_mode;
      ev_inf_done  <= state == C_END && list_mode && l_last;
      ev_inf_kept  <= state == C_END && list_mode && l_last && kept;
      prow_base    <= flush ? {PRW{1'b0}} : (state == C_NEXT && keep && go_on) ? prow_net :
          (state == C_END) ? prow_base + {{(PRW - 11) {1'b0}}, prows} : prow_base;
      inf_next     <= state == C_NEXT && go_on;
    end
  end

  // the inference at work, and what is known of its list
  wire between = flush || start_pulse;
  always @(posedge clk) begin
    if (rst || between) begin
      inf_on     <= 1'b0;
      reads      <= 2'd0;
      fc_any     <= 1'b0;
      has_fc     <= 1'b0;
      fc_reached <= 1'b0;
      touch_idx  <= 10'd0;
      free_after <= 10'h3ff;
      kept       <= 1'b0;
    end else begin
      inf_on <= (state == C_NEXT) ? 1'b0 : pix_take ? 1'b1 : inf_on;
      reads <= reads + {1'b0, first_out} - {1'b0, state == C_NEXT};
      fc_reached <= (state == C_NEXT) ? 1'b0 :
          (state == C_RUN && list_mode && desc[`DESC_MODE] == `MODE_FC) ? 1'b1 : fc_reached;
      kept <= (state == C_NEXT) ? again && go_on : kept;
      if (given && list_mode) begin
        fc_any     <= fc_given || (fc_any && !d_desc[`DESC_FIRST]);
        touch_idx  <= touch_now;
        has_fc     <= d_desc[`DESC_LAST] ? fc_given || (fc_any && !d_desc[`DESC_FIRST]) : has_fc;
        free_after <= d_desc[`DESC_LAST] ? touch_now : free_after;
      end
    end
  end
  always @(posedge clk) begin
    if (rst) prow_net <= {PRW{1'b0}};
    else prow_net <= keep ? prow_net : prow_base;
  end

  // an acknowledge in the middle of a layer's words counts once they are discarded
  always @(posedge clk) begin
    if (rst || !hold) ack_seen <= 1'b0;
    else ack_seen <= ack_seen || host_ack || start_pulse || soft_reset_pulse;
  end

  // ---- errors
  always @(posedge clk) begin
    if (rst) ev_err <= 1'b0;
    else ev_err <= (trouble || refuse) && !soft_reset_pulse;
  end
  reg [9:0] bad_idx;
  always @(posedge clk) begin
    if (dec_err) bad_idx <= d_desc[`DESC_IDX];
    if (trouble || refuse) begin
      err_code  <= trouble ? E_BUS : dec_err_code;
      err_layer <= {6'd0, trouble ? st_layer : bad_idx};
      err_addr  <= trouble ? bus_err_addr : 32'd0;
    end
  end

  // ---- status
  assign st_busy = list_mode || state != C_IDLE || q_valid || q_pop || !dec_idle || d_valid ||
      fetch_busy || wl_busy || pl_busy || dec_bad || (la_valid && !hold);
  assign st_fc_layer   = list_mode ? fc_reached :
      q_valid && desc[`DESC_MODE] == `MODE_FC && state == C_RUN;
  assign st_layer      = q_valid ? desc[`DESC_IDX] : 10'd0;
  assign waiting_bus   = state == C_PIX || state == C_OUT || state == C_OUTW;
  assign waiting_drain = state == C_RUN;

  wire unused = &{1'b0, total_n[31:24], q_count};

endmodule

`resetall
