// SPDX-License-Identifier: Apache-2.0
//
// piece_write: pools finished stripes and writes them to the AI RAM in its layout, four bytes at a time.
//
// How it works: write_back for small arrays. piece_walk reads four bytes of a stripe per cycle and
// computes the destination of its pixels. Those of an unpooled line (or depthwise row) are written at
// once: lines begin at multiples of four bytes on both sides. piece_pool produces single pixels. Each
// write replicates its bytes over the quarters of a word, and the byte enables select one.
// Byte(c, y, x) = dst * 64 + (c / g) * ocs * 64 + y * orl * 64 + (c mod g) * pitch + x.
// Handshake: all stages advance while the write port is free; waits for the AI RAM (writeback_req until
// writeback_gnt). The collector entry is released when the last bytes of the job are read.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module piece_write #(
    // output channels of the array
    parameter N_Z  = 2,
    // bytes of a word of the AI RAM: 16 (for the fields' widths)
    parameter PATH = 16,
    // width of a collector entry number
    parameter EW   = 3,
    // derived, not to be set: widths of a channel index in a group, of a byte index in a word
    parameter ZW   = $clog2(N_Z),
    parameter PB   = $clog2(PATH)
) (
    // clock and synchronous reset
    input  wire                      clk,
    input  wire                      rst,
    // layer
    input  wire [    `DESC_BITS-1:0] desc,
    // jobs of the collector: first entry, other fields
    input  wire                      job_valid,
    output wire                      job_ready,
    input  wire [            EW-1:0] job_entry,
    input  wire [     `JOB_BITS-1:0] job,
    output wire                      release_one,
    // bytes of the job that have arrived: last pair, complete
    input  wire [               4:0] reached,
    input  wire                      complete,
    // pair of bytes of an entry to read, with the next one
    output wire                      rd_en,
    output wire [            EW-1:0] rd_entry,
    output wire [               4:0] rd_pair,
    input  wire [              31:0] rd_data,
    // AI RAM write port
    output reg                       writeback_req,
    output wire [`ROWWRITE_BITS-1:0] writeback,
    input  wire                      writeback_gnt,
    // nothing in flight
    output wire                      idle
);

  // ---- layer, registered: its first job arrives much later
  reg dwrow, one_chan;
  reg [1:0] wide, op;
  reg [2:0] pool;
  always @(posedge clk) begin
    dwrow <= desc[`DESC_MODE] == `MODE_DWROW;
    one_chan <= desc[`DESC_DW] || desc[`DESC_MODE] == `MODE_FC;
    wide <= desc[`DESC_MODE] == `MODE_DWROW ? desc[`DESC_OP] : desc[`DESC_SWL] == 3'd4 ? 2'd0 :
        desc[`DESC_SWL] == 3'd5 ? 2'd1 : 2'd2;  // log2 of the slots of a line
    {pool, op} <= {desc[`DESC_POOL], desc[`DESC_OP]};
  end
  wire four = pool == `POOL_MAX4 || pool == `POOL_MEAN4;
  wire plain = pool == `POOL_NONE;
  wire move = !writeback_req || writeback_gnt;  // all stages advance

  // ---- the read
  wire walk_idle, r_valid, r_out, r_whole, r_first;
  wire [14:0] r_row;
  wire [ 5:0] r_at;
  wire [ 3:0] r_mask;
  wire [ 1:0] r_edge;
  piece_walk #(
      .N_Z(N_Z),
      .EW (EW)
  ) u_walk (
      .clk        (clk),
      .rst        (rst),
      .desc       (desc),
      .wide       (wide),
      .move       (move),
      .job_valid  (job_valid),
      .job_ready  (job_ready),
      .job_entry  (job_entry),
      .job        (job),
      .release_one(release_one),
      .reached    (reached),
      .complete   (complete),
      .rd_en      (rd_en),
      .rd_entry   (rd_entry),
      .rd_pair    (rd_pair),
      .r_valid    (r_valid),
      .r_out      (r_out),
      .r_row      (r_row),
      .r_at       (r_at),
      .r_mask     (r_mask),
      .r_whole    (r_whole),
      .r_first    (r_first),
      .r_edge     (r_edge),
      .idle       (walk_idle)
  );

  // ---- pooled bytes, after three cycles, and unpooled bytes, with their destinations
  localparam integer LATENCY = 3;
  localparam integer TW = 1 + 1 + 17 + 2 + 4;
  wire [TW-1:0] tag;
  wire [31:0] bytes;
  wire [7:0] pixel;
  wire w_first, w_whole;
  wire [16:0] w_word;
  wire [1:0] quarter;
  wire [3:0] mask;
  reg [LATENCY-1:0] on_way;
  reg [LATENCY*TW-1:0] tags;
  reg [LATENCY*32-1:0] words;
  always @(posedge clk) begin
    if (rst) on_way <= {LATENCY{1'b0}};
    else if (move) on_way <= {on_way[LATENCY-2:0], r_valid && r_out};
  end
  always @(posedge clk) begin
    if (move) begin
      tags  <= {tags[(LATENCY-1)*TW-1:0], r_first, r_whole, r_row, r_at[5:2], r_mask};
      words <= {words[(LATENCY-1)*32-1:0], rd_data};
    end
  end
  assign tag   = tags[LATENCY*TW-1-:TW];
  assign bytes = words[LATENCY*32-1-:32];

  piece_pool u_pool (
      .clk    (clk),
      .en     (move),
      .pool   (pool),
      .sgn    (desc[`DESC_SOUT]),
      .bytes  (rd_data),
      .first  (r_first),
      .at_edge(r_edge),
      .second (four || !w_first),
      .pixel  (pixel)
  );

  // ---- the write
  reg whole;
  reg [16:0] word;
  reg [15:0] be;
  reg [31:0] data;
  wire [6:0] chans = dwrow ? {4'd0, 3'd4 >> op} : one_chan ? 7'd1 : N_Z[6:0];
  assign {w_first, w_whole, w_word, quarter, mask} = tag;
  always @(posedge clk) begin
    if (rst) writeback_req <= 1'b0;
    else writeback_req <= move ? on_way[LATENCY-1] : writeback_req;
  end
  genvar q;
  generate
    for (q = 0; q < 4; q = q + 1) begin : g_quarter
      localparam [1:0] QUARTER = q;
      always @(posedge clk) begin
        if (move) be[4*q+:4] <= mask & {4{quarter == QUARTER}};
      end
    end
  endgenerate
  always @(posedge clk) begin
    if (move) begin
      whole <= w_whole;
      word  <= w_word;
      data  <= plain ? bytes : {4{pixel}};
    end
  end
  assign writeback[`ROWWRITE_WORD] = word;
  assign writeback[`ROWWRITE_BE] = be;
  assign writeback[`ROWWRITE_DATA] = {4{data}};
  // channels complete with it: a group, those of a row, one
  assign writeback[`ROWWRITE_CHANS] = whole ? chans : 7'd0;

  assign idle = walk_idle && !r_valid && on_way == {LATENCY{1'b0}} && !writeback_req;

  wire unused = &{1'b0, desc, r_at};

  generate
    if (PATH != 16) begin : g_illegal_path
      ILLEGAL_PATH_NOT_16 u_illegal ();
    end
  endgenerate

endmodule

`resetall
