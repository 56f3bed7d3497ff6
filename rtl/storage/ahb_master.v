// SPDX-License-Identifier: Apache-2.0
//
// ahb_master: AMBA 2.0 AHB master, the port of the DMAC to the storage.
//
// How it works: a queue of burst commands feeds a beat generator; a beat goes through an address
// stage (on the bus as HADDR..HTRANS) and a data stage. Everything moves at the edges with
// HREADY high; a new address may be presented when HGRANT was high at such an edge. Commands
// follow each other without an idle cycle. The burst type is chosen from the beats that are left
// whenever a burst (re)starts: 16, 8, 4, 1 -> INCR16, INCR8, INCR4, SINGLE, other -> INCR; so a
// burst that lost the grant is rebuilt from where it stopped. A command never crosses 1 KB (the
// DMAC sees to it), so no burst does.
// RETRY, SPLIT: the address stage becomes IDLE for the second cycle; the beats of data and
// address stage move to two replay registers and are issued again before anything newer.
// ERROR: everything that waits is dropped, mst_err_valid pulses once with the address of the beat,
// and the master stays halted (accepts no command) until `mst_clear`.
// Handshake: cmd_ready depends on registers alone. The data of a write command must be complete
// in the write FIFO before the command is given; wd_pop takes one word. rsp_* is registered: one
// rsp_valid per finished beat, in order, and there is no back-pressure.

