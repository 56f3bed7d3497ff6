// SPDX-License-Identifier: Apache-2.0
//
// Bench of the whole device. Clock, AHB fabric, storage, checkers, recorders and cycle counters are
// here in Verilog; Python drives the host's pins per access, sets the cfg_ registers, and otherwise
// sleeps until `wake`: an interrupt, or the cycle that `deadline` names.
//
// Back door: Python writes a hex file into the working folder, sets bd_cmd, bd_lo, bd_hi and toggles
// bd_go; loads take @address records, dumps write rows bd_lo .. bd_hi.
//   1 load storage (32-bit words)   2 dump storage   3 load AI RAM (64-byte rows)   4 dump AI RAM
//   5 dump the counters recorded at the end of every layer   6 forget them   7 dump recorded beats
//   8 dump the rows that tb_probe recorded while trace_on was 1
// On Verilator, which compares words faster than it writes them:
//   9 dump words of storage that are not what this command found last, each behind its number
//   10 the same of the AI RAM
//
// With NETLIST defined the device is a netlist of its cells: no back door to the AI RAM, no counters.
//
// With AXI defined the device is openkpu_axi, host and storage are behind its buses (axi_fabric); the
// fabric's waits, errors and silence work as on AHB, cfg_rd_wait is the latency.
//
// With APB defined the device is openkpu_apb, and its APB pins are the host's; those of AHB do nothing.
//
// Host pins change on the falling edge of clk and are looked at there too (a register seen at the
// rising edge is old on one simulator and new on the other).
`resetall
`timescale 1ns/1ps
`default_nettype none
`ifdef AXI
  `define DUT u_axi.u_openkpu
`elsif APB
  `define DUT u_apb.u_openkpu
`else
  `define DUT dut
`endif
`include "openkpu_fields.vh"

module tb_top #(
  // as in openkpu_top
  parameter N_Y = 2,
  parameter N_Z = 2,
  parameter AHB_W = 32,
  parameter AI_RAM_ROWS = 32768,
  parameter WBUF_ROWS = 1024,
  parameter WEIGHT_BITS = 16,
  parameter TILE_ROWS = 32,
  parameter PATH = 64,
  parameter PARAM_CHANS = 2048,
  parameter LOOK_AHEAD = 4,
  parameter POST_SHARE = 1,
  parameter POOL_LANES = 4,
  parameter FP16_LANES = 0,
  parameter KEEP_WEIGHTS = 0,
  parameter WEIGHT_AHEAD = 0,
  parameter FLAT_MAPS = 0,
  parameter DILATION = 1,
  parameter SUM_PLANES = 0,
  parameter OUT32 = 1,
  parameter POST_TABLES = 0,
  parameter MUL_BITS = 18,
  parameter PIX_FIFO_DEPTH = 64,
  parameter WGT_FIFO_DEPTH = 64,
  parameter BIAS_FIFO_DEPTH = 32,
  parameter ROUNDING = 0,
  parameter GATE = 1,
  parameter PERF = 1,
  parameter PRIVILEGED = 0,
  // 1: tb_probe is there
  parameter PROBE = 0,
  // 1: the checkers of rules are there
  parameter CHECK = 1,
  // 32-bit words of storage, another number up to MOST_STORE by plusarg (ahb_fabric); layers whose
  // counters are recorded; half a clock period in ns
  parameter STORE_DEPTH = 65536,
  parameter PERF_DEPTH = 4096,
  parameter HALF = 5
);
  // wait states that a transfer of the host may have: a bus of channels that stall adds its own
`ifdef AXI
  localparam HOST_WAIT = 400;
`else
  localparam HOST_WAIT = 16;
`endif
  // room for what any model needs, so that all share a build: pages that nobody writes cost nothing
  // with Verilator, and on Icarus a build costs less than they do
`ifdef VERILATOR
  localparam ROOM = 16777216, LAYERS = 131072;
`else
  localparam ROOM = 1048576, LAYERS = 4096;
