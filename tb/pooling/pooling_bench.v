// SPDX-License-Identifier: Apache-2.0
//
// pooling_bench: collector and write-back connected as in the core.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pooling_bench #(
    // array: pixels and output channels
    parameter N_Y = 2,
    parameter N_Z = 2,
    // derived as in the core
    parameter L   = N_Y * N_Z,
    parameter ZW  = $clog2(N_Z),
    parameter JW  = 10 + (ZW + 1) + 10 + 9 + 7 + 3,
    parameter EW  = ZW + $clog2((N_Z >= 8) ? 2 : 16 / N_Z)
) (
    // clock and synchronous reset, start of a layer, its descriptor
    input  wire                     clk,
    input  wire                     rst,
    input  wire                     restart,
    input  wire [`DESC_BITS-1:0] desc,
    // bytes of the post lanes
    input  wire                     in_valid,
    input  wire [          L*8-1:0] in_byte,
    input  wire [              5:0] in_pos,
    input  wire                     in_end,
    // job: channel, channels, origin, size
    input  wire [              9:0] in_chan,
    input  wire [             ZW:0] in_nz,
    input  wire [              9:0] in_gx,
    input  wire [              8:0] in_gy,
    input  wire [              6:0] in_width,
    input  wire [              2:0] in_lines,
    output wire                     room,
    input  wire                     take,
    // AI RAM write port
    output wire                     writeback_req,
    output wire [             14:0] writeback_row,
    output wire [             63:0] writeback_be,
    output wire [            511:0] writeback_data,
    input  wire                     writeback_gnt,
    // nothing in flight
    output wire                     col_idle,
    output wire                     writeback_idle
);

  wire job_valid, job_ready, release_one;
  wire [JW-1:0] job;
  wire [EW-1:0] job_entry, rd_entry;
  wire [511:0] rd_data;

  collector #(
      .N_Y(N_Y),
      .N_Z(N_Z),
      .JW (JW)
  ) u_collect (
      .clk        (clk),
      .rst        (rst),
      .restart    (restart),
      .dw         (desc[`DESC_DW]),
      .in_valid   (in_valid),
      .in_byte    (in_byte),
      .in_pos     (in_pos),
      .in_end     (in_end),
      .in_job     ({in_chan, in_nz, in_gx, in_gy, in_width, in_lines}),
      .room       (room),
      .take       (take),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job        (job),
      .job_entry  (job_entry),
      .rd_entry   (rd_entry),
      .rd_data    (rd_data),
      .release_one(release_one),
      .idle       (col_idle)
  );

  write_back #(
      .N_Z(N_Z),
      .EW (EW)
  ) u_write (
      .clk        (clk),
      .rst        (rst),
      .desc       (desc),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job_entry  (job_entry),
      .job_chan   (job[JW-1-:10]),
      .job_nz     (job[29+:ZW+1]),
      .job_gx     (job[28:19]),
      .job_gy     (job[18:10]),
      .job_width  (job[9:3]),
      .job_lines  (job[2:0]),
      .rd_entry   (rd_entry),
      .rd_data    (rd_data),
      .release_one(release_one),
      .writeback_req     (writeback_req),
      .writeback_row     (writeback_row),
      .writeback_be      (writeback_be),
      .writeback_data    (writeback_data),
      .writeback_gnt     (writeback_gnt),
      .idle       (writeback_idle)
  );

endmodule

`resetall
