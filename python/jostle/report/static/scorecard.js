// The league table of a scorecard: ranks by the weights that its reader gives.
"use strict";
(() => {
  const form = document.getElementById("weights");
  if (!form) return;
  const { controllers, draws, entries } = JSON.parse(document.getElementById("league-data").textContent);
  // Mulberry32: the same draws every time.
  const random = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
  const given = (kind, name) => {
    const input = form.querySelector(`input[data-${kind}="${CSS.escape(name)}"]`);
    return Math.max(0, Number(input ? input.value : 1) || 0);
  };
  const weighted = () => {
    const totals = {};
    for (const [suite, level] of entries) totals[suite] = (totals[suite] || 0) + given("level", level);
    const suites = Object.keys(totals).filter((suite) => totals[suite] > 0);
    const whole = suites.reduce((sum, suite) => sum + given("suite", suite), 0) || 1;
    return entries.map(([suite, level]) =>
      totals[suite] > 0 ? given("level", level) / totals[suite] * given("suite", suite) / whole : 0);
  };
  const rank = (scores) => scores.map((one) => 1 + scores.filter((other) => other > one + 1e-9).length);
  const show = () => {
    const weights = weighted();
    const sum = (met) => controllers.map((_, at) =>
      entries.reduce((total, [, , chances], row) => total + weights[row] * met(chances[at]), 0));
    const scores = sum((chance) => Number(chance >= 0.5));
    const next = random(1);
    const drawn = controllers.map(() => []);
    for (let draw = 0; draw < draws; draw += 1) {
      rank(sum((chance) => Number(next() < chance))).forEach((one, at) => drawn[at].push(one));
    }
    const ranks = rank(scores);
    const rows = controllers.map((name, at) => {
      const sorted = drawn[at].sort((a, b) => a - b);
      const [low, high] = [0.025, 0.975].map((share) => sorted[Math.round(share * (draws - 1))]);
      const among = !draws ? "–" : low === high ? `${low}` : `${low}–${high}`;
      const met = entries.filter(([, , chances]) => chances[at] >= 0.5).length;
      return [ranks[at], name, `${(100 * scores[at]).toFixed(0)} %`, among,
        `${met} of ${entries.length}`];
    });
    rows.sort((a, b) => a[0] - b[0]);
    const body = document.querySelector("#ranks tbody");
    body.replaceChildren(...rows.map((cells) => {
      const row = document.createElement("tr");
      cells.forEach((text, at) => {
        const cell = document.createElement("td");
        cell.textContent = text;
        if (at === 2) cell.className = "score";
        row.append(cell);
      });
      return row;
    }));
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());
})();
