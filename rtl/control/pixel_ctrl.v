// SPDX-License-Identifier: Apache-2.0
//
// pixel_ctrl: requests the pixels of an inference, and prefetches those of the next one.
//
// How it works: two requests follow each other. The first goes to the DMAC, which reads the pixels into the
// pixel FIFO: for a fresh inference at once, for the next one of a stream when ask_ok allows it
// (docs/patent.md section 2, step 007). The second starts the pixel writer, when place_free reports that
// the input map's rows in the AI RAM are no longer in use. The map of a convolution is loaded in bands of
// lines (pixel_bands), and its layer begins with the first one. The registers hold the address in use; the
// address of a prefetch becomes AI_PIX_ADR later. A layer that loads its own map requests it at the head of
// the queue; prefetch_ctrl holds the next inference back meanwhile. The map is registered from its request
// on, so that values derived from it are valid before the load.
// Handshake: begin_run and move_on are pulses; ready is held until take. pixel_req is valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pixel_ctrl (
    // clock and synchronous reset; flush
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // descriptor of an inference's first layer, for a cycle or more
    input  wire                  first_valid,
    input  wire [`DESC_BITS-1:0] first_desc,
    // the current layer requests its own map
    input  wire                  layer_ask,
    input  wire [`DESC_BITS-1:0] layer_desc,
    // a run begins; the next inference begins (AI_CFG has advanced)
    input  wire                  begin_run,
    input  wire                  move_on,
    // the next inference's pixels may be requested; the rows of the input map are free
    input  wire                  ask_ok,
    input  wire                  place_free,
    // address of the pixels, one cycle after npix_take; without a prefetch, from move_on on
    input  wire [          31:0] taken_adr,
    // the pixels (of a map loaded in bands, the first ones) are in the AI RAM; the layer starts on them
    output wire                  ready,
    input  wire                  take,
    // the map of the current layer is incomplete; its lines that have arrived
    output wire                  loading,
    output reg  [           9:0] lines_there,
    // AI_NPIX_ADR is sampled for a prefetch
    output wire                  npix_take,
    // pixel channel of the DMAC
    output wire                  pixel_req_valid,
    input  wire                  pixel_req_ready,
    output wire [ `REQ_BITS-1:0] pixel_req,
    // the map comes in bands
    output wire                  in_bands,
    // load of the map; a band of it has arrived, all of it
    output reg                   load_start,
    output reg  [`LOAD_BITS-1:0] load,
    input  wire                  load_band,
    input  wire                  load_done
);

  localparam [2:0] P_IDLE = 3'd0, P_ASK = 3'd1, P_PLACE = 3'd2, P_FILL = 3'd3, P_READY = 3'd4;

  reg  [            2:0] state;
  reg                    due;  // the current inference's pixels are due
  reg                    shaped;  // the map's shape is known
  // parity of the inference whose pixels are requested: it alternates, with one request each. The map may
  // still be that of the previous inference, which is the same
  reg                    parity;
  reg                    parity_next;
  // the map is that of a layer that loads its own
  reg                    own;
  reg  [`SHAPE_BITS-1:0] first_shape;
  reg  [`SHAPE_BITS-1:0] shape;  // the requested map
  reg  [            3:0] band;  // lines of a band of it; 0: it comes whole
  reg                    part;  // the map is loading in bands
  reg                    taken;  // the layer has begun with the first lines

  wire [`MOVES_BITS-1:0] moves = layer_desc[`DESC_MOVES];
  wire [            1:0] own_mode = layer_desc[`DESC_MODE];
  wire [            1:0] first_mode = first_desc[`DESC_MODE];
  wire                   fresh = state == P_IDLE && due && shaped;
  wire                   layer_now = state == P_IDLE && !fresh && layer_ask;
  wire                   asks = fresh || npix_take || layer_now;
  assign npix_take = state == P_IDLE && !due && ask_ok && !layer_ask;
  // convolutions alone: other layers need the whole map, or little time for it
  wire own_conv = own_mode == `MODE_TAPS || own_mode == `MODE_CHAN;
  wire own_bands = own_conv && !layer_desc[`DESC_DW] && !layer_desc[`DESC_POOLS] && !layer_desc[`DESC_FP16];
  wire first_conv = first_mode == `MODE_TAPS || first_mode == `MODE_CHAN;
  wire first_bands = first_conv && !first_desc[`DESC_DW] && !first_desc[`DESC_POOLS] && !first_desc[`DESC_FP16];
  // the map, and whether it may come in bands
  wire [`SHAPE_BITS-1:0] own_shape = {
    own_bands,
    layer_desc[`DESC_INB],
    layer_desc[`DESC_ICS],
    layer_desc[`DESC_SRC],
    layer_desc[`DESC_H],
    layer_desc[`DESC_W],
    layer_desc[`DESC_C]
  };
  wire [`SHAPE_BITS-1:0] new_shape = {
    first_bands,
    first_desc[`DESC_INB],
    first_desc[`DESC_ICS],
    first_desc[`DESC_SRC],
    first_desc[`DESC_H],
    first_desc[`DESC_W],
    first_desc[`DESC_C]
  };
  wire [`SHAPE_BITS-1:0] next_shape = layer_now ? own_shape : first_shape;
  wire [10:0] next_width = next_shape[`SHAPE_W];
  wire [9:0] next_less = next_shape[`SHAPE_H] - 10'd1;
  // lines of a band, so that a channel's part of it has some 64 bytes and more
  wire one = next_width[10:6] != 5'd0;
  wire two = !one && next_width[5];
  wire four = !one && !two && next_width[4];
  wire [3:0] fitting = {!one && !two && !four, four, two, one};
  // ... unless the map has no more
  wire several = (next_less[9:3] != 7'd0) || (!fitting[3] && next_less[2]) || ((one || two) && next_less[1]) ||
      (one && next_less[0]);
  wire [3:0] next_band = fitting & {4{next_shape[`SHAPE_BANDS] && several}};

  assign in_bands = band != 4'd0;
  wire [31:0] adr = own ? moves[`MOVES_LOAD_ADR] : taken_adr;
  wire [`OWNER_BITS-1:0] owner = own ?
      {layer_desc[`DESC_INF], layer_desc[`DESC_IDX]} : {parity, 10'd0};

  // the map, less one as the writer expects: 1..9216 channels, 1..512 lines, 1..1024 wide
  wire [13:0] chans_m1 = shape[`SHAPE_C] - 14'd1;
  wire [9:0] height_m1 = shape[`SHAPE_H] - 10'd1;
  wire [10:0] width_m1 = shape[`SHAPE_W] - 11'd1;
  wire band_req_valid;
  wire [`REQ_BITS-1:0] band_req;
  pixel_bands u_bands (
      .clk      (clk),
      .rst      (rst || flush),
      .start    (state == P_ASK && in_bands),
      .shape    (shape),
      .band     (band),
      .chans_m1 (chans_m1),
      .adr      (adr),
      .owner    (owner),
      .req_valid(band_req_valid),
      .req_ready(pixel_req_ready),
      .req      (band_req)
  );
  wire fills = state == P_PLACE && (own || place_free);
  reg [9:0] lines;  // in the AI RAM, of a map that comes in bands
  reg there;  // ... at least one
  assign ready = state == P_READY || (part && !taken && there);
  assign loading = part && taken;
  assign pixel_req_valid = band_req_valid || (state == P_ASK && !in_bands);
  assign pixel_req = in_bands ? band_req : {1'b0, owner, 2'd0, shape[`SHAPE_INB], adr};

  always @(posedge clk) begin
    if (rst || flush) begin
      state       <= P_IDLE;
      due         <= 1'b0;
      shaped      <= 1'b0;
      part        <= 1'b0;
      there       <= 1'b0;
      load_start  <= 1'b0;
      lines_there <= 10'h3ff;
    end else begin
      shaped <= begin_run ? 1'b0 : first_valid ? 1'b1 : shaped;
      // without a prefetch the next inference begins like a fresh one
      due <= (begin_run || (move_on && state == P_IDLE)) ? 1'b1 : fresh ? 1'b0 : due;
      load_start <= fills;
      part <= (fills && in_bands) || (part && !load_done);
      there <= part && (there || load_band);
      lines_there <= (part && (taken || take)) ? lines : 10'h3ff;
      case (state)
        P_IDLE:  state <= asks ? P_ASK : P_IDLE;
        P_ASK:   state <= (in_bands || pixel_req_ready) ? P_PLACE : P_ASK;
        P_PLACE: state <= fills ? P_FILL : P_PLACE;
        P_FILL:  state <= !load_done ? P_FILL : (taken || take) ? P_IDLE : P_READY;
        P_READY: state <= take ? P_IDLE : P_READY;
        default: state <= P_IDLE;
      endcase
    end
  end

  // valid only while in use: owner and shape of the map, from asks on
  always @(posedge clk) begin
    band        <= asks ? next_band : band;
    own         <= asks ? layer_now : own;
    shape       <= asks ? next_shape : shape;
    parity      <= (fresh || npix_take) ? parity_next : parity;
    parity_next <= begin_run ? 1'b0 : (fresh || npix_take) ? !parity_next : parity_next;
    taken       <= part && (taken || take);
    first_shape <= first_valid ? new_shape : first_shape;
    lines       <= !part ? 10'd0 : load_band ? lines + {6'd0, band} : lines;
  end

  always @(posedge clk) begin
    load <= {band, shape[`SHAPE_ICS], width_m1[9:0], height_m1[8:0], chans_m1, shape[`SHAPE_SRC]};
  end

  wire unused = &{1'b0, first_desc, layer_desc, moves, next_width, height_m1[9], width_m1[10]};

`ifdef FORMAL_pixel_ctrl
  `include "pixel_ctrl_props.vh"
`endif

endmodule

`resetall
