// SPDX-License-Identifier: Apache-2.0
//
// Storage behind an AXI4 master of one identifier: the memory of the whole-device bench, which the
// bench loads and reads through a back door. Reset does not touch it.
//
// An address is taken in any cycle but those in which the channel stalls (cfg_wait_prob in 256, drawn
// for each channel and cycle). The first word of a read comes cfg_latency + 1 cycles after its
// address, the others follow in consecutive cycles; bursts overlap. A write is performed as soon as
// address and data are there, in whatever order they came, and responded cfg_latency + 1 cycles
// after its last word. Beats in an error window are answered SLVERR, those behind the end DECERR;
// neither reads or writes anything. RDATA is unknown while RVALID is low.
`resetall
`timescale 1ns/1ps
`default_nettype none

module axi_storage #(
  // width of the data bus, and 32-bit words of storage
  parameter AHB_W = 32,
  parameter DEPTH = 65536
) (
  input  wire               clk,
  input  wire               rst,
  input  wire [31:0]        rnd,
  // words that there are
  input  wire [31:0]        words,
  // unfriendliness, as in the head; addresses lo <= a < hi of an error; the channels stall
  input  wire [7:0]         cfg_wait_prob,
  input  wire [4:0]         cfg_latency,
  input  wire [31:0]        cfg_err_lo,
  input  wire [31:0]        cfg_err_hi,
  input  wire               cfg_mute,
  // AXI4 slave
  input  wire [31:0]        awaddr,
  input  wire [7:0]         awlen,
  input  wire [2:0]         awsize,
  input  wire               awvalid,
  output reg                awready,
  input  wire [AHB_W-1:0]   wdata,
  input  wire [AHB_W/8-1:0] wstrb,
  input  wire               wlast,
  input  wire               wvalid,
  output reg                wready,
  output reg  [1:0]         bresp,
  output reg                bvalid,
  input  wire               bready,
  input  wire [31:0]        araddr,
  input  wire [7:0]         arlen,
  input  wire [2:0]         arsize,
  input  wire               arvalid,
  output reg                arready,
  output reg  [AHB_W-1:0]   rdata,
  output reg  [1:0]         rresp,
  output reg                rlast,
  output reg                rvalid,
  input  wire               rready,
  // a beat has been performed: its direction and address
  output reg                beat,
  output reg                beat_write,
  output reg  [31:0]        beat_addr
);
  localparam LANES = AHB_W / 32;
  // addresses, write beats and responses that are held
  localparam Q = 16;

  reg [31:0] mem [0:DEPTH-1];

  reg [31:0] now;
  reg [42:0] ar [0:Q-1], aw [0:Q-1];
  reg [31:0] ar_due [0:Q-1], b_due [0:Q-1];
  reg [1:0]  b_resp [0:Q-1];
  reg [AHB_W+AHB_W/8:0] w [0:Q-1];
  integer ar_in, ar_out, aw_in, aw_out, w_in, w_out, b_in, b_out, lane, i;
  reg [7:0]  r_beat, w_beat;
  reg [1:0]  worst, resp;
  reg [31:0] addr, word;

  function [1:0] answer(input [31:0] a);
    answer = (a[31:2] >= words) ? 2'b11 : (a >= cfg_err_lo && a < cfg_err_hi) ? 2'b10 : 2'b00;
  endfunction

  // the address of a beat; word of the storage on lane 0
  function [31:0] beat_at(input [42:0] burst, input [7:0] number);
    beat_at = number == 8'd0 ? burst[31:0]
            : (burst[31:0] >> burst[42:40] << burst[42:40]) + ({24'd0, number} << burst[42:40]);
  endfunction

  // one draw for each channel
  wire stall_r = rnd[7:0] < cfg_wait_prob, stall_b = rnd[15:8] < cfg_wait_prob;
  wire stall_ar = rnd[23:16] < cfg_wait_prob, stall_aw = rnd[31:24] < cfg_wait_prob;
  wire stall_w = (rnd[7:0] ^ rnd[31:24]) < cfg_wait_prob;

  always @(posedge clk) begin
    if (rst) begin
      {ar_in, ar_out, aw_in, aw_out, w_in, w_out, b_in, b_out} = 256'd0;
      now = 32'd0;
      r_beat = 8'd0;
      w_beat = 8'd0;
      worst = 2'd0;
      {awready, wready, arready, bvalid, rvalid, rlast} <= 6'd0;
      {bresp, rresp} <= 4'd0;
      beat <= 1'b0;
      beat_write <= 1'b0;
      beat_addr <= 32'd0;
    end else begin
      now = now + 32'd1;
      beat <= 1'b0;
      if (arvalid && arready) begin
        ar[ar_in % Q] = {arsize, arlen, araddr};
        ar_due[ar_in % Q] = now + {27'd0, cfg_latency};
        ar_in = ar_in + 1;
      end
      if (awvalid && awready) begin
        aw[aw_in % Q] = {awsize, awlen, awaddr};
        aw_in = aw_in + 1;
      end
      if (wvalid && wready) begin
        w[w_in % Q] = {wlast, wstrb, wdata};
        w_in = w_in + 1;
      end

      // write
      if (aw_in != aw_out && w_in != w_out) begin
        addr = beat_at(aw[aw_out % Q], w_beat);
        resp = answer(addr);
        word = addr >> 2;
        word = word - word % LANES;
        for (i = 0; i < AHB_W / 8; i = i + 1)
          if (resp == 2'b00 && w[w_out % Q][AHB_W + i])
            mem[word + i / 4][8 * (i % 4) +: 8] = w[w_out % Q][8 * i +: 8];
        worst = (resp > worst) ? resp : worst;
        beat <= resp == 2'b00;
        beat_write <= 1'b1;
        beat_addr <= addr;
        if (w[w_out % Q][AHB_W + AHB_W / 8]) begin
          b_resp[b_in % Q] = worst;
          b_due[b_in % Q] = now + {27'd0, cfg_latency};
          b_in = b_in + 1;
          aw_out = aw_out + 1;
          w_beat = 8'd0;
          worst = 2'd0;
        end else begin
          w_beat = w_beat + 8'd1;
        end
        w_out = w_out + 1;
      end

      // response
      if (!bvalid || bready) begin
        bvalid <= 1'b0;
        if (b_in != b_out && b_due[b_out % Q] <= now && !stall_b && !cfg_mute) begin
          bvalid <= 1'b1;
          bresp <= b_resp[b_out % Q];
          b_out = b_out + 1;
        end
      end

      // read
      if (!rvalid || rready) begin
        rvalid <= 1'b0;
        rdata <= {AHB_W{1'bx}};
        if (ar_in != ar_out && ar_due[ar_out % Q] <= now && !stall_r && !cfg_mute) begin
          addr = beat_at(ar[ar_out % Q], r_beat);
          resp = answer(addr);
          word = addr >> 2;
          word = word - word % LANES;
          rvalid <= 1'b1;
          rresp <= resp;
          rlast <= r_beat == ar[ar_out % Q][39:32];
          for (lane = 0; lane < LANES; lane = lane + 1)
            if (resp == 2'b00) rdata[32 * lane +: 32] <= mem[word + lane];
          beat <= resp == 2'b00;
          beat_write <= 1'b0;
          beat_addr <= addr;
          if (r_beat == ar[ar_out % Q][39:32]) begin
            r_beat = 8'd0;
            ar_out = ar_out + 1;
          end else begin
            r_beat = r_beat + 8'd1;
          end
        end
      end

      arready <= !stall_ar && !cfg_mute && ar_in - ar_out < Q;
      awready <= !stall_aw && !cfg_mute && aw_in - aw_out < Q && b_in - b_out < Q;
      wready <= !stall_w && !cfg_mute && w_in - w_out < Q;
    end
  end
endmodule

`resetall
