// Sorting, strings, patterns, JSON, maps and objects. `qjs mix.js ROUNDS STEP`

function calls(n) {
  return n < 2 ? n : calls(n - 1) + calls(n - 2);
}

function numbers(seed, size) {
  const found = [];
  for (let i = 0; i < size; i++) {
    seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
    found.push(seed);
  }
  return found;
}

function sorted(seed, size) {
  return numbers(seed, size).sort((a, b) => (a % 1000) - (b % 1000))[size >> 1];
}

function words(seed, size) {
  const text = numbers(seed, size).map((n, i) => `${i}-${n.toString(36)}`).join(" ");
  let found = text.replace(/[aeiou]+/g, "#").toUpperCase().length;
  for (const [, decimal, rest] of text.matchAll(/(\d+)-(\w+)/g)) found += decimal.length * rest.length;
  return found;
}

function counted(seed, size) {
  const times = new Map();
  for (const n of numbers(seed, size)) times.set(n % 211, (times.get(n % 211) ?? 0) + 1);
  return Math.max(...times.values());
}

class Account {
  #total = 0;
  constructor(owner) {
    this.owner = owner;
  }
  add(amount) {
    this.#total += amount;
    return this;
  }
  toJSON() {
    return { owner: this.owner, total: this.#total, tags: ["a", this.owner % 7, null] };
  }
}

function objects(seed, size) {
  const accounts = numbers(seed, size).map((n) => new Account(n % 97).add(n % 13));
  const back = JSON.parse(JSON.stringify(accounts));
  return back.reduce((sum, { owner, total }) => sum + owner * total, 0);
}

function matrix(size) {
  const rows = Array.from({ length: size }, (_, i) => new Float64Array(size).fill(i + 0.5));
  let trace = 0;
  for (let i = 0; i < size; i++) {
    for (let j = 0; j < size; j++) trace += rows[i][j] * rows[j][i];
  }
  return trace;
}

const [rounds, step] = scriptArgs.slice(1).map(Number);
let result = 0;
for (let round = 1; round <= rounds; round++) {
  const seed = round * step;
  result += calls(13) + sorted(seed, 500 * step) + words(seed, 300) + counted(seed, 900);
  result += objects(seed, 120 * step) + matrix(20 * step);
}
print(result);
