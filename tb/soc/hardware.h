/* SPDX-License-Identifier: Apache-2.0 */
/* The port of the driver for its native tests: the verilated device, a memory from 0x80000000 on, and faults. */
#ifndef HARDWARE_H
#define HARDWARE_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

struct openkpu;
struct hardware; /* a device and its memory */

enum { HW_MEMORY = 1 << 22 };
static const uint32_t HW_BASE = 0x80000000u;

struct hardware *hw_new(void);
void hw_delete(struct hardware *hw);
void hw_reset(struct hardware *hw);
/* as the processor sees it through its cache, and as the device does */
uint8_t *hw_memory(struct hardware *hw, uint32_t address);
uint8_t *hw_uncached(struct hardware *hw, uint32_t address);
uint64_t hw_cycle(const struct hardware *hw);
void hw_run(struct hardware *hw, uint32_t cycles);
int hw_irq(const struct hardware *hw);
/* faults: ERROR for accesses from `first` to `last` from the access `skip` on; a bus that never answers; an interrupt
   line that is not connected; another value of a register */
void hw_bus_error(struct hardware *hw, uint32_t first, uint32_t last, uint32_t skip);
void hw_dead(struct hardware *hw, int on);
void hw_lose_irq(struct hardware *hw, int on);
void hw_fake(struct hardware *hw, uint32_t offset, uint32_t value);
/* cycles from the rise of the interrupt line to the next start: largest so far */
uint32_t hw_turnaround(const struct hardware *hw);

uint32_t hw_read32(void *hw, uint32_t offset);
void hw_write32(void *hw, uint32_t offset, uint32_t value);
/* from now on the handler of the interrupt line runs whenever the line is high, in the middle of anything; 0: in waiting
   loops alone. A line that it does not silence ends the program */
void hw_handler(struct hardware *hw, struct openkpu *dev);
/* as the next write of this register begins, the handler notes a result */
void hw_event_at(struct hardware *hw, struct openkpu *dev, uint32_t offset);

/* one pass of a waiting loop: cycles until the line rises, its handler */
void hw_pause(struct openkpu *dev);

#define OPENKPU_READ32(port, offset) hw_read32((port), (offset))
#define OPENKPU_WRITE32(port, offset, value) hw_write32((port), (offset), (value))
#define OPENKPU_PAUSE(dev) hw_pause(dev)
/* a cache that does what the driver asks of it and nothing else; bytes so far */
void hw_clean(void *hw, uint32_t address, uint32_t bytes);
void hw_invalidate(void *hw, uint32_t address, uint32_t bytes);
uint64_t hw_cleaned(const struct hardware *hw);
uint64_t hw_invalidated(const struct hardware *hw);
#define OPENKPU_CLEAN(port, address, bytes) hw_clean((port), (address), (bytes))
#define OPENKPU_INVALIDATE(port, address, bytes) hw_invalidate((port), (address), (bytes))

#ifdef __cplusplus
}
#endif

#endif
