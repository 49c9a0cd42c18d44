"use strict";
// Tables: sorted, filtered and paged from their rows; columns that don't fit stand in a row's details.

const PAGE = 15;
const CHARACTER = 7.1, FIXED_CHARACTER = 8, PADDING = 15; // of a cell, in pixels
const LEAST_NAME = 24, LEAST_OF_MANY = 14, MOST_NAME = 70; // characters
const MANY_NAMES = 5; // as where each place has a file
const SIZES = "instructions"; // how many each block of a chain has

class DataTable {
  constructor(table, place) {
    this.table = table;
    this.rows = table.rows;
    this.order = null;
    this.words = "";
    this.size = PAGE;
    this.page = 0;
    this.depth = table.columns.findIndex((column) => column.name === "depth");
    this.body = make("tbody");
    this.count = make("span", { class: "rows", "aria-live": "polite" });
    this.place = place;
    this.fit(place.clientWidth || 960);
    const drawn = make("table", { "aria-labelledby": `t-${table.name}-title`, class: "data" }, this.head(), this.body);
    const bar = this.rows.length > 1 ? [this.bar()] : [];
    place.append(...bar, drawn, ...(this.rows.length > PAGE ? [this.pager()] : []), ...noteList(table.notes));
    this.update();
  }

  // First addresses go, then other numbers, the last ones first; names and one number stay.
  fit(width) {
    const { columns } = this.table;
    const sample = this.rows.slice(0, 200);
    this.natural = columns.map((column, i) => {
      const word = Math.max(...column.title.split(" ").map((part) => part.length)) + 2;
      return Math.max(word, ...sample.map((row) => shown(column, row[i]).length));
    });
    let kept = columns.map((_, i) => i).filter((i) => !["chain", SIZES].includes(columns[i].name));
    const names = kept.filter((i) => isName(columns[i]));
    this.least = names.length < MANY_NAMES ? LEAST_NAME : LEAST_OF_MANY;
    const least = (i) => PADDING + (columns[i].unit === "address" ? FIXED_CHARACTER : CHARACTER)
      * (!isName(columns[i]) ? this.natural[i] : Math.min(this.natural[i], this.least));
    const first = kept.find((i) => isNumber(columns[i]));
    const spare = kept.filter((i) => !isName(columns[i]) && i !== first)
      .sort((a, b) => (columns[a].unit === "address") - (columns[b].unit === "address") || a - b);
    const needed = () => 40 + kept.reduce((sum, i) => sum + least(i), 0);
    while (needed() > width && spare.length) {
      const out = spare.pop();
      kept = kept.filter((i) => i !== out);
    }
    this.kept = kept;
    this.share(width - needed());
  }

  // What numbers leave is for names; long ones give way first.
  share(free) {
    const names = this.kept.filter((i) => isName(this.table.columns[i]));
    this.longest = new Map(names.map((i) => [i, Math.min(this.natural[i], this.least)]));
    let left = Math.floor(free / CHARACTER);
    for (let growing = names; left > 0 && growing.length;) {
      growing = growing.filter((i) => this.longest.get(i) < Math.min(this.natural[i], MOST_NAME));
      for (const i of growing.slice(0, left)) this.longest.set(i, this.longest.get(i) + 1);
      left -= growing.length;
    }
  }

  head() {
    const cells = this.kept.map((i) => {
      const column = this.table.columns[i];
      const cell = make("th", { scope: "col", class: classOf(column), "data-column": column.name });
      if (this.rows.length < 2) cell.append(column.title);
      else cell.append(button(column.title, () => this.sort(i, cell)));
      return cell;
    });
    return make("thead", {}, make("tr", {}, make("td", { class: "more" }), ...cells));
  }

  sort(i, cell) {
    const isDown = cell.getAttribute("aria-sort") !== "descending" && cell.getAttribute("aria-sort") !== "ascending"
      ? isNumber(this.table.columns[i]) : cell.getAttribute("aria-sort") === "ascending";
    for (const other of cell.parentElement.cells) other.removeAttribute("aria-sort");
    cell.setAttribute("aria-sort", isDown ? "descending" : "ascending");
    this.order = { i, isDown };
    this.page = 0;
    this.update();
  }

  bar() {
    this.search = make("input", { type: "search", "aria-label": `Filter ${text(this.table.title)}`, placeholder: "Filter" });
    this.search.addEventListener("input", () => this.filter(this.search.value));
    return make("div", { class: "table-bar" }, this.search, this.count);
  }

  filter(words) {
    this.words = words.toLowerCase();
    if (this.search) this.search.value = words;
    this.page = 0;
    this.update();
  }

