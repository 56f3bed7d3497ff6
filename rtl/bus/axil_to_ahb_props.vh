  // Properties of axil_to_ahb: the handshakes of AXI4-Lite and the transfers of AHB. The host may offer
  // channels in any order and accept responses late, the slave may stall and fail.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end
  // the previous cycle
  reg f_past = 1'b0;
  reg f_aw, f_w, f_ar, f_b, f_r, f_trans, f_hready, f_error1;
  reg [34:0] f_aw_now, f_ar_now;
  reg [35:0] f_w_now;
  reg [33:0] f_r_now;
  reg [1:0] f_b_now;
  always @(posedge clk) begin
    f_past   <= !rst;
    f_aw     <= s_axil_awvalid && !s_axil_awready;
    f_w      <= s_axil_wvalid && !s_axil_wready;
    f_ar     <= s_axil_arvalid && !s_axil_arready;
    f_b      <= s_axil_bvalid && !s_axil_bready;
    f_r      <= s_axil_rvalid && !s_axil_rready;
    f_aw_now <= {s_axil_awaddr, s_axil_awprot};
    f_ar_now <= {s_axil_araddr, s_axil_arprot};
    f_w_now  <= {s_axil_wdata, s_axil_wstrb};
    f_r_now  <= {s_axil_rdata, s_axil_rresp};
    f_b_now  <= s_axil_bresp;
    f_trans  <= !rst && m_ahb_htrans[1];
    f_hready <= m_ahb_hready;
    f_error1 <= m_ahb_hresp != 0 && !m_ahb_hready;
  end
  reg f_offered, f_last;
  always @(posedge clk) begin
    f_offered <= !rst && !f_writes && !f_reads && !s_axil_awready && !s_axil_arready &&
        ((s_axil_awvalid && s_axil_wvalid) || s_axil_arvalid);
    f_last <= !rst && f_data && m_ahb_hready && (m_ahb_hresp != 0 || f_lanes == f_wanted);
  end
  // accesses accepted and not yet answered
  reg f_writes, f_reads;
  // one of its AHB transfers got an ERROR; the lanes covered by its transfers
  reg f_failed;
  reg [3:0] f_lanes, f_wanted;
  wire [3:0] f_now = (m_ahb_hsize == 0) ? 4'd1 << m_ahb_haddr[1:0] : (m_ahb_hsize == 1) ? 4'd3 << m_ahb_haddr[1:0] :
      4'd15;
  // an AHB transfer is in its data phase
  reg f_data;
  always @(posedge clk) begin
    if (rst) begin
      f_writes <= 1'b0;
      f_reads <= 1'b0;
      f_data <= 1'b0;
    end else begin
      f_writes <= (f_writes || s_axil_awready) && !(s_axil_bvalid && s_axil_bready);
      f_reads <= (f_reads || s_axil_arready) && !(s_axil_rvalid && s_axil_rready);
      f_data <= m_ahb_hready ? m_ahb_htrans[1] : f_data;
    end
    if (s_axil_awready || s_axil_arready) begin
      f_failed <= 1'b0;
      f_lanes <= 4'd0;
      f_wanted <= s_axil_awready ? s_axil_wstrb : 4'd15;
    end else begin
      f_failed <= f_failed || (f_data && m_ahb_hresp != 0);
      f_lanes <= (m_ahb_htrans[1] && m_ahb_hready) ? f_lanes | f_now : f_lanes;
    end
  end

  always @(posedge clk) begin
    if (!rst) begin
      //: The host holds its offers until they are accepted.
      if (f_past && f_aw) keeps_aw : assume (s_axil_awvalid && f_aw_now == {s_axil_awaddr, s_axil_awprot});
      //: As above.
      if (f_past && f_w) keeps_w : assume (s_axil_wvalid && f_w_now == {s_axil_wdata, s_axil_wstrb});
      //: As above.
      if (f_past && f_ar) keeps_ar : assume (s_axil_arvalid && f_ar_now == {s_axil_araddr, s_axil_arprot});
      //: The slave is ready, with OKAY, while it has no transfer.
      if (!f_data) at_rest : assume (m_ahb_hready && m_ahb_hresp == 0);
      //: ERROR has two cycles.
      if (f_past) error_twice : assume ((m_ahb_hresp != 0 && m_ahb_hready) == f_error1);

      //: B is held until accepted.
      if (f_past && f_b) b_kept : assert (s_axil_bvalid && f_b_now == s_axil_bresp);
      //: R is held, with its word, until accepted.
      if (f_past && f_r) r_kept : assert (s_axil_rvalid && f_r_now == {s_axil_rdata, s_axil_rresp});
      //: Address and data of a write are accepted together, and not while another access is open.
      together : assert (s_axil_awready == s_axil_wready && (!s_axil_awready || (s_axil_awvalid && s_axil_wvalid &&
          !f_writes && !f_reads)));
      //: A read address is accepted only when valid, and not while another access is open.
      read_alone : assert (!s_axil_arready || (s_axil_arvalid && !f_writes && !f_reads));
      //: No response without a request.
      no_b : assert (!s_axil_bvalid || f_writes);
      //: As above.
      no_r : assert (!s_axil_rvalid || f_reads);
      //: SLVERR if and only if a transfer got an ERROR.
      if (s_axil_bvalid) b_told : assert (s_axil_bresp == {f_failed, 1'b0});
      //: As above.
      if (s_axil_rvalid) r_told : assert (s_axil_rresp == {f_failed, 1'b0});
      //: A write without an error covers the lanes of its strobes; transfers cover only such lanes, and none twice.
      if (s_axil_bvalid && !f_failed) covered : assert (f_lanes == f_wanted);
      //: As above.
      if (m_ahb_htrans[1]) lanes_own : assert ((f_now & ~f_wanted) == 0 && (f_now & f_lanes) == 0);
      //: A transfer is aligned, no wider than a word, and never BUSY or SEQ.
      aligned : assert (!m_ahb_htrans[0] && m_ahb_hsize <= 2 &&
          (m_ahb_haddr[1:0] & ((2'd1 << m_ahb_hsize) - 2'd1)) == 0);
      //: One transfer at a time.
      alone : assert (!(f_data && m_ahb_htrans[1]));
      //: Bounded wait: an access offered while nothing is open is accepted in the next cycle.
      if (f_past && f_offered) offered : assert (s_axil_awready || s_axil_arready);
      //: Bounded wait: an access ends in the cycle after the last one of its last transfer.
      if (f_past && f_last) ends : assert (s_axil_bvalid || s_axil_rvalid);
      //: (invariant) The state matches the open accesses.
      open_state : assert (state <= RESPOND && (f_writes || f_reads) == (state > TAKE) && !(f_writes && f_reads) &&
                 (state <= TAKE || write == f_writes) && f_data == (state == DATA));
      //: (invariant) TAKE accepts only valid channels.
      if (state == TAKE) taken : assert (write ? s_axil_awvalid && s_axil_wvalid : s_axil_arvalid);
      //: (invariant) The remaining lanes.
      if (state > TAKE) left_lanes : assert (write ? strobes == (f_wanted & ~f_lanes) && (f_lanes & ~f_wanted) ==
          0 && (state != ADDRESS || strobes != 0)
                 : f_wanted == 15 && f_lanes == ((state == ADDRESS) ? 4'd0 : 4'd15));
      //: (invariant) An error is recorded, and no transfer follows it.
      if (state > TAKE) remembered : assert (f_failed == error && !(state == ADDRESS && error) &&
                 (state != DATA || error == (f_past && f_error1)));
      //: (invariant) An access that is answered has no lanes remaining.
      if (state == RESPOND && write) nothing_left : assert (error || strobes == 0);
      //: (invariant) Directly after the reset there is no access.
      if (!f_past) fresh : assert (state == IDLE && !f_data && !f_reads && !f_writes);
      //: A write of the strobes 1101 ends, then a read.
      pieces_then_read : cover (f_saw_pieces && s_axil_rvalid);
    end
  end
  reg f_saw_pieces = 1'b0;
  always @(posedge clk) f_saw_pieces <= !rst && (f_saw_pieces || (s_axil_bvalid && f_wanted == 4'b1101 && !f_failed));
