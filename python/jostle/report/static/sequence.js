// A time–sequence diagram: every packet a bar from its first to its last byte, ACKs and the receiver's
// window as steps. `jostle.sequence(root, data, columns)` draws one; both axes zoom.
"use strict";
(() => {
  const make = jostle.make;
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const HEIGHT = 420;
  const MOST_WIDTH = 1400;
  // Of one flow, what is drawn has a colour each; tcptrace's yellow window would vanish on white.
  const LOOKS = {
    "window": "--line-4", "acknowledged": "--line-2", "SACKed": "--line-3", "came twice (D-SACK)": "--line-3",
    "sent": "--line-6", "retransmitted": "--line-1", "retransmitted (timeout)": "--line-1", "retransmitted (probe)": "--line-5",
    "came twice": "--line-5", "out of order": "--quiet",
  };
  const COLOURS = 7;

  const unpack = async (text) => {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    const view = new DataView(await new Response(stream).arrayBuffer());
    return Float64Array.from({ length: view.byteLength / 8 }, (_, at) => view.getFloat64(8 * at, true));
  };

  // Tables of columns, as they lie one after the other.
  const tablesOf = (data, values) => {
    let at = 0;
    const take = (rows) => values.subarray(at, at += rows);
    return data.flows.map((flow) => {
      const table = (rows, ...names) => Object.fromEntries(names.map((name) => [name, take(rows)]));
      return {
        label: flow.label,
        whats: flow.whats,
        packets: table(flow.packets, "time", "start", "end", "what"),
        answers: table(flow.answers, "time", "acknowledged", "edge"),
        sacks: table(flow.sacks, "time", "start", "end", "twice"),
      };
    });
  };

  // First row at or after a time.
  const rowAt = (times, time) => {
    let [low, high] = [0, times.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  };

  const boundsOf = (flows) => {
    let [from, to, low, high] = [Infinity, -Infinity, Infinity, -Infinity];
    const see = (times, values) => times.forEach((time, at) => {
      from = Math.min(from, time);
      to = Math.max(to, time);
      low = Math.min(low, values[at]);
      high = Math.max(high, values[at]);
    });
    flows.forEach(({ packets, answers }) => {
      see(packets.time, packets.start);
      see(packets.time, packets.end);
      see(answers.time, answers.acknowledged);
    });
    if (from > to) [from, to, low, high] = [0, 1, 0, 1];
    const [wide, tall] = [Math.max(to - from, 1e-6), Math.max(high - low, 1)];
    return { x: [from - wide / 100, to + wide / 100], y: [low - tall / 30, high + tall / 20] };
  };

  const bytes = (value) => {
    const size = Math.abs(value);
    if (size >= 1e6) return `${Number((value / 1e6).toFixed(6))} MB`;
    return size >= 1e3 ? `${Number((value / 1e3).toFixed(3))} kB` : `${Math.round(value)} B`;
  };

  const partsOf = (flows) => {
    const found = new Set();
    flows.forEach(({ packets, answers, sacks, whats }) => {
      if (answers.edge.some((edge) => !Number.isNaN(edge))) found.add("window");
      if (answers.time.length) found.add("acknowledged");
      if (sacks.twice.includes(0)) found.add("SACKed");
      if (sacks.twice.includes(1)) found.add("came twice (D-SACK)");
      packets.what.forEach((what) => found.add(whats[what]));
    });
    return Object.keys(LOOKS).filter((what) => found.has(what));
  };

  const draw = (root, data, values) => {
    const flows = tablesOf(data, values);
    const alone = flows.length === 1;
    const bounds = boundsOf(flows);
    const parts = partsOf(flows);
    const hidden = new Set();
    const names = alone ? parts : flows.map((flow) => flow.label);
    const colourOf = (what, flow) => css(alone ? LOOKS[what] : `--line-${flow % COLOURS}`);

    const strokes = (plot, colour, width, trace) => {
      const { ctx } = plot;
      ctx.strokeStyle = colour;
      ctx.lineWidth = width * devicePixelRatio;
      ctx.beginPath();
      trace(ctx);
      ctx.stroke();
    };
    const steps = (plot, times, levels, range) => (ctx) => {
      let known = false;
      const last = Math.min(times.length, rowAt(times, range[1]) + 1);
      for (let at = Math.max(0, rowAt(times, range[0]) - 1); at < last; at++) {
        if (Number.isNaN(levels[at])) { known = false; continue; }
        const [x, y] = [plot.valToPos(times[at], "x", true), plot.valToPos(levels[at], "y", true)];
        if (known) ctx.lineTo(x, plot.valToPos(levels[at - 1], "y", true)); else ctx.moveTo(x, y);
        ctx.lineTo(x, y);
        known = true;
      }
    };
    const bars = (plot, table, range, wanted) => (ctx) => {
      for (let at = rowAt(table.time, range[0]); at < table.time.length && table.time[at] <= range[1]; at++) {
        if (!wanted(at)) continue;
        const x = Math.round(plot.valToPos(table.time[at], "x", true)) + 0.5;
        const [low, high] = [plot.valToPos(table.start[at], "y", true), plot.valToPos(table.end[at], "y", true)];
        ctx.moveTo(x, low);
        // What is shorter than a pixel would not be seen.
        ctx.lineTo(x, Math.min(high, low - devicePixelRatio));
      }
    };
    const drawFlow = (plot, flow, at, range) => {
      const shown = (what) => !hidden.has(alone ? what : flow.label);
      if (shown("window")) strokes(plot, colourOf("window", at), 1, steps(plot, flow.answers.time, flow.answers.edge, range));
      if (shown("acknowledged")) strokes(plot, colourOf("acknowledged", at), 1.2, steps(plot, flow.answers.time, flow.answers.acknowledged, range));
      [["SACKed", 0], ["came twice (D-SACK)", 1]].forEach(([what, twice]) => {
        if (shown(what)) strokes(plot, colourOf(what, at), 1.5 + 1.5 * twice, bars(plot, flow.sacks, range, (row) => flow.sacks.twice[row] === twice));
      });
      [...new Set(flow.whats)].forEach((what) => {
        const again = what !== "sent";
        if (shown(what)) strokes(plot, colourOf(what, at), again ? 3 : 1.5, bars(plot, flow.packets, range, (row) => flow.whats[flow.packets.what[row]] === what));
      });
    };
    const drawAll = (plot) => {
      const { ctx, bbox } = plot;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      const range = [plot.scales.x.min, plot.scales.x.max];
      flows.forEach((flow, at) => drawFlow(plot, flow, at, range));
      ctx.restore();
    };

    // The packet under the cursor, if one is within some pixels.
    const packetAt = (plot, time, byte) => {
      const [near, tall] = [plot.posToVal(6, "x") - plot.posToVal(0, "x"), plot.posToVal(0, "y") - plot.posToVal(6, "y")];
      let [best, least] = ["", Infinity];
      flows.forEach(({ packets, whats }) => {
        for (let at = rowAt(packets.time, time - near); at < packets.time.length && packets.time[at] <= time + near; at++) {
          const away = Math.abs(packets.time[at] - time);
          if (away < least && packets.start[at] - tall <= byte && byte <= packets.end[at] + tall) {
            least = away;
            best = `${whats[packets.what[at]]}: ${packets.end[at] - packets.start[at]} B from ${bytes(packets.start[at])} at ${packets.time[at].toFixed(6)} s`;
          }
        }
      });
      return best;
    };

    const legend = make("div", { class: "legend-row", role: "group", "aria-label": "What is drawn" });
    const readout = make("span", { class: "readout", "aria-live": "off" });
    const whole = make("button", { type: "button", class: "reset" }, "show everything");
    const title = alone ? flows[0].label : `Bytes of each flow over time${data.clock ? ` ${data.clock}` : ""}`;
    const heading = make("h3", {}, title, readout);
    const stage = make("div", { class: "panel", tabindex: "0", role: "group", "aria-label": "Time–sequence diagram. Arrow keys move it, plus and minus zoom, 0 shows everything." }, heading);
    root.replaceChildren(make("div", { class: "toolbar" }, whole), legend, stage);
    const axis = { stroke: () => css("--quiet"), grid: { stroke: () => css("--rule"), width: 1 }, ticks: { stroke: () => css("--rule"), width: 1 }, font: "11px system-ui, sans-serif" };
    const fixed = (_, low, high) => [low, high];
    const plot = new uPlot({
      width: Math.min(stage.clientWidth, MOST_WIDTH) || 800,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: true, y: true, setScale: false }, points: { show: false } },
      scales: { x: { time: false, range: fixed }, y: { range: fixed } },
      axes: [
        { ...axis, size: 42, label: "time (s)", labelSize: 16, labelFont: "11px system-ui, sans-serif" },
        { ...axis, size: 84, values: (_, splits) => splits.map(bytes) },
      ],
      // What is drawn is drawn below: two points that are none span the axes.
      series: [{}, { show: true, stroke: "transparent", points: { show: false } }],
      hooks: {
        draw: [drawAll],
        setSelect: [(one) => {
          const { left, top, width, height } = one.select;
          if (width < 4 && height < 4) return;
          const x = width < 4 ? [one.scales.x.min, one.scales.x.max] : [one.posToVal(left, "x"), one.posToVal(left + width, "x")];
          const y = height < 4 ? [one.scales.y.min, one.scales.y.max] : [one.posToVal(top + height, "y"), one.posToVal(top, "y")];
          one.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
          zoom(x, y);
        }],
        setCursor: [(one) => {
          const { left, top } = one.cursor;
          if (left < 0) { readout.textContent = ""; return; }
          const [time, byte] = [one.posToVal(left, "x"), one.posToVal(top, "y")];
          readout.textContent = packetAt(one, time, byte) || `${time.toFixed(4)} s · ${bytes(byte)}`;
        }],
      },
    }, [bounds.x, [null, null]], stage);
    const zoom = (x, y) => plot.batch(() => {
      plot.setScale("x", { min: x[0], max: x[1] });
      plot.setScale("y", { min: y[0], max: y[1] });
    });
    const everything = () => zoom(bounds.x, bounds.y);
    plot.over.addEventListener("dblclick", (event) => { event.stopImmediatePropagation(); everything(); }, true);
    whole.addEventListener("click", everything);
    stage.addEventListener("keydown", (event) => {
      const about = (factor) => (["x", "y"].map((name) => {
        const { min, max } = plot.scales[name];
        const [middle, half] = [(min + max) / 2, factor * (max - min) / 2];
        return [middle - half, middle + half];
      }));
      const moved = (x, y) => (["x", "y"].map((name, at) => {
        const { min, max } = plot.scales[name];
        const step = [x, y][at] * (max - min) / 8;
        return [min + step, max + step];
      }));
      const keys = {
        "0": () => [bounds.x, bounds.y], Escape: () => [bounds.x, bounds.y], "+": () => about(0.5), "=": () => about(0.5), "-": () => about(2),
        ArrowLeft: () => moved(-1, 0), ArrowRight: () => moved(1, 0), ArrowUp: () => moved(0, 1), ArrowDown: () => moved(0, -1),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
      event.preventDefault();
      zoom(...keys[event.key]());
    });
    names.forEach((name, at) => {
      const mark = make("span", { class: "mark" });
      mark.style.borderColor = `var(${alone ? LOOKS[name] : `--line-${at % COLOURS}`})`;
      const button = make("button", { type: "button", "aria-pressed": "true" }, mark, name);
      button.addEventListener("click", () => {
        if (!hidden.delete(name)) hidden.add(name);
        button.setAttribute("aria-pressed", String(!hidden.has(name)));
        plot.redraw(false, true);
      });
      legend.append(button);
    });
    new ResizeObserver(() => {
      const width = Math.min(stage.clientWidth, MOST_WIDTH);
      if (width > 0 && Math.abs(width - plot.width) > 1) plot.setSize({ width, height: HEIGHT });
    }).observe(stage);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plot.redraw(false, true));
    everything();
    return plot;
  };

  for (const block of document.querySelectorAll("script.sequence-data")) {
    const root = document.getElementById(block.dataset.root);
    const { data, values } = JSON.parse(block.textContent);
    new IntersectionObserver(async (entries, observer) => {
      if (!entries.some((entry) => entry.isIntersecting)) return;
      observer.disconnect();
      draw(root, data, await unpack(values));
      root.dataset.ready = "yes";
    }, { rootMargin: "400px" }).observe(root);
  }
})();
