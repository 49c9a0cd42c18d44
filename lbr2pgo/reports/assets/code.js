"use strict";
// A function's source with its assembly beneath each line, or in the order of addresses; rows are made where they are seen.

const ROW = 20, LANES = 6, LANE = 7; // pixels, but for the number of lanes of arrows
const WORTH_OPENING = 0.005; // of the function: lines with less are folded at first

// What a function holds, as objects that know each other.
class Code {
  constructor(detail) {
    const words = (number) => (number == null ? null : detail.texts[number]);
    const { at, size, count, block, text: written, line } = detail.code;
    this.start = detail.start;
    this.name = words(detail.name);
    this.notes = detail.notes.map(words);
    this.edges = detail.edges;
    this.branches = new Map(detail.branches.map(([place, taken, missed, targets, reasons]) => [place, {
      taken, missed, reasons: reasons.map(words),
      targets: targets.map(([address, name, where, cases, times, wrong]) => ({ address: address && `0x${address}`, name: words(name), line: words(where), cases: words(cases), count: times, missed: wrong })),
    }]));
    this.lines = new Map(detail.lines.map(([place, executed, taken, missed, cycles, source]) => [
      words(place), { place: words(place), executed, taken, missed, cycles, source: words(source), code: [], weight: 0 },
    ]));
    this.blocks = detail.blocks.map(([start, end, times], number) => ({ number, start, end, count: times, code: [], loop: null }));
    detail.loops.forEach((loop) => loop.forEach((number) => { this.blocks[number].loop = loop; }));
    this.code = at.map((place, i) => {
      const made = { at: place, size: size[i], count: count[i], block: this.blocks[block[i]] ?? null, words: words(written[i]), line: null, branch: this.branches.get(place) ?? null };
      const where = words(line[i]);
      if (where && !where.endsWith(":0")) { // that is code of several lines, which compilers merged
        if (!this.lines.has(where)) this.lines.set(where, { place: where, executed: 0, source: null, code: [], weight: 0 });
        made.line = this.lines.get(where);
        made.line.code.push(made);
        made.line.weight += made.count;
      }
      made.block?.code.push(made);
      return made;
    });
    this.total = Math.max(1, this.code.reduce((sum, each) => sum + each.count, 0));
    this.largest = Math.max(1, ...this.code.map((each) => each.count));
    // The hottest instruction of each line, or of each block where there are no lines.
    const spots = new Map();
    for (const each of this.code) {
      const key = each.line ?? each.block, best = spots.get(key);
      if (each.count && (!best || each.count > best.count)) spots.set(key, each);
    }
    const weight = (each) => each.line?.weight ?? each.count;
    this.hot = [...spots.values()].sort((a, b) => weight(b) - weight(a)).slice(0, 40);
  }
  address(at) { return `0x${(BigInt(`0x${this.start}`) + BigInt(at)).toString(16)}`; }
  offset(address) { return Number(BigInt(address) - BigInt(`0x${this.start}`)); }
  blockAt(address) { const at = this.offset(address); return this.blocks.find((block) => block.start <= at && at < block.end); }

  // Lines by file, each file's in order; files as Python ranks them.
  byFile() {
    const files = new Map();
    for (const line of this.lines.values()) {
      const colon = line.place.lastIndexOf(":");
      [line.file, line.number] = [line.place.slice(0, colon), Number(line.place.slice(colon + 1))];
      if (!files.has(line.file)) files.set(line.file, []);
      files.get(line.file).push(line);
    }
    for (const lines of files.values()) lines.sort((a, b) => a.number - b.number);
    return files;
  }
}

