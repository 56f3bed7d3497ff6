// SPDX-License-Identifier: Apache-2.0
//
// job_row: computes the AI RAM row where a job's first output line begins.
//
// How it works: one multiplier forms two products in sequence: the group of channels times its rows, and
// the line times its rows. They are added to the first row of the map. This overlaps with the previous
// job. Both factors are registered, because the multiplier takes half a cycle.
// Handshake: job_valid and the job must be held until take. formed is a level, four cycles after
// job_valid, and marks row as valid; take, only with formed, admits the next job.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module job_row #(
    // output channels of the array
    parameter N_Z = 2,
    // derived, not to be set: width of a channel index in a group
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; log2 of the lines that a pool reduces to one
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           1:0] fl,
    // the pending job
    input  wire                  job_valid,
    input  wire [ `JOB_BITS-1:0] job,
    input  wire                  take,
    // its row
    output reg                   formed,
    output reg  [          14:0] row
);

  wire [ 9:0] chan = job[`JOB_CHAN];
  wire [ 1:0] plane = job[`JOB_PLANE];
  wire [ 8:0] gy = job[`JOB_GY];
  wire [ 1:0] gl = 2'd2 - desc[`DESC_OP];  // log2 of the channels in a row
  wire [11:0] group = desc[`DESC_OUT32] ? {chan, plane} >> gl : {2'd0, chan >> gl};
  wire [ 8:0] y = gy >> fl;

  // the registered factors, the product being formed, the product being added are those of the lines
  reg lines_next, lines_made, lines_added;
  reg  [11:0] count;
  reg  [13:0] each;
  reg  [14:0] product;
  wire [25:0] rows = count * each;
  always @(posedge clk) begin
    count   <= lines_next ? {3'd0, y} : group;
    each    <= lines_next ? {9'd0, desc[`DESC_ORL]} : desc[`DESC_OCS];
    product <= rows[14:0];
    if (!formed) row <= product + (lines_added ? row : desc[`DESC_DST]);
  end
  always @(posedge clk) begin
    if (rst || take || !job_valid) {lines_next, lines_made, lines_added, formed} <= 4'd0;
    else
      {lines_next, lines_made, lines_added, formed} <= {1'b1, lines_next, lines_made, lines_added};
  end

  wire unused = &{1'b0, desc, job, rows};

endmodule

`resetall