`endif
  localparam MOST_STORE = (STORE_DEPTH < ROOM) ? ROOM : STORE_DEPTH;
  localparam RECORDS = (PERF_DEPTH < LAYERS) ? LAYERS : PERF_DEPTH;

  reg clk = 1'b0;
  always #HALF clk = ~clk;

  // written by Python
  reg        rst = 1'b1;
  reg        s_hsel = 1'b0;
  reg [31:0] s_haddr = 32'd0;
  reg [1:0]  s_htrans = 2'b00;
  reg        s_hwrite = 1'b0;
  reg [2:0]  s_hsize = 3'd0;
  reg [2:0]  s_hburst = 3'd0;
  reg [3:0]  s_hprot = 4'd3;
  reg [31:0] s_hwdata = 32'd0;
  reg [31:0] cfg_seed = 32'd1;
  reg [7:0]  cfg_loss_prob = 8'd0, cfg_rival_prob = 8'd0, cfg_wait_prob = 8'd0;
  reg [7:0]  cfg_retry_prob = 8'd0, cfg_split_prob = 8'd0;
  reg [4:0]  cfg_rd_wait = 5'd0, cfg_seq_wait = 5'd0, cfg_wr_wait = 5'd0;
  reg [31:0] cfg_err_lo = 32'd0, cfg_err_hi = 32'd0, cfg_err1_lo = 32'd0, cfg_err1_hi = 32'd0;
  reg [31:0] cfg_err2_lo = 32'd0, cfg_err2_hi = 32'd0;
  reg        cfg_top = 1'b0;
  reg [2:0]  cfg_dead = 3'd0;
  // where the device may read and write, bytes
  reg [31:0] cfg_rd_lo = 32'd0, cfg_rd_hi = {32{1'b1}}, cfg_wr_lo = 32'd0, cfg_wr_hi = {32{1'b1}};
  reg [63:0] deadline = {64{1'b1}};
  reg        trace_on = 1'b0;
  reg        bd_go = 1'b0;
  reg [3:0]  bd_cmd = 4'd0;
  reg [31:0] bd_lo = 32'd0, bd_hi = 32'd0;

  // the device
  wire        irq;
  wire        s_hready;
  wire [1:0]  s_hresp;
  wire [31:0] s_hrdata;
  wire        m_hbusreq, m_hlock, m_hgrant, m_hwrite, m_hready;
  wire [31:0] m_haddr;
  wire [1:0]  m_htrans, m_hresp;
  wire [2:0]  m_hsize, m_hburst;
  wire [3:0]  m_hprot;
  wire [AHB_W-1:0] m_hwdata, m_hrdata;

  wire [36:0] rules_m, rules_hm, rules_hs;
  wire [31:0] errors_m, errors_hm, errors_hs;
  wire [31:0] rd_beats, wr_beats, refusals, error_answers, bursts, losses, wr_lo, wr_hi;

`ifdef AXI
  wire [31:0] l_awaddr;
  wire [2:0] l_awprot;
  wire l_awvalid, l_awready;
  wire [31:0] l_wdata;
  wire [3:0] l_wstrb;
  wire l_wvalid, l_wready, l_bvalid, l_bready;
  wire [1:0] l_bresp;
  wire [31:0] l_araddr;
  wire [2:0] l_arprot;
  wire l_arvalid, l_arready;
  wire [31:0] l_rdata;
  wire [1:0] l_rresp;
  wire l_rvalid, l_rready;
  wire [31:0] f_awaddr;
  wire [7:0] f_awlen;
  wire [2:0] f_awsize;
  wire f_awvalid, f_awready;
  wire [AHB_W-1:0] f_wdata;
  wire [AHB_W/8-1:0] f_wstrb;
  wire f_wlast, f_wvalid, f_wready;
  wire [1:0] f_bresp;
  wire f_bvalid, f_bready;
  wire [31:0] f_araddr;
  wire [7:0] f_arlen;
  wire [2:0] f_arsize;
  wire f_arvalid, f_arready;
  wire [AHB_W-1:0] f_rdata;
  wire [1:0] f_rresp;
  wire f_rlast, f_rvalid, f_rready;
  wire [31:0] rnd;
  // what a bus of one master has not
  assign {m_hbusreq, m_hlock, m_hgrant, m_hready, m_hresp, m_hsize, m_hburst, m_hprot} = 16'd0;
  assign {m_hwdata, m_hrdata} = {2*AHB_W{1'b0}};
  assign rules_m = 37'd0;
  assign {refusals, losses} = 64'd0;
  // addresses for `strays`
  assign m_htrans = {f_arvalid | f_awvalid, 1'b0};
  assign m_hwrite = f_awvalid;
  assign m_haddr  = f_awvalid ? f_awaddr : f_araddr;

  ahb_to_axil u_host (
    .clk(clk), .rst(rst), .rnd(rnd), .cfg_wait_prob(cfg_wait_prob), .haddr(s_haddr),
    .htrans(s_hsel ? s_htrans : 2'b00), .hwrite(s_hwrite), .hsize(s_hsize), .hprot(s_hprot), .hwdata(s_hwdata),
    .hready(s_hready), .hresp(s_hresp), .hrdata(s_hrdata),
    .awaddr(l_awaddr), .awprot(l_awprot), .awvalid(l_awvalid), .awready(l_awready),
    .wdata(l_wdata), .wstrb(l_wstrb), .wvalid(l_wvalid), .wready(l_wready),
    .bvalid(l_bvalid), .bready(l_bready), .bresp(l_bresp), .araddr(l_araddr),
    .arprot(l_arprot), .arvalid(l_arvalid), .arready(l_arready), .rdata(l_rdata),
    .rresp(l_rresp), .rvalid(l_rvalid), .rready(l_rready)
  );

  openkpu_axi #(
    .N_Y(N_Y), .N_Z(N_Z), .AHB_W(AHB_W), .AI_RAM_ROWS(AI_RAM_ROWS),
    .WBUF_ROWS(WBUF_ROWS), .WEIGHT_BITS(WEIGHT_BITS), .TILE_ROWS(TILE_ROWS), .PATH(PATH),
    .PARAM_CHANS(PARAM_CHANS), .LOOK_AHEAD(LOOK_AHEAD), .POST_SHARE(POST_SHARE), .POOL_LANES(POOL_LANES),
    .FP16_LANES(FP16_LANES), .KEEP_WEIGHTS(KEEP_WEIGHTS), .WEIGHT_AHEAD(WEIGHT_AHEAD), .FLAT_MAPS(FLAT_MAPS),
    .SUM_PLANES(SUM_PLANES), .OUT32(OUT32), .DILATION(DILATION), .POST_TABLES(POST_TABLES), .MUL_BITS(MUL_BITS),
    .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH),
    .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH), .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH), .ROUNDING(ROUNDING), .GATE(GATE), .PERF(PERF),
    .PRIVILEGED(PRIVILEGED)
  ) u_axi (
    .clk(clk), .rst(rst), .irq(irq), .m_axi_bid(1'b0), .m_axi_rid(1'b0), .m_axi_awid(), .m_axi_arid(),
    .m_axi_awburst(), .m_axi_awcache(), .m_axi_awprot(), .m_axi_arburst(), .m_axi_arcache(), .m_axi_arprot(),
    .s_axil_awaddr(l_awaddr), .s_axil_awprot(l_awprot), .s_axil_awvalid(l_awvalid), .s_axil_awready(l_awready),
    .s_axil_wdata(l_wdata), .s_axil_wstrb(l_wstrb), .s_axil_wvalid(l_wvalid), .s_axil_wready(l_wready),
    .s_axil_bvalid(l_bvalid), .s_axil_bready(l_bready), .s_axil_bresp(l_bresp), .s_axil_araddr(l_araddr),
    .s_axil_arprot(l_arprot), .s_axil_arvalid(l_arvalid), .s_axil_arready(l_arready), .s_axil_rdata(l_rdata),
    .s_axil_rresp(l_rresp), .s_axil_rvalid(l_rvalid), .s_axil_rready(l_rready),
    .m_axi_awaddr(f_awaddr), .m_axi_awlen(f_awlen), .m_axi_awsize(f_awsize), .m_axi_awvalid(f_awvalid),
    .m_axi_awready(f_awready), .m_axi_wdata(f_wdata), .m_axi_wstrb(f_wstrb), .m_axi_wlast(f_wlast),
    .m_axi_wvalid(f_wvalid), .m_axi_wready(f_wready), .m_axi_bresp(f_bresp), .m_axi_bvalid(f_bvalid),
    .m_axi_bready(f_bready), .m_axi_araddr(f_araddr), .m_axi_arlen(f_arlen), .m_axi_arsize(f_arsize),
    .m_axi_arvalid(f_arvalid), .m_axi_arready(f_arready), .m_axi_rdata(f_rdata), .m_axi_rresp(f_rresp),
    .m_axi_rlast(f_rlast), .m_axi_rvalid(f_rvalid), .m_axi_rready(f_rready)
  );

  axi_fabric #(.AHB_W(AHB_W), .DEPTH(MOST_STORE), .USUAL(STORE_DEPTH), .CHECK(CHECK)) u_fabric (
    .clk(clk), .rst(rst), .cfg_seed(cfg_seed), .cfg_wait_prob(cfg_wait_prob), .cfg_latency(cfg_rd_wait),
    .cfg_err_lo(cfg_err_lo), .cfg_err_hi(cfg_err_hi), .cfg_mute(cfg_dead[1]), .rnd_out(rnd), .errors(errors_m),
    .rd_beats(rd_beats), .wr_beats(wr_beats), .error_answers(error_answers), .bursts(bursts),
    .wr_lo(wr_lo), .wr_hi(wr_hi),
    .awaddr(f_awaddr), .awlen(f_awlen), .awsize(f_awsize), .awvalid(f_awvalid),
    .awready(f_awready), .wdata(f_wdata), .wstrb(f_wstrb), .wlast(f_wlast),
    .wvalid(f_wvalid), .wready(f_wready), .bresp(f_bresp), .bvalid(f_bvalid),
    .bready(f_bready), .araddr(f_araddr), .arlen(f_arlen), .arsize(f_arsize),
    .arvalid(f_arvalid), .arready(f_arready), .rdata(f_rdata), .rresp(f_rresp),
    .rlast(f_rlast), .rvalid(f_rvalid), .rready(f_rready)
  );
