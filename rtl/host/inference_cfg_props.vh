  // Properties of inference_cfg. One register is tracked, any one, beside what the host wrote to it.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [9:0] f_word;
  reg f_began = 1'b0;
  reg [9:0] f_at;  // the word that is accessed
  reg [31:0] f_value;  // what the host wrote last, 0 after the reset
  reg f_moved = 1'b0;  // the device may have moved the register on since
  // registers that the device moves on: at a change of inference, the mode at a start too
  wire f_moves = f_word == `REG_AI_CNN_MODE || f_word == `REG_AI_PIX_ADR || f_word == `REG_AI_NPIX_ADR ||
      f_word == `REG_AI_RES_ADR || f_word == `REG_AI_INF_LEFT || f_word == `REG_AI_TAKEN_ADR;
  wire [31:0] f_bits = f_word == `REG_AI_CNN_MODE ? 32'd3 : f_word == `REG_AI_LIST_LEN ? 32'h3FF : 32'hFFFFFFFF;
  wire f_taken = wr && f_at == f_word && !refused && f_word != `REG_AI_TAKEN_ADR;
  reg f_stopping;  // the run is to end
  reg f_still;  // no start and no change of inference in the cycle before
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
      //: A register reads as what was written to it, reserved bits as 0, until the device moves it on.
      if (f_at == f_word && hit && !f_moved) reads_back : assert (rdata == f_value);
      //: Reserved bits read as 0, always.
      if (f_at == f_word) reserved_zero : assert ((rdata & ~f_bits) == 0);
      //: Addresses of other registers read as 0.
      if (!hit) others_zero : assert (rdata == 0);
      //: What the inference at work uses changes at a start and at a change of inference only.
      if (f_still) run_stands : assert (cfg[`CFG_EIGHT_BIT:0] == f_cfg[`CFG_EIGHT_BIT:0]);
      //: A start takes the tables and the list over as they stand.
      if (f_accept && !f_inf_next) start_takes : assert (cfg[`CFG_RES_ADR] == f_res);
      //: The next result goes behind the last one by the stride, or to where the host said.
      if (f_inf_next) next_result : assert (cfg[`CFG_RES_ADR] == (f_res_own ? f_res : f_res + f_res_stride));
      //: Another inference follows in mode 2 while some are left and no stop was written.
      another : assert (cfg[`CFG_MORE] == (mode == 2 && inf_left != 0 && !f_stopping));
      //: A misaligned result address or stride is refused while the device is occupied.
      refusal : assert (refused == (wr && occupied && (f_at == `REG_AI_RES_ADR || f_at == `REG_AI_RES_STRIDE) &&
          wdata[OW-1:0] != 0));
      //: A start is possible only with a mode, a list, and aligned results.
      if (possible) start_legal : assert (mode != 0 && list_len != 0 && res[OW-1:0] == 0 && res_stride[OW-1:0] == 0);
      //: (invariant) The decode is that of the address of the cycle before.
      decode : assert ({hit, at_taken, at_mode, at_res_stride, at_pix_stride, at_left, at_res, at_len, at_list, at_bias,
          at_wgt, at_npix, at_pix} == {f_at == `REG_AI_CNN_MODE || f_at == `REG_AI_TAKEN_ADR ||
          (f_at >= `REG_AI_PIX_ADR && f_at <= `REG_AI_RES_STRIDE), f_at == `REG_AI_TAKEN_ADR, f_at == `REG_AI_CNN_MODE,
          f_at == `REG_AI_RES_STRIDE, f_at == `REG_AI_PIX_STRIDE, f_at == `REG_AI_INF_LEFT, f_at == `REG_AI_RES_ADR,
          f_at == `REG_AI_LIST_LEN, f_at == `REG_AI_LIST_ADR, f_at == `REG_AI_BIAS_ADR, f_at == `REG_AI_WGT_ADR,
          f_at == `REG_AI_NPIX_ADR, f_at == `REG_AI_PIX_ADR});
      //: (invariant) The tracked register holds what was written until the device moves it on.
      model : assert (f_moved || f_value == f_now);
      //: (invariant) What is known of a list's length and of the inferences left.
      flags : assert (listed == (list_len != 0) && some_left == (inf_left != 0));
      //: A result address of the host's is used for the next inference.
      own_result : cover (f_inf_next && f_res_own);
    end
  end
