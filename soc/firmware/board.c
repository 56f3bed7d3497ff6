/* SPDX-License-Identifier: Apache-2.0 */
/* Console, interrupts and sleep of the computer of soc.v. */
#include "board.h"

#include "job.h"
#include "openkpu.h"

#define CONSOLE ((volatile uint32_t *)0x10000000u)

struct openkpu *board_devices[3];
volatile uint32_t board_interrupts;

/* picorv32's own instructions */
static void mask_irq(uint32_t mask) { __asm__ volatile(".insn r 0x0b, 6, 3, x0, %0, x0" ::"r"(mask) : "memory"); }
static void wait_irq(void) { __asm__ volatile(".insn r 0x0b, 4, 4, x0, x0, x0" ::: "memory"); }
static void set_timer(uint32_t ticks) { __asm__ volatile(".insn r 0x0b, 6, 5, x0, %0, x0" ::"r"(ticks) : "memory"); }

uint32_t cycles(void) {
  uint32_t found;
  __asm__ volatile(".insn i 0x73, 2, %0, x0, -1024" : "=r"(found)); /* rdcycle */
  return found;
}

static void put(char c) {
  while (CONSOLE[0]) {
  } /* a serial line is slower than this loop */
  CONSOLE[0] = (uint32_t)(uint8_t)c;
}

void put_text(const char *text) {
  while (*text) put(*text++);
}

void put_number(uint32_t number) {
  if (number >= 10) put_number(number / 10);
  put((char)('0' + number % 10));
}

void put_hex(uint32_t number, int digits) {
  while (digits--) put("0123456789abcdef"[number >> 4 * digits & 15]);
}

void board_end(uint32_t code) {
  CONSOLE[1] = code;
  for (;;) {
  }
}

uint32_t crc32_of(const void *data, uint32_t bytes) {
  const uint8_t *at = (const uint8_t *)data;
  uint32_t crc = ~0u;
  while (bytes--) {
    crc ^= *at++;
    for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320 : 0);
  }
  return ~crc;
}

void interrupt(uint32_t pending);
void interrupt(uint32_t pending) {
  if (pending & 6) {
    put_text("the processor has met an illegal instruction or address\n");
    board_end(3);
  }
  for (int i = 0; i < 3; i++) {
    if ((pending >> (3 + i) & 1) && board_devices[i]) board_interrupts += (uint32_t)openkpu_irq(board_devices[i]);
  }
}

void board_pause(struct openkpu *dev) {
  if (!dev->by_irq) return;
  mask_irq(~0u); /* an interrupt between the look and the sleep stays pending, and ends the sleep */
  set_timer(BOARD_NAP);
  if (!openkpu_pending(dev)) wait_irq();
  mask_irq(0);
}

void put_error(const struct openkpu *dev) {
  put_text("error ");
  put_number(dev->error.code);
  put_text(": ");
  put_text(openkpu_text(dev->error.code));
  put_text("; layer ");
  put_number(dev->error.layer);
  put_text(", ");
  put_text(openkpu_stream_text(dev->error.stream));
  put_text(", address 0x");
  put_hex(dev->error.address, 8);
  put_text("\n");
}

void board_open(struct openkpu *dev, struct openkpu_network *net, int number, int check) {
  static const uint32_t images[] = JOB_IMAGES_AT;
  const uint32_t at = images[number];
  if (openkpu_init(dev, BOARD_DEVICE(number), BOARD_STORE, JOB_STORE_BYTES) ||
      openkpu_open(dev, net, (const void *)at, at, check)) {
    put_error(dev);
    board_end(2);
  }
  board_devices[number] = dev;
}

void put_result(int number, uint32_t image, uint32_t address, uint32_t bytes) {
  put_text("result ");
  put_number((uint32_t)number);
  put_text(" ");
  put_number(image);
  put_text(": ");
  put_hex(crc32_of((const void *)address, bytes), 8);
  for (uint32_t i = 0; i < bytes && i < 16; i++) {
    put_text(" ");
    put_hex(((const uint8_t *)address)[i], 2);
  }
  put_text("\n");
}

/* what compilers call */
void *memcpy(void *to, const void *from, __SIZE_TYPE__ bytes);
void *memcpy(void *to, const void *from, __SIZE_TYPE__ bytes) {
  for (__SIZE_TYPE__ i = 0; i < bytes; i++) ((volatile uint8_t *)to)[i] = ((const uint8_t *)from)[i];
  return to;
}
void *memset(void *to, int value, __SIZE_TYPE__ bytes);
void *memset(void *to, int value, __SIZE_TYPE__ bytes) {
  for (__SIZE_TYPE__ i = 0; i < bytes; i++) ((volatile uint8_t *)to)[i] = (uint8_t)value;
  return to;
}
