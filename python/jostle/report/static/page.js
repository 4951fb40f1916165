// What every page does: tables sort by a click on a heading, say whether they go on to the side, and
// charts are drawn when they come into view.
"use strict";
const key = (cell) => {
  const text = cell.textContent.trim();
  const number = parseFloat(text.replace("−", "-"));
  return Number.isNaN(number) ? text : number;
};
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    head.tabIndex = 0;
    const sort = () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const rows = [...body.rows].sort((a, b) => {
        const [x, y] = [key(a.cells[at]), key(b.cells[at])];
        const order = typeof x === typeof y
          ? (typeof x === "number" ? x - y : x.localeCompare(y))
          : (typeof x === "number" ? -1 : 1);
        return up ? order : -order;
      });
      body.append(...rows);
    };
    head.addEventListener("click", sort);
    head.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort();
    });
  });
}
document.querySelectorAll(".wide").forEach(jostle.tellScrolling);
// Figures are base64 of gzip of SVG without the glyphs of their texts, which all figures share.
const unzip = (text) => {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
};
for (const figures of document.querySelectorAll("[data-glyphs]")) {
  const glyphs = unzip(figures.dataset.glyphs);
  for (const image of figures.querySelectorAll("img[data-svg]")) {
    Promise.all([unzip(image.dataset.svg), glyphs]).then(([svg, shared]) => {
      const whole = svg.replace("<defs>", `<defs>${shared}`);
      image.src = `data:image/svg+xml,${encodeURIComponent(whole)}`;
    });
  }
}
// A link into a folded part opens it.
const unfold = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target === null) return;
  const folded = [target.nextElementSibling, target.querySelector(":scope > details")];
  for (let outer = target; outer !== null; outer = outer.parentElement) folded.push(outer);
  folded.filter((one) => one?.tagName === "DETAILS").forEach((one) => { one.open = true; });
  target.scrollIntoView();
};
window.addEventListener("hashchange", unfold);
unfold();
for (const block of document.querySelectorAll("script.charts-data")) {
  const root = document.getElementById(block.dataset.root);
  const { data, values } = JSON.parse(block.textContent);
  const begin = async () => {
    const charts = jostle.mount(root, data, await jostle.unpack(values));
    root.addEventListener("condition", (event) => {
      for (const one of document.querySelectorAll(`[data-of="${root.id}"]`)) {
        one.hidden = !one.dataset.conditions.split(" ").includes(String(event.detail));
      }
    });
    charts.redraw();
    root.dataset.ready = "yes";
  };
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    begin();
  }, { rootMargin: "400px" }).observe(root);
}
for (const button of document.querySelectorAll("button.save")) {
  button.addEventListener("click", () => {
    const text = document.getElementById(button.dataset.text).textContent;
    const link = jostle.make("a", { download: button.dataset.name, href: URL.createObjectURL(new Blob([text])) });
    link.click();
    URL.revokeObjectURL(link.href);
  });
}
