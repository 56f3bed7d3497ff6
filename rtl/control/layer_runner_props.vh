  // Properties of layer_runner: every layer ends as soon as the surrounding units respond, and is reported
  // once.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg f_on = 1'b0;  // a layer was begun and not ended
  reg [2:0] f_same = 3'd0;  // cycles in one state with its condition met
  reg [3:0] f_was;
  reg f_seq_over = 1'b0;
  reg f_pop = 1'b0;
  // the condition of the current state, if it has one, is met
  wire f_answered = (state == PIXELS) ? pix_ready :
      (state == RUN) ? f_seq_over && core_idle && !pix_loading :
      (state == OUT_WAIT) ? unload_done || unload_over : (state == INF_END) ? committed || !more :
      (state == FLUSH) ? dma_idle : (state == IDLE) ? q_valid && !q_pop : 1'b1;
  always @(posedge clk) begin
    f_was <= state;
    f_same <= (rst || abort || state != f_was || !f_answered) ? 3'd0 : f_same + 3'd1;
    f_on <= !rst && !(abort && state != LAYER_END) && (run_start || (f_on && !layer_done));
    f_seq_over <= !rst && state == RUN && (f_seq_over || seq_done);
    f_pop <= !rst && q_pop;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The layer at the head is held until it is popped.
      if (state != IDLE && state != FLUSH) head_stands : assume (q_valid);
      //: No deadlock: with its condition met, no state lasts more than three cycles.
      no_deadlock : assert (f_same <= 3);
      //: The state is legal.
      legal_state : assert (state <= FLUSH && flush == (state == FLUSH));
      //: A layer is reported as done, and popped, once and only after it was begun.
      if (layer_done) done_once : assert (f_on && q_pop);
      //: No layer starts while one runs.
      if (run_start) one_at_a_time : assert (!f_on || layer_done);
      //: A layer is popped in a single cycle.
      if (f_pop) pop_once : assert (!q_pop);
      //: An unload begins only for a layer that was begun.
      if (unload_start) unload_of_layer : assert (f_on || run_start);
      //: (invariant) A layer is active from its start to its end.
      running : assert (f_on == (state == RUN || state == OUT || state == OUT_WAIT || state == LAYER_END ||
          layer_done));
      //: (invariant) seq_done is latched, and a layer is popped when it is reported as done.
      seq : assert (f_seq_over == seq_over && q_pop == layer_done && (!layer_done || state == IDLE || state ==
          INF_END || state == FLUSH));
      //: An inference ends and the next one begins.
      next_inference : cover (inf_next);
      //: A run ends with a flush of the prefetched data.
      flushed : cover (f_was == FLUSH && state == IDLE);
    end
  end
