"use strict";
(() => {
  const json = (id) => JSON.parse(document.getElementById(id).textContent);

  // Charts. On a touch screen a drag scrolls the page, so no tool starts active there.
  const roots = json("roots");
  const drawn = Bokeh.embed.embed_items(
    { page: json("charts") },
    [{ docid: "page", roots: roots, root_ids: Object.keys(roots), use_for_title: false }],
  );
  drawn.then(() => {
    if (matchMedia("(pointer: coarse)").matches) {
      for (const root of Bokeh.documents[0].roots()) {
        for (const tool of root.toolbar.tools) {
          if (tool.type.endsWith("ZoomTool") || tool.type === "PanTool") tool.active = false;
        }
      }
    }
    for (const axis of models()) if (axis.tags?.includes("log")) followZoom(axis);
    for (const source of models()) if (source.type === "ColumnDataSource") followTaps(source);
    for (const axis of models()) if (axis.tags?.includes("names")) turnNames(axis);
    for (const renderer of models()) if (renderer.tags?.includes("field")) followWidth(renderer);
    themed();
    document.documentElement.dataset.ready = "yes";
  });
  const models = () => [...Bokeh.documents[0]._all_models.values()];

  // Log axes keep some ticks however far they are zoomed.
  const NICE = [1, 2, 5, 10];
  const ticksOf = (low, high) => {
    const decades = Math.log10(high / low);
    const found = [];
    if (decades < 0.8) {
      const rough = (high - low) / 5;
      const power = 10 ** Math.floor(Math.log10(rough));
      const step = power * NICE.find((n) => n * power >= rough);
      for (let at = Math.ceil(low / step); at * step <= high; at += 1) found.push(at * step);
      return found;
    }
    const digits = decades <= 2 ? [1, 2, 5] : decades <= 3 ? [1, 3] : [1];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
      for (const digit of digits) found.push(digit * 10 ** power);
    }
    return found;
  };
  const POWERS = [[1e9, "G"], [1e6, "M"], [1e3, "k"], [0, ""]];
  const numberText = (value) => {
    const [size, letter] = POWERS.find(([least]) => value >= least);
    return `${Number((value / (size || 1)).toPrecision(4))}${letter}`;
  };
  const followZoom = (axis) => {
    const plot = Bokeh.documents[0].roots().find((root) =>
      [...root.below, ...root.left].includes(axis));
    if (!plot) return;
    const range = plot.below.includes(axis) ? plot.x_range : plot.y_range;
    const update = () => {
      const [low, high] = [Math.min(range.start, range.end), Math.max(range.start, range.end)];
      if (!(low > 0 && high > low)) return;
      const ticks = ticksOf(low, high);
      axis.major_label_overrides = new Map(ticks.map((tick) => [tick, numberText(tick)]));
      axis.ticker.ticks = ticks;
    };
    range.properties.start.change.connect(update);
    range.properties.end.change.connect(update);
    update();
  };

  // Names below an axis stand upright where they would overlap, and some are left out where even
  // then there is no room for each; the chart is higher by what that takes.
  const LINE_PX = 14;
  const turnNames = (axis) => {
    const plot = Bokeh.documents[0].roots().find((root) => root.below.includes(axis));
    if (!plot) return;
    const pen = document.createElement("canvas").getContext("2d");
    pen.font = `${axis.major_label_text_font_size.value} ${axis.major_label_text_font.value}`;
    const lines = [...axis.major_label_overrides.values()].map((name) => name.split("\n"));
    const widest = Math.max(0, ...lines.flat().map((line) => pen.measureText(line).width));
    const most = Math.max(1, ...lines.map((one) => one.filter((line) => line).length));
    const deepest = Math.max(1, ...lines.map((one) => one.length));
    const [height, ticks] = [plot.height, [...axis.ticker.ticks]];
    const update = () => {
      const each = plot.inner_width / (Math.abs(plot.x_range.end - plot.x_range.start) || 1);
      // Those that are set lower in turn have the room of two.
      const overlap = widest + 8 > each * (deepest > most ? 2 : 1);
      const skip = overlap ? Math.ceil(LINE_PX * most / each) : 1;
      axis.major_label_orientation = overlap ? Math.PI / 2 : "horizontal";
      axis.ticker.ticks = ticks.filter((_, place) => place % skip === 0);
      plot.height = height + (overlap ? Math.max(0, Math.ceil(widest) - LINE_PX * deepest) : 0);
    };
    plot.properties.inner_width.change.connect(update);
    update();
  };

  // Numbers of a heat map are as large as its fields leave room for.
  const followWidth = (renderer) => {
    const plot = Bokeh.documents[0].roots().find((root) => root.renderers.includes(renderer));
    if (!plot) return;
    const longest = Math.max(...[...renderer.data_source.data.text].map((text) => text.length), 1);
    const update = () => {
      const fields = Math.abs(plot.x_range.end - plot.x_range.start) || 1;
      const room = 0.92 * plot.inner_width / fields / (0.58 * longest);
      const size = `${Math.max(5, Math.min(11, Math.floor(2 * room) / 2))}px`;
      renderer.visible = room >= 5; // or they would lie upon each other; the pointer is told them
      const source = renderer.data_source;
      source.data = { ...source.data, size: Array(source.data.text.length).fill(size) };
    };
    plot.properties.inner_width.change.connect(update);
    plot.x_range.properties.start.change.connect(update);
    if (plot.inner_width) update();
  };

  // Charts of what is held at chosen values, from the data that the page carries.
  const choose = async (box) => {
    const wanted = [...box.querySelectorAll("select")].map((one) => one.value).join("\t");
    const blob = await raw(document.getElementById("answer"));
    const answer = JSON.parse(await blob.text());
    for (const figure of box.closest(".chapter").querySelectorAll("figure")) {
      const { section, figure: at } = figure.querySelector(".points").dataset;
      const element = figure.querySelector(".chart").id;
      const root = Bokeh.documents[0].roots().find((one) => roots[one.id] === element);
      answer.sections[section].figures[at].curves.forEach((curve, place) => {
        const drawn = root.renderers.find((one) => one.data_source.name === `curve-${place}`);
        if (!drawn || !curve.choice.length) return;
        const kept = (list) => list.filter((_, n) => curve.choice[n] === wanted);
        const data = { x: kept(curve.x), y: kept(curve.y) };
        if (curve.about.length) data.about = kept(curve.about);
        if (curve.keys.length) data.key = kept(curve.keys);
        drawn.data_source.data = data;
      });
    }
  };
  document.addEventListener("change", (event) => {
    const box = event.target.closest?.(".choices");
    if (box) choose(box);
  });

  // A point that is clicked leads to the row of what it shows; a row says how to repeat that.
  const tell = (row) => {
    for (const old of document.querySelectorAll("tr.told")) old.remove();
    for (const old of document.querySelectorAll("tr.led")) old.classList.remove("led");
    row.classList.add("led");
    const { repeat } = row.closest("table").dataset;
    if (!repeat) return;
    const told = row.ownerDocument.createElement("tr");
    told.className = "told";
    const cell = told.insertCell();
    cell.colSpan = row.cells.length;
    const line = document.createElement("pre");
    line.textContent = repeat.replace("KEY", row.id.slice("row-".length));
    cell.append(line);
    row.after(told);
  };
  const lead = (key) => {
    const row = document.getElementById(`row-${key}`);
    if (!row) return;
    const folded = row.closest("details");
    if (folded) folded.open = true;
    tell(row);
    row.scrollIntoView({ block: "center" });
  };
  const followTaps = (source) => {
    if (!source.get_column?.("key")) return;
    source.selected.properties.indices.change.connect(() => {
      const [at] = source.selected.indices;
      if (at !== undefined) lead(source.get_column("key")[at]);
    });
  };
  document.addEventListener("click", (event) => {
    const row = event.target.closest?.("tr[id^='row-']");
    if (row) tell(row);
  });

  // Charts follow the light or dark theme of the page; paper is light.
  const dark = json("dark");
  const night = matchMedia("(prefers-color-scheme: dark)");
  const COLOURS = [
    "line_color", "fill_color", "text_color", "axis_line_color", "major_tick_line_color",
    "major_label_text_color", "axis_label_text_color", "grid_line_color", "border_line_color",
  ];
  const own = new Map();
  const themed = (light = false) => {
    const change = night.matches && !light;
    for (const model of models()) {
      for (const name of COLOURS) {
        if (!(name in model.properties)) continue;
        const key = `${model.id} ${name}`;
        if (!own.has(key)) own.set(key, model[name]);
        const was = own.get(key);
        const colour = was?.value ?? was;
        if (typeof colour !== "string" || !(colour in dark)) continue;
        const now = change ? dark[colour] : colour;
        model[name] = typeof was === "string" ? now : { ...was, value: now };
      }
    }
    for (const mark of document.querySelectorAll("[style*='--c:']")) {
      mark.dataset.c ??= mark.style.getPropertyValue("--c").trim();
      mark.style.setProperty("--c", (change && dark[mark.dataset.c]) || mark.dataset.c);
    }
  };
  night.addEventListener("change", () => themed());

  // A chart as SVG: lines and text stay sharp at any size.
  const picture = (chart) => {
    const root = Bokeh.documents[0].roots().find((one) => roots[one.id] === chart.id);
    const view = Bokeh.index.get_by_id?.(root.id) ?? Bokeh.index[root.id];
    for (const renderer of view.computed_renderer_views) renderer.set_visuals?.();
    return view.export("svg").ctx.get_svg();
  };
  const inSvg = (name, attributes, text = "") => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.textContent = text;
    return element;
  };
  // With its title and legend, which the page has around it.
  const whole = (figure) => {
    const chapter = figure.closest(".chapter");
    const heads = [chapter?.querySelector("h3"), figure.querySelector("figcaption")];
    const titles = heads.filter(Boolean).map((one) => one.textContent.trim());
    const entries = [...(figure.querySelector(".legend") ?? chapter?.querySelector(".legend"))?.children ?? []];
    const chart = picture(figure.querySelector(".chart"));
    const [width, height] = [Number(chart.getAttribute("width")), Number(chart.getAttribute("height"))];
    const top = 12 + 18 * (titles.length + entries.length);
    const size = { width, height: top + height, viewBox: `0 0 ${width} ${top + height}` };
    const svg = inSvg("svg", { ...size, "font-family": "sans-serif" });
    const line = (n, x, most, text, style = {}) => {
      // As wide as it may become: of a bold letter, three fifths of its size and a little more.
      const fits = Math.min(most, (width - x) / (0.65 * text.length));
      svg.append(inSvg("text", { x, y: 20 + 18 * n, "font-size": fits, ...style }, text));
    };
    titles.forEach((title, n) => line(n, 8, 15 - 2 * n, title, { "font-weight": "bold" }));
    entries.forEach((entry, n) => {
      const [at, fill] = [titles.length + n, entry.querySelector("i")?.style.getPropertyValue("--c")];
      svg.append(inSvg("rect", { x: 8, y: 13 + 18 * at, width: 18, height: 6, fill: fill || "none" }));
      line(at, 32, 12, entry.textContent.trim());
    });
    chart.setAttribute("y", top);
    svg.append(chart);
    return { title: titles.join(" "), svg };
  };
  const text = (svg) => new XMLSerializer().serializeToString(svg);
  const saveChart = (figure) => {
    themed(true);
    const { title, svg } = whole(figure);
    themed();
    const file = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
    download(new Blob([text(svg)], { type: "image/svg+xml" }), `${file || "chart"}.svg`);
  };

  // Canvases do not fit themselves to paper; pictures of them do. Folded tables are unfolded.
  const folded = [];
  addEventListener("beforeprint", () => {
    themed(true);
    for (const chart of document.querySelectorAll(".chart")) {
      const image = document.createElement("img");
      image.className = "printed";
      image.alt = chart.getAttribute("aria-label") ?? "";
      image.src = `data:image/svg+xml,${encodeURIComponent(text(picture(chart)))}`;
      chart.append(image);
    }
    for (const one of document.querySelectorAll("details:not([open]):not(.points)")) {
      const rows = one.querySelectorAll(".tablebox tbody tr").length;
      one.classList.toggle("unprinted", rows > 100);  // nobody reads on for twenty pages
      if (!rows || rows > 100) continue;
      one.open = true;
      folded.push(one);
    }
    document.documentElement.classList.add("printing");
  });
  addEventListener("afterprint", () => {
    for (const picture of document.querySelectorAll("img.printed")) picture.remove();
    for (const one of folded.splice(0)) one.open = false;
    document.documentElement.classList.remove("printing");
    themed();
  });

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.classList.contains("copy")) {
      copy(button);
    } else if (button.classList.contains("svg")) {
      saveChart(button.closest("figure"));
    } else if (button.dataset.raw) {
      save(button);
    }
  });

  // Tables go to the clipboard as tab-separated plain values.
  const tsv = (table) =>
    [...table.rows]
      .map((row) => [...row.cells].map((c) => (c.dataset.v ?? c.textContent).trim()).join("\t"))
      .join("\n") + "\n";

  // The old way works at once, in every context; the new one may be missing or ask first.
  const copyPlainly = (text) => {
    const area = document.createElement("textarea");
    area.value = text;
    area.style.position = "fixed";
    area.style.opacity = "0";
    document.body.append(area);
    area.select();
    const done = document.execCommand("copy");
    area.remove();
    return done;
  };
  const copyAsking = async (text) => {
    try {
      await navigator.clipboard.writeText(text);
      return true;
    } catch {
      return false;
    }
  };
  const copy = async (button) => {
    const text = tsv(button.parentElement.querySelector("table"));
    const done = copyPlainly(text) || await copyAsking(text);
    const label = button.dataset.label ?? button.textContent;
    button.dataset.label = label;
    button.textContent = done ? "Copied" : "Not allowed here";
    setTimeout(() => { button.textContent = label; }, 1500);
  };

  // What is embedded, as a file.
  const raw = async (element) => {
    const value = JSON.parse(element.textContent);
    if (element.dataset.encoding !== "gzip+base64") return new Blob([value]);
    const bytes = Uint8Array.from(atob(value), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).blob();
  };
  const save = async (button) => {
    const blob = await raw(document.getElementById(button.dataset.raw));
    download(new Blob([blob], { type: button.dataset.mime }), button.dataset.file);
  };
  const download = (blob, file) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };

  // The points of a chart as a table, from the data that the page carries.
  const POINTS_MAX = 2000;
  const pointsOf = (chart) => {
    const rows = chart.curves.flatMap((curve) =>
      curve.x.map((x, at) => [
        curve.choice.length ? `${curve.name}, ${curve.choice[at].replaceAll("\t", ", ")}` : curve.name,
        chart.x_names[x] || x, chart.y_names[curve.y[at]] || curve.y[at],
        ...(curve.z.length ? [curve.z[at]] : []),
      ]));
    const head = ["series", chart.x_label || "x", chart.y_label || "y"];
    if (rows.some((row) => row.length > 3)) head.push("value");
    return [head, rows];
  };
  const fillPoints = async (details) => {
    const blob = await raw(document.getElementById("answer"));
    const answer = JSON.parse(await blob.text());
    const { section, figure } = details.dataset;
    const [head, rows] = pointsOf(answer.sections[section].figures[figure]);
    const table = document.createElement("table");
    const add = (parent, tag, cells) => {
      const line = parent.insertRow();
      for (const cell of cells) {
        const element = document.createElement(tag);
        element.textContent = cell ?? "";
        line.append(element);
      }
    };
    add(table.createTHead(), "th", head);
    const body = table.createTBody();
    for (const row of rows.slice(0, POINTS_MAX)) add(body, "td", row);
    const box = document.createElement("div");
    box.className = "scroll";
    box.append(table);
    details.append(box);
    if (rows.length > POINTS_MAX) {
      const note = document.createElement("p");
      note.className = "note";
      note.textContent = `${POINTS_MAX} of ${rows.length} points; all are in the JSON.`;
      details.append(note);
    }
  };
  for (const details of document.querySelectorAll(".points")) {
    details.addEventListener("toggle", () => fillPoints(details), { once: true });
  }
  window.ssdlab = { tsv, raw, lead, whole };
})();
