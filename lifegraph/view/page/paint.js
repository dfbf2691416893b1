// Painting: the ground holds everything and is repainted when it moves; what is selected is painted on a sheet above it.
const ground = document.getElementById('ground');
const sheet = document.getElementById('sheet');
const pen = ground.getContext('2d');
const top_ = sheet.getContext('2d');
const camera = { k: 1, x: 0, y: 0 };
const MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace";
let colors = {};
let blast = null;
let pending = 0;
let settle = 0;

function readColors() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(name).trim();
  colors = { page: value('--page'), ink: value('--ink'), use: value('--edge'), order: value('--edge') };
  Object.assign(colors, { poison: value('--poison'), cycle: value('--cycle'), focus: value('--focus') });
  for (const fate of [...Object.keys(data.looks)]) {
    colors[fate] = { fill: value(`--${fate}-fill`), ink: value(`--${fate}-ink`), line: value(`--${fate}-line`) };
  }
}

function colorOf(node) {
  return colors[shown[node]] || colors.plain;
}

function fit() {
  const box = ground.getBoundingClientRect();
  const k = Math.min((box.width - 40) / (data.width || 1), (box.height - 40) / (data.height || 1), 1.25);
  camera.k = Math.max(k, 0.0005);
  camera.x = (box.width - data.width * camera.k) / 2;
  camera.y = (box.height - data.height * camera.k) / 2;
  repaint();
}

function zoom(factor, x, y) {
  const k = Math.min(Math.max(camera.k * factor, 0.0005), 6);
  camera.x = x - ((x - camera.x) * k) / camera.k;
  camera.y = y - ((y - camera.y) * k) / camera.k;
  camera.k = k;
  moved();
}

function centre(node) {
  const box = ground.getBoundingClientRect();
  const k = Math.max(camera.k, Math.min(0.9, 6));
  const x = data.x[node] * camera.k + camera.x;
  const y = data.y[node] * camera.k + camera.y;
  const inside = x > 60 && y > 40 && x < box.width - 60 && y < box.height - 40;
  if (inside && camera.k >= 0.6) return;
  camera.k = k;
  camera.x = box.width / 2 - data.x[node] * k;
  camera.y = box.height / 2 - data.y[node] * k;
  moved();
}

// While it moves, a large picture is painted without its edges; they come back when it rests.
function moved() {
  repaint(data.edges.length > 6000);
  clearTimeout(settle);
  settle = setTimeout(() => repaint(), 140);
}

function repaint(quick = false) {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => {
    paintGround(quick);
    paintSheet();
  });
}

function begin(brush, canvas) {
  const scale = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(canvas.clientHeight * scale);
  if (canvas.width !== width || canvas.height !== height) Object.assign(canvas, { width, height });
  brush.setTransform(1, 0, 0, 1, 0, 0);
  brush.clearRect(0, 0, width, height);
  brush.setTransform(scale * camera.k, 0, 0, scale * camera.k, scale * camera.x, scale * camera.y);
}

function seen() {
  const k = camera.k;
  return [-camera.x / k, -camera.y / k, (ground.clientWidth - camera.x) / k, (ground.clientHeight - camera.y) / k];
}

const STROKES = { use: [1.3, []], order: [1.3, [5, 4]], poison: [2.8, []], cycle: [2.4, [10, 3, 2, 3]] };

function paintEdges(brush, edges, strong) {
  const coarse = camera.k < 0.35 && edges.length > 4000;
  const [left, top, right, bottom] = seen();
  for (const style of Object.keys(STROKES)) {
    const heads = new Path2D();
    brush.beginPath();
    for (const edge of edges) {
      const [upper, lower, kind] = data.edges[edge];
      if (styleOf(edge, kind) !== style) continue;
      const y0 = Math.min(data.y[upper], data.y[lower]);
      const y1 = Math.max(data.y[upper], data.y[lower]);
      if (y1 < top || y0 > bottom || (!data.ways && Math.max(data.x[upper], data.x[lower]) < left)) continue;
      if (!data.ways && Math.min(data.x[upper], data.x[lower]) > right) continue;
      trace(brush, edge, upper, lower, coarse);
      if (!coarse && camera.k > 0.3) arrow(heads, edge, upper, lower);
    }
    brush.strokeStyle = brush.fillStyle = colors[style];
    brush.globalAlpha = edges.length > 4000 && !(strong && camera.k > 0.3) ? 0.28 : strong || style !== 'use' ? 1 : 0.85;
    brush.lineWidth = Math.max(STROKES[style][0] * (strong ? 1.5 : 1), (edges.length > 4000 ? 0.5 : 0.8) / camera.k);
    brush.setLineDash(camera.k > 0.3 ? STROKES[style][1] : []);
    brush.stroke();
    brush.setLineDash([]);
    brush.fill(heads);
    brush.globalAlpha = 1;
  }
}

