  // Properties of ahb_master: the rules of the bus checker of the simulations, the order of beats across
  // RETRY, SPLIT, ERROR and lost grants, and one response for every beat of a command. The arbiter grants
  // arbitrarily; slaves stall and respond in any way that AHB permits.
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
  // state of the checker
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
  // the commands in their rows, and their numbers
  localparam F_ROW = 42;
  (* hierconn *) wire [2:0] \u_beats.put , \u_beats.gen , \u_beats.old ;
  (* hierconn *) wire \u_beats.started ;
  (* hierconn *) wire [9:0] \u_beats.rest_low ;
  (* hierconn *) wire [4:0] \u_beats.rest_rem ;
  (* hierconn *) wire [3:0] \u_beats.reads ;
  (* hierconn *) wire [4*F_ROW-1:0] \u_beats.u_next.g_four.f_all ;
  (* hierconn *) wire [4*(TAG_W+22)-1:0] \u_beats.u_oldest.g_four.f_all ;

  reg f_first = 1'b1;
  reg f_reset = 1'b1;  // the previous cycle was in reset
  reg f_answering;  // second cycle of a two-cycle response
  reg f_ours;  // ... to this master
  reg [1:0] f_resp;
  reg f_idle;  // the data phase belongs to an IDLE of this master
  always @(posedge clk) begin
    f_first <= 1'b0;
    f_reset <= rst;
    f_answering <= !rst && !m_ahb_hready && m_ahb_hresp != RESP_OKAY;
    f_ours <= (dp_valid || dp_orphan) && two_cycle && !rst;
    f_resp <= m_ahb_hresp;
    if (rst) f_idle <= 1'b0;
    else if (m_ahb_hready) f_idle <= \u_checker.own && m_ahb_htrans == TRANS_IDLE;
  end
  // whether the DMAC ever abandons commands: rules on whole bursts hold only if it does not
  (* anyconst *) reg f_abandons;
  // one word of the storage, always written with the same value
  (* anyconst *) reg [31:0] f_word_addr;
  (* anyconst *) reg [AHB_W-1:0] f_word;

  // a command as the DMAC issues it: 1..16 beats of at most a bus word, aligned, within 1 KiB
  function f_legal;
    input [31:0] addr;
    input [4:0] beats;
    input [2:0] size;
    f_legal = beats != 0 && beats <= 16 && size <= OW && (addr[3:0] & ((4'd1 << size) - 4'd1)) == 0 &&
        {1'b0, addr[9:0]} + ({6'd0, beats} << size) <= 11'd1024;
  endfunction
  // a row and its parts
  wire [4*F_ROW-1:0] f_rows = \u_beats.u_next.g_four.f_all ;
  wire [4*(TAG_W+22)-1:0] f_olds = \u_beats.u_oldest.g_four.f_all ;
  wire [2:0] f_put = \u_beats.put , f_gen_no = \u_beats.gen , f_old = \u_beats.old ;
  wire [2:0] f_count = f_put - f_old;
  // rows that hold a command; rows that are empty or hold a consistent command: legal, and both memories
  // agree
  wire [3:0] f_held, f_good;
  genvar f_r;
  generate
    for (f_r = 0; f_r < 4; f_r = f_r + 1) begin : g_row
      wire [1:0] behind = f_r[1:0] - f_old[1:0];
      wire [F_ROW-1:0] row = f_rows[F_ROW*f_r+:F_ROW];
      assign f_held[f_r] = {1'b0, behind} < f_count;
      assign f_good[f_r] = !f_held[f_r] || (f_legal(row[32:1], row[37:33], row[40:38]) &&
          f_olds[(TAG_W+22)*f_r+:22] == row[32:11]);
    end
  endgenerate
  // a beat: number of its command, pops a word, first, rem, size, address, direction
  localparam F_BEAT = 3 + 1 + 1 + 5 + 3 + 32 + 1;
  localparam F_NO = 43;
  localparam F_POP = 42;
  localparam F_IS_FIRST = 41;
  localparam F_REM = 36;
  localparam F_SIZE = 33;
  function f_of_row;  // the beat is one of the numbered command, and legal itself
    input [F_BEAT-1:0] beat;
    reg [F_ROW-1:0] row;
    begin
      row = f_rows[F_ROW*beat[F_NO+:2]+:F_ROW];
      f_of_row = f_held[beat[F_NO+:2]] && beat[F_REM+:5] <= row[37:33] && beat[0] == row[0] &&
          beat[F_SIZE+:3] == row[40:38] && beat[F_IS_FIRST] == (beat[F_REM+:5] == row[37:33]) &&
          beat[F_POP] == (row[0] && row[41]) && beat[32:11] == row[32:11] &&
          (!beat[F_IS_FIRST] || beat[10:1] == row[10:1]) && f_legal(beat[32:1], beat[F_REM+:5], beat[F_SIZE+:3]);
    end
  endfunction
  // beat b follows beat a
  function f_next;
    input [F_BEAT-1:0] a, b;
    f_next = (a[F_REM+:5] == 5'd1) ? (b[F_IS_FIRST] && b[F_NO+:3] == a[F_NO+:3] + 3'd1) :
        (!b[F_IS_FIRST] && b[F_NO+:3] == a[F_NO+:3] && b[F_REM+:5] == a[F_REM+:5] - 5'd1 &&
         b[32:11] == a[32:11] && b[10:1] == a[10:1] + (10'd1 << a[F_SIZE+:3]) && b[F_SIZE+:3] == a[F_SIZE+:3] &&
         b[0] == a[0]);
  endfunction
  wire [F_ROW-1:0] f_old_row = f_rows[F_ROW*f_old[1:0]+:F_ROW];
  wire [2:0] f_ap_no = (dp_valid && dp_ends) ? f_old + 3'd1 : f_old;
  wire ap_ends = ap_rem == 5'd1;
  wire [F_BEAT-1:0] f_dp = {f_old, dp_pop, dp_first, dp_rem, f_old_row[40:38], old_block, dp_low, dp_write};
  wire [F_BEAT-1:0] f_ap = {f_ap_no, ap_pop, ap_first, ap_rem, ap_size, ap_addr, ap_write};
  wire [F_BEAT-1:0] f_gen_beat = {f_gen_no, gen_pop, gen_first, gen_rem, gen_size, gen_addr, gen_write};
  wire [F_BEAT-1:0] f_young = ap_valid ? f_ap : f_dp;
  wire f_gen = gen_valid && !dropping;  // the next beat is part of the chain
  // the write FIFO: words around the master's read pointer, the pointer, those of the beats
  reg [AHB_W-1:0] f_words[0:3];
  (* anyseq *) reg [AHB_W-1:0] f_new_word;
  reg [1:0] f_at = 2'd0;
  reg [1:0] f_ap_at, f_dp_at;
  always @(posedge clk) begin
    f_at <= (rst || mst_abandon) ? 2'd0 : f_at + wd_pop - wd_back;
    if (wd_pop) f_words[f_at+2'd2] <= f_new_word;
    if (issue) f_ap_at <= f_at;
    if (m_ahb_hready) f_dp_at <= f_ap_at;
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: A response other than OKAY has two cycles, the same in both.
      if (f_answering) answer_ends : assume (m_ahb_hready && m_ahb_hresp == f_resp);
      //: ... and never the second cycle alone.
      if (!f_answering) answer_begins : assume (!m_ahb_hready || m_ahb_hresp == RESP_OKAY);
      //: An IDLE of this master gets a zero-wait OKAY.
      if (f_idle) idle_okay : assume (m_ahb_hready && m_ahb_hresp == RESP_OKAY);
      //: Commands are legal, and none is issued during an abandon.
      if (cmd_valid) command_legal : assume (f_legal(cmd_addr, cmd_beats, cmd_size) && !mst_abandon);
      //: The master abandons only in runs that permit it.
      if (!f_abandons) never_abandons : assume (!mst_abandon);
      //: One arbitrary word of the storage is tracked: its data are those in the write FIFO.
      if (gen_valid && gen_write && gen_addr == f_word_addr) word_data : assume (wd_data == f_word);
      //: A rewound word of the write FIFO is popped again.
      fifo : assume (wd_data == f_words[f_at]);
    end
    if (!f_first) begin
      //: Rule 1: HTRANS is IDLE during reset and in the cycle after it.
      rule_1 : assert (!f_rule[1]);
      //: Rule 2: address and control are held while HREADY is low and HRESP is OKAY.
      rule_2 : assert (!f_rule[2]);
      //: Rule 3: write data are held through wait states.
      rule_3 : assert (!f_rule[3]);
      //: Rule 4: a burst begins with NONSEQ.
      rule_4 : assert (!f_rule[4]);
      //: Rule 5: a SINGLE has one beat.
      rule_5 : assert (!f_rule[5]);
      //: Rule 6: BUSY appears only inside a burst.
      rule_6 : assert (!f_rule[6]);
      //: Rule 7: addresses of a burst are consecutive.
      rule_7 : assert (!f_rule[7]);
      //: Rule 8: wrapping bursts wrap (none is issued).
      rule_8 : assert (!f_rule[8]);
      //: Rule 9: direction, size, type and protection are constant in a burst.
      rule_9 : assert (!f_rule[9]);
      //: Rule 10: INCR4, 8, 16 are complete unless the grant is lost or a response terminates them.
      if (!f_abandons) rule_10 : assert (!f_rule[10]);
      //: Rule 11: no burst crosses 1 KB.
      rule_11 : assert (!f_rule[11]);
      //: Rule 12: addresses are aligned.
      rule_12 : assert (!f_rule[12]);
      //: Rule 13: no transfer is wider than the bus.
      rule_13 : assert (!f_rule[13]);
      //: Rule 15: only the owner of the bus drives anything but IDLE.
      rule_15 : assert (!f_rule[15]);
      //: Rule 17: an INCR burst holds HBUSREQ until its last address is accepted.
      rule_17 : assert (!f_rule[17]);
      //: Rule 18: a burst cut by a lost grant resumes where it stopped.
      if (!f_abandons) rule_18 : assert (!f_rule[18]);
      //: Rule 19: HTRANS is IDLE in the second cycle of RETRY and SPLIT.
      rule_19 : assert (!f_rule[19]);
      //: Rule 20: a refused transfer is repeated unchanged, before anything newer.
      if (!f_abandons) rule_20 : assert (!f_rule[20]);
      //: Rule 22: HLOCK is never raised in a burst.
      rule_22 : assert (!f_rule[22]);
    end
    if (!rst && !f_first) begin
      //: Rule 16: write data belong to the transfer, also after the address bus is lost.
      if (\u_checker.dp_valid && (dp_valid || dp_orphan) && \u_checker.dp_write && \u_checker.dp_addr == f_word_addr)
        rule_16 : assert (m_ahb_hwdata == f_word);
      //: Beats follow the order of their commands: RETRY, SPLIT, ERROR and lost grants lose, duplicate or
      //: reorder none.
      chain : assert ((!(dp_valid && ap_valid) || f_next(f_dp, f_ap)) &&
          (!(dp_valid && !ap_valid && f_gen) || f_next(f_dp, f_gen_beat)) &&
          (!(ap_valid && f_gen) || f_next(f_ap, f_gen_beat)));
      //: A beat matches its command: block, size, direction, remaining beats, address of the first beat;
      //: the chain gives the other addresses.
      beats_of_command : assert ((!dp_valid || f_of_row(f_dp)) && (!ap_valid || f_of_row(f_ap)) &&
          (!gen_valid || f_of_row(f_gen_beat)));
      //: (invariant) Commands are numbered in order, at most four are held, and the generator is behind
      //: the last beat on the bus.
      numbers : assert (f_count <= 3'd4 && f_gen_no - f_old <= f_count &&
          f_gen_no - f_old == {2'd0, dp_valid && dp_ends} + {2'd0, ap_valid && ap_ends} && f_put - f_gen_no <= 3'd4);
      //: (invariant) Every held command is legal.
      legal_rows : assert (&f_good);
      //: (invariant) The beat in the address stage is legal, an orphan too.
      if (ap_valid || ap_orphan) legal_beat : assert (f_legal(ap_addr, ap_rem, ap_size));
      //: The read flags match the held commands.
      reads_held : assert (\u_beats.reads == (f_held & ~{f_rows[3*F_ROW], f_rows[2*F_ROW], f_rows[F_ROW], f_rows[0]}));
      //: A rewind covers the words of the beats that are repeated.
      if (reuse) words_back : assert (f_at - wd_back == f_dp_at);
      //: ... or the word of the next command's first beat, when that alone is repeated.
      if (ap_back) word_back : assert (f_at - wd_back == f_ap_at);
      //: (invariant) Each beat holds the word at its position, and the next word is directly behind.
      places : assert ((!(dp_valid && dp_write) || dp_wdata == f_words[f_dp_at]) &&
          (!(ap_valid && ap_write) || ap_wdata == f_words[f_ap_at]) &&
          (!ap_valid || f_at == f_ap_at + {1'b0, ap_pop}) &&
          (!(dp_valid && ap_valid) || f_ap_at == f_dp_at + {1'b0, dp_pop}) &&
          (!(dp_valid && !ap_valid) || f_at == f_dp_at + {1'b0, dp_pop}));
      //: (invariant) Beats of the tracked word carry its data.
      word_kept : assert (
          (!(\u_checker.dp_valid && \u_checker.dp_write && \u_checker.dp_addr == f_word_addr) || dp_wdata == f_word) &&
          (!((ap_valid || ap_orphan) && ap_write && ap_addr == f_word_addr) || ap_wdata == f_word));
      //: (invariant) The address stage is filled when HTRANS is not IDLE; orphans result from an abandon or ERROR.
      stages : assert ((htrans != TRANS_IDLE) == (ap_valid || ap_orphan) && !(ap_valid && ap_orphan) &&
          !(dp_valid && dp_orphan) && !(ap_valid && dp_orphan) && htrans != 2'b01 && (!more || ap_valid || ap_orphan) &&
          (f_abandons || (!ap_orphan && !dp_orphan)) && !(ap_orphan && dp_valid));
      //: (invariant) A beat followed by another of its burst is not the last of its command.
      if (ap_valid || ap_orphan) followed : assert (more == !ap_ends);
      //: (invariant) The rest of its command, or the next command, follows the youngest beat.
      if (dp_valid || ap_valid) rest_there : assert (
          f_young[F_REM+:5] != 5'd1 ? f_gen && !gen_first : gen_first && !dropping);
      //: (invariant) A command being skipped has begun, is the oldest, and has no beat in the stages.
      if (dropping) drops : assert (gen_valid && !gen_first && gen_oldest && !ap_valid && !dp_valid);
      //: (invariant) A command that began is held.
      if (!gen_first) begun : assert (gen_valid);
      //: (invariant) The master and the checker agree on the owner and the data phase.
      owner : assert ((!\u_checker.b_active || \u_checker.own ) && (htrans == TRANS_IDLE || \u_checker.own ) &&
          \u_checker.dp_valid == (dp_valid || dp_orphan || f_ours) && !(f_ours && (dp_valid || dp_orphan)) &&
          (!(dp_valid || dp_orphan) || (\u_checker.dp_write == dp_write)) &&
          (!dp_valid || (\u_checker.dp_addr == f_dp[32:1] && \u_checker.dp_size == f_dp[F_SIZE+:3])) &&
          (!f_ours || htrans == TRANS_IDLE) &&
          (!f_ours || f_answering) && (!f_idle || !\u_checker.dp_valid ));
      //: (invariant) For every beat but the first the checker tracks the same burst.
      if (htrans == TRANS_SEQ) burst : assert (\u_checker.b_active && \u_checker.b_next == m_ahb_haddr &&
          \u_checker.b_left == (hburst == BURST_INCR ? 5'd31 : ap_rem) && \u_checker.b_burst == hburst &&
          \u_checker.b_write == m_ahb_hwrite && \u_checker.b_size == m_ahb_hsize && \u_checker.b_prot == 4'd3 &&
          \u_checker.b_base [31:10] == m_ahb_haddr[31:10] && hburst != BURST_SINGLE);
      //: (invariant) The burst type is incrementing, and its length equals the remaining beats.
      burst_type : assert ((hburst[0] || hburst == BURST_SINGLE) && !\u_checker.b_lock &&
          (htrans != TRANS_NONSEQ || hburst == (ap_rem == 1 ? BURST_SINGLE : ap_rem == 4 ? BURST_INCR4 :
           ap_rem == 8 ? BURST_INCR8 : ap_rem == 16 ? BURST_INCR16 : BURST_INCR)));
      //: (invariant) A fixed burst with beats remaining continues, unless a response or the arbiter ends it.
      if (!f_abandons && \u_checker.own && \u_checker.b_active && \u_checker.b_burst > 1 && \u_checker.b_left != 0 &&
          !\u_checker.b_free ) goes_on : assert (htrans == TRANS_SEQ || \u_checker.b_burst == BURST_SINGLE);
      //: (invariant) The beat that the checker expects after a lost grant is the next beat.
      if (!f_abandons && \u_checker.rest_pending && !\u_checker.retry_pending ) rest : assert (
          (htrans == TRANS_NONSEQ && m_ahb_haddr == \u_checker.rest_addr && m_ahb_hwrite == \u_checker.rest_write ) ||
          (htrans == TRANS_IDLE && src_valid && gen_addr == \u_checker.rest_addr &&
           gen_write == \u_checker.rest_write && !(dp_valid && !gen_oldest)));
      //: (invariant) The beat that the checker expects after a refusal is the next beat.
      if (!f_abandons && \u_checker.retry_pending ) retried : assert (!dp_valid && (
          (!ap_valid && f_gen && gen_addr == \u_checker.retry_addr && gen_write == \u_checker.retry_write &&
           gen_size == \u_checker.retry_size && (!gen_write || f_words[f_at] == \u_checker.retry_data )) ||
          (ap_valid && htrans == TRANS_NONSEQ && ap_addr == \u_checker.retry_addr &&
           ap_write == \u_checker.retry_write && ap_size == \u_checker.retry_size &&
           (!ap_write || ap_wdata == \u_checker.retry_data ))));
      //: (invariant) A repeated transfer has the data of the refused one.
      if (!f_abandons && \u_checker.retry_data_check && \u_checker.dp_valid )
        retried_data : assert (dp_wdata == \u_checker.retry_data );
      //: The oldest beat follows the last one that ended; after an ERROR it begins the next command: no
      //: beat is lost or repeated.
      if (f_ended && (dp_valid || ap_valid || f_gen)) none_lost : assert (f_ended_error ?
          (f_oldest[F_IS_FIRST] && f_oldest[F_NO+:3] == f_last[F_NO+:3] + 3'd1) : f_next(f_last, f_oldest));
      //: (invariant) With no beat in flight the generator is behind the last beat that ended.
      if (f_ended && !dp_valid && !ap_valid) behind_last : assert (
          dropping ? (f_ended_error && f_gen_no == f_last[F_NO+:3]) :
          (f_ended_error || f_last[F_REM+:5] == 5'd1) ? (gen_first && f_gen_no == f_last[F_NO+:3] + 3'd1) : f_gen);
      //: Every beat that ends with OKAY, and no other, is reported in the next cycle, with its data.
      answered : assert (rsp_valid == f_done && (!f_done || (rsp_data == f_read && rsp_write == f_beat[0] &&
          rsp_first == f_beat[F_IS_FIRST] && rsp_last == (f_beat[F_REM+:5] == 1) && rsp_tag == f_tag)));
      //: Rule 21: an ERROR is reported once, with the failed beat.
      error_told : assert (mst_err_valid == f_failed && 
          (!f_failed || (mst_err_addr == f_beat[32:1] && mst_err_tag == f_tag)));
      //: After an ERROR no further beat of its command reaches the bus.
      if (f_after && ap_valid) contained : assert (f_ap_no != f_failed_no);
      //: A RETRY in a burst that then completes.
      retry_then_done : cover (f_saw_retry && rsp_valid && rsp_last && !rsp_first);
      //: An ERROR in the middle of a command; then the next command completes.
      error_then_done : cover (f_saw_error && rsp_valid && rsp_last);
      //: A burst of four loses the grant in the middle and completes.
      lost_then_done : cover (f_saw_lost && rsp_valid && rsp_last && !rsp_first);
    end
  end

  // the last beat that ended
  reg f_ended = 1'b0;
  reg f_ended_error;
  reg [F_BEAT-1:0] f_last;
  wire [F_BEAT-1:0] f_oldest = dp_valid ? f_dp : ap_valid ? f_ap : f_gen_beat;
  always @(posedge clk) begin
    f_ended <= !rst && !mst_abandon && (f_ended || done || fail);
    if (done || fail) begin
      f_last <= f_dp;
      f_ended_error <= fail;
    end
  end
  // the previous cycle
  reg f_done, f_failed, f_after;
  reg [2:0] f_failed_no;
  reg [F_BEAT-1:0] f_beat;
  reg [TAG_W-1:0] f_tag;
  reg [AHB_W-1:0] f_read;
  reg f_saw_retry, f_saw_error, f_saw_lost;
  always @(posedge clk) begin
    f_done <= !rst && !mst_abandon && dp_valid && m_ahb_hready && m_ahb_hresp == RESP_OKAY;
    f_failed <= !rst && !mst_abandon && dp_valid && !m_ahb_hready && m_ahb_hresp == RESP_ERROR;
    f_beat <= f_dp;
    f_tag <= f_olds[(TAG_W+22)*f_old[1:0]+22+:TAG_W];
    f_read <= m_ahb_hrdata;
    // until the next command but one may reuse its number
    f_after <= !rst && !mst_abandon && ((dp_valid && fail) || (f_after && dropping));
    if (dp_valid && fail) f_failed_no <= f_old;
    f_saw_retry <= !rst && (f_saw_retry || (reuse && ap_valid));
    f_saw_error <= !rst && (f_saw_error || (fail && ap_fails));
    f_saw_lost <= !rst && (f_saw_lost || (more && hburst == BURST_INCR4 && m_ahb_hready && !m_ahb_hgrant));
  end
