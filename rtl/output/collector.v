// SPDX-License-Identifier: Apache-2.0
//
// collector: gathers the bytes of the post lanes into 64-byte stripes, one a channel.
//
// How it works: entry e lies in memory e mod N_Z. A convolution fills N_Z entries at once, N_Y
// bytes a cycle each; a depthwise layer fills one entry after the other, N_Y * N_Z bytes a cycle.
// When a group (depthwise: a row) is complete, a job with its place in the output map follows it
// to the write-back.
// Handshake: room must be checked before sums are sent to the post lanes, and reserved (room,
// take); the write-back frees what it has read (release). The input never waits.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module collector #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // width of a job
    parameter JW = 64,
    // entries in each memory
    parameter DEPTH = (N_Z >= 8) ? 2 : 16 / N_Z,
    // lanes, width of a bank number, entries, width of an entry number
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z),
    parameter DW = $clog2(DEPTH),
    parameter EW = ZW + DW
) (
    // clock and synchronous reset; restart empties the counters at the start of a layer
    input  wire           clk,
    input  wire           rst,
    input  wire           restart,
    // layer: depthwise rows, one entry at a time
    input  wire           dw,
    // bytes of the post lanes, position of the first, end of the group, its job
    input  wire           in_valid,
    input  wire [L*8-1:0] in_byte,
    input  wire [    5:0] in_pos,
    input  wire           in_end,
    input  wire [ JW-1:0] in_job,
    // room for one more row (depthwise) or group
    output wire           room,
    input  wire           take,
    // write-back: jobs in order; entry to read; a row or group was read
    output wire           job_valid,
    input  wire           job_ready,
    output wire [ JW-1:0] job,
    output wire [ EW-1:0] job_entry,
    input  wire [ EW-1:0] rd_entry,
    output wire [  511:0] rd_data,
    input  wire           release_one,
    // nothing taken
    output wire           idle
);

  localparam integer ENTRIES = N_Z * DEPTH;
  localparam [EW:0] ROWS_MAX = ENTRIES[EW:0];

  reg  [EW:0] used;
  wire [EW:0] limit = dw ? ROWS_MAX : {{(EW - 1) {1'b0}}, 2'd2};
  assign room = used < limit;
  assign idle = used == {(EW + 1) {1'b0}};

  wire [DW-1:0] flip = 1;
  reg [EW-1:0] wentry;
  reg [EW-1:0] jentry;
  wire [EW-1:0] wnext = dw ? wentry + {{(EW - 1) {1'b0}}, 1'b1} : {wentry[EW-1:ZW] ^ flip, {ZW{1'b0}}};
  wire [EW-1:0] jnext = dw ? jentry + {{(EW - 1) {1'b0}}, 1'b1} : {jentry[EW-1:ZW] ^ flip, {ZW{1'b0}}};

  always @(posedge clk) begin
    if (rst || restart) begin
      used   <= {(EW + 1) {1'b0}};
      wentry <= {EW{1'b0}};
      jentry <= {EW{1'b0}};
    end else begin
      used <= used + {{EW{1'b0}}, take} - {{EW{1'b0}}, release_one};
      if (in_valid && in_end) wentry <= wnext;
      if (job_valid && job_ready) jentry <= jnext;
    end
  end
  assign job_entry = jentry;

  wire job_in_ready;
  wire [$clog2(ENTRIES+1)-1:0] job_count;
  fifo_sync #(
      .WIDTH(JW),
      .DEPTH(ENTRIES)
  ) u_jobs (
      .clk      (clk),
      .rst      (rst),
      .flush    (restart),
      .in_valid (in_valid && in_end),
      .in_ready (job_in_ready),
      .in_data  (in_job),
      .out_valid(job_valid),
      .out_ready(job_ready),
      .out_data (job),
      .count    (job_count)
  );

  // ---- the memories
  genvar z;
  generate
    for (z = 0; z < N_Z; z = z + 1) begin : g_z
      wire [511:0] wdata;
      wire [511:0] rdata;
      wire [511:0] picked;
      wire [511:0] chain;
      wire [ 63:0] wlane;
      if (8 * L >= 512) begin : g_row
        assign wdata = dw ? in_byte[511:0] : {(64 / N_Y) {in_byte[z*N_Y*8+:N_Y*8]}};
        assign wlane = !in_valid ? 64'd0 :
            dw ? {64{wentry[ZW-1:0] == z}} : {{(64 - N_Y) {1'b0}}, {N_Y{1'b1}}} << in_pos;
      end else begin : g_part
        assign wdata = dw ? {(64 / L) {in_byte}} : {(64 / N_Y) {in_byte[z*N_Y*8+:N_Y*8]}};
        assign wlane = !in_valid ? 64'd0 :
            dw ? ({64{wentry[ZW-1:0] == z}} & ({{(64 - L) {1'b0}}, {L{1'b1}}} << in_pos)) :
            {{(64 - N_Y) {1'b0}}, {N_Y{1'b1}}} << in_pos;
      end
      ram_1r1w_lane #(
          .WIDTH(512),
          .DEPTH(DEPTH),
          .LANE (8)
      ) u_ram (
          .clk  (clk),
          .wlane(wlane),
          .waddr(wentry[EW-1:ZW]),
          .wdata(wdata),
          .raddr(rd_entry[EW-1:ZW]),
          .rdata(rdata)
      );
      // selection, memory by memory
      assign picked = (rd_entry[ZW-1:0] == z) ? rdata : 512'd0;
      if (z == 0) begin : g_first
        assign chain = picked;
      end else begin : g_next
        assign chain = g_z[z-1].chain | picked;
      end
    end
  endgenerate

  assign rd_data = g_z[N_Z-1].chain;

  // the FIFO has a place for each entry, so it never refuses
  wire unused = &{1'b0, job_in_ready, job_count};

endmodule

`resetall
