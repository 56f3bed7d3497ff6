  // Properties of control: while the environment responds promptly, an occupied device makes progress.
  //
  // layer_decode and list_check are cut away. Their outputs are free within the assumptions below: a layer
  // has two or more words and is processed for 3 to 4 cycles.
  // cycles; from a layer's last word to the first request of a map that it loads
  localparam [4:0] F_BOUND = 5'd17;
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  // ---- the decoder: collects words, processes a layer, offers or refuses it
  localparam [1:0] F_WORDS = 2'd0, F_WORK = 2'd1, F_OFFER = 2'd2;
  reg [1:0] f_dec = F_WORDS;
  reg [2:0] f_worked = 3'd0;
  reg f_part = 1'b0;  // words of an unfinished layer were popped
  reg f_err = 1'b0;
  reg f_first, f_last, f_inf;
  reg [9:0] f_idx;
  reg [`DESC_BITS-1:0] f_load_desc;
  (* anyseq *) reg f_bad;  // the layer is refused
  (* anyseq *) reg f_slow;
  (* anyconst *) reg [9:0] f_len;
  wire f_dec_rst = rst || flush || list_changed;
  wire f_take = dec_word_valid && dec_word_ready;
  wire f_over = f_dec == F_WORK && (f_worked == 3 || (f_worked == 2 && !f_slow));
  always @(posedge clk) begin
    f_load_desc <= load_desc;
    f_worked <= (f_dec == F_WORK) ? f_worked + 3'd1 : 3'd0;
    f_err <= !f_dec_rst && f_over && f_bad;
    f_part <= !f_dec_rst && !(arg_flush && !list_mode) && !collected && (f_take || f_part);
    f_dec <= f_dec_rst ? F_WORDS : collected ? F_WORK : f_over ? (f_bad ? F_WORDS : F_OFFER) :
        (d_valid && d_ready) ? F_WORDS : f_dec;
    if (collected) begin
      f_first <= list_mode && list_index == 10'd0;
      f_last <= list_mode && list_last;
      f_inf <= list_mode && list_parity;
      f_idx <= list_mode ? list_index : host_index;
    end
  end

  // ---- cycles for which a response of the environment is outstanding
  reg f_list_failed = 1'b0;
  // data of the inference of either parity failed: its requests need no response
  reg [1:0] f_data_failed = 2'd0;
  reg f_inf_now = 1'b0;
  wire [`OWNER_BITS-1:0] f_fault_owner = bus_fault[`FAULT_OWNER];
  wire f_starves = f_data_failed[f_inf_now];
  // words of the list may arrive after its failure: they were in flight
  reg f_come = 1'b0;
  reg f_loading = 1'b0;
  (* hierconn *) wire \u_words.list_word_valid ;
  wire f_list_wants = list_mode && dec_word_ready && !\u_words.list_word_valid ;
  reg f_seq_due = 1'b0, f_unload_due = 1'b0;
  reg [10:0] f_owed = 11'd0;
  reg [10:0] f_owes_q = 11'd0;
  wire [10:0] f_owes = {
    // words in flight when the list failed
    f_list_failed && traffic[`TRAFFIC_READING],
    // a beat of the list; a request of each channel; issued reads
    f_list_wants && !list_valid && !f_list_failed,
    list_req_valid && !list_req_ready,
    ((weight_req_valid && !weight_req_ready) || (bias_req_valid && !bias_req_ready)) && !f_starves,
    (!traffic[`TRAFFIC_WEIGHT_QUIET] || !traffic[`TRAFFIC_BIAS_QUIET]) && !f_starves,
    pixel_req_valid && !pixel_req_ready && !f_starves,
    // a map is loaded, a layer computed, a map unloaded
    f_loading && !load_done && !f_starves,
    runs && !((f_seq_due == 1'b0 || seq_done) && core_idle) && !f_starves,
    f_unload_due && !unload_done && !f_starves,
    // loaders; the DMAC becomes idle in a flush
    (weight_load_busy || param_load_busy) && !f_starves,
    flush && !traffic[`TRAFFIC_IDLE]
  };
  // ... of the host: words of an unfinished layer, a pending start or reset
  reg [1:0] f_owed_host = 2'd0;
  wire f_owes_host = !list_mode && !flush && ((f_part && !arg_valid) || host[`HOST_PENDING]);
  always @(posedge clk) begin
    f_list_failed <= !rst && !flush && !start &&
        (f_list_failed || (bus_err && bus_fault[`FAULT_CHAN] == 3'd0));
    f_inf_now <= !rst && !flush && !start && (inf_over ? go_on && !f_inf_now : f_inf_now);
    f_data_failed <= (rst || flush || start) ? 2'd0 : (bus_err && bus_fault[`FAULT_CHAN] != 3'd0) ?
        f_data_failed | (2'd1 << f_fault_owner[`OWNER_INF]) : f_data_failed;
    f_come <= traffic[`TRAFFIC_READING] || (list_valid && !list_ready);
    f_loading <= !rst && !flush && (load_start || (f_loading && !load_done));
    f_seq_due <= !rst && !flush && (run_start || (f_seq_due && !seq_done));
    f_unload_due <= !rst && !flush && (unload_start || (f_unload_due && !unload_done));
    f_owes_q <= rst ? 11'd0 : f_owes;
    f_owed <= rst ? 11'd0 : f_owes & f_owes_q;
    f_owed_host <= (rst || !f_owes_host) ? 2'd0 : f_owed_host + !(&f_owed_host);
  end

  // ---- cycles without progress of an occupied device
  reg f_was_flush = 1'b0, f_was_list = 1'b0, f_was_refused = 1'b0;
  reg [4:0] f_still = 5'd0;
  reg [1:0] f_inferences = 2'd0;
  wire f_moves = (list_req_valid && list_req_ready) || f_take || (weight_req_valid && weight_req_ready) ||
      (bias_req_valid && bias_req_ready) || (pixel_req_valid && pixel_req_ready) || load_done || run_start ||
          seq_done ||
      unload_start || unload_done || layer_done || error || start || soft_reset || (arg_valid && arg_ready) ||
      flush != f_was_flush || list_mode != f_was_list;
  always @(posedge clk) begin
    f_was_flush <= !rst && flush;
    f_was_list <= !rst && list_mode;
    f_still <= (rst || !busy || f_moves) ? 5'd0 : f_still + !(&f_still);
    f_inferences <= (rst || start) ? 2'd0 : f_inferences + (inf_over && !(&f_inferences));
  end

  // ---- the input map of a run: that of its first layer, the same in every inference (mode and depthwise
  // replace the flag for loads by lines)
  wire [`SHAPE_BITS+1:0] f_map = {
    load_desc[`DESC_MODE], load_desc[`DESC_DW], load_desc[`DESC_C], load_desc[`DESC_W], load_desc[`DESC_H],
    load_desc[`DESC_SRC], load_desc[`DESC_IRL], load_desc[`DESC_ICS], load_desc[`DESC_INB]
  };
  reg f_mapped = 1'b0;
  reg [`SHAPE_BITS+1:0] f_first_map;
  always @(posedge clk) begin
    f_mapped <= !rst && !start && !flush && (f_mapped || (d_valid && load_desc[`DESC_FIRST]));
    if (!f_mapped) f_first_map <= f_map;
  end

  reg f_was_arg = 1'b0;
  always @(posedge clk) f_was_arg <= !rst && arg_valid && !arg_ready && !soft_reset && !start;

  always @(posedge clk) begin
    if (!rst) begin
      //: The decoder accepts words until it has a layer, then it offers or refuses it.
      decoder : assume (dec_word_ready == (f_dec == F_WORDS) && (!collected || (f_take && f_part)) && d_valid ==
          (f_dec == F_OFFER) &&
          dec_err == f_err && dec_idle == (f_dec == F_WORDS && !f_part));
      //: A layer's flags match its position in the list; it is stable while it is offered.
      if (d_valid) marks : assume (load_desc[`DESC_FIRST] == f_first && load_desc[`DESC_LAST] == f_last &&
          load_desc[`DESC_INF] == f_inf && load_desc[`DESC_IDX] == f_idx && load_desc[`DESC_LOADS] == 1 &&
          (f_worked != 0 || load_desc == f_load_desc));
      //: A map has channels, columns and one to three lines, which are added up one bit per cycle; all first
      //: layers of a run have the same one, since a changed list is refused.
      if (d_valid) maps : assume (load_desc[`DESC_C] != 0 && load_desc[`DESC_W] != 0 && load_desc[`DESC_H] != 0 &&
          load_desc[`DESC_H] < 4 &&
          (!load_desc[`DESC_FIRST] || !f_mapped || f_map == f_first_map));
      //: Only a 1x1 layer has more than 1024 channels, up to 9216: layer_decode refuses others.
      if (d_valid) chans : assume (load_desc[`DESC_C] <= ((load_desc[`DESC_MODE] == `MODE_CHAN) ? 9216 : 1024));
      //: A list may be reported as changed two cycles after a layer of it was collected.
      if (list_changed) changed_when : assume (list_mode && f_dec == F_WORK && f_worked == 1);
      //: A list has one or two layers; whether another inference follows may change at any time. The watchdog is off.
      configuration : assume (cfg[`CFG_LIST_LEN] == f_len && f_len >= 1 && f_len <= 2 && cfg[`CFG_WATCHDOG] == 0);
      //: A run starts while no work is in progress; words of the host wait meanwhile.
      if (start) start_when_free : assume (!list_mode && idle && !q_pop && dec_idle && !layers_move &&
          !dec_err && !refused && !flush && host[`HOST_PENDING] && !soft_reset);
      //: Words of the host are held until they are popped; only a start or a reset discards them.
      host_words : assume ((!f_was_arg || arg_valid) && (!arg_flush || start || soft_reset));
      //: Beats of the list are whole bus words of a requested list; after a failure only those in flight arrive.
      list_beats : assume (list_beat[`BEAT_OFF] == 0 && list_beat[`BEAT_CNT] == AHB_W / 8 &&
          (!list_valid || (list_mode && (!f_list_failed || f_come))));
      //: Responses arrive only for outstanding requests.
      answers : assume ((!load_done || f_loading) && (!seq_done || f_seq_due) && (!unload_done || f_unload_due));
      //: A read of the list fails only while a word is awaited, and once until a flush.
      if (bus_err && bus_fault[`FAULT_CHAN] == 3'd0) failed_list : assume (f_list_wants && !f_list_failed);
      if (bus_err && bus_fault[`FAULT_CHAN] != 3'd0) begin
        //: Failed data belong to the current inference, or to one whose list is requested.
        failed_data : assume (f_fault_owner[`OWNER_INF] == f_inf_now || (list_mode && committed));
      end
      //: The environment responds within two cycles.
      prompt : assume ((f_owed & f_owes) == 0);
      //: The host supplies the words of an unfinished layer, and completes a start or reset, within three cycles.
      prompt_host : assume (!f_owes_host || f_owed_host < 3);
      //: No deadlock: an occupied device stalls for a few cycles only.
      no_deadlock : assert (f_still < F_BOUND);
      //: A layer that runs or is popped is at the head of the queue; without a layer the head is all zeros.
      head : assert (q_valid || (!q_pop && !runs && desc == 0));
    end
    //: A stream continues with its next inference.
    second : cover (!rst && layer_done && f_inferences == 1);
    //: A refused layer ends a run.
    refusal : cover (!rst && refuse);
  end