`else
`ifdef APB
  reg         s_apb_psel = 1'b0, s_apb_penable = 1'b0, s_apb_pwrite = 1'b0;
  reg  [31:0] s_apb_paddr = 32'd0, s_apb_pwdata = 32'd0;
  wire        s_apb_pready, s_apb_pslverr;
  wire [31:0] s_apb_prdata;
  assign {s_hready, s_hresp, s_hrdata} = {1'b1, 34'd0};
`endif
`ifdef NETLIST
  openkpu_top dut (
`else
`ifdef APB
  openkpu_apb #(
`else
  openkpu_top #(
`endif
    .N_Y(N_Y), .N_Z(N_Z), .AHB_W(AHB_W), .AI_RAM_ROWS(AI_RAM_ROWS),
    .WBUF_ROWS(WBUF_ROWS), .WEIGHT_BITS(WEIGHT_BITS), .TILE_ROWS(TILE_ROWS), .PATH(PATH),
    .PARAM_CHANS(PARAM_CHANS), .LOOK_AHEAD(LOOK_AHEAD),
    .POST_SHARE(POST_SHARE), .POOL_LANES(POOL_LANES), .FP16_LANES(FP16_LANES),
    .KEEP_WEIGHTS(KEEP_WEIGHTS), .WEIGHT_AHEAD(WEIGHT_AHEAD), .FLAT_MAPS(FLAT_MAPS),
    .SUM_PLANES(SUM_PLANES), .OUT32(OUT32), .POST_TABLES(POST_TABLES), .MUL_BITS(MUL_BITS),
    .DILATION(DILATION), .PIX_FIFO_DEPTH(PIX_FIFO_DEPTH), .WGT_FIFO_DEPTH(WGT_FIFO_DEPTH),
    .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH), .ROUNDING(ROUNDING), .GATE(GATE), .PERF(PERF),
    .PRIVILEGED(PRIVILEGED)