  pager() {
    const move = (by) => () => { this.page += by; this.update(); };
    this.previous = button("Previous", move(-1));
    this.next = button("Next", move(1));
    const all = button("Show all", () => { this.size = Infinity; this.page = 0; this.update(); });
    return make("div", { class: "table-bar" }, this.previous, this.next, all);
  }

  matching() {
    const { columns } = this.table;
    const hits = (row) => columns.some((column, i) => shown(column, row[i]).toLowerCase().includes(this.words));
    const rows = this.words ? this.rows.filter(hits) : [...this.rows];
    if (!this.order) return rows;
    const { i, isDown } = this.order;
    const { unit } = columns[i];
    const key = unit === "address" ? (row) => text(row[i]).slice(2).padStart(16, "0")
      : isNumber(columns[i]) ? (row) => row[i] : (row) => text(row[i]);
    const compare = (a, b) => (a == null) - (b == null) || (a < b ? -1 : a > b ? 1 : 0) * (isDown ? -1 : 1);
    return rows.sort((a, b) => compare(key(a), key(b)));
  }

  update() {
    const rows = this.matching();
    const first = this.page * this.size || 0;
    const part = rows.slice(first, first + this.size);
    this.body.replaceChildren(...part.map((row) => this.row(row)));
    if (!rows.length) this.body.append(make("tr", {}, make("td", { colspan: this.kept.length + 1 }, "Nothing found.")));
    this.count.textContent = rows.length > part.length ? `${first + 1} to ${first + part.length} of ${grouped(rows.length, 0)}` : `${grouped(rows.length, 0)} rows`;
    if (this.next) {
      this.previous.disabled = first === 0;
      this.next.disabled = first + part.length >= rows.length;
    }
  }

  row(row) {
    const cells = this.kept.map((i) => this.cell(i, row));
    const more = button("▸", () => this.open(drawn, row, more), { "aria-label": "All about this row", "aria-expanded": "false" });
    const drawn = make("tr", {}, make("td", { class: "more" }, more), ...cells);
    return drawn;
  }

  cell(i, row) {
    const column = this.table.columns[i];
    const full = shown(column, row[i]);
    const label = this.longest.has(i) ? shortened(full, this.longest.get(i)) : full;
    const made = make("td", { class: classOf(column) }, linked(column, row[i], label));
    if (label !== full) made.title = full;
    if (this.depth >= 0 && column.unit === "function") made.style.paddingLeft = `${row[this.depth] + 1}em`;
    return made;
  }

  open(drawn, row, more) {
    const isOpen = more.getAttribute("aria-expanded") === "true";
    more.setAttribute("aria-expanded", String(!isOpen));
    more.textContent = isOpen ? "▸" : "▾";
    if (isOpen) { drawn.nextSibling.remove(); return; }
    const sizes = this.table.columns.findIndex((column) => column.name === SIZES);
    const facts = this.table.columns.flatMap((column, i) => {
      const full = shown(column, row[i]);
      const value = column.name === "chain" ? chainOf(full, shown(this.table.columns[sizes], row[sizes])) : [linked(column, row[i], full)];
      return full && i !== sizes ? [make("dt", {}, column.title), make("dd", {}, ...value)] : [];
    });
    drawn.after(make("tr", { class: "all" }, make("td", { colspan: this.kept.length + 1 }, make("dl", {}, ...facts))));
  }
}

// A chain of blocks: function, line and instructions of each, and the way to its picture.
function chainOf(words, sizes) {
  const blocks = words.split(" ").filter((word) => word.startsWith("0x")), counts = sizes.split(" ").map(Number);
  const views = blocks.map((address) => data.functions.find((view) => view.anchor === codeAnchors.get(address)));
  const items = blocks.map((address, i) => {
    const name = views[i] && views[i] !== views[i - 1] ? make("strong", {}, shortened(text(views[i].name), 60), " ") : "";
    const code = views[i] ? instructionsAt(views[i], address, counts[i]) : [];
    const line = lineOf(address);
    const more = code.length ? make("details", {}, make("summary", {}, line || "instructions"), make("pre", {}, code.join("\n"))) : line;
    return make("li", {}, name, link(anchorAt(address), inFile(address)), " ", more);
  });
  const pictures = [...new Set(views.filter(Boolean))];
  const buttons = pictures.map((view) => button(
    pictures.length > 1 ? `Show in the control flow of ${shortened(text(view.name), 40)}` : "Show in the control flow",
    () => highlight(view.anchor, blocks.filter((_, i) => views[i] === view)),
  ));
  return [make("ol", { class: "chain" }, ...items), ...buttons];
}
