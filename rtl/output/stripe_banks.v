// SPDX-License-Identifier: Apache-2.0
//
// stripe_banks: the collector's memory for small arrays: N_Y bytes of each channel enter per cycle, four
// bytes of one channel leave.
//
// How it works: a stripe is 32 pairs of bytes, and a bank is as many pairs wide as half the lanes. Pair u
// of a stripe in channel place z lies in bank u xor z (z shifted to the top bits of a bank index), so the
// pairs that enter together, of all channels (convolution) or of one row (depthwise), are in different
// banks, and so are the two consecutive pairs of a read. The memories are small and have asynchronous
// reads, so that they map to LUTs. A group is read while its rest arrives: in_first marks its first
// bytes, reached is the last pair that has arrived of the oldest group not yet released, and complete
// marks that all have.
// Handshake: the input never stalls. Read data follow rd_en by a cycle and are held until the next read.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module stripe_banks #(
    // array: pixels and output channels, 4 or 8 together; stripes per channel that fit
    parameter N_Y   = 2,
    parameter N_Z   = 2,
    parameter DEPTH = 4,
    // derived, not to be set: lanes; widths of a channel, of an entry
    parameter L     = N_Y * N_Z,
    parameter ZW    = $clog2(N_Z),
    parameter EW    = ZW + $clog2(DEPTH)
) (
    // clock and synchronous reset; restart empties the counters at the start of a layer
    input  wire           clk,
    input  wire           rst,
    input  wire           restart,
    // layer: depthwise rows, or neurons; a byte arrives on the lane given by its position in the row
    input  wire           dw,
    // bytes of the post lanes, their entry, position of the first, end of the group or row; first bytes
    // of it
    input  wire           in_valid,
    input  wire [L*8-1:0] in_byte,
    input  wire [ EW-1:0] in_entry,
    input  wire [    5:0] in_pos,
    input  wire           in_end,
    output wire           in_first,
    // the group or row being read: last pair that has arrived, complete; release
    output reg  [    4:0] reached,
    output wire           complete,
    input  wire           release_one,
    // pair of an entry to read; the next pair is output as bytes 2 and 3
    input  wire           rd_en,
    input  wire [ EW-1:0] rd_entry,
    input  wire [    4:0] rd_pair,
    output reg  [   31:0] rd_data
);

  localparam integer BANKS = L / 2;
  localparam integer BB = $clog2(BANKS);
  localparam integer ZS = BB - ZW;  // position of the channel's bits in a bank index
  localparam integer HW = 5 - BB;  // bits of a pair index beside the bank's
  localparam integer WORDS = DEPTH << (ZW + HW);

  // ---- arrivals
  localparam integer WIDE_I = L / 2 - 1, THIN_I = N_Y / 2 - 1;  // pairs that enter together, less one
  reg begun;
  reg [EW:0] whole;  // groups or rows complete and not released
  assign in_first = in_valid && !begun;
  assign complete = whole != {(EW + 1) {1'b0}};
  always @(posedge clk) begin
    if (rst || restart) begin
      begun <= 1'b0;
      whole <= {(EW + 1) {1'b0}};
    end else begin
      begun <= in_valid ? !in_end : begun;
      whole <= whole + {{EW{1'b0}}, in_valid && in_end} - {{EW{1'b0}}, release_one};
    end
  end
  always @(posedge clk) begin
    if (in_valid) reached <= in_pos[5:1] | (dw ? WIDE_I[4:0] : THIN_I[4:0]);
  end

  // ---- write: bank b stores input pair b xor these bits
  wire [BB-1:0] in_low = in_pos[BB:1];
  wire [HW-1:0] in_high = in_pos[5:BB+1];
  wire [BB-1:0] in_row = {{(BB - ZW) {1'b0}}, in_entry[ZW-1:0]} << ZS;
  wire [BB-1:0] in_xor = dw ? in_row : in_low;

  // ---- read: two pairs; the second one may be in the next row of its bank
  wire [BB-1:0] rd_low = rd_pair[BB-1:0];
  wire [HW-1:0] rd_high = rd_pair[4:BB];
  wire [HW-1:0] rd_next = rd_high + {{(HW - 1) {1'b0}}, 1'b1};
  wire [BB-1:0] rd_row = {{(BB - ZW) {1'b0}}, rd_entry[ZW-1:0]} << ZS;
  wire [BB-1:0] rd_second = rd_low + {{(BB - 1) {1'b0}}, 1'b1};
  wire wraps = rd_second == {BB{1'b0}};
  wire [BB-1:0] first = rd_low ^ rd_row;
  wire [BB-1:0] second = rd_second ^ rd_row;

  wire [16*BANKS-1:0] banks;
  genvar b;
  generate
    for (b = 0; b < BANKS; b = b + 1) begin : g_bank
      localparam [BB-1:0] B = b;
      wire [BB-1:0] from = B ^ in_xor;
      wire [ZW-1:0] channel = dw ? in_entry[ZW-1:0] : from[BB-1:ZS];
      wire next = wraps && rd_row == B;
      ram_1r1w_async #(
          .WIDTH(16),
          .DEPTH(WORDS)
      ) u_ram (
          .clk  (clk),
          .we   (in_valid),
          .waddr({in_entry[EW-1:ZW], in_high, channel}),
          .wdata(in_byte[16*from+:16]),
          .raddr({rd_entry[EW-1:ZW], next ? rd_next : rd_high, rd_entry[ZW-1:0]}),
          .rdata(banks[16*b+:16])
      );
    end
  endgenerate
  always @(posedge clk) begin
    if (rd_en) rd_data <= {banks[16*second+:16], banks[16*first+:16]};
  end

  wire unused = &{1'b0, in_pos[0]};

  generate
    if (L != 4 && L != 8) begin : g_illegal_array
      ILLEGAL_ARRAY_4_OR_8_LANES u_illegal ();
    end
  endgenerate

endmodule

`resetall
