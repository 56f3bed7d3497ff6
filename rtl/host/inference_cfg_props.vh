  // Properties of inference_cfg. One arbitrary register is compared with a model of the host's writes.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [9:0] f_word;
  reg f_began = 1'b0;
  reg [9:0] f_at;  // address of the access
  reg [31:0] f_value;  // last value written by the host, 0 after the reset
  reg f_moved = 1'b0;  // the device may have advanced the register since
  // registers that the device advances: at a change of inference, the mode also at a start
  wire f_moves = f_word == `REG_AI_CNN_MODE || f_word == `REG_AI_PIX_ADR || f_word == `REG_AI_NPIX_ADR ||
      f_word == `REG_AI_RES_ADR || f_word == `REG_AI_INF_LEFT || f_word == `REG_AI_TAKEN_ADR;
  wire [31:0] f_bits = f_word == `REG_AI_CNN_MODE ? 32'd3 : f_word == `REG_AI_LIST_LEN ? 32'h3FF : 32'hFFFFFFFF;
  wire f_taken = wr && f_at == f_word && !refused && f_word != `REG_AI_TAKEN_ADR;
  reg f_stopping;  // the run ends after the current inference
  reg f_still;  // no start and no change of inference in the previous cycle
  reg [`CFG_BITS-1:0] f_cfg;
  reg [31:0] f_watchdog;
  reg f_inf_next, f_accept, f_wr_res, f_res_own;
  reg [31:0] f_res, f_res_stride;
  always @(posedge clk) begin
    f_began <= f_began || rst;
    f_at <= next;
    f_still <= !rst && !accept && !inf_next && !npix_take;
    f_stopping <= stopping;
    f_cfg <= cfg;
    f_inf_next <= !rst && inf_next;
    f_accept <= !rst && accept;
    f_wr_res <= wr_res;
    f_res_own <= res_own;
    f_res <= res;
    f_res_stride <= res_stride;
    if (rst) {f_moved, f_value} <= 33'd0;
    else if (f_taken) {f_moved, f_value} <= {1'b0, wdata & f_bits};
    else if (f_moves && (accept || inf_next || npix_take)) f_moved <= 1'b1;
  end

  wire [31:0] f_now = f_word == `REG_AI_CNN_MODE ? mode : f_word == `REG_AI_PIX_ADR ? pix :
      f_word == `REG_AI_NPIX_ADR ? npix : f_word == `REG_AI_WGT_ADR ? wgt : f_word == `REG_AI_BIAS_ADR ? bias :
      f_word == `REG_AI_LIST_ADR ? list : f_word == `REG_AI_LIST_LEN ? list_len : f_word == `REG_AI_RES_ADR ? res :
      f_word == `REG_AI_INF_LEFT ? inf_left : f_word == `REG_AI_PIX_STRIDE ? pix_stride :
      f_word == `REG_AI_RES_STRIDE ? res_stride : f_word == `REG_AI_TAKEN_ADR ? taken : f_value;

  always @(posedge clk) begin
    if (f_began && !rst) begin
      //: A register reads back the value written, reserved bits as 0, until the device advances it.
      if (f_at == f_word && hit && !f_moved) reads_back : assert (rdata == f_value);
      //: Reserved bits always read as 0.
      if (f_at == f_word) reserved_zero : assert ((rdata & ~f_bits) == 0);
      //: Addresses of other registers read as 0.
      if (!hit) others_zero : assert (rdata == 0);
      //: The configuration of the current inference changes only at a start and at a change of inference.
      if (f_still) run_stands : assert (cfg[`CFG_EIGHT_BIT:0] == f_cfg[`CFG_EIGHT_BIT:0]);
      //: A start latches the configuration as it stands.
      if (f_accept && !f_inf_next) start_takes : assert (cfg[`CFG_RES_ADR] == f_res);
      //: The next result address is the last one plus the stride, or the one that the host wrote.
      if (f_inf_next) next_result : assert (cfg[`CFG_RES_ADR] == (f_res_own ? f_res : f_res + f_res_stride));
      //: Another inference follows in mode 2 while AI_INF_LEFT is not 0 and no stop was written.
      another : assert (cfg[`CFG_MORE] == (mode == 2 && inf_left != 0 && !f_stopping));
      //: A misaligned result address or stride is refused while the device is occupied.
      refusal : assert (refused == (wr && occupied && (f_at == `REG_AI_RES_ADR || f_at == `REG_AI_RES_STRIDE) &&
          wdata[OW-1:0] != 0));
      //: A start is possible only with a mode, a list, and aligned results.
      if (possible) start_legal : assert (mode != 0 && list_len != 0 && res[OW-1:0] == 0 && res_stride[OW-1:0] == 0);
      //: (invariant) The decode matches the address of the previous cycle.
      decode : assert ({hit, at_taken, at_mode, at_res_stride, at_pix_stride, at_left, at_res, at_len, at_list, at_bias,
          at_wgt, at_npix, at_pix} == {f_at == `REG_AI_CNN_MODE || f_at == `REG_AI_TAKEN_ADR ||
          (f_at >= `REG_AI_PIX_ADR && f_at <= `REG_AI_RES_STRIDE), f_at == `REG_AI_TAKEN_ADR, f_at == `REG_AI_CNN_MODE,
          f_at == `REG_AI_RES_STRIDE, f_at == `REG_AI_PIX_STRIDE, f_at == `REG_AI_INF_LEFT, f_at == `REG_AI_RES_ADR,
          f_at == `REG_AI_LIST_LEN, f_at == `REG_AI_LIST_ADR, f_at == `REG_AI_BIAS_ADR, f_at == `REG_AI_WGT_ADR,
          f_at == `REG_AI_NPIX_ADR, f_at == `REG_AI_PIX_ADR});
      //: (invariant) The tracked register holds the value written until the device advances it.
      model : assert (f_moved || f_value == f_now);
      //: (invariant) The flags match the length of the list and the number of remaining inferences.
      flags : assert (listed == (list_len != 0) && some_left == (inf_left != 0));
      //: A result address written by the host is used for the next inference.
      own_result : cover (f_inf_next && f_res_own);
    end
  end
