// SPDX-License-Identifier: Apache-2.0
//
// DP16KD: model of the ECP5's block RAM, for netlists; Yosys brings its pins only.
//
// How it works: 1024 words of 18 bits. A port is 1, 2, 4, 9, 18 or 36 bits wide; its address counts
// bits, so that narrow ports leave the parity bits out. Ports of 18 and 36 bits take their byte
// enables from the low address bits. At 36 bits port A writes and port B reads, a word over both
// data pins. A port that reads keeps its data while CE is low; WRITEMODE says what a port that
// writes shows. A word that one port reads while the other writes it is read as x: silicon may give
// either.
// Handshake: none; one clock edge from address to data. Output registers and resets are not
// modelled; a netlist that has them is refused.
`resetall
`timescale 1ns/1ps
`default_nettype none

module DP16KD #(
  // as Yosys sets them
  parameter DATA_WIDTH_A = 18,
  parameter DATA_WIDTH_B = 18,
  parameter REGMODE_A = "NOREG",
  parameter REGMODE_B = "NOREG",
  parameter RESETMODE = "SYNC",
  parameter ASYNC_RESET_RELEASE = "SYNC",
  parameter CSDECODE_A = "0b000",
  parameter CSDECODE_B = "0b000",
  parameter WRITEMODE_A = "NORMAL",
  parameter WRITEMODE_B = "NORMAL",
  parameter CLKAMUX = "CLKA",
  parameter CLKBMUX = "CLKB",
  parameter GSR = "ENABLED",
  // 1: words begin with INIT, 20 bits each, the lowest 18 used; 0: unknown
  parameter LOADED = 0,
  parameter [20479:0] INIT = 20480'd0
) (
  // port A: write data, address, control, read data
  input wire DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0,
  input wire ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0,
  input wire CEA, OCEA, CLKA, WEA, RSTA, CSA2, CSA1, CSA0,
  output wire DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0,
  // port B: write data, address, control, read data
  input wire DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0,
  input wire ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0,
  input wire CEB, OCEB, CLKB, WEB, RSTB, CSB2, CSB1, CSB0,
  output wire DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0
);
  wire [13:0] ada = {ADA13, ADA12, ADA11, ADA10, ADA9, ADA8, ADA7, ADA6, ADA5, ADA4, ADA3, ADA2, ADA1, ADA0};
  wire [13:0] adb = {ADB13, ADB12, ADB11, ADB10, ADB9, ADB8, ADB7, ADB6, ADB5, ADB4, ADB3, ADB2, ADB1, ADB0};
  wire [17:0] dia = {DIA17, DIA16, DIA15, DIA14, DIA13, DIA12, DIA11, DIA10, DIA9, DIA8, DIA7, DIA6, DIA5, DIA4, DIA3, DIA2, DIA1, DIA0};
  wire [17:0] dib = {DIB17, DIB16, DIB15, DIB14, DIB13, DIB12, DIB11, DIB10, DIB9, DIB8, DIB7, DIB6, DIB5, DIB4, DIB3, DIB2, DIB1, DIB0};
  reg  [17:0] doa, dob;
  assign {DOA17, DOA16, DOA15, DOA14, DOA13, DOA12, DOA11, DOA10, DOA9, DOA8, DOA7, DOA6, DOA5, DOA4, DOA3, DOA2, DOA1, DOA0} = doa;
  assign {DOB17, DOB16, DOB15, DOB14, DOB13, DOB12, DOB11, DOB10, DOB9, DOB8, DOB7, DOB6, DOB5, DOB4, DOB3, DOB2, DOB1, DOB0} = dob;

  reg [17:0] mem[0:1023];
  integer w;
  initial if (LOADED != 0) for (w = 0; w < 1024; w = w + 1) mem[w] = INIT[20*w+:18];

  // place of a port's bit k in the 18 bits of its word: nine a byte where parity counts
  function integer place(input integer width, input [13:0] ad, input integer k);
    case (width)
      1:       place = (ad[3] ? 9 : 0) + ad[2:0];
      2:       place = (ad[3] ? 9 : 0) + {ad[2:1], 1'b0} + k;
      4:       place = (ad[3] ? 9 : 0) + {ad[2], 2'b0} + k;
      9:       place = (ad[3] ? 9 : 0) + k;
      default: place = k;
    endcase
  endfunction

  // a byte of an 18-bit port that is written
  function enabled(input integer width, input [13:0] ad, input integer k);
    enabled = (width == 18) ? ad[k/9] : 1'b1;
  endfunction

  // a word with unknown bits where the other port writes
  function [17:0] touched(input integer width, input [13:0] ad, input [17:0] word);
    integer k;
    begin
      touched = word;
      for (k = 0; k < width; k = k + 1) if (enabled(width, ad, k)) touched[place(width, ad, k)] = 1'bx;
    end
  endfunction

  localparam WA = (DATA_WIDTH_A == 36) ? 18 : DATA_WIDTH_A;
  localparam WB = (DATA_WIDTH_B == 36) ? 18 : DATA_WIDTH_B;
  wire [9:0] worda = ada[13:4];
  wire [9:0] wordb = adb[13:4];
  wire       on_a = CEA && !CSA0 && !CSA1 && !CSA2;
  wire       on_b = CEB && !CSB0 && !CSB1 && !CSB2;
  integer    i, j;
  reg [17:0] olda, oldb;

  generate
    if (DATA_WIDTH_A == 36) begin : g_pseudo_dual
      wire [9:1] same = worda[9:1];
      always @(posedge CLKB)
        if (on_b) begin
          {dob, doa} <= {mem[{wordb[9:1], 1'b1}], mem[{wordb[9:1], 1'b0}]};
          for (j = 0; j < 18; j = j + 1)
            if (on_a && WEA && same == wordb[9:1]) begin
              if (ada[j/9]) doa[j] <= 1'bx;
              if (ada[2+j/9]) dob[j] <= 1'bx;
            end
        end
      always @(posedge CLKA)
        if (on_a && WEA)
          for (i = 0; i < 18; i = i + 1) begin
            if (ada[i/9]) mem[{worda[9:1], 1'b0}][i] <= dia[i];
            if (ada[2+i/9]) mem[{worda[9:1], 1'b1}][i] <= dib[i];
          end
    end else begin : g_dual
      // the other port writes what this one reads
      wire clash = on_a && on_b && (WEA ^ WEB) && worda == wordb;
      always @(posedge CLKA)
        if (on_a) begin
          olda = (clash && WEB) ? touched(WB, adb, mem[worda]) : mem[worda];
          for (i = 0; i < WA; i = i + 1)
            if (!WEA || WRITEMODE_A == "READBEFOREWRITE") doa[i] <= olda[place(WA, ada, i)];
          if (WEA)
            for (i = 0; i < WA; i = i + 1)
              if (enabled(WA, ada, i)) mem[worda][place(WA, ada, i)] <= dia[i];
        end
      always @(posedge CLKB)
        if (on_b) begin
          oldb = (clash && WEA) ? touched(WA, ada, mem[wordb]) : mem[wordb];
          for (j = 0; j < WB; j = j + 1)
            if (!WEB || WRITEMODE_B == "READBEFOREWRITE") dob[j] <= oldb[place(WB, adb, j)];
          if (WEB)
            for (j = 0; j < WB; j = j + 1)
              if (enabled(WB, adb, j)) mem[wordb][place(WB, adb, j)] <= dib[j];
        end
    end
    if ((DATA_WIDTH_A == 36) != (DATA_WIDTH_B == 36)) begin : g_widths
      DP16KD_model_has_no_such_widths u_illegal ();
    end
    if (REGMODE_A != "NOREG" || REGMODE_B != "NOREG" || CLKAMUX != "CLKA" || CLKBMUX != "CLKB") begin : g_check
      DP16KD_model_has_no_such_mode u_illegal ();
    end
  endgenerate

  wire unused = &{1'b0, OCEA, OCEB, RSTA, RSTB};
endmodule

`resetall
