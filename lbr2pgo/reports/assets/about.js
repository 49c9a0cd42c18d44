"use strict";
// Beside the code and tables: all that is known of what is selected.

const about = document.getElementById("about-body"), hint = about.firstElementChild;
const tell = (title, ...parts) => about.replaceChildren(make("h3", {}, title), ...parts.flat().filter(Boolean));
const within = (low, high) => (low == null ? "" : ` (${percent(low)} to ${percent(high)})`);

function tellFunction(found) {
  const { columns } = data.functions;
  tell(found.name, facts(columns.map((column, i) => [column.title, shown(column, found.row[i])])), make("p", {}, link(`f-${found.start}`, "Code"), " · ", link(`g-${found.start}`, "Control flow")));
}
const tellFigures = (title, pairs) => tell(title, facts(pairs));

function tellLine(code, line) {
  const branches = line.code.filter((each) => each.branch);
  tell(line.place, line.source ? make("pre", {}, line.source.trim()) : null,
    facts([
      ["of the function", percent(line.weight / code.total)], ["executed", grouped(line.executed ?? 0)],
      ["taken", line.taken == null ? null : percent(line.taken)], ["mispredicted", line.missed == null ? null : grouped(line.missed)],
      ["cycles", line.cycles && grouped(Math.round(line.cycles))], ["instructions", line.code.length],
    ]),
    branches.length ? [
      make("h4", {}, "Branches"),
      make(
        "ul", {},
        ...branches.map((each) => make("li", {}, link(`f-${code.start}/${code.address(each.at)}`, `${inFile(code.address(each.at))} ${each.words}`))),
      ),
    ] : null,
    reasonsOf(branches), chartsOf(code, new Set(line.code.map((each) => each.block).filter(Boolean))));
}
function tellInstruction(code, each) {
  if (each.words == null) { tell(`${grouped(each.size)} instructions that never ran`, make("p", {}, "Code that is cold in a hot function takes room in the instruction cache; with a profile, compilers and BOLT move it away.")); return; }
  const { branch, block } = each;
  tell(`${inFile(code.address(each.at))} ${each.words}`,
    facts([
      ["executed", grouped(each.count)], ["of the function", percent(each.count / code.total)],
      ["source line", each.line && link(`f-${code.start}/${encodeURIComponent(each.line.place)}`, each.line.place)],
    ]),
    branch ? tellBranch(branch) : null, reasonsOf([each]), block ? tellBlock(code, block) : null);
}
function tellBranch({ taken: [taken, past, low, high], missed: [right, wrong, rateLow, rateHigh], targets }) {
  const all = targets.reduce((sum, target) => sum + target.count, 0);
  return [
    facts([
      ["taken", taken == null ? null : [bar(taken / (taken + past)), ` ${percent(taken / (taken + past))}${within(low, high)}, ${grouped(taken)} of ${grouped(taken + past)}`]],
      [
        "mispredicted",
        wrong == null ? null : [
          bar(wrong / Math.max(1, right + wrong)),
          ` ${percent(wrong / Math.max(1, right + wrong))}${within(rateLow, rateHigh)}, ${grouped(wrong)} of ${grouped(right + wrong)} taken`,
        ],
      ],
    ]),
    targets.length ? [
      make("h4", {}, targets.length > 1 ? `${targets.length} targets` : "Target"),
      make(
        "ul", { class: "targets" },
        ...targets.map((target) => make(
          "li", {}, bar(target.count / all), ` ${percent(target.count / all)} `,
          link(target.address && placeOf(target.address), target.name), ` ${target.line ?? ""} ${target.cases ?? ""}`,
          target.missed ? make("small", {}, ` ${grouped(target.missed)} mispredicted`) : null,
        )),
      ),
    ] : null,
  ].flat();
}
function reasonsOf(instructions) {
  const reasons = instructions.flatMap((each) => each.branch?.reasons ?? []);
  return reasons.length ? [make("h4", {}, "Why it matters"), make("ul", { class: "reasons" }, ...reasons.map((each) => make("li", {}, each)))] : [];
}
function tellBlock(code, block) {
  const ways = code.edges.filter(([source]) => source === block.number).sort((a, b) => b[3] - a[3]).slice(0, 8);
  return [
    make("h4", {}, `Block ${block.number}`), facts([["ran", grouped(block.count)], ["in a loop", block.loop && `of ${block.loop.length} block${block.loop.length > 1 ? "s" : ""}`]]),
    make(
      "ul", { class: "targets" },
      ...ways.map(([, target, kind, count, share]) => make(
        "li", {}, bar(share), ` ${share == null ? grouped(count) : percent(share)} `,
        link(`f-${code.start}/${code.address(code.blocks[target].start)}`, `block ${target}`), ` ${kind}`,
      )),
    ),
    ...chartsOf(code, new Set([block])),
  ];
}
function chartsOf(code, blocks) {
  const starts = [...blocks].map((block) => code.address(block.start));
  const found = [false, true].flatMap((isLoop) => starts.flatMap((start) => chartsAt(start, isLoop)));
  return found.slice(0, 4).map(chartFigure);
}

// All columns of a row, with charts of what it times and the code of its chain.
function tellRow(table, record) {
  const value = (name) => { const i = table.columns.findIndex((column) => column.name === name); return i < 0 ? "" : shown(table.columns[i], record[i]); };
  const pairs = table.columns.map((column, i) => [column, record[i]]).filter(([column]) => !["chain", "instructions"].includes(column.name) || isNumber(column));
  const at = table.columns.findIndex((column) => column.name === "address");
  const charts = at >= 0 && table.name.startsWith("latency") ? chartsAt(text(record[at]), table.name.endsWith("loops")) : [];
  tell(
    value("function") || value("line") || text(table.title),
    facts(pairs.map(([column, each]) => [column.title, [link(placeOfValue(column, each), shown(column, each))].filter((words) => words !== "")])),
    charts.map(chartFigure),
  );
  const chain = table.columns.findIndex((column) => column.name === "chain");
  if (chain >= 0) tellChain(text(record[chain]).split(" ").filter((word) => word.startsWith("0x")), value("instructions").split(" ").map(Number));
}
async function tellChain(addresses, sizes) {
  const owners = addresses.map(functionAt);
  const list = make("ol", { class: "chain" });
  const pictures = [...new Set(owners.filter(Boolean))].map((owner) => make("li", {}, link(`g-${owner.start}/${addresses.filter((_, i) => owners[i] === owner).join(",")}`, owner.name)));
  about.append(make("h4", {}, "Blocks in order"), list, make("h4", {}, "In the control flow of"), make("ul", {}, ...pictures));
  for (const [i, address] of addresses.entries()) {
    const item = make("li", {}, link(placeOf(address), inFile(address)), owners[i] && owners[i] !== owners[i - 1] ? ` ${owners[i].name}` : "");
    list.append(item);
    const code = owners[i] && await codeOf(owners[i].start);
    const first = code ? code.code.findIndex((each) => each.at === code.offset(address)) : -1;
    if (first >= 0) item.append(make("pre", {}, code.code.slice(first, first + (sizes[i] || 1)).map((each) => each.words).join("\n")));
  }
}
