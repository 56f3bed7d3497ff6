// SPDX-License-Identifier: Apache-2.0
//
// tile_buffer: fetches the operands of the array from the AI RAM and holds them, nine banks wide.
//
// How it works: fill_seq reads AI RAM rows in the order in which the array needs them;
// tile_scatter, or fc_flatten for fully connected layers, lays their bytes out in the banks. An
// entry is one reduction step, bank t the 64 operands of column t. Entries form a ring.
// Handshake: start with a stable descriptor. The fill waits for room (tile_freed) and for the AI
// RAM (fill_req until fill_gnt); tile_filled and tile_freed are running counts of entries. Each
// bank has a read port of its own; row_t follows re[t] by a cycle.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module tile_buffer #(
    // entries
    parameter TILE_ROWS = 32,
    // derived, not to be set: width of an entry counter and of an entry address
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter TA        = $clog2(TILE_ROWS)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer start with its descriptor; rows are still to be read
    input  wire                  start,
    input  wire [`DESC_BITS-1:0] desc,
    output wire                  busy,
    // entries: complete, released by the sequencer (running counts)
    output reg  [        TW-1:0] tile_filled,
    input  wire [        TW-1:0] tile_freed,
    // AI RAM read port, data a cycle after the grant
    output wire                  fill_req,
    output wire [          14:0] fill_row,
    input  wire                  fill_gnt,
    input  wire [         511:0] fill_data,
    // read ports of the nine banks: enables, entries
    input  wire [           8:0] re,
    input  wire [      9*TA-1:0] entry,
    // the entries read, a bank a port: whole vectors of nine would cost an event-driven simulator
    // a conversion of 4608 bits for every change of a bank
    output wire [         511:0] row_0,
    output wire [         511:0] row_1,
    output wire [         511:0] row_2,
    output wire [         511:0] row_3,
    output wire [         511:0] row_4,
    output wire [         511:0] row_5,
    output wire [         511:0] row_6,
    output wire [         511:0] row_7,
    output wire [         511:0] row_8
);

  wire [   1:0] mode = desc[`DESC_MODE];
  wire          fc_mode = mode == `MODE_FC;

  wire          note_valid;
  wire [TW-1:0] note_entry;
  wire [   4:0] note_done;
  wire [   5:0] note_base;
  wire [   2:0] note_segrel;
  wire [   2:0] note_ky_on;
  wire [   5:0] note_ky_slot;
  wire [   3:0] note_chmod;
  wire [   2:0] note_chans;
  wire          note_lastseg;
  wire          note_firstseg;
  wire [   6:0] note_bytes;
  wire          note_lastrow;
  wire          fc_ready;

  fill_seq #(
      .TILE_ROWS(TILE_ROWS)
  ) u_fill (
      .clk          (clk),
      .rst          (rst),
      .start        (start),
      .desc         (desc),
      .busy         (busy),
      .tile_freed   (tile_freed),
      .tile_filled  (tile_filled),
      .fill_req     (fill_req),
      .fill_row     (fill_row),
      .fill_gnt     (fill_gnt),
      .fc_ready     (fc_ready),
      .note_valid   (note_valid),
      .note_entry   (note_entry),
      .note_done    (note_done),
      .note_base    (note_base),
      .note_segrel  (note_segrel),
      .note_ky_on   (note_ky_on),
      .note_ky_slot (note_ky_slot),
      .note_chmod   (note_chmod),
      .note_chans   (note_chans),
      .note_lastseg (note_lastseg),
      .note_firstseg(note_firstseg),
      .note_bytes   (note_bytes),
      .note_lastrow (note_lastrow)
  );

  wire [4:0] sc_done, fc_done;
  wire f_valid;
  wire [511:0] view0, view1, view2, view3;
  wire [63:0] mask0, mask1, mask2;
  wire [TW-1:0] f_entry;
  wire [2:0] f_ky_on;
  wire [5:0] f_ky_slot;
  wire [3:0] f_chmod;
  wire [2:0] f_chans;
  wire [8:0] fc_we;
  wire [71:0] fc_bytes;
  wire [53:0] fc_ats;
  wire [9*TA-1:0] fc_entries;

  tile_scatter #(
      .TILE_ROWS(TILE_ROWS)
  ) u_scatter (
      .clk          (clk),
      .rst          (rst),
      .mode         (mode),
      .stl          (desc[`DESC_STL]),
      .ph           (desc[`DESC_PH]),
      .swl          (desc[`DESC_SWL]),
      .ip           (desc[`DESC_IP]),
      .note_valid   (note_valid && !fc_mode),
      .row          (fill_data),
      .note_entry   (note_entry),
      .note_done    (note_done),
      .note_base    (note_base),
      .note_segrel  (note_segrel),
      .note_ky_on   (note_ky_on),
      .note_ky_slot (note_ky_slot),
      .note_chmod   (note_chmod),
      .note_chans   (note_chans),
      .note_lastseg (note_lastseg),
      .note_firstseg(note_firstseg),
      .f_valid      (f_valid),
      .view0        (view0),
      .view1        (view1),
      .view2        (view2),
      .view3        (view3),
      .mask0        (mask0),
      .mask1        (mask1),
      .mask2        (mask2),
      .f_entry      (f_entry),
      .f_ky_on      (f_ky_on),
      .f_ky_slot    (f_ky_slot),
      .f_chmod      (f_chmod),
      .f_chans      (f_chans),
      .done         (sc_done)
  );

  fc_flatten #(
      .TILE_ROWS(TILE_ROWS)
  ) u_flatten (
      .clk        (clk),
      .rst        (rst),
      .restart    (start),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .ready      (fc_ready),
      .valid      (note_valid && fc_mode),
      .row        (fill_data),
      .base       (note_base),
      .bytes      (note_bytes),
      .lastrow    (note_lastrow),
      .we         (fc_we),
      .bytes_out  (fc_bytes),
      .ats        (fc_ats),
      .entries    (fc_entries),
      .done       (fc_done)
  );

  always @(posedge clk) begin
    if (rst) tile_filled <= {TW{1'b0}};
    else tile_filled <= tile_filled + {{(TW - 5) {1'b0}}, fc_mode ? fc_done : sc_done};
  end

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      localparam [3:0] BANK = t;
      localparam integer KY = t / 3;
      localparam integer KX = t % 3;
      wire [511:0] row;
      tile_bank #(
          .ROWS(TILE_ROWS)
      ) u_bank (
          .clk      (clk),
          .bank     (BANK),
          .ky       (KY[1:0]),
          .kx       (KX[1:0]),
          .mode     (mode),
          .swl      (desc[`DESC_SWL]),
          .irl      (desc[`DESC_IRL]),
          .f_valid  (f_valid),
          .view0    (view0),
          .view1    (view1),
          .view2    (view2),
          .view3    (view3),
          .mask0    (mask0),
          .mask1    (mask1),
          .mask2    (mask2),
          .f_entry  (f_entry),
          .f_ky_on  (f_ky_on),
          .f_ky_slot(f_ky_slot),
          .f_chmod  (f_chmod),
          .f_chans  (f_chans),
          .fc_we    (fc_we[t]),
          .fc_entry (fc_entries[t*TA+:TA]),
          .fc_at    (fc_ats[t*6+:6]),
          .fc_byte  (fc_bytes[t*8+:8]),
          .re       (re[t]),
          .raddr    (entry[t*TA+:TA]),
          .rdata    (row)
      );
    end
  endgenerate

  assign row_0 = g_bank[0].row;
  assign row_1 = g_bank[1].row;
  assign row_2 = g_bank[2].row;
  assign row_3 = g_bank[3].row;
  assign row_4 = g_bank[4].row;
  assign row_5 = g_bank[5].row;
  assign row_6 = g_bank[6].row;
  assign row_7 = g_bank[7].row;
  assign row_8 = g_bank[8].row;

endmodule

`resetall
