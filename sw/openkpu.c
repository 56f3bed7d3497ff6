/* SPDX-License-Identifier: Apache-2.0 */
/* Device, networks and streams. Parts between "page:" marks are the code of docs/programming.md. */
#include "openkpu_internal.h"

static const uint32_t OPENKPU_AI_INTERRUPTS = OPENKPU_AI_INT_STATUS_DONE_MASK | OPENKPU_AI_INT_STATUS_ERROR_MASK;
static const uint32_t OPENKPU_ALL_FIFOS =
    OPENKPU_FIFO_CTRL_DMA_FIFO_FLUSH_N_MASK | OPENKPU_FIFO_CTRL_GS_FIFO_FLUSH_N_MASK |
    OPENKPU_FIFO_CTRL_CFG_FIFO_FLUSH_N_MASK | OPENKPU_FIFO_CTRL_CMD_FIFO_FLUSH_N_MASK |
    OPENKPU_FIFO_CTRL_RESP_FIFO_FLUSH_N_MASK;
static const uint32_t OPENKPU_MAGIC = 0x55504B4F;     /* AI_ID */
static const uint32_t OPENKPU_MOST_ROWS = 32768;      /* of 64 bytes, in the window of the AI RAM */
static const uint32_t OPENKPU_RESET_PASSES = 2000000; /* of the loop: more than the watchdog after reset, 2^20 cycles */

uint32_t openkpu_version(void) { return OPENKPU_DRIVER_VERSION; }

/* note a failure that is not the device's */
enum openkpu_status openkpu_fail(struct openkpu *dev, enum openkpu_status code, uint32_t address) {
  dev->error.code = code;
  dev->error.layer = dev->error.waits = dev->error.inference = dev->error.state = 0;
  dev->error.stream = 7;
  dev->error.address = address;
  return code;
}

enum openkpu_status openkpu_idle(struct openkpu *dev) {
  if (dev->state == OPENKPU_STATE_IDLE) return OPENKPU_OK;
  return openkpu_fail(dev, dev->state == OPENKPU_STATE_RUN ? OPENKPU_BUSY : OPENKPU_WRONG_ORDER, 0);
}

enum openkpu_status openkpu_inside(struct openkpu *dev, uint32_t address, uint64_t bytes) {
  const uint64_t space = (uint64_t)1 << 32;
  uint64_t first = dev->size ? dev->memory : 0, end = dev->size ? first + dev->size : space;
  if (end > space) end = space; /* addresses of the device do not wrap */
  if (address >= first && address + bytes <= end) return OPENKPU_OK;
  return openkpu_fail(dev, OPENKPU_NO_ROOM, address);
}

/* the device raises no interrupt */
static void mask(const struct openkpu *dev) {
  openkpu_wr(dev, OPENKPU_INTERRUPT_MASK, OPENKPU_KPU_INTERRUPTS);
  openkpu_wr(dev, OPENKPU_AI_INT_MASK, OPENKPU_AI_INTERRUPTS);
}

enum openkpu_status openkpu_init(struct openkpu *dev, void *port, uint32_t memory, uint32_t size) {
  dev->port = port;
  uint32_t id = openkpu_rd(dev, OPENKPU_AI_ID);
  if (id != OPENKPU_MAGIC) {
    dev->state = OPENKPU_STATE_NONE;
    return openkpu_fail(dev, OPENKPU_NO_DEVICE, OPENKPU_AI_ID);
  }
  mask(dev); /* what a boot stage or a run before has left; until then the handler of that run serves it */
  dev->by_irq = 0;
  dev->memory = memory;
  dev->size = size;
  dev->reset_limit = OPENKPU_RESET_PASSES;
  dev->rows = OPENKPU_MOST_ROWS;
  dev->events = 0;
  dev->pixels = dev->result = dev->stride = dev->bytes = dev->count = dev->finished = 0;
  dev->stored = dev->stored_bytes = 0;
  (void)openkpu_fail(dev, OPENKPU_OK, 0);
  dev->config = openkpu_rd(dev, OPENKPU_AI_CONFIG);
  dev->state = OPENKPU_STATE_IDLE;
  openkpu_wr(dev, OPENKPU_FIFO_CTRL, OPENKPU_ALL_FIFOS); /* a boot stage before may have left one empty */
  return openkpu_reset(dev);
}

void openkpu_use_irq(struct openkpu *dev, int on) {
  if (!on && dev->state != OPENKPU_STATE_NONE) mask(dev); /* before: the handler serves nothing any more */
  dev->by_irq = on != 0;
  if (on && dev->state == OPENKPU_STATE_RUN) openkpu_wr(dev, OPENKPU_AI_INT_MASK, 0);
}

