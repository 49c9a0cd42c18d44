"use strict";
// What all parts of the page share: data, values as people read them, elements.

let data = null; // what the page holds beside functions
const text = (number) => (number == null ? "" : data.texts[number]);
const isNumber = (column) => column.digits != null;

// What Python packed: JSON, zlib, Base64.
async function unpacked(base64) {
  const bytes = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

// Per cent; what is not quite none, or not quite all, is not called so.
function percent(share) {
  if (share && Math.abs(share) < 0.0005) return share > 0 ? "<0.1%" : ">-0.1%";
  return share >= 0.9995 && share < 1 ? ">99.9%" : `${(100 * share).toFixed(1)}%`;
}
function grouped(value, digits = 0) {
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

// A class of colour for a part of the largest count; a root, as counts spread widely.
const heat = (part) => `h${Math.round(9 * Math.sqrt(Math.min(1, part || 0)))}`;

// Names only ever become text nodes and attribute values here: nothing is parsed as markup.
function fill(made, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children.filter((child) => child != null));
  return made;
}
const make = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
const draw = (tag, attributes = {}, ...children) => fill(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
function button(label, act, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, label);
  made.addEventListener("click", act);
  return made;
}
const link = (place, label, attributes = {}) => (place ? make("a", { href: `#${place}`, ...attributes }, label) : label);
const labelled = (words, input) => make("label", {}, words, " ", input);
const notes = (texts) => (texts.length ? make("details", { class: "notes" }, make("summary", {}, "How to read this"), make("ul", {}, ...texts.map((each) => make("li", {}, each)))) : "");
const facts = (pairs) => make("dl", {}, ...pairs.filter(([, value]) => value != null && value !== "").flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, ...[value].flat())]));
function bar(share) {
  const made = make("span", { class: "bar", "aria-hidden": "true" }, make("span"));
  made.firstChild.style.width = `${100 * Math.min(1, share || 0)}%`;
  return made;
}

// All functions, by their names and by what addresses they hold.
const functions = { rows: [], byStart: new Map(), byName: new Map(), ends: [] };
function indexFunctions() {
  const { columns = [], rows = [], pieces = [] } = data.functions ?? {};
  const at = Object.fromEntries(columns.map((column, i) => [column.name, i]));
  rows.forEach((row, i) => {
    const found = {
      row, start: pieces[i][0][0], name: text(row[at.function]), file: at.file == null ? "" : text(row[at.file]), line: text(row[at.line]),
      share: row[at.instructions_share] ?? row[at.branches_share],
    };
    functions.rows.push(found);
    functions.byStart.set(found.start, found);
    if (!functions.byName.has(found.name)) functions.byName.set(found.name, found);
    for (const [start, size] of pieces[i]) functions.ends.push([BigInt(`0x${start}`), BigInt(size), found]);
  });
  functions.ends.sort((a, b) => (a[0] < b[0] ? -1 : 1));
}
function functionAt(address) {
  const wanted = BigInt(address);
  let low = 0, high = functions.ends.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (functions.ends[middle][0] <= wanted) low = middle + 1; else high = middle;
  }
  const [start, size, found] = functions.ends[low - 1] ?? [0n, 0n, null];
  return wanted < start + size ? found : null;
}
// Where an address, or a function, is shown.
function placeOf(address) {
  const owner = functionAt(address);
  return owner ? `f-${owner.start}/${address}` : null;
}
function placeOfValue(column, value) {
  if (value == null) return null;
  if (column.unit === "address") return placeOf(text(value));
  const named = column.unit === "function" ? functions.byName.get(text(value)) : null;
  return named ? `f-${named.start}` : null;
}

// A function's own data, from the page or from who serves it; null where neither has it.
const opened = new Map();
async function detailOf(start) {
  if (!opened.has(start)) {
    const element = document.getElementById(`f-${start}`);
    let packed = element?.textContent ?? null;
    if (!packed && document.body.dataset.asks) {
      const answer = await fetch(`/f-${start}`);
      packed = answer.ok ? await answer.text() : null;
    }
    opened.set(start, packed ? await unpacked(packed) : null);
  }
  return opened.get(start);
}
const redrawn = new Set(); // what has to be drawn again when colours change
