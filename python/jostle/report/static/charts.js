// Interactive charts of a page: one panel per measure over a common time axis, from the block of data
// beside this script. `mount(root, data, values)` draws them; a report does so for what it holds,
// the viewer for what it fetched.
"use strict";
const jostle = (() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const DASHES = [[], [6, 3], [2, 3], [8, 3, 2, 3]];
  const COLOURS = 7;
  const MOST_WIDTH = 1400;
  // Largest share of a table's place for the columns that stay.
  const MOST_FIXED = 0.6;
  const make = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value !== false && value !== null) element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children);
    return element;
  };

  // The first columns, which name a row, stay while a wide table scrolls, as far as they leave room.
  const fixColumns = (wide) => {
    const scrolls = wide.scrollWidth > wide.clientWidth;
    for (const table of wide.querySelectorAll("table")) {
      const heads = [...(table.tHead?.rows[0].cells ?? [])];
      let fixed = 0;
      while (scrolls && fixed < heads.length && (fixed === 0 || getComputedStyle(heads[fixed]).textAlign === "left")
        && heads.slice(0, fixed + 1).reduce((sum, head) => sum + head.offsetWidth, 0) <= MOST_FIXED * wide.clientWidth) fixed += 1;
      for (const row of table.rows) {
        let left = 0;
        [...row.cells].forEach((cell, at) => {
          const stays = at < fixed && cell.colSpan === 1;
          cell.classList.toggle("fixed", stays);
          cell.style.left = stays ? `${left}px` : "";
          left += heads[at]?.offsetWidth ?? 0;
        });
      }
    }
  };

  // A box that is wider than its place says so by a shade at that side, also when what is in it changes.
  const tellScrolling = (wide) => {
    const told = () => {
      wide.classList.toggle("more-left", wide.scrollLeft > 2);
      wide.classList.toggle("more-right", wide.scrollLeft + wide.clientWidth < wide.scrollWidth - 2);
      // One that scrolls has to be reached by the keyboard.
      if (wide.scrollWidth > wide.clientWidth) wide.tabIndex = 0; else wide.removeAttribute("tabindex");
    };
    const laidOut = () => {
      fixColumns(wide);
      told();
    };
    wide.addEventListener("scroll", told, { passive: true });
    new ResizeObserver(laidOut).observe(wide);
    new MutationObserver(laidOut).observe(wide, { childList: true });
    return wide;
  };

  // Base64 of gzip of 16-bit steps.
  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const buffer = await new Response(stream).arrayBuffer();
    const view = new DataView(buffer);
    const values = new Uint16Array(buffer.byteLength / 2);
    for (let at = 0; at < values.length; at++) values[at] = view.getUint16(2 * at, true);
    return values;
  };

  const NONE = 65535;
  const rowOf = (trace, bins, row, values) => {
    const out = new Array(bins);
    for (let at = 0, from = trace.at + row * bins; at < bins; at++) {
      const step = values[from + at];
      out[at] = step === NONE ? null : trace.low + step * trace.step;
    }
    return out;
  };

  const timesOf = (condition) =>
    Array.from({ length: condition.bins }, (_, at) => condition.first_s + at * condition.step_s);

  const number = (value) => {
    if (value === null || value === undefined) return "–";
    const size = Math.abs(value);
    if (size >= 1e6) return (value / 1e6).toPrecision(3) + " M";
    return String(Number(size >= 100 ? value.toFixed(0) : size >= 1 ? value.toPrecision(3) : value.toFixed(3)));
  };
  // Links take their colours from the other end, so that they are not taken for flows.
  const colourOf = (scope, at) => `--line-${scope === "link" ? COLOURS - 1 - (at % COLOURS) : at % COLOURS}`;

  // A controller keeps its colour on the whole page. The second flow of a controller in a condition has
  // another colour, which it keeps as well. Two flows of a condition share no colour while the palette has
  // another one. `page_colours.py` does the same for pictures.
  const known = new Map();
  const placesOf = (flows) => {
    const counts = new Map();
    const keys = flows.map((flow) => {
      const rank = counts.get(flow.controller) ?? 0;
      counts.set(flow.controller, rank + 1);
      return `${rank} ${flow.controller}`;
    });
    const found = new Map();
    const taken = (place) => [...found.values()].includes(place);
    keys.forEach((key) => { if (known.has(key) && !taken(known.get(key))) found.set(key, known.get(key)); });
    keys.filter((key) => !found.has(key)).forEach((key) => {
      const free = Array.from({ length: COLOURS }, (_, place) => place).filter((place) => !taken(place));
      const fresh = free.filter((place) => ![...known.values()].includes(place));
      found.set(key, [...fresh, ...free, found.size][0]);
      if (!known.has(key)) known.set(key, found.get(key));
    });
    return keys.map((key) => found.get(key));
  };

  // Who has lines in panels of a scope, over all conditions that are shown. The dash distinguishes
  // conditions.
  const entriesOf = (scope, conditions) =>
    conditions.flatMap((condition, group) => condition[scope].map((who, at) => {
      const place = scope === "flow" ? condition.places[at] : at;
      return {
        id: `${group} ${scope} ${who.name}`,
        label: who.label + (group > 0 ? ` — ${condition.label}` : ""),
        colour: colourOf(scope, place),
        dash: (Math.floor(place / COLOURS) + group) % DASHES.length,
        group,
        at,
      };
    }));

  // Lines of one panel, in the order of its entries.
  const linesOf = (panel, conditions, values) =>
    entriesOf(panel.scope, conditions).map((entry) => {
      const condition = conditions[entry.group];
      const trace = condition.traces[panel.name][entry.at];
      const rows = Array.from({ length: trace.rows }, (_, row) => rowOf(trace, condition.bins, row, values));
      return {
        ...entry,
        mean: rows[0],
        range: trace.range === true,
        low: rows.length > 1 ? rows[1] : null,
        high: rows.length > 1 ? rows[2] : null,
        runs: rows.slice(3),
      };
    });

  // Conditions may have bins of different lengths: all are drawn on the times of any.
  const joined = (every) => [...new Set(every.flat())].sort((a, b) => a - b);
  const placed = (row, times, onto) => {
    const at = new Map(times.map((time, index) => [time, row[index]]));
    return onto.map((time) => (at.has(time) ? at.get(time) : undefined));
  };

  const mount = (root, data, values) => {
    const state = { condition: 0, others: [], runs: false, hidden: new Set(), panels: new Set(), range: null };
    data.conditions.forEach((condition) => { condition.places = placesOf(condition.flow); });
    data.panels.filter((panel) => panel.shown).forEach((panel) => state.panels.add(panel.name));
    let plots = [];
    const toolbar = make("div", { class: "toolbar", role: "toolbar", "aria-label": "What the charts show" });
    const legend = make("div", { class: "legend-row", role: "group", "aria-label": "Flows and links" });
    const stage = make("div", { class: "panels", tabindex: "0", role: "group", "aria-label": "Charts over time. Arrow keys move the time, plus and minus zoom, 0 shows everything, brackets change the condition." });
    root.replaceChildren(toolbar, legend, stage);

    const condition = () => data.conditions[state.condition];
    const shownConditions = () => [state.condition, ...state.others].map((at) => data.conditions[at]);

    const select = (label, options, chosen, onChange) => {
      const box = make("select", { "aria-label": label });
      options.forEach(([value, text]) => box.append(make("option", { value, selected: value === chosen }, text)));
      box.addEventListener("change", () => onChange(Number(box.value)));
      return make("label", {}, `${label} `, box);
    };

    const menu = (label, entries, onChange) => {
      const list = make("div", {});
      entries.forEach(([text, value, checked, title]) => {
        const box = make("input", { type: "checkbox", checked });
        box.addEventListener("change", () => onChange(value, box.checked));
        list.append(make("label", { title: title ?? null }, box, ` ${text}`));
      });
      return make("details", { class: "menu" }, make("summary", {}, label), list);
    };

    const drawToolbar = () => {
      const parts = [];
      if (data.conditions.length > 1) {
        data.keys.forEach((key, at) => {
          const names = [...new Set(data.conditions.map((one) => one.values[at]))];
          if (names.length < 2) return;
          parts.push(select(key, names.map((name, index) => [index, name]), names.indexOf(condition().values[at]), (index) => {
            const wanted = condition().values.map((value, other) => (other === at ? names[index] : value));
            const agree = (one) => one.values.filter((value, other) => value === wanted[other]).length;
            const fitting = data.conditions.map((one, position) => [one.values[at] === names[index] ? agree(one) : -1, position]);
            state.condition = fitting.reduce((best, next) => (next[0] > best[0] ? next : best))[1];
            redraw();
          }));
        });
        const boxes = data.conditions.map((one, at) => [one.label, at, state.others.includes(at)]);
        parts.push(menu("beside", boxes.filter(([, at]) => at !== state.condition), (at, checked) => {
          state.others = checked ? [...state.others, at] : state.others.filter((other) => other !== at);
          drawLegend();
          drawPanels();
        }));
      }
      if (data.conditions.some((one) => Object.values(one.traces).some((every) => every.some((trace) => trace.rows > 3)))) {
        parts.push(select("draw", [[0, "mean and 95 % interval"], [1, "every run"]], state.runs ? 1 : 0, (at) => { state.runs = at === 1; redraw(); }));
      }
      const measures = data.panels.map((panel) => [panel.title, panel.name, state.panels.has(panel.name), panel.definition]);
      parts.push(menu("measures", measures, (name, checked) => {
        if (checked) state.panels.add(name); else state.panels.delete(name);
        drawLegend();
        drawPanels();
      }));
      const whole = make("button", { type: "button", class: "reset" }, "show everything");
      whole.addEventListener("click", () => zoom(null));
      parts.push(whole);
      toolbar.replaceChildren(...parts);
    };

    const drawLegend = () => {
      const entries = ["flow", "link"].flatMap((scope) =>
        (data.panels.some((one) => one.scope === scope && state.panels.has(one.name)) ? entriesOf(scope, shownConditions()).map((entry) => ({ ...entry, scope })) : []));
      legend.replaceChildren(...entries.map((entry) => {
        const button = make("button", { type: "button", "aria-pressed": String(!state.hidden.has(entry.id)) });
        const mark = make("span", { class: `mark dash-${entry.dash}` });
        mark.style.borderColor = `var(${entry.colour})`;
        button.append(mark, entry.scope === "link" ? `link ${entry.label}` : entry.label);
        button.addEventListener("click", (event) => {
          const others = entries.map((other) => other.id).filter((other) => other !== entry.id);
          if (event.shiftKey) {
            // Alone, or all again if it was alone.
            const alone = others.every((other) => state.hidden.has(other));
            others.forEach((other) => (alone ? state.hidden.delete(other) : state.hidden.add(other)));
            state.hidden.delete(entry.id);
          } else if (!state.hidden.delete(entry.id)) {
            state.hidden.add(entry.id);
          }
          drawLegend();
          drawPanels();
        });
        return button;
      }));
      if (condition().more > 0) legend.append(make("span", { class: "quiet" }, `and ${condition().more} flows between these`));
    };

    const zoom = (range) => {
      state.range = range;
      const [from, to] = range ?? [0, Math.max(...shownConditions().map((one) => one.end_s))];
      plots.forEach((plot) => plot.setScale("x", { min: from, max: to }));
    };

    const shadePhases = (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      condition().phases.forEach((phase) => {
        const from = plot.valToPos(phase.from, "x", true);
        const to = plot.valToPos(phase.to, "x", true);
        ctx.fillStyle = css("--phase");
        ctx.fillRect(from, bbox.top, to - from, bbox.height);
        if (plot === plots[0] || plots.length === 0) {
          ctx.fillStyle = css("--quiet");
          ctx.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
          ctx.fillText(phase.name, Math.max(from, bbox.left) + 4 * devicePixelRatio, bbox.top + 12 * devicePixelRatio);
        }
      });
      ctx.restore();
    };

    const drawPanels = () => {
      plots.forEach((plot) => plot.destroy());
      plots = [];
      const shown = data.panels.filter((panel) => state.panels.has(panel.name) && shownConditions().some((one) => one[panel.scope].length));
      stage.replaceChildren();
      shown.forEach((panel, at) => plots.push(drawPanel(panel, at === shown.length - 1)));
      zoom(state.range);
    };

    const drawPanel = (panel, last) => {
      const conditions = shownConditions();
      const own = conditions.map(timesOf);
      const times = own.length > 1 ? joined(own) : own[0];
      const columns = [times];
      const series = [{}];
      const bands = [];
      const read = [];
      let [lowest, highest] = [0, 0];
      linesOf(panel, conditions, values).filter((line) => !state.hidden.has(line.id)).forEach((line) => {
        const stroke = () => css(line.colour);
        const dash = DASHES[line.dash];
        const push = (row, options) => { columns.push(own.length > 1 ? placed(row, own[line.group], times) : row); series.push({ stroke, spanGaps: false, points: { show: false }, ...options }); };
        const drawn = state.runs && line.runs.length ? line.runs : line.range ? [line.mean, line.low, line.high] : [line.mean];
        drawn.flat().forEach((value) => { if (value !== null) { lowest = Math.min(lowest, value); highest = Math.max(highest, value); } });
        if (state.runs && line.runs.length) {
          line.runs.forEach((row) => push(row, { width: 0.8, alpha: 0.55, dash }));
          return;
        }
        read.push([line, columns.length]);
        const single = line.mean.filter((value) => value !== null).length === 1;
        push(line.mean, { width: 1.6, dash, points: { show: single, size: 6 } });
        if (line.low) {
          push(line.high, { stroke: "transparent", width: 0 });
          push(line.low, { stroke: "transparent", width: 0 });
          bands.push({ series: [columns.length - 2, columns.length - 1], fill: () => css(line.colour) + "2e" });
        }
      });
      const readout = make("span", { class: "readout", "aria-live": "off" });
      const heading = make("h3", { title: panel.definition }, panel.unit ? `${panel.title} (${panel.unit})` : panel.title, readout);
      const box = make("div", { class: "panel", "data-panel": panel.name }, heading);
      stage.append(box);
      const axis = { stroke: () => css("--quiet"), grid: { stroke: () => css("--rule"), width: 1 }, ticks: { stroke: () => css("--rule"), width: 1 }, font: "11px system-ui, sans-serif" };
      const plot = new uPlot({
        width: Math.min(stage.clientWidth, MOST_WIDTH),
        height: last ? 176 : 150,
        legend: { show: false },
        cursor: { sync: { key: root.id, setSeries: false }, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
        scales: {
          x: { time: false },
          // The interval of two runs may be a hundred times as wide as what was measured: such a band
          // leaves the panel. A band from the smallest to the largest value is shown completely.
          y: { range: (_, low, high) => {
            if (low === null) return [0, 1];
            const room = 0.6 * (highest - lowest);
            const top = Math.min(Math.max(high, highest), highest + room);
            return [lowest < 0 ? Math.max(Math.min(low, lowest), lowest - room) : 0, top > 0 ? top * 1.06 : 1];
          } },
        },
        axes: [
          { ...axis, size: last ? 42 : 8, label: last ? "time (s)" : undefined, labelSize: 16, labelFont: "11px system-ui, sans-serif", values: last ? undefined : (_, splits) => splits.map(() => "") },
          { ...axis, size: 56, values: (_, splits) => splits.map(number) },
        ],
        series,
        bands,
        hooks: {
          drawClear: [shadePhases],
          setSelect: [(one) => {
            if (one.select.width < 4) return;
            const range = [one.posToVal(one.select.left, "x"), one.posToVal(one.select.left + one.select.width, "x")];
            one.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
            zoom(range);
          }],
          setCursor: [(one) => {
            const at = one.cursor.idx;
            readout.textContent = at === null || at === undefined ? "" : [`${number(times[at])} s`, ...read.slice(0, 6).map(([line, column]) => `${line.label} ${number(columns[column][at])}`)].join(" · ");
          }],
        },
      }, columns, box);
      plot.over.addEventListener("dblclick", (event) => { event.stopImmediatePropagation(); zoom(null); }, true);
      return plot;
    };

    const redraw = () => {
      state.others = state.others.filter((at) => at !== state.condition);
      drawToolbar();
      drawLegend();
      drawPanels();
      root.dispatchEvent(new CustomEvent("condition", { detail: state.condition, bubbles: true }));
    };

    const show = (position) => {
      state.condition = (position + data.conditions.length) % data.conditions.length;
      redraw();
    };

    stage.addEventListener("keydown", (event) => {
      const end = condition().end_s;
      const [from, to] = state.range ?? [0, end];
      const span = to - from;
      const within = (low, high) => zoom(high - low >= end ? null : [Math.max(0, low), Math.min(end, high)]);
      const keys = {
        "0": () => zoom(null), Escape: () => zoom(null),
        "+": () => within(from + span / 4, to - span / 4), "=": () => within(from + span / 4, to - span / 4),
        "-": () => within(from - span / 2, to + span / 2),
        ArrowLeft: () => within(Math.max(0, from - span / 8), Math.max(span, to - span / 8)),
        ArrowRight: () => within(Math.min(end - span, from + span / 8), Math.min(end, to + span / 8)),
        "[": () => show(state.condition - 1), "]": () => show(state.condition + 1),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      keys[event.key]();
    });

    new ResizeObserver(() => plots.forEach((plot) => {
      const width = Math.min(stage.clientWidth, MOST_WIDTH);
      if (width > 0 && Math.abs(width - plot.width) > 1) plot.setSize({ width, height: plot.height });
    })).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots.forEach((plot) => plot.redraw(false, true)));
    redraw();
    return { show, redraw, state };
  };

  return { mount, unpack, make, tellScrolling };
})();
