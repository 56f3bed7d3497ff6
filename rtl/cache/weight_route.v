// SPDX-License-Identifier: Apache-2.0
//
// weight_route: routes a request for weights to the bus, or to the reader of kept rows.
//
// How it works: kept weights come from the AI RAM, all others from the storage.
// Handshake: valid/ready, combinational; kept is held until the request is accepted.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module weight_route (
    // request of the controller; its weights are in the AI RAM
    input  wire wanted,
    input  wire kept,
    output wire ready,
    // to the weight channel of the bus
    output wire bus_valid,
    input  wire bus_ready,
    // to the reader of kept rows
    output wire kept_valid,
    input  wire kept_ready
);

  assign ready = kept ? kept_ready : bus_ready;
  assign bus_valid = wanted && !kept;
  assign kept_valid = wanted && kept;

endmodule

`resetall
