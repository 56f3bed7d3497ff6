// SPDX-License-Identifier: Apache-2.0
//
// output_stage: from the bytes of the post lanes to the map in the AI RAM.
//
// How it works: the collector gathers bytes into stripes of 64, one per channel; write_back reads them in
// words of PATH bytes, pools them and writes the resulting lines to the output map. With NARROW, for
// arrays of fewer than eight lanes, stripe_banks and piece_write do so in pieces of four bytes.
// Handshake: the sender checks room and reserves an entry with take before it sends sums to the post
// lanes; the input never stalls. A word waits with writeback_req until writeback_gnt.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module output_stage #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // bytes of a word of the AI RAM; 1: maps of 1x1 layers may be one line
    parameter PATH = 64,
    parameter FLAT_MAPS = 0,
    // derived, not to be set: lanes, widths of a bank index, of a byte index in a word; four bytes per
    // cycle are enough
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z),
    parameter PB = $clog2(PATH),
    parameter NARROW = (L < 8 && PATH == 16) ? 1 : 0
) (
    // clock and synchronous reset; start of a layer, its descriptor
    input  wire                      clk,
    input  wire                      rst,
    input  wire                      start,
    input  wire [    `DESC_BITS-1:0] desc,
    // bytes of the post lanes, position of the first, end of the group, its job
    input  wire                      in_valid,
    input  wire [           L*8-1:0] in_byte,
    input  wire [               5:0] in_pos,
    input  wire                      in_end,
    input  wire [     `JOB_BITS-1:0] in_job,
    // room for one more row (depthwise) or group
    output wire                      room,
    input  wire                      take,
    // AI RAM write port
    output wire                      writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt,
    // everything is written
    output wire                      idle
);

  // stripes per channel of the collector: groups, and depthwise rows, to cover the latency from an issue
  // through the lanes and out again
  localparam integer ROWS = (L < 16) ? 8 : 16;
  // a path of 128 bytes and as many lanes: depthwise rows in pairs
  localparam integer PAIR = (PATH > 64 && L > 64) ? 1 : 0;
  localparam integer ALL = (PAIR != 0) ? 64 : ROWS;
  localparam integer DEPTH = (NARROW != 0) ? 3 : (N_Z >= ALL / 4) ? 4 : ALL / N_Z;
  // the collector's words are parts of a row
  localparam integer WORD = (PATH > 64) ? 64 : PATH;
  localparam EW = ZW + $clog2(DEPTH);

  wire job_valid, job_ready, release_one, collector_idle, writeback_idle;
  wire [`JOB_BITS-1:0] job;
  wire [EW-1:0] job_entry, rd_entry;
  wire rd_en;
  assign idle = collector_idle && writeback_idle;

  generate
    if (NARROW != 0) begin : g_narrow
      wire [EW-1:0] in_entry;
      wire [4:0] rd_pair;
      wire [31:0] rd_data;
      wire [4:0] reached;
      wire in_first, complete;
      // depthwise rows and neurons use one channel's place, and arrive on the lanes given by their
      // position in it
      reg one_chan;  // in a register: the first issue follows the start by several cycles
      always @(posedge clk) one_chan <= desc[`DESC_DW] || desc[`DESC_MODE] == `MODE_FC;
      stripe_places #(
          .N_Z  (N_Z),
          .DEPTH(DEPTH),
          .JW   (`JOB_BITS)
      ) u_places (
          .clk         (clk),
          .rst         (rst),
          .restart     (start),
          .dw          (one_chan),
          .in_job_valid(in_first),
          .in_job      (in_job),
          .in_end      (in_valid && in_end),
          .entry       (in_entry),
          .room        (room),
          .take        (take),
          .job_valid   (job_valid),
          .job_ready   (job_ready),
          .job         (job),
          .job_entry   (job_entry),
          .release_one (release_one),
          .idle        (collector_idle)
      );

      stripe_banks #(
          .N_Y  (N_Y),
          .N_Z  (N_Z),
          .DEPTH(DEPTH)
      ) u_banks (
          .clk        (clk),
          .rst        (rst),
          .restart    (start),
          .dw         (one_chan),
          .in_valid   (in_valid),
          .in_byte    (in_byte),
          .in_entry   (in_entry),
          .in_pos     (in_pos),
          .in_end     (in_end),
          .in_first   (in_first),
          .reached    (reached),
          .complete   (complete),
          .release_one(release_one),
          .rd_en      (rd_en),
          .rd_entry   (rd_entry),
          .rd_pair    (rd_pair),
          .rd_data    (rd_data)
      );

      piece_write #(
          .N_Z (N_Z),
          .PATH(PATH),
          .EW  (EW)
      ) u_write (
          .clk          (clk),
          .rst          (rst),
          .desc         (desc),
          .job_valid    (job_valid),
          .job_ready    (job_ready),
          .job_entry    (job_entry),
          .job          (job),
          .release_one  (release_one),
          .reached      (reached),
          .complete     (complete),
          .rd_en        (rd_en),
          .rd_entry     (rd_entry),
          .rd_pair      (rd_pair),
          .rd_data      (rd_data),
          .writeback_req(writeback_req),
          .writeback    (writeback),
          .writeback_gnt(writeback_gnt),
          .idle         (writeback_idle)
      );

      if (FLAT_MAPS != 0) begin : g_illegal_flat
        ILLEGAL_FLAT_NEEDS_16_LANES u_illegal ();
      end
    end else begin : g_wide
      wire [1:0] rd_word;
      wire [2:0] rd_turn;
      wire [8*(WORD<<PAIR)-1:0] rd_data;
      collector #(
          .N_Y  (N_Y),
          .N_Z  (N_Z),
          .PATH (WORD),
          .PAIR (PAIR),
          .JW   (`JOB_BITS),
          .DEPTH(DEPTH)
      ) u_collect (
          .clk(clk),
          .rst(rst),
          .restart(start),
          .dw(desc[`DESC_DW]),
          .in_valid(in_valid),
          .in_byte(in_byte),
          .in_pos(in_pos),
          .in_end(in_end),
          .in_job(in_job),
          .room(room),
          .take(take),
          .job_valid(job_valid),
          .job_ready(job_ready),
          .job(job),
          .job_entry(job_entry),
          .release_one(release_one),
          .rd_en(rd_en),
          .rd_entry(rd_entry),
          .rd_word(rd_word),
          .rd_turn(rd_turn),
          .rd_data(rd_data),
          .idle(collector_idle)
      );

      write_back #(
          .N_Z(N_Z),
          .PATH(PATH),
          .PAIR(PAIR),
          .FLAT_MAPS(FLAT_MAPS),
          .EW(EW)
      ) u_write (
          .clk(clk),
          .rst(rst),
          .desc(desc),
          .job_valid(job_valid),
          .job_ready(job_ready),
          .job_entry(job_entry),
          .job_chan(job[`JOB_CHAN]),
          .job_plane(job[`JOB_PLANE]),
          .job_nz(job[`JOB_NZ]),
          .job_gx(job[`JOB_GX]),
          .job_gy(job[`JOB_GY]),
          .job_width(job[`JOB_WIDTH]),
          .job_lines(job[`JOB_LINES]),
          .job_whole(job[`JOB_WHOLE]),
          .release_one(release_one),
          .rd_en(rd_en),
          .rd_entry(rd_entry),
          .rd_word(rd_word),
          .rd_turn(rd_turn),
          .rd_data(rd_data),
          .writeback_req(writeback_req),
          .writeback_word(writeback[`ROWWRITE_WORD]),
          .writeback_be(writeback[`ROWWRITE_BE]),
          .writeback_data(writeback[`ROWWRITE_DATA]),
          .writeback_chans(writeback[`ROWWRITE_CHANS]),
          .writeback_gnt(writeback_gnt),
          .idle(writeback_idle)
      );
    end
  endgenerate

  generate
    if (PATH != 16 && PATH != 32 && PATH != 64 && PATH != 128) begin : g_illegal_path
      ILLEGAL_PATH_16_32_64_128 u_illegal ();
    end
  endgenerate

endmodule

`resetall
