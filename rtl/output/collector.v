// SPDX-License-Identifier: Apache-2.0
//
// collector: gathers the bytes of the post lanes into stripes of 64, one per channel, and transposes: N_Y
// bytes of each channel enter per cycle, PATH bytes of one channel leave.
//
// How it works: a stripe is a row of chunks of N_Y bytes. Chunk p of a stripe in channel place z lies in
// bank p xor z (z shifted to the top bits of a bank index), so the chunks that enter together, of all
// channels (convolution) or of one row (depthwise), and those of a word being read, are in different
// banks. The data of a cycle are reordered by exchanges of neighbours, one stage per bit; the stages of
// the read also move a 16-byte slot to another position, which is the only alignment an unpooled line
// needs. A job with its position in the output map follows the last bytes of a group (depthwise: a row)
// to the write-back. With PAIR the banks are as wide as two stripes: those of places z and z + N_Z / 2
// share no bank, and two depthwise rows enter and leave together.
// Handshake: the sender checks room and reserves an entry with take before it sends sums to the post
// lanes; the write-back frees entries with release. The input never stalls. Read data follow rd_en by a
// cycle and are held until the next read.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module collector #(
    // array: pixels and output channels
    parameter N_Y = 4,
    parameter N_Z = 4,
    // bytes of a word read
    parameter PATH = 64,
    // 1: an entry of a depthwise layer is two rows, and both are read at once
    parameter PAIR = 0,
    // width of a job
    parameter JW = 64,
    // stripes per channel that fit
    parameter DEPTH = (N_Z >= 8) ? 2 : 16 / N_Z,
    // derived, not to be set: lanes; widths of a channel, of its place, of an entry, of a byte index
    parameter L = N_Y * N_Z,
    parameter ZW = $clog2(N_Z),
    parameter DW = $clog2(DEPTH),
    parameter EW = ZW + DW,
    parameter PB = $clog2(PATH)
) (
    // clock and synchronous reset; restart empties the counters at the start of a layer
    input  wire                      clk,
    input  wire                      rst,
    input  wire                      restart,
    // layer: depthwise rows, one entry at a time
    input  wire                      dw,
    // bytes of the post lanes, position of the first, end of the group, its job
    input  wire                      in_valid,
    input  wire [           L*8-1:0] in_byte,
    input  wire [               5:0] in_pos,
    input  wire                      in_end,
    input  wire [            JW-1:0] in_job,
    // room for one more row (depthwise) or group
    output wire                      room,
    input  wire                      take,
    // write-back: jobs in order; a row or group was read
    output wire                      job_valid,
    input  wire                      job_ready,
    output wire [            JW-1:0] job,
    output wire [            EW-1:0] job_entry,
    input  wire                      release_one,
    // word to read from an entry; byte i of it appears as byte i xor 8 * rd_turn
    input  wire                      rd_en,
    input  wire [            EW-1:0] rd_entry,
    input  wire [               1:0] rd_word,
    input  wire [               2:0] rd_turn,
    output wire [8*(PATH<<PAIR)-1:0] rd_data,
    // no entry in use
    output wire                      idle
);

  // depthwise: as many bytes enter as the path is wide, on the lanes given by their position in the row
  localparam integer LD = (L < PATH) ? L : PATH;
  localparam integer QB = $clog2(LD / N_Y);
  localparam integer YB = $clog2(N_Y);
  localparam integer CB = 6 - YB;  // bits of a chunk index in a stripe
  localparam integer WB = PB - YB;  // bits of a chunk index in a word
  localparam integer BB = (WB > ZW) ? WB : ZW;  // bits of a bank index
  localparam integer BANKS = 1 << BB;
  localparam integer ZS = BB - ZW;  // position of the channel's bits in it
  // Address in a bank: place of the stripe, then the chunk's upper bits and the channel, or, when a
  // stripe has fewer chunks than there are banks, the chunk.
  localparam integer FEW = (CB < BB) ? 1 : 0;
  localparam integer LOW = (FEW != 0) ? CB : CB - BB + ZW;
  localparam integer AW = DW + LOW;
  localparam integer BYTES = BANKS * N_Y;  // read by all banks at once
  localparam integer MB = BB + YB;
  localparam integer FIRST = (YB < 3) ? YB : 3;  // finer exchanges are never needed
  localparam [5:0] BANK_MASK = BANKS[5:0] - 6'd1;  // 64 banks: 0 - 1 wraps
  localparam integer FINE = (1 << ZS) - 1;

  generate
    if (PATH != 16 && PATH != 32 && PATH != 64) begin : g_illegal_path
      ILLEGAL_PATH_16_32_64 u_illegal ();
    end
    if ((DEPTH & (DEPTH - 1)) != 0) begin : g_illegal_depth
      ILLEGAL_DEPTH_NO_POWER_OF_TWO u_illegal ();
    end
    if (PAIR != 0 && CB >= BB) begin : g_illegal_pair
      ILLEGAL_PAIR_NEEDS_128_LANES u_illegal ();
    end
    if (N_Y > PATH || N_Y < 2 || N_Z < 2 || N_Z > 64) begin : g_illegal_array
      ILLEGAL_ARRAY u_illegal ();
    end
  endgenerate

  wire [EW-1:0] wentry;
  stripe_places #(
      .N_Z  (N_Z),
      .DEPTH(DEPTH),
      .PAIR (PAIR),
      .JW   (JW)
  ) u_places (
      .clk         (clk),
      .rst         (rst),
      .restart     (restart),
      .dw          (dw),
      .in_job_valid(in_valid && in_end),
      .in_job      (in_job),
      .in_end      (in_valid && in_end),
      .entry       (wentry),
      .room        (room),
      .take        (take),
      .job_valid   (job_valid),
      .job_ready   (job_ready),
      .job         (job),
      .job_entry   (job_entry),
      .release_one (release_one),
      .idle        (idle)
  );

  // ---- write: chunks in the order of the banks
  wire [5:0] wchunk = in_pos >> YB;
  wire [5:0] wz = {{(6 - ZW) {1'b0}}, wentry[ZW-1:0]};
  wire [5:0] wz_bank = wz << ZS;
  wire [5:0] wmask = dw ? wz_bank : wchunk >> ZS;

  genvar s, b;
  generate
    for (s = 0; s <= ZW; s = s + 1) begin : g_in
      wire [8*L-1:0] chunks;
      if (s == 0) begin : g_from
        assign chunks = in_byte;
      end else begin : g_swap
        for (b = 0; b < N_Z; b = b + 1) begin : g_chunk
          localparam integer OTHER = b ^ (1 << (s - 1));
          assign chunks[8*N_Y*b+:8*N_Y] = wmask[s-1] ? g_in[s-1].chunks[8*N_Y*OTHER+:8*N_Y] :
              g_in[s-1].chunks[8*N_Y*b+:8*N_Y];
        end
      end
    end
  endgenerate

  // ---- read: word of an entry
  wire [ 5:0] rchunk = {4'd0, rd_word} << WB;
  wire [ 5:0] rz = {{(6 - ZW) {1'b0}}, rd_entry[ZW-1:0]};
  wire [ 5:0] rmask = (rz << ZS) ^ (rchunk & BANK_MASK);
  wire [10:0] rturn = ({5'd0, rmask} << YB) ^ {5'd0, rd_turn, 3'd0};
  reg  [10:0] turn;
  always @(posedge clk) begin
    if (rd_en) turn <= rturn;
  end

  // ---- the banks
  wire [8*BYTES-1:0] banks;
  generate
    for (b = 0; b < BANKS; b = b + 1) begin : g_bank
      localparam [5:0] B = b;
      wire [5:0] to_z = ((B ^ wchunk) & BANK_MASK) >> ZS;  // convolution: channel being written
      wire [5:0] to_p = B ^ wz_bank;  // depthwise: chunk of the row, lower bits
      wire [5:0] from_p = B ^ rz;
      wire hit_z = ((B ^ wchunk) & FINE[5:0]) == 6'd0;
      wire hit_p = PAIR != 0 || (to_p >> QB == (wchunk & BANK_MASK) >> QB && (FEW == 0 || to_p >> CB == 6'd0));
      wire [5:0] wplace;
      wire [5:0] rplace;
      if (FEW != 0) begin : g_by_chunk
        assign wplace = dw ? to_p : wchunk;
        assign rplace = from_p;
      end else begin : g_by_channel
        assign wplace = ((wchunk >> BB) << ZW) | (dw ? wz : to_z);
        assign rplace = ((rchunk >> BB) << ZW) | rz;
      end
      wire [8*N_Y-1:0] wdata;
      if (ZS == 0) begin : g_same
        assign wdata = g_in[ZW].chunks[8*N_Y*b+:8*N_Y];
      end else begin : g_choice
        assign wdata = dw ? g_in[ZW].chunks[8*N_Y*(b%N_Z)+:8*N_Y] :
            g_in[ZW].chunks[8*N_Y*(b>>ZS)+:8*N_Y];
      end
      ram_1r1w #(
          .WIDTH(8 * N_Y),
          .DEPTH(1 << AW)
      ) u_ram (
          .clk  (clk),
          .we   (in_valid && (dw ? hit_p : hit_z)),
          .wlane(1'b1),
          .waddr({wentry[EW-1:ZW], wplace[LOW-1:0]}),
          .wdata(wdata),
          .re   (rd_en),
          .raddr({rd_entry[EW-1:ZW], rplace[LOW-1:0]}),
          .rdata(banks[8*N_Y*b+:8*N_Y])
      );
      wire unused_bits = &{1'b0, to_z, to_p, from_p, hit_p, hit_z, wplace, rplace};
    end
  endgenerate

  // ---- read: bytes of the banks in word order, coarse exchanges first
  generate
    for (s = MB; s >= FIRST; s = s - 1) begin : g_out
      wire [8*BYTES-1:0] bytes;
      if (s == MB) begin : g_from
        assign bytes = banks;
      end else begin : g_swap
        for (b = 0; b < BYTES >> s; b = b + 1) begin : g_part
          localparam integer OTHER = b ^ 1;
          assign bytes[(8*b<<s)+:8<<s] = turn[s] ? g_out[s+1].bytes[(8*OTHER<<s)+:8<<s] :
              g_out[s+1].bytes[(8*b<<s)+:8<<s];
        end
      end
    end
  endgenerate
  assign rd_data = g_out[FIRST].bytes[8*(PATH<<PAIR)-1:0];

  wire unused = &{1'b0, turn, wchunk, wmask, rchunk, g_out[FIRST].bytes};

endmodule

`resetall
