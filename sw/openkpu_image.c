/* SPDX-License-Identifier: Apache-2.0 */
/* Network images of `openkpu export` (docs/driver.md has their layout): little-endian words of 32 bits. */
#include "openkpu_internal.h"

enum { FIELDS = 32, VERSION = 1, RELOCATABLE = 2 };
/* index of a header's field */
enum {
  MAGIC, FORMAT, HEAD_CRC, BODY_CRC, IMAGE_BYTES, MEMORY_BYTES, BASE, CONFIG, FLAGS, LAYERS, LIST, WEIGHTS, BIASES,
  ALIGN, TENSORS, HEAD_BYTES, INPUT, INPUT_BYTES, INPUT_STRIDE, RESULT, RESULT_BYTES, RESULT_STRIDE,
  COUNT, SPARE
};
/* of a tensor, behind the header */
enum { TENSOR_FIELDS = 16 };
enum { OUTPUT = 0, MAP_BYTES = 2, ADD = 6, FILL = 7, ELEMENTS = 8, TABLE = 9, TYPE = 10 };
enum { INT32 = 2, UINT32 = 3 }; /* of TYPE */
enum { CRC_FROM = 12 }; /* bytes of the header that its checksum leaves out: itself and what is before it */
static const uint32_t NOWHERE = 0xFFFFFFFF; /* of a table: no element */

