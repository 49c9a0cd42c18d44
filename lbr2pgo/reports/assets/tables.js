"use strict";
// Tables, the list of functions and trees, all drawn by Tabulator: sorted, filtered, and only where they are seen.

// A table that the keyboard goes through as a click does; Enter follows a row's first link. Tabulator gives no names,
// and no keys to its groups.
function tabulator(place, title, options) {
  const table = new Tabulator(place, { layout: "fitColumns", height: "100%", index: "id", placeholder: "Nothing found.", selectableRows: "highlight", ...options });
  const choose = (row) => { table.deselectRow(); row?.select(); };
  table.on("rowClick", (_, row) => choose(row));
  table.on("tableBuilt", () => {
    place.setAttribute("aria-label", title);
    place.querySelector(".tabulator-tableholder").setAttribute("role", "rowgroup");
    place.querySelector(".tabulator-table").setAttribute("role", "presentation");
  });
  table.on("renderComplete", () => place.querySelectorAll(".tabulator-group").forEach((group) => fill(group, { role: "row", tabindex: 0 }, [])));
  place.addEventListener("keydown", (event) => {
    const { key, target } = event, [selected] = table.getSelectedRows();
    if (target.matches("input, select, button")) return;
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity }[key];
    if (key === "Enter" && target.matches(".tabulator-group")) target.click();
    else if (key === "Enter" && selected) (selected.getElement().querySelector(".location a") ?? selected.getElement().querySelector("a"))?.click();
    else if (key === "ArrowRight" && selected?.treeToggle) selected.treeExpand();
    else if (key === "ArrowLeft" && selected?.treeToggle) selected.treeCollapse();
    else if (step != null) {
      const rows = table.getRows("display").filter((row) => row.select);
      const next = rows[Math.max(0, Math.min(rows.length - 1, selected ? rows.indexOf(selected) + step : 0))];
      choose(next);
      if (next) table.scrollToRow(next, "nearest", false).catch(() => {});
    } else return;
    event.preventDefault();
  });
  const built = new Promise((resolve) => { table.on("tableBuilt", resolve); });
  return { table, built, choose };
}

const WIDTH = 7.3, PADDING = 22; // of a character and a cell, in pixels
const SORTERS = { address: (a, b) => (BigInt(text(a) || 0) < BigInt(text(b) || 0) ? -1 : 1), number: (a, b) => (a ?? -1) - (b ?? -1), name: (a, b) => text(a).localeCompare(text(b)) };

// What has no room is told beside the row.
function columnsOf(table) {
  const depth = table.columns.findIndex((column) => column.name === "depth");
  // A source line leads to the instruction that it is told of.
  const code = table.columns.map((column) => { const i = table.columns.findIndex((each) => each.unit === "address" && each.name === column.name.replace(/line$/, "address")); return column.unit === "location" && i >= 0 ? i : null; });
  const least = table.columns.filter((column) => !isNumber(column) && column.unit !== "address").length < 5 ? 14 : 7;
  return table.columns.map((column, i) => {
    const isName = !isNumber(column) && column.unit !== "address";
    const kind = isNumber(column) ? "number" : column.unit === "address" ? "address" : "name";
    const longest = Math.max(...column.title.split(" ").map((word) => word.length + 4), ...table.rows.slice(0, 100).map((row) => shown(column, row[i]).length));
    const width = Math.round(PADDING + WIDTH * Math.min(longest, isName ? least : 60));
    return {
      title: column.title, field: String(i), sorter: SORTERS[kind], headerSortStartingDir: kind === "number" ? "desc" : "asc",
      hozAlign: kind === "number" ? "right" : "left", cssClass: `${kind} ${column.unit}`, minWidth: width, widthGrow: isName ? Math.min(longest, 60) : 0.2,
      responsive: column.spare,
      visible: !["chain", "instructions", "depth"].includes(column.name) || column.unit === "count",
      titleFormatter: () => button(column.title, () => {}),
      formatter: (cell) => {
        const value = cell.getValue(), words = shown(column, value);
        const place = code[i] == null ? placeOfValue(column, value) : placeOf(text(cell.getData()[code[i]]));
        const made = make("span", words.length > 20 ? { title: words } : {}, link(words && place, words, { tabindex: -1 }));
        if (depth >= 0 && column.unit === "function") made.style.paddingLeft = `${cell.getData()[depth]}em`;
        return made;
      },
    };
  });
}
const records = (table) => table.rows.map((row, id) => ({ ...row, id }));
const contains = (table, words) => (record) => table.columns.some((column, i) => shown(column, record[i]).toLowerCase().includes(words));

