// SPDX-License-Identifier: Apache-2.0
//
// prefetch_ctrl: decides when the pixels of the next inference are requested.
//
// How it works: it tracks the layers of an inference as they are decoded and as they run. In a stream two
// conditions must hold: all reads of the current inference and of the next one's first layer are issued,
// and the computation is in the fully connected layers (in a network without them, or with layers that load
// their own map: no later layer uses the input map's rows or loads a map). pixel_ctrl makes the request.
// A layer that began with part of its map may lack weights behind the rest: pixels then take turns with
// them on the bus for some cycles.
// Handshake: pulses and levels; pixel_req is valid/ready, pix_ready is held until pix_take.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module prefetch_ctrl (
    // clock, synchronous reset, flush
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // a run begins; the next inference may follow, its list is requested; the configuration advanced; an
    // inference is over
    input  wire                  start,
    input  wire                  follows,
    input  wire                  moved_on,
    input  wire                  inf_over,
    // layers of a task list as they are decoded, each for a cycle or more
    input  wire                  list_seen,
    input  wire [`DESC_BITS-1:0] d_desc,
    // the reads of a first layer are issued
    input  wire                  first_out,
    // the layer at the head of the queue runs; this layer (zeros without one); its index in the next cycle
    input  wire                  layer_runs,
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           9:0] next_index,
    // pixels of the current inference: in the AI RAM, its first layer starts on them; the layer at the head
    // of the queue requests its own
    output wire                  pix_ready,
    input  wire                  pix_take,
    input  wire                  pix_ask,
    // the map of the current layer is incomplete; its lines that have arrived
    output wire                  pix_loading,
    output wire [           9:0] lines_there,
    // address of the pixels requested last; AI_NPIX_ADR is sampled for a prefetch
    input  wire [          31:0] taken_adr,
    output wire                  npix_take,
    // a fully connected layer was reached
    output reg                   fc_reached,
    // pixel channel of the DMAC
    output wire                  pixel_req_valid,
    input  wire                  pixel_req_ready,
    output wire [ `REQ_BITS-1:0] pixel_req,
    // the layer runs and lacks weights or parameters; pixels take turns with these
    input  wire                  starves,
    output reg                   pixel_share,
    // load of the map
    output wire                  load_start,
    output wire [`LOAD_BITS-1:0] load,
    input  wire                  load_band,
    input  wire                  load_done
);

  reg       inf_on;  // the first layer of an inference has started
  reg [1:0] reads;  // inferences whose first layer's reads are issued, from the current one on
  // fully connected layers: in the list being decoded, in the whole list; layers that load
  reg fc_any, has_fc, load_any, has_load;
  reg [9:0] touch_idx, free_after;  // last layer that uses the input map's rows, or loads a map

  wire fc_given = d_desc[`DESC_MODE] == `MODE_FC;
  wire fc_now = fc_given || (fc_any && !d_desc[`DESC_FIRST]);
  wire [`MOVES_BITS-1:0] d_moves = d_desc[`DESC_MOVES];
  wire load_given = d_moves[`MOVES_LOAD];
  wire load_now = load_given || (load_any && !d_desc[`DESC_FIRST]);
  wire [9:0] touch_now = (load_given || d_desc[`DESC_TOUCH]) ? d_desc[`DESC_IDX] : touch_idx;
  // A layer after the last user of these rows is at the head, and stays there until it is done. The last
  // user is found with the first list of a run, many cycles before the pixels of a second inference.
  reg behind;
  wire place_free = !inf_on || behind;
  always @(posedge clk) behind <= next_index > free_after;
  wire       ask_ok = inf_on && follows && reads == 2'd2 && (has_fc && !has_load ? fc_reached : place_free);

  always @(posedge clk) begin
    if (rst || flush || start) begin
      inf_on     <= 1'b0;
      reads      <= 2'd0;
      fc_any     <= 1'b0;
      has_fc     <= 1'b0;
      load_any   <= 1'b0;
      has_load   <= 1'b0;
      fc_reached <= 1'b0;
      touch_idx  <= 10'd0;
      free_after <= 10'h3ff;
    end else begin
      inf_on <= inf_over ? 1'b0 : (pix_take && desc[`DESC_FIRST]) ? 1'b1 : inf_on;
      reads <= reads + {1'b0, first_out} - {1'b0, inf_over};
      fc_reached <= inf_over ? 1'b0 :
          (layer_runs && desc[`DESC_MODE] == `MODE_FC) ? 1'b1 : fc_reached;
      fc_any <= list_seen ? fc_now : fc_any;
      touch_idx <= list_seen ? touch_now : touch_idx;
      load_any <= list_seen ? load_now : load_any;
      has_load <= (list_seen && d_desc[`DESC_LAST]) ? load_now : has_load;
      has_fc <= (list_seen && d_desc[`DESC_LAST]) ? fc_now : has_fc;
      free_after <= (list_seen && d_desc[`DESC_LAST]) ? touch_now : free_after;
    end
  end

  localparam [5:0] TURNS = 6'd63;
  reg [5:0] turns;
  wire in_bands;
  always @(posedge clk) begin
    if (rst) begin
      turns       <= 6'd0;
      pixel_share <= 1'b0;
    end else begin
      turns       <= (in_bands && starves) ? TURNS : turns - {5'd0, turns != 6'd0};
      pixel_share <= in_bands && turns != 6'd0;
    end
  end

  pixel_ctrl u_pixel_ctrl (
      .clk(clk),
      .rst(rst),
      .flush(flush),
      .first_valid(list_seen && d_desc[`DESC_FIRST]),
      .first_desc(d_desc),
      .begin_run(start),
      .move_on(moved_on),
      .layer_ask(pix_ask),
      .layer_desc(desc),
      .ask_ok(ask_ok),
      .place_free(place_free),
      .taken_adr(taken_adr),
      .ready(pix_ready),
      .take(pix_take),
      .loading(pix_loading),
      .lines_there(lines_there),
      .npix_take(npix_take),
      .pixel_req_valid(pixel_req_valid),
      .pixel_req_ready(pixel_req_ready),
      .pixel_req(pixel_req),
      .in_bands(in_bands),
      .load_start(load_start),
      .load(load),
      .load_band(load_band),
      .load_done(load_done)
  );

  wire unused = &{1'b0, d_desc, desc, d_moves};

endmodule

`resetall
