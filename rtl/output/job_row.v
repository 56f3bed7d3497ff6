// SPDX-License-Identifier: Apache-2.0
//
// job_row: forms the row of the AI RAM where a job's first output line begins.
//
// How it works: one multiplier makes two products, one after the other: the group of channels by its
// rows, and the line by its rows. They are added to the first row of the map. It works while the job
// waits for the one before it to end. Both factors are registered: the multiplier takes half a cycle.
// Handshake: job_valid and the job must stand until take. formed is a level, four cycles behind
// job_valid, with which row is there; take, only with formed, makes way for the next job.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module job_row #(
    // output channels of the array
    parameter N_Z = 2,
    // derived, not to be set: width of a channel's number in a group
    parameter ZW  = $clog2(N_Z)
) (
    // clock and synchronous reset
    input  wire                  clk,
    input  wire                  rst,
    // layer; log2 of the lines that a pool makes one of
    input  wire [`DESC_BITS-1:0] desc,
    input  wire [           1:0] fl,
    // the job that waits
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

  // the factors that are registered are the lines', the product that is made, that is added
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
