/* SPDX-License-Identifier: Apache-2.0 */
/* Accesses of the driver become those of programming_tests.py. */
#include <stdint.h>
extern uint32_t (*test_read32)(uint32_t offset);
extern void (*test_write32)(uint32_t offset, uint32_t value);
void test_pause(struct openkpu *dev);
#define OPENKPU_READ32(port, offset) test_read32(offset)
#define OPENKPU_WRITE32(port, offset, value) test_write32(offset, value)
#define OPENKPU_PAUSE(dev) test_pause(dev)
