// SPDX-License-Identifier: Apache-2.0
// What the page carries as text: bytes in base64, modules of WebAssembly compressed as well.

export function fromBase64(text) {
  return Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
}

export async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
