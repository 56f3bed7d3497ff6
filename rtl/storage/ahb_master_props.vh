  // Properties of ahb_master: the rules of the bus checker that the simulations use, the order of beats
  // over RETRY, SPLIT, ERROR and lost grants, and that every beat of a command is answered once. The
  // arbiter grants as it likes; slaves wait and answer as they like, as long as AHB allows it.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  wire [36:0] f_rule;
  wire [31:0] f_errors;
  ahb_master_checker #(
      .DATA_W(AHB_W)
  ) u_checker (
      .clk(clk),
      .rst(rst),
      .hbusreq(m_ahb_hbusreq),
      .hlock(m_ahb_hlock),
      .hgrant(m_ahb_hgrant),
      .haddr(m_ahb_haddr),
      .htrans(m_ahb_htrans),
      .hwrite(m_ahb_hwrite),
      .hsize(m_ahb_hsize),
      .hburst(m_ahb_hburst),
      .hprot(m_ahb_hprot),
      .hwdata(m_ahb_hwdata),
      .hready(m_ahb_hready),
      .hresp(m_ahb_hresp),
      .rule(f_rule),
      .errors(f_errors)
  );
  // what the checker remembers
  (* hierconn *) wire \u_checker.own , \u_checker.dp_valid , \u_checker.dp_write ;
  (* hierconn *) wire \u_checker.b_active , \u_checker.b_free , \u_checker.b_write ;
  (* hierconn *) wire \u_checker.b_lock ;
  (* hierconn *) wire [31:0] \u_checker.dp_addr ;
  (* hierconn *) wire [2:0] \u_checker.dp_size ;
  (* hierconn *) wire [2:0] \u_checker.b_size , \u_checker.b_burst ;
  (* hierconn *) wire [31:0] \u_checker.b_base , \u_checker.b_next ;
  (* hierconn *) wire [4:0] \u_checker.b_left ;
  (* hierconn *) wire [3:0] \u_checker.b_prot ;
  (* hierconn *) wire \u_checker.rest_pending , \u_checker.rest_write ;
  (* hierconn *) wire [31:0] \u_checker.rest_addr ;
  (* hierconn *) wire \u_checker.retry_pending , \u_checker.retry_data_check ;
  (* hierconn *) wire \u_checker.retry_write ;
  (* hierconn *) wire [2:0] \u_checker.retry_size ;
  (* hierconn *) wire [31:0] \u_checker.retry_addr ;
  (* hierconn *) wire [AHB_W-1:0] \u_checker.retry_data ;
  // what the queue holds behind its head
  (* hierconn *) wire [1:0] \u_queue.held ;
  (* hierconn *) wire [CMD_W-1:0] \u_queue.g_place[1].data ;

  reg f_first = 1'b1;
  reg f_reset = 1'b1;  // the cycle before was one of reset
  reg f_answering;  // second cycle of an answer of two
  reg f_ours;  // ... that is ours
  reg [1:0] f_resp;
  reg f_idle;  // the data phase is that of an IDLE of ours
  always @(posedge clk) begin
    f_first <= 1'b0;
    f_reset <= rst;
    f_answering <= !rst && !m_ahb_hready && m_ahb_hresp != RESP_OKAY;
    f_ours <= (dp_valid || dp_orphan) && two_cycle && !rst;
    f_resp <= m_ahb_hresp;
    if (rst) f_idle <= 1'b0;
    else if (m_ahb_hready) f_idle <= \u_checker.own && m_ahb_htrans == TRANS_IDLE;
  end
  // the host may abandon what it waits for, or it never does: rules on whole bursts hold for the latter
  (* anyconst *) reg f_abandons;
  // a word of the storage: what is written there is always the same
  (* anyconst *) reg [31:0] f_word_addr;
  (* anyconst *) reg [AHB_W-1:0] f_word;

  // a command as the DMAC gives it: 1..16 beats of at most a bus word, aligned, within 1 KiB
  function f_legal;
    input [31:0] addr;
    input [4:0] beats;
    input [2:0] size;
    f_legal = beats != 0 && beats <= 16 && size <= OW && (addr & ((32'd1 << size) - 1)) == 0 &&
        {1'b0, addr[9:0]} + ({6'd0, beats} << size) <= 11'd1024;
  endfunction
  function f_legal_beat;
    input [BEAT_W-1:0] beat;
    f_legal_beat = f_legal(beat[B_ADDR+:32], beat[B_REM+:5], beat[B_SIZE+:3]);
  endfunction
  // beat b is the one after a
  function f_next;
    input [BEAT_W-1:0] a, b;
    f_next = (a[B_REM+:5] == 5'd1) ? (b[B_FIRST] && b[B_ID+:2] == a[B_ID+:2] + 2'd1) :
        (!b[B_FIRST] && b[B_ID+:2] == a[B_ID+:2] && b[B_REM+:5] == a[B_REM+:5] - 5'd1 &&
         b[B_ADDR+:32] == a[B_ADDR+:32] + (32'd1 << a[B_SIZE+:3]) && b[B_SIZE+:3] == a[B_SIZE+:3] &&
         b[B_WRITE] == a[B_WRITE] && b[B_TAG+:TAG_W] == a[B_TAG+:TAG_W]);
  endfunction
  wire [BEAT_W-1:0] f_young = rp1_valid ? rp1 : rp0_valid ? rp0 : ap_valid ? ap : dp;
  wire f_gen = q_valid && !dropping;  // the generator has a beat of the chain
  // the beat after that of the address stage, and of the data stage
  wire f_word_ok = !(q_write && gen_addr == f_word_addr) || wd_data == f_word;

  always @(posedge clk) begin
    if (!rst) begin
      //: An answer other than OKAY takes two cycles, the same in both.
      if (f_answering) answer_ends : assume (m_ahb_hready && m_ahb_hresp == f_resp);
      //: ... and never the second one alone.
      if (!f_answering) answer_begins : assume (!m_ahb_hready || m_ahb_hresp == RESP_OKAY);
      //: An IDLE of ours gets a zero-wait OKAY.
      if (f_idle) idle_okay : assume (m_ahb_hready && m_ahb_hresp == RESP_OKAY);
      //: Commands are legal, and none is given while all are dropped.
      if (cmd_valid) command_legal : assume (f_legal(cmd_addr, cmd_beats, cmd_size) && !mst_abandon);
      //: The master is told to abandon only in runs in which that may happen.
      if (!f_abandons) never_abandons : assume (!mst_abandon);
      //: One word of the storage is tracked, any one: its data are what the write FIFO holds for it.
      if (q_valid) word_data : assume (f_word_ok);
    end
    if (!f_first) begin
      //: Rule 1: HTRANS is IDLE during reset and in the cycle after it.
      rule_1 : assert (!f_rule[1]);
      //: Rule 2: address and control stand while HREADY is low and HRESP is OKAY.
      rule_2 : assert (!f_rule[2]);
      //: Rule 3: write data stand through wait states.
      rule_3 : assert (!f_rule[3]);
      //: Rule 4: a burst begins with NONSEQ.
      rule_4 : assert (!f_rule[4]);
      //: Rule 5: a SINGLE has one beat.
      rule_5 : assert (!f_rule[5]);
      //: Rule 6: BUSY stands only inside a burst.
      rule_6 : assert (!f_rule[6]);
      //: Rule 7: addresses of a burst follow each other.
      rule_7 : assert (!f_rule[7]);
      //: Rule 8: wrapping bursts wrap (none is issued).
      rule_8 : assert (!f_rule[8]);
      //: Rule 9: direction, size, type and protection are constant in a burst.
      rule_9 : assert (!f_rule[9]);
      //: Rule 10: INCR4, 8, 16 have all their beats unless the grant is lost or an answer ends them.
      if (!f_abandons) rule_10 : assert (!f_rule[10]);
      //: Rule 11: no burst crosses 1 KB.
      rule_11 : assert (!f_rule[11]);
      //: Rule 12: addresses are aligned.
      rule_12 : assert (!f_rule[12]);
      //: Rule 13: no transfer is wider than the bus.
      rule_13 : assert (!f_rule[13]);
      //: Rule 15: only the owner of the bus drives anything but IDLE.
      rule_15 : assert (!f_rule[15]);
      //: Rule 17: an INCR burst keeps HBUSREQ until its last address is taken.
      rule_17 : assert (!f_rule[17]);
      //: Rule 18: what a lost grant cut off goes on where it stopped.
      if (!f_abandons) rule_18 : assert (!f_rule[18]);
      //: Rule 19: HTRANS is IDLE in the second cycle of RETRY and SPLIT.
      rule_19 : assert (!f_rule[19]);
      //: Rule 20: a refused transfer comes again, the same, before anything newer.
      if (!f_abandons) rule_20 : assert (!f_rule[20]);
      //: Rule 22: HLOCK is never raised in a burst.
      rule_22 : assert (!f_rule[22]);
    end
    if (!rst && !f_first) begin
      //: Rule 16: write data are those of the transfer, also after the address bus is lost.
      if (\u_checker.dp_valid && (dp_valid || dp_orphan) && dp[B_WRITE] && dp[B_ADDR+:32] == f_word_addr)
        rule_16 : assert (m_ahb_hwdata == f_word);
      //: Beats follow each other as in their commands: none is lost, doubled or moved by RETRY, SPLIT,
      //: ERROR or a lost grant.
      chain : assert ((!(dp_valid && ap_valid) || f_next(dp, ap)) &&
          (!(dp_valid && !ap_valid && rp1_valid) || f_next(dp, rp1)) &&
          (!(dp_valid && !ap_valid && !rp1_valid && f_gen) || f_next(dp, gen_beat)) &&
          (!(ap_valid && rp1_valid) || f_next(ap, rp1)) &&
          (!(ap_valid && !rp1_valid && f_gen) || f_next(ap, gen_beat)) &&
          (!(rp0_valid && rp1_valid) || f_next(rp0, rp1)) &&
          (!(rp0_valid && !rp1_valid && f_gen) || f_next(rp0, gen_beat)) &&
          (!(rp1_valid && f_gen) || f_next(rp1, gen_beat)));
      //: (invariant) The replay registers are empty when stages behind them are filled.
      replay_order : assert (!(rp0_valid && (dp_valid || ap_valid)) && !(rp1_valid && dp_valid && ap_valid));
      //: (invariant) Every beat that waits or is on the bus is legal.
      legal_beats : assert ((!dp_valid || f_legal_beat(dp)) && (!(ap_valid || ap_orphan) || f_legal_beat(ap)) &&
          (!rp0_valid || f_legal_beat(rp0)) && (!rp1_valid || f_legal_beat(rp1)) &&
          (!q_valid || (f_legal_beat(gen_beat) && f_legal(q_addr, q_beats, q_size))));
      //: (invariant) The second place of the queue holds a legal command.
      if (\u_queue.held [1]) legal_queue : assert (\u_queue.held [0] && f_legal(
          \u_queue.g_place[1].data [1+:32], \u_queue.g_place[1].data [33+:5], \u_queue.g_place[1].data [38+:3]));
      //: (invariant) Beats of the tracked word carry its data.
      word_kept : assert (
          (!((dp_valid || dp_orphan) && dp[B_WRITE] && dp[B_ADDR+:32] == f_word_addr) || dp_wdata == f_word) &&
          (!((ap_valid || ap_orphan) && ap[B_WRITE] && ap[B_ADDR+:32] == f_word_addr) || ap_wdata == f_word) &&
          (!(rp0_valid && rp0[B_WRITE] && rp0[B_ADDR+:32] == f_word_addr) || rp0_wdata == f_word) &&
          (!(rp1_valid && rp1[B_WRITE] && rp1[B_ADDR+:32] == f_word_addr) || rp1_wdata == f_word));
      //: (invariant) The address stage is filled when HTRANS is not IDLE; orphans come from an abandon or ERROR.
      stages : assert ((htrans != TRANS_IDLE) == (ap_valid || ap_orphan) && !(ap_valid && ap_orphan) &&
          !(dp_valid && dp_orphan) && !(ap_valid && dp_orphan) && htrans != 2'b01 && (!more || ap_valid || ap_orphan) &&
          (f_abandons || (!ap_orphan && !dp_orphan)) && !(ap_orphan && (dp_valid || rp0_valid || rp1_valid)));
      //: (invariant) A beat that is followed by one of its burst is not the last of its command.
      if (ap_valid || ap_orphan) followed : assert (more == (ap[B_REM+:5] != 5'd1));
      //: (invariant) Behind the youngest beat comes the rest of its command, or the next command.
      if (dp_valid || ap_valid || rp0_valid || rp1_valid) rest_there : assert (f_young[B_REM+:5] != 5'd1 ? f_gen :
          (!started && !dropping && gen_id == f_young[B_ID+:2] + 2'd1));
      //: (invariant) A command that is dropped is at the head of the queue, and nothing else of it waits.
      if (dropping) drops : assert (q_valid && started && !ap_valid && !rp1_valid && !dp_valid && !rp0_valid);
      //: (invariant) A command that began is at the head of the queue.
      if (started) begun : assert (q_valid);
      //: (invariant) The master and the checker see the same owner and the same data phase.
      owner : assert ((!\u_checker.b_active || \u_checker.own ) && (htrans == TRANS_IDLE || \u_checker.own ) &&
          \u_checker.dp_valid == (dp_valid || dp_orphan || f_ours) && !(f_ours && (dp_valid || dp_orphan)) &&
          (!(dp_valid || dp_orphan) || (\u_checker.dp_write == dp[B_WRITE] && \u_checker.dp_addr == dp[B_ADDR+:32] &&
          \u_checker.dp_size == dp[B_SIZE+:3])) && (!f_ours || htrans == TRANS_IDLE) &&
          (!f_ours || f_answering) && (!f_idle || !\u_checker.dp_valid ));
      //: (invariant) The checker sees the same burst in a beat that is not the first.
      if (htrans == TRANS_SEQ) burst : assert (\u_checker.b_active && \u_checker.b_next == m_ahb_haddr &&
          \u_checker.b_left == (hburst == BURST_INCR ? 5'd31 : ap[B_REM+:5]) && \u_checker.b_burst == hburst &&
          \u_checker.b_write == m_ahb_hwrite && \u_checker.b_size == m_ahb_hsize && \u_checker.b_prot == 4'd3 &&
          \u_checker.b_base [31:10] == m_ahb_haddr[31:10] && hburst != BURST_SINGLE);
      //: (invariant) The type of a burst is one of an incrementing one that has as many beats as are left.
      burst_type : assert ((hburst[0] || hburst == BURST_SINGLE) && !\u_checker.b_lock &&
          (htrans != TRANS_NONSEQ || hburst == (ap[B_REM+:5] == 1 ? BURST_SINGLE : ap[B_REM+:5] == 4 ? BURST_INCR4 :
           ap[B_REM+:5] == 8 ? BURST_INCR8 : ap[B_REM+:5] == 16 ? BURST_INCR16 : BURST_INCR)));
      //: (invariant) A fixed burst that has beats left goes on, unless an answer or the arbiter ends it.
      if (!f_abandons && \u_checker.own && \u_checker.b_active && \u_checker.b_burst > 1 && \u_checker.b_left != 0 &&
          !\u_checker.b_free ) goes_on : assert (htrans == TRANS_SEQ || \u_checker.b_burst == BURST_SINGLE);
      //: (invariant) What the checker waits for after a lost grant is the oldest beat not on the bus.
      if (!f_abandons && \u_checker.rest_pending && !\u_checker.retry_pending ) rest : assert (
          (htrans == TRANS_NONSEQ && m_ahb_haddr == \u_checker.rest_addr && m_ahb_hwrite == \u_checker.rest_write ) ||
          (htrans == TRANS_IDLE && src_valid && src_beat[B_ADDR+:32] == \u_checker.rest_addr &&
           src_beat[B_WRITE] == \u_checker.rest_write && !(dp_valid && src_beat[B_ID+:2] != dp[B_ID+:2])));
      //: (invariant) What the checker waits for after a refusal is the oldest beat.
      if (!f_abandons && \u_checker.retry_pending ) retried : assert (
          (rp0_valid && rp0[B_ADDR+:32] == \u_checker.retry_addr && rp0[B_WRITE] == \u_checker.retry_write &&
           rp0[B_SIZE+:3] == \u_checker.retry_size && rp0_wdata == \u_checker.retry_data ) ||
          (ap_valid && htrans == TRANS_NONSEQ && ap[B_ADDR+:32] == \u_checker.retry_addr && !dp_valid &&
           ap[B_WRITE] == \u_checker.retry_write && ap[B_SIZE+:3] == \u_checker.retry_size &&
           ap_wdata == \u_checker.retry_data ));
      //: (invariant) The data of a transfer that came again are those of the refused one.
      if (!f_abandons && \u_checker.retry_data_check && \u_checker.dp_valid )
        retried_data : assert (dp_wdata == \u_checker.retry_data );
      //: The oldest beat is the one after the beat that ended last; after an ERROR it begins the next
      //: command: no beat is lost, none comes twice.
      if (f_ended && (dp_valid || ap_valid || rp0_valid || rp1_valid || f_gen)) none_lost : assert (f_ended_error ?
          (f_oldest[B_FIRST] && f_oldest[B_ID+:2] == f_last[B_ID+:2] + 2'd1) : f_next(f_last, f_oldest));
      //: (invariant) With no beat under way the generator stands behind the one that ended last.
      if (f_ended && !dp_valid && !ap_valid && !rp0_valid && !rp1_valid) behind_last : assert (
          dropping ? (f_ended_error && gen_id == f_last[B_ID+:2]) :
          (f_ended_error || f_last[B_REM+:5] == 5'd1) ? (!started && gen_id == f_last[B_ID+:2] + 2'd1) : f_gen);
      //: The beats of a command begin at its address and are as many as it has.
      if (started) position : assert (rest_beats != 0 && rest_beats < q_beats &&
          rest_addr == q_addr + ({27'd0, q_beats - rest_beats} << q_size));
      //: Every beat that ends with OKAY is answered in the next cycle, with its data, and no other one.
      answered : assert (rsp_valid == f_done && (!f_done || (rsp_data == f_read && rsp_write == f_beat[B_WRITE] &&
          rsp_first == f_beat[B_FIRST] && rsp_last == (f_beat[B_REM+:5] == 1) && rsp_tag == f_beat[B_TAG+:TAG_W])));
      //: Rule 21: an ERROR is told once, with the failed beat and how many of its command will not come.
      error_told : assert (mst_err_valid == f_failed && (!f_failed || (mst_err_addr == f_beat[B_ADDR+:32] &&
          mst_err_beats == f_beat[B_REM+:5] && mst_err_tag == f_beat[B_TAG+:TAG_W])));
      //: After an ERROR nothing more of its command goes to the bus.
      if (f_after && ap_valid) contained : assert (ap[B_ID+:2] != f_failed_id);
      //: A RETRY in a burst, whose beats then end.
      retry_then_done : cover (f_saw_retry && rsp_valid && rsp_last && !rsp_first);
      //: An ERROR in the middle of a command, then the next command ends.
      error_then_done : cover (f_saw_error && rsp_valid && rsp_last);
      //: A burst of four loses the grant in the middle and ends.
      lost_then_done : cover (f_saw_lost && rsp_valid && rsp_last && !rsp_first);
    end
  end

  // the beat that ended last
  reg f_ended = 1'b0;
  reg f_ended_error;
  reg [BEAT_W-1:0] f_last;
  wire [BEAT_W-1:0] f_oldest = dp_valid ? dp : ap_valid ? ap : rp0_valid ? rp0 : rp1_valid ? rp1 : gen_beat;
  always @(posedge clk) begin
    f_ended <= !rst && !mst_abandon && (f_ended || done || fail);
    if (done || fail) begin
      f_last <= dp;
      f_ended_error <= fail;
    end
  end
  // the cycle before
  reg f_done, f_failed, f_after;
  reg [1:0] f_failed_id;
  reg [BEAT_W-1:0] f_beat;
  reg [AHB_W-1:0] f_read;
  reg f_saw_retry, f_saw_error, f_saw_lost;
  always @(posedge clk) begin
    f_done <= !rst && !mst_abandon && dp_valid && m_ahb_hready && m_ahb_hresp == RESP_OKAY;
    f_failed <= !rst && !mst_abandon && dp_valid && !m_ahb_hready && m_ahb_hresp == RESP_ERROR;
    f_beat <= dp;
    f_read <= m_ahb_hrdata;
    // until the next command but one may have its number
    f_after <= !rst && !mst_abandon && ((dp_valid && fail) || (f_after && dropping));
    if (dp_valid && fail) f_failed_id <= dp[B_ID+:2];
    f_saw_retry <= !rst && (f_saw_retry || (reuse && ap_valid));
    f_saw_error <= !rst && (f_saw_error || (fail && ap_fails));
    f_saw_lost <= !rst && (f_saw_lost || (more && hburst == BURST_INCR4 && m_ahb_hready && !m_ahb_hgrant));
  end
