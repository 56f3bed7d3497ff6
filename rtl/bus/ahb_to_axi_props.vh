  // Properties of ahb_to_axi: the handshakes of AXI4, the responses of AHB, and the routing of R data.
  // The AXI slave may stall, fail and respond late.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end
  // the previous cycle
  reg f_past = 1'b0;
  reg f_ready, f_error1, f_seq, f_write, f_trans1, f_drop;
  reg [31:0] f_addr;
  reg [2:0] f_size;
  reg [AHB_W-1:0] f_hwdata;
  reg f_ar, f_aw, f_w, f_r, f_b;
  reg [42:0] f_ar_now, f_aw_now;
  reg [AHB_W+LANES:0] f_w_now;
  reg [2:0] f_r_now;
  reg [1:0] f_b_now;
  always @(posedge clk) begin
    f_past   <= !rst;
    f_drop   <= drop;
    f_ready  <= s_ahb_hready;
    f_error1 <= !s_ahb_hready && s_ahb_hresp == RESP_ERROR;
    f_trans1 <= s_ahb_htrans[1];
    f_seq    <= s_ahb_htrans[0];
    f_write  <= s_ahb_hwrite;
    f_addr   <= s_ahb_haddr;
    f_size   <= s_ahb_hsize;
    f_hwdata <= s_ahb_hwdata;
    f_ar     <= !rst && m_axi_arvalid && !m_axi_arready;
    f_aw     <= !rst && m_axi_awvalid && !m_axi_awready;
    f_w      <= !rst && m_axi_wvalid && !m_axi_wready;
    f_r      <= !rst && m_axi_rvalid && !m_axi_rready;
    f_b      <= !rst && m_axi_bvalid && !m_axi_bready;
    f_ar_now <= {m_axi_araddr, m_axi_arlen, m_axi_arsize};
    f_aw_now <= {m_axi_awaddr, m_axi_awlen, m_axi_awsize};
    f_w_now  <= {m_axi_wdata, m_axi_wstrb, m_axi_wlast};
    f_r_now  <= {m_axi_rresp, m_axi_rlast};
    f_b_now  <= m_axi_bresp;
  end
  // requests that the AXI slave has not answered; write bursts with accepted address, last word
  reg [3:0] f_reads;
  reg f_awed, f_wed;
  always @(posedge clk) begin
    if (rst) begin
      f_reads <= 4'd0;
      f_awed  <= 1'b0;
      f_wed   <= 1'b0;
    end else begin
      f_reads <= f_reads + {3'd0, m_axi_arvalid && m_axi_arready} - {3'd0, r_ends};
      f_awed  <= (f_awed || (m_axi_awvalid && m_axi_awready)) && !(m_axi_bvalid && m_axi_bready);
      f_wed   <= (f_wed || (m_axi_wvalid && m_axi_wready && m_axi_wlast)) && !(m_axi_bvalid && m_axi_bready);
    end
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: R and B, with their payload, are held until accepted.
      if (f_past && f_r) keeps_r : assume (m_axi_rvalid && f_r_now == {m_axi_rresp, m_axi_rlast});
      //: As above.
      if (f_past && f_b) keeps_b : assume (m_axi_bvalid && f_b_now == m_axi_bresp);
      //: R answers a request accepted earlier.
      if (m_axi_rvalid) asked_r : assume (f_reads != 0);
      //: B answers a burst whose address and last word were accepted earlier.
      if (m_axi_bvalid) asked_b : assume (f_awed && f_wed);
      //: The AHB master holds a stalled transfer and its write data, except in the second cycle of an ERROR.
      if (f_past && !f_ready) waits_kept : assume (s_ahb_hwdata == f_hwdata && (f_error1 ? !s_ahb_htrans[1] :
          s_ahb_htrans == {f_trans1, f_seq} && s_ahb_hwrite == f_write && s_ahb_haddr == f_addr && s_ahb_hsize ==
              f_size));
      //: The AHB master is never BUSY, and never drops and announces in the same cycle.
      never_busy : assume (s_ahb_htrans != 2'b01 && !(drop && told));
      //: Announcements are of 1 to 16 beats, and there is room for them.
      if (told) announced : assume (s_ahb_ahead[`AHEAD_BEATS] != 0 && s_ahb_ahead[`AHEAD_BEATS] <= 16 && unused_ready);
      //: A write burst that begins is the oldest announced one that has not begun.
      if (begin_write) in_order : assume (waits && waiting[CMD_W-1] && length != 0 && length <= 16);
      //: As above, when the reads announced before it have ended.
      if (begin_write) reads_over : assume (open - {3'd0, r_ends} == ignored - {3'd0, ignoring && r_ends});
      //: A beat that continues a burst has its direction and follows a beat of it.
      if (s_ahb_htrans == TRANS_SEQ && !skip) continues : assume (dp_valid && !dp_dead && dp_write == s_ahb_hwrite &&
          (!dp_write || !last));

      //: AR is held, with its payload, until accepted.
      if (f_past && f_ar) ar_kept : assert (m_axi_arvalid && f_ar_now == {m_axi_araddr, m_axi_arlen, m_axi_arsize});
      //: AW is held, with its payload, until accepted.
      if (f_past && f_aw) aw_kept : assert (m_axi_awvalid && f_aw_now == {m_axi_awaddr, m_axi_awlen, m_axi_awsize});
      //: W is held, with its payload, until accepted.
      if (f_past && f_w) w_kept : assert (m_axi_wvalid && f_w_now == {m_axi_wdata, m_axi_wstrb, m_axi_wlast});
      //: At most OUTSTANDING reads are open.
      most_open : assert (open <= MOST && f_reads <= open);
      //: Between the start of a write burst and its response only discarded reads are open.
      if (write_open) no_read_before : assert (open == ignored);
      //: After a drop all reads requested before it are discarded.
      if (f_past && f_drop) dropped : assert (open == ignored);
      //: A write burst does not begin on AXI before the response to the previous one.
      if (m_axi_awvalid) one_write : assert (!f_awed);
      //: B is accepted only after address and last word.
      if (m_axi_bready) b_in_time : assert (f_awed && f_wed);
      //: No response without a request: a read ends only with a word of R, unless its response is ignored ...
      if (dp_valid && !dp_write && !dead && !second && s_ahb_hready) read_by_r : assert (m_axi_rvalid && m_axi_rready);
      //: ... and the word belongs to no discarded burst.
      if (reading && s_ahb_hready) read_own : assert (ignored == 0);
      //: The last beat of a write ends only with its response.
      if (writing && last && s_ahb_hready) write_by_b : assert (m_axi_bvalid && m_axi_bready && !m_axi_bresp[1]);
      //: A transfer with an error response never ends with OKAY.
      if (m_axi_rvalid && m_axi_rready && m_axi_rresp[1] && !ignoring) no_lost_error : assert (s_ahb_hresp ==
          RESP_ERROR);
      //: As above, for a burst that was not cut.
      if (m_axi_bvalid && m_axi_bready && m_axi_bresp[1] && !cut_open) no_lost_response : assert (s_ahb_hresp ==
          RESP_ERROR);
      //: IDLE gets an immediate OKAY.
      if (!dp_valid) idle_okay : assert (s_ahb_hready && s_ahb_hresp == RESP_OKAY);
      //: ERROR has two cycles, not ready and then ready.
      if (f_past) error_twice : assert ((s_ahb_hresp == RESP_ERROR && s_ahb_hready) == f_error1);
      //: Bounded wait: a read ends, or fails, in the cycle of its R.
      if (reading && !ignoring && m_axi_rvalid) no_wait_r : assert (s_ahb_hready || s_ahb_hresp == RESP_ERROR);
      //: Bounded wait: a beat other than the last ends in the cycle in which its word and its address are accepted.
      if (writing && !last && m_axi_wvalid && m_axi_wready && (!m_axi_awvalid || m_axi_awready) && !cut_open)
        no_wait_w : assert (s_ahb_hready);
      //: (invariant) Every open burst is on AR or with the AXI slave, and at most the open ones are discarded.
      counts : assert (open == f_reads + {3'd0, ar_valid} && ignored <= open);
      //: (invariant) A write burst that was begun and not cut is in the data phase.
      if (aw_todo) todo : assert (dp_valid && dp_write && !dp_dead && !second && write_open && (!f_awed || cut_open));
      //: (invariant) As above.
      if (dp_valid && dp_write && !dp_dead) begun : assert (left != 0 && left <= 16 && (second || write_open));
      //: (invariant) The registers track the accepted address and last word.
      parts : assert (f_awed == (cut_open || (write_open && !aw_todo)));
      //: (invariant) As above.
      words : assert (f_wed == (cut_open ? rest == 0 : write_open && w_done && last));
      //: (invariant) A burst is cut once, and only its rest is filled, before another one begins.
      fills : assert ((rest == 0 || cut_open) && rest <= 15 && !(cut_open && w_done) && (!cut_open || !write_open ||
          aw_todo));
      //: (invariant) Written data belong to a burst in the data phase.
      opened : assert ((!write_open || (dp_valid && dp_write && !dp_dead && !second)) && (!w_done || write_open ||
          second) && (!second || dp_valid));
      //: (invariant) Directly after the reset nothing is open.
      if (!f_past) fresh : assert (!dp_valid && !second && !ap_dead && open == 0 && f_reads == 0 && ignored == 0 &&
          !ar_valid &&
                 !aw_todo && !w_done && rest == 0 && !cut_open && !write_open && !f_awed && !f_wed);
      //: A read ends although the previous read failed and was discarded.
      ignored_then_read : cover (f_saw_ignored && read_ends);
      //: A write burst is cut, filled and answered, and another one ends.
      cut_then_write : cover (f_saw_cut && write_ends && last);
    end
  end
  reg f_saw_ignored = 1'b0;
  reg f_saw_cut = 1'b0;
  always @(posedge clk) begin
    f_saw_ignored <= !rst && (f_saw_ignored || (ignoring && r_ends));
    f_saw_cut <= !rst && (f_saw_cut || cut);
  end
