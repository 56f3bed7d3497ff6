// SPDX-License-Identifier: Apache-2.0
//
// pixel_ctrl: requests the pixels of an inference, and prefetches those of the next one.
//
// How it works: two requests follow each other. The first goes to the DMAC, which reads the pixels into the
// pixel FIFO: for a fresh inference at once, for the next one of a stream when ask_ok allows it
// (docs/patent.md section 2, step 007). The second starts the pixel writer, when place_free reports that
// the input map's rows in the AI RAM are no longer in use. A wide map of a 3x3 layer is loaded line by line
// (pixel_lines), and its layer begins with the first one. The registers hold the address in use; the
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
    // the pixels (of a map loaded by lines, the first ones) are in the AI RAM; the layer starts on them
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
    // load of the map
    output wire                  load_start,
    output reg  [ `MAP_BITS-1:0] load_map,
    input  wire                  load_done
);

  localparam [2:0] P_IDLE = 3'd0, P_ASK = 3'd1, P_PLACE = 3'd2, P_FILL = 3'd3, P_READY = 3'd4;
  // maps from this width on are loaded line by line if their layer is slower than the load
  localparam [10:0] WIDE = 11'd64;

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
  reg                    part;  // the map is loading line by line
  reg                    taken;  // the layer has begun with the first lines

  wire [`MOVES_BITS-1:0] moves = layer_desc[`DESC_MOVES];
  wire                   fresh = state == P_IDLE && due && shaped;
  wire                   layer_now = state == P_IDLE && !fresh && layer_ask;
  wire                   asks = fresh || npix_take || layer_now;
  assign npix_take = state == P_IDLE && !due && ask_ok && !layer_ask;
  wire own_lines = layer_desc[`DESC_MODE] == `MODE_TAPS && !layer_desc[`DESC_DW] && layer_desc[`DESC_W] >= WIDE;
  wire first_lines = first_desc[`DESC_MODE] == `MODE_TAPS && !first_desc[`DESC_DW] && first_desc[`DESC_W] >= WIDE;
  wire [`SHAPE_BITS-1:0] own_shape = {
    own_lines,
    layer_desc[`DESC_INB],
    layer_desc[`DESC_ICS],
    layer_desc[`DESC_IRL],
    layer_desc[`DESC_SRC],
    layer_desc[`DESC_H],
    layer_desc[`DESC_W],
    layer_desc[`DESC_C]
  };
  wire [`SHAPE_BITS-1:0] new_shape = {
    first_lines,
    first_desc[`DESC_INB],
    first_desc[`DESC_ICS],
    first_desc[`DESC_IRL],
    first_desc[`DESC_SRC],
    first_desc[`DESC_H],
    first_desc[`DESC_W],
    first_desc[`DESC_C]
  };
  wire by_lines = shape[`SHAPE_BY_LINES];
  wire [31:0] adr = own ? moves[`MOVES_LOAD_ADR] : taken_adr;
  wire [`OWNER_BITS-1:0] owner = own ?
      {layer_desc[`DESC_INF], layer_desc[`DESC_IDX]} : {parity, 10'd0};

  // ---- line by line
  wire line_req_valid, line_start, line_there, lines_done;
  wire [9:0] lines;
  wire [`REQ_BITS-1:0] line_req;
  wire [14:0] row;
  // the map, less one as the writer expects: 1..9216 channels, 1..512 lines, 1..1024 wide
  wire [13:0] chans_m1 = shape[`SHAPE_C] - 14'd1;
  wire [9:0] height_m1 = shape[`SHAPE_H] - 10'd1;
  wire [10:0] width_m1 = shape[`SHAPE_W] - 11'd1;
  pixel_lines u_lines (
      .clk       (clk),
      .rst       (rst || flush),
      .start     (state == P_ASK && by_lines),
      .shape     (shape),
      .chans_m1  (chans_m1[10:0]),              // of a 3x3 layer: 1023 at most
      .height_m1 (height_m1),
      .adr       (adr),
      .owner     (owner),
      .allow     (state == P_FILL),
      .req_valid (line_req_valid),
      .req_ready (pixel_req_ready),
      .req       (line_req),
      .load_start(line_start),
      .row       (row),
      .load_done (load_done),
      .lines     (lines),
      .there     (line_there),
      .done      (lines_done)
  );
  wire filled = by_lines ? lines_done : load_done;
  wire fills = state == P_PLACE && (own || place_free);
  reg  start;
  assign ready = state == P_READY || (part && !taken && line_there);
  assign loading = part && taken;
  assign pixel_req_valid = line_req_valid || (state == P_ASK && !by_lines);
  assign pixel_req = by_lines ? line_req : {owner, 2'd0, shape[`SHAPE_INB], adr};
  assign load_start = start || line_start;

  always @(posedge clk) begin
    if (rst || flush) begin
      state       <= P_IDLE;
      due         <= 1'b0;
      shaped      <= 1'b0;
      part        <= 1'b0;
      start       <= 1'b0;
      lines_there <= 10'h3ff;
    end else begin
      shaped <= begin_run ? 1'b0 : first_valid ? 1'b1 : shaped;
      // without a prefetch the next inference begins like a fresh one
      due <= (begin_run || (move_on && state == P_IDLE)) ? 1'b1 : fresh ? 1'b0 : due;
      start <= fills && !by_lines;
      part <= (fills && by_lines) || (part && !lines_done);
      lines_there <= (part && (taken || take)) ? lines : 10'h3ff;
      case (state)
        P_IDLE:  state <= asks ? P_ASK : P_IDLE;
        P_ASK:   state <= (by_lines || pixel_req_ready) ? P_PLACE : P_ASK;
        P_PLACE: state <= fills ? P_FILL : P_PLACE;
        P_FILL:  state <= !filled ? P_FILL : (taken || take) ? P_IDLE : P_READY;
        P_READY: state <= take ? P_IDLE : P_READY;
        default: state <= P_IDLE;
      endcase
    end
  end

  // valid only while in use: owner and shape of the map, from asks on
  always @(posedge clk) begin
    own         <= asks ? layer_now : own;
    shape       <= !asks ? shape : layer_now ? own_shape : first_shape;
    parity      <= (fresh || npix_take) ? parity_next : parity;
    parity_next <= begin_run ? 1'b0 : (fresh || npix_take) ? !parity_next : parity_next;
    taken       <= part && (taken || take);
    first_shape <= first_valid ? new_shape : first_shape;
  end

  // when loading by lines, each line of a channel is a map
  always @(posedge clk) begin
    load_map[`MAP_BASE]      <= by_lines ? row : shape[`SHAPE_SRC];
    load_map[`MAP_WIDTH_M1]  <= width_m1[9:0];
    load_map[`MAP_HEIGHT_M1] <= by_lines ? 9'd0 : height_m1[8:0];
    load_map[`MAP_CHANS_M1]  <= by_lines ? 14'd0 : chans_m1;
  end

  wire unused = &{1'b0, first_desc, layer_desc, moves, height_m1[9], width_m1[10]};

endmodule

`resetall
