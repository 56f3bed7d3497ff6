// SPDX-License-Identifier: Apache-2.0
//
// layer_runner: runs the layers of the queue, one at a time.
//
// How it works: the first layer of an inference, and every one with load_map, waits for its pixels; the
// others start when the previous one is completely written. The last map of an inference and that of a
// layer with store_map are unloaded to the storage: the unload begins with the layer, and the layer ends
// when both are done. In host mode the map of a layer with send_data_out is unloaded to the result FIFO
// after the layer. After an inference either the next one starts or a flush drops the prefetched data.
// Errors and soft resets flush as well. A flush lasts until the DMAC is idle.
// Handshake: start is a pulse with a stable descriptor; seq_done, core_idle, unload_done respond to it.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module layer_runner #(
    // output channels of the array, width of a parameter row counter
    parameter N_Z = 4,
    parameter PRW = `PROW_BITS,
    // derived, not to be set: width of a bank number
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // abort the run; the DMAC is idle; flush
    input  wire                  abort,
    input  wire                  dma_idle,
    output reg                   flush,
    // layer at the head of the queue
    input  wire                  q_valid,
    input  wire [`DESC_BITS-1:0] desc,
    output reg                   q_pop,
    // a task-list run; the next inference's list is requested; the registers allow another inference; both:
    // it may begin
    input  wire                  list_mode,
    input  wire                  committed,
    input  wire                  more,
    input  wire                  go_on,
    // pixels of the inference, or of the layer itself, requested with pix_ask; the rest of them is still
    // loading, and the layer ends only after that
    input  wire                  pix_ready,
    output wire                  pix_take,
    output wire                  pix_ask,
    input  wire                  pix_loading,
    // array: start, all work issued, last byte written; parameter rows: first of the layer, freed
    output wire                  run_start,
    input  wire                  seq_done,
    input  wire                  core_idle,
    output reg  [       PRW-1:0] prow_base,
    output wire [       PRW-1:0] prow_freed,
    // weights of a stream stay in the buffer; those of the next inference are there
    input  wire                  keep,
    input  wire                  reuse,
    // output map
    output wire                  unload_start,
    output wire [ `MAP_BITS-1:0] unload_map,
    input  wire                  unload_done,
    // state: idle; the array runs; stalled on pixels, on the output of a map; an inference ends
    output wire                  idle,
    output wire                  runs,
    output wire                  waits_pixels,
    output wire                  waits_output,
    output wire                  inf_over,
    // events, see openkpu_fields.vh
    output reg                   calc_done,
    output reg                   inf_done,
    output reg                   inf_kept,
    output reg                   layer_done,
    output wire                  inf_next
);

  localparam [3:0] IDLE = 4'd0, PIXELS = 4'd1, START = 4'd2, RUN = 4'd3, OUT = 4'd4, OUT_WAIT = 4'd5,
      LAYER_END = 4'd6, INF_END = 4'd7, FLUSH = 4'd8;

  reg [3:0] state;
  reg seq_over;
  reg unload_over;  // the map unloaded during the layer is stored
  reg flush_seen;  // the DMAC has sampled the flush: dma_idle is valid from now on
  reg kept;  // the current inference reads no weights
  reg [PRW-1:0] prow_net;  // first parameter row of the kept network

  wire first = desc[`DESC_FIRST];
  wire last = desc[`DESC_LAST];
  wire [`MOVES_BITS-1:0] moves = desc[`DESC_MOVES];
  wire loads = moves[`MOVES_LOAD];
  wire stores = moves[`MOVES_STORE] || (list_mode && last);
  wire sends = desc[`DESC_SEND] && !list_mode;
  // parameter rows; none for a pooling task or a product of float16
  wire [10:0] prows = (desc[`DESC_POOLS] || desc[`DESC_FP16]) ? 11'd0 : (desc[`DESC_O] + N_Z[10:0] - 11'd1) >> ZW;

  assign run_start = state == START;
  assign pix_take = state == START && (first || loads);
  assign pix_ask = state == PIXELS && loads;
  assign unload_start = state == OUT || (state == START && stores);
  assign idle = state == IDLE;
  assign runs = state == RUN;
  assign waits_pixels = state == PIXELS;
  assign waits_output = state == OUT || state == OUT_WAIT;
  // a stream extended in the previous cycle requests its list first
  assign inf_over = state == INF_END && (committed || !more);
  // not registered: the registers decide in this cycle, and advance in it
  assign inf_next = state == INF_END && go_on;
  // one cycle behind prow_base: rows may be freed later
  assign prow_freed = prow_net;

  // sizes of the output map, minus one
  wire [10:0] chans_m1 = desc[`DESC_O] - 11'd1;
  wire [ 9:0] height_m1 = desc[`DESC_OH] - 10'd1;
  wire [10:0] width_m1 = desc[`DESC_OW] - 11'd1;
  assign unload_map = {width_m1[9:0], height_m1[8:0], 4'd0, chans_m1[9:0], desc[`DESC_DST]};

  always @(posedge clk) begin
    if (rst) begin
      state <= IDLE;
      flush <= 1'b0;
    end else if (abort) begin
      state <= FLUSH;
      flush <= 1'b1;
    end else begin
      // a register of its own: it fans out to every unit
      flush <= (state == INF_END) ? inf_over && !go_on && committed : state == FLUSH && !(flush_seen && dma_idle);
      case (state)
        IDLE:
        state <= (!q_valid || q_pop) ? IDLE : (loads || (first && !pix_ready)) ? PIXELS : START;
        PIXELS: state <= pix_ready ? START : PIXELS;
        START: state <= RUN;
        RUN:
        state <= !(seq_over && core_idle && !pix_loading) ? RUN : stores ? OUT_WAIT : sends ? OUT : LAYER_END;
        OUT: state <= OUT_WAIT;
        OUT_WAIT: state <= (unload_done || unload_over) ? LAYER_END : OUT_WAIT;
        LAYER_END: state <= (list_mode && last) ? INF_END : IDLE;
        // the inference is over: start the next one, or stop and drop the prefetched data
        INF_END: state <= !inf_over ? INF_END : (go_on || !committed) ? IDLE : FLUSH;
        FLUSH: state <= (flush_seen && dma_idle) ? IDLE : FLUSH;
        default: state <= IDLE;
      endcase
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      flush_seen  <= 1'b0;
      seq_over    <= 1'b0;
      unload_over <= 1'b0;
      q_pop       <= 1'b0;
      calc_done   <= 1'b0;
      inf_done    <= 1'b0;
      inf_kept    <= 1'b0;
      layer_done  <= 1'b0;
      prow_base   <= {PRW{1'b0}};
      prow_net    <= {PRW{1'b0}};
    end else begin
      flush_seen <= flush;
      seq_over <= state == RUN && (seq_over || seq_done);
      unload_over <= (state == RUN || state == OUT_WAIT) && (unload_over || unload_done);
      q_pop <= state == LAYER_END;
      calc_done <= state == LAYER_END && desc[`DESC_INTEN] && !list_mode;
      inf_done <= state == LAYER_END && list_mode && last;
      inf_kept <= state == LAYER_END && list_mode && last && kept;
      layer_done <= state == LAYER_END;
      prow_base  <= flush ? {PRW{1'b0}} : (inf_over && keep && go_on) ? prow_net :
          (state == LAYER_END) ? prow_base + {{(PRW - 11) {1'b0}}, prows} : prow_base;
      prow_net <= keep ? prow_net : prow_base;
    end
  end

  always @(posedge clk) begin
    if (rst || flush || !list_mode) kept <= 1'b0;
    else kept <= inf_over ? reuse && go_on : kept;
  end

  wire unused = &{1'b0, desc, moves, chans_m1[10], height_m1[9], width_m1[10]};

`ifdef FORMAL_layer_runner
  `include "layer_runner_props.vh"
`endif

endmodule

`resetall
