  // Properties of dispatcher: every layer reaches each of its consumers once, without deadlock.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_fetch = 1'b0, f_weight = 1'b0, f_param = 1'b0, f_queue = 1'b0;  // consumers with the current layer
  reg [2:0] f_waits = 3'd0;  // cycles with a layer and every consumer free
  reg [4:0] f_queued = 5'd0;  // layers in the queue
  reg f_pools, f_fp16;  // the current layer is a pooling task, a product of float16
  wire f_some = fetch_taken || weight_taken || param_taken || queue_taken;
  wire f_free = !fetch_busy && !weight_load_busy && !param_load_busy && q_ready;
  always @(posedge clk) begin
    if (rst || flush || given) begin
      {f_fetch, f_weight, f_param, f_queue} <= 4'd0;
    end else begin
      f_fetch  <= f_fetch || fetch_start;
      f_weight <= f_weight || weight_load_start;
      f_param  <= f_param || param_load_start;
      f_queue  <= f_queue || (give_queue && q_ready);
    end
    f_queued <= (rst || flush) ? 5'd0 : f_queued + give_queue - (q_valid && q_pop);
    {f_pools, f_fp16} <= {d_desc[`DESC_POOLS], d_desc[`DESC_FP16]};
    f_waits <= (rst || flush || !d_valid || given || !f_free) ? 3'd0 : f_waits + 3'd1;
  end

  always @(posedge clk) begin
    if (!rst && !flush) begin
      //: A layer is held until all consumers have accepted it.
      if (f_some) layer_stands : assume (d_valid && d_desc[`DESC_POOLS] == f_pools && d_desc[`DESC_FP16] == f_fp16);
      //: No consumer receives a layer twice.
      once : assert (!(fetch_start && f_fetch) && !(weight_load_start && f_weight) &&
          !(param_load_start && f_param) && !(give_queue && f_queue));
      //: A pooling task goes to no loader, a product of float16 not to the parameter loader.
      if (d_desc[`DESC_POOLS] || d_desc[`DESC_FP16]) no_tables : assert (!param_load_start && !f_param &&
          !(weight_load_start && d_desc[`DESC_POOLS]));
      //: A layer retires only when each consumer has accepted it, except the weight loader if weights are kept.
      if (given) by_all : assert ((f_fetch || fetch_start) &&
          (f_param || param_load_start || d_desc[`DESC_POOLS] || d_desc[`DESC_FP16]) &&
          (f_queue || give_queue) &&
          (f_weight || weight_load_start || reuse || weight_taken || d_desc[`DESC_POOLS]));
      //: No consumer receives a layer while busy, or when there is none.
      not_busy : assert (!(fetch_start && fetch_busy) && !(weight_load_start && weight_load_busy) &&
          !(param_load_start && param_load_busy) &&
          (d_valid || !(fetch_start || weight_load_start || param_load_start || give_queue)));
      //: A layer is in the queue from its entry to its pop, and then waits is high: also where it is on its way from
      //: the memory to the registers.
      layers_wait : assert (waits == (d_valid || f_queued != 0));
      //: No deadlock: a layer advances in the cycle in which every consumer is free.
      no_deadlock : assert (f_waits == 0);
      //: (invariant) The flags show which consumers have accepted the layer.
      takers : assert (f_fetch == fetch_taken && f_param == (param_taken && !d_desc[`DESC_POOLS] &&
          !d_desc[`DESC_FP16]) && f_queue == queue_taken &&
          (!f_weight || weight_taken));
      //: Four layers wait for the array.
      four_ahead : cover (!q_ready && q_valid);
    end
  end
