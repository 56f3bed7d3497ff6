// SPDX-License-Identifier: Apache-2.0
//
// ahb_to_axi: bridge from the AHB master of the device to an AXI4 master.
//
// How it works: the bridge is the only slave of the AHB master, which therefore always owns the bus.
// Reads are requested from the announcements of burst commands (m_ahb_ahead), up to OUTSTANDING bursts
// before their data are needed, but never before the response to an earlier write; R data are forwarded
// to the data phase of AHB as they arrive, in order.
// A write burst is requested with its first data phase, whose strobes are the lanes given by HSIZE and
// HADDR; its last beat ends with the response. All bursts are INCR, with one identifier.
// Errors: SLVERR and DECERR become the two-cycle ERROR, of the beat of a read or of the last beat of a
// write. The AHB master drops the rest of a failed read; the bridge accepts and discards its data.
// Abandoned commands (AHEAD_DROP): reads that the AHB master will not perform are discarded as above;
// read transfers on the bus end at once, since the master ignores the response; the rest of a write burst
// is written with all strobes clear.
// Handshake: AXI4; no output of the AXI side depends on an input of it in the same cycle. A valid and its
// payload are held until ready, whatever the AHB master does.
`resetall
`timescale 1ns / 1ps
`default_nettype none
`include "openkpu_fields.vh"

