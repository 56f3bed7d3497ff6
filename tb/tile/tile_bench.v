// SPDX-License-Identifier: Apache-2.0
//
// tile_bench: what fills the tile buffer (fill_seq, tile_scatter, fc_flatten) and its nine banks,
// connected as in the core. All banks are read at one entry.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_desc.vh"

module tile_bench #(
    // entries of the tile buffer
    parameter TILE_ROWS = 32,
    // derived as in the core
    parameter TW        = $clog2(TILE_ROWS) + 2,
    parameter TA        = $clog2(TILE_ROWS)
) (
    // clock and synchronous reset
    input  wire                     clk,
    input  wire                     rst,
    // layer start with its descriptor
    input  wire                     start,
    input  wire [`DESC_W_TOTAL-1:0] desc,
    output wire                     busy,
    // entries: complete, released
    output reg  [           TW-1:0] tile_filled,
    input  wire [           TW-1:0] tile_freed,
    // AI RAM read port
    output wire                     fl_req,
    output wire [             14:0] fl_row,
    input  wire                     fl_gnt,
    input  wire [            511:0] fl_data,
    // read of an entry, all banks
    input  wire                     re,
    input  wire [           TA-1:0] raddr,
    output wire [        9*512-1:0] rdata
);

  wire [1:0] mode = desc[`DESC_MODE];
  wire is_fc = mode == `MODE_FC;

  wire       n_valid;
  wire [TW-1:0] n_entry;
  wire [4:0] n_done;
  wire [5:0] n_base;
  wire [2:0] n_segrel;
  wire [2:0] n_ky_on;
  wire [5:0] n_ky_slot;
  wire [3:0] n_chmod;
  wire [2:0] n_chans;
  wire       n_lastseg;
  wire       n_firstseg;
  wire [6:0] n_bytes;
  wire       n_lastrow;
  wire       fc_ready;

  fill_seq #(
      .TILE_ROWS(TILE_ROWS)
  ) u_fill (
      .clk        (clk),
      .rst        (rst),
      .start      (start),
      .desc       (desc),
      .busy       (busy),
      .tile_freed (tile_freed),
      .tile_filled(tile_filled),
      .fl_req     (fl_req),
      .fl_row     (fl_row),
      .fl_gnt     (fl_gnt),
      .fc_ready   (fc_ready),
      .n_valid    (n_valid),
      .n_entry    (n_entry),
      .n_done     (n_done),
      .n_base     (n_base),
      .n_segrel   (n_segrel),
      .n_ky_on    (n_ky_on),
      .n_ky_slot  (n_ky_slot),
      .n_chmod    (n_chmod),
      .n_chans    (n_chans),
      .n_lastseg  (n_lastseg),
      .n_firstseg (n_firstseg),
      .n_bytes    (n_bytes),
      .n_lastrow  (n_lastrow)
  );

  wire [4:0] sc_done, fc_done;
  wire         f_valid;
  wire [511:0] view0, view1, view2, view3;
  wire [ 63:0] mask0, mask1, mask2;
  wire [TW-1:0] f_entry;
  wire [  2:0] f_ky_on;
  wire [  5:0] f_ky_slot;
  wire [  3:0] f_chmod;
  wire [  2:0] f_chans;
  wire [  8:0] fc_we;
  wire [ 71:0] fc_bytes;
  wire [ 53:0] fc_ats;
  wire [9*TA-1:0] fc_entries;

  tile_scatter #(
      .TILE_ROWS(TILE_ROWS)
  ) u_scatter (
      .clk       (clk),
      .rst       (rst),
      .mode      (mode),
      .stl       (desc[`DESC_STL]),
      .ph        (desc[`DESC_PH]),
      .swl       (desc[`DESC_SWL]),
      .ip        (desc[`DESC_IP]),
      .n_valid   (n_valid && !is_fc),
      .row       (fl_data),
      .n_entry   (n_entry),
      .n_done    (n_done),
      .n_base    (n_base),
      .n_segrel  (n_segrel),
      .n_ky_on   (n_ky_on),
      .n_ky_slot (n_ky_slot),
      .n_chmod   (n_chmod),
      .n_chans   (n_chans),
      .n_lastseg (n_lastseg),
      .n_firstseg(n_firstseg),
      .f_valid   (f_valid),
      .view0     (view0),
      .view1     (view1),
      .view2     (view2),
      .view3     (view3),
      .mask0     (mask0),
      .mask1     (mask1),
      .mask2     (mask2),
      .f_entry   (f_entry),
      .f_ky_on   (f_ky_on),
      .f_ky_slot (f_ky_slot),
      .f_chmod   (f_chmod),
      .f_chans   (f_chans),
      .done      (sc_done)
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
      .valid      (n_valid && is_fc),
      .row        (fl_data),
      .base       (n_base),
      .bytes      (n_bytes),
      .lastrow    (n_lastrow),
      .we         (fc_we),
      .bytes_out  (fc_bytes),
      .ats        (fc_ats),
      .entries    (fc_entries),
      .done       (fc_done)
  );

  always @(posedge clk) begin
    if (rst) tile_filled <= {TW{1'b0}};
    else tile_filled <= tile_filled + {{(TW - 5) {1'b0}}, is_fc ? fc_done : sc_done};
  end

  genvar t;
  generate
    for (t = 0; t < 9; t = t + 1) begin : g_bank
      localparam [3:0] BANK = t;
      localparam integer KY = t / 3;
      localparam integer KX = t % 3;
      wire [511:0] q;
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
          .re       (re),
          .raddr    (raddr),
          .rdata    (q)
      );
    end
  endgenerate

  assign rdata = {
    g_bank[8].q,
    g_bank[7].q,
    g_bank[6].q,
    g_bank[5].q,
    g_bank[4].q,
    g_bank[3].q,
    g_bank[2].q,
    g_bank[1].q,
    g_bank[0].q
  };

endmodule

`resetall
