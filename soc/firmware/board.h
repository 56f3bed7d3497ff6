/* SPDX-License-Identifier: Apache-2.0 */
/* The computer of soc.v: its addresses, its processor, and the driver's port to it. */
#ifndef BOARD_H
#define BOARD_H

#include <stdint.h>

#define BOARD_STORE 0x80000000u
#define BOARD_DEVICE(number) ((void *)(0x40000000u + 0x400000u * (uint32_t)(number)))
#define BOARD_NAP 2000u /* cycles after which a sleeping processor wakes */

struct openkpu;

void put_text(const char *text);
void put_number(uint32_t number);
void put_hex(uint32_t number, int digits);
uint32_t cycles(void);
uint32_t crc32_of(const void *data, uint32_t bytes);
/* the contexts that the interrupts of devices 0 to 2 belong to */
extern struct openkpu *board_devices[3];
/* interrupts that were served */
extern volatile uint32_t board_interrupts;
/* sleep unless the driver has seen an event */
void board_pause(struct openkpu *dev);
/* print an error of the driver: code, text, layer, stream, address */
void put_error(const struct openkpu *dev);
/* device `number` and the network of job.h: exit with a message when something fails */
struct openkpu_network;
void board_open(struct openkpu *dev, struct openkpu_network *net, int number, int check);
void board_end(uint32_t code);
/* "result NUMBER IMAGE: crc BYTES..." */
void put_result(int number, uint32_t image, uint32_t address, uint32_t bytes);

/* nothing is cached, and accesses stay in order: only the compiler must not move them */
#define OPENKPU_BARRIER(port) __asm__ volatile("" ::: "memory")
#define OPENKPU_PAUSE(dev) board_pause(dev)

#endif
