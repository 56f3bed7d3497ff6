# SPDX-License-Identifier: Apache-2.0
"""Ways to break a claim by hand: one changed line each, which that claim's test has to notice.

``openkpu claims`` tries them on a copy of the tree.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Mutation:
    """Replace ``old``, which occurs once in ``file``, by ``new``."""

    claim: str
    file: str
    old: str
    new: str
    breaks: str  # what is wrong then
    gate: int = 1  # 0: the build without the gate runs


CONTROL, RUNNER, PREFETCH, FETCH = (
    f"rtl/control/{name}.v" for name in ("control", "layer_runner", "prefetch_ctrl", "fetch_ctrl")
)
MOVER = "rtl/cache/map_mover.v"
CHANNEL, ORDER = "rtl/storage/dma_read_channel.v", "rtl/storage/dma_read_ctrl.v"
DISTRIBUTOR = "rtl/storage/dma_distributor.v"
CFG, INFERENCE = "rtl/host/ai_cfg.v", "rtl/host/inference_cfg.v"
UNIT, STORAGE = "rtl/mac/mac_unit.v", "tb/openkpu_tb/ahb/fabric/ahb_storage.v"
WRITE_BACK, WALK, POOL = (
    f"rtl/output/{name}.v" for name in ("write_back", "out_walk", "pool_line")
)

ASK = "(has_fc && !has_load ? fc_reached : place_free)"
STORE_ALL = "moves[`MOVES_STORE] || (list_mode && last)"

MUTATIONS = (
    # ---- C1
    Mutation(
        "C1",
        PREFETCH,
        "inf_on && follows && reads == 2'd2 &&",
        "1'b0 &&",
        "pixels of the next inference are not fetched ahead",
    ),
    Mutation(
        "C1",
        CONTROL,
        "go_on = committed &&",
        "go_on = 1'b0 &&",
        "continuous mode ends after one inference",
    ),
    Mutation("C1", RUNNER, STORE_ALL, "1'b1", "every layer's map is stored"),
    Mutation(
        "C1",
        MOVER,
        "2'd0} : total, unload_adr}",
        "2'd0} : total + 24'd4, unload_adr}",
        "a word more than the result is written",
    ),
    # ---- C2
    Mutation(
        "C2",
        DISTRIBUTOR,
        "read && chan == 3'd2,",
        "read && chan >= 3'd2,",
        "pixels enter the weight FIFO too",
    ),
    Mutation(
        "C2",
        DISTRIBUTOR,
        "read && chan == 3'd1,",
        "read && chan <= 3'd1,",
        "list words enter the bias FIFO too",
    ),
    # ---- C3
    Mutation("C3", RUNNER, STORE_ALL, "1'b1", "middle layers go to storage"),
    Mutation(
        "C3",
        RUNNER,
        "!(seq_over && core_idle && !pix_loading) ? RUN",
        "!seq_over ? RUN",
        "a layer starts before the one before it is written",
    ),
    Mutation(
        "C3",
        WALK,
        "r_row_b <= desc[`DESC_DST] +",
        "r_row_b <= desc[`DESC_SRC] +",
        "a layer's map is written over its input",
    ),
    # ---- C4
    Mutation(
        "C4",
        "rtl/storage/weight_bias_full.v",
        "weight_full && bias_full",
        "weight_full || bias_full",
        "WB_FIFO_FULL is an OR",
    ),
    Mutation(
        "C4",
        CHANNEL,
        "cur_valid && !cmd_take && room >= beats_now",
        "cur_valid && !cmd_take",
        "reads without regard to the room in the FIFO",
    ),
    Mutation("C4", CHANNEL, "f_count > FULL_C", "f_count >= FULL_C", "full flags one word early"),
    Mutation(
        "C4",
        FETCH,
        "= first && weight_quiet && bias_quiet;",
        "= first && bias_quiet;",
        "biases of the next inference before all weights of this one",
    ),
    Mutation(
        "C4",
        FETCH,
        "= after && !first && !asking && weight_quiet && bias_quiet;",
        "= after && !first;",
        "pixels before the first weights and biases",
    ),
    # ---- C5
    Mutation("C5", PREFETCH, ASK, "1'b1", "pixels before the fully connected layers are reached"),
    Mutation("C5", PREFETCH, ASK, "place_free", "pixels wait for their place, not for FC_layer"),
    Mutation(
        "C5",
        PREFETCH,
        ".place_free(place_free),",
        ".place_free(1'b1),",
        "pixels enter the data cache while their place is in use",
    ),
    Mutation(
        "C5",
        "rtl/control/weight_keep.v",
        "reuse || (given",
        "reuse && (given",
        "weights that fit are read again",
    ),
    Mutation(
        "C5",
        ORDER,
        "end else if (rd_want[3]) begin",
        "end else if (rd_want[3] && !rd_want[1] && !rd_want[2]) begin",
        "pixels wait for the weights of all layers",
    ),
    # ---- C6
    Mutation(
        "C6",
        UNIT,
        "if (enable || (GATE == 0)) begin",
        "if (valid) begin",
        "operands of a gated multiplication toggle",
    ),
    Mutation(
        "C6",
        UNIT,
        "valid && !(sgn && pixel[7]) && (|pixel)",
        "valid && !(sgn && pixel[7])",
        "a zero pixel is multiplied",
    ),
    Mutation(
        "C6",
        UNIT,
        "valid && !(sgn && pixel[7]) && (|pixel)",
        "valid && (|pixel)",
        "the sign bit is not looked at",
    ),
    Mutation("C6", CFG, "N_Y[7:0], N_X[7:0]}", "N_X[7:0], N_Y[7:0]}", "AI_CONFIG: another shape"),
    Mutation(
        "C6",
        UNIT,
        "if (enable || (GATE == 0)) begin",
        "if (enable) begin",
        "the build to compare with is gated too",
        gate=0,
    ),
    # ---- C7
    Mutation(
        "C7",
        WRITE_BACK,
        "wire plain = pool == `POOL_NONE && !flat;",
        "wire plain = 1'b1;",
        "pooled maps are stored unpooled",
    ),
    Mutation("C7", POOL, "max2 = (a > b) ? a : b;", "max2 = a;", "a maximum is any pixel"),
    Mutation(
        "C7",
        WALK,
        "y = job_gy >> fl;",
        "y = job_gy;",
        "pooled lines go to the rows of the unpooled map",
    ),
    # ---- C8
    Mutation(
        "C8",
        STORAGE,
        "htrans[0] ? cfg_seq_wait : cfg_rd_wait",
        "htrans[0] ? cfg_rd_wait : cfg_seq_wait",
        "later beats of a burst are the slow ones",
    ),
    Mutation(
        "C8",
        STORAGE,
        "hwrite ? cfg_wr_wait : ",
        "",
        "writes are as fast as reads",
    ),
    Mutation(
        "C8",
        STORAGE,
        "if (rst) begin\n",
        "if (rst) begin\n      mem[addr[31:2]] <= 32'd0;\n",
        "a reset empties a word",
    ),
    # ---- C9
    Mutation(
        "C9",
        INFERENCE,
        "next_pix = (npix_taken && !npix_take) ? taken : npix",
        "next_pix = npix",
        "AI_PIX_ADR follows what the host wrote too late",
    ),
    Mutation(
        "C9",
        INFERENCE,
        "(inf_next && last) || (accept",
        "(accept",
        "no fall back to discontinuous mode",
    ),
    Mutation(
        "C9",
        INFERENCE,
        "inf_left <= wr_left ? wdata : inf_left - 32'd1;",
        "inf_left <= wr_left ? wdata : inf_left;",
        "AI_INF_LEFT does not count",
    ),
    Mutation(
        "C9",
        INFERENCE,
        "npix_moves = inf_next && !npix_own;",
        "npix_moves = inf_next;",
        "AI_NPIX_ADR written late is moved on once too often",
    ),
    Mutation(
        "C9",
        INFERENCE,
        "more && !stopping,",
        "more,",
        "AI_CTRL stop has no effect",
    ),
    # ---- C10
    Mutation(
        "C10",
        CONTROL,
        "(list_mode ? cfg[`CFG_WGT_ADR] : 32'd0)",
        "(32'd0)",
        "AI_WGT_ADR is ignored",
    ),
    Mutation(
        "C10",
        FETCH,
        "weight_addr <= weight_addr + {15'd0, psize};",
        "weight_addr <= weight_addr;",
        "the second load of a layer reads the first one again",
    ),
    Mutation(
        "C10",
        CHANNEL,
        "assign cmd_addr = {cur_word, {OW{1'b0}}};",
        "assign cmd_addr = {cur_word[31-OW:1], 1'b0, {OW{1'b0}}};",
        "bursts begin at even words",
    ),
)
