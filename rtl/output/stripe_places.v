// SPDX-License-Identifier: Apache-2.0
//
// stripe_places: tracks the entries of a collector: in use and free, the one being written, jobs.
//
// How it works: an entry is a place for a stripe in each channel. A group of a convolution uses one place
// of every channel, a depthwise row (PAIR: two rows) one place of one channel. Entries are written and
// read in the same order; jobs queue in a FIFO as deep as the number of entries.
// Handshake: take reserves a group or row, when there is room; release_one frees the oldest one. The job
// enters with in_job_valid, once before or with in_end, and leaves with job_ready; restart clears
// everything.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module stripe_places #(
    // output channels of the array; places of each; 1: a depthwise entry is two rows
    parameter N_Z   = 4,
    parameter DEPTH = 4,
    parameter PAIR  = 0,
    // width of a job
    parameter JW    = 64,
    // derived, not to be set: widths of a channel, of an entry
    parameter ZW    = $clog2(N_Z),
    parameter EW    = ZW + $clog2(DEPTH)
) (
    // clock and synchronous reset; restart empties the counters at the start of a layer
    input  wire          clk,
    input  wire          rst,
    input  wire          restart,
    // layer: depthwise rows (or neurons), one entry at a time
    input  wire          dw,
    // the job of a group or row; its last bytes; the entry being written
    input  wire          in_job_valid,
    input  wire [JW-1:0] in_job,
    input  wire          in_end,
    output reg  [EW-1:0] entry,
    // room for one more row (depthwise) or group
    output wire          room,
    input  wire          take,
    // write-back: jobs in order; a row or group was read
    output wire          job_valid,
    input  wire          job_ready,
    output wire [JW-1:0] job,
    output reg  [EW-1:0] job_entry,
    input  wire          release_one,
    // no entry in use
    output wire          idle
);

  localparam integer ENTRIES = N_Z * DEPTH;
  localparam integer ROWS_I = ENTRIES >> PAIR;
  localparam [EW:0] ROWS_MAX = ROWS_I[EW:0];
  localparam [EW:0] GROUPS = DEPTH[EW:0];
  localparam integer LAST_I = DEPTH - 1;
  localparam [EW-ZW-1:0] LAST = LAST_I[EW-ZW-1:0];

  reg [EW:0] used;
  assign room = used < (dw ? ROWS_MAX : GROUPS);
  assign idle = used == {(EW + 1) {1'b0}};

  function [EW-ZW-1:0] on(input [EW-ZW-1:0] place);
    on = (place == LAST) ? {(EW - ZW) {1'b0}} : place + {{(EW - ZW - 1) {1'b0}}, 1'b1};
  endfunction

  wire [EW-ZW-1:0] place = entry[EW-1:ZW];
  wire [EW-ZW-1:0] job_place = job_entry[EW-1:ZW];
  wire [EW-1:0] next_row, next_job_row;
  generate
    if (PAIR != 0) begin : g_two
      // the upper bit of the place belongs to the second row
      wire [EW-2:0] count = {entry[EW-1:ZW], entry[ZW-2:0]} + {{(EW - 2) {1'b0}}, 1'b1};
      wire [EW-2:0] jobs = {job_entry[EW-1:ZW], job_entry[ZW-2:0]} + {{(EW - 2) {1'b0}}, 1'b1};
      assign next_row = {count[EW-2:ZW-1], 1'b0, count[ZW-2:0]};
      assign next_job_row = {jobs[EW-2:ZW-1], 1'b0, jobs[ZW-2:0]};
    end else begin : g_one
      wire [ZW-1:0] chan = entry[ZW-1:0] + {{(ZW - 1) {1'b0}}, 1'b1};
      wire [ZW-1:0] job_chan = job_entry[ZW-1:0] + {{(ZW - 1) {1'b0}}, 1'b1};
      assign next_row = {(chan == {ZW{1'b0}}) ? on(place) : place, chan};
      assign next_job_row = {(job_chan == {ZW{1'b0}}) ? on(job_place) : job_place, job_chan};
    end
  endgenerate

  always @(posedge clk) begin
    if (rst || restart) begin
      used      <= {(EW + 1) {1'b0}};
      entry     <= {EW{1'b0}};
      job_entry <= {EW{1'b0}};
    end else begin
      used <= used + {{EW{1'b0}}, take} - {{EW{1'b0}}, release_one};
      if (in_end) entry <= dw ? next_row : {on(place), {ZW{1'b0}}};
      if (job_valid && job_ready) begin
        job_entry <= dw ? next_job_row : {on(job_place), {ZW{1'b0}}};
      end
    end
  end

  wire job_in_ready;
  wire [$clog2(ENTRIES+1)-1:0] job_count;
  fifo_sync #(
      .WIDTH(JW),
      .DEPTH(ENTRIES)
  ) u_jobs (
      .clk      (clk),
      .rst      (rst),
      .flush    (restart),
      .in_valid (in_job_valid),
      .in_ready (job_in_ready),
      .in_data  (in_job),
      .out_valid(job_valid),
      .out_ready(job_ready),
      .out_data (job),
      .count    (job_count)
  );

  generate
    if (DEPTH < 2 || (PAIR != 0 && (DEPTH & (DEPTH - 1)) != 0)) begin : g_illegal_depth
      ILLEGAL_DEPTH_FROM_2_OF_PAIRS_POWER_OF_TWO u_illegal ();
    end
  endgenerate

  // the FIFO has as many words as there are entries, so it is never full
  wire unused = &{1'b0, job_in_ready, job_count};

endmodule

`resetall
