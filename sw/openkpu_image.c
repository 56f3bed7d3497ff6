/* SPDX-License-Identifier: Apache-2.0 */
/* Network images of `openkpu export` (docs/driver.md has their layout): little-endian words of 32 bits. */
#include "openkpu_internal.h"

/* names have a prefix: the port's header is included first, and may define any other one */
enum { IMAGE_FIELDS = 32, IMAGE_VERSION = 2, IMAGE_RELOCATABLE = 2, IMAGE_MOST_TENSORS = 2048, IMAGE_PART = 64 };
/* index of a header's field */
enum {
  IMAGE_MAGIC, IMAGE_FORMAT, IMAGE_HEAD_CRC, IMAGE_BODY_CRC, IMAGE_BYTES, IMAGE_MEMORY_BYTES, IMAGE_BASE, IMAGE_CONFIG,
  IMAGE_FLAGS, IMAGE_LAYERS, IMAGE_LIST, IMAGE_WEIGHTS, IMAGE_BIASES, IMAGE_ALIGN, IMAGE_TENSORS, IMAGE_HEAD_BYTES,
  IMAGE_INPUT, IMAGE_INPUT_BYTES, IMAGE_INPUT_STRIDE, IMAGE_RESULT, IMAGE_RESULT_BYTES, IMAGE_RESULT_STRIDE,
  IMAGE_COUNT, IMAGE_SPARE, IMAGE_STORED, IMAGE_CONSTANT
};
/* of a tensor, behind the header */
enum { TENSOR_FIELDS = 16 };
enum {
  TENSOR_OUTPUT = 0, TENSOR_MAP_BYTES = 2, TENSOR_ADD = 6, TENSOR_FILL = 7, TENSOR_ELEMENTS = 8, TENSOR_TABLE = 9,
  TENSOR_TYPE = 10
};
enum { TENSOR_INT32 = 2, TENSOR_UINT32 = 3 }; /* of TENSOR_TYPE */
enum { IMAGE_CRC_FROM = 12 }; /* bytes of the header that its checksum leaves out: itself and what is before it */
static const uint32_t TENSOR_NOWHERE = 0xFFFFFFFF; /* of a table: no element */

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

/* bytes of a header with this many descriptions of tensors */
static uint32_t head_of(uint32_t tensors) {
  return (4 * (IMAGE_FIELDS + TENSOR_FIELDS * tensors) + IMAGE_PART - 1) & ~(uint32_t)(IMAGE_PART - 1);
}

/* this is a header, whose checksum can be compared */
static int is_head(const uint8_t *image) {
  uint32_t tensors = field(image, IMAGE_TENSORS), head = field(image, IMAGE_HEAD_BYTES);
  return field(image, IMAGE_MAGIC) == 0x4E504B4F && field(image, IMAGE_FORMAT) == IMAGE_VERSION &&
         tensors <= IMAGE_MOST_TENSORS && head == head_of(tensors) && head <= field(image, IMAGE_BYTES);
}

/* the parts lie in their order and inside the image: whoever wrote the checksum may have written anything */
static int in_order(const uint8_t *image) {
  uint32_t at[] = {field(image, IMAGE_HEAD_BYTES), field(image, IMAGE_STORED), field(image, IMAGE_CONSTANT),
                   field(image, IMAGE_LIST), field(image, IMAGE_WEIGHTS), field(image, IMAGE_BIASES),
                   field(image, IMAGE_BYTES), field(image, IMAGE_MEMORY_BYTES)};
  for (uint32_t i = 1; i < sizeof at / sizeof *at; i++) {
    if (at[i] < at[i - 1]) return 0;
  }
  return 1;
}