function buildTable(table, place, select) {
  const title = text(table.title);
  const search = make("input", { type: "search", "aria-label": `Filter ${title}`, placeholder: "Filter" });
  const count = make("span", { class: "faint", "aria-live": "polite" });
  const drawn = make("div", { class: "table" });
  place.append(make("div", { class: "tools" }, make("h2", {}, title), search, count), drawn, notes(table.notes.map(text)));
  const { table: made, built, choose } = tabulator(drawn, title, { data: records(table), columns: columnsOf(table), responsiveLayout: "hide" });
  made.on("rowSelected", (row) => select(table, row.getData()));
  made.on("dataFiltered", (_, rows) => {
    const cut = table.found > table.rows.length ? `, the first of ${grouped(table.found)}` : "";
    count.textContent = `${grouped(rows.length)} row${rows.length === 1 ? "" : "s"}${cut}`;
  });
  const filter = (words) => { search.value = words; if (words) made.setFilter(contains(table, words.toLowerCase())); else made.clearFilter(true); };
  search.addEventListener("input", () => filter(search.value));
  return {
    filter: (words) => built.then(() => filter(words)),
    tell: () => built.then(() => choose(made.getSelectedRows()[0] ?? made.getRows("display")[0])),
  };
}

// All functions: own image first, those of libraries folded.
function buildFunctionList(place, measure, search) {
  const { columns } = data.functions;
  const shares = columns.map((column, i) => [column, i]).filter(([column]) => column.unit === "share");
  measure.append(...shares.map(([column, i]) => make("option", { value: i }, column.title)));
  const files = new Set(functions.rows.map((each) => each.file));
  const own = functions.rows.find((each) => each.file === document.body.dataset.program)?.file ?? functions.rows[0]?.file;
  const name = columns.findIndex((column) => column.name === "function");
  const formatter = (cell) => {
    const { owner } = cell.getData(), share = owner.row[Number(measure.value)];
    const made = make("span", { class: "entry", title: owner.name }, link(`f-${owner.start}`, owner.name.replaceAll("(anonymous namespace)::", ""), { tabindex: -1 }), make("span", { class: "share" }, share == null ? "" : percent(share)));
    made.style.setProperty("--part", percent(share || 0));
    return made;
  };
  const { table: made, built, choose } = tabulator(place, "Functions", {
    data: functions.rows.map((owner) => ({ id: owner.start, owner, file: owner.file === own ? "" : owner.file })),
    columns: [{ title: "function", field: "id", formatter, sorter: (_, __, a, b) => (a.getData().owner.row[Number(measure.value)] ?? -1) - (b.getData().owner.row[Number(measure.value)] ?? -1) }],
    headerVisible: false,
    ...(files.size > 1 ? {
      groupBy: "file", groupStartOpen: (file) => file === "", groupValues: [["", ...[...files].filter((file) => file !== own)]],
      groupToggleElement: "header", groupHeader: (file, count) => make("span", { role: "gridcell" }, `${file || own} `, make("small", {}, grouped(count))),
    } : {}),
  });
  const sort = () => { made.setSort("id", "desc"); made.redraw(true); };
  measure.addEventListener("change", sort);
  const filter = () => {
    const words = search.value.trim().toLowerCase();
    if (words) made.setFilter(({ owner }) => owner.name.toLowerCase().includes(words)); else made.clearFilter();
    if (files.size > 1) made.setGroupStartOpen(words ? true : (file) => file === "");
  };
  search.addEventListener("input", () => built.then(filter));
  made.on("rowClick", (_, row) => { location.hash = `f-${row.getData().id}`; });
  return { built, show: (start) => choose(made.getRow(start) || null) };
}