`ifdef APB
  ) u_apb (
    .s_apb_psel(s_apb_psel), .s_apb_penable(s_apb_penable), .s_apb_paddr(s_apb_paddr), .s_apb_pwrite(s_apb_pwrite),
    .s_apb_pwdata(s_apb_pwdata), .s_apb_pready(s_apb_pready), .s_apb_prdata(s_apb_prdata),
    .s_apb_pslverr(s_apb_pslverr),
`else
  ) dut (
`endif
`endif
`ifndef APB
    .s_ahb_hsel(s_hsel), .s_ahb_haddr(s_haddr), .s_ahb_htrans(s_htrans),
    .s_ahb_hwrite(s_hwrite), .s_ahb_hsize(s_hsize), .s_ahb_hburst(s_hburst),
    .s_ahb_hprot(s_hprot), .s_ahb_hwdata(s_hwdata), .s_ahb_hready_in(s_hready),
    .s_ahb_hready_out(s_hready), .s_ahb_hresp(s_hresp), .s_ahb_hrdata(s_hrdata),
`endif
    .clk(clk), .rst(rst), .m_ahb_hbusreq(m_hbusreq), .m_ahb_hlock(m_hlock), .m_ahb_hgrant(m_hgrant),
    .m_ahb_haddr(m_haddr), .m_ahb_htrans(m_htrans), .m_ahb_hwrite(m_hwrite),
    .m_ahb_hsize(m_hsize), .m_ahb_hburst(m_hburst), .m_ahb_hprot(m_hprot),
    .m_ahb_hwdata(m_hwdata), .m_ahb_hready(m_hready), .m_ahb_hresp(m_hresp),
    .m_ahb_hrdata(m_hrdata), .m_ahb_ahead(), .irq(irq)
  );


  ahb_fabric #(.AHB_W(AHB_W), .DEPTH(MOST_STORE), .USUAL(STORE_DEPTH), .CHECK(CHECK)) u_fabric (
    .clk(clk), .rst(rst), .cfg_seed(cfg_seed), .cfg_loss_prob(cfg_loss_prob),
    .cfg_rival_prob(cfg_rival_prob), .cfg_rd_wait(cfg_rd_wait), .cfg_seq_wait(cfg_seq_wait),
    .cfg_wr_wait(cfg_wr_wait), .cfg_wait_prob(cfg_wait_prob), .cfg_retry_prob(cfg_retry_prob),
    .cfg_split_prob(cfg_split_prob), .cfg_err_lo(cfg_err_lo), .cfg_err_hi(cfg_err_hi),
    .cfg_err1_lo(cfg_err1_lo), .cfg_err1_hi(cfg_err1_hi), .cfg_err2_lo(cfg_err2_lo), .cfg_err2_hi(cfg_err2_hi),
    .cfg_top(cfg_top), .cfg_dead(cfg_dead), .hbusreq(m_hbusreq), .hlock(m_hlock), .hgrant(m_hgrant), .haddr(m_haddr),
    .htrans(m_htrans), .hwrite(m_hwrite), .hsize(m_hsize), .hburst(m_hburst), .hprot(m_hprot),
    .hwdata(m_hwdata), .hready(m_hready), .hresp(m_hresp), .hrdata(m_hrdata),
    .rules(rules_m), .errors(errors_m), .rd_beats(rd_beats), .wr_beats(wr_beats),
    .refusals(refusals), .error_answers(error_answers), .bursts(bursts), .losses(losses),
    .wr_lo(wr_lo), .wr_hi(wr_hi)
  );
