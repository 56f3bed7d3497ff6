// SPDX-License-Identifier: Apache-2.0
//
// pool_parts: buffers the blocks read by pool_walk, and outputs them in pieces of COLS columns.
//
// How it works: a block is 16 columns of one line. With 16 columns a piece is a block, and a FIFO buffers
// them. With fewer columns, the lines of a chunk, 16 at most, lie in a ring that is read once for each
// part of their columns: the first COLS columns of all lines, then the next ones. The map itself is still
// read only once. The last pass frees the entries it reads. Parts of a line's last block behind the last
// window are skipped.
// Handshake: a block is accepted unconditionally, because pool_walk counts the entries: freed is high
// when one becomes free. Pieces are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pool_parts #(
    // columns of a piece: 4, 8 or 16
    parameter COLS   = 16,
    // entries for blocks; 16 where pieces are smaller than blocks
    parameter PLACES = 6
) (
    // clock and synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // offset in its block of the column where the last window of a line ends
    input  wire [            3:0] last_place,
    // blocks
    input  wire                   got,
    input  wire [          127:0] got_data,
    input  wire [`PIECE_BITS-1:0] got_piece,
    output wire                   freed,
    // pieces
    output wire                   piece_valid,
    input  wire                   piece_ready,
    output wire [     8*COLS-1:0] piece_data,
    output wire [`PIECE_BITS-1:0] piece
);

  generate
    if (COLS == 16) begin : g_whole
      wire fifo_ready;
      wire [$clog2(PLACES+1)-1:0] fifo_count;
      fifo_sync #(
          .WIDTH(128 + `PIECE_BITS),
          .DEPTH(PLACES)
      ) u_blocks (
          .clk(clk),
          .rst(rst),
          .flush(1'b0),
          .in_valid(got),
          .in_ready(fifo_ready),
          .in_data({got_piece, got_data}),
          .out_valid(piece_valid),
          .out_ready(piece_ready),
          .out_data({piece, piece_data}),
          .count(fifo_count)
      );
      assign freed = piece_valid && piece_ready;
      wire unused_whole = &{1'b0, fifo_ready, fifo_count, last_place};
    end else begin : g_parts
      localparam integer B = $clog2(COLS);
      localparam integer SB = 4 - B;  // bits of a part index

      // ---- the ring: the next line to read, lines of its chunk before it, lines ahead
      reg [3:0] wr, rd, line;
      reg [4:0] ahead;
      reg [SB-1:0] part;
      reg valid;
      wire [127:0] data;
      wire [`PIECE_BITS-1:0] entry;
      wire load = ahead != 5'd0 && (!valid || piece_ready);
      wire last = entry[`PIECE_LAST];
      wire last_part = part == (entry[`PIECE_LINE_LAST] ? last_place[3:B] : {SB{1'b1}});
      // what a load changes is worked out before it: it follows from the end of the pool's pipeline
      wire back = last && !last_part;  // to the chunk's first line again
      wire [3:0] rd_after = rd + (back ? ~line + 4'd1 : 4'd1);
      wire [4:0] ahead_stays = ahead + {4'd0, got};
      wire [4:0] ahead_after = (ahead + (back ? {1'b0, line} : 5'h1f)) + {4'd0, got};
      assign freed = load && last_part;

      always @(posedge clk) begin
        if (rst) begin
          {wr, rd, line} <= 12'd0;
          ahead <= 5'd0;
          part <= {SB{1'b0}};
          valid <= 1'b0;
        end else begin
          wr <= wr + {3'd0, got};
          rd <= load ? rd_after : rd;
          line <= !load ? line : last ? 4'd0 : line + 4'd1;
          ahead <= load ? ahead_after : ahead_stays;
          part <= !(load && last) ? part : last_part ? {SB{1'b0}} : part + 1'b1;
          valid <= load || (valid && !piece_ready);
        end
      end

      ram_1r1w_async #(
          .WIDTH(128 + `PIECE_BITS),
          .DEPTH(16)
      ) u_ring (
          .clk  (clk),
          .we   (got),
          .waddr(wr),
          .wdata({got_piece, got_data}),
          .raddr(rd),
          .rdata({entry, data})
      );

      // ---- a part of a line
      wire [4:0] count = entry[`PIECE_COUNT];
      wire [SB:0] numbered = {1'b0, part};
      wire whole = count[4:B] > numbered;
      wire some = count[4:B] == numbered;
      reg [8*COLS-1:0] part_data;
      reg [`PIECE_BITS-1:0] part_piece;
      always @(posedge clk) begin
        if (load) begin
          part_data <= data[8*COLS*part+:8*COLS];
          part_piece <= entry;
          part_piece[`PIECE_COUNT] <= whole ? COLS[4:0] : some ? {{(5 - B) {1'b0}}, count[B-1:0]} : 5'd0;
          part_piece[`PIECE_LINE_FIRST] <= entry[`PIECE_LINE_FIRST] && part == {SB{1'b0}};
          part_piece[`PIECE_LINE_LAST] <= entry[`PIECE_LINE_LAST] && last_part;
        end
      end
      assign piece_valid = valid;
      assign piece_data = part_data;
      assign piece = part_piece;
      wire unused_parts = &{1'b0, last_place};
    end
  endgenerate

endmodule

`resetall
