"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colour = (name) => {  // a canvas knows no var(): one that refers to another is followed
    const value = css(name), refers = /^var\((--[\w-]+)\)$/.exec(value);
    return refers ? colour(refers[1]) : value;
  };
  let data, plots = [], zooms = {};

  // --- numbers -----------------------------------------------------------------------------------------------
  const short = (v) => {
    if (v == null) return "–";
    const a = Math.abs(v);
    if (a !== 0 && (a < 1e-3 || a >= 1e6)) return v.toExponential(1).replace("e+", "e");
    return String(+v.toPrecision(4));
  };
  const whole = (v) => (v == null ? "–" : Math.round(v).toLocaleString("en"));
  const seconds = (v) => {
    if (v == null) return "–";
    if (v === 0) return "0 s";
    if (v < 1e-3) return +(v * 1e6).toPrecision(3) + " µs";
    if (v < 1) return +(v * 1e3).toPrecision(3) + " ms";
    if (v < 120) return +v.toPrecision(3) + " s";
    return v < 7200 ? +(v / 60).toPrecision(3) + " min" : +(v / 3600).toPrecision(3) + " h";
  };
  const bytes = (v) => {
    if (v == null) return "–";
    for (const unit of ["bytes", "KB", "MB"]) {
      if (v < 1000) return +v.toPrecision(3) + " " + unit;
      v /= 1024;
    }
    return +v.toPrecision(3) + " GB";
  };

  // --- drawings with axes ------------------------------------------------------------------------------------
  const wholes = Array.from({ length: 30 }, (_, n) => [1, 2, 5][n % 3] * 10 ** Math.floor(n / 3));

  function frame(parent, heading, wide) {
    const box = document.createElement("div"), title = document.createElement("h3");
    box.className = wide ? "plot wide" : "plot";
    title.textContent = heading;
    box.append(title);
    parent.append(box);
    parent.closest("section").hidden = false;
    return box;
  }

  function marksOf(steps) {
    const last = Math.max(...steps);
    return data.marks.filter((mark) => mark.step <= last * 1.02 + 1);
  }

  function drawMarks(marks) {
    return (u) => {
      const { ctx, bbox } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.font = `${11 * ratio}px Inter, system-ui, sans-serif`;
      ctx.lineWidth = ratio;
      ctx.strokeStyle = ctx.fillStyle = colour("--accent");
      const end = u.data[0][u.data[0].length - 1];
      marks.forEach((mark, n) => {
        const step = Math.min(mark.step, end);
        if (step < u.scales.x.min || step > u.scales.x.max) return;
        const x = Math.round(u.valToPos(step, "x", true)), right = x > bbox.left + bbox.width * 0.6;
        ctx.setLineDash([4 * ratio, 3 * ratio]);
        ctx.beginPath();
        ctx.moveTo(x, bbox.top);
        ctx.lineTo(x, bbox.top + bbox.height);
        ctx.stroke();
        ctx.textAlign = right ? "right" : "left";
        ctx.fillText(mark.text, x + (right ? -5 : 5) * ratio, bbox.top + (11 + (n % 3) * 13) * ratio);
      });
      ctx.restore();
    };
  }

  /* lines: [{name, x, y, colour, fill, shown}], all drawn over the same x. */
  function plot(parent, heading, lines, { value = short, x = whole, sync = "", marks = [], stepped = false, wide = false, zero = false, hooks = {}, height = 190, y = {}, legend = true, most = 0, incrs }) {
    const box = frame(parent, heading, wide);
    const tables = lines.map((line) => [line.x, line.y]);
    const same = tables.every((table) => table[0] === tables[0][0]);
    const columns = same ? [tables[0][0], ...tables.map((table) => table[1])] : uPlot.join(tables);
    const values = lines.flatMap((line) => line.y).filter((v) => v != null);
    const low = Math.min(...values), high = Math.max(...values), log = !zero && low > 0 && high / low > 100;
    const decades = (u, n, min, max) => {
      const first = Math.ceil(Math.log10(min) - 1e-9), count = Math.floor(Math.log10(max) + 1e-9) - first + 1, apart = Math.max(1, Math.ceil(count / 5));
      return Array.from({ length: Math.max(1, Math.ceil(count / apart)) }, (_, k) => 10 ** (first + k * apart));
    };
    const axis = { stroke: colour("--muted"), font: "11px Inter, system-ui, sans-serif", grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false } };
    const options = {
      width: Math.max(240, box.clientWidth), height,
      cursor: { sync: sync ? { key: sync } : undefined, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { show: legend, live: true },
      scales: { x: { time: false }, y: { distr: log ? 3 : 1, range: log ? undefined : (u, min, max) => span(min, most || max, zero), ...y.scale } },
      axes: [
        { ...axis, size: 30, space: 60, incrs: sync === "step" ? wholes : undefined, values: (u, ticks) => ticks.map(x) },
        { ...axis, size: 62, space: 30, incrs, ...(log ? { splits: decades, filter: (u, ticks) => ticks } : {}), values: (u, ticks) => ticks.map((v) => (v == null ? "" : value(v))), ...y.axis },
      ],
      series: [
        { label: sync === "step" ? "step" : "time", value: (u, v) => x(v == null ? columns[0][columns[0].length - 1] : v) },
        ...lines.map((line) => ({
          label: line.name, stroke: line.colour, width: line.fill ? 0 : 1.6, fill: line.fill, spanGaps: true,
          paths: stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
          points: { show: line.y.length < 24 && !line.fill, size: 4, fill: line.colour },
          value: (u, v, s, i) => value(i == null ? last(line.raw || line.y) : line.raw ? line.raw[i] : v),
        })),
      ],
      hooks: { ...hooks, draw: [...(hooks.draw || []), drawMarks(marks)] },
    };
    if (log) box.querySelector("h3").insertAdjacentHTML("beforeend", " <small>log scale</small>");
    const u = new uPlot(options, columns, box), zoom = zooms[heading];
    u.unstuck = heading;
    if (zoom) u.setScale("x", zoom);
    plots.push([u, box]);
    return u;
  }

  const mean = (list) => {
    const finite = list.filter((v) => v != null);
    return finite.length ? finite.reduce((a, b) => a + b, 0) / finite.length : null;
  };
  const last = (list) => list.filter((v) => v != null).pop();

  function span(min, max, zero) {
    if (min == null) return [0, 1];
    const room = Math.max((max - min) * 0.08, Math.abs(max) * 0.02, 1e-12);
    return [zero ? 0 : min - room, max + room];
  }

  const named = (curve, text) => (curve.rank != null ? `rank ${curve.rank}` : text);
  const colours = () => ["--c1", "--c2", "--c5", "--c4", "--c3", "--c6"].map(colour);

  function curves(parent, heading, list, label, options = {}) {
    const all = colours();
    const lines = list.filter((c) => c.step.length > 1).map((c, n) => ({ name: label(c, n), x: c.step, y: c.value, colour: all[n % 6] }));
    if (options.smooth && lines.length === 1 && lines[0].x.length >= 60) {
      const [line] = lines, wide = Math.ceil(line.x.length / 30);
      lines[0] = { ...line, colour: colour("--c6") };
      lines.push({ ...line, name: `mean of ${2 * wide + 1}`, y: line.y.map((_, i) => mean(line.y.slice(Math.max(0, i - wide), i + wide + 1))) });
    }
    if (lines.length) plot(parent, heading, lines, { sync: "step", ...options, marks: [...marksOf(lines.flatMap((l) => l.x)), ...(options.marks || [])] });
  }

  function learning({ loss, rate, gradient_norm: norm }) {
    const parent = byId("plots-learning");
    const broken = loss.filter((c) => c.nonfinite_step != null).slice(0, 1).map((c) => ({ step: c.nonfinite_step, text: "NaN/Inf" }));
    const about = loss.length && loss[0].line ? `Loss, ${loss[0].line}` : "Loss";
    curves(parent, about, loss, (c, n) => named(c, loss.length > 1 && c.line ? c.line : "loss"), { wide: true, smooth: true, marks: broken, height: 230 });
    curves(parent, "Gradient norm", norm, (c) => named(c, "norm"));
    curves(parent, "Learning rate", rate, (c) => named(c, c.optimizer || "rate"), { stepped: true });
  }

  function time({ steps }) {
    const parent = byId("plots-time");
    if (!parent || !steps.length || steps[0].step.length < 3) return;
    const s = steps[0], parts = ["data", "backward", "optimizer"];
    const rest = s.seconds.map((v, i) => Math.max(0, v - parts.reduce((sum, part) => sum + (s[part][i] || 0), 0)));
    const stack = [["your code", rest, "--between"], ["optimizer", s.optimizer, "--optimizer"], ["backward", s.backward, "--backward"], ["waiting for data", s.data, "--data"]];
    let lines = [], sum = s.seconds.map(() => 0);
    for (const [name, raw, tone] of stack.reverse()) {
      sum = sum.map((v, i) => v + (raw[i] || 0));
      lines.unshift({ name, x: s.step, y: sum, raw, colour: colour(tone), fill: colour(tone) });
    }
    const sorted = [...s.seconds].sort((a, b) => a - b), longest = sorted[sorted.length - 1];
    let most = 3 * sorted[Math.floor(sorted.length * 0.95)];  // the first step, or one in a thousand, would make all others flat
    most = longest > 2 * most ? most : 0;
    const cut = most ? `; the longest, ${seconds(longest)}, is cut` : "";
    plot(parent, (s.rank == null ? "Seconds of each step" : `Seconds of each step, rank ${s.rank}`) + cut, lines, { value: seconds, sync: "step", marks: marksOf(s.step), wide: true, zero: true, most });
  }

  function memory({ memory: list }) {
    const all = colours();
    const lines = list.filter((c) => c.at.length > 1).map((c, n) => ({
      name: c.worker != null ? `worker ${c.worker}` : c.rank != null ? `rank ${c.rank}` : c.role === "unknown" ? `pid ${c.pid}` : c.role, x: c.at, y: c.bytes, colour: all[n % 6],
    }));
    if (lines.length) plot(byId("plots-memory"), "Resident memory", lines, { value: bytes, x: seconds, wide: true, zero: true, incrs: Array.from({ length: 40 }, (_, n) => 2 ** n) });
  }

  // --- workers -----------------------------------------------------------------------------------------------
  function workers({ workers: list }) {
    const rows = list.filter((w) => w.at.length || w.now);
    if (!rows.length) return;
    const bars = rows.flatMap((w, row) => [
      ...w.at.map((at, i) => ({ row, at, end: at + w.seconds[i], failed: w.failed.includes(i), text: `${w.samples[i] === 1 ? "sample" : `${w.samples[i]} samples, first`} ${w.sample[i] ?? "–"}: ${seconds(w.seconds[i])}` })),
      ...(w.now ? [{ row, at: w.now.at, end: w.now.at + w.now.seconds, now: true, sample: w.now.sample, text: `at sample ${w.now.sample ?? "–"} for ${seconds(w.now.seconds)}` }] : []),
    ]);
    const lengths = rows.flatMap((w) => w.seconds).sort((a, b) => a - b), median = lengths[lengths.length >> 1] || 0;
    const from = Math.min(...bars.map((b) => b.at)), to = Math.max(...bars.map((b) => b.end));
    const name = (row) => (rows[row] ? (rows[row].worker == null ? `pid ${rows[row].pid}` : `worker ${rows[row].worker}`) : "");
    const paint = (u) => {
      const { ctx, bbox } = u, ratio = devicePixelRatio;
      ctx.save();
      ctx.beginPath();
      ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
      ctx.clip();
      ctx.font = `${11 * ratio}px Inter, system-ui, sans-serif`;
      for (const bar of bars) {
        const x = u.valToPos(bar.at, "x", true), width = Math.max(ratio, u.valToPos(bar.end, "x", true) - x - ratio * 0.5);
        const top = u.valToPos(bar.row - 0.3, "y", true), height = u.valToPos(bar.row + 0.3, "y", true) - top;
        const stuck = bar.now && bar.end - bar.at > Math.max(1, 10 * median);
        ctx.fillStyle = colour(stuck || bar.failed ? "--accent" : bar.now ? "--c1" : "--c5");
        ctx.fillRect(x, top, width, height);
        if (stuck && width > 90 * ratio) {
          ctx.fillStyle = colour("--paper");
          ctx.textBaseline = "middle";
          ctx.textAlign = "left";
          ctx.fillText(`sample ${bar.sample ?? "–"}`.slice(0, 40), Math.max(x, bbox.left) + 8 * ratio, top + height / 2);
        }
      }
      ctx.restore();
    };
    const parent = byId("timeline"), tip = document.createElement("p");
    tip.className = "tip";
    const hover = (u) => {
      const { left, top } = u.cursor;
      const at = u.posToVal(left, "x"), row = Math.round(u.posToVal(top, "y"));
      const bar = left < 0 ? null : bars.find((b) => b.row === row && b.at <= at && at <= b.end);
      tip.textContent = bar ? `${name(row)}, ${seconds(bar.at)} into the run: ${bar.text}` : "";
    };
    plot(parent, "", [{ name: "", x: [from, to], y: [null, null], colour: "transparent" }], {
      x: seconds, wide: true, legend: false, height: 54 + Math.min(24, rows.length) * (rows.length > 12 ? 20 : 30), hooks: { draw: [paint], setCursor: [hover] },
      y: { scale: { distr: 1, dir: -1, range: () => [-0.5, rows.length - 0.5] }, axis: { splits: () => rows.map((_, n) => n), values: (u, ticks) => ticks.map(name), size: 76, grid: { show: false } } },
    });
    parent.append(tip);
  }

  // --- layers × steps ----------------------------------------------------------------------------------------
  function grid(parent, heading, layers, cells, note) {
    const finite = cells.flat().filter((v) => v > 0);
    if (!finite.length) return;
    const box = frame(parent, heading), canvas = document.createElement("canvas"), tip = document.createElement("p");
    tip.className = "tip";
    box.append(canvas, tip);
    const high = Math.log10(Math.max(...finite)), low = Math.max(Math.log10(Math.min(...finite)), high - 6, -300) - 1e-6;
    const lineHeight = layers.layer.length > 20 ? 11 : 20, label = 128;
    const said = `${short(Math.min(...finite))} – ${short(10 ** high)}${note}`;
    const draw = () => {
      const width = Math.max(240, box.clientWidth), height = layers.layer.length * lineHeight + 18, ratio = devicePixelRatio;
      canvas.width = width * ratio; canvas.height = height * ratio;
      canvas.style.width = width + "px"; canvas.style.height = height + "px";
      const ctx = canvas.getContext("2d"), cell = (width - label) / layers.step.length;
      ctx.scale(ratio, ratio);
      ctx.font = `${Math.min(11, lineHeight)}px Inter, system-ui, sans-serif`;
      ctx.textBaseline = "middle";
      layers.layer.forEach((name, row) => {
        ctx.globalAlpha = 1;
        ctx.fillStyle = colour("--muted");
        const shown = name.length > 20 ? "…" + name.slice(-19) : name;
        ctx.fillText(shown, 0, row * lineHeight + lineHeight / 2, label - 8);
        cells[row].forEach((v, column) => {
          ctx.fillStyle = colour(v == null ? "--tint" : "--accent");
          ctx.globalAlpha = v == null ? 1 : v > 0 ? 0.06 + (0.94 * Math.max(0, Math.log10(v) - low)) / Math.max(0.5, high - low) : 0.03;
          ctx.fillRect(label + column * cell, row * lineHeight + 1, Math.ceil(cell) - (cell > 5 ? 1 : 0), lineHeight - 2);
        });
      });
      ctx.globalAlpha = 1;
      ctx.fillStyle = colour("--muted");
      ctx.fillText(`step ${whole(layers.step[0])}`, label, height - 7);
      ctx.textAlign = "right";
      ctx.fillText(whole(layers.step[layers.step.length - 1]), width, height - 7);
    };
    tip.textContent = said;
    canvas.onmousemove = (event) => {
      const column = Math.floor(((event.offsetX - label) / (canvas.clientWidth - label)) * layers.step.length), row = Math.floor(event.offsetY / lineHeight);
      const inside = cells[row] && column >= 0 && column < layers.step.length;
      tip.textContent = inside ? `${layers.layer[row]}, step ${whole(layers.step[column])}: ${cells[row][column] == null ? "not measured, or NaN" : short(cells[row][column])}` : said;
    };
    canvas.onmouseleave = () => { tip.textContent = said; };
    draw();
    plots.push([{ setSize: draw, destroy() {}, scales: {} }, box]);
  }

  function layers({ layers: list }) {
    if (!list.length) return;
    const first = list[0], parent = byId("grids");
    grid(parent, "Update ratio", first, first.update_ratio, "; about 1e-3 is usual");
    grid(parent, "Gradient norm", first, first.gradient_norm, "");
    if (first.of > first.layer.length) byId("layers-of").textContent = `${first.layer.length} of ${first.of}`;
  }

  // --- the page ----------------------------------------------------------------------------------------------
  function draw() {
    for (const [u] of plots) u.destroy();
    plots = [];
    for (const id of ["plots-learning", "plots-time", "plots-memory", "timeline", "grids"]) byId(id)?.replaceChildren();
    for (const part of [learning, time, workers, layers, memory]) part(data.series);
    fitted.disconnect();
    for (const [, box] of plots) fitted.observe(box);
  }

  function begin() {
    data = JSON.parse(byId("data").textContent);
    draw();
    const button = byId("copy");
    button.hidden = false;
    button.onclick = async () => {
      let done = true;
      try { await navigator.clipboard.writeText(data.markdown); } catch {
        const area = document.createElement("textarea");  // a file opened from disk may have no clipboard
        area.value = data.markdown;
        document.body.append(area);
        area.select();
        done = document.execCommand("copy");
        area.remove();
      }
      button.textContent = done ? "Copied" : "Could not copy";
      setTimeout(() => { button.textContent = "Copy as Markdown"; }, 1600);
    };
  }

  const fitted = new ResizeObserver((changes) => {
    for (const { target } of changes)
      for (const [u, box] of plots) if (box === target && box.clientWidth !== u.width) u.setSize({ width: Math.max(240, box.clientWidth), height: u.height });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  addEventListener("beforeprint", () => {  // as on paper: light, narrow, what matters unfolded
    document.documentElement.dataset.print = "";
    document.querySelectorAll("details.also, details.stack").forEach((each) => { each.open = true; });
    draw();
  });
  addEventListener("afterprint", () => {
    delete document.documentElement.dataset.print;
    draw();
  });

  function listen() {
    const source = new EventSource("events"), words = (text) => { if (byId("live")) byId("live").textContent = text; };
    source.onmessage = (event) => {
      if (!getSelection().isCollapsed) return;  // somebody marks text in it
      const change = JSON.parse(event.data), open = new Map();
      document.querySelectorAll("details").forEach((each) => open.set(each.querySelector("summary").textContent, each.open));
      zooms = {};
      for (const [u] of plots) {
        const { x } = u.scales;
        if (x && u.data && (x.min > u.data[0][0] || x.max < u.data[0][u.data[0].length - 1])) zooms[u.unstuck] = { min: x.min, max: x.max };
      }
      const at = scrollY;
      byId("main").innerHTML = change.main;
      byId("data").textContent = change.data;
      document.title = change.title;
      document.documentElement.dataset.tone = change.tone;
      document.querySelectorAll("details").forEach((each) => {
        const before = open.get(each.querySelector("summary").textContent);
        if (before != null) each.open = before;
      });
      begin();
      scrollTo(0, at);
    };
    source.addEventListener("end", () => { source.close(); words("ended"); });
    source.onerror = () => words(source.readyState === 2 ? "ended" : "no connection");
  }

  begin();
  if ("live" in document.body.dataset) listen();
})();
