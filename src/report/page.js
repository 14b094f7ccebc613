'use strict';
window.onerror = (message) => { document.body.dataset.error = message; };
const runs = JSON.parse(document.getElementById('data').textContent);
const [LABEL, KERNEL, GROUPS, START, END, OVERLAPS, BYTES, FLOPS, GBS, GFLOPS, ROOF, ERROR] = Array(12).keys();
const tip = document.getElementById('tip');

const element = (tag, attributes = {}, ...children) => {
  const e = document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  e.append(...children);
  return e;
};
const number = (x, digits = 3) => {
  if (x === null || x === undefined) return '';
  const places = x === 0 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x))));
  return x.toLocaleString('en', { maximumFractionDigits: Math.min(places, 4), minimumFractionDigits: 0 });
};
const time = (ns) => ns >= 1e9 ? `${number(ns / 1e9)} s` : ns >= 1e6 ? `${number(ns / 1e6)} ms`
  : ns >= 1e3 ? `${number(ns / 1e3)} µs` : `${number(ns)} ns`;
const bytes = (n) => n >= 1e9 ? `${number(n / 1e9)} GB` : n >= 1e6 ? `${number(n / 1e6)} MB`
  : n >= 1e3 ? `${number(n / 1e3)} kB` : `${n} B`;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
// One color per operation, the same on the whole page, in the order in which they come.
const operation = (label) => label.split(' ')[0];
const operations = [...new Set(runs.flatMap((run) => run.rows.map((row) => operation(row[LABEL]))))];
const colorOf = (label) => `--c${operations.indexOf(operation(label)) % 8}`;

