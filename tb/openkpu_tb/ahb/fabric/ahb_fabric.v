// SPDX-License-Identifier: Apache-2.0
//
// Everything behind the device's AHB master port: arbiter, rival master, decoder, storage, default
// slave, rule checkers, beat recorder and beat counters. Runs without Python; the cfg_ inputs say how
// unfriendly it is. All zero: no wait states, the bus given for the asking.
//
// The storage lies at address 0; anything behind its last word belongs to the default slave. With
// cfg_top its last KiB is at the end of the address space too, so that a burst can reach that end.
// How many words the storage has is said when the simulation starts (+store_words=n, USUAL without), so
// that one build serves all.
`resetall
`timescale 1ns/1ps
`default_nettype none

module ahb_fabric #(
  // width of the data bus; 32-bit words of storage: the most, and unless the plusarg says another number;
  // beats that the recorder holds; 1: the checkers of rules are there
  parameter AHB_W = 32,
  parameter DEPTH = 65536,
  parameter USUAL = DEPTH,
  parameter REC_DEPTH = 1024,
  parameter CHECK = 1
) (
  input  wire             clk,
  input  wire             rst,
  // seed of all random decisions, taken during reset; the rest as in the modules that use it
  input  wire [31:0]      cfg_seed,
  input  wire [7:0]       cfg_loss_prob,
  input  wire [7:0]       cfg_rival_prob,
  input  wire [4:0]       cfg_rd_wait,
  input  wire [4:0]       cfg_seq_wait,
  input  wire [4:0]       cfg_wr_wait,
  input  wire [7:0]       cfg_wait_prob,
  input  wire [7:0]       cfg_retry_prob,
  input  wire [7:0]       cfg_split_prob,
  input  wire [31:0]      cfg_err_lo,
  input  wire [31:0]      cfg_err_hi,
  input  wire [31:0]      cfg_err1_lo,
  input  wire [31:0]      cfg_err1_hi,
  input  wire [31:0]      cfg_err2_lo,
  input  wire [31:0]      cfg_err2_hi,
  input  wire             cfg_top,
  // dead bus, for the device: 0 no grant, 1 no answer, 2 SPLIT for ever
  input  wire [2:0]       cfg_dead,
  // the device's master port
  input  wire             hbusreq,
  input  wire             hlock,
  output wire             hgrant,
  input  wire [31:0]      haddr,
  input  wire [1:0]       htrans,
  input  wire             hwrite,
  input  wire [2:0]       hsize,
  input  wire [2:0]       hburst,
  input  wire [3:0]       hprot,
  input  wire [AHB_W-1:0] hwdata,
  output wire             hready,
  output wire [1:0]       hresp,
  output wire [AHB_W-1:0] hrdata,
  // rules broken by anybody (bit n: rule n), and how many times; since the first reset
  output wire [36:0]      rules,
  output wire [31:0]      errors,
  // of the device, since the last reset: beats read, beats written, RETRY or SPLIT, ERROR answers,
  // bursts begun, bursts cut short by the arbiter
  output reg  [31:0]      rd_beats,
  output reg  [31:0]      wr_beats,
  output reg  [31:0]      refusals,
  output reg  [31:0]      error_answers,
  output reg  [31:0]      bursts,
  output reg  [31:0]      losses,
  // lowest and highest byte address written (lo > hi: none)
  output reg  [31:0]      wr_lo,
  output reg  [31:0]      wr_hi
);
  // xorshift: one new 32-bit word per cycle
  reg  [31:0] rnd;
  wire [31:0] rnd_a = rnd ^ (rnd << 13);
  wire [31:0] rnd_b = rnd_a ^ (rnd_a >> 17);
  always @(posedge clk) rnd <= rst ? (cfg_seed ^ 32'h9E37_79B9) | 32'd1 : rnd_b ^ (rnd_b << 5);

  // words of storage
  reg [31:0] words;
  initial begin
    if (!$value$plusargs("store_words=%d", words)) words = USUAL;
    if (words > DEPTH) begin
      $display("store_words=%0d: expected at most %0d", words, DEPTH);
      $fatal;
    end
  end

  // masters -> address bus
  wire        owner, data_owner, rival_req, hsplit;
  wire [1:0]  grant, rival_htrans;
  wire [31:0] rival_haddr;
  wire [1:0]  b_htrans = owner ? htrans : rival_htrans;
  wire [31:0] b_haddr  = owner ? haddr  : rival_haddr;
  wire        b_hwrite = owner & hwrite;
  wire [2:0]  b_hsize  = owner ? hsize  : 3'd2;
  wire [2:0]  b_hburst = owner ? hburst : 3'd0;
  assign hgrant = grant[1];

  ahb_arbiter u_arbiter (
    .clk(clk), .rst(rst), .rnd(rnd), .cfg_loss_prob(cfg_loss_prob), .cfg_deny(cfg_dead[0]),
    .hbusreq({hbusreq, rival_req}), .hlock(hlock), .hgrant(grant),
    .owner(owner), .data_owner(data_owner),
    .htrans(b_htrans), .hburst(b_hburst), .hready(hready), .hresp(hresp), .hsplit(hsplit)
  );

  ahb_rival u_rival (
    .clk(clk), .rst(rst), .rnd({rnd[15:0], rnd[31:16]}), .cfg_rival_prob(cfg_rival_prob),
    .depth(words), .hbusreq(rival_req), .own(~owner), .hready(hready),
    .htrans(rival_htrans), .haddr(rival_haddr)
  );

  // decoder, slaves, answer bus
  wire [31:0] last_kib   = {words[29:0], 2'b00} - 32'd1024;
  wire       at_top      = cfg_top & (&b_haddr[31:10]);
  wire       sel_storage = at_top | (b_haddr[31:2] < words);
  wire [31:0] sto_haddr  = at_top ? last_kib + {22'd0, b_haddr[9:0]} : b_haddr;
  wire       sto_ready, def_ready;
  wire [1:0] sto_resp, def_resp;
  wire [AHB_W-1:0] sto_rdata;
  reg        data_default;
  always @(posedge clk) data_default <= rst ? 1'b0 : hready ? ~sel_storage : data_default;
  assign hready = data_default ? def_ready : sto_ready;
  assign hresp  = data_default ? def_resp : sto_resp;
  assign hrdata = sto_rdata;

  ahb_storage #(.AHB_W(AHB_W), .DEPTH(DEPTH)) u_storage (
    .clk(clk), .rst(rst), .rnd({rnd[7:0], rnd[31:8]}),
    .cfg_rd_wait(cfg_rd_wait), .cfg_seq_wait(cfg_seq_wait), .cfg_wr_wait(cfg_wr_wait),
    .cfg_wait_prob(cfg_wait_prob), .cfg_retry_prob(cfg_retry_prob),
    .cfg_split_prob(cfg_split_prob), .cfg_err_lo(cfg_err_lo), .cfg_err_hi(cfg_err_hi),
    .cfg_err1_lo(cfg_err1_lo), .cfg_err1_hi(cfg_err1_hi), .cfg_err2_lo(cfg_err2_lo), .cfg_err2_hi(cfg_err2_hi),
    .cfg_mute(cfg_dead[1]), .cfg_forget(cfg_dead[2]), .from_dut(owner), .hsel(sel_storage), .haddr(sto_haddr), .htrans(b_htrans),
    .hwrite(b_hwrite), .hsize(b_hsize), .hwdata(hwdata), .hready_in(hready), .hready_out(sto_ready),
    .hresp(sto_resp), .hrdata(sto_rdata), .hsplit(hsplit)
  );

  ahb_default_slave u_default (
    .clk(clk), .rst(rst), .hsel(~sel_storage), .htrans(b_htrans), .hready_in(hready),
    .hready_out(def_ready), .hresp(def_resp)
  );

  // rules
  wire [36:0] rule_m, rule_s, rule_d, rule_a;
  wire [31:0] err_m, err_s, err_d, err_a;
  assign rules  = rule_m | rule_s | rule_d | rule_a;
  assign errors = err_m + err_s + err_d + err_a;

  generate
    if (CHECK != 0) begin : g_check
      ahb_master_checker #(.DATA_W(AHB_W)) u_check_master (
        .clk(clk), .rst(rst), .hbusreq(hbusreq), .hlock(hlock), .hgrant(hgrant), .haddr(haddr),
        .htrans(htrans), .hwrite(hwrite), .hsize(hsize), .hburst(hburst), .hprot(hprot),
        .hwdata(hwdata), .hready(hready), .hresp(hresp), .rule(rule_m), .errors(err_m)
      );
      ahb_slave_checker #(.DATA_W(AHB_W), .MAX_WAIT(24)) u_check_storage (
        .clk(clk), .rst(rst), .hsel(sel_storage), .haddr(b_haddr), .htrans(b_htrans),
        .hwrite(b_hwrite), .hsize(b_hsize), .hready_in(hready), .hready_out(sto_ready),
        // contents are the program's business: a word never written is not the slave's fault
        .hresp(sto_resp), .hrdata({AHB_W{1'b0}}), .rule(rule_s), .errors(err_s)
      );
      ahb_slave_checker #(.DATA_W(AHB_W)) u_check_default (
        .clk(clk), .rst(rst), .hsel(~sel_storage), .haddr(b_haddr), .htrans(b_htrans),
        .hwrite(b_hwrite), .hsize(b_hsize), .hready_in(hready), .hready_out(def_ready),
        .hresp(def_resp), .hrdata({AHB_W{1'b0}}), .rule(rule_d), .errors(err_d)
      );
      ahb_arbiter_checker u_check_arbiter (
        .clk(clk), .rst(rst), .hbusreq({hbusreq, rival_req}), .hlock({hlock, 1'b0}),
        .hgrant(grant), .hmaster({3'd0, owner}), .htrans(b_htrans),
        .hsel({~sel_storage, sel_storage}), .hready(hready), .hresp(hresp),
        .hsplit({hsplit, 1'b0}), .rule(rule_a), .errors(err_a)
      );
    end else begin : g_no_check
      assign {rule_m, rule_s, rule_d, rule_a} = 148'd0;
      assign {err_m, err_s, err_d, err_a} = 128'd0;
    end
  endgenerate

  // beat recorder: {write, response, size, address, low 32 bits of data} of the device's last beats
  reg [69:0] rec [0:REC_DEPTH-1];
  reg [31:0] rec_count;
  reg        dp_dut, dp_write, mid_burst;
  reg [2:0]  dp_size;
  reg [31:0] dp_addr;
  wire       beat = dp_dut & hready;
  integer    lane;
  reg [31:0] rec_data;
  always @* begin
    rec_data = dp_write ? hwdata[31:0] : hrdata[31:0];
    for (lane = 1; lane < AHB_W / 32; lane = lane + 1)
      if (((dp_addr >> 2) & (AHB_W / 32 - 1)) == lane)
        rec_data = dp_write ? hwdata[32*lane +: 32] : hrdata[32*lane +: 32];
  end

  always @(posedge clk) begin
    if (rst) begin
      {dp_dut, dp_write, mid_burst} <= 3'd0;
      rec_count <= 32'd0;
      {rd_beats, wr_beats, refusals, error_answers, bursts, losses} <= 192'd0;
      wr_lo <= 32'hFFFF_FFFF;
      wr_hi <= 32'd0;
    end else begin
      if (hready) begin
        dp_dut   <= owner & b_htrans[1];
        dp_write <= b_hwrite;
        dp_addr  <= b_haddr;
        dp_size  <= b_hsize;
        bursts   <= bursts + {31'd0, owner & (b_htrans == 2'b10)};
      end
      // a burst that was going on and whose master must begin again
      mid_burst <= owner & b_htrans[1] & (b_hburst != 3'd0);
      losses    <= losses + {31'd0, mid_burst & ~grant[1] & hbusreq & hready};
      if (beat) begin
        rec[rec_count % REC_DEPTH] <= {dp_write, hresp, dp_size, dp_addr, rec_data};
        rec_count     <= rec_count + 32'd1;
        rd_beats      <= rd_beats + {31'd0, ~dp_write & (hresp == 2'b00)};
        wr_beats      <= wr_beats + {31'd0, dp_write & (hresp == 2'b00)};
        refusals      <= refusals + {31'd0, hresp[1]};
        error_answers <= error_answers + {31'd0, hresp == 2'b01};
        if (dp_write & (hresp == 2'b00)) begin
          wr_lo <= (dp_addr < wr_lo) ? dp_addr : wr_lo;
          wr_hi <= ((dp_addr + (32'd1 << dp_size) - 32'd1) > wr_hi)
                 ? dp_addr + (32'd1 << dp_size) - 32'd1 : wr_hi;
        end
      end
    end
  end

  wire _unused = &{1'b0, data_owner, 1'b0};
endmodule

`resetall