static uint32_t field(const uint8_t *image, uint32_t number) {
  const uint8_t *at = image + 4 * number;
  return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

/* CRC-32, four bits at a time */
static uint32_t crc32(const uint8_t *data, uint32_t bytes) {
  static const uint32_t table[16] = {0x00000000, 0x1DB71064, 0x3B6E20C8, 0x26D930AC, 0x76DC4190, 0x6B6B51F4,
                                     0x4DB26158, 0x5005713C, 0xEDB88320, 0xF00F9344, 0xD6D6A3E8, 0xCB61B38C,
                                     0x9B64C2B0, 0x86D3D2D4, 0xA00AE278, 0xBDBDF21C};
  uint32_t crc = 0xFFFFFFFF;
  while (bytes--) {
    crc ^= *data++;
    crc = crc >> 4 ^ table[crc & 15];
    crc = crc >> 4 ^ table[crc & 15];
  }
  return ~crc;
}

enum openkpu_status openkpu_open(struct openkpu *dev, struct openkpu_network *net, const void *image, uint32_t address,
                                 int check) {
  const uint8_t *bytes = (const uint8_t *)image;
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (field(bytes, MAGIC) != 0x4E504B4F || field(bytes, FORMAT) != VERSION || field(bytes, HEAD_BYTES) < 4 * FIELDS ||
      field(bytes, HEAD_BYTES) > field(bytes, IMAGE_BYTES)) {
    return openkpu_fail(dev, OPENKPU_NO_IMAGE, address);
  }
  uint32_t size = field(bytes, IMAGE_BYTES), list = field(bytes, LIST);
  /* the header may lie about sizes as long as its checksum is not compared: memory bounds it first */
  code = openkpu_inside(dev, address, size);
  if (code) return code;
  if (crc32(bytes + CRC_FROM, field(bytes, HEAD_BYTES) - CRC_FROM) != field(bytes, HEAD_CRC)) {
    return openkpu_fail(dev, OPENKPU_DAMAGED, address);
  }
  if (field(bytes, CONFIG) != dev->config) return openkpu_fail(dev, OPENKPU_OTHER_CONFIG, field(bytes, CONFIG));
  if (address & (field(bytes, ALIGN) - 1)) return openkpu_fail(dev, OPENKPU_MISALIGNED, address);
  if (!(field(bytes, FLAGS) & RELOCATABLE) && address != field(bytes, BASE)) {
    return openkpu_fail(dev, OPENKPU_MISPLACED, field(bytes, BASE));
  }
  code = openkpu_inside(dev, address, field(bytes, MEMORY_BYTES));
  if (code) return code;
  if (check == OPENKPU_CHECK_ALL && crc32(bytes + list, size - list) != field(bytes, BODY_CRC)) {
    return openkpu_fail(dev, OPENKPU_DAMAGED, address + list);
  }
  OPENKPU_CLEAN(dev->port, address, size); /* the processor may have copied it there */
  net->list = address + list;
  net->layers = field(bytes, LAYERS);
  net->weights = address + field(bytes, WEIGHTS);
  net->biases = address + field(bytes, BIASES);
  net->eight_bit = field(bytes, FLAGS) & 1;
  net->input = address + field(bytes, INPUT);
  net->input_bytes = field(bytes, INPUT_BYTES);
  net->input_stride = field(bytes, INPUT_STRIDE);
  net->result = address + field(bytes, RESULT);
  net->result_bytes = field(bytes, RESULT_BYTES);
  net->result_stride = field(bytes, RESULT_STRIDE);
  net->spare = field(bytes, SPARE);
  return OPENKPU_OK;
}

/* the description of a tensor, or NULL */
static const uint8_t *tensor_of(const uint8_t *image, uint32_t number) {
  return number < field(image, TENSORS) ? image + 4 * (FIELDS + TENSOR_FIELDS * number) : 0;
}

/* its bytes in the model's order: words of 32 bits are in order, as the device stores them */
static uint32_t bytes_of(const uint8_t *tensor) {
  uint32_t type = field(tensor, TYPE);
  return field(tensor, ELEMENTS) * (type == INT32 || type == UINT32 ? 4 : 1);
}

/* pair `k` of a tensor: an element and the byte of the map that holds it. The table of an input has the element of each
   byte, that of an output the byte of each element. 1: there is one; 0: the byte holds a filler; -1: a damaged table */
static int pair_of(const uint8_t *image, const uint8_t *tensor, uint32_t k, uint32_t *element, uint32_t *byte) {
  uint32_t table = field(tensor, TABLE), other = table ? field(image + table, k) : k;
  int output = field(tensor, OUTPUT) != 0;
  *element = output ? k : other;
  *byte = output ? other : k;
  if (*element < bytes_of(tensor) && *byte < field(tensor, MAP_BYTES)) return 1;
  return table && (output || other != NOWHERE) ? -1 : 0;
}

static uint32_t pairs_of(const uint8_t *tensor) {
  return field(tensor, OUTPUT) ? bytes_of(tensor) : field(tensor, MAP_BYTES);
}

enum openkpu_status openkpu_pack(const void *image, uint32_t number, const void *tensor, uint8_t *map) {
  const uint8_t *bytes = (const uint8_t *)image, *values = (const uint8_t *)tensor, *of = tensor_of(bytes, number);
  uint32_t element, byte;
  if (!of) return OPENKPU_BAD_COUNT;
  for (uint32_t i = 0; i < field(of, MAP_BYTES); i++) map[i] = (uint8_t)field(of, FILL);
  for (uint32_t k = 0; k < pairs_of(of); k++) {
    int found = pair_of(bytes, of, k, &element, &byte);
    if (found < 0) return OPENKPU_DAMAGED;
    if (found) map[byte] = (uint8_t)(values[element] + field(of, ADD));
  }
  return OPENKPU_OK;
}

enum openkpu_status openkpu_unpack(const void *image, uint32_t number, const uint8_t *map, void *tensor) {
  const uint8_t *bytes = (const uint8_t *)image, *of = tensor_of(bytes, number);
  uint8_t *values = (uint8_t *)tensor;
  uint32_t element, byte;
  if (!of) return OPENKPU_BAD_COUNT;
  for (uint32_t k = 0; k < pairs_of(of); k++) {
    int found = pair_of(bytes, of, k, &element, &byte);
    if (found < 0) return OPENKPU_DAMAGED;
    if (found) values[element] = (uint8_t)(map[byte] - field(of, ADD));
  }
  return OPENKPU_OK;
}
