// SPDX-License-Identifier: Apache-2.0
// Elements, canvases in the resolution of the screen, numbers for people.

export const byId = (id) => document.getElementById(id);

export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

// A canvas of so many CSS pixels; drawing is in these.
export function canvasContext(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

// A colour of the style sheet, which follows the theme.
export function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}

export const number = (value) => Math.round(value).toLocaleString("en");
export const percent = (share) => `${(100 * share).toFixed(1)} %`;
export const hex = (value, digits) => `0x${value.toString(16).toUpperCase().padStart(digits, "0")}`;

// Links to documents: `pattern` has {page} and {anchor}.
export function documentLink(pattern, page, anchor = "") {
  const link = pattern.replace("{page}", page).replace("{anchor}", anchor);
  return anchor ? link : link.replace(/#$/, "");
}
