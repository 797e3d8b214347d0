"use strict";
(function () {
  var SVG = "http://www.w3.org/2000/svg";
  function shown(value) {
    var size = Math.abs(value);
    if (size !== 0 && (size < 1e-3 || size >= 1e7)) return value.toExponential(3);
    return String(Number(value.toPrecision(5)));
  }
  function place(svg, event) {
    var box = svg.getBoundingClientRect();
    return {
      x: ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width,
      y: ((event.clientY - box.top) / box.height) * svg.viewBox.baseVal.height,
    };
  }
  function nearest(list, wanted) {
    var best = 0;
    for (var i = 1; i < list.length; i++) {
      if (Math.abs(list[i] - wanted) < Math.abs(list[best] - wanted)) best = i;
    }
    return best;
  }
  function prepare(figure) {
    var data = JSON.parse(figure.dataset.chart);
    var svg = figure.querySelector("svg");
    var cursor = svg.querySelector(".cursor");
    var readout = figure.querySelector(".readout");
    var lines = !!data.px, heat = data.heat;
    var wide = heat ? data.xs.length : 0;
    var hidden = {};
    var at = -1;
    function clear() {
      while (cursor.firstChild) cursor.removeChild(cursor.firstChild);
      svg.querySelectorAll(".bar.on").forEach(function (bar) { bar.classList.remove("on"); });
    }
    function mark(kind, attributes) {
      var item = document.createElementNS(SVG, kind);
      Object.keys(attributes).forEach(function (name) {
        item.setAttribute(name, attributes[name]);
      });
      cursor.appendChild(item);
    }
    function show(index) {
      at = index;
      clear();
      if (heat) {
        var i = Math.floor(index / wide), j = index % wide, box = data.box;
        var w = (box[1] - box[0]) / wide, h = (box[3] - box[2]) / data.ys.length;
        mark("rect", { x: box[0] + j * w, y: box[3] - (i + 1) * h, width: w, height: h,
          "class": "cell" });
        readout.textContent = data.xl + " " + data.xs[j] + "  \u00b7  " + data.yl + " " +
          data.ys[i] + "  \u00b7  " + shown(heat[i][j]) + "  \u00b7  " + rowsOf(data.rows[i][j]);
        return;
      }
      if (!lines) {
        var bar = svg.querySelector('.bar[data-index="' + index + '"]');
        if (bar) bar.classList.add("on");
        readout.textContent = data.names[index] + ": " + shown(data.values[index]);
        return;
      }
      mark("line", { x1: data.px[index], x2: data.px[index], y1: 12, y2: data.end,
        "class": "rule" });
      var words = [data.xl + " " + shown(data.x[index])];
      data.series.forEach(function (each, number) {
        if (hidden[number]) return;
        mark("circle", { cx: data.px[index], cy: each.py[index], r: 4, "class": "s" + number });
        words.push((data.series.length > 1 ? each.name + " " : "") + shown(each.y[index]));
      });
      if (data.rows) words.push(rowsOf(data.rows[index]) + " near");
      readout.textContent = words.join("  ·  ");
    }
    function rowsOf(count) { return count + (count === 1 ? " row" : " rows"); }
    function count() {
      return heat ? wide * data.ys.length : lines ? data.px.length : data.values.length;
    }
    function within(share, many) { return Math.max(0, Math.min(many - 1, Math.floor(share * many))); }
    function follow(event) {
      var point = place(svg, event);
      if (heat) {
        var box = data.box, across = (point.x - box[0]) / (box[1] - box[0]);
        var up = (box[3] - point.y) / (box[3] - box[2]);
        show(within(up, data.ys.length) * wide + within(across, wide));
        return;
      }
      var bar = Math.max(0, Math.min(count() - 1, Math.floor((point.y - 12) / 20)));
      show(lines ? nearest(data.px, point.x) : bar);
    }
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", function () { clear(); readout.textContent = "\u00a0"; });
    svg.addEventListener("keydown", function (event) {
      var row = heat ? wide : -1;
      var step = { ArrowRight: 1, ArrowDown: -row, ArrowLeft: -1, ArrowUp: row }[event.key];
      if (!step) return;
      event.preventDefault();
      show(Math.max(0, Math.min(count() - 1, at + step)));
    });
    figure.querySelectorAll(".key").forEach(function (key) {
      key.addEventListener("click", function () {
        var number = Number(key.dataset.series);
        hidden[number] = !hidden[number];
        key.setAttribute("aria-pressed", String(!hidden[number]));
        var line = svg.querySelector('.series[data-series="' + number + '"]');
        line.classList.toggle("off", hidden[number]);
        if (at >= 0) show(at);
      });
    });
  }
  document.querySelectorAll("figure.chart").forEach(prepare);
  document.documentElement.classList.add("scripted");
})();
