"use strict";
(() => {
  const json = (id) => JSON.parse(document.getElementById(id).textContent);
  const strings = json("strings");

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
    document.documentElement.dataset.ready = "yes";
  });

  // Whole run or the window judged; log or linear.
  const ranges = json("ranges");
  const press = (button) => {
    for (const other of button.parentElement.children) {
      other.setAttribute("aria-pressed", String(other === button));
    }
  };
  const show = (name, [start, end]) => {
    const range = Bokeh.documents[0].get_model_by_name(name);
    if (range) range.setv({ start, end, reset_start: start, reset_end: end });
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const section = button.closest("section");
    if (button.dataset.scale) {
      press(button);
      section.dataset.scale = button.dataset.scale;
    } else if (button.dataset.time) {
      press(button);
      for (const [name, spans] of Object.entries(ranges[section.id])) {
        show(name, spans[button.dataset.time]);
      }
    } else if (button.classList.contains("copy")) {
      copy(button);
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
    button.textContent = done ? strings.copied : strings.copy_failed;
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
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([blob], { type: button.dataset.mime }));
    link.download = button.dataset.file;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10000);
  };
  window.ssdlab = { tsv, raw };
})();
