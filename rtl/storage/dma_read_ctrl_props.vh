  // Properties of dma_read_ctrl: each command to the master is a permitted burst of a channel, issued
  // once.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  // the selected channel
  reg [1:0] f_sel;
  reg [3:0] f_next;
  reg f_held = 1'b1;
  always @(posedge clk) begin
    f_sel  <= rd_next_sel;
    f_next <= rd_next;
    f_held <= rst || hold;
  end
  // pixels had the last turn, when the channels proposed
  reg f_after = 1'b0, f_yields;
  always @(posedge clk) begin
    f_after  <= !rst && (rd_take ? f_sel == 3 : f_after);
    f_yields <= share && f_after;
  end
  // reads of the pixels that passed a bias or a weight which was proposed all the time, and the reverse
  reg [1:0] f_pixels_first = 2'd0, f_others_first = 2'd0;
  wire f_others = rd_want[1] || rd_want[2];
  wire f_takes_pixels = rd_take && f_sel == 3;
  wire f_takes_others = rd_take && (f_sel == 1 || f_sel == 2);
  wire f_takes_list = rd_take && f_sel == 0;
  always @(posedge clk) begin
    f_pixels_first <= (rst || !share || !f_others || f_takes_others || f_takes_list) ? 2'd0 :
        f_pixels_first + f_takes_pixels;
    f_others_first <= (rst || !share || !rd_want[3] || f_takes_pixels || f_takes_list) ? 2'd0 :
        f_others_first + f_takes_others;
  end
  // the last accepted burst
  reg f_taken = 1'b0;
  reg f_write;
  reg [`CMD_BITS-1:0] f_cmd;
  reg f_wrap;
  reg [2:0] f_chan;
  reg f_waits = 1'b0;  // it is neither issued nor dropped
  reg f_read_last = 1'b0;  // the last accepted burst was a read
  wire f_take = store_take || rd_take;
  wire [`BURST_BITS-1:0] f_burst = store_take ? store_burst : rd_burst;
  wire [`CMD_BITS-1:0] f_cmd_now = f_burst[`BURST_CMD];
  wire f_dropped = hold || fails;
  always @(posedge clk) begin
    if (rst) begin
      f_waits <= 1'b0;
      f_taken <= 1'b0;
      f_read_last <= 1'b0;
    end else begin
      f_waits <= (f_take && !hold) || (f_waits && !given && !refuse && !f_dropped);
      f_taken <= f_take || f_taken;
      if (f_take) f_read_last <= !store_take;
    end
    if (f_take) begin
      f_write <= store_take;
      f_chan  <= store_take ? 3'd4 : {1'b0, f_sel};
      f_cmd   <= f_cmd_now;
      f_wrap  <= f_burst[`BURST_WRAP];
    end
  end
  wire [31:0] f_addr = f_cmd[`CMD_ADDR];
  wire f_may = f_addr[31:10] >= (f_write ? guard[`GUARD_WRITE_FIRST] : guard[`GUARD_READ_FIRST]) &&
      f_addr[31:10] <= (f_write ? guard[`GUARD_WRITE_LAST] : guard[`GUARD_READ_LAST]) && !f_wrap;
  // proposals name their channel
  wire [`CMD_BITS-1:0] f_rd_cmd = rd_burst[`BURST_CMD], f_store_cmd = store_burst[`BURST_CMD];
  wire [TAG_W-1:0] f_rd_tag = f_rd_cmd[`CMD_TAG], f_store_tag = f_store_cmd[`CMD_TAG];

  always @(posedge clk) begin
    if (!rst) begin
      //: The burst of a read channel is a read of that channel.
      if (rd_want != 0) read_named : assume (!f_rd_cmd[`CMD_WRITE] && f_rd_tag[`DMA_TAG_CHAN] == {1'b0, f_sel});
      //: ... of the write channel is a write.
      if (store_want) write_named : assume (f_store_cmd[`CMD_WRITE] && f_store_tag[`DMA_TAG_CHAN] == 3'd4);
      //: At most one burst is accepted per cycle, from a channel that proposes one.
      one_taken : assert (!(rd_take && !rd_want[f_sel]) && !(store_take && (rd_take || !store_want)));
      //: A command equals the burst that a channel proposed: address, length, direction, owner and channel.
      if (cmd_valid || refuse) as_proposed : assert (f_taken && cmd == f_cmd);
      //: A burst outside its window or beyond the last address never reaches the master.
      if (cmd_valid) window : assert (f_may);
      //: It is refused instead, and only such a burst is.
      if (refuse) refused : assert (!f_may && !cmd_valid);
      //: Each accepted burst is issued or refused once, or dropped by an abort or its channel's failure.
      exactly_once : assert (chosen == f_waits && !((cmd_valid || refuse) && !f_waits));
      //: A burst is not accepted before the previous one has gone.
      if (f_take && f_waits) none_overtaken : assert (given || refuse || f_dropped);
      //: A burst of a failing channel does not reach the master.
      if (cmd_valid) failed_stays : assert (!(failing >> f_chan & 1));
      //: Nothing is issued while bursts are held.
      if (hold) held : assert (!cmd_valid && !refuse);
      //: The priority of reads is list, pixel, bias, weight; with share pixels take turns with the last two.
      if (rd_take) order : assert (f_sel == 0 || (!rd_want[0] && (f_sel == 3 ?
          !(f_yields && (rd_want[1] || rd_want[2])) : (!rd_want[3] || f_yields) && (f_sel == 1 || !rd_want[1]))));
      //: With share neither starves: one that waits is passed by two bursts of the other at most, as the next burst
      //: is selected while one is accepted. Only the list may come between.
      neither_starves : assert (f_pixels_first <= 2 && f_others_first <= 2);
      //: A channel's request takes effect in the next cycle, unless bursts are held.
      wants : assert (rd_want == (f_held ? 4'd0 : f_next));
      //: Reads and writes alternate: neither waits for more than one of the other.
      if (f_take && store_want && rd_want != 0) alternate : assert (store_take == f_read_last);
      //: No deadlock: a permitted burst is offered, any other is refused.
      if (f_waits && !f_dropped) offered : assert (f_may ? cmd_valid : (refuse || refuse_hold));
      //: No deadlock: with nothing selected and the master ready a proposal is accepted.
      if (!f_waits && cmd_ready && !hold && (rd_want != 0 || store_want)) taken : assert (f_take);
      //: (invariant) Behind the first of them the other one is selected, from the second one on in any case.
      then_selected : assert ((f_pixels_first == 0 || f_after) && (f_others_first == 0 || !f_after) &&
          !(f_pixels_first == 2 && f_others && f_sel == 3) &&
          !(f_others_first == 2 && rd_want[3] && (f_sel == 1 || f_sel == 2)));
      //: (invariant) The turn of the pixels matches the last read.
      turns_of_pixels : assert (after_pixels == f_after && pixels == (f_sel == 3));
      //: (invariant) The turn matches the last burst.
      turns : assert (turn == f_read_last);
      //: (invariant) short matches the last accepted burst.
      one_beat : assert (short == (cmd[`CMD_BEATS] == 1));
      //: (invariant) The selected burst is the last accepted one.
      if (f_waits) chosen_one : assert (f_taken && cmd == f_cmd && wrapped == f_wrap &&
          cmd[`CMD_WRITE] == f_write && tag[`DMA_TAG_CHAN] == f_chan);
      //: A refused write right after a read.
      refusal : cover (refuse && f_write);
      //: A burst is accepted in the cycle in which the previous one is issued.
      back_to_back : cover (given && f_take);
    end
  end
