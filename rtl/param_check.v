// SPDX-License-Identifier: Apache-2.0
//
// param_check: checks device parameters that no lower module limits itself.
//
// How it works: an illegal value instantiates a module that does not exist, whose name lists the legal
// values, and elaboration stops. openkpu_top instantiates param_check first, so that tools that elaborate
// in source order report it first.
// Handshake: none, no logic.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module param_check #(
    // those of openkpu_top: bus width, channels of parameters
    parameter AHB_W        = 32,
    parameter PARAM_CHANS  = 2048,
    // largest dilation; layers decoded ahead of the array
    parameter DILATION     = 1,
    parameter LOOK_AHEAD   = 4,
    // switches: 0 or 1
    parameter KEEP_WEIGHTS = 0,
    parameter WEIGHT_AHEAD = 0,
    parameter FLAT_MAPS    = 0,
    parameter SUM_PLANES   = 0,
    parameter OUT32        = 1,
    parameter GATE         = 1,
    parameter PERF         = 1,
    parameter PRIVILEGED   = 0
);

  generate
    if (AHB_W != 32 && AHB_W != 64 && AHB_W != 128) begin : g_bus
      ILLEGAL_AHB_W_32_64_128 u_illegal ();
    end
    if (PARAM_CHANS != 1024 && PARAM_CHANS != 2048) begin : g_chans
      ILLEGAL_PARAM_CHANS_1024_OR_2048 u_illegal ();
    end
    if (DILATION < 1 || DILATION > 8) begin : g_dilation
      ILLEGAL_DILATION_1_TO_8 u_illegal ();
    end
    if (LOOK_AHEAD != 4 && LOOK_AHEAD != 8 && LOOK_AHEAD != 16) begin : g_ahead
      ILLEGAL_LOOK_AHEAD_4_8_16 u_illegal ();
    end
    if (KEEP_WEIGHTS != 0 && KEEP_WEIGHTS != 1) begin : g_keep
      ILLEGAL_KEEP_WEIGHTS_0_1 u_illegal ();
    end
    if (WEIGHT_AHEAD != 0 && WEIGHT_AHEAD != 1) begin : g_ahead_weights
      ILLEGAL_WEIGHT_AHEAD_0_1 u_illegal ();
    end
    if (FLAT_MAPS != 0 && FLAT_MAPS != 1) begin : g_flat
      ILLEGAL_FLAT_MAPS_0_1 u_illegal ();
    end
    if (SUM_PLANES != 0 && SUM_PLANES != 1) begin : g_planes
      ILLEGAL_SUM_PLANES_0_1 u_illegal ();
    end
    if (OUT32 != 0 && OUT32 != 1) begin : g_out32
      ILLEGAL_OUT32_0_1 u_illegal ();
    end
    if (GATE != 0 && GATE != 1) begin : g_gate
      ILLEGAL_GATE_0_1 u_illegal ();
    end
    if (PERF != 0 && PERF != 1) begin : g_perf
      ILLEGAL_PERF_0_1 u_illegal ();
    end
    if (PRIVILEGED != 0 && PRIVILEGED != 1) begin : g_privileged
      ILLEGAL_PRIVILEGED_0_1 u_illegal ();
    end
  endgenerate

endmodule

`resetall
