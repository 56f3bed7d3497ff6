// SPDX-License-Identifier: Apache-2.0
//
// soc: a small computer around the device: processor, RAM, storage, console, and one to three devices.
//
// How it works: processor and devices are masters of one AHB, whose slaves are the RAM (program and data), the storage
// (networks, images, results), the console and the devices' host ports. The interrupt lines of the devices are interrupts 3
// to 5 of the processor. A word that is written to the console's first register leaves as a character, one that is
// written to the second ends the simulation. The console reads as 1 while whoever prints has no room for a character.
// Handshake: the outputs are pulses of a cycle, for the bench around it; characters that are written without room are
// its own matter.
`resetall
`timescale 1ns / 1ps
`default_nettype none

module soc #(
    // devices on the bus: 1 to 3
    parameter DEVICES         = 1,
    // 1: they are openkpu_axi, behind adapters
    parameter AXI             = 0,
    // bytes of RAM and storage, powers of two
    parameter RAM_BYTES       = 131072,
    parameter STORE_BYTES     = 1048576,
    // files of what they hold after an FPGA's configuration; "": a simulation's plusargs name them
    parameter RAM_FILE        = "",
    parameter STORE_FILE      = "",
    // of openkpu_top
    parameter N_Y             = 4,
    parameter N_Z             = 4,
    parameter AHB_W           = 32,
    parameter AI_RAM_ROWS     = 32768,
    parameter WBUF_ROWS       = 1024,
    parameter WEIGHT_BITS     = 16,
    parameter PARAM_CHANS     = 2048,
    parameter LOOK_AHEAD      = 4,
    parameter TILE_ROWS       = 32,
    parameter POST_SHARE      = 1,
    parameter POOL_LANES      = 4,
    parameter FP16_LANES      = 0,
    parameter KEEP_WEIGHTS    = 0,
    parameter WEIGHT_AHEAD    = 0,
    parameter FLAT_MAPS       = 0,
    parameter DILATION        = 1,
    parameter SUM_PLANES      = 0,
    parameter OUT32           = 1,
    parameter POST_TABLES     = 0,
    parameter MUL_BITS        = 18,
    parameter PERF            = 1,
    parameter PATH            = 64,
    parameter PIX_FIFO_DEPTH  = 64,
    parameter WGT_FIFO_DEPTH  = 64,
    parameter BIAS_FIFO_DEPTH = 32
) (
    // clock, synchronous reset
    input  wire               clk,
    input  wire               rst,
    // console: no room for a character; a character; the end, with its code
    input  wire               put_full,
    output reg                put,
    output reg                finish,
    output reg  [       31:0] value,
    // the processor has stopped
    output wire               fault,
    // interrupt lines
    output wire [DEVICES-1:0] irq,
    // whose transfer ends in this cycle: 0 the processor
    output wire               transfer,
    output wire [        2:0] master
);

  localparam W = AHB_W;
  localparam M = DEVICES + 1;

  wire [M-1:0] hbusreq, hgrant, m_hwrite;
  wire [32*M-1:0] m_haddr;
  wire [2*M-1:0] m_htrans;
  wire [3*M-1:0] m_hsize;
  wire [W*M-1:0] m_hwdata;
  wire [31:0] haddr;
  wire [1:0] htrans, hresp;
  wire [2:0] hsize;
  wire [W-1:0] hwdata, hrdata;
  wire hwrite, hready, data_valid;
  wire [M+1:0] hsel, s_hready;
  wire [2*M+3:0] s_hresp;
  wire [W*M+2*W-1:0] s_hrdata;
  wire [2:0] irqs = {{(3 - DEVICES) {1'b0}}, irq};

  assign transfer = data_valid && hready;

  soc_cpu #(
      .W    (W),
      .STACK(RAM_BYTES)
  ) u_cpu (
      .clk    (clk),
      .rst    (rst),
      .hbusreq(hbusreq[0]),
      .hgrant (hgrant[0]),
      .haddr  (m_haddr[31:0]),
      .htrans (m_htrans[1:0]),
      .hwrite (m_hwrite[0]),
      .hsize  (m_hsize[2:0]),
      .hwdata (m_hwdata[W-1:0]),
      .hready (hready),
      .hresp  (hresp),
      .hrdata (hrdata),
      .irq    (irqs),
      .fault  (fault)
  );

  soc_bus #(
      .W          (W),
      .M          (M),
      .RAM_BYTES  (RAM_BYTES),
      .STORE_BYTES(STORE_BYTES)
  ) u_bus (
      .clk       (clk),
      .rst       (rst),
      .hbusreq   (hbusreq),
      .hgrant    (hgrant),
      .m_haddr   (m_haddr),
      .m_htrans  (m_htrans),
      .m_hwrite  (m_hwrite),
      .m_hsize   (m_hsize),
      .m_hwdata  (m_hwdata),
      .haddr     (haddr),
      .htrans    (htrans),
      .hwrite    (hwrite),
      .hsize     (hsize),
      .hwdata    (hwdata),
      .hready    (hready),
      .hresp     (hresp),
      .hrdata    (hrdata),
      .hsel      (hsel),
      .s_hready  (s_hready),
      .s_hresp   (s_hresp),
      .s_hrdata  (s_hrdata),
      .data_owner(master),
      .data_valid(data_valid)
  );

  soc_ram #(
      .W    (W),
      .BYTES(RAM_BYTES),
      .NAME ("ram=%s"),
      .FILE (RAM_FILE)
  ) u_ram (
      .clk   (clk),
      .rst   (rst),
      .hsel  (hsel[0]),
      .haddr (haddr),
      .htrans(htrans),
      .hwrite(hwrite),
      .hsize (hsize),
      .hwdata(hwdata),
      .hready(hready),
      .hrdata(s_hrdata[W-1:0])
  );

  soc_ram #(
      .W    (W),
      .BYTES(STORE_BYTES),
      .NAME ("store=%s"),
      .FILE (STORE_FILE)
  ) u_store (
      .clk   (clk),
      .rst   (rst),
      .hsel  (hsel[1]),
      .haddr (haddr),
      .htrans(htrans),
      .hwrite(hwrite),
      .hsize (hsize),
      .hwdata(hwdata),
      .hready(hready),
      .hrdata(s_hrdata[2*W-1:W])
  );

  // ---- console
  reg writes, ends;
  always @(posedge clk) begin
    if (rst) begin
      writes <= 1'b0;
      ends   <= 1'b0;
      put    <= 1'b0;
      finish <= 1'b0;
      value  <= 32'd0;
    end else begin
      writes <= hready ? hsel[2] && htrans[1] && hwrite : writes;
      ends   <= hready ? haddr[2] : ends;
      put    <= hready && writes && !ends;
      finish <= hready && writes && ends;
      value  <= (hready && writes) ? hwdata[31:0] : value;
    end
  end
  assign s_hready[2:0] = 3'b111;
  assign s_hresp[5:0] = 6'd0;
  assign s_hrdata[3*W-1:2*W] = {{(W - 1) {1'b0}}, put_full};

  // ---- devices
  genvar g;
  generate
    for (g = 0; g < DEVICES; g = g + 1) begin : g_device
      wire [31:0] rdata;
      assign s_hrdata[W*(3+g)+:W] = {(W / 32) {rdata}};
      if (AXI != 0) begin : g_axi
        soc_axi #(
            .N_Y            (N_Y),
            .N_Z            (N_Z),
            .AHB_W          (AHB_W),
            .AI_RAM_ROWS    (AI_RAM_ROWS),
            .WBUF_ROWS      (WBUF_ROWS),
            .WEIGHT_BITS    (WEIGHT_BITS),
            .PARAM_CHANS    (PARAM_CHANS),
            .LOOK_AHEAD     (LOOK_AHEAD),
            .TILE_ROWS      (TILE_ROWS),
            .POST_SHARE     (POST_SHARE),
            .POOL_LANES     (POOL_LANES),
            .FP16_LANES     (FP16_LANES),
            .KEEP_WEIGHTS   (KEEP_WEIGHTS),
            .WEIGHT_AHEAD   (WEIGHT_AHEAD),
            .FLAT_MAPS      (FLAT_MAPS),
            .DILATION       (DILATION),
            .SUM_PLANES     (SUM_PLANES),
            .OUT32          (OUT32),
            .PERF           (PERF),
            .POST_TABLES    (POST_TABLES),
            .MUL_BITS       (MUL_BITS),
            .PATH           (PATH),
            .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
            .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
            .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
        ) u_axi (
            .clk      (clk),
            .rst      (rst),
            .s_hsel   (hsel[3+g]),
            .s_haddr  (haddr),
            .s_htrans (htrans),
            .s_hwrite (hwrite),
            .s_hsize  (hsize),
            .s_hwdata (hwdata[31:0]),
            .s_hready (s_hready[3+g]),
            .s_hresp  (s_hresp[2*(3+g)+:2]),
            .s_hrdata (rdata),
            .m_hbusreq(hbusreq[1+g]),
            .m_hgrant (hgrant[1+g]),
            .m_haddr  (m_haddr[32*(1+g)+:32]),
            .m_htrans (m_htrans[2*(1+g)+:2]),
            .m_hwrite (m_hwrite[1+g]),
            .m_hsize  (m_hsize[3*(1+g)+:3]),
            .m_hwdata (m_hwdata[W*(1+g)+:W]),
            .hready   (hready),
            .hresp    (hresp),
            .hrdata   (hrdata),
            .irq      (irq[g])
        );
      end else begin : g_ahb
        openkpu_top #(
            .N_Y            (N_Y),
            .N_Z            (N_Z),
            .AHB_W          (AHB_W),
            .AI_RAM_ROWS    (AI_RAM_ROWS),
            .WBUF_ROWS      (WBUF_ROWS),
            .WEIGHT_BITS    (WEIGHT_BITS),
            .PARAM_CHANS    (PARAM_CHANS),
            .LOOK_AHEAD     (LOOK_AHEAD),
            .TILE_ROWS      (TILE_ROWS),
            .POST_SHARE     (POST_SHARE),
            .POOL_LANES     (POOL_LANES),
            .FP16_LANES     (FP16_LANES),
            .KEEP_WEIGHTS   (KEEP_WEIGHTS),
            .WEIGHT_AHEAD   (WEIGHT_AHEAD),
            .FLAT_MAPS      (FLAT_MAPS),
            .DILATION       (DILATION),
            .SUM_PLANES     (SUM_PLANES),
            .OUT32          (OUT32),
            .PERF           (PERF),
            .POST_TABLES    (POST_TABLES),
            .MUL_BITS       (MUL_BITS),
            .PATH           (PATH),
            .PIX_FIFO_DEPTH (PIX_FIFO_DEPTH),
            .WGT_FIFO_DEPTH (WGT_FIFO_DEPTH),
            .BIAS_FIFO_DEPTH(BIAS_FIFO_DEPTH)
        ) u_openkpu (
            .clk             (clk),
            .rst             (rst),
            .s_ahb_hsel      (hsel[3+g]),
            .s_ahb_haddr     (haddr),
            .s_ahb_htrans    (htrans),
            .s_ahb_hwrite    (hwrite),
            .s_ahb_hsize     (hsize),
            .s_ahb_hburst    (3'd0),
            .s_ahb_hprot     (4'b0011),
            .s_ahb_hwdata    (hwdata[31:0]),
            .s_ahb_hready_in (hready),
            .s_ahb_hready_out(s_hready[3+g]),
            .s_ahb_hresp     (s_hresp[2*(3+g)+:2]),
            .s_ahb_hrdata    (rdata),
            .m_ahb_hbusreq   (hbusreq[1+g]),
            .m_ahb_hlock     (),
            .m_ahb_hgrant    (hgrant[1+g]),
            .m_ahb_haddr     (m_haddr[32*(1+g)+:32]),
            .m_ahb_htrans    (m_htrans[2*(1+g)+:2]),
            .m_ahb_hwrite    (m_hwrite[1+g]),
            .m_ahb_hsize     (m_hsize[3*(1+g)+:3]),
            .m_ahb_hburst    (),
            .m_ahb_hprot     (),
            .m_ahb_hwdata    (m_hwdata[W*(1+g)+:W]),
            .m_ahb_hready    (hready),
            .m_ahb_hresp     (hresp),
            .m_ahb_hrdata    (hrdata),
            .m_ahb_ahead     (),
            .irq             (irq[g])
        );
      end
    end
    if (DEVICES < 1 || DEVICES > 3) begin : g_illegal_devices
      ILLEGAL_DEVICES_1_2_3 u_illegal_devices ();
    end
  endgenerate

endmodule

`resetall
