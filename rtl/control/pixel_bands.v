// SPDX-License-Identifier: Apache-2.0
//
// pixel_bands: requests a map band by band, each band with all channels, so that its layer can begin early.
//
// How it works: pixels are in storage in c, y, x order. A band is a few lines; there is a request for the
// lines of a band of each channel: all channels of the first band, then those of the second and so on. The
// bytes of a channel, lines times width, are added up bit by bit while the first request, of a whole band,
// is made; the address of the second one needs them. Registers detect the last channel and the last, shorter
// band, so there is at most one request in two cycles. Addresses have a bit more than those of the bus: a
// part of the map beyond the last address is marked as such.
// Handshake: start is a pulse; shape is stable until the last request. Requests are valid/ready.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module pixel_bands (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // start; the map, lines of a band, its channels less one; first byte in the storage, owner of the
    // transfers
    input  wire                   start,
    input  wire [`SHAPE_BITS-1:0] shape,
    input  wire [            3:0] band,
    input  wire [           13:0] chans_m1,
    input  wire [           31:0] adr,
    input  wire [`OWNER_BITS-1:0] owner,
    // pixel channel of the DMAC
    output reg                    req_valid,
    input  wire                   req_ready,
    output wire [  `REQ_BITS-1:0] req
);

  wire [10:0] n_w = shape[`SHAPE_W];
  wire [9:0] n_h = shape[`SHAPE_H];
  // bytes of a band of a channel: 1024 at most
  wire [10:0] size = (n_w & {11{band[0]}}) | (n_w << 1 & {11{band[1]}}) | (n_w << 2 & {11{band[2]}}) |
      (n_w << 3 & {11{band[3]}});

  // ---- bytes of a channel: 512 lines of 960 at most
  reg [9:0] left;
  reg [19:0] plane, part;
  reg  adding;
  wire adds_on = adding && left != 10'd0;
  always @(posedge clk) begin
    if (rst) adding <= 1'b0;
    else adding <= start || adds_on;
  end
  always @(posedge clk) begin
    if (start) begin
      left  <= n_h;
      plane <= 20'd0;
      part  <= {9'd0, n_w};
    end else if (adding) begin
      left  <= left >> 1;
      plane <= left[0] ? plane + part : plane;
      part  <= part << 1;
    end
  end

  // ---- requests: address of the next one, of its band in channel 0; bytes of a channel from its band on
  reg asking;  // requests remain
  reg first, sent;  // it is the first; ... and has been made
  reg        ask_end;  // the next one is of the last channel
  reg        ask_last;  // ... of the last band
  reg [13:0] ask_c;
  reg [19:0] rest;
  reg [10:0] bytes;
  reg [32:0] ask_adr, ask_band;
  wire asked = req_valid && req_ready;
  wire advance = first ? sent && !adding : asked;
  wire band_end = advance && ask_end;
  wire [32:0] ask_next = (ask_end ? ask_band : ask_adr) + {13'd0, ask_end ? {9'd0, size} : plane};
  wire [20:0] beneath = {1'b0, rest} - {10'd0, size};  // bytes below the band; negative: it is shorter
  assign req = {ask_adr[32], owner, 13'd0, bytes, ask_adr[31:0]};
  always @(posedge clk) begin
    if (rst) begin
      asking    <= 1'b0;
      req_valid <= 1'b0;
    end else begin
      asking    <= start || (asking && !(band_end && ask_last));
      req_valid <= asking && !asked && !advance && !(first && sent);
    end
  end
  always @(posedge clk) begin
    first    <= start || (first && !advance);
    sent     <= !start && first && (sent || asked);
    ask_end  <= ask_c == chans_m1;
    ask_last <= !adding && (beneath[20] || beneath[19:0] == 20'd0);
    bytes    <= (!adding && beneath[20]) ? rest[10:0] : size;
    ask_c    <= (start || band_end) ? 14'd0 : advance ? ask_c + 14'd1 : ask_c;
    ask_adr  <= start ? {1'b0, adr} : advance ? ask_next : ask_adr;
    ask_band <= start ? {1'b0, adr} : band_end ? ask_next : ask_band;
    rest     <= adding ? plane : band_end ? beneath[19:0] : rest;
  end

  wire unused = &{1'b0, shape};

endmodule

`resetall
