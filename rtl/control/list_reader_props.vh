  // Properties of list_reader: the distance by which it reads ahead, and the owner of a list.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  reg [1:0] f_begun = 2'd0;  // unfinished inferences whose list was due
  reg f_inf = 1'b0;  // parity of the current inference
  wire f_reading = list_due || list_req_valid || list_read;
  always @(posedge clk) begin
    f_begun <= (rst || flush) ? 2'd0 : start ? 2'd1 : f_begun + {1'b0, commit} - {1'b0, inf_over};
    f_inf <= !rst && !start && (inf_over ? committed && !f_inf : f_inf);
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: A run starts while none is active; a flush leaves none.
      if (start) start_when_free : assume (!list_mode && !flush && !inf_over);
      //: An inference ends only when its list was read and it is settled whether another one follows.
      if (inf_over) settled : assume (list_mode && (committed || (!f_reading && !cfg[`CFG_MORE])));
      //: A layer is collected only while a list is read.
      if (collected && list_mode) of_list : assume (list_read);
      //: At most one list is read ahead: error_ctrl holds one failure of prefetched data.
      one_ahead : assert (f_begun <= 2'd2);
      //: An inference is ahead from the request of its list to the end of the current one.
      ahead : assert (f_begun == (list_mode ? 2'd1 + {1'b0, committed} : 2'd0));
      //: A list is requested with the parity of its inference, the opposite of the current one if it is read ahead.
      if (list_req_valid) whose : assert (parity == (f_inf ^ committed));
      //: (invariant) parity is that of the list being collected, or of the next one.
      if (list_mode) parities : assert (parity == ((f_inf ^ committed) ^ !f_reading));
      //: (invariant) One list is requested at a time.
      if (list_mode) one_list : assert ((!list_read || !list_due) && (!list_req_valid || list_due));
      //: (invariant) None is requested outside a run.
      if (!list_mode) none : assert (!committed && !list_due && !list_req_valid && !list_read);
    end
    //: The list of the next inference is read.
    reads_ahead : cover (!rst && committed && list_read);
  end