int openkpu_pending(const struct openkpu *dev) { return dev->events != 0; }

/* page: interrupts */
/* note what has happened, and clear it; of the KPU's interrupts those of a register */
static int serve(struct openkpu *dev, uint32_t kpu_register) {
  uint32_t ai = openkpu_rd(dev, OPENKPU_AI_INT_STATUS), kpu = openkpu_rd(dev, kpu_register);
  if (ai) openkpu_wr(dev, OPENKPU_AI_INT_STATUS, ai);
  if (kpu) openkpu_wr(dev, OPENKPU_INTERRUPT_CLEAR, kpu);
  dev->events |= ai | kpu << OPENKPU_EVENT_KPU_SHIFT;
  return (ai | kpu) != 0;
}

/* serve the interrupt line: note what it says and silence it; 0 when it says nothing */
int openkpu_irq(struct openkpu *dev) {
  /* of another device on the line, before openkpu_init; or this one is polled, by the thread alone */
  if (dev->state == OPENKPU_STATE_NONE || !dev->by_irq) return 0;
  return serve(dev, OPENKPU_INTERRUPT_STATUS);
}

/* wait for one of the events, or an error, in at most `limit` passes */
enum openkpu_status openkpu_await(struct openkpu *dev, uint32_t wanted, uint32_t limit) {
  for (;;) {
    if (!dev->by_irq) (void)serve(dev, OPENKPU_INTERRUPT_RAW); /* all are masked */
    if (dev->events & (wanted | OPENKPU_EVENT_ERROR)) break;
    if (!limit--) return openkpu_timeout(dev);
    OPENKPU_PAUSE(dev);
  }
  dev->events = 0; /* before the registers are read: what comes later is an event of its own */
  OPENKPU_BARRIER(dev->port);
  return openkpu_check(dev);
}
/* page end */

/* page: collect */
/* results that are stored by now: what is new may be read; the last one ends the run */
static void collect(struct openkpu *dev) {
  uint32_t now = openkpu_rd(dev, OPENKPU_PERF_INFERENCES); /* low word: fewer than 2^32 */
  OPENKPU_BARRIER(dev->port);                              /* what is counted is read later */
  if (dev->finished < now && dev->stored_bytes) OPENKPU_INVALIDATE(dev->port, dev->stored, dev->stored_bytes);
  for (; dev->finished < now; dev->finished++) {
    OPENKPU_INVALIDATE(dev->port, dev->result + dev->finished * dev->stride, dev->bytes);
  }
  if (now >= dev->count) dev->state = OPENKPU_STATE_IDLE;
}
/* page end */

/* page: recovery */
/* everything stops; dev->error stays */
static enum openkpu_status recover(struct openkpu *dev) {
  if (dev->state == OPENKPU_STATE_RUN) collect(dev);
  openkpu_wr(dev, OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_SOFT_RESET_MASK);
  dev->state = OPENKPU_STATE_IDLE;
  for (uint32_t passes = 0; openkpu_rd(dev, OPENKPU_AI_STATUS) & OPENKPU_AI_STATUS_BUSY_MASK; passes++) {
    if (passes >= dev->reset_limit) return OPENKPU_STUCK;
  }
  openkpu_wr(dev, OPENKPU_AI_ERR_CODE, 0);
  openkpu_wr(dev, OPENKPU_INTERRUPT_CLEAR, OPENKPU_KPU_INTERRUPTS);
  openkpu_wr(dev, OPENKPU_AI_CNN_DONE, OPENKPU_AI_CNN_DONE_DONE_MASK);
  openkpu_wr(dev, OPENKPU_AI_INT_STATUS, OPENKPU_AI_INTERRUPTS);
  dev->events = 0;
  return OPENKPU_OK;
}

/* everything stops; configuration, AI RAM and windows stay */
enum openkpu_status openkpu_reset(struct openkpu *dev) {
  if (dev->state == OPENKPU_STATE_NONE) return openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  return recover(dev) ? openkpu_fail(dev, OPENKPU_STUCK, 0) : OPENKPU_OK;
}