class CodeView {
  constructor(code, place, order, select) {
    Object.assign(this, { code, order, select, selected: null });
    this.open = new Set([...code.lines.values()].filter((line) => line.weight >= WORTH_OPENING * code.total));
    this.body = make("div", { class: "rows" });
    this.tree = make("div", { class: "code", role: "tree", tabindex: 0, "aria-label": `Code of ${code.name}` }, this.body);
    this.tree.addEventListener("scroll", () => requestAnimationFrame(() => this.draw()));
    this.tree.addEventListener("keydown", (event) => this.key(event));
    this.tree.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.draw()).observe(this.tree);
    this.head = make("div", { class: "tools" });
    place.append(this.head, this.tree, notes(code.notes));
    this.lay();
  }

  // Rows in the order that is chosen.
  lay() {
    const { code, order } = this;
    this.rows = [];
    if (order === "source" && code.lines.size) {
      for (const [file, lines] of code.byFile()) {
        this.rows.push({ file });
        let before = 0;
        for (const line of lines) {
          this.rows.push({ line, isGap: before && line.number !== before + 1 });
          before = line.number;
          if (this.open.has(line)) this.rows.push(...line.code.map((each) => ({ code: each })));
        }
      }
      const rest = code.code.filter((each) => !each.line);
      if (rest.length) this.rows.push({ file: "code of no one line" }, ...rest.map((each) => ({ code: each })));
    } else {
      let before = null;
      for (const each of code.code) {
        if (each.line && each.line !== before) this.rows.push({ line: each.line, isCaption: true });
        before = each.line;
        this.rows.push({ code: each });
      }
    }
    this.rowOf = new Map();
    this.rows.forEach((row, i) => { const key = row.code ?? row.line; if (key && !this.rowOf.has(key)) this.rowOf.set(key, i); });
    this.arrows = this.arrowsOf();
    this.body.style.height = `${ROW * this.rows.length}px`;
    this.drawHead();
    this.draw();
  }

  // Jumps that were taken, as rows; short ones nearest to the code, as many as have room.
  arrowsOf() {
    const found = [];
    for (const [source, target, kind, count] of this.code.edges) {
      if (kind === "fallthrough") continue;
      const from = this.rowOf.get(this.code.blocks[source].code.at(-1)), to = this.rowOf.get(this.code.blocks[target].code[0]);
      if (from != null && to != null) found.push({ from, to, top: Math.min(from, to), bottom: Math.max(from, to), count, source: this.code.blocks[source].code.at(-1) });
    }
    found.sort((a, b) => (a.bottom - a.top) - (b.bottom - b.top));
    const lanes = Array.from({ length: LANES }, () => []);
    for (const arrow of found) {
      arrow.lane = lanes.findIndex((lane) => lane.every((each) => each.bottom < arrow.top || each.top > arrow.bottom));
      if (arrow.lane >= 0) lanes[arrow.lane].push(arrow);
    }
    return found;
  }

  drawHead() {
    const orders = ["source", "assembly"].map((order) => button(order === "source" ? "Source" : "Assembly", () => this.turn(order), { "aria-pressed": String(this.order === order) }));
    const share = functions.byStart.get(this.code.start)?.share;
    this.head.replaceChildren(
      make("h2", {}, this.code.name), make("span", { class: "faint" }, share == null ? "" : `${percent(share)} of what ran`), ...orders,
      link(`g-${this.code.start}`, "Graph", { class: "button" }),
      button("‹ hotter", () => this.step(-1), { title: "previous hot line (p)" }), button("next hot ›", () => this.step(1), { title: "next hot line (n)" }),
      button(this.isFolded() ? "Unfold" : "Fold", () => this.fold(), { title: "all lines (e)" }),
    );
  }
  turn(order) { this.order = order; this.lay(); if (this.selected) this.go(this.selected, true); }
  isFolded() { return this.open.size === 0; }
  fold() { this.open = new Set(this.isFolded() ? this.code.lines.values() : []); this.lay(); if (this.selected) this.go(this.selected.line && !this.rowOf.has(this.selected) ? this.selected.line : this.selected, true); }

  // Hot spots by their rank, from the one that is selected.
  step(by) {
    const { hot } = this.code;
    const now = hot.findIndex((each) => each === this.selected || (each.line && (each.line === this.selected || each.line === this.selected?.line)));
    const next = hot[Math.max(0, Math.min(hot.length - 1, now < 0 ? 0 : now + by))];
    if (next) this.go(this.order === "source" && next.line ? next.line : next);
    this.tree.focus();
  }

  // Select an instruction or line, and show it.
  go(what, isQuiet = false) {
    if (what.words !== undefined && what.line && !this.rowOf.has(what)) { this.open.add(what.line); this.lay(); }
    this.selected = what;
    const row = this.rowOf.get(what) ?? 0, { scrollTop, clientHeight } = this.tree;
    if (ROW * row < scrollTop + ROW || ROW * (row + 2) > scrollTop + clientHeight) this.tree.scrollTop = ROW * row - clientHeight / 3;
    this.draw();
    if (!isQuiet) this.select(what);
  }
  // An address or a line as links have them; the hottest line without one.
  find(words) {
    if (!words) return this.step(0);
    if (!words.startsWith("0x")) { const line = this.code.lines.get(words); return line ? this.go(line) : this.step(0); }
    const at = this.code.offset(words);
    const found = this.code.code.find((each) => each.at === at) ?? this.code.code.findLast((each) => each.at <= at);
    return found ? this.go(found) : this.step(0);
  }

  key(event) {
    const row = this.rowOf.get(this.selected) ?? -1, page = Math.floor(this.tree.clientHeight / ROW) - 2;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: page, PageUp: -page, Home: -Infinity, End: Infinity }[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (step != null) this.go(this.near(Math.max(0, Math.min(this.rows.length - 1, row + step)), Math.sign(step)));
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") this.unfold(this.rows[row], event.key === "ArrowRight");
    else if (event.key === "Enter") this.follow();
    else return;
    event.preventDefault();
  }
  near(row, way) {
    for (let i = row; this.rows[i]; i += way) if (this.rows[i].code ?? this.rows[i].line) return this.rows[i].code ?? this.rows[i].line;
    return this.selected;
  }
  unfold(row, isOpen) {
    const line = row?.line ?? row?.code?.line;
    if (!line || this.order !== "source" || this.open.has(line) === isOpen) return;
    if (isOpen) this.open.add(line); else this.open.delete(line);
    this.lay();
    this.go(line);
  }
  // To where a branch goes, mostly; of a line, its instructions.
  follow() {
    const [target] = this.selected?.branch?.targets ?? [];
    if (target?.address) location.hash = placeOf(target.address) ?? location.hash;
    else if (this.selected?.code) this.unfold({ line: this.selected }, !this.open.has(this.selected));
  }
  click(event) {
    const element = event.target.closest("[data-row]");
    if (!element || event.target.closest("a")) return;
    const row = this.rows[Number(element.dataset.row)];
    if (event.target.closest(".fold")) this.unfold(row, !this.open.has(row.line));
    else if (row.code ?? row.line) this.go(row.code ?? row.line);
  }

  draw() {
    const { scrollTop, clientHeight } = this.tree;
    const first = Math.max(0, Math.floor(scrollTop / ROW) - 10), last = Math.min(this.rows.length, Math.ceil((scrollTop + (clientHeight || 800)) / ROW) + 10);
    const made = [];
    for (let i = first; i < last; i++) made.push(this.row(this.rows[i], i));
    this.body.replaceChildren(this.drawArrows(first, last), ...made);
    const selected = this.body.querySelector("[aria-selected=true]");
    if (selected) this.tree.setAttribute("aria-activedescendant", selected.id); else this.tree.removeAttribute("aria-activedescendant");
  }

  row(row, i) {
    const cells = row.file != null ? [make("strong", {}, row.file)] : row.line ? this.lineCells(row) : this.codeCells(row.code);
    const isLine = Boolean(row.line), item = row.code ?? row.line;
    const attributes = {
      id: `row-${i}`, class: `row ${row.file != null ? "file" : isLine ? "line" : "instruction"}${row.isGap ? " gap" : ""}`, "data-row": i,
      role: "treeitem", "aria-level": row.file != null ? 1 : isLine ? 2 : 3, "aria-selected": String(item != null && item === this.selected),
    };
    if (isLine && this.order === "source" && row.line.code.length) attributes["aria-expanded"] = String(this.open.has(row.line));
    const made = make("div", attributes, ...cells);
    made.style.top = `${ROW * i}px`;
    return made;
  }
  lineCells({ line, isCaption }) {
    const part = line.weight / this.code.total;
    const mark = line.code.length && this.order === "source" ? (this.open.has(line) ? "▾" : "▸") : "";
    if (isCaption) return [make("span", { class: "source" }, `${line.place}  ${line.source ?? ""}`)];
    return [
      make("span", { class: `share ${heat(part)}` }, line.weight ? percent(part) : ""), make("span", { class: "count" }, line.executed ? grouped(line.executed) : ""),
      make("span", { class: "fold" }, mark), make("span", { class: "number" }, String(line.number)), make("span", { class: "source" }, line.source ?? ""),
      make(
        "span", { class: "chips" }, line.taken != null ? make("span", { class: "chip" }, `taken ${percent(line.taken)}`) : null,
        line.missed ? make("span", { class: "chip miss" }, `${grouped(line.missed)} mispredicted`) : null,
        line.cycles ? make("span", { class: "chip" }, `${grouped(Math.round(line.cycles))} cycles`) : null,
      ),
    ];
  }
  codeCells(each) {
    if (each.words == null) return [make("span", { class: "cold" }, `${grouped(each.size)} instructions never ran, from ${inFile(this.code.address(each.at))}`)];
    return [
      make(
        "span", { class: `share ${heat(each.count / this.code.largest)}` }, each.count ? percent(each.count / this.code.total) : "",
      ), make("span", { class: "count" }, each.count ? grouped(each.count) : ""),
      make("span", { class: "address" }, inFile(this.code.address(each.at))), make("span", { class: "words" }, each.words), make("span", { class: "chips" }, ...this.chips(each)),
    ];
  }
  // What is known of a branch, at the branch.
  chips({ branch }) {
    if (!branch) return [];
    const { taken: [taken, past], missed: [right, wrong], targets: [target] } = branch;
    const own = target?.address && functionAt(target.address)?.start === this.code.start;
    return [
      taken == null ? null : make("span", { class: "chip" }, `taken ${percent(taken / (taken + past))}`),
      wrong ? make("span", { class: "chip miss" }, `missed ${percent(wrong / (right + wrong))}`) : null,
      target && !own ? make(
        "span", { class: "chip" }, "→ ", link(target.address && placeOf(target.address), target.name, { tabindex: -1 }),
        branch.targets.length > 1 ? ` +${branch.targets.length - 1}` : "",
      ) : null,
    ];
  }

  drawArrows(first, last) {
    const seen = this.arrows.filter((arrow) => arrow.top < last && arrow.bottom >= first && (arrow.lane >= 0 || arrow.source === this.selected));
    const y = (row) => ROW * (row - first) + ROW / 2, right = LANES * LANE + 8;
    const lines = seen.map((arrow) => {
      const x = right - 6 - LANE * (arrow.lane < 0 ? LANES : arrow.lane), [from, to] = [y(arrow.from), y(arrow.to)];
      return draw("path", { class: arrow.source === this.selected ? "at" : "", d: `M${right - 3} ${from}H${x}V${to}H${right - 3}m-4 -3l4 3l-4 3` });
    });
    const made = draw("svg", { class: "arrows", "aria-hidden": "true", width: right, height: ROW * (last - first) }, ...lines);
    made.style.top = `${ROW * first}px`;
    return made;
  }
}