const show = (event, title, lines) => {
  tip.replaceChildren(element('b', {}, title), ...lines.filter(Boolean).map((line) => element('div', {}, line)));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - box.width - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - box.height - 8)}px`;
};
const hide = () => { tip.hidden = true; };
const rowLines = (row) => [
  `${time(row[END] - row[START])}${row[OVERLAPS] ? ', may overlap others' : ''}`,
  `kernel ${row[KERNEL]}${row[GROUPS][0] ? `, groups ${row[GROUPS].join(' x ')}` : ''}`,
  row[BYTES] !== null && bytes(row[BYTES]),
  row[GBS] !== null && `${number(row[GBS])} GB/s`,
  row[GFLOPS] !== null && `${number(row[GFLOPS])} GFLOP/s`,
  row[ROOF] !== null && `${number(100 * row[ROOF])} % of the roofline`,
  row[ERROR] && `measurement error: ${row[ERROR]}`,
];

function tiles(run) {
  const box = element('div', { class: 'tiles' });
  const tile = (name, value, main) =>
    box.append(element('div', { class: main ? 'tile main' : 'tile' }, element('b', {}, value), element('span', {}, name)));
  tile('wall time', time(run.wall), true);
  if (run.gpu && !run.gpu.error) {
    tile('GPU busy', time(run.gpu.busy), true);
    if (run.gpu.idle !== null) tile('GPU idle', time(run.gpu.idle));
    if (run.gpu.utilisation !== null) tile('GPU utilisation', `${number(100 * run.gpu.utilisation)} %`, true);
  }
  tile('CPU recording', time(run.record));
  tile('CPU encoding', time(run.encode));
  tile('CPU submitting', time(run.submit));
  tile('CPU waiting', time(run.wait));
  tile('submissions', number(run.submissions, 9));
  tile('dispatches', number(run.dispatches, 9));
  tile('barriers', number(run.barriers, 9));
  tile('bytes up', bytes(run.up));
  tile('bytes down', bytes(run.down));
  tile('pool hits / misses', `${run.hits} / ${run.misses}`);
  tile('pipelines made', number(run.pipelines, 9));
  return box;
}

// Lanes of boxes: what overlaps in one track goes one below the other.
function lanes(run) {
  const tracks = new Map();
  const add = (track, box) => { if (!tracks.has(track)) tracks.set(track, []); tracks.get(track).push(box); };
  if (run.aligned || !run.rows.length) {
    for (const [track, name, begin, end] of run.spans) {
      const paint = name === 'wait' ? '--wait' : name === 'record' || name === 'read' || name === 'upload' ? '--cpu' : '--accent';
      add(`CPU ${track}`, { name, begin, end, paint, lines: [time(end - begin)], faint: name === 'wait' || name === 'record' });
    }
  }
  for (const row of run.rows)
    add('GPU', { name: row[LABEL], begin: row[START], end: row[END], paint: colorOf(row[LABEL]), lines: rowLines(row), mark: row[OVERLAPS] });
  const out = [];
  for (const [track, boxes] of tracks) {
    boxes.sort((a, b) => a.begin - b.begin || b.end - a.end);
    const ends = [];
    for (const box of boxes) {
      let lane = ends.findIndex((end) => end <= box.begin);
      if (lane < 0) lane = ends.length;
      ends[lane] = box.end;
      (out.find((l) => l.track === track && l.lane === lane) || out[out.push({ track, lane, boxes: [] }) - 1]).boxes.push(box);
    }
  }
  return out;
}

function timeline(run) {
  const all = lanes(run);
  const section = element('section', {}, element('h3', {}, 'Timeline'));
  if (!all.length) {
    section.append(element('p', { class: 'note' }, 'Nothing ran.'));
    return section;
  }
  const canvas = element('canvas', { role: 'img', 'aria-label': `timeline of ${run.name}` });
  const begin = Math.min(0, ...all.map((l) => l.boxes[0].begin));
  const end = Math.max(...all.flatMap((l) => l.boxes.map((b) => b.end)), 1);
  const whole = [begin, end];
  let [from, to] = whole;
  const HEIGHT = 24, GAP = 5, AXIS = 26, NAMES = 132;
  let tops = [], height = AXIS;
  all.forEach((lane, i) => {
    if (i && all[i - 1].track !== lane.track) height += 9;
    tops.push(height);
    height += HEIGHT + GAP;
  });
  height += 4;
  const draw = () => {
    const width = canvas.clientWidth || 1000, ratio = devicePixelRatio || 1;
    canvas.width = width * ratio;
    canvas.height = height * ratio;
    canvas.style.height = `${height}px`;
    const g = canvas.getContext('2d');
    g.scale(ratio, ratio);
    g.fillStyle = color('--card');
    g.fillRect(0, 0, width, height);
    const scale = (width - NAMES - 8) / (to - from), x = (ns) => NAMES + (ns - from) * scale;
    g.font = '12px system-ui, "Liberation Sans", sans-serif';
    g.textBaseline = 'middle';
    const rough = (to - from) / ((width - NAMES) / 110), power = 10 ** Math.floor(Math.log10(rough));
    const step = power * [1, 2, 5, 10].find((m) => m * power >= rough);
    for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
      g.fillStyle = color('--grid');
      g.fillRect(Math.round(x(t)), AXIS - 4, 1, height);
      g.fillStyle = color('--soft');
      g.fillText(t ? time(t) : '0', x(t) + 3, 12);
    }
    all.forEach((lane, i) => {
      const top = tops[i];
      g.fillStyle = color('--idle');
      g.fillRect(NAMES, top, width - NAMES - 8, HEIGHT);
      g.save();
      g.beginPath();
      g.rect(NAMES, top, width - NAMES - 8, HEIGHT);
      g.clip();
      for (const box of lane.boxes) {
        if (box.end < from || box.begin > to) continue;
        const left = x(box.begin), wide = Math.max(1, x(box.end) - left);
        g.globalAlpha = box.faint ? 0.45 : 1;
        g.fillStyle = color(box.paint);
        if (wide > 4) { g.beginPath(); g.roundRect(left, top, wide - .5, HEIGHT, 3); g.fill(); } else g.fillRect(left, top, wide, HEIGHT);
        g.globalAlpha = 1;
        if (box.mark) { g.fillStyle = color('--card'); for (let m = left + 3; m < left + wide; m += 7) g.fillRect(m, top + HEIGHT - 4, 4, 2); }
        if (wide > 44) {
          g.save();
          g.beginPath();
          g.rect(left, top, wide - 4, HEIGHT);
          g.clip();
          g.fillStyle = box.faint ? color('--ink') : color('--card');
          g.fillText(box.name, Math.max(left, NAMES) + 6, top + HEIGHT / 2 + .5);
          g.restore();
        }
      }
      g.restore();
      if (!lane.lane) {
        g.fillStyle = color('--ink');
        g.fillText(lane.track.length > 19 ? `${lane.track.slice(0, 18)}…` : lane.track, 8, top + HEIGHT / 2 + .5);
      }
    });
  };
  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    const ns = from + (event.clientX - box.left - NAMES) / (box.width - NAMES - 8) * (to - from);
    const lane = all.find((_, i) => event.clientY - box.top >= tops[i] && event.clientY - box.top < tops[i] + HEIGHT);
    const slack = (to - from) / box.width;
    return [ns, lane && lane.boxes.findLast((b) => b.begin - slack <= ns && ns <= b.end + slack)];
  };
  let drag = null;
  canvas.onpointermove = (event) => {
    if (drag !== null) {
      const by = (drag - event.clientX) / (canvas.clientWidth - NAMES - 8) * (to - from);
      drag = event.clientX;
      from += by; to += by;
      return draw();
    }
    const [, box] = at(event);
    if (box) show(event, box.name, [`at ${time(box.begin)}`, ...box.lines]); else hide();
  };
  canvas.onpointerdown = (event) => { drag = event.clientX; canvas.setPointerCapture(event.pointerId); hide(); };
  canvas.onpointerup = () => { drag = null; };
  canvas.onpointerleave = hide;
  canvas.addEventListener('wheel', (event) => {
    if (!event.ctrlKey && !event.shiftKey && !event.metaKey) return;
    event.preventDefault();
    const [ns] = at(event), factor = Math.exp((event.deltaY || event.deltaX) / 300);
    from = ns - (ns - from) * factor;
    to = ns + (to - ns) * factor;
    draw();
  }, { passive: false });
  const reset = element('button', {}, 'whole run');
  reset.onclick = () => { [from, to] = whole; draw(); };
  const key = element('span');
  for (const name of new Set(run.rows.map((row) => operation(row[LABEL]))))
    key.append(element('span', { class: 'key' }, element('i', { style: `background:var(${colorOf(name)})` }), name));
  const help = element('span', {}, 'Shift + wheel zooms, dragging moves · ', reset);
  section.append(element('div', { class: 'lanes' }, canvas), element('div', { class: 'bar' }, key, help));
  if (!run.aligned && run.rows.length)
    section.append(element('p', { class: 'note' }, 'The clocks of host and device can’t be compared here, so the device’s time stands alone.'));
  draws.push(draw);
  return section;
}

function roofline(run) {
  const section = element('section', {}, element('h3', {}, 'Roofline'));
  if (!run.peaks) {
    section.append(element('p', { class: 'note' },
      'Speeds come from isolated profiles only, where each dispatch runs alone. This run kept its overlaps.'));
    return section;
  }
  const points = grouped(run).map((line) => line.row).filter((r) => r[GFLOPS] && r[BYTES]);
  const NS = 'http://www.w3.org/2000/svg', W = 940, H = 380, L = 62, R = 24, T = 20, B = 44;
  const svg = document.createElementNS(NS, 'svg');
  svg.setAttribute('viewBox', `0 0 ${W} ${H}`);
  svg.setAttribute('role', 'img');
  const put = (tag, attributes, text) => {
    const e = document.createElementNS(NS, tag);
    for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v);
    if (text) e.textContent = text;
    svg.append(e);
    return e;
  };
  const peak = run.peaks.gflops, sets = run.peaks.bandwidths;
  const memory = sets.length ? sets[sets.length - 1][1] : 1, cache = sets.length ? sets[0][1] : 1;
  const intensity = (r) => r[FLOPS] / r[BYTES];
  const lowX = Math.min(0.03, ...points.map(intensity)) / 2, highX = Math.max(16 * peak / memory, ...points.map(intensity)) * 2;
  const lowY = Math.min(lowX * memory * 4, ...points.map((r) => r[GFLOPS])) / 3, highY = peak * 2.2;
  const x = (v) => L + (Math.log(v / lowX) / Math.log(highX / lowX)) * (W - L - R);
  const y = (v) => H - B - (Math.log(v / lowY) / Math.log(highY / lowY)) * (H - T - B);
  for (let p = Math.ceil(Math.log10(lowX)); 10 ** p <= highX; p++) {
    put('line', { class: 'grid', x1: x(10 ** p), x2: x(10 ** p), y1: T, y2: H - B });
    put('text', { x: x(10 ** p), y: H - B + 17, 'text-anchor': 'middle' }, number(10 ** p));
  }
  for (let p = Math.ceil(Math.log10(lowY)); 10 ** p <= highY; p++) {
    put('line', { class: 'grid', x1: L, x2: W - R, y1: y(10 ** p), y2: y(10 ** p) });
    put('text', { x: L - 8, y: y(10 ** p) + 4, 'text-anchor': 'end' }, number(10 ** p));
  }
  put('text', { x: (L + W - R) / 2, y: H - 8, 'text-anchor': 'middle' }, 'operations per byte');
  put('text', { x: 16, y: (T + H - B) / 2, 'text-anchor': 'middle', transform: `rotate(-90 16 ${(T + H - B) / 2})` }, 'GFLOP/s');
  const roof = (bandwidth, name, title) => {
    const start = Math.max(lowX, lowY / bandwidth), ridge = peak / bandwidth;
    put('path', { class: name, d: `M${x(start)},${y(start * bandwidth)} L${x(ridge)},${y(peak)} L${x(highX)},${y(peak)}` });
    const middle = Math.sqrt(start * ridge), slope = Math.atan2(y(ridge * bandwidth) - y(start * bandwidth), x(ridge) - x(start)) * 180 / Math.PI;
    put('text', { x: x(middle), y: y(middle * bandwidth) - 8, 'text-anchor': 'middle',
      transform: `rotate(${slope} ${x(middle)} ${y(middle * bandwidth) - 8})` }, `${title} ${number(bandwidth)} GB/s`);
  };
  if (cache > memory * 1.15) roof(cache, 'cache', 'caches');
  roof(memory, 'roof', 'memory');
  put('text', { x: W - R - 4, y: y(peak) - 8, 'text-anchor': 'end' }, `${number(peak)} GFLOP/s`);
  const taken = [];
  for (const r of points) {
    const [px, py] = [x(intensity(r)), y(r[GFLOPS])];
    const dot = put('circle', { cx: px, cy: py, r: 6, fill: `var(${colorOf(r[LABEL])})` });
    dot.addEventListener('pointermove', (event) => show(event, r[LABEL], rowLines(r)));
    dot.addEventListener('pointerleave', hide);
    // On the side where no other dot is in the way; below what is written there already.
    const crowded = points.some((o) => o !== r && x(intensity(o)) > px + 2 && x(intensity(o)) < px + 180 && Math.abs(y(o[GFLOPS]) - py) < 14);
    const right = px < W - 220 && !crowded;
    let ty = py + 4;
    while (taken.some(([tx, t, side]) => side === right && Math.abs(tx - px) < 160 && Math.abs(t - ty) < 14)) ty += 14;
    taken.push([px, ty, right]);
    put('text', { class: 'label', x: right ? px + 11 : px - 11, y: ty, 'text-anchor': right ? 'start' : 'end' }, r[LABEL]);
  }
  section.append(svg);
  if (!points.length) section.append(element('p', { class: 'note' }, 'No row does arithmetic.'));
  return section;
}

// Rows that are the same work, together; the one of median duration stands for all.
const duration = (row) => row[END] - row[START];
function grouped(run) {
  const groups = new Map();
  for (const row of run.rows) {
    const key = row[LABEL] + '\0' + row[KERNEL];
    if (!groups.has(key)) groups.set(key, []);
    groups.get(key).push(row);
  }
  return [...groups.values()].map((rows) => {
    rows.sort((a, b) => duration(a) - duration(b));
    return { row: rows[rows.length >> 1], rows, total: rows.reduce((sum, row) => sum + duration(row), 0),
      marked: rows.some((row) => row[OVERLAPS]), error: (rows.find((row) => row[ERROR]) || [])[ERROR] };
  });
}

function table(run) {
  const lines = grouped(run);
  const sum = lines.reduce((all, line) => all + line.total, 0) || 1;
  const speeds = run.mode === 'isolated';
  const columns = [
    ['row', (l) => l.row[LABEL]], ['kernel', (l) => l.row[KERNEL]], ['groups', (l) => l.row[GROUPS].reduce((a, b) => a * Math.max(b, 1), 1)],
    ['n', (l) => l.rows.length], ['each', (l) => duration(l.row)], ['total', (l) => l.total], ['share', (l) => l.total], ['bytes', (l) => l.row[BYTES]],
    ...(speeds ? [['GB/s', (l) => l.row[GBS]], ['GFLOP/s', (l) => l.row[GFLOPS]], ['roofline', (l) => l.row[ROOF]]] : []),
  ];
  const body = element('tbody');
  const fill = () => body.replaceChildren(...lines.map((l) => {
    const tr = element('tr', {},
      element('td', {}, element('i', { style: `background:var(${colorOf(l.row[LABEL])})` }), l.row[LABEL], l.marked ? element('span', { class: 'mark', title: 'may have run side by side with others' }, ' ~') : ''),
      element('td', {}, element('span', { class: 'kernel' }, l.row[KERNEL])),
      element('td', {}, l.row[GROUPS][0] ? l.row[GROUPS].filter((g, i) => i === 0 || g > 1).join(' x ') : ''),
      element('td', {}, number(l.rows.length, 9)), element('td', {}, time(duration(l.row))), element('td', {}, time(l.total)),
      element('td', {}, element('span', { class: 'share', style: `width:${(60 * l.total / sum).toFixed(1)}px` }), `${number(100 * l.total / sum)} %`),
      element('td', {}, l.row[BYTES] === null ? '' : bytes(l.row[BYTES])));
    if (speeds && l.error) tr.append(element('td', { class: 'bad', colspan: 3 }, `measurement error: ${l.error}`));
    else if (speeds) tr.append(element('td', {}, number(l.row[GBS])), element('td', {}, number(l.row[GFLOPS])),
      element('td', {}, l.row[ROOF] === null ? '' : `${number(100 * l.row[ROOF], 2)} %`));
    return tr;
  }));
  const head = element('tr');
  let sorted = 5, down = true;
  const sort = () => {
    const key = columns[sorted][1];
    lines.sort((a, b) => (key(a) > key(b) ? 1 : key(a) < key(b) ? -1 : 0) * (down ? -1 : 1));
    fill();
  };
  columns.forEach(([name], i) => {
    const th = element('th', {}, name);
    th.onclick = () => { down = sorted === i ? !down : i > 1; sorted = i; sort(); };
    head.append(th);
  });
  sort();
  const section = element('section', {}, element('h3', {}, 'Rows'),
    element('div', { class: 'scroll' }, element('table', {}, element('thead', {}, head), body)));
  if (lines.some((l) => l.marked))
    section.append(element('p', { class: 'note' }, '~ may have run side by side with others: the time is not its own, and shares may add up to more than all.'));
  return section;
}

// The pictures come drawn, with their texts escaped.
function graphs(run) {
  return run.graphs.map(([name, svg]) => {
    const picture = element('div', { class: 'graph' });
    picture.innerHTML = svg;
    return element('details', { open: '' }, element('summary', {}, element('h3', {}, `What ran: ${name}`)), picture);
  });
}

const draws = [];
document.getElementById('device').textContent =
  [...new Set(runs.map((run) => `${run.device} · ${run.driver}`))].join(' — ');
for (const run of runs) {
  const card = element('article', { class: 'run' },
    element('div', { class: 'head' }, element('h2', {}, run.name), element('span', { class: 'badge' }, run.mode), element('span', { class: 'clock' }, `clock: ${run.clock}`)));
  if (run.gpu && run.gpu.error) card.append(element('p', { class: 'error' }, `Measurement error: ${run.gpu.error}`));
  document.getElementById('runs').append(card);
  card.append(tiles(run), timeline(run), roofline(run), table(run), ...graphs(run));
}
const redraw = () => draws.forEach((draw) => draw());
addEventListener('resize', redraw);
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', redraw);
redraw();
document.body.dataset.ready = runs.length;