/* the first error of the device, described in dev->error, after recovery; OPENKPU_OK when there is none */
enum openkpu_status openkpu_check(struct openkpu *dev) {
  if (dev->state == OPENKPU_STATE_NONE) return openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  uint32_t code = openkpu_rd(dev, OPENKPU_AI_ERR_CODE);
  if (code == OPENKPU_ERR_NONE) return OPENKPU_OK;
  uint32_t info = openkpu_rd(dev, OPENKPU_AI_ERR_INFO);
  dev->error.code = (enum openkpu_status)code;
  dev->error.layer = (info & OPENKPU_AI_ERR_INFO_LAYER_MASK) >> OPENKPU_AI_ERR_INFO_LAYER_SHIFT;
  dev->error.stream = (info & OPENKPU_AI_ERR_INFO_STREAM_MASK) >> OPENKPU_AI_ERR_INFO_STREAM_SHIFT;
  if (code != OPENKPU_ERR_BUS_ERROR && code != OPENKPU_ERR_WATCHDOG && code != OPENKPU_ERR_BAD_ACCESS) {
    dev->error.stream = 7;
  }
  dev->error.waits = (info & OPENKPU_AI_ERR_INFO_WAITS_MASK) >> OPENKPU_AI_ERR_INFO_WAITS_SHIFT;
  dev->error.inference = (info & OPENKPU_AI_ERR_INFO_INFERENCE_MASK) >> OPENKPU_AI_ERR_INFO_INFERENCE_SHIFT;
  dev->error.address = openkpu_rd(dev, OPENKPU_AI_ERR_ADDR);
  dev->error.state = openkpu_rd(dev, OPENKPU_AI_STATUS);
  return recover(dev) ? OPENKPU_STUCK : dev->error.code;
}
/* page end */

/* a limit has passed: an error that the device has recorded says why, and TIMEOUT where there is none */
enum openkpu_status openkpu_timeout(struct openkpu *dev) {
  enum openkpu_status code = openkpu_check(dev);
  if (code) return code;
  uint32_t state = openkpu_rd(dev, OPENKPU_AI_STATUS);
  (void)openkpu_fail(dev, OPENKPU_TIMEOUT, 0);
  dev->error.state = state;
  dev->error.layer = (state & OPENKPU_AI_STATUS_LAYER_MASK) >> OPENKPU_AI_STATUS_LAYER_SHIFT;
  return recover(dev) ? OPENKPU_STUCK : OPENKPU_TIMEOUT;
}

enum openkpu_status openkpu_watchdog(struct openkpu *dev, uint32_t cycles) {
  if (dev->state == OPENKPU_STATE_NONE) return openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  openkpu_wr(dev, OPENKPU_AI_WATCHDOG, cycles);
  return OPENKPU_OK;
}

/* page: windows */
/* the device may read and write `size` bytes from these addresses on, multiples of 1 KiB, and nothing else; with
   `lock` until the hardware reset. All four numbers 0: everything, as after reset. OPENKPU_LOCKED when somebody was
   here before */
enum openkpu_status openkpu_confine(struct openkpu *dev, uint32_t read_base, uint32_t read_size, uint32_t write_base,
                                    uint32_t write_size, int lock) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if ((read_base | read_size) & 1023) return openkpu_fail(dev, OPENKPU_MISALIGNED, read_base);
  if ((write_base | write_size) & 1023) return openkpu_fail(dev, OPENKPU_MISALIGNED, write_base);
  int all = !(read_base | read_size | write_base | write_size); /* 0 - 1 is the last byte */
  if (!all && (!read_size || !write_size)) return openkpu_fail(dev, OPENKPU_BAD_COUNT, 0);
  /* a window that passed 4 GiB would end before it begins */
  if (read_base > read_base + (read_size - 1)) return openkpu_fail(dev, OPENKPU_NO_ROOM, read_base);
  if (write_base > write_base + (write_size - 1)) return openkpu_fail(dev, OPENKPU_NO_ROOM, write_base);
  openkpu_wr(dev, OPENKPU_AI_READ_FIRST, read_base);
  openkpu_wr(dev, OPENKPU_AI_READ_LAST, read_base + read_size - 1);
  openkpu_wr(dev, OPENKPU_AI_WRITE_FIRST, write_base);
  openkpu_wr(dev, OPENKPU_AI_WRITE_LAST, write_base + write_size - 1);
  openkpu_wr(dev, OPENKPU_AI_LOCK, lock ? OPENKPU_AI_LOCK_LOCK_MASK : 0);
  return openkpu_check(dev);
}
/* page end */

/* page: prepare */
/* nothing pending, everything masked but errors, and these as well without interrupts; no rows of a network before,
   where maps may lie now */