enum openkpu_status openkpu_open(struct openkpu *dev, struct openkpu_network *net, const void *image, uint32_t address,
                                 int check) {
  const uint8_t *bytes = (const uint8_t *)image;
  enum openkpu_status code = openkpu_idle(dev);
  if (code) return code;
  if (!is_head(bytes)) return openkpu_fail(dev, OPENKPU_NO_IMAGE, address);
  uint32_t size = field(bytes, IMAGE_BYTES), head = field(bytes, IMAGE_HEAD_BYTES);
  uint32_t stored = field(bytes, IMAGE_STORED), constant = field(bytes, IMAGE_CONSTANT);
  /* the header may lie about sizes as long as its checksum is not compared: memory bounds it first */
  code = openkpu_inside(dev, address, size);
  if (code) return code;
  if (crc32(bytes + IMAGE_CRC_FROM, head - IMAGE_CRC_FROM) != field(bytes, IMAGE_HEAD_CRC) || !in_order(bytes)) {
    return openkpu_fail(dev, OPENKPU_DAMAGED, address);
  }
  if (field(bytes, IMAGE_CONFIG) != dev->config) {
    return openkpu_fail(dev, OPENKPU_OTHER_CONFIG, field(bytes, IMAGE_CONFIG));
  }
  if (address & (field(bytes, IMAGE_ALIGN) - 1)) return openkpu_fail(dev, OPENKPU_MISALIGNED, address);
  if (!(field(bytes, IMAGE_FLAGS) & IMAGE_RELOCATABLE) && address != field(bytes, IMAGE_BASE)) {
    return openkpu_fail(dev, OPENKPU_MISPLACED, field(bytes, IMAGE_BASE));
  }
  code = openkpu_inside(dev, address, field(bytes, IMAGE_MEMORY_BYTES));
  if (code) return code;
  if (check == OPENKPU_CHECK_ALL && crc32(bytes + constant, size - constant) != field(bytes, IMAGE_BODY_CRC)) {
    return openkpu_fail(dev, OPENKPU_DAMAGED, address + constant);
  }
  OPENKPU_CLEAN(dev->port, address, size); /* the processor may have copied it there */
  net->list = address + field(bytes, IMAGE_LIST);
  net->layers = field(bytes, IMAGE_LAYERS);
  net->weights = address + field(bytes, IMAGE_WEIGHTS);
  net->biases = address + field(bytes, IMAGE_BIASES);
  net->eight_bit = field(bytes, IMAGE_FLAGS) & 1;
  net->input = address + field(bytes, IMAGE_INPUT);
  net->input_bytes = field(bytes, IMAGE_INPUT_BYTES);
  net->input_stride = field(bytes, IMAGE_INPUT_STRIDE);
  net->result = address + field(bytes, IMAGE_RESULT);
  net->result_bytes = field(bytes, IMAGE_RESULT_BYTES);
  net->result_stride = field(bytes, IMAGE_RESULT_STRIDE);
  net->spare = field(bytes, IMAGE_SPARE);
  net->loaded = address + head;
  net->loaded_bytes = stored - head;
  net->stored = address + stored;
  net->stored_bytes = constant - stored;
  return OPENKPU_OK;
}

/* the description of a tensor, or NULL */
static const uint8_t *tensor_of(const uint8_t *image, uint32_t number) {
  return number < field(image, IMAGE_TENSORS) ? image + 4 * (IMAGE_FIELDS + TENSOR_FIELDS * number) : 0;
}

/* its bytes in the model's order: words of 32 bits are in order, as the device stores them */
static uint32_t bytes_of(const uint8_t *tensor) {
  uint32_t type = field(tensor, TENSOR_TYPE);
  return field(tensor, TENSOR_ELEMENTS) * (type == TENSOR_INT32 || type == TENSOR_UINT32 ? 4 : 1);
}

/* pair `k` of a tensor: an element and the byte of the map that holds it. The table of an input has the element of each
   byte, that of an output the byte of each element. 1: there is one; 0: the byte holds a filler; -1: a damaged table */
static int pair_of(const uint8_t *image, const uint8_t *tensor, uint32_t k, uint32_t *element, uint32_t *byte) {
  uint32_t table = field(tensor, TENSOR_TABLE), other = table ? field(image + table, k) : k;
  int output = field(tensor, TENSOR_OUTPUT) != 0;
  *element = output ? k : other;
  *byte = output ? other : k;
  if (*element < bytes_of(tensor) && *byte < field(tensor, TENSOR_MAP_BYTES)) return 1;
  return table && (output || other != TENSOR_NOWHERE) ? -1 : 0;
}

static uint32_t pairs_of(const uint8_t *tensor) {
  return field(tensor, TENSOR_OUTPUT) ? bytes_of(tensor) : field(tensor, TENSOR_MAP_BYTES);
}

/* its table lies in the image, or it needs none */
static int has_table(const uint8_t *image, const uint8_t *tensor) {
  uint64_t table = field(tensor, TENSOR_TABLE);
  return !table || table + (uint64_t)4 * pairs_of(tensor) <= field(image, IMAGE_BYTES);
}

enum openkpu_status openkpu_pack(const void *image, uint32_t number, const void *tensor, uint8_t *map) {
  const uint8_t *bytes = (const uint8_t *)image, *values = (const uint8_t *)tensor, *of = tensor_of(bytes, number);
  uint32_t element, byte;
  if (!of) return OPENKPU_BAD_COUNT;
  if (!has_table(bytes, of)) return OPENKPU_DAMAGED;
  for (uint32_t i = 0; i < field(of, TENSOR_MAP_BYTES); i++) map[i] = (uint8_t)field(of, TENSOR_FILL);
  for (uint32_t k = 0; k < pairs_of(of); k++) {
    int found = pair_of(bytes, of, k, &element, &byte);
    if (found < 0) return OPENKPU_DAMAGED;
    if (found) map[byte] = (uint8_t)(values[element] + field(of, TENSOR_ADD));
  }
  return OPENKPU_OK;
}

enum openkpu_status openkpu_unpack(const void *image, uint32_t number, const uint8_t *map, void *tensor) {
  const uint8_t *bytes = (const uint8_t *)image, *of = tensor_of(bytes, number);
  uint8_t *values = (uint8_t *)tensor;
  uint32_t element, byte;
  if (!of) return OPENKPU_BAD_COUNT;
  if (!has_table(bytes, of)) return OPENKPU_DAMAGED;
  for (uint32_t k = 0; k < pairs_of(of); k++) {
    int found = pair_of(bytes, of, k, &element, &byte);
    if (found < 0) return OPENKPU_DAMAGED;
    if (found) values[element] = (uint8_t)(map[byte] - field(of, TENSOR_ADD));
  }
  return OPENKPU_OK;
}
