// SPDX-License-Identifier: Apache-2.0
//
// ahb_master: AMBA 2.0 AHB master, the port of the DMAC to the storage.
//
// How it works: ahb_beats splits the burst commands into beats, and a beat passes an address stage (on
// the bus as HADDR..HTRANS) and a data stage. Both advance at edges with HREADY high; a new address may
// be driven when HGRANT was high at such an edge. Commands follow each other without an idle cycle. The
// burst type is chosen from the remaining beats whenever a burst (re)starts: 16, 8, 4, 1 -> INCR16,
// INCR8, INCR4, SINGLE, other -> INCR; a burst that lost the grant thus resumes where it stopped. The
// DMAC never issues a command that crosses 1 KiB, so no burst does.
// RETRY, SPLIT: HTRANS becomes IDLE for the second cycle; ahb_beats returns to the beat of the data
// stage, and wd_back rewinds the write FIFO by the words of both stages.
// ERROR: terminates its command. Beats are in order, so the rest of the failed command directly follows
// the failed beat: the beat in the address stage is dropped, and the others are skipped, one per cycle,
// with their write data. Other commands are unaffected; if the address stage held the first beat of the
// next command, HTRANS becomes IDLE for the second cycle and the beat is issued again. mst_err_valid
// pulses with address and tag of the failed beat. A one-cycle ERROR, with HREADY high, counts too.
// Abandon: all pending commands and beats are dropped. Beats on the bus become orphans: they stay there,
// as AHB requires, but their end is not reported; the master counts as idle at once, and new commands
// wait until no orphan is in the address stage. This may cut a burst.
// Handshake: the DMAC waits for cmd_ready. The write FIFO must hold all data of a write command before
// the command is issued; wd_pop pops one word, wd_free reports that the oldest popped word cannot be
// rewound any more. rsp_* is registered: one rsp_valid per finished beat, in order, without
// back-pressure. wait_* are combinationally valid.

