// The run over time: a bar for each attempt, those on the critical path with a heavy edge and a sign of their own.
const frame = document.getElementById('rows');
const bars = everyNode.filter((node) => data.began[node] !== null && data.ended[node] !== null);
bars.sort((a, b) => data.began[a] - data.began[b] || data.ended[a] - data.ended[b]);
const critical = new Set(data.critical);
const ROW = 20;

function paintTimeline() {
  if (!bars.length) return;
  const chart = frame.querySelector('canvas');
  const scale = window.devicePixelRatio || 1;
  const height = Math.min(340, bars.length * ROW + 22);
  chart.style.height = `${height}px`;
  Object.assign(chart, { width: Math.round(frame.clientWidth * scale), height: Math.round(height * scale) });
  const brush = chart.getContext('2d');
  brush.setTransform(scale, 0, 0, scale, 0, 0);
  const names = Math.min(260, frame.clientWidth * 0.35);
  const room = frame.clientWidth - names - 90;
  const last = Math.max(...bars.map((node) => data.ended[node]), 1e-9);
  const first = Math.floor(frame.scrollTop / ROW);
  for (let at = first; at < Math.min(bars.length, first + height / ROW + 1); at++) {
    paintBar(brush, bars[at], at * ROW - frame.scrollTop, names, room / last);
  }
}

function paintBar(brush, node, y, names, second) {
  const color = colorOf(node);
  const on = critical.has(node);
  brush.textBaseline = 'middle';
  brush.font = `${on ? 'bold ' : ''}12px ${MONO}`;
  brush.fillStyle = colors.ink;
  brush.textAlign = 'left';
  brush.fillText(`${on ? '\u25c6 ' : '  '}${data.short[node]}`, 6, y + 11, names - 12);
  const x = names + data.began[node] * second;
  const width = Math.max((data.ended[node] - data.began[node]) * second, 2);
  brush.fillStyle = color.fill;
  brush.strokeStyle = on ? colors.ink : color.line;
  brush.lineWidth = on ? 2.5 : 1;
  brush.fillRect(x, y + 4, width, 13);
  brush.strokeRect(x, y + 4, width, 13);
  brush.fillStyle = colors.ink;
  brush.fillText(`${lookOf(node).mark} ${(data.ended[node] - data.began[node]).toFixed(3)} s`, x + width + 5, y + 11);
}

function toggleTheme(dark) {
  document.documentElement.classList.toggle('dark', dark);
  document.getElementById('theme').textContent = dark ? 'light' : 'dark';
  readColors();
  for (const sample of document.querySelectorAll('#legend canvas')) paintSample(sample);
  repaint();
  paintTimeline();
}

if (bars.length) {
  frame.querySelector('div').style.height = `${Math.max(0, bars.length * ROW + 22 - Math.min(340, bars.length * ROW + 22))}px`;
  frame.addEventListener('scroll', paintTimeline);
  frame.querySelector('canvas').addEventListener('click', (event) => {
    const node = bars[Math.floor((event.offsetY + frame.scrollTop) / ROW)];
    if (node !== undefined) select(node);
  });
}
const dusk = window.matchMedia('(prefers-color-scheme: dark)');
dusk.addEventListener('change', () => toggleTheme(dusk.matches));
document.getElementById('theme').addEventListener('click', () => toggleTheme(!document.documentElement.classList.contains('dark')));
window.addEventListener('resize', () => {
  repaint();
  paintTimeline();
});
toggleTheme(dusk.matches);
fit();
describe();
paintGround(false);
paintSheet();
document.documentElement.dataset.ready = 'yes';

function paintSample(canvas) {
  const brush = canvas.getContext('2d');
  brush.clearRect(0, 0, canvas.width, canvas.height);
  const style = canvas.dataset.stroke;
  if (style) {
    brush.strokeStyle = brush.fillStyle = colors[style];
    [brush.lineWidth] = STROKES[style];
    brush.setLineDash(STROKES[style][1]);
    brush.beginPath();
    brush.moveTo(2, 9);
    brush.lineTo(36, 9);
    brush.stroke();
    polygonFill(brush, [[44, 9], [35, 5], [35, 13]]);
    return;
  }
  const fate = canvas.dataset.fate;
  outline(brush, fate, 23, 9, 18, 7);
  brush.fillStyle = (colors[fate] || colors.plain).fill;
  brush.strokeStyle = (colors[fate] || colors.plain).line;
  brush.setLineDash(fate === 'abandoned' || fate === 'skipped' ? [4, 3] : []);
  brush.fill();
  brush.stroke();
  if (fate === 'poisoned') ticks(brush, 23, 9, 18, 7);
  if (fate === 'timed_out') {
    outline(brush, fate, 23, 9, 18, 7, -3);
    brush.stroke();
  }
}

function polygonFill(brush, points) {
  brush.beginPath();
  polygon(brush, 0, 0, points);
  brush.fill();
}
