  // Properties of error_ctrl: a failure ends the run that it belongs to, and the host reads the first one
  // that takes effect (docs/programming.md section 3), regardless of their number.
  //
  // The solver tracks one arbitrary failed transfer. A model beside the module tracks its owner.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_run = 1'b0;  // a task-list run is active
  reg f_inf = 1'b0;  // parity of the current inference
  reg f_ended = 1'b0;  // an error ended the run in the previous cycle; f_over: its last inference ended
  reg f_over = 1'b0;
  wire f_clear = rst || flush || start;
  wire f_next = inf_over && go_on;
  wire f_data = bus_fault[`FAULT_CHAN] != LIST;
  wire f_now = fresh_owner[`OWNER_INF] == f_inf;

  // ---- failures since the last flush: data of the current inference and of the next one, a list and
  // whether it is that of the next one
  reg f_seen_now = 1'b0, f_seen_next = 1'b0, f_seen_list = 1'b0, f_list_ahead = 1'b0;
  wire f_fails_now = f_seen_now || (bus_err && f_data && f_now);
  wire f_fails_next = f_seen_next || (bus_err && f_data && !f_now);

  // ---- the tracked failure: whether its inference is ahead, whether it is the first one of that inference
  (* anyseq *) reg f_pick;
  reg f_had = 1'b0;
  reg f_was_ahead, f_was_first;
  reg [`FAULT_BITS-1:0] f_was_fault;
  wire f_have = f_had || (bus_err && f_pick);
  wire [`FAULT_BITS-1:0] f_fault = f_had ? f_was_fault : bus_fault;
  wire f_ahead = f_had ? f_was_ahead : !f_now;
  wire f_first = f_had ? f_was_first : !f_data ? !f_seen_list : f_now ? !f_seen_now : !f_seen_next;
  wire f_have_data = f_have && f_fault[`FAULT_CHAN] != LIST;
  wire f_had_list = f_had && f_was_fault[`FAULT_CHAN] == LIST;
  wire [`OWNER_BITS-1:0] f_was_owner = f_was_fault[`FAULT_OWNER];

  // ---- the first refusal: by the decoder, a changed layer, a failed list whose words are consumed
  localparam [1:0] F_NONE = 2'd0, F_DECODER = 2'd1, F_CHANGED = 2'd2, F_LIST = 2'd3;
  reg [1:0] f_why = F_NONE;
  reg [17:0] f_what;  // code and layer
  wire f_list_out = f_seen_list && list_empty && dec_waits;

  // ---- in the previous cycle: the words of a failed list were consumed; cause of the end of the run
  reg f_was_out = 1'b0;
  reg f_data_ends = 1'b0, f_refusal_ends = 1'b0, f_watchdog_ends = 1'b0;

  always @(posedge clk) begin
    f_run <= !rst && !flush && (start || (f_run && !(inf_over && !go_on)));
    f_inf <= !f_clear && (f_next ? !f_inf : f_inf && !inf_over);
    f_ended <= !rst && (trouble || refuse);
    f_over <= !rst && inf_over && !go_on;
    f_seen_now <= !f_clear && (f_next ? f_fails_next : f_fails_now && !inf_over);
    f_seen_next <= !f_clear && f_fails_next && !inf_over;
    f_seen_list <= !f_clear && (f_seen_list || (bus_err && !f_data));
    f_list_ahead <= f_seen_list ? f_list_ahead && !f_next : !f_now && !f_next;

    f_had <= !f_clear && f_have && !(inf_over && !go_on);
    f_was_fault <= f_fault;
    f_was_ahead <= f_ahead && !f_next;
    f_was_first <= f_first;

    f_why <= f_clear ? F_NONE : f_why != F_NONE ? f_why : list_changed ? F_CHANGED : dec_err ? F_DECODER :
        f_list_out ? F_LIST : F_NONE;
    if (f_why == F_NONE) begin
      f_what <= list_changed ? {`ERROR_LIST_CHANGED, list_changed_index} :
          dec_err ? {dec_err_code, dec_err_index} : {8'd0, list_index};
    end
    f_was_out <= !f_clear && f_had_list && f_list_out;
    f_data_ends <= !rst && !flush && f_have_data && !f_ahead && f_first;
    f_refusal_ends <= !rst && refuse && !f_fails_now;
    f_watchdog_ends <= !rst && !flush && stuck && !refuse && !f_fails_now;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: layer_runner flushes after an error, and at the end of a run with prefetched data.
      if (f_ended || (f_over && (f_seen_next || f_seen_list || late || list_failed || refused)))
        flush_follows : assume (flush);
      //: A run starts while none is active, nothing is in flight and no refusal is pending.
      if (start) start_when_free : assume (!f_run && !flush && !f_over && !bus_err && !dec_err && !list_changed &&
          !refused && !inf_over && !stuck);
      //: A list and prefetched data belong to a run.
      if (bus_err && (!f_data || !f_now)) of_a_run : assume (f_run);
      //: An inference ends within a run, and only if no layers of its list are missing.
      if (inf_over) whole_list : assume (f_run && !(f_seen_list && !f_list_ahead) && !(bus_err && !f_data && f_now));
      //: A failure of the current inference's data ends the run at once, regardless of its time and of other failures.
      if (f_have_data && !f_ahead && !flush) data_end : assert (trouble);
      //: A failed list ends the run as soon as its words are consumed and the earlier layers are done.
      if (f_had_list && f_why != F_NONE && drained && !flush) list_ends : assert (refuse);
      //: Nothing else delays it: a failed list whose words are consumed is a refusal in the next cycle.
      if (f_was_out && !flush) list_counts : assert (refused);
      //: The host reads the first failure of the current inference, with its address, stream, layer and code.
      if (f_data_ends) data_read : assert (error && err[`ERR_CODE] == (f_was_fault[`FAULT_REFUSED] ?
          `ERROR_BAD_ACCESS : `ERROR_BUS_ERROR) &&
          err[`ERR_ADDR] == f_was_fault[`FAULT_ADDR] && err[`ERR_STREAM] == f_was_fault[`FAULT_CHAN] &&
          err[`ERR_LAYER] == f_was_owner[`OWNER_LAYER] && err[`ERR_WAITS] == 0);
      //: Of several refusals the host reads the first one, with its layer; a refusal has priority over the watchdog.
      if (f_refusal_ends && f_why != F_LIST) refusal_read : assert (error && {err[`ERR_CODE], err[`ERR_LAYER]} ==
          f_what && err[`ERR_ADDR] == 0 &&
          err[`ERR_STREAM] == LIST && err[`ERR_WAITS] == 0);
      //: For a failed list the host reads the first missing layer.
      if (f_refusal_ends && f_why == F_LIST) lacks_read : assert (error && err[`ERR_LAYER] == f_what[9:0] &&
          err[`ERR_STREAM] == LIST &&
          err[`ERR_WAITS] == 0);
      if (f_refusal_ends && f_why == F_LIST && f_had_list && f_was_first) begin
        //: The address and code are those of the first failure of the list.
        list_read : assert (err[`ERR_CODE] == (f_was_fault[`FAULT_REFUSED] ? `ERROR_BAD_ACCESS : `ERROR_BUS_ERROR) &&
            err[`ERR_ADDR] == f_was_fault[`FAULT_ADDR]);
      end
      //: The host reads an error of the watchdog when nothing else takes effect.
      if (f_watchdog_ends) watchdog_read : assert (error && err[`ERR_CODE] == `ERROR_WATCHDOG);
      //: trouble is asserted only for a cause since the last flush.
      if (trouble) reason : assert (stuck || f_fails_now);
      //: refuse is asserted only for a cause since the last flush.
      if (refuse) refusal_reason : assert (f_why != F_NONE && drained);
      //: The end of a run is reported once.
      once : assert (error == f_ended && !(f_ended && (trouble || refuse)));
      //: (invariant) The recorded failures match the model.
      if (!flush) recorded : assert (inf_now == f_inf && (f_over || late == (f_seen_next || f_seen_now)) &&
          list_failed == f_seen_list &&
          refused == (f_why != F_NONE) && (f_why != F_LIST || f_seen_list) && (f_run || f_over || !(f_inf || late ||
              list_failed)) && !(f_seen_next && f_seen_now));
      //: (invariant) The owner of the held failure matches the model.
      if (!flush && late && !f_over) whose : assert ((late_owner[`OWNER_INF] != inf_now) == f_seen_next);
      //: (invariant) The tracked failure, or an earlier one of the same inference, is recorded.
      if (!flush && f_had && !f_had_list) followed : assert (late && f_was_ahead == f_seen_next && (!f_was_first ||
          late_fault == f_was_fault));
      //: (invariant) The tracked failure of a list is recorded likewise.
      if (!flush && f_had_list) followed_list : assert (list_failed && (!f_was_first || (f_why != F_NONE &&
          f_why != F_LIST) || (bad_addr == f_was_fault[`FAULT_ADDR] &&
          bad_code == (f_was_fault[`FAULT_REFUSED] ? `ERROR_BAD_ACCESS : `ERROR_BUS_ERROR))));
      //: (invariant) The recorded refusal is the first one.
      if (!flush && f_why != F_NONE) first_refusal : assert (bad_index == f_what[9:0] && (f_why == F_LIST ||
          (bad_code == f_what[17:10] && bad_addr == 0)));
      //: The data of a layer and a later part of the list failed; the data end the run.
      both : cover (f_ended && error && f_data_ends && f_was_ahead == 0 && list_failed);
    end
    //: A failed list and a held failure of prefetched data are pending together.
    two_wait : cover (!rst && !flush && late && list_failed && late_now && refused);
  end