`endif

  // the host's side of the slave port: the bench's own master, and the device as a slave
  generate
    if (CHECK != 0) begin : g_check
      ahb_master_checker u_check_host (
        .clk(clk), .rst(rst), .hbusreq(1'b1), .hlock(1'b0), .hgrant(1'b1), .haddr(s_haddr),
        .htrans(s_htrans), .hwrite(s_hwrite), .hsize(s_hsize), .hburst(s_hburst), .hprot(s_hprot),
        .hwdata(s_hwdata), .hready(s_hready), .hresp(s_hresp), .rule(rules_hm), .errors(errors_hm)
      );
      ahb_slave_checker #(.MAX_WAIT(HOST_WAIT)) u_check_slave (
        .clk(clk), .rst(rst), .hsel(s_hsel), .haddr(s_haddr), .htrans(s_htrans), .hwrite(s_hwrite),
        .hsize(s_hsize), .hready_in(s_hready), .hready_out(s_hready), .hresp(s_hresp),
        .hrdata(s_hrdata), .rule(rules_hs), .errors(errors_hs)
      );
    end else begin : g_no_check
      assign {rules_hm, rules_hs} = 74'd0;
      assign {errors_hm, errors_hs} = 64'd0;
    end
  endgenerate

  // an interrupt line that is neither 0 nor 1 after reset
  reg [31:0] x_errors = 32'd0;
  always @(posedge clk) x_errors <= x_errors + {31'd0, ~rst & (irq === 1'bx)};

  wire [36:0] rules         = rules_m | rules_hm | rules_hs;
  // what the device does wrong inside; no bench may allow it
  wire [31:0] fsm_errors, work_errors;
  wire [31:0] own_errors    = x_errors + fsm_errors + work_errors;
  wire [31:0] assert_errors = errors_m + errors_hm + errors_hs + own_errors;
`ifdef NETLIST
  assign {fsm_errors, work_errors} = 64'd0;
