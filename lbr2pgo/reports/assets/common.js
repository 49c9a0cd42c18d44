"use strict";
// What all parts of the page share: the data, values as people read them, elements.

const data = JSON.parse(document.getElementById("data").textContent);
const text = (number) => (number == null ? "" : data.texts[number]);
const isNumber = (column) => column.digits != null;
const classOf = (column) => (isNumber(column) ? `${column.unit} number` : column.unit);
const isName = (column) => !isNumber(column) && column.unit !== "address";

// Per cent; what is not quite none, or not quite all, is not called so.
function percent(share) {
  if (share > 0 && share < 0.0005) return "<0.1%";
  return share >= 0.9995 && share < 1 ? ">99.9%" : `${(100 * share).toFixed(1)}%`;
}
function grouped(value, digits) {
  return value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
// An address in its file: page-wide it has the number of its file before the last 12 digits, but for
// the kernel, whose addresses are that long.
const inFile = (address) => (address.length > 14 && !address.startsWith("0xffff") ? `0x${address.slice(-12).replace(/^0+(?=.)/, "")}` : address);
function shown(column, value) {
  if (value == null) return "";
  if (column.unit === "address") return inFile(text(value));
  if (!isNumber(column)) return text(value);
  if (column.unit === "share") return percent(value);
  return grouped(value, Number.isInteger(value) && column.unit !== "rate" ? 0 : column.digits);
}

// A name with its middle left out where it is too long: names differ at both ends.
function shortened(name, longest) {
  if (name.length <= longest) return name;
  const head = Math.floor(longest / 2);
  return `${name.slice(0, head)}…${name.slice(name.length - (longest - head - 1))}`;
}

// Names only ever become text nodes and attribute values here: nothing is parsed as markup.
function make(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function draw(tag, attributes = {}, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
function button(label, act, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}
function noteList(notes) {
  return notes.length ? [make("ul", { class: "notes" }, ...notes.map((note) => make("li", {}, text(note))))] : [];
}

// Where functions and instructions are shown, by name and by address.
const functionAnchors = new Map(data.functions.map((view) => [text(view.name), view.anchor]).reverse());
const codeAnchors = new Map();
for (const view of data.functions) {
  const address = view.code.columns.findIndex((column) => column.name === "address");
  for (const part of view.parts) {
    if (part.length === view.code.columns.length) codeAnchors.set(text(part[address]), view.anchor);
  }
}
function linked(column, value, label) {
  const anchor = column.unit === "function" ? functionAnchors.get(text(value))
    : column.unit === "address" ? anchorAt(text(value)) : null;
  return link(anchor, label);
}
function link(anchor, label) {
  return anchor ? make("a", { href: `#${anchor}` }, label) : label;
}
const anchorAt = (address) => (codeAnchors.has(address) ? `i-${address.slice(2)}` : null);
const redrawn = []; // what has to be drawn again when colours change
