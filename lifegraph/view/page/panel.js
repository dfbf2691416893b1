// The panel beside the graph: search, what is selected, and what would happen if it failed.
const panel = document.getElementById('panel');
const results = document.getElementById('results');
const search = document.getElementById('search');
const forecastBox = document.getElementById('forecast');
const MOST = 200;
const folded = data.names.map((name) => name.toLowerCase());

function select(node, move = true) {
  selected = node;
  blast = node >= 0 ? poisonedBy([node]) : null;
  ground.classList.toggle('dim', node >= 0);
  describe();
  if (node >= 0 && move) centre(node);
  cancelAnimationFrame(pending);
  paintSheet();
  if (move) repaint();
}

function link(node) {
  const look = lookOf(node);
  const button = el('button', { type: 'button', textContent: `${shown[node] ? look.mark + ' ' : ''}${data.names[node].slice(0, 300)}` });
  button.addEventListener('click', () => select(node));
  return el('li', {}, button);
}

function list(title, nodes, id) {
  if (!nodes.length) return [];
  const rest = nodes.length > MOST ? [el('li', { className: 'hint', textContent: `and ${nodes.length - MOST} more` })] : [];
  return [el('h3', { textContent: title }), el('ul', { id }, ...nodes.slice(0, MOST).map(link), ...rest)];
}

function describe() {
  if (selected < 0) {
    panel.replaceChildren(el('p', { className: 'hint', textContent: panel.dataset.hint }));
    return;
  }
  const node = selected;
  const hit = indices(blast);
  const status = failing.size ? `${lookOf(node).mark} forecast: ${lookOf(node).word}` : data.fates[node] ? `${lookOf(node).mark} ${data.status[node]}` : '';
  const fail = el('button', { type: 'button', id: 'fail', textContent: failing.has(node) ? 'failing: take back' : 'fail this' });
  fail.setAttribute('aria-pressed', String(failing.has(node)));
  fail.addEventListener('click', () => toggle(node));
  const told = [...(data.errors[node] || []), ...(data.stacks[node] || [])].join('\n');
  panel.replaceChildren(
    el('h2', { className: 'name', textContent: data.names[node] }),
    el('p', { textContent: status }),
    ...(data.where[node] ? [el('p', { className: 'hint', textContent: data.where[node] })] : []),
    fail,
    ...(told ? [el('pre', { textContent: told })] : []),
    el('p', { id: 'blast', textContent: `not proven stopped, it poisons ${hit.length} of ${count}` }),
    ...list('would be poisoned', hit, 'poisoned'),
    ...list('because of', data.causes[node] || [], 'causes'),
    ...list('depends on', below[node].map((edge) => data.edges[edge][1]), 'dependencies'),
    ...list('used by', above[node].map((edge) => data.edges[edge][0]), 'dependents'),
  );
}

function toggle(node) {
  if (!failing.delete(node)) failing.add(node);
  forecast();
  describe();
  tellForecast();
  repaint();
}

function tellForecast() {
  forecastBox.hidden = !failing.size;
  if (!failing.size) return;
  const hit = indices(poisonedBy(failing));
  const clear = el('button', { type: 'button', id: 'clear', textContent: 'back to what was' });
  clear.addEventListener('click', () => {
    failing.clear();
    forecast();
    describe();
    tellForecast();
    repaint();
  });
  const names = [...failing].map((node) => data.short[node]).join(', ');
  const said = `forecast: if ${names} failed, ${hit.length} poisoned, ${count - hit.length - [...failing].filter((n) => shown[n] === 'failed').length} released `;
  forecastBox.replaceChildren(el('p', { textContent: said }), clear, ...list('poisoned', hit, 'forecast-poisoned'));
}

function find() {
  const wanted = search.value.trim().toLowerCase();
  const found = [];
  for (let node = 0; wanted && node < count; node++) if (folded[node].includes(wanted)) found.push(node);
  found.sort((a, b) => folded[a].length - folded[b].length);
  results.replaceChildren(...found.slice(0, 30).map(link));
  if (wanted) results.prepend(el('li', { className: 'hint', textContent: `${found.length} found` }));
  return found;
}

search.addEventListener('input', find);
search.addEventListener('keydown', (event) => {
  if (event.key === 'Enter') {
    const [first] = find();
    if (first !== undefined) {
      select(first);
      results.replaceChildren();
      sheet.focus();
    }
  } else if (event.key === 'Escape') {
    search.value = '';
    find();
    sheet.focus();
  }
});

function neighbour(key) {
  const lower = below[selected].map((edge) => data.edges[edge][1]);
  const upper = above[selected].map((edge) => data.edges[edge][0]);
  const near = (nodes) => nodes.sort((a, b) => Math.abs(data.x[a] - data.x[selected]) - Math.abs(data.x[b] - data.x[selected]))[0];
  if (key === 'ArrowDown') return near(lower);
  if (key === 'ArrowUp') return near(upper);
  const side = key === 'ArrowLeft' ? -1 : 1;
  const row = everyNode.filter((node) => data.rows[node] === data.rows[selected] && (data.x[node] - data.x[selected]) * side > 0);
  return near(row);
}

sheet.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const middle = [sheet.clientWidth / 2, sheet.clientHeight / 2];
  if (event.key.startsWith('Arrow')) {
    const next = selected < 0 ? (everyNode.find(isRoot) ?? 0) : neighbour(event.key);
    if (next !== undefined && count) select(next);
  } else if (event.key === '+' || event.key === '=') zoom(1.25, ...middle);
  else if (event.key === '-') zoom(0.8, ...middle);
  else if (event.key === '0') fit();
  else if (event.key === 'f' && selected >= 0) toggle(selected);
  else if (event.key === 'Escape') select(-1);
  else if (event.key === '/') search.focus();
  else return;
  event.preventDefault();
});

let drag = null;
sheet.addEventListener('pointerdown', (event) => {
  drag = { x: event.offsetX, y: event.offsetY, far: false };
  sheet.setPointerCapture(event.pointerId);
});
sheet.addEventListener('pointermove', (event) => {
  if (!drag) {
    const over = nodeAt(event.offsetX, event.offsetY);
    sheet.title = over < 0 ? '' : `${data.names[over].slice(0, 200)}\nif not proven stopped: ${indices(poisonedBy([over])).length} poisoned`;
    return;
  }
  const [dx, dy] = [event.offsetX - drag.x, event.offsetY - drag.y];
  if (!drag.far && Math.hypot(dx, dy) < 4) return;
  camera.x += dx;
  camera.y += dy;
  drag = { x: event.offsetX, y: event.offsetY, far: true };
  moved();
});
sheet.addEventListener('pointerup', (event) => {
  if (drag && !drag.far) select(nodeAt(event.offsetX, event.offsetY), false);
  drag = null;
});
sheet.addEventListener('wheel', (event) => {
  event.preventDefault();
  zoom(Math.exp(-event.deltaY * 0.0015), event.offsetX, event.offsetY);
}, { passive: false });
document.getElementById('fit').addEventListener('click', fit);
document.getElementById('in').addEventListener('click', () => zoom(1.4, sheet.clientWidth / 2, sheet.clientHeight / 2));
document.getElementById('out').addEventListener('click', () => zoom(1 / 1.4, sheet.clientWidth / 2, sheet.clientHeight / 2));