`else
  generate
    if (CHECK != 0) begin : g_inside
      tb_fsm u_fsm (.clk(clk), .rst(rst), .errors(fsm_errors));
      tb_work u_work (.clk(clk), .rst(rst), .errors(work_errors));
    end else begin : g_not_inside
      assign {fsm_errors, work_errors} = 64'd0;
    end
  endgenerate
`endif

  // a look inside
  wire [31:0] trace_count;
  wire [63:0] toggles, idle_toggles, products;
  wire [7*32-1:0] spent;
`ifdef NETLIST
  assign trace_count = 32'd0;
  assign {toggles, idle_toggles, products, spent} = {192'd0, 224'd0};
`else
  generate
    if (PROBE != 0) begin : g_probe
      tb_probe #(.N_Y(N_Y), .N_Z(N_Z), .WEIGHT_BITS(WEIGHT_BITS)) u_probe (
        .clk(clk), .on(trace_on), .count(trace_count), .toggles(toggles),
        .idle_toggles(idle_toggles), .products(products), .spent(spent)
      );
      always @(posedge bd_go)
        if (bd_cmd == 4'd8) $writememh("trace_out.hex", u_probe.rec, bd_lo, bd_hi);
    end else begin : g_no_probe
      assign trace_count = 32'd0;
      assign {toggles, idle_toggles, products, spent} = {192'd0, 224'd0};
    end
  endgenerate
`endif

  // cycles in which the device has a transfer on the bus
  reg [63:0] bus_cycles = 64'd0;
  always @(posedge clk) bus_cycles <= bus_cycles + {63'd0, u_fabric.dp_dut === 1'b1};

  // time; the cycle of the device's last good beat
  reg [63:0] cycle = 64'd0, beat_cycle = 64'd0;
  always @(posedge clk) cycle <= cycle + 64'd1;
  always @(posedge clk)
    if (u_fabric.beat === 1'b1 && m_hresp == 2'b00) beat_cycle <= cycle;

  // cycles in which the device drives an address that is not allowed
  reg [31:0] strays = 32'd0;
  always @(posedge clk)
    if (!rst && m_htrans != 2'b00 && (m_hwrite ? m_haddr < cfg_wr_lo || m_haddr > cfg_wr_hi
                                               : m_haddr < cfg_rd_lo || m_haddr > cfg_rd_hi))
      strays <= strays + 32'd1;
  wire timeout   = (cycle >= deadline);
  wire wake      = irq | timeout;
  wire s_busy    = (s_htrans != 2'b00);
  wire heartbeat = cycle[15];
  // sizes of the memories behind the back door: storage in words, AI RAM in rows; bytes of its words
  wire [31:0] store_words = u_fabric.words;
  wire [31:0] ram_rows    = AI_RAM_ROWS;
  wire [31:0] path_bytes  = PATH;
  wire [31:0] fp16_lanes  = FP16_LANES; // products of float16 at a time
  wire [31:0] dilation    = DILATION;   // largest distance of the taps of a 3x3 window
  wire        weights_wait = WEIGHT_AHEAD != 0; // in rows of the AI RAM
  wire slow_beat = cycle[21];

  // counters at the end of every layer; what a layer did (tb_layers). A netlist has pins only.
  wire layer_done, device_busy;
  wire [1:0] cnn_mode;
  wire [`DESC_BITS:0] layer_ran;
  wire [2:0] ring_ran;
  wire [31:0] perf_count;
