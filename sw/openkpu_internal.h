/* SPDX-License-Identifier: Apache-2.0 */
/* What the driver's files share. */
#ifndef OPENKPU_INTERNAL_H
#define OPENKPU_INTERNAL_H

#include "openkpu.h"
#include "openkpu_port.h"

enum { OPENKPU_STATE_NONE, OPENKPU_STATE_IDLE, OPENKPU_STATE_RUN };

/* events of openkpu.events */
#define OPENKPU_EVENT_DONE OPENKPU_AI_INT_STATUS_DONE_MASK
#define OPENKPU_EVENT_ERROR OPENKPU_AI_INT_STATUS_ERROR_MASK
#define OPENKPU_EVENT_KPU_SHIFT 8u

#define OPENKPU_KPU_INTERRUPTS                                                                                         \
  ((uint32_t)(OPENKPU_INTERRUPT_MASK_CALC_DONE_INT_MASK | OPENKPU_INTERRUPT_MASK_LAYER_CFG_ALMOST_EMPTY_INT_MASK |     \
              OPENKPU_INTERRUPT_MASK_LAYER_CFG_ALMOST_FULL_INT_MASK))

static inline uint32_t openkpu_rd(const struct openkpu *dev, uint32_t offset) {
  (void)dev; /* a port for one device may not need it */
  return OPENKPU_READ32(dev->port, offset);
}

static inline void openkpu_wr(const struct openkpu *dev, uint32_t offset, uint32_t value) {
  (void)dev;
  OPENKPU_WRITE32(dev->port, offset, value);
}

/* bytes of a bus word */
static inline uint32_t openkpu_word(const struct openkpu *dev) {
  return 1u << ((dev->config & OPENKPU_AI_CONFIG_LOG2_BUS_BYTES_MASK) >> OPENKPU_AI_CONFIG_LOG2_BUS_BYTES_SHIFT);
}

enum openkpu_status openkpu_fail(struct openkpu *dev, enum openkpu_status code, uint32_t address);
/* OPENKPU_OK when the device is free for a run */
enum openkpu_status openkpu_idle(struct openkpu *dev);
/* OPENKPU_OK when runs may use these bytes */
enum openkpu_status openkpu_inside(struct openkpu *dev, uint32_t address, uint64_t bytes);
/* nothing pending, everything masked but errors, and these as well without interrupts */
void openkpu_prepare(struct openkpu *dev, int eight_bit);
enum openkpu_status openkpu_await(struct openkpu *dev, uint32_t wanted, uint32_t limit);
enum openkpu_status openkpu_timeout(struct openkpu *dev);

#endif
