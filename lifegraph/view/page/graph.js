// The graph: who depends on whom, what a failure would poison, and which fate each node shows.
const data = JSON.parse(document.getElementById('data').textContent);
const count = data.names.length;
const below = Array.from({ length: count }, () => []);
const above = Array.from({ length: count }, () => []);
data.edges.forEach(([upper, lower], edge) => {
  below[upper].push(edge);
  above[lower].push(edge);
});
const failing = new Set();
let shown = data.fates.slice();
let selected = -1;

// What is poisoned if these are not proven stopped: all that they lead to over use edges, in a forecast as in a run.
function poisonedBy(roots) {
  const hit = new Uint8Array(count);
  const work = [...roots];
  while (work.length) {
    for (const edge of below[work.pop()]) {
      const lower = data.edges[edge][1];
      if (data.edges[edge][2] !== 'order' && !hit[lower]) {
        hit[lower] = 1;
        work.push(lower);
      }
    }
  }
  return hit;
}

function indices(flags) {
  const found = [];
  for (let node = 0; node < count; node++) if (flags[node]) found.push(node);
  return found;
}

function forecast() {
  if (!failing.size) {
    shown = data.fates.slice();
    return;
  }
  const hit = poisonedBy(failing);
  shown = data.fates.map((_, node) => (hit[node] ? 'poisoned' : failing.has(node) ? 'failed' : 'released'));
}

function isRoot(node) {
  return shown[node] === 'failed' || shown[node] === 'timed_out' || shown[node] === 'abandoned';
}

function lookOf(node) {
  return data.looks[shown[node]] || data.looks.plain;
}

function el(tag, facts, ...children) {
  const made = Object.assign(document.createElement(tag), facts);
  made.append(...children);
  return made;
}