void openkpu_prepare(struct openkpu *dev, int eight_bit) {
  mask(dev);
  openkpu_wr(dev, OPENKPU_INTERRUPT_CLEAR, OPENKPU_KPU_INTERRUPTS);
  if (dev->by_irq) openkpu_wr(dev, OPENKPU_AI_INT_MASK, OPENKPU_AI_INT_MASK_DONE_MASK);
  openkpu_wr(dev, OPENKPU_AI_INT_STATUS, OPENKPU_AI_INTERRUPTS);
  openkpu_wr(dev, OPENKPU_EIGHT_BIT_MODE, eight_bit ? OPENKPU_EIGHT_BIT_MODE_EIGHT_BIT_MASK : 0);
  openkpu_wr(dev, OPENKPU_AI_SPARE_ROWS, 0);
  dev->events = 0;
}
/* page end */

/* what a run of `count` inferences reads and writes is there, and aligned */
static enum openkpu_status check_run(struct openkpu *dev, const struct openkpu_network *net, uint32_t count,
                                     uint32_t pixels, uint32_t pixel_stride, uint32_t results,
                                     uint32_t result_stride) {
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (!count || !net->layers || net->layers > OPENKPU_AI_LIST_LEN_LAYERS_MASK) {
    return openkpu_fail(dev, OPENKPU_BAD_COUNT, 0);
  }
  if (results & (openkpu_word(dev) - 1)) return openkpu_fail(dev, OPENKPU_MISALIGNED, results);
  if (result_stride & (openkpu_word(dev) - 1)) { /* the second result is not */
    return openkpu_fail(dev, OPENKPU_MISALIGNED, results + result_stride);
  }
  code = openkpu_inside(dev, pixels, (uint64_t)(count - 1) * pixel_stride + net->input_bytes);
  if (code) return code;
  return openkpu_inside(dev, results, (uint64_t)(count - 1) * result_stride + net->result_bytes);
}

/* page: stream */
/* drop cached memory that the results of a run will lie in, and none of what lies between them */
static void forget(const struct openkpu *dev, uint32_t count, uint32_t results, uint32_t stride, uint32_t bytes) {
  (void)dev; /* a port without caches does not need it */
  if (stride <= bytes) { /* nothing lies between */
    bytes += (count - 1) * stride;
    count = 1;
  }
  for (; count; count--, results += stride) OPENKPU_INVALIDATE(dev->port, results, bytes);
}

/* name the rows in which weights may wait; refused where the device has fewer */
static enum openkpu_status spare_rows(struct openkpu *dev, uint32_t spare) {
  if (!spare) return OPENKPU_OK;
  openkpu_wr(dev, OPENKPU_AI_ERR_CODE, 0); /* of the host's before: the start would clear it as well */
  openkpu_wr(dev, OPENKPU_AI_SPARE_ROWS, spare);
  return openkpu_check(dev);
}

/* `count` images, evenly spaced, and their results; returns when the device is at work */
enum openkpu_status openkpu_stream(struct openkpu *dev, const struct openkpu_network *net, uint32_t count,
                                   uint32_t pixels, uint32_t pixel_stride, uint32_t results, uint32_t result_stride) {
  if (count == 1) pixel_stride = result_stride = 0; /* there is no second one that they could be for */
  enum openkpu_status code = check_run(dev, net, count, pixels, pixel_stride, results, result_stride);
  if (code) return code;
  if (net->loaded_bytes) OPENKPU_CLEAN(dev->port, net->loaded, net->loaded_bytes);
  if (net->stored_bytes) OPENKPU_INVALIDATE(dev->port, net->stored, net->stored_bytes);
  OPENKPU_CLEAN(dev->port, pixels, (count - 1) * pixel_stride + net->input_bytes);
  forget(dev, count, results, result_stride, net->result_bytes);
  OPENKPU_BARRIER(dev->port);
  openkpu_prepare(dev, net->eight_bit != 0);
  code = spare_rows(dev, net->spare);
  if (code) return code;
  if (dev->by_irq) openkpu_wr(dev, OPENKPU_AI_INT_MASK, 0);
  openkpu_wr(dev, OPENKPU_AI_LIST_ADR, net->list);
  openkpu_wr(dev, OPENKPU_AI_LIST_LEN, net->layers);
  openkpu_wr(dev, OPENKPU_AI_WGT_ADR, net->weights);
  openkpu_wr(dev, OPENKPU_AI_BIAS_ADR, net->biases);
  openkpu_wr(dev, OPENKPU_AI_PIX_ADR, pixels);
  openkpu_wr(dev, OPENKPU_AI_NPIX_ADR, pixels + pixel_stride);
  openkpu_wr(dev, OPENKPU_AI_PIX_STRIDE, pixel_stride);
  openkpu_wr(dev, OPENKPU_AI_RES_ADR, results);
  openkpu_wr(dev, OPENKPU_AI_RES_STRIDE, result_stride);
  openkpu_wr(dev, OPENKPU_AI_CNN_MODE, count > 1 ? 2 : 1);
  openkpu_wr(dev, OPENKPU_AI_INF_LEFT, count - 1);
  dev->pixels = net->input_bytes;
  dev->result = results;
  dev->stride = result_stride;
  dev->bytes = net->result_bytes;
  dev->count = count;
  dev->stored = net->stored;
  dev->stored_bytes = net->stored_bytes;
  dev->finished = 0;
  openkpu_wr(dev, OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_START_MASK);
  code = openkpu_check(dev); /* a refused start: the device counts the results of the run before */
  if (!code) dev->state = OPENKPU_STATE_RUN;
  return code;
}
/* page end */

