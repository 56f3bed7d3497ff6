/* SPDX-License-Identifier: Apache-2.0 */
/* written by `openkpu export`: do not edit */
/* digits for configuration small */
#ifndef OPENKPU_AI_H
#define OPENKPU_AI_H

#include <stdint.h>

#define OPENKPU_AI_BASE 0x80000000u /* address of the image, or any other */
#define OPENKPU_AI_IMAGE_BYTES 0x3480u /* that are loaded there */
#define OPENKPU_AI_MEMORY_BYTES 0x3500u /* from BASE on, with inputs and results */
#define OPENKPU_AI_CONFIG 0x2040409u /* AI_CONFIG of small */
#define OPENKPU_AI_COUNT 0x1u /* inputs and results that there is room for */
#define OPENKPU_AI_INPUT 0x80003480u /* address of the first input map */
#define OPENKPU_AI_INPUT_BYTES 0x40u /* of a map */
#define OPENKPU_AI_INPUT_STRIDE 0x40u /* from one input to the next */
#define OPENKPU_AI_RESULT 0x800034c0u /* address of the first result */
#define OPENKPU_AI_RESULT_BYTES 0xau /* of a result */
#define OPENKPU_AI_RESULT_STRIDE 0x10u /* from one result to the next */

/* input input: uint8 1x8x8; map 1x8x8, in order */
#define OPENKPU_AI_T0_ADDRESS 0x80003480u
#define OPENKPU_AI_T0_MAP_BYTES 64u
#define OPENKPU_AI_T0_ELEMENTS 64u
#define OPENKPU_AI_T0_ADD 0 /* stored byte less integer */

/* output result: int8 10x1x1; map 10x1x1, in order */
#define OPENKPU_AI_T1_ADDRESS 0x800034c0u
#define OPENKPU_AI_T1_MAP_BYTES 10u
#define OPENKPU_AI_T1_ELEMENTS 10u
#define OPENKPU_AI_T1_ADD 0 /* stored byte less integer */

extern const uint32_t openkpu_ai_image[OPENKPU_AI_IMAGE_BYTES / 4];

#endif
