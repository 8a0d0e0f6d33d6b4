// What is live when, derived from addresses and slots alone.

// Give a run the columns that everything is drawn from.
function prepare(run) {
  const { buffers, allocations, ranged } = run;
  const count = buffers.size.length;
  run.count = count;
  run.end = new Float64Array(ranged);
  run.low = new Float64Array(count);
  for (let i = 0; i < count; i++) run.low[i] = allocations.base[buffers.allocation[i]] + buffers.offset[i];
  let last = 0;
  for (let i = 0; i < ranged; i++) {
    run.end[i] = buffers.start[i] + buffers.slots[i];
    if (run.end[i] > last) last = run.end[i];
  }
  run.span = last + 1;
  run.firstUser = new Float64Array(count + 1);
  for (let i = 0; i < count; i++) run.firstUser[i + 1] = run.firstUser[i] + buffers.users[i];
  run.frameRow = new Map(Array.from(run.frames.id, (id, row) => [id, row]));
  own(run);
  sumUp(run);
  order(run);
  return run;
}

// Give every byte that is live to the one buffer that holds it the longest. A buffer that starts takes bytes that
// nobody holds, and those of buffers that it outlives; what is still its own when it ends is live no more.
function own(run) {
  const { ranged, end } = run;
  const { start, size, offset, allocation } = run.buffers;
  const owned = new Float64Array(ranged);
  const when = [], whose = [], bytes = []; // the changes up to the ends, in order of time
  const pieces = new Map(); // of each allocation: where pieces begin, and their owners
  const note = (time, buffer, change) => { when.push(time); whose.push(buffer); bytes.push(change); owned[buffer] += change; };
  for (let buffer = 0; buffer < ranged; buffer++) {
    if (!size[buffer]) continue;
    let part = pieces.get(allocation[buffer]);
    if (!part) pieces.set(allocation[buffer], part = { at: [0], owner: [-1] });
    const { at, owner } = part;
    const low = offset[buffer], high = low + size[buffer], now = start[buffer], until = end[buffer];
    let first = lastUpTo(at, low), next = first;
    const newAt = [], newOwner = [];
    const add = (place, whom) => {
      if (!newOwner.length || newOwner[newOwner.length - 1] !== whom) { newAt.push(place); newOwner.push(whom); }
    };
    if (at[first] < low) add(at[first], owner[first]);
    let gained = 0, tail = -1;
    for (; next < at.length && at[next] < high; next++) {
      const holder = owner[next];
      const from = Math.max(at[next], low);
      const after = next + 1 < at.length ? at[next + 1] : Infinity;
      const length = Math.min(after, high) - from;
      const live = holder >= 0 && end[holder] >= now;
      if (live && end[holder] >= until) {
        add(from, holder);
      } else {
        if (live) note(now, holder, -length);
        gained += length;
        add(from, buffer);
      }
      tail = after > high ? holder : -2;
    }
    if (tail !== -2) add(high, tail);
    if (gained) note(now, buffer, gained);
    replace(at, first, next - first, newAt);
    replace(owner, first, next - first, newOwner);
  }
  run.events = withEnds(run, when, whose, bytes, owned);
}

function replace(list, at, count, by) {
  if (count === by.length) for (let i = 0; i < count; i++) list[at + i] = by[i];
  else list.splice(at, count, ...by);
}

// Merge what was noted with the ends of all buffers.
function withEnds(run, when, whose, bytes, owned) {
  const ends = sortedBy(run.ranged, i => run.end[i]);
  const total = when.length + run.ranged;
  const time = new Float64Array(total), buffer = new Uint32Array(total), change = new Float64Array(total);
  let one = 0, two = 0;
  for (let i = 0; i < total; i++) {
    const ended = two < ends.length ? run.end[ends[two]] + 1 : Infinity;
    if (one < when.length && when[one] <= ended) {
      time[i] = when[one]; buffer[i] = whose[one]; change[i] = bytes[one]; one++;
    } else {
      time[i] = ended; buffer[i] = ends[two]; change[i] = -owned[ends[two]]; two++;
    }
  }
  return { time, buffer, change };
}

