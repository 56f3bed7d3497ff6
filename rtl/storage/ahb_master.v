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
// ERROR: ends its command. Every beat carries a running number of its command: beats with the number
// of the failed one are dropped from address stage and replay registers, and the rest of the command
// is taken from the queue, a beat a cycle, with its write data. Everything else goes on; a beat of
// another command that was in the address stage becomes IDLE for the second cycle and is replayed.
// mst_err_valid pulses with address and tag of the failed beat, and with the number of beats that
// will not come, itself included. An ERROR of one cycle, with HREADY high, is taken too.
// Abandon: all that waits is dropped. Beats on the bus become orphans: they stay there as AHB wants
// it, but nobody hears of their end; the master counts as idle at once, and new commands wait until
// no orphan is in the address stage. A burst may be cut by this.
// Handshake: cmd_ready depends on registers alone. The data of a write command must be complete
// in the write FIFO before the command is given; wd_pop takes one word. rsp_* is registered: one
// rsp_valid per finished beat, in order, and there is no back-pressure. wait_* are valid at once.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module ahb_master #(
    // data width of the bus: 32, 64 or 128
    parameter AHB_W = 32,
    // derived, not to be set; width of the tag that travels with a command and comes back with its
    // beats
    parameter OW = $clog2(AHB_W / 8),
    parameter CW = OW + 1,
    parameter TAG_W = `DMA_TAG_BITS
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
    // bus error (one-cycle pulse): failed beat, beats of its command that will not come
    output reg              mst_err_valid,
    output reg  [     31:0] mst_err_addr,
    output reg  [TAG_W-1:0] mst_err_tag,
    output reg  [      4:0] mst_err_beats,
    // drop everything (no commands meanwhile); nothing queued or on the bus but orphans
    input  wire             mst_abandon,
    output wire             mst_idle,
    // why the oldest beat waits (as WAITING_WHY), and which it is
    output reg  [      1:0] wait_why,
    output wire [     31:0] wait_addr,
    output wire [TAG_W-1:0] wait_tag
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
  localparam [1:0] WAIT_NOTHING = 2'd0;
  localparam [1:0] WAIT_GRANT = 2'd1;
  localparam [1:0] WAIT_ANSWER = 2'd2;
  localparam [1:0] WAIT_REPLAY = 2'd3;

  generate
    if (AHB_W != 32 && AHB_W != 64 && AHB_W != 128) begin : g_check
      ahb_master_needs_ahb_w_32_64_or_128 u_illegal_parameter ();
    end
  endgenerate

  // -------------------------------------------------------------------------------------------
  // command queue
  // -------------------------------------------------------------------------------------------
  localparam CMD_W = TAG_W + 1 + 3 + 5 + 32 + 1;

  wire             q_valid;
  wire             q_pop;
  wire [CMD_W-1:0] q_data;
  wire             q_write;
  wire [     31:0] q_addr;
  wire [      4:0] q_beats;
  wire [      2:0] q_size;
  wire             q_wpop;
  wire [TAG_W-1:0] q_tag;
  wire             q_empty_unused;

  assign {q_tag, q_wpop, q_size, q_beats, q_addr, q_write} = q_data;

  fifo_regs #(
      .WIDTH (CMD_W),
      .DEPTH (2),
      .BYPASS(1)
  ) u_queue (
      .clk      (clk),
      .rst      (rst),
      .flush    (mst_abandon),
      .in_valid (cmd_valid),
      .in_ready (cmd_ready),
      .in_data  ({cmd_tag, cmd_wpop, cmd_size, cmd_beats, cmd_addr, cmd_write}),
      .out_valid(q_valid),
      .out_ready(q_pop),
      .out_data (q_data),
      .empty    (q_empty_unused)
  );

  // -------------------------------------------------------------------------------------------
  // beats: {tag, id, first, rem, size, addr, write}; rem counts this beat and those after it, id
  // numbers the commands. Not more than three are in the stages, the replay registers and at the
  // head of the queue at a time, so two bits tell them apart.
  // -------------------------------------------------------------------------------------------
  localparam BEAT_W = TAG_W + 2 + 1 + 5 + 3 + 32 + 1;
  localparam B_WRITE = 0;
  localparam B_ADDR = 1;
  localparam B_SIZE = 33;
  localparam B_REM = 36;
  localparam B_FIRST = 41;
  localparam B_ID = 42;
  localparam B_TAG = 44;

  // generator: position inside the command at the head of the queue
  reg               started;
  reg               dropping;
  reg  [       1:0] gen_id;
  reg  [      31:0] rest_addr;
  reg  [       4:0] rest_beats;
  wire [      31:0] gen_addr = started ? rest_addr : q_addr;
  wire [       4:0] gen_rem = started ? rest_beats : q_beats;
  wire [BEAT_W-1:0] gen_beat = {q_tag, gen_id, !started, gen_rem, q_size, gen_addr, q_write};

  // stages and replay registers, each with its write data; a stage holds a beat or an orphan
  reg               ap_valid;
  reg               ap_orphan;
  reg  [BEAT_W-1:0] ap;
  reg  [ AHB_W-1:0] ap_wdata;
  reg  [       1:0] htrans;
  reg  [       2:0] hburst;
  reg               dp_valid;
  reg               dp_orphan;
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
  wire              src_valid = rp0_valid || rp1_valid || (q_valid && !dropping);
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
  wire two_cycle = !m_ahb_hready && m_ahb_hresp != RESP_OKAY;
  wire reuse = dp_valid && !m_ahb_hready && m_ahb_hresp[1];
  wire fail = dp_valid && ((!m_ahb_hready && m_ahb_hresp == RESP_ERROR) ||
                               (m_ahb_hready && m_ahb_hresp != RESP_OKAY));
  wire done = dp_valid && m_ahb_hready && m_ahb_hresp == RESP_OKAY;

  // what belongs to the failed command
  wire [1:0] dp_id = dp[B_ID+:2];
  wire ap_fails = fail && ap[B_ID+:2] == dp_id;
  wire rp1_fails = fail && rp1[B_ID+:2] == dp_id;
  wire gen_fails = fail && gen_id == dp_id;
  wire src_fails = src_gen ? gen_fails : rp1_fails;

  wire issue = m_ahb_hready && m_ahb_hgrant && src_valid && !src_fails && !(ap_valid && ap_fails) &&
      !ap_orphan && !mst_abandon;
  wire issue_gen = issue && src_gen;
  wire gen_step = issue_gen || dropping;

  assign q_pop = gen_step && gen_rem == 5'd1;
  assign wd_pop = gen_step && q_write && q_wpop;

  // -------------------------------------------------------------------------------------------
  // outputs to the bus
  // -------------------------------------------------------------------------------------------
  assign m_ahb_hbusreq = src_valid || ((ap_valid || ap_orphan) && hburst == BURST_INCR);
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
      dropping <= 1'b0;
      gen_id <= 2'd0;
      rest_addr <= 32'd0;
      rest_beats <= 5'd0;
    end else if (mst_abandon) begin
      started  <= 1'b0;
      dropping <= 1'b0;
    end else begin
      dropping <= gen_fails || (dropping && !q_pop);
      if (gen_step) begin
        started <= (gen_rem != 5'd1);
        gen_id <= gen_id + {1'b0, q_pop};
        rest_addr <= gen_addr + (32'd1 << q_size);
        rest_beats <= gen_rem - 5'd1;
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      ap_valid <= 1'b0;
      ap_orphan <= 1'b0;
      ap <= {BEAT_W{1'b0}};
      ap_wdata <= {AHB_W{1'b0}};
      htrans <= TRANS_IDLE;
      hburst <= BURST_SINGLE;
      more <= 1'b0;
      dp_valid <= 1'b0;
      dp_orphan <= 1'b0;
      dp <= {BEAT_W{1'b0}};
      dp_wdata <= {AHB_W{1'b0}};
    end else if (m_ahb_hready) begin
      dp_valid  <= ap_valid && !ap_fails && !mst_abandon;
      dp_orphan <= ap_orphan || (ap_valid && (ap_fails || mst_abandon));
      if (ap_valid || ap_orphan) begin
        dp <= ap;
        dp_wdata <= ap_wdata;
      end
      ap_orphan <= 1'b0;
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
    end else if ((dp_valid || dp_orphan) && two_cycle) begin
      ap_valid <= 1'b0;
      ap_orphan <= 1'b0;
      htrans <= TRANS_IDLE;
      more <= 1'b0;
      dp_valid <= 1'b0;
      dp_orphan <= 1'b0;
    end else if (mst_abandon) begin
      ap_valid  <= 1'b0;
      ap_orphan <= ap_orphan || ap_valid;
      dp_valid  <= 1'b0;
      dp_orphan <= dp_orphan || dp_valid;
    end
  end

  // A beat of the replay registers goes to the address stage while the data stage is empty; so
  // whenever a beat is in the data stage rp0 is empty, and rp1 too if one is in the address stage.
  always @(posedge clk) begin
    if (rst) begin
      rp0_valid <= 1'b0;
      rp0 <= {BEAT_W{1'b0}};
      rp0_wdata <= {AHB_W{1'b0}};
      rp1_valid <= 1'b0;
      rp1 <= {BEAT_W{1'b0}};
      rp1_wdata <= {AHB_W{1'b0}};
    end else if (mst_abandon) begin
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
    end else if (fail && !m_ahb_hready) begin
      if (ap_valid && !ap_fails) begin
        rp0_valid <= 1'b1;
        rp0 <= ap;
        rp0_wdata <= ap_wdata;
      end
      rp1_valid <= rp1_valid && !rp1_fails;
    end else begin
      rp0_valid <= rp0_valid && !issue;
      rp1_valid <= rp1_valid && !rp1_fails && (rp0_valid || !issue);
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
      rsp_valid <= done && !mst_abandon;
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
      mst_err_valid <= 1'b0;
      mst_err_addr  <= 32'd0;
      mst_err_tag   <= {TAG_W{1'b0}};
      mst_err_beats <= 5'd0;
    end else begin
      mst_err_valid <= fail && !mst_abandon;
      if (fail) begin
        mst_err_addr  <= dp[B_ADDR+:32];
        mst_err_tag   <= dp[B_TAG+:TAG_W];
        mst_err_beats <= dp[B_REM+:5];
      end
    end
  end

  // -------------------------------------------------------------------------------------------
  // what it waits for: the oldest beat, and what keeps it
  // -------------------------------------------------------------------------------------------
  wire on_bus = dp_valid || ap_valid;
  wire [BEAT_W-1:0] old_beat = dp_valid ? dp : (ap_valid ? ap : src_beat);

  assign wait_addr = old_beat[B_ADDR+:32];
  assign wait_tag  = old_beat[B_TAG+:TAG_W];
  wire unused = &{1'b0, old_beat};

  always @* begin
    if (on_bus) begin
      wait_why = m_ahb_hready ? WAIT_NOTHING : WAIT_ANSWER;
    end else if (!src_valid) begin
      wait_why = WAIT_NOTHING;
    end else if (!m_ahb_hready && (ap_orphan || dp_orphan)) begin
      wait_why = WAIT_ANSWER;
    end else if (m_ahb_hready && m_ahb_hgrant) begin
      wait_why = WAIT_NOTHING;
    end else begin
      wait_why = src_gen ? WAIT_GRANT : WAIT_REPLAY;
    end
  end

`ifdef FORMAL_ahb_master
  `include "ahb_master_props.vh"
`endif

endmodule

`resetall
