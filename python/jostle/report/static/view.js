// The page over a whole store: plans at the left; a table and a map of one; series of what is chosen.
"use strict";
(() => {
  const EVERY_MS = 2000;
  const MOST_ROWS = 300;
  const at = (id) => document.getElementById(id);
  const make = jostle.make;
  const state = { plan: null, phase: "", measure: "", who: null, chosen: [], filter: "", rows: "", columns: "", plans: [], table: null };

  const ask = async (question, words = []) => {
    const answer = await fetch(`${question}?${new URLSearchParams(words)}`);
    const found = await answer.json().catch(() => ({ error: "jostle view was ended" }));
    if (found.error) throw new Error(found.error);
    return found;
  };
  const told = (error) => { at("notes").textContent = error.message; };
  const plain = (value) => (value === null ? "–" : Math.abs(value) >= 1000 ? value.toFixed(0) : String(Number(value.toPrecision(4))));
  // The interval says how many digits of a mean are worth reading.
  const withInterval = ({ mean, low, high }) => {
    if (mean === null || low === null || high === null) return plain(mean);
    const half = (high - low) / 2;
    if (half === 0) return plain(mean);
    const decimals = Math.min(6, Math.max(0, 1 - Math.floor(Math.log10(half))));
    return `${mean.toFixed(decimals)} ± ${half.toFixed(decimals)}`;
  };

  const drawPlans = () => {
    const wanted = at("search").value.toLowerCase();
    const shown = state.plans.filter((plan) => plan.title.toLowerCase().includes(wanted));
    at("plans").replaceChildren(...shown.map((plan) => {
      const button = make("button", { type: "button", "aria-current": plan.name === state.plan ? "true" : false });
      const failed = plan.failed ? `, ${plan.failed} failed` : "";
      const going = plan.done < plan.runs ? `${plan.done} of ${plan.runs} runs${failed}` : `${plan.runs} ${plan.runs === 1 ? "run" : "runs"}`;
      const when = new Date(plan.when_s * 1000).toLocaleString();
      button.append(make("strong", {}, plan.title), make("span", { class: "quiet" }, `${going} · ${plan.backend} · ${when}`));
      if (plan.done + plan.failed < plan.runs) button.append(make("progress", { max: plan.runs, value: plan.done }));
      button.addEventListener("click", () => open(plan.name));
      return make("li", {}, button);
    }));
    at("empty").hidden = state.plans.length > 0;
  };

  const open = (name) => {
    Object.assign(state, { plan: name, phase: "", measure: "", chosen: [], who: null, rows: "", columns: "", filter: "" });
    at("charts").replaceChildren();
    at("network").replaceChildren();
    location.hash = name;
    drawPlans();
    fill().then(() => { if (state.table.rows.length) choose(state.table.rows[0].condition, false); }).catch(told);
  };

  const fill = async () => {
    const asked = state.plan;
    const table = await ask("table", [["plan", asked], ["phase", state.phase], ["measure", state.measure]]);
    if (asked !== state.plan) return;
    Object.assign(state, { table, measure: table.measure.name, phase: table.phase });
    at("plan").hidden = false;
    at("title").textContent = table.title;
    const left = table.unreadable ? `, ${table.unreadable} cannot be read` : "";
    const failed = table.failed ? `, ${table.failed} failed` : "";
    at("facts").textContent = `${table.done} of ${table.runs} runs are there${failed}${table.read < table.done ? `, ${table.read} read so far` : ""}${left}`;
    at("definition").textContent = table.measure.definition;
    drawChoice();
    drawTable();
    if (table.read < table.done) setTimeout(() => fill().catch(told), 0);
  };

  const select = (label, options, chosen, onChange) => {
    const box = make("select", { "aria-label": label });
    options.forEach(([value, text]) => box.append(make("option", { value, selected: value === chosen }, text)));
    box.addEventListener("change", () => onChange(box.value));
    return make("label", {}, `${label} `, box);
  };

  const everybody = () => {
    const found = new Map();
    state.table.rows.forEach((row) => row.cells.forEach((cell) => { found.set(cell.name, found.has(cell.name) && found.get(cell.name) !== cell.label ? cell.name : cell.label); }));
    return found;
  };

  const drawChoice = () => {
    const { table } = state;
    const focused = document.activeElement?.getAttribute("aria-label");
    const again = (change) => (value) => { change(value); fill().catch(told); };
    const parts = [
      select("measure", table.measures.map((one) => [one.name, `${one.title} (${one.scope})`]), table.measure.name, again((value) => { state.measure = value; state.who = null; })),
      select("phase", table.phases.map((one) => [one, one]), table.phase, again((value) => { state.phase = value; })),
    ];
    const who = everybody();
    if (who.size > 1 && keysThatVary().length > 1) {
      if (!who.has(state.who)) state.who = [...who.keys()][0];
      parts.push(select("map of", [...who.entries()], state.who, (value) => { state.who = value; drawTable(); }));
    } else {
      state.who = [...who.keys()][0] ?? null;
    }
    const keys = keysThatVary();
    if (keys.length > 1) {
      if (!keys.includes(state.rows)) [state.rows, state.columns] = keys;
      const options = keys.map((key) => [key, key]);
      parts.push(select("rows", options, state.rows, (value) => { if (value === state.columns) state.columns = state.rows; state.rows = value; drawChoice(); drawTable(); }));
      parts.push(select("columns", options, state.columns, (value) => { if (value === state.rows) state.rows = state.columns; state.columns = value; drawChoice(); drawTable(); }));
    }
    if (table.conditions.length > 8) {
      const filter = make("input", { type: "search", placeholder: "filter conditions", "aria-label": "filter conditions", value: state.filter });
      filter.addEventListener("input", () => { state.filter = filter.value; drawTable(); });
      parts.push(filter);
    }
    at("choose").replaceChildren(...parts);
    if (focused) at("choose").querySelector(`[aria-label="${CSS.escape(focused)}"]`)?.focus();
  };

  const keysThatVary = () => state.table.keys.filter((key) => new Set(state.table.conditions.map((one) => one.values[key])).size > 1);

  const kept = () => {
    const words = state.filter.toLowerCase().split(/\s+/).filter(Boolean);
    return state.table.rows.filter((row) => words.every((word) => state.table.conditions[row.condition].label.toLowerCase().includes(word)));
  };

  const drawTable = () => {
    drawMap();
    const { table } = state;
    const who = everybody();
    const unit = table.measure.unit ? ` (${table.measure.unit})` : "";
    const head = make("tr", {}, make("th", { scope: "col" }, "condition"), ...[...who.values()].map((label) => make("th", { scope: "col", class: "number" }, label)), make("th", { scope: "col", class: "number" }, "runs"), make("th", {}, ""));
    const rows = kept();
    const body = make("tbody");
    rows.slice(0, MOST_ROWS).forEach((row) => {
      const label = table.conditions[row.condition].label || "the only condition";
      const button = make("button", { type: "button", class: "plain" }, label);
      button.addEventListener("click", () => choose(row.condition, false));
      const add = make("button", { type: "button", title: "lay it over what is chosen", "aria-label": `lay ${label} over what is chosen` }, "+");
      add.addEventListener("click", () => choose(row.condition, true));
      const runs = make("button", { type: "button", class: "plain", "aria-label": `single runs of ${label}` }, row.n < row.planned ? `${row.n} of ${row.planned}` : String(row.n));
      runs.addEventListener("click", () => singly(row.condition).catch(told));
      const cells = [...who.keys()].map((name) => {
        const cell = row.cells.find((one) => one.name === name);
        if (!cell) return make("td", { class: "number" }, "–");
        return make("td", { class: "number" }, withInterval(cell));
      });
      const chosen = state.chosen.some((one) => one.startsWith(`${state.plan}:${row.condition}`));
      body.append(make("tr", { class: chosen ? "chosen" : false, "data-condition": row.condition }, make("td", {}, button), ...cells, make("td", { class: "number" }, runs), make("td", {}, add)));
    });
    const caption = make("caption", { class: "quiet" }, `${table.measure.title}${unit}, mean over runs ± half of the 95 % interval`);
    at("table").replaceChildren(make("table", {}, caption, make("thead", {}, head), body));
    if (rows.length > MOST_ROWS) at("table").append(make("p", { class: "quiet" }, `${rows.length - MOST_ROWS} more conditions: filter them`));
  };

  // A map over two keys; other keys that vary are averaged over, which is said.
  const drawMap = () => {
    const { table } = state;
    const keys = keysThatVary();
    if (keys.length < 2 || !state.who) { at("map").replaceChildren(); return; }
    const names = (key) => [...new Set(table.conditions.map((one) => one.values[key]))];
    const [down, across] = [names(state.rows), names(state.columns)];
    if (down.length * across.length > 4000) { at("map").replaceChildren(make("p", { class: "quiet" }, "The map would have more than 4000 cells.")); return; }
    const cells = new Map();
    kept().forEach((row) => {
      const { values } = table.conditions[row.condition];
      const cell = row.cells.find((one) => one.name === state.who);
      if (!cell || cell.mean === null) return;
      const place = `${values[state.rows]}\n${values[state.columns]}`;
      if (!cells.has(place)) cells.set(place, []);
      cells.get(place).push([cell.mean, row.condition]);
    });
    const means = new Map([...cells].map(([place, every]) => [place, every.reduce((sum, [value]) => sum + value, 0) / every.length]));
    const [low, high] = [Math.min(...means.values()), Math.max(...means.values())];
    const head = make("tr", {}, make("th", {}, ""), ...across.map((name) => make("th", { scope: "col" }, name)));
    const rows = down.map((name) => make("tr", {}, make("th", { scope: "row" }, name), ...across.map((other) => {
      const place = `${name}\n${other}`;
      if (!means.has(place)) return make("td", {}, "");
      const share = high > low ? (means.get(place) - low) / (high - low) : 0.5;
      const button = make("button", { type: "button", class: "plain" }, plain(means.get(place)));
      button.addEventListener("click", (event) => choose(cells.get(place)[0][1], event.shiftKey));
      const cell = make("td", { class: "cell" }, button);
      cell.style.background = `color-mix(in oklab, var(--accent) ${Math.round(8 + 72 * share)}%, var(--paper))`;
      if (share > 0.75) cell.classList.add("strong");
      return cell;
    })));
    const others = keys.filter((key) => key !== state.rows && key !== state.columns);
    const note = others.length ? ` Mean over ${others.join(", ")}.` : "";
    at("map").replaceChildren(jostle.tellScrolling(make("div", { class: "wide" }, make("table", { class: "map" }, make("caption", { class: "quiet" }, `${table.measure.title} of ${everybody().get(state.who)}: ${state.rows} down, ${state.columns} across.${note} Shift and a click lays a cell over what is chosen.`), make("thead", {}, head), make("tbody", {}, ...rows)))));
  };

  const choose = (condition, over, seed) => {
    const name = [state.plan, condition, ...(seed === undefined ? [] : [seed])].join(":");
    state.chosen = over ? [...state.chosen.filter((one) => one !== name), name] : [name];
    drawTable();
    drawCharts().catch(told);
  };

  const drawCharts = async () => {
    const asked = state.chosen.join();
    const found = await ask("charts", state.chosen.map((one) => ["of", one]));
    if (asked !== state.chosen.join()) return;
    const values = await jostle.unpack(found.values);
    const charts = jostle.mount(at("charts"), found.data, values);
    charts.state.others = state.chosen.slice(1).map((_, index) => index + 1);
    charts.redraw();
    const parts = new DOMParser().parseFromString(found.drawings[0], "text/html");
    at("network").replaceChildren(document.importNode(parts.querySelector("svg"), true));
    at("notes").textContent = found.notes.join(" ");
    const labels = found.data.conditions.map((one) => one.label).join("; ");
    at("chosen").textContent = state.chosen.length > 1 ? `${labels}.` : `${labels}. With + another condition is laid over it.`;
    at("charts").dataset.ready = asked;
  };

  const singly = async (condition) => {
    const runs = await ask("runs", [["plan", state.plan], ["condition", condition]]);
    const row = at("table").querySelector(`tr[data-condition="${condition}"]`);
    const after = row.nextElementSibling;
    if (after?.classList.contains("singly")) { after.remove(); return; }
    const list = make("td", { colspan: row.cells.length });
    runs.filter((run) => run.there).forEach((run) => {
      const button = make("button", { type: "button", title: run.run }, `seed ${run.seed}`);
      button.addEventListener("click", () => choose(condition, state.chosen.every((one) => one.split(":").length === 3), run.seed));
      list.append(button, " ");
    });
    row.after(make("tr", { class: "singly" }, list));
  };

  const look = async () => {
    const before = JSON.stringify(state.plans);
    state.plans = await ask("plans");
    if (JSON.stringify(state.plans) === before) return;
    drawPlans();
    const mine = state.plans.find((plan) => plan.name === state.plan);
    if (state.plan === null && state.plans.length) {
      const wanted = location.hash.slice(1);
      open((state.plans.find((plan) => plan.name === wanted) ?? state.plans[0]).name);
    } else if (mine && state.table && mine.done !== state.table.done) {
      await fill();
      if (!state.chosen.length && state.table.rows.length) choose(state.table.rows[0].condition, false);
    }
  };
  const again = () => look().catch(told).finally(() => setTimeout(again, EVERY_MS));
  at("search").addEventListener("input", drawPlans);
  document.querySelectorAll(".wide").forEach(jostle.tellScrolling);
  again();
})();
