/* SPDX-License-Identifier: Apache-2.0 */
/* The driver's port to the verilated device (page.cpp): every access goes through its AHB slave. */
#ifndef PAGE_PORT_H
#define PAGE_PORT_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint32_t page_read32(void *port, uint32_t offset);
void page_write32(void *port, uint32_t offset, uint32_t value);
void page_pause(void *port);

#ifdef __cplusplus
}
#endif

#define OPENKPU_READ32(port, offset) page_read32((port), (offset))
#define OPENKPU_WRITE32(port, offset, value) page_write32((port), (offset), (value))
#define OPENKPU_PAUSE(dev) page_pause((dev)->port)

#endif