`ifdef NETLIST
  assign {layer_done, device_busy, cnn_mode, layer_ran, ring_ran, perf_count} = {(`DESC_BITS+40){1'b0}};
`else
  tb_layers #(.WEIGHT_AHEAD(WEIGHT_AHEAD)) u_layers (
    .clk(clk), .rst(rst), .layer_done(layer_done), .device_busy(device_busy), .cnn_mode(cnn_mode),
    .layer_ran(layer_ran), .ring_ran(ring_ran)
  );
  tb_perf #(.N_Y(N_Y), .N_Z(N_Z), .PERF(PERF), .RECORDS(RECORDS)) u_perf (
    .clk(clk), .layer_done(layer_done === 1'b1), .forget(bd_go && bd_cmd == 4'd6),
    .dump(bd_go && bd_cmd == 4'd5), .count(perf_count)
  );
`endif

`ifdef VERILATOR
  // to write megabytes as text and to read them takes longer than most jobs
  reg [31:0]       store_found[0:MOST_STORE-1];
  localparam       RAM_WORDS = (64 * AI_RAM_ROWS + PATH - 1) / PATH;
  reg [8*PATH-1:0] ram_found[0:RAM_WORDS-1];
  integer found_file, n;
`endif

  always @(posedge bd_go) begin
    case (bd_cmd)
      4'd1: $readmemh("storage_in.hex", u_fabric.u_storage.mem);
      4'd2: $writememh("storage_out.hex", u_fabric.u_storage.mem, bd_lo, bd_hi);
`ifndef NETLIST
      4'd3: $readmemh("ai_ram_in.hex", `DUT.u_cache.u_ai_ram.mem);
      4'd4: $writememh("ai_ram_out.hex", `DUT.u_cache.u_ai_ram.mem, bd_lo, bd_hi);
`endif
      4'd7: $writememh("beats_out.hex", u_fabric.rec, bd_lo, bd_hi);
`ifdef VERILATOR
      4'd9: begin
        found_file = $fopen("storage_changes.hex", "w");
        for (n = 0; n < store_words; n = n + 1)
          if (u_fabric.u_storage.mem[n] !== store_found[n]) begin
            store_found[n] = u_fabric.u_storage.mem[n];
            $fwrite(found_file, "%h %h\n", n, store_found[n]);
          end
        $fclose(found_file);
      end
`ifndef NETLIST
      4'd10: begin
        found_file = $fopen("ai_ram_changes.hex", "w");
        for (n = 0; n < RAM_WORDS; n = n + 1)
          if (`DUT.u_cache.u_ai_ram.mem[n] !== ram_found[n]) begin
            ram_found[n] = `DUT.u_cache.u_ai_ram.mem[n];
            $fwrite(found_file, "%h %h\n", n, ram_found[n]);
          end
        $fclose(found_file);
      end
`endif
`endif
      default: ;
    endcase
  end
endmodule

`resetall
