// SPDX-License-Identifier: Apache-2.0
//
// pixel_ctrl: requests the pixels of an inference, those of the next one ahead of time.
//
// How it works: two requests follow each other. The first goes to the DMAC, which reads the pixels
// into the pixel FIFO: for a fresh inference at once, for the next one of a stream when ask_ok
// allows it (docs/patent.md section 2, step 007). The second starts the pixel writer, when
// place_free says that the input map's place in the AI RAM is no longer in use. The registers keep
// the address that was taken; the address of a prefetch becomes AI_PIX_ADR later. A layer that loads
// its own map asks for it when its turn has come; prefetch_ctrl keeps the next inference away then.
// Handshake: begin_run and move_on are pulses; ready stays until take. pixel_req is valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pixel_ctrl (
    // clock and synchronous reset; drop everything
    input  wire                  clk,
    input  wire                  rst,
    input  wire                  flush,
    // descriptor of an inference's first layer
    input  wire                  first_valid,
    input  wire [`DESC_BITS-1:0] first_desc,
    // the layer whose turn it is asks for its own map
    input  wire                  layer_ask,
    input  wire [`DESC_BITS-1:0] layer_desc,
    // a run begins; the next inference begins (AI_CFG has moved on)
    input  wire                  begin_run,
    input  wire                  move_on,
    // the next inference's pixels may be requested; the place of the input map is free
    input  wire                  ask_ok,
    input  wire                  place_free,
    // where the pixels begin, a cycle after npix_take; those of a fetch from move_on on
    input  wire [          31:0] taken_adr,
    // the pixels are in the AI RAM, the first layer takes them
    output wire                  ready,
    input  wire                  take,
    // AI_NPIX_ADR is taken for a prefetch
    output wire                  npix_take,
    // pixel channel of the DMAC
    output reg                   pixel_req_valid,
    input  wire                  pixel_req_ready,
    output wire [ `REQ_BITS-1:0] pixel_req,
    // load of the map
    output reg                   load_start,
    output wire [ `MAP_BITS-1:0] load_map,
    input  wire                  load_done
);

  localparam [2:0] P_IDLE = 3'd0, P_ASK = 3'd1, P_PLACE = 3'd2, P_FILL = 3'd3, P_READY = 3'd4;

  reg  [            2:0] state;
  reg                    due;  // pixels of the current inference are wanted
  reg                    shaped;  // the map is known
  reg  [           23:0] length;  // bytes of the map
  // parity of the inference whose pixels are asked for: one request each, so it takes turns. The map
  // may still be that of the inference before, which is the same
  reg                    parity;
  reg                    parity_next;
  // the map is that of a layer that asked
  reg                    own;
  reg  [  `MAP_BITS-1:0] first_map;

  wire [`MOVES_BITS-1:0] moves = layer_desc[`DESC_MOVES];
  wire                   fresh = state == P_IDLE && due && shaped;
  wire                   layer_now = state == P_IDLE && !fresh && layer_ask;
  wire                   asks = fresh || npix_take || layer_now;
  assign npix_take = state == P_IDLE && !due && ask_ok && !layer_ask;
  assign ready = state == P_READY;
  assign pixel_req = own ?
      {layer_desc[`DESC_INF], layer_desc[`DESC_IDX], 2'd0, layer_desc[`DESC_INB], moves[`MOVES_LOAD_ADR]} :
      {parity, 10'd0, length, taken_adr};

  always @(posedge clk) begin
    if (rst || flush) begin
      state           <= P_IDLE;
      due             <= 1'b0;
      parity          <= 1'b0;
      parity_next     <= 1'b0;
      shaped          <= 1'b0;
      pixel_req_valid <= 1'b0;
      load_start      <= 1'b0;
      own             <= 1'b0;
    end else begin
      own <= asks ? layer_now : own;
      parity <= (fresh || npix_take) ? parity_next : parity;
      parity_next <= begin_run ? 1'b0 : (fresh || npix_take) ? !parity_next : parity_next;
      shaped <= begin_run ? 1'b0 : first_valid ? 1'b1 : shaped;
      // without a prefetch the next inference begins like a fresh one
      due <= (begin_run || (move_on && state == P_IDLE)) ? 1'b1 : fresh ? 1'b0 : due;
      pixel_req_valid <= asks || (pixel_req_valid && !pixel_req_ready);
      load_start <= state == P_PLACE && (own || place_free);
      case (state)
        P_IDLE:  state <= asks ? P_ASK : P_IDLE;
        P_ASK:   state <= pixel_req_ready ? P_PLACE : P_ASK;
        P_PLACE: state <= (own || place_free) ? P_FILL : P_PLACE;
        P_FILL:  state <= load_done ? P_READY : P_FILL;
        P_READY: state <= take ? P_IDLE : P_READY;
        default: state <= P_IDLE;
      endcase
    end
  end

  // a map, minus one where the writer wants it so: 1..1024 channels, 1..512 lines, 1..1024 wide
  wire [10:0] chans = first_desc[`DESC_C] - 11'd1;
  wire [ 9:0] height = first_desc[`DESC_H] - 10'd1;
  wire [10:0] width = first_desc[`DESC_W] - 11'd1;
  always @(posedge clk) begin
    if (rst) begin
      length    <= 24'd0;
      first_map <= {`MAP_BITS{1'b0}};
    end else if (first_valid) begin
      length    <= {2'd0, first_desc[`DESC_INB]};
      first_map <= {width[9:0], height[8:0], chans[9:0], first_desc[`DESC_SRC]};
    end else begin
      length    <= length;
      first_map <= first_map;
    end
  end

  // that of the layer, which is the same as long as it waits
  wire [10:0] own_chans = layer_desc[`DESC_C] - 11'd1;
  wire [9:0] own_height = layer_desc[`DESC_H] - 10'd1;
  wire [10:0] own_width = layer_desc[`DESC_W] - 11'd1;
  wire [`MAP_BITS-1:0] own_map = {
    own_width[9:0], own_height[8:0], own_chans[9:0], layer_desc[`DESC_SRC]
  };
  assign load_map = own ? own_map : first_map;

  wire ends = &{1'b0, chans[10], height[9], width[10], own_chans[10], own_height[9], own_width[10]};
  wire unused = &{1'b0, first_desc, layer_desc, moves, ends};

endmodule

`resetall