`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module ahb_master #(
    // data width of the bus: 32, 64 or 128
    parameter AHB_W = 32,
    // derived, not to be set; width of the tag that travels with a command and returns with its beats
    parameter OW = $clog2(AHB_W / 8),
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
    // burst commands: 1..16 beats of 2**size bytes; wpop: each beat pops a word of write data
    input  wire             cmd_valid,
    output wire             cmd_ready,
    input  wire             cmd_write,
    input  wire [     31:0] cmd_addr,
    input  wire [      4:0] cmd_beats,
    input  wire [      2:0] cmd_size,
    input  wire             cmd_wpop,
    input  wire [TAG_W-1:0] cmd_tag,
    // write data, first-word fall-through: pops a word, rewinds by 0 to 2 words, retires the oldest word
    input  wire [AHB_W-1:0] wd_data,
    output wire             wd_pop,
    output wire [      1:0] wd_back,
    output wire             wd_free,
    // finished beats; first and last beat of a command are marked
    output reg              rsp_valid,
    output reg              rsp_write,
    output reg              rsp_first,
    output reg              rsp_last,
    output reg  [TAG_W-1:0] rsp_tag,
    output reg  [AHB_W-1:0] rsp_data,
    // bus error (one-cycle pulse): failed beat
    output reg              mst_err_valid,
    output reg  [     31:0] mst_err_addr,
    output reg  [TAG_W-1:0] mst_err_tag,
    // drops everything (no commands meanwhile); nothing queued or on the bus except orphans
    input  wire             mst_abandon,
    output wire             mst_idle,
    // reads outstanding, including those that end in this cycle
    output wire             mst_reading,
    // reason for the stall of the oldest beat (as WAITING_WHY), and its address and tag
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

  // -------------------------------------------------------------------------------------------
  // the next beat, and the oldest command. rem counts the remaining beats of the command, this one
  // included; low is the address within its 1 KiB block
  // -------------------------------------------------------------------------------------------
  wire             gen_valid;
  wire             gen_oldest;
  wire             gen_first;
  wire [      4:0] gen_rem;
  wire             gen_write;
  wire [     31:0] gen_addr;
  wire [      2:0] gen_size;
  wire             gen_pop;
  wire             gen_step;
  wire [     21:0] old_block;
  wire [TAG_W-1:0] old_tag;
  wire old_leaves, reading, reuse, ap_back;

  // address and data stage, each with its write data; a stage holds a beat or an orphan
  reg             ap_valid;
  reg             ap_orphan;
  reg             ap_first;
  reg             ap_pop;
  reg             ap_write;
  reg [      2:0] ap_size;
  reg [     31:0] ap_addr;
  reg [      4:0] ap_rem;
  reg [AHB_W-1:0] ap_wdata;
  reg [      1:0] htrans;
  reg [      2:0] hburst;
  reg             dp_valid;
  reg             dp_orphan;
  reg             dp_first;
  reg             dp_pop;
  reg             dp_write;
  reg [      9:0] dp_low;
  reg [      4:0] dp_rem;
  reg [AHB_W-1:0] dp_wdata;
  // the remaining beats of the failed command are being skipped
  reg             dropping;
  // another beat of the same burst follows the beat in the address stage
  reg             more;
  // the next beat was on the bus before
  reg             again;

  ahb_beats #(
      .TAG_W(TAG_W)
  ) u_beats (
      .clk(clk),
      .rst(rst),
      .clear(mst_abandon),
      .cmd_valid(cmd_valid),
      .cmd_ready(cmd_ready),
      .cmd_write(cmd_write),
      .cmd_addr(cmd_addr),
      .cmd_beats(cmd_beats),
      .cmd_size(cmd_size),
      .cmd_wpop(cmd_wpop),
      .cmd_tag(cmd_tag),
      .beat_valid(gen_valid),
      .beat_oldest(gen_oldest),
      .beat_first(gen_first),
      .beat_rem(gen_rem),
      .beat_write(gen_write),
      .beat_addr(gen_addr),
      .beat_size(gen_size),
      .beat_pop(gen_pop),
      .step(gen_step),
      .second(ap_back),
      .back(reuse),
      .back_first(dp_first),
      .back_rem(dp_rem),
      .back_low(dp_low),
      .old_block(old_block),
      .old_tag(old_tag),
      .old_leaves(old_leaves),
      .reading(reading)
  );

  // a beat is ready for the bus
  wire       src_valid = gen_valid && !dropping;

  reg  [2:0] src_burst;
  always @* begin
    case (gen_rem)
      5'd1:    src_burst = BURST_SINGLE;
      5'd4:    src_burst = BURST_INCR4;
      5'd8:    src_burst = BURST_INCR8;
      5'd16:   src_burst = BURST_INCR16;
      default: src_burst = BURST_INCR;
    endcase
  end

  // first cycle of a two-cycle response; a response other than OKAY without it is treated as ERROR
  wire two_cycle = !m_ahb_hready && m_ahb_hresp != RESP_OKAY;
  assign reuse = dp_valid && !m_ahb_hready && m_ahb_hresp[1];
  wire fail = dp_valid && ((!m_ahb_hready && m_ahb_hresp == RESP_ERROR) ||
                               (m_ahb_hready && m_ahb_hresp != RESP_OKAY));
  wire done = dp_valid && m_ahb_hready && m_ahb_hresp == RESP_OKAY;

  // beats are in order: the rest of the failed command directly follows the failed beat
  wire dp_ends = dp_rem == 5'd1;
  wire ap_fails = fail && !dp_ends;
  wire gen_fails = fail && gen_oldest;
  // the first beat of the next command is withdrawn, and issued again later
  assign ap_back = fail && dp_ends && ap_valid && !m_ahb_hready;

  wire issue = m_ahb_hready && m_ahb_hgrant && src_valid && !gen_fails && !(ap_valid && ap_fails) &&
      !ap_orphan && !mst_abandon;
  assign gen_step = issue || dropping;
  wire gen_ends = gen_rem == 5'd1;
  // the oldest command retires
  assign old_leaves = (done && dp_ends) || (fail && !gen_fails) || (dropping && gen_ends);

  assign wd_pop = gen_step && gen_pop;
  assign wd_back = {1'b0, (reuse && dp_pop)} + {1'b0, (reuse || ap_back) && ap_valid && ap_pop};
  assign wd_free = done && dp_pop;

  // -------------------------------------------------------------------------------------------
  // outputs to the bus
  // -------------------------------------------------------------------------------------------
  assign m_ahb_hbusreq = src_valid || ((ap_valid || ap_orphan) && hburst == BURST_INCR);
  assign m_ahb_hlock = 1'b0;
  assign m_ahb_haddr = ap_addr;
  assign m_ahb_htrans = htrans;
  assign m_ahb_hwrite = ap_write;
  assign m_ahb_hsize = ap_size;
  assign m_ahb_hburst = hburst;
  assign m_ahb_hprot = 4'b0011;
  assign m_ahb_hwdata = dp_wdata;
  assign mst_idle = !gen_valid && !ap_valid && !dp_valid && !rsp_valid;

  always @(posedge clk) begin
    if (rst || mst_abandon) begin
      dropping <= 1'b0;
      again <= 1'b0;
    end else begin
      dropping <= gen_fails || (dropping && !gen_ends);
      again <= reuse || ap_back || (again && !issue);
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      ap_valid <= 1'b0;
      ap_orphan <= 1'b0;
      htrans <= TRANS_IDLE;
      hburst <= BURST_SINGLE;
      more <= 1'b0;
      dp_valid <= 1'b0;
      dp_orphan <= 1'b0;
    end else if (m_ahb_hready) begin
      dp_valid  <= ap_valid && !ap_fails && !mst_abandon;
      dp_orphan <= ap_orphan || (ap_valid && (ap_fails || mst_abandon));
      ap_valid  <= issue;
      ap_orphan <= 1'b0;
      htrans    <= !issue ? TRANS_IDLE : more ? TRANS_SEQ : TRANS_NONSEQ;
      hburst    <= (issue && !more) ? src_burst : hburst;
      more      <= issue && !gen_ends;
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

  always @(posedge clk) begin
    if (rst) begin
      ap_first <= 1'b0;
      ap_pop   <= 1'b0;
      ap_write <= 1'b0;
      ap_size  <= 3'd0;
      ap_addr  <= 32'd0;
      ap_rem   <= 5'd0;
      ap_wdata <= {AHB_W{1'b0}};
    end else if (issue) begin
      ap_first <= gen_first;
      ap_pop   <= gen_pop;
      ap_write <= gen_write;
      ap_size  <= gen_size;
      ap_addr  <= gen_addr;
      ap_rem   <= gen_rem;
      ap_wdata <= wd_data;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      dp_first <= 1'b0;
      dp_pop   <= 1'b0;
      dp_write <= 1'b0;
      dp_low   <= 10'd0;
      dp_rem   <= 5'd0;
      dp_wdata <= {AHB_W{1'b0}};
    end else if (m_ahb_hready && (ap_valid || ap_orphan)) begin
      dp_first <= ap_first;
      dp_pop   <= ap_pop;
      dp_write <= ap_write;
      dp_low   <= ap_addr[9:0];
      dp_rem   <= ap_rem;
      dp_wdata <= ap_wdata;
    end
  end

  // -------------------------------------------------------------------------------------------
  // responses
  // -------------------------------------------------------------------------------------------
  // the failed beat was a read
  reg mst_err_read;
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
        rsp_write <= dp_write;
        rsp_first <= dp_first;
        rsp_last  <= dp_ends;
        rsp_tag   <= old_tag;
        rsp_data  <= m_ahb_hrdata;
      end
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      mst_err_valid <= 1'b0;
      mst_err_read  <= 1'b0;
      mst_err_addr  <= 32'd0;
      mst_err_tag   <= {TAG_W{1'b0}};
    end else begin
      mst_err_valid <= fail && !mst_abandon;
      mst_err_read  <= fail && !dp_write;
      if (fail) begin
        mst_err_addr <= {old_block, dp_low};
        mst_err_tag  <= old_tag;
      end
    end
  end

  assign mst_reading = reading || (rsp_valid && !rsp_write) || mst_err_read;

  // -------------------------------------------------------------------------------------------
  // the oldest beat, and the reason for its stall
  // -------------------------------------------------------------------------------------------
  wire on_bus = dp_valid || ap_valid;

  assign wait_addr = {old_block, dp_valid ? dp_low : ap_valid ? ap_addr[9:0] : gen_addr[9:0]};
  assign wait_tag  = old_tag;

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
      wait_why = again ? WAIT_REPLAY : WAIT_GRANT;
    end
  end

`ifdef FORMAL_ahb_master
  `include "ahb_master_props.vh"
`endif

endmodule

`resetall
