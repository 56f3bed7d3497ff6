// SPDX-License-Identifier: Apache-2.0
//
// pixel_ctrl: has the pixels of an inference fetched, those of the next one ahead of time.
//
// How it works: two things are asked for one after the other. First the DMAC is told to read the
// pixels: for a fresh inference at once, for the next one of a stream when ask_ok says that its
// turn has come (patent step 007); they wait in the pixel FIFO. Then, when place_free says that
// nobody uses the input map's place in the AI RAM any more, the pixel writer begins. The address of
// a prefetch is kept: it becomes AI_PIX_ADR when AI_CFG moves on.
// Handshake: begin_run and move_on are pulses; ready stays until take. px_req is valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module pixel_ctrl (
    // clock and synchronous reset; drop everything
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     flush,
    // descriptor of an inference's first layer
    input  wire                     first_valid,
    input  wire [`DESC_W_TOTAL-1:0] first_desc,
    // a run begins; the next inference begins (AI_CFG has moved on)
    input  wire                     begin_run,
    input  wire                     move_on,
    // the next inference's pixels may be asked for; the place of the input map is free
    input  wire                     ask_ok,
    input  wire                     place_free,
    // addresses of AI_CFG
    input  wire [             31:0] cfg_pix_adr,
    input  wire [             31:0] cfg_npix_adr,
    // the pixels are in the AI RAM, the first layer takes them
    output wire                     ready,
    input  wire                     take,
    // a prefetch is under way: now, since then, from where
    output wire                     npix_take,
    output reg                      npix_taken,
    output reg  [             31:0] taken_adr,
    // pixel channel of the DMAC
    output reg                      px_req_valid,
    input  wire                     px_req_ready,
    output wire [             31:0] px_req_addr,
    output reg  [             23:0] px_req_len,
    // pixel writer: start, map
    output reg                      pw_start,
    input  wire                     pw_done,
    output reg  [             14:0] pw_row,
    output reg  [              9:0] pw_chans_m1,
    output reg  [              8:0] pw_height_m1,
    output reg  [              9:0] pw_width_m1
);

  localparam [2:0] P_IDLE = 3'd0, P_ASK = 3'd1, P_PLACE = 3'd2, P_FILL = 3'd3, P_READY = 3'd4;

  reg  [2:0] state;
  reg        due;  // pixels of the current inference are wanted
  reg        shaped;  // the map is known

  wire fresh = state == P_IDLE && due && shaped;
  assign npix_take   = state == P_IDLE && !due && ask_ok;
  assign ready       = state == P_READY;
  assign px_req_addr = taken_adr;

  always @(posedge clk) begin
    if (rst || flush) begin
      state        <= P_IDLE;
      due          <= 1'b0;
      shaped       <= 1'b0;
      npix_taken   <= 1'b0;
      px_req_valid <= 1'b0;
      pw_start     <= 1'b0;
    end else begin
      shaped <= begin_run ? 1'b0 : first_valid ? 1'b1 : shaped;
      // without a prefetch the next inference begins like a fresh one
      due <= (begin_run || (move_on && state == P_IDLE)) ? 1'b1 : fresh ? 1'b0 : due;
      npix_taken <= npix_take ? 1'b1 : move_on ? 1'b0 : npix_taken;
      px_req_valid <= (fresh || npix_take) || (px_req_valid && !px_req_ready);
      pw_start <= state == P_PLACE && place_free;
      case (state)
        P_IDLE: state <= (fresh || npix_take) ? P_ASK : P_IDLE;
        P_ASK: state <= px_req_ready ? P_PLACE : P_ASK;
        P_PLACE: state <= place_free ? P_FILL : P_PLACE;
        P_FILL: state <= pw_done ? P_READY : P_FILL;
        P_READY: state <= take ? P_IDLE : P_READY;
        default: state <= P_IDLE;
      endcase
    end
  end

  // the map, minus one where the writer wants it so: 1..1024 channels, 1..512 lines, 1..1024 wide
  wire [10:0] chans = first_desc[`DESC_C] - 11'd1;
  wire [ 9:0] height = first_desc[`DESC_H] - 10'd1;
  wire [10:0] width = first_desc[`DESC_W] - 11'd1;
  always @(posedge clk) begin
    if (rst) begin
      taken_adr    <= 32'd0;
      px_req_len   <= 24'd0;
      pw_row       <= 15'd0;
      pw_chans_m1  <= 10'd0;
      pw_height_m1 <= 9'd0;
      pw_width_m1  <= 10'd0;
    end else begin
      taken_adr <= fresh ? cfg_pix_adr : npix_take ? cfg_npix_adr : taken_adr;
      if (first_valid) begin
        px_req_len   <= {2'd0, first_desc[`DESC_INB]};
        pw_row       <= first_desc[`DESC_SRC];
        pw_chans_m1  <= chans[9:0];
        pw_height_m1 <= height[8:0];
        pw_width_m1  <= width[9:0];
      end
    end
  end

  wire unused = &{1'b0, first_desc, chans[10], height[9], width[10]};

endmodule

`resetall