// Sum the changes slot by slot, also without padding; find the peak and what each buffer holds at it.
function sumUp(run) {
  const { time, buffer, change } = run.events, { padding, size } = run.buffers;
  const times = [0], totals = [0], unpadded = [0], upto = [0];
  let total = 0, useful = 0, last = 0;
  for (let i = 0; i < time.length; i++) {
    if (time[i] !== times[last]) { times.push(time[i]); totals.push(total); unpadded.push(useful); upto.push(i); last++; }
    total += change[i];
    totals[last] = total;
    // What has a part of its bytes only, since others own the rest, has its padding in proportion.
    if (change[i]) useful += change[i] * (1 - Math.max(padding[buffer[i]], 0) / size[buffer[i]]);
    unpadded[last] = useful;
    upto[last] = i + 1;
  }
  run.curve = { time: Float64Array.from(times), live: Float64Array.from(totals), upto: Uint32Array.from(upto), unpadded: Float64Array.from(unpadded) };
  let peak = 0;
  for (let i = 1; i < totals.length; i++) if (totals[i] > totals[peak]) peak = i;
  run.peak = { time: times[peak], bytes: totals[peak] };
  // Less is less than a pixel of the curve.
  run.padded = totals.some((bytes, i) => bytes - unpadded[i] > run.peak.bytes / 100);
  run.atPeak = new Float64Array(run.count);
  for (let i = 0; i < upto[peak]; i++) run.atPeak[buffer[i]] += change[i];
  run.agrees = run.peak.bytes === run.figures.peak_bytes && (run.peak.bytes === 0 || run.peak.time === run.figures.peak_time);
}

// The order of drawing: the largest first, so that no small one is hidden.
function order(run) {
  const { slots, size } = run.buffers;
  run.order = sortedBy(run.ranged, i => -Math.round(1024 * Math.log2((slots[i] + 1) * size[i] + 1)));
}

// Sort the numbers 0 .. count - 1 by a whole number each; of equal ones the first stays first.
function sortedBy(count, key) {
  const keys = new Float64Array(count);
  for (let i = 0; i < count; i++) keys[i] = key(i) * count + i;
  keys.sort();
  const result = new Uint32Array(count);
  for (let i = 0; i < count; i++) result[i] = ((keys[i] % count) + count) % count;
  return result;
}

// The last place of an ascending list that holds at most `value`.
function lastUpTo(list, value) {
  let low = 0, high = list.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle] <= value) low = middle; else high = middle - 1;
  }
  return low;
}

// A text of a buffer; empty where its dump has none.
function textOf(run, column, buffer) {
  const { number, names } = run.texts[column];
  return number[buffer] < 0 ? "" : names[number[buffer]];
}

// Which buffers a search finds: those with the words in name, op_name, source, shape or opcode; /.../ is an expression.
function search(run, query) {
  const found = new Uint8Array(run.count);
  const test = matcher(query);
  for (const column of ["name", "op_name", "source", "shape", "opcode"]) {
    const { number, names } = run.texts[column];
    const fits = Uint8Array.from(names, text => test(text) ? 1 : 0);
    for (let i = 0; i < run.count; i++) if (number[i] >= 0 && fits[number[i]]) found[i] = 1;
  }
  return found;
}

function matcher(query) {
  const expression = /^\/(.+)\/$/.exec(query);
  if (expression) {
    try {
      const pattern = new RegExp(expression[1], "i");
      return text => pattern.test(text);
    } catch (error) {
      if (!(error instanceof SyntaxError)) throw error; // half-typed: looked for as it stands
    }
  }
  const words = query.toLowerCase();
  return text => text.toLowerCase().includes(words);
}

// Parts of an op_name: '/' parts them outside of brackets and quotes; where these do not close, everywhere.
function partsOf(name) {
  const parts = [];
  let depth = 0, quote = "", from = 0;
  for (let i = 0; i < name.length; i++) {
    const letter = name[i];
    if (quote) {
      if (letter === "\\") i++;
      else if (letter === quote) quote = "";
    } else if (letter === "'" || letter === '"') quote = letter;
    else if ("([{".includes(letter)) depth++;
    else if (")]}".includes(letter)) depth--;
    else if (letter === "/" && depth === 0) { parts.push(name.slice(from, i)); from = i + 1; }
    if (depth < 0) break;
  }
  if (depth !== 0 || quote) return name.split("/");
  parts.push(name.slice(from));
  return parts;
}
