  // Properties of fetch_ctrl: the requests of a layer, and their completion.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_began = 1'b0;  // a layer was accepted
  reg [`DESC_BITS-1:0] f_desc;
  reg f_reuse;
  reg [6:0] f_loads = 7'd0;  // accepted weight requests
  reg [1:0] f_bias = 2'd0;  // accepted bias requests
  reg [32:0] f_place;  // address of the next load
  reg [5:0] f_waits = 6'd0;  // cycles without progress while the channels accept requests
  reg f_asked_weight = 1'b0, f_asked_bias = 1'b0;  // a request was asserted and not accepted
  reg [`REQ_BITS-1:0] f_weight_req, f_bias_req;
  wire f_weight_taken = weight_req_valid && weight_req_ready && !start;
  wire f_bias_taken = bias_req_valid && bias_req_ready && !start;
  always @(posedge clk) begin
    f_began <= !rst && (start || f_began);
    if (start) begin
      f_desc  <= desc;
      f_reuse <= reuse;
      f_place <= desc[`DESC_WADDR];
    end else if (f_weight_taken) f_place <= f_place + f_desc[`DESC_PSIZE];
    f_loads <= (rst || start) ? 7'd0 : f_loads + f_weight_taken;
    f_bias <= (rst || start) ? 2'd0 : f_bias + f_bias_taken;
    f_asked_weight <= !rst && weight_req_valid && !weight_req_ready;
    f_asked_bias <= !rst && bias_req_valid && !bias_req_ready;
    f_weight_req <= weight_req;
    f_bias_req <= bias_req;
    f_waits <= (rst || start || !busy || f_weight_taken || f_bias_taken ||
                !(weight_quiet && bias_quiet && weight_req_ready && bias_req_ready)) ? 6'd0 : f_waits + 6'd1;
  end
  wire [6:0] f_all = (f_reuse || f_desc[`DESC_POOLS]) ? 7'd0 : f_desc[`DESC_LOADS];
  wire [1:0] f_all_bias = (f_desc[`DESC_POOLS] || f_desc[`DESC_FP16]) ? 2'd0 : f_reuse ? 2'd1 : 2'd2;

  always @(posedge clk) begin
    if (!rst) begin
      //: A layer starts while none is in progress, and has 1 to 64 weight loads.
      if (start) start_legal : assume (!busy && desc[`DESC_LOADS] >= 1 && desc[`DESC_LOADS] <= 64);
      //: Load n is requested at n times para_size, beyond the address space if that is its place, with the length
      //: of a full or the last load.
      if (weight_req_valid) weight_request : assert (f_loads < f_all && weight_req[`REQ_ADDR] == f_place[31:0] &&
          weight_req[`REQ_BEYOND] == f_place[32] &&
          weight_req[`REQ_LEN] == (f_loads == f_all - 1 ? f_desc[`DESC_WLAST] : f_desc[`DESC_WLEN]) &&
          weight_req[`REQ_OWNER] == {f_desc[`DESC_INF], f_desc[`DESC_IDX]});
      //: The activation table is requested first, then the batch-norm words unless they are kept.
      if (bias_req_valid) bias_request : assert (f_bias < f_all_bias &&
          bias_req[`REQ_ADDR] == (f_bias == 0 ? f_desc[`DESC_AADDR] : f_desc[`DESC_BADDR]) &&
          bias_req[`REQ_LEN] == (f_bias == 0 ? 24'd144 : 24'd8 * f_desc[`DESC_O]));
      //: A finished layer has requested all its loads and tables once, a pooling task none, a product of float16
      //: no tables.
      if (f_began && !busy) all_asked : assert (f_loads == f_all && f_bias == f_all_bias);
      //: A weight request is held until it is accepted.
      if (f_asked_weight) weight_stands : assert (weight_req_valid && weight_req == f_weight_req);
      //: A bias request is held until it is accepted.
      if (f_asked_bias) bias_stands : assert (bias_req_valid && bias_req == f_bias_req);
      //: The first layer of an inference waits until all reads of the previous one are issued.
      if (f_began && first) boundary_first : assert (!weight_req_valid && !bias_req_valid && f_loads == 0);
      //: No deadlock: while the channels accept requests, a layer advances within two cycles.
      no_deadlock : assert (f_waits <= 2);
      //: (invariant) Remaining loads and pending requests match the model.
      state : assert (!f_began || ((weight_req_valid ? loads_left == f_desc[`DESC_LOADS] - f_loads :
          (first || f_loads == f_all)) && (first || bias_req_valid || f_bias == f_all_bias) &&
          (!first || (after && f_bias == 0 && !bn_next && f_loads == 0 && loads_left == f_desc[`DESC_LOADS])) &&
          skip == f_reuse && none == f_desc[`DESC_POOLS] && bare == f_desc[`DESC_FP16] && f_desc[`DESC_LOADS] >= 1 &&
              f_desc[`DESC_LOADS] <= 64 && f_loads <= f_all &&
          (!weight_req_valid || f_loads < f_all) && (!bias_req_valid || f_bias < f_all_bias) && (!bias_req_valid ||
              bn_next == (f_bias == 1)) && weight_addr == f_place && f_bias <= 2 &&
          psize == f_desc[`DESC_PSIZE] && wlen == f_desc[`DESC_WLEN] && wlast == f_desc[`DESC_WLAST] &&
          act_addr == f_desc[`DESC_AADDR] && bn_addr == f_desc[`DESC_BADDR] && n_o == f_desc[`DESC_O] &&
          owner == {f_desc[`DESC_INF], f_desc[`DESC_IDX]}));
      //: (invariant) Nothing is requested before the first layer.
      if (!f_began) rests : assert (!busy && !first);
      //: The first layer of an inference requests three loads and both tables.
      three_loads : cover (f_began && !busy && f_loads == 3 && f_desc[`DESC_FIRST]);
    end
  end