function styleOf(edge, kind) {
  if (!failing.size) return kind;
  const [upper, lower] = data.edges[edge];
  if (kind === 'order' || kind === 'cycle') return kind;
  return shown[lower] === 'poisoned' && (shown[upper] === 'poisoned' || shown[upper] === 'failed') ? 'poison' : 'use';
}

function wayOf(edge, upper, lower) {
  if (data.ways) return data.ways[edge];
  const y0 = data.y[upper] + data.h[upper] / 2;
  const y1 = data.y[lower] - data.h[lower] / 2;
  const half = (y0 + y1) / 2;
  return [data.x[upper], y0, data.x[upper], half, data.x[lower], half, data.x[lower], y1];
}

function trace(brush, edge, upper, lower, coarse) {
  if (coarse) {
    brush.moveTo(data.x[upper], data.y[upper]);
    brush.lineTo(data.x[lower], data.y[lower]);
    return;
  }
  const way = wayOf(edge, upper, lower);
  brush.moveTo(way[0], way[1]);
  for (let at = 2; at < way.length; at += 6) brush.bezierCurveTo(...way.slice(at, at + 6));
}

function arrow(path, edge, upper, lower) {
  const way = wayOf(edge, upper, lower);
  const x = way[way.length - 2];
  const y = way[way.length - 1];
  const angle = Math.atan2(y - way[way.length - 3], x - way[way.length - 4]);
  path.moveTo(x, y);
  path.lineTo(x - 8 * Math.cos(angle - 0.45), y - 8 * Math.sin(angle - 0.45));
  path.lineTo(x - 8 * Math.cos(angle + 0.45), y - 8 * Math.sin(angle + 0.45));
  path.closePath();
}

// The outline tells the fate without colours: corners cut off, doubled, pointed, ticked, round or dashed.
function outline(brush, fate, x, y, half, tall, grow = 0) {
  const w = half + grow;
  const h = tall + grow;
  brush.beginPath();
  if (fate === 'failed' || fate === 'timed_out') polygon(brush, x, y, [[-w, h - 8], [-w, 8 - h], [8 - w, -h], [w - 8, -h], [w, 8 - h], [w, h - 8], [w - 8, h], [8 - w, h]]);
  else if (fate === 'abandoned') polygon(brush, x, y, [[-w, 0], [10 - w, -h], [w - 10, -h], [w, 0], [w - 10, h], [10 - w, h]]);
  else brush.roundRect(x - w, y - h, 2 * w, 2 * h, fate === 'released' || fate === 'skipped' ? 10 : fate === 'poisoned' ? 0 : 4);
}

function polygon(brush, x, y, points) {
  points.forEach(([dx, dy], at) => (at ? brush.lineTo(x + dx, y + dy) : brush.moveTo(x + dx, y + dy)));
  brush.closePath();
}

function paintNode(brush, node, tiny) {
  const color = colorOf(node);
  const [x, y, half, tall] = [data.x[node], data.y[node], data.w[node] / 2, data.h[node] / 2];
  brush.fillStyle = tiny ? color.line : color.fill;
  brush.strokeStyle = color.line;
  if (tiny) {
    brush.fillRect(x - half, y - tall, 2 * half, 2 * tall);
    return;
  }
  const root = isRoot(node);
  outline(brush, shown[node], x, y, half, tall);
  brush.lineWidth = root ? 2.6 : shown[node] === 'poisoned' ? 2 : 1.2;
  brush.setLineDash(shown[node] === 'abandoned' || shown[node] === 'skipped' ? [6, 4] : []);
  brush.fill();
  brush.stroke();
  brush.setLineDash([]);
  if (shown[node] === 'timed_out') {
    outline(brush, 'timed_out', x, y, half, tall, 4);
    brush.lineWidth = 1;
    brush.stroke();
  }
  if (shown[node] === 'poisoned') ticks(brush, x, y, half, tall);
}