/* page: start */
/* one inference; returns when the device is at work */
enum openkpu_status openkpu_start(struct openkpu *dev, const struct openkpu_network *net, uint32_t pixels,
                                  uint32_t result) {
  return openkpu_stream(dev, net, 1, pixels, 0, result, 0);
}

/* one inference, up to its result */
enum openkpu_status openkpu_run(struct openkpu *dev, const struct openkpu_network *net, uint32_t pixels,
                                uint32_t result, uint32_t limit) {
  enum openkpu_status code = openkpu_start(dev, net, pixels, result);
  return code ? code : openkpu_wait(dev, 0, limit);
}
/* page end */

/* page: wait */
/* until another result is stored, or an error; `finished`: results so far, with any code */
enum openkpu_status openkpu_wait(struct openkpu *dev, uint32_t *finished, uint32_t limit) {
  uint32_t before = dev->finished;
  enum openkpu_status code = OPENKPU_OK;
  if (dev->state != OPENKPU_STATE_RUN) code = openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  while (!code && dev->finished == before) { /* an event whose result was counted before wakes for nothing */
    code = openkpu_await(dev, OPENKPU_EVENT_DONE, limit);
    if (!code) collect(dev);
  }
  if (finished) *finished = dev->finished;
  return code;
}
/* page end */

int openkpu_taken(const struct openkpu *dev) {
  return dev->state == OPENKPU_STATE_RUN &&
         (openkpu_rd(dev, OPENKPU_AI_STATUS) & OPENKPU_AI_STATUS_NPIX_TAKEN_MASK) != 0;
}

enum openkpu_status openkpu_next(struct openkpu *dev, uint32_t pixels) {
  if (dev->state != OPENKPU_STATE_RUN) return openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  enum openkpu_status code = openkpu_inside(dev, pixels, dev->pixels);
  if (code) return code;
  OPENKPU_CLEAN(dev->port, pixels, dev->pixels);
  OPENKPU_BARRIER(dev->port);
  openkpu_wr(dev, OPENKPU_AI_NPIX_ADR, pixels);
  return OPENKPU_OK;
}

/* page: stop */
/* end a stream after the inference at work; `finished`: results that are stored, with any code. The device is idle
   afterwards */
enum openkpu_status openkpu_stop(struct openkpu *dev, uint32_t *finished, uint32_t limit) {
  enum openkpu_status code = OPENKPU_OK;
  if (dev->state != OPENKPU_STATE_RUN) code = openkpu_fail(dev, OPENKPU_WRONG_ORDER, 0);
  else openkpu_wr(dev, OPENKPU_AI_CTRL, OPENKPU_AI_CTRL_STOP_MASK);
  while (!code && openkpu_rd(dev, OPENKPU_AI_STATUS) & OPENKPU_AI_STATUS_BUSY_MASK) {
    dev->events = 0; /* of results so far: a port does not sleep while one is pending */
    if (!limit--) code = openkpu_timeout(dev); /* which collects */
    else OPENKPU_PAUSE(dev);
  }
  if (!code) {
    openkpu_wr(dev, OPENKPU_AI_INT_STATUS, OPENKPU_AI_INT_STATUS_DONE_MASK); /* that nobody waits for */
    dev->events = 0;
    collect(dev);
    dev->state = OPENKPU_STATE_IDLE;
    code = openkpu_check(dev);
  }
  if (finished) *finished = dev->finished;
  return code;
}
/* page end */