`resetall
`timescale 1ns / 1ps
`default_nettype none

module ahb_master #(
    // data width of the bus: 32, 64 or 128
    parameter AHB_W = 32,
    // width of the tag that travels with a command and comes back with its beats (as dmac makes it)
    parameter TAG_W = 6 + 2 * $clog2(AHB_W / 8)
) (
    // clock, synchronous reset
    input  wire             clk,
    input  wire             rst,
    // AHB master port
    output wire             m_ahb_hbusreq,
    output wire             m_ahb_hlock,
    input  wire             m_ahb_hgrant,
    output wire [     31:0] m_ahb_haddr,
    output wire [      1:0] m_ahb_htrans,
    output wire             m_ahb_hwrite,
    output wire [      2:0] m_ahb_hsize,
    output wire [      2:0] m_ahb_hburst,
    output wire [      3:0] m_ahb_hprot,
    output wire [AHB_W-1:0] m_ahb_hwdata,
    input  wire             m_ahb_hready,
    input  wire [      1:0] m_ahb_hresp,
    input  wire [AHB_W-1:0] m_ahb_hrdata,
    // burst commands: 1..16 beats of 2**size bytes; wpop: each beat takes a word of write data
    input  wire             cmd_valid,
    output wire             cmd_ready,
    input  wire             cmd_write,
    input  wire [     31:0] cmd_addr,
    input  wire [      4:0] cmd_beats,
    input  wire [      2:0] cmd_size,
    input  wire             cmd_wpop,
    input  wire [TAG_W-1:0] cmd_tag,
    // write data, first-word fall-through
    input  wire [AHB_W-1:0] wd_data,
    output wire             wd_pop,
    // finished beats: first and last beat of their command are marked
    output reg              rsp_valid,
    output reg              rsp_write,
    output reg              rsp_first,
    output reg              rsp_last,
    output reg  [TAG_W-1:0] rsp_tag,
    output reg  [AHB_W-1:0] rsp_data,
    // bus error (one-cycle pulse), leave the halted state, nothing queued or on the bus
    output reg              mst_err_valid,
    output reg  [     31:0] mst_err_addr,
    output reg  [TAG_W-1:0] mst_err_tag,
    input  wire             mst_clear,
    output wire             mst_idle
);

  localparam [1:0] TRANS_IDLE = 2'b00;
  localparam [1:0] TRANS_NONSEQ = 2'b10;
  localparam [1:0] TRANS_SEQ = 2'b11;
  localparam [2:0] BURST_SINGLE = 3'b000;
  localparam [2:0] BURST_INCR = 3'b001;
  localparam [2:0] BURST_INCR4 = 3'b011;
  localparam [2:0] BURST_INCR8 = 3'b101;
  localparam [2:0] BURST_INCR16 = 3'b111;
  localparam [1:0] RESP_OKAY = 2'b00;
  localparam [1:0] RESP_ERROR = 2'b01;

  generate
    if (AHB_W != 32 && AHB_W != 64 && AHB_W != 128) begin : g_check
      ahb_master_needs_ahb_w_32_64_or_128 u_illegal_parameter ();
    end
  endgenerate

  // -------------------------------------------------------------------------------------------
  // command queue
  // -------------------------------------------------------------------------------------------
  localparam CMD_W = TAG_W + 1 + 3 + 5 + 32 + 1;

  reg              halted;
  wire             q_ready;
  wire             q_valid;
  wire             q_pop;
  wire [CMD_W-1:0] q_data;
  wire [      1:0] q_count_unused;
  wire             fail;
  wire             q_write;
  wire [     31:0] q_addr;
  wire [      4:0] q_beats;
  wire [      2:0] q_size;
  wire             q_wpop;
  wire [TAG_W-1:0] q_tag;

  assign cmd_ready = q_ready && !halted;
  assign {q_tag, q_wpop, q_size, q_beats, q_addr, q_write} = q_data;

  fifo_sync #(
      .WIDTH(CMD_W),
      .DEPTH(2)
  ) u_queue (
      .clk      (clk),
      .rst      (rst),
      .flush    (fail || halted),
      .in_valid (cmd_valid && !halted),
      .in_ready (q_ready),
      .in_data  ({cmd_tag, cmd_wpop, cmd_size, cmd_beats, cmd_addr, cmd_write}),
      .out_valid(q_valid),
      .out_ready(q_pop),
      .out_data (q_data),
      .count    (q_count_unused)
  );

  // -------------------------------------------------------------------------------------------
  // beats: {tag, first, rem, size, addr, write}; rem counts this beat and those after it
  // -------------------------------------------------------------------------------------------
  localparam BEAT_W = TAG_W + 1 + 5 + 3 + 32 + 1;
  localparam B_WRITE = 0;
  localparam B_ADDR = 1;
  localparam B_SIZE = 33;
  localparam B_REM = 36;
  localparam B_FIRST = 41;
  localparam B_TAG = 42;

  // generator: position inside the command at the head of the queue
  reg               started;
  reg  [      31:0] rest_addr;
  reg  [       4:0] rest_beats;
  wire [      31:0] gen_addr = started ? rest_addr : q_addr;
  wire [       4:0] gen_rem = started ? rest_beats : q_beats;
  wire [BEAT_W-1:0] gen_beat = {q_tag, !started, gen_rem, q_size, gen_addr, q_write};

  // stages and replay registers, each with its write data
  reg               ap_valid;
  reg  [BEAT_W-1:0] ap;
  reg  [ AHB_W-1:0] ap_wdata;
  reg  [       1:0] htrans;
  reg  [       2:0] hburst;
  reg               dp_valid;
  reg  [BEAT_W-1:0] dp;
  reg  [ AHB_W-1:0] dp_wdata;
  reg               rp0_valid;
  reg  [BEAT_W-1:0] rp0;
  reg  [ AHB_W-1:0] rp0_wdata;
  reg               rp1_valid;
  reg  [BEAT_W-1:0] rp1;
  reg  [ AHB_W-1:0] rp1_wdata;
  // the beat in the address stage is followed by one of the same burst
  reg               more;

  // oldest beat that is not on the bus
  wire              src_valid = (rp0_valid || rp1_valid || q_valid) && !halted;
  wire              src_gen = !rp0_valid && !rp1_valid;
  wire [BEAT_W-1:0] src_beat = rp0_valid ? rp0 : (rp1_valid ? rp1 : gen_beat);
  wire [ AHB_W-1:0] src_wdata = rp0_valid ? rp0_wdata : (rp1_valid ? rp1_wdata : wd_data);
  wire [       4:0] src_rem = src_beat[B_REM+:5];

  reg  [       2:0] src_burst;
  always @* begin
    case (src_rem)
      5'd1:    src_burst = BURST_SINGLE;
      5'd4:    src_burst = BURST_INCR4;
      5'd8:    src_burst = BURST_INCR8;
      5'd16:   src_burst = BURST_INCR16;
      default: src_burst = BURST_INCR;
    endcase
  end

  // first cycle of a two-cycle answer; an answer other than OKAY without it is taken as ERROR
  wire reuse = dp_valid && !m_ahb_hready && m_ahb_hresp[1];
  assign fail = dp_valid && ((!m_ahb_hready && m_ahb_hresp == RESP_ERROR) ||
                                 (m_ahb_hready && m_ahb_hresp != RESP_OKAY));
  wire done = dp_valid && m_ahb_hready && m_ahb_hresp == RESP_OKAY;
  wire issue = m_ahb_hready && m_ahb_hgrant && src_valid && !fail;
  wire issue_gen = issue && src_gen;

  assign q_pop = issue_gen && gen_rem == 5'd1;
  assign wd_pop = issue_gen && q_write && q_wpop;

  // -------------------------------------------------------------------------------------------
  // outputs to the bus
  // -------------------------------------------------------------------------------------------
  assign m_ahb_hbusreq = src_valid || (ap_valid && hburst == BURST_INCR);
  assign m_ahb_hlock = 1'b0;
  assign m_ahb_haddr = ap[B_ADDR+:32];
  assign m_ahb_htrans = htrans;
  assign m_ahb_hwrite = ap[B_WRITE];
  assign m_ahb_hsize = ap[B_SIZE+:3];
  assign m_ahb_hburst = hburst;
  assign m_ahb_hprot = 4'b0011;
  assign m_ahb_hwdata = dp_wdata;
  assign mst_idle = !q_valid && !ap_valid && !dp_valid && !rp0_valid && !rp1_valid && !rsp_valid;

  always @(posedge clk) begin
    if (rst) begin
      started <= 1'b0;
      rest_addr <= 32'd0;
      rest_beats <= 5'd0;
    end else if (fail || halted) begin
      started <= 1'b0;
    end else if (issue_gen) begin
      started <= (gen_rem != 5'd1);
      rest_addr <= gen_addr + (32'd1 << q_size);
      rest_beats <= gen_rem - 5'd1;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      ap_valid <= 1'b0;
      ap <= {BEAT_W{1'b0}};
      ap_wdata <= {AHB_W{1'b0}};
      htrans <= TRANS_IDLE;
      hburst <= BURST_SINGLE;
      more <= 1'b0;
      dp_valid <= 1'b0;
      dp <= {BEAT_W{1'b0}};
      dp_wdata <= {AHB_W{1'b0}};
    end else if (m_ahb_hready) begin
      dp_valid <= ap_valid && !fail;
      if (ap_valid) begin
        dp <= ap;
        dp_wdata <= ap_wdata;
      end
      if (issue) begin
        ap_valid <= 1'b1;
        ap <= src_beat;
        ap_wdata <= src_wdata;
        htrans <= more ? TRANS_SEQ : TRANS_NONSEQ;
        hburst <= more ? hburst : src_burst;
        more <= (src_rem != 5'd1);
      end else begin
        ap_valid <= 1'b0;
        htrans <= TRANS_IDLE;
        more <= 1'b0;
      end
    end else if (reuse || fail) begin
      ap_valid <= 1'b0;
      htrans <= TRANS_IDLE;
      more <= 1'b0;
      dp_valid <= 1'b0;
    end
  end

  // when the beat in the address stage is a replayed one, the data stage is empty: so the replay
  // registers are never needed twice
  always @(posedge clk) begin
    if (rst) begin
      rp0_valid <= 1'b0;
      rp0 <= {BEAT_W{1'b0}};
      rp0_wdata <= {AHB_W{1'b0}};
      rp1_valid <= 1'b0;
      rp1 <= {BEAT_W{1'b0}};
      rp1_wdata <= {AHB_W{1'b0}};
    end else if (fail || halted) begin
      rp0_valid <= 1'b0;
      rp1_valid <= 1'b0;
    end else if (reuse) begin
      rp0_valid <= 1'b1;
      rp0 <= dp;
      rp0_wdata <= dp_wdata;
      if (ap_valid) begin
        rp1_valid <= 1'b1;
        rp1 <= ap;
        rp1_wdata <= ap_wdata;
      end
    end else if (issue) begin
      rp0_valid <= 1'b0;
      rp1_valid <= rp0_valid && rp1_valid;
    end
  end

  // -------------------------------------------------------------------------------------------
  // answers
  // -------------------------------------------------------------------------------------------
  always @(posedge clk) begin
    if (rst) begin
      rsp_valid <= 1'b0;
      rsp_write <= 1'b0;
      rsp_first <= 1'b0;
      rsp_last  <= 1'b0;
      rsp_tag   <= {TAG_W{1'b0}};
      rsp_data  <= {AHB_W{1'b0}};
    end else begin
      rsp_valid <= done;
      if (done) begin
        rsp_write <= dp[B_WRITE];
        rsp_first <= dp[B_FIRST];
        rsp_last  <= (dp[B_REM+:5] == 5'd1);
        rsp_tag   <= dp[B_TAG+:TAG_W];
        rsp_data  <= m_ahb_hrdata;
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      halted <= 1'b0;
      mst_err_valid <= 1'b0;
      mst_err_addr <= 32'd0;
      mst_err_tag <= {TAG_W{1'b0}};
    end else begin
      mst_err_valid <= fail;
      if (fail) begin
        halted <= 1'b1;
        mst_err_addr <= dp[B_ADDR+:32];
        mst_err_tag <= dp[B_TAG+:TAG_W];
      end else begin
        halted <= halted && !mst_clear;
      end
    end
  end

endmodule

`resetall