function ticks(brush, x, y, half, tall) {
  brush.beginPath();
  for (const [sx, sy] of [[-1, -1], [-1, 1], [1, -1], [1, 1]]) {
    brush.moveTo(x + sx * half, y + sy * (tall - 8));
    brush.lineTo(x + sx * (half - 8), y + sy * tall);
  }
  brush.stroke();
}

function linesOf(node) {
  const own = data.lines[node];
  if (!failing.size) return own;
  const said = `${lookOf(node).mark} ${lookOf(node).word}`;
  return own.length > 1 ? [data.short[node], said] : [`${lookOf(node).mark} ${data.short[node]}`];
}

function label(brush, node) {
  const lines = linesOf(node);
  brush.fillStyle = colorOf(node).ink;
  brush.textAlign = 'center';
  brush.textBaseline = 'middle';
  lines.forEach((line, at) => {
    brush.font = `${at ? '' : 'bold '}12px ${MONO}`;
    brush.fillText(line, data.x[node], data.y[node] + (at - (lines.length - 1) / 2) * 16, data.w[node] - 8);
  });
}

// Between readable and tiny the name alone, as large as its box allows, unless that is too small to read.
function nameOnly(brush, node) {
  const size = Math.min(11 / camera.k, (data.w[node] - 8) / (data.short[node].length * 0.61), data.h[node] - 4);
  if (size * camera.k < 7) return;
  brush.fillStyle = colorOf(node).ink;
  brush.textAlign = 'center';
  brush.textBaseline = 'middle';
  brush.font = `${size}px ${MONO}`;
  brush.fillText(data.short[node], data.x[node], data.y[node] + size * 0.05, data.w[node] - 6);
}

function paintNodes(brush, nodes) {
  const [left, top, right, bottom] = seen();
  const tiny = camera.k < 0.22;
  const readable = camera.k * 12 >= 7.5;
  for (const node of nodes) {
    const [x, y, w, h] = [data.x[node], data.y[node], data.w[node], data.h[node]];
    if (x + w < left || x - w > right || y + h < top || y - h > bottom) continue;
    paintNode(brush, node, tiny);
    if (readable) label(brush, node);
    else if (!tiny) nameOnly(brush, node);
  }
}

const everyEdge = data.edges.map((_, edge) => edge);
const everyNode = data.names.map((_, node) => node);

function paintGround(quick) {
  begin(pen, ground);
  if (!quick) paintEdges(pen, everyEdge, false);
  const later = everyNode.filter((node) => isRoot(node) || shown[node] === 'poisoned');
  const first = later.length ? everyNode.filter((node) => !isRoot(node) && shown[node] !== 'poisoned') : everyNode;
  paintNodes(pen, first);
  paintNodes(pen, later.filter((node) => !isRoot(node)));
  paintNodes(pen, later.filter(isRoot));
}

function paintSheet() {
  begin(top_, sheet);
  if (selected >= 0) {
    const hit = (node) => node === selected || (blast && blast[node]);
    const near = [...below[selected], ...above[selected]];
    const inside = blast ? everyEdge.filter((e) => hit(data.edges[e][0]) && hit(data.edges[e][1]) && data.edges[e][2] !== 'order') : [];
    paintEdges(top_, [...new Set([...near, ...inside])], true);
    const around = near.map((edge) => data.edges[edge]).flatMap(([a, b]) => [a, b]);
    paintNodes(top_, [...new Set([...around, ...(blast ? indices(blast) : []), selected])]);
    ring(selected);
  }
  callouts();
}

function ring(node) {
  top_.strokeStyle = colors.focus;
  top_.lineWidth = Math.max(3, 3 / camera.k);
  const room = Math.max(6, 5 / camera.k);
  top_.strokeRect(data.x[node] - data.w[node] / 2 - room, data.y[node] - data.h[node] / 2 - room, data.w[node] + 2 * room, data.h[node] + 2 * room);
}

