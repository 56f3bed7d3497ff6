  // Properties of dma_read_ctrl: what goes to the master is what a channel proposed, once, and allowed.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  // the burst that was taken last
  reg f_taken = 1'b0;
  reg f_write;
  reg [31:0] f_addr;
  reg [4:0] f_beats;
  reg f_wrap;
  reg [2:0] f_chan;
  reg [`OWNER_BITS-1:0] f_owner;
  reg f_waits = 1'b0;  // it is neither given nor dropped
  reg f_read_last = 1'b0;  // the last burst taken was a read
  wire f_take = store_take || rd_take != 0;
  wire [1:0] f_sel = rd_take[0] ? 2'd0 : rd_take[1] ? 2'd1 : rd_take[2] ? 2'd2 : 2'd3;
  wire f_dropped = hold || fails;
  always @(posedge clk) begin
    if (rst) begin
      f_waits <= 1'b0;
      f_taken <= 1'b0;
      f_read_last <= 1'b0;
    end else begin
      f_waits <= f_take || (f_waits && !given && !refuse && !f_dropped);
      f_taken <= f_take || f_taken;
      if (f_take) f_read_last <= !store_take;
    end
    if (f_take) begin
      f_write <= store_take;
      f_addr  <= store_take ? store_addr : rd_addr[32*f_sel+:32];
      f_beats <= store_take ? store_beats : rd_beats[5*f_sel+:5];
      f_wrap  <= store_take ? store_wrap : rd_wrap[f_sel];
      f_chan  <= store_take ? 3'd4 : {1'b0, f_sel};
      f_owner <= store_take ? store_owner : rd_owner[`OWNER_BITS*f_sel+:`OWNER_BITS];
    end
  end
  wire f_may = f_addr[31:10] >= (f_write ? guard[`GUARD_WRITE_FIRST] : guard[`GUARD_READ_FIRST]) &&
      f_addr[31:10] <= (f_write ? guard[`GUARD_WRITE_LAST] : guard[`GUARD_READ_LAST]) && !f_wrap;

  always @(posedge clk) begin
    if (!rst) begin
      //: At most one burst is taken in a cycle, of a channel that proposes one.
      one_taken : assert ((rd_take & ~rd_want) == 0 && (rd_take & (rd_take - 4'd1)) == 0 &&
          !(store_take && (rd_take != 0 || !store_want)));
      //: A command is a burst that a channel proposed: address, length, direction, owner and channel.
      if (cmd_valid || refuse) as_proposed : assert (f_taken && cmd_addr == f_addr && cmd_beats == f_beats &&
          cmd_write == f_write && cmd_tag[`DMA_TAG_CHAN] == f_chan && cmd_tag[`DMA_TAG_OWNER] == f_owner);
      //: A burst outside its window or beyond the last address never goes to the master.
      if (cmd_valid) window : assert (f_may);
      //: It is refused instead, and only such a one is.
      if (refuse) refused : assert (!f_may && !cmd_valid);
      //: Each burst that is taken is given or refused once, or dropped by an abort or its channel's failure.
      exactly_once : assert (chosen == f_waits && !((cmd_valid || refuse) && !f_waits));
      //: A burst is not taken before the one before it has gone.
      if (f_take && f_waits) none_overtaken : assert (given || refuse || f_dropped);
      //: A burst of a channel that fails does not go to the master.
      if (cmd_valid) failed_stays : assert (!(failing >> f_chan & 1));
      //: Nothing is taken or given while bursts are held.
      if (hold) held : assert (!cmd_valid && !refuse && !f_take);
      //: The order of reads is list, pixel, bias, weight.
      if (rd_take != 0) order : assert (rd_take[0] || (!rd_want[0] && (rd_take[3] || (!rd_want[3] &&
          (rd_take[1] || !rd_want[1])))));
      //: Reads and writes alternate: neither waits for more than one of the other.
      if (f_take && store_want && rd_want != 0) alternate : assert (store_take == f_read_last);
      //: No deadlock: a burst that may go is offered, one that may not is refused.
      if (f_waits && !f_dropped) offered : assert (f_may ? cmd_valid : (refuse || refuse_hold));
      //: No deadlock: when nothing is chosen and the master is ready a proposal is taken.
      if (!f_waits && cmd_ready && !hold && (rd_want != 0 || store_want)) taken : assert (f_take);
      //: (invariant) Whose turn it is.
      turns : assert (turn == f_read_last);
      //: (invariant) What is chosen is what was taken.
      if (f_waits) chosen_one : assert (f_taken && cmd_addr == f_addr && cmd_beats == f_beats && cmd_write == f_write &&
          wrapped == f_wrap && cmd_tag[`DMA_TAG_CHAN] == f_chan && cmd_tag[`DMA_TAG_OWNER] == f_owner);
      //: A refused write right after a read.
      refusal : cover (refuse && f_write);
      //: A burst is taken in the cycle in which the one before it is given.
      back_to_back : cover (given && f_take);
    end
  end
