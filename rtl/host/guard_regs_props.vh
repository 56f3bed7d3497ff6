  // Properties of guard_regs. One arbitrary register is compared with a model of the host's writes.
  //: The design is reset first.
  initial begin
    from_reset : assume (rst);
  end

  (* anyconst *) reg [9:0] f_word;
  reg f_began = 1'b0;
  reg [9:0] f_at;  // address of the access
  reg f_lock;
  reg [31:0] f_value;
  wire f_window = f_word >= `REG_AI_READ_FIRST && f_word <= `REG_AI_WRITE_LAST;
  wire f_spare = f_word == `REG_AI_SPARE_ROWS;
  wire [31:0] f_bits = f_window ? 32'hFFFFFC00 : f_word == `REG_AI_LOCK ? 32'd1 :
      f_spare ? 32'hFFFF7FFF : 32'hFFFFFFFF;
  // rows that exist, or none
  wire [31:0] f_end = wdata[14:0] + wdata[31:16];
  wire f_exist = wdata[31:16] == 0 || f_end <= SPARE_MOST;
  wire f_stored = !f_spare || (SPARE_MOST != 0 && f_exist);
  reg f_wrote;
  reg [`GUARD_BITS-1:0] f_guard;
  reg [31:0] f_watchdog;
  reg [`SPARE_BITS-1:0] f_rows;
  always @(posedge clk) begin
    f_began <= f_began || rst;
    f_at <= next;
    f_wrote <= wr || rst;
    f_guard <= guard;
    f_watchdog <= watchdog;
    f_rows <= spare;
    f_lock <= !rst && (f_lock || (wr && f_at == `REG_AI_LOCK && wdata[0]));
    if (rst) f_value <= (f_word == `REG_AI_READ_LAST || f_word == `REG_AI_WRITE_LAST) ? 32'hFFFFFC00 :
        f_word == `REG_AI_WATCHDOG ? WATCHDOG_DEFAULT : 32'd0;
    else if (wr && f_at == f_word && !(f_window && f_lock) && f_stored)
      f_value <= (wdata & f_bits) | (f_word == `REG_AI_LOCK ? f_value : 32'd0);
  end

  always @(posedge clk) begin
    if (f_began && !rst) begin
      //: A register reads back the value written, reserved bits as 0; writes elsewhere do not change it.
      if (f_at == f_word && hit) reads_back : assert (rdata == f_value);
      //: Addresses of other registers read as 0.
      if (!hit) others_zero : assert (rdata == 0);
      //: Nothing changes without a write.
      if (!f_wrote) only_writes : assert (guard == f_guard && watchdog == f_watchdog && spare == f_rows);
      //: Once locked, no window changes until the reset.
      if (f_locked_before) lock_holds : assert (lock && guard == f_guard);
      //: A write to a locked window is reported.
      reported : assert (locked == (wr && f_lock && f_at >= `REG_AI_READ_FIRST && f_at <= `REG_AI_WRITE_LAST));
      //: Rows behind the end of the AI RAM are reported, where weights may wait.
      rows_reported : assert (misplaced == (wr && f_at == `REG_AI_SPARE_ROWS && SPARE_MOST != 0 && !f_exist));
      //: The rows in use lie in the AI RAM.
      rows_exist : assert (spare[`SPARE_ROWS] == 0 || spare[`SPARE_FIRST] + spare[`SPARE_ROWS] <= SPARE_MOST);
      //: (invariant) The decode matches the address of the previous cycle.
      decode : assert (
          {hit, at_spare, at_watchdog, at_lock, at_write_last, at_write_first, at_read_last, at_read_first} == {
          f_at >= `REG_AI_READ_FIRST && f_at <= `REG_AI_SPARE_ROWS,
          f_at == `REG_AI_SPARE_ROWS, f_at == `REG_AI_WATCHDOG, f_at == `REG_AI_LOCK,
          f_at == `REG_AI_WRITE_LAST, f_at == `REG_AI_WRITE_FIRST, f_at == `REG_AI_READ_LAST,
          f_at == `REG_AI_READ_FIRST});
      //: (invariant) The lock matches the model.
      lock_model : assert (lock == f_lock);
      //: (invariant) The tracked register holds the model's value.
      model : assert (f_value == (f_word == `REG_AI_READ_FIRST ? {read_first, 10'd0} :
          f_word == `REG_AI_READ_LAST ? {read_last, 10'd0} : f_word == `REG_AI_WRITE_FIRST ? {write_first, 10'd0} :
          f_word == `REG_AI_WRITE_LAST ? {write_last, 10'd0} : f_word == `REG_AI_LOCK ? {31'd0, lock} :
          f_word == `REG_AI_WATCHDOG ? watchdog :
          f_spare ? {spare[`SPARE_ROWS], 1'b0, spare[`SPARE_FIRST]} : f_value));
      //: A window is changed and then locked.
      locks : cover (f_lock && f_window && f_value == 32'h12345400);
      //: The last row is spare.
      last_row : cover (f_spare && f_value == 32'h00010027);
    end
  end
  reg f_locked_before = 1'b0;
  always @(posedge clk) f_locked_before <= !rst && f_began && f_lock;