module ahb_to_axi #(
    // data width of both buses: 32, 64 or 128
    parameter AHB_W       = 32,
    // outstanding read bursts, 1 to 8
    parameter OUTSTANDING = 4,
    // derived, not to be set
    parameter LANES       = AHB_W / 8,
    parameter OW          = $clog2(LANES)
) (
    // clock, synchronous reset
    input  wire                   clk,
    input  wire                   rst,
    // AHB, from the master of the device, and its announcements
    input  wire [           31:0] s_ahb_haddr,
    input  wire [            1:0] s_ahb_htrans,
    input  wire                   s_ahb_hwrite,
    input  wire [            2:0] s_ahb_hsize,
    input  wire [      AHB_W-1:0] s_ahb_hwdata,
    output wire                   s_ahb_hready,
    output wire [            1:0] s_ahb_hresp,
    output wire [      AHB_W-1:0] s_ahb_hrdata,
    input  wire [`AHEAD_BITS-1:0] s_ahb_ahead,
    // AXI4 write address
    output wire                   m_axi_awvalid,
    input  wire                   m_axi_awready,
    output wire [           31:0] m_axi_awaddr,
    output wire [            7:0] m_axi_awlen,
    output wire [            2:0] m_axi_awsize,
    // AXI4 write data
    output wire                   m_axi_wvalid,
    input  wire                   m_axi_wready,
    output wire [      AHB_W-1:0] m_axi_wdata,
    output wire [      LANES-1:0] m_axi_wstrb,
    output wire                   m_axi_wlast,
    // AXI4 write response
    input  wire                   m_axi_bvalid,
    output wire                   m_axi_bready,
    input  wire [            1:0] m_axi_bresp,
    // AXI4 read address
    output wire                   m_axi_arvalid,
    input  wire                   m_axi_arready,
    output wire [           31:0] m_axi_araddr,
    output wire [            7:0] m_axi_arlen,
    output wire [            2:0] m_axi_arsize,
    // AXI4 read data
    input  wire                   m_axi_rvalid,
    output wire                   m_axi_rready,
    input  wire [      AHB_W-1:0] m_axi_rdata,
    input  wire [            1:0] m_axi_rresp,
    input  wire                   m_axi_rlast
);

  localparam [1:0] TRANS_SEQ = 2'b11;
  localparam [1:0] RESP_OKAY = 2'b00;
  localparam [1:0] RESP_ERROR = 2'b01;
  // maximum of commands in the AHB master: two pending, two on the bus
  localparam HELD = 4;
  localparam [3:0] MOST = OUTSTANDING[3:0];

  generate
    if (OUTSTANDING < 1 || OUTSTANDING > 8) begin : g_check_outstanding
      ILLEGAL_OUTSTANDING_1_TO_8 u_illegal ();
    end
  endgenerate

  wire drop = s_ahb_ahead[`AHEAD_DROP];
  wire told = s_ahb_ahead[`AHEAD_VALID];
  wire tells_write = s_ahb_ahead[`AHEAD_WRITE];

  // -------------------------------------------------------------------------------------------
  // data phase of AHB
  // -------------------------------------------------------------------------------------------
  reg  dp_valid;
  reg  dp_write;
  // the AHB master ignores the response
  reg  dp_dead;
  // second cycle of ERROR
  reg  second;
  // the AHB master ignores the response to the transfer in the address phase
  reg  ap_dead;

  wire dead = dp_dead || (drop && !dp_write);
  wire reading = dp_valid && !dp_write && !dead && !second;
  wire writing = dp_valid && dp_write && !dead && !second;
  wire skip = drop || ap_dead;
  // good and bad end of a data phase whose response the master samples
  wire read_ends, read_fails, write_ends, write_fails;

  assign s_ahb_hready = !dp_valid || dead || second || read_ends || write_ends;
  assign s_ahb_hresp  = (second || read_fails || write_fails) ? RESP_ERROR : RESP_OKAY;
  assign s_ahb_hrdata = m_axi_rdata;

  always @(posedge clk) begin
    if (rst) begin
      dp_valid <= 1'b0;
      dp_write <= 1'b0;
      dp_dead  <= 1'b0;
      second   <= 1'b0;
      ap_dead  <= 1'b0;
    end else begin
      dp_valid <= s_ahb_hready ? s_ahb_htrans[1] : 1'b1;
      dp_write <= s_ahb_hready ? s_ahb_hwrite : dp_write;
      dp_dead  <= s_ahb_hready ? s_ahb_htrans[1] && skip : dead;
      second   <= read_fails || write_fails;
      ap_dead  <= !s_ahb_hready && s_ahb_htrans[1] && skip;
    end
  end

  // -------------------------------------------------------------------------------------------
  // announced commands, in order, pending for their request or for their first beat
  // -------------------------------------------------------------------------------------------
  localparam CMD_W = 1 + 40;

  wire [CMD_W-1:0] heard = {
    tells_write, s_ahb_ahead[`AHEAD_SIZE], s_ahb_ahead[`AHEAD_BEATS], s_ahb_ahead[`AHEAD_ADDR]
  };
  wire waits, none_waits, unused_ready;
  wire [CMD_W-1:0] waiting;
  // a write burst has begun and has no response yet: later reads wait, because they may read the data
  // being written
  reg write_open;
  wire write_over;
  reg cut_open;
  wire begin_write;

  // outstanding read bursts, and the number of the oldest ones that are discarded
  reg [3:0] open;
  reg [3:0] ignored;
  reg ar_valid;
  reg [39:0] ar;
  wire [CMD_W-1:0] next = waits ? waiting : heard;
  wire ar_load = (waits || (told && none_waits)) && !next[CMD_W-1] && !drop && open < MOST &&
      (!ar_valid || m_axi_arready) && (!write_open || write_over) && !cut_open;

  wire [CMD_W-1:0] unused_next;
  fifo_regs #(
      .WIDTH (CMD_W),
      .DEPTH (HELD),
      .BYPASS(1)
  ) u_commands (
      .clk(clk),
      .rst(rst),
      .flush(drop),
      .in_valid(told && !(ar_load && none_waits)),
      .in_ready(unused_ready),
      .in_data(heard),
      .out_valid(waits),
      .out_ready(ar_load || begin_write),
      .out_data(waiting),
      .next_data(unused_next),
      .empty(none_waits)
  );

  assign m_axi_arvalid = ar_valid;
  assign m_axi_araddr  = ar[31:0];
  assign m_axi_arlen   = {3'd0, ar[36:32] - 5'd1};
  assign m_axi_arsize  = ar[39:37];

  always @(posedge clk) begin
    if (rst) begin
      ar_valid <= 1'b0;
      ar <= 40'd0;
    end else begin
      ar_valid <= ar_load || (ar_valid && !m_axi_arready);
      ar <= ar_load ? next[39:0] : ar;
    end
  end

  wire ignoring = ignored != 4'd0;
  wire read_beat = reading && !ignoring && m_axi_rvalid;
  wire r_ends = m_axi_rvalid && m_axi_rready && m_axi_rlast;

  assign m_axi_rready = ignoring || reading;
  assign read_ends = read_beat && !m_axi_rresp[1];
  assign read_fails = read_beat && m_axi_rresp[1];

  always @(posedge clk) begin
    if (rst) begin
      open <= 4'd0;
      ignored <= 4'd0;
    end else begin
      open <= open + {3'd0, ar_load} - {3'd0, r_ends};
      ignored <= drop ? open - {3'd0, r_ends}
               : ignored + {3'd0, read_fails && !m_axi_rlast} - {3'd0, ignoring && r_ends};
    end
  end

  // -------------------------------------------------------------------------------------------
  // writes
  // -------------------------------------------------------------------------------------------
  // the oldest pending command is the one that begins: reads before it have been requested
  wire [4:0] length = waiting[36:32];
  wire start = s_ahb_hready && s_ahb_htrans[1] && !skip;
  assign begin_write = start && s_ahb_hwrite && s_ahb_htrans != TRANS_SEQ;

  reg aw_todo;
  reg [31:0] aw_addr;
  reg [2:0] aw_size;
  reg [4:0] aw_beats;
  // remaining beats of the burst, with the present one; its offset in a bus word; it has been written
  reg [4:0] left;
  reg [OW-1:0] place;
  reg w_done;
  // the rest of a cut burst; cut_open until its response
  reg [4:0] rest;

  wire last = left == 5'd1;
  wire aw_ok = !aw_todo || (m_axi_awvalid && m_axi_awready);
  wire w_ok = w_done || (m_axi_wvalid && m_axi_wready);
  wire response = writing && !cut_open && last && w_done && !aw_todo && m_axi_bvalid;
  wire cut = write_ends && !last && (s_ahb_htrans != TRANS_SEQ || skip);
  wire filling = rest != 5'd0;

  assign write_ends = writing && !cut_open && (last ? response && !m_axi_bresp[1] : aw_ok && w_ok);
  assign write_fails = response && m_axi_bresp[1];
  assign write_over = response || cut;

  assign m_axi_awvalid = aw_todo && !cut_open;
  assign m_axi_awaddr = aw_addr;
  assign m_axi_awlen = {3'd0, aw_beats - 5'd1};
  assign m_axi_awsize = aw_size;

  // lanes of the beat: those whose upper number bits match its offset
  reg [LANES-1:0] lanes;
  integer lane;
  always @* begin
    for (lane = 0; lane < LANES; lane = lane + 1) begin
      lanes[lane] = lane[OW-1:0] >> aw_size == place >> aw_size;
    end
  end

  assign m_axi_wvalid = filling || (writing && !cut_open && !w_done);
  assign m_axi_wdata  = filling ? {AHB_W{1'b0}} : s_ahb_hwdata;
  assign m_axi_wstrb  = filling ? {LANES{1'b0}} : lanes;
  assign m_axi_wlast  = filling ? rest == 5'd1 : last;
  assign m_axi_bready = cut_open ? !filling : (writing && last && w_done && !aw_todo);

  always @(posedge clk) begin
    if (rst) begin
      aw_todo <= 1'b0;
      aw_addr <= 32'd0;
      aw_size <= 3'd0;
      aw_beats <= 5'd0;
      left <= 5'd0;
      place <= {OW{1'b0}};
      w_done <= 1'b0;
    end else begin
      aw_todo <= begin_write || !aw_ok;
      aw_addr <= begin_write ? s_ahb_haddr : aw_addr;
      aw_size <= begin_write ? s_ahb_hsize : aw_size;
      aw_beats <= begin_write ? length : aw_beats;
      left <= begin_write ? length : (start && s_ahb_hwrite) ? left - 5'd1 : left;
      place <= (start && s_ahb_hwrite) ? s_ahb_haddr[OW-1:0] : place;
      w_done <= writing && !s_ahb_hready && !cut_open && w_ok;
    end
  end

  always @(posedge clk) begin
    if (rst) begin
      rest <= 5'd0;
      cut_open <= 1'b0;
      write_open <= 1'b0;
    end else begin
      write_open <= begin_write || (write_open && !write_over);
      rest <= cut ? left - 5'd1 : rest - {4'd0, filling && m_axi_wready};
      cut_open <= cut || (cut_open && !(m_axi_bready && m_axi_bvalid));
    end
  end

  // EXOKAY counts as OKAY; the queue has room for all commands of the AHB master
  wire unused = &{1'b0, m_axi_rresp[0], m_axi_bresp[0], unused_ready, unused_next};

`ifdef FORMAL_ahb_to_axi
  `include "ahb_to_axi_props.vh"
`endif

endmodule

`resetall
