// SPDX-License-Identifier: Apache-2.0
//
// layer_moves: the maps that a layer loads from the storage and stores there (docs/kpu.md 1.13).
//
// How it works: flags and addresses of words 0 and 8 are stored in registers. The first map of an inference
// comes from AI_PIX_ADR and the last one goes to AI_RES_ADR, so those layers may not name another address,
// and a map goes either to the storage or to the host's FIFO. A map is stored in whole bus words.
// Handshake: word_0 and word_8 strobe with their words; the results are valid after the last word.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"
`include "openkpu_regs.vh"

module layer_moves #(
    // data width of the bus
    parameter AHB_W = 32,
    // derived, not to be set
    parameter OW    = $clog2(AHB_W / 8)
) (
    // clock; words of a layer argument
    input  wire                   clk,
    input  wire                   word_0,
    input  wire                   word_8,
    input  wire [           63:0] w_data,
    // first and last layer of an inference; its map goes to the host
    input  wire                   first,
    input  wire                   last,
    input  wire                   send,
    // maps to move; flags that exclude each other; misaligned address
    output wire [`MOVES_BITS-1:0] moves,
    output wire                   bad_flags,
    output wire                   bad_place
);

  reg load, store;
  reg [31:0] load_adr, store_adr;

  always @(posedge clk) begin
    if (word_0) begin
      {load, store} <= {w_data[`ARG_LOAD_MAP], w_data[`ARG_STORE_MAP]};
      load_adr      <= w_data[`ARG_MAP_LOAD_ADDR];
    end
    if (word_8) store_adr <= w_data[`ARG_MAP_STORE_ADDR];
  end

  assign moves[`MOVES_LOAD] = load;
  assign moves[`MOVES_STORE] = store;
  assign moves[`MOVES_LOAD_ADR] = load_adr;
  assign moves[`MOVES_STORE_ADR] = store_adr;
  assign bad_flags = (load && first) || (store && (last || send));
  assign bad_place = store && store_adr[OW-1:0] != {OW{1'b0}};

  wire unused = &{1'b0, w_data};

endmodule

`resetall
