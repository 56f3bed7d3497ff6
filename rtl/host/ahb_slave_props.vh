  // Properties of ahb_slave: the rules of the simulations' bus checker, and the accesses that reach the two
  // sides. Other slaves drive hready_in freely between our transfers.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  wire [36:0] f_rule;
  wire [31:0] f_errors;
  ahb_slave_checker #(
      .DATA_W(32)
  ) u_checker (
      .clk(clk),
      .rst(rst),
      .hsel(s_ahb_hsel),
      .haddr(s_ahb_haddr),
      .htrans(s_ahb_htrans),
      .hwrite(s_ahb_hwrite),
      .hsize(s_ahb_hsize),
      .hready_in(s_ahb_hready_in),
      .hready_out(s_ahb_hready_out),
      .hresp(s_ahb_hresp),
      .hrdata(s_ahb_hrdata),
      .rule(f_rule),
      .errors(f_errors)
  );
  (* hierconn *) wire \u_checker.legal ;
  (* hierconn *) wire \u_checker.prev_hready ;
  (* hierconn *) wire [1:0] \u_checker.prev_hresp ;
  (* hierconn *) wire \u_checker.dp_active ;
  (* hierconn *) wire \u_checker.dp_idle ;

  // the data phase: ours, or that of an IDLE or BUSY; attributes of its transfer
  reg f_ours = 1'b0;
  reg f_still = 1'b0;
  reg f_write;
  reg [31:0] f_addr;
  reg [2:0] f_size;
  reg [3:0] f_prot;
  reg f_begins;  // first cycle of the data phase
  always @(posedge clk) begin
    if (rst) begin
      f_ours   <= 1'b0;
      f_still  <= 1'b0;
      f_begins <= 1'b0;
    end else begin
      f_begins <= s_ahb_hready_in;
      if (s_ahb_hready_in) begin
        f_ours  <= s_ahb_hsel && s_ahb_htrans[1];
        f_still <= s_ahb_hsel && !s_ahb_htrans[1];
        f_write <= s_ahb_hwrite;
        f_addr  <= s_ahb_haddr;
        f_size  <= s_ahb_hsize;
        f_prot  <= s_ahb_hprot;
      end
    end
  end
  // independent model of the map and the access policy
  wire f_aligned = f_size <= 2 && (f_addr & ((32'd1 << f_size) - 32'd1)) == 0;
  wire f_taken = f_aligned && !(PRIVILEGED != 0 && f_write && !f_prot[1]);
  wire f_regs = f_taken && f_size == 2 && f_addr[21:12] == 0;
  wire f_ram = f_taken && f_addr[21] && f_addr[20:0] < AI_RAM_ROWS * 64;
  wire [3:0] f_lanes = (f_size == 0) ? 4'd1 << f_addr[1:0] : (f_size == 1) ? 4'd3 << f_addr[1:0] : 4'd15;
  // values of the previous cycle
  reg f_waited = 1'b0;
  reg [9:0] f_next;
  reg f_acked;
  reg [57:0] f_window;
  wire [57:0] f_now = {window_we, window_addr, window_wstrb};
  always @(posedge clk) begin
    f_waited <= !rst && window_req && !window_ack;
    f_window <= f_now;
    f_next <= reg_next;
  end

  always @(posedge clk) begin
    //: During our data phase hready_in follows hready_out.
    if (!rst && (f_ours || f_still)) ready_is_ours : assume (s_ahb_hready_in == s_ahb_hready_out);
    //: Rule 24: OKAY and ready when no transfer is ours.
    if (!f_first) rule_24 : assert (!f_rule[24]);
    //: Rule 25: IDLE and BUSY get a zero-wait OKAY.
    if (!f_first) rule_25 : assert (!f_rule[25]);
    //: Rule 27: a response other than OKAY takes two cycles, first not ready, then ready.
    if (!f_first) rule_27 : assert (!f_rule[27]);
    //: Rule 31: a misaligned transfer or one wider than the bus ends in ERROR.
    if (!f_first) rule_31 : assert (!f_rule[31]);
    if (!rst) begin
      //: The only responses are OKAY and ERROR.
      no_retry : assert (!s_ahb_hresp[1]);
      //: Rules 26, 29: a register is written in the first cycle of a legal register write and only then.
      write_exact : assert (reg_wr == (f_ours && f_begins && f_regs && f_write));
      //: Rules 26, 29: a register is read in the first cycle of a legal register read and only then.
      read_exact : assert (reg_rd == (f_ours && f_begins && f_regs && !f_write));
      //: The register access has the address and data of the transfer.
      if (reg_wr || reg_rd) reg_address : assert (f_next == f_addr[11:2] && reg_wdata == s_ahb_hwdata &&
                 reg_command == (reg_wr && f_addr[11:2] == `REG_AI_CTRL));
      //: Rules 26, 29: window_req is asserted for legal accesses to the AI RAM and for nothing else.
      window_exact : assert (window_req == (f_ours && f_ram));
      //: The access to the AI RAM has the address, direction and data of the transfer, and exactly its lanes.
      if (window_req) window_address : assert (window_addr == f_addr[20:0] && window_we == f_write &&
                 window_wdata == s_ahb_hwdata && window_wstrb == (f_write ? f_lanes : 4'd0));
      //: A transfer to the AI RAM is held unchanged until window_ack.
      if (f_waited) window_held : assert (window_req && f_now == f_window);
      //: A legal transfer that its side accepts ends with OKAY, any other one with ERROR.
      if (f_ours && s_ahb_hready_out) answer : assert ((s_ahb_hresp == 2'b00) == (f_ram || (f_regs && f_begins &&
          !reg_err)));
      //: A legal register access without reg_err never waits.
      if (f_ours && f_begins && f_regs && !reg_err) no_wait : assert (s_ahb_hready_out);
      //: A read returns the data that its side drives in the last cycle.
      if (f_ours && s_ahb_hready_out && !f_write && s_ahb_hresp == 0) read_data : assert (s_ahb_hrdata == (f_ram ?
          window_rdata : reg_rdata));
      //: (invariant) The state matches the transfer in the data phase.
      states : assert (state <= FAULT2 && (state != IDLE) == f_ours &&
                 ((state == RAM) == (f_ours && f_ram)) && ((state == REGS) == (f_ours && f_regs && f_begins)) &&
                 (!(state == FAULT) || (f_begins && !f_ram && !f_regs)) &&
                 (!(state == FAULT2) || (!f_begins && !f_ram)));
      //: (invariant) Address, size and direction match the transfer in its first cycle and while it waits.
      if (f_ours && (f_begins || f_ram)) transfer : assert (addr == f_addr[20:0] && size == f_size && write == f_write);
      //: (invariant) The checker tracks the same data phase.
      checker_state : assert (!(f_ours && f_still) && \u_checker.dp_active == f_ours && \u_checker.dp_idle == f_still &&
                 (!f_ours || \u_checker.legal == f_aligned) &&
                 (!f_ours || (!\u_checker.prev_hready && \u_checker.prev_hresp != 0) == (state == FAULT2)) &&
                 (!(state == FAULT2) || \u_checker.prev_hresp == 1) && (f_begins || !f_ours || state != REGS));
      //: An access that a register rejects ends with ERROR.
      error_of_register : cover (f_ours && f_regs && !f_begins && s_ahb_hresp == 2'b01 && s_ahb_hready_out);
      //: A write to the AI RAM ends after wait states; a register read follows immediately.
      waits_then_read : cover (f_ours && f_regs && f_begins && !f_write && f_came_after_wait);
    end
  end
  reg f_first = 1'b1;
  always @(posedge clk) f_first <= 1'b0;
  reg f_came_after_wait = 1'b0;
  always @(posedge clk) f_came_after_wait <= f_waited && window_req && window_we && window_ack;