// Where labels are too small to read, what went wrong is named all the same, in a size that does not shrink.
function callouts() {
  if (camera.k * 12 >= 7.5) return;
  const scale = window.devicePixelRatio || 1;
  top_.setTransform(scale, 0, 0, scale, 0, 0);
  top_.font = `bold 12px ${MONO}`;
  top_.textAlign = 'left';
  top_.textBaseline = 'middle';
  const taken = [];
  const named = [...everyNode.filter(isRoot).slice(0, 12), ...(selected >= 0 ? [selected] : [])];
  for (const node of new Set(named)) callout(node, taken);
}

function callout(node, taken) {
  const x = data.x[node] * camera.k + camera.x;
  const y = data.y[node] * camera.k + camera.y;
  const text = `${lookOf(node).mark} ${data.short[node]}${isRoot(node) ? `: ${lookOf(node).word}` : ''}`;
  const width = top_.measureText(text).width + 14;
  const color = colorOf(node);
  const box = freeSpot(x, y, width, taken);
  taken.push(box);
  top_.strokeStyle = color.line;
  top_.lineWidth = 2;
  const half = Math.max((data.w[node] / 2) * camera.k, 6) + 4;
  const tall = Math.max((data.h[node] / 2) * camera.k, 4) + 4;
  top_.strokeRect(x - half, y - tall, 2 * half, 2 * tall);
  top_.beginPath();
  top_.moveTo(Math.min(Math.max(x, box[0]), box[2]), Math.min(Math.max(y, box[1]), box[3]));
  top_.lineTo(Math.min(Math.max(box[0], x - half), x + half), Math.min(Math.max(box[1] + 11, y - tall), y + tall));
  top_.stroke();
  top_.fillStyle = color.fill;
  top_.fillRect(box[0], box[1], width, 22);
  top_.strokeRect(box[0], box[1], width, 22);
  top_.fillStyle = color.ink;
  top_.fillText(text, box[0] + 7, box[1] + 12);
}

// The nearest place for a callout where it covers nothing; where all is covered, the nearest that covers no other callout.
function freeSpot(x, y, width, taken) {
  let second = null;
  for (const far of [26, 50, 80, 120, 170, 230, 300, 400]) {
    for (let turn = 0; turn < 16; turn++) {
      const angle = (turn * Math.PI) / 8 - Math.PI / 4;
      const left = x + Math.cos(angle) * (far + width / 2) - width / 2;
      const top = y + Math.sin(angle) * far - 11;
      const box = [left, top, left + width, top + 22];
      if (left < 4 || top < 4 || box[2] > sheet.clientWidth - 4 || box[3] > sheet.clientHeight - 4) continue;
      if (taken.some((other) => box[0] < other[2] && other[0] < box[2] && box[1] < other[3] && other[1] < box[3])) continue;
      if (count > 3000 || !covers(box)) return box;
      second = second || box;
    }
  }
  return second || [Math.max(4, Math.min(x, sheet.clientWidth - width - 4)), y + 15, x + width, y + 37];
}

function covers(box) {
  const { k } = camera;
  return everyNode.some((node) => {
    const x = data.x[node] * k + camera.x;
    const y = data.y[node] * k + camera.y;
    const half = (data.w[node] / 2) * k + 2;
    const tall = (data.h[node] / 2) * k + 2;
    return x + half > box[0] && x - half < box[2] && y + tall > box[1] && y - tall < box[3];
  });
}

function nodeAt(x, y) {
  const wx = (x - camera.x) / camera.k;
  const wy = (y - camera.y) / camera.k;
  const slack = 6 / camera.k;
  let best = -1;
  let nearest = Infinity;
  for (let node = 0; node < count; node++) {
    const dx = Math.max(Math.abs(data.x[node] - wx) - data.w[node] / 2, 0);
    const dy = Math.max(Math.abs(data.y[node] - wy) - data.h[node] / 2, 0);
    const far = Math.hypot(dx, dy);
    if (far <= slack && far < nearest) [best, nearest] = [node, far];
  }
  return best;
}
