// Body of the function that bokeh calls once the page is ready. Its arguments:
//   scene       arrays and texts, see scene.py
//   palette     colors of groups and of numbers
//   points      source of the dots            dots       what draws them
//   edges       source of the lines
//   spokes      lines to hovered neighbors    rings      marks around them
//   histogram   source of the bars            cursor     line at the current eps
//   tag         text at the hovered dot
//   hover       tool that reports dots under the pointer, and where that is, in its tags
//   n_levels    of opacity                    coarse     most edges drawn at full strength

// Bokeh hands over arrays that insist on their first shape; parts of them need the plain kind.
const KINDS = {uint8: Uint8Array, int32: Int32Array, float32: Float32Array, float64: Float64Array}
function plain(array) {
  return new KINDS[array.dtype](array.buffer, array.byteOffset, array.length)
}
for (const name of ["x", "y", "rows", "degree", "component", "potential", "edge_i", "edge_j", "strength"]) {
  scene[name] = plain(scene[name])
}

for (const each of scene.columns) {
  if (each.values) each.values = plain(each.values)
}

const n_points = scene.rows.length
const n_edges = scene.edge_i.length
const by_id = (id) => document.getElementById(id)
const slider = by_id("eps")
const select = by_id("color")
const grouped = (number) => number.toLocaleString("en-US")
let current = -1
let hovered = -1

function strength_at(value) {
  return scene.strength.subarray(value * n_edges, (value + 1) * n_edges)
}

function column(table, value) {
  return table.subarray(value * n_points, (value + 1) * n_points)
}

// Lines of one opacity are a few long paths with gaps, each drawn in one stroke: some fifty times
// faster than a glyph for each edge. Within a stroke crossing lines do not add up, hence a few.
const EDGES_PER_STROKE = 1000
// Opacity of the heaviest edges, where there are few of them and where there are very many.
const STRONGEST = 0.75
const FAINTEST = 0.25

function path_of(chosen) {
  const x = new Float64Array(3 * chosen.length)
  const y = new Float64Array(3 * chosen.length)
  for (let k = 0; k < chosen.length; k++) {
    const i = scene.edge_i[chosen[k]]
    const j = scene.edge_j[chosen[k]]
    x[3 * k] = scene.x[i]
    y[3 * k] = scene.y[i]
    x[3 * k + 1] = scene.x[j]
    y[3 * k + 1] = scene.y[j]
    x[3 * k + 2] = y[3 * k + 2] = NaN
  }
  return {x, y}
}

function by_level(strength) {
  const counts = new Array(n_levels + 1).fill(0)
  for (let e = 0; e < n_edges; e++) counts[strength[e]]++
  const levels = counts.map((count) => new Int32Array(count))
  const filled = new Array(n_levels + 1).fill(0)
  for (let e = 0; e < n_edges; e++) {
    const level = strength[e]
    if (level > 0) levels[level][filled[level]++] = e
  }
  return levels
}

function draw_edges(value) {
  const drawn = scene.values[value].n_drawn
  const opacity = Math.min(STRONGEST, Math.max(FAINTEST, Math.sqrt(coarse / Math.max(drawn, 1))))
  const data = {xs: [], ys: [], alpha: []}
  by_level(strength_at(value)).forEach((chosen, level) => {
    for (let start = 0; level > 0 && start < chosen.length; start += EDGES_PER_STROKE) {
      const {x, y} = path_of(chosen.subarray(start, start + EDGES_PER_STROKE))
      data.xs.push(x)
      data.ys.push(y)
      data.alpha.push(opacity * level / n_levels)
    }
  })
  edges.data = data
}

function limits(values) {
  let low = Infinity
  let high = -Infinity
  for (const value of values) {
    if (!Number.isFinite(value)) continue
    low = Math.min(low, value)
    high = Math.max(high, value)
  }
  return [low, high]
}

function mapped(values) {
  const [low, high] = limits(values)
  const last = palette.numbers.length - 1
  const scale = high > low ? last / (high - low) : 0
  return Array.from(values, (value) => Number.isFinite(value)
    ? palette.numbers[Math.round((value - low) * scale)]
    : palette.others)
}

// The column to color by, unless it is a quantity of the graph.
function chosen_column() {
  return select.value.startsWith("column ") ? scene.columns[Number(select.value.slice(7))] : null
}

function colors_at(value) {
  const chosen = chosen_column()
  if (chosen) {
    return chosen.values
      ? mapped(chosen.values)
      : Array.from(chosen.codes, (code) => chosen.colors[code])
  }
  if (select.value == "component") {
    return Array.from(column(scene.component, value), (c) => palette.groups[c] ?? palette.others)
  }
  return mapped(column(scene[select.value], value))
}

function draw_points(value) {
  points.data = {...points.data, color: colors_at(value)}
}

function entry(color, text) {
  const item = document.createElement("span")
  const dot = document.createElement("i")
  dot.style.background = color
  item.append(dot, text)
  return item
}

function word(text) {
  const item = document.createElement("span")
  item.textContent = text
  return item
}

function scale_of(name, values) {
  const [low, high] = limits(values)
  const bar = document.createElement("b")
  bar.style.background = `linear-gradient(to right, ${palette.numbers.join(",")})`
  const [from, to] = [low, high].map((limit) => word(Number(limit.toPrecision(3))))
  return [word(name), from, bar, to]
}

function draw_legend(value) {
  const {component_sizes, n_connected} = scene.values[value]
  const legend = by_id("legend")
  const most = 24
  const chosen = chosen_column()
  if (chosen?.values) {
    legend.replaceChildren(...scale_of(chosen.name, chosen.values))
  } else if (chosen) {
    const {names, colors} = chosen
    const entries = names.slice(0, most).map((name, k) => entry(colors[k], name))
    legend.replaceChildren(...entries, names.length > most ? `and ${names.length - most} more` : "")
  } else if (select.value == "component") {
    const entries = component_sizes.map((size, k) =>
      entry(palette.groups[k], `${k == 0 ? "component 1" : k + 1}: ${grouped(size)} points`))
    const smaller = n_connected - component_sizes.length
    if (smaller > 0) entries.push(entry(palette.others, `${grouped(smaller)} smaller ones`))
    legend.replaceChildren(...entries)
  } else {
    legend.replaceChildren(...scale_of(select.value, column(scene[select.value], value)))
  }
}

function draw_readings(value) {
  const said = scene.values[value]
  for (const place of document.querySelectorAll("[data-reading]")) {
    const reading = said[place.dataset.reading]
    place.textContent = typeof reading == "number" ? grouped(reading) : reading
  }
  by_id("eps-value").textContent = said.eps_text
  slider.setAttribute("aria-valuetext", `ε = ${said.eps_text}`)
  by_id("certificate").dataset.status = said.status
  by_id("python").textContent = said.python
  by_id("command").textContent = said.command
  by_id("drawn").textContent = drawn_note(said)
  const bins = plain(said.bins)
  histogram.data = {left: bins.slice(0, -1), right: bins.slice(1), count: plain(said.histogram)}
  cursor.location = said.eps
}

function drawn_note({n_points: all_points, n_edges: all_edges, n_drawn}) {
  if (n_points == all_points && n_drawn == all_edges) return "All points and edges are drawn."
  return `Drawn: ${grouped(n_points)} of ${grouped(all_points)} points and ` +
    `${grouped(n_drawn)} of ${grouped(all_edges)} edges, chosen at random. ` +
    "All numbers are those of the whole graph."
}

function neighbors_of(point, value) {
  const strength = strength_at(value)
  const found = []
  for (let e = 0; e < n_edges; e++) {
    if (strength[e] > 0 && (scene.edge_i[e] == point || scene.edge_j[e] == point)) found.push(e)
  }
  return found.sort((a, b) => strength[b] - strength[a])
}

function other_end(edge, point) {
  return scene.edge_i[edge] == point ? scene.edge_j[edge] : scene.edge_i[edge]
}

function draw_neighbors() {
  const found = hovered < 0 ? [] : neighbors_of(hovered, current)
  const marked = found.map((edge) => other_end(edge, hovered))
  spokes.data = path_of(found)
  dots.glyph.fill_alpha = {value: hovered < 0 ? 1 : 0.3}
  const ringed = hovered < 0 ? [] : [hovered, ...marked]
  rings.data = {
    x: ringed.map((k) => scene.x[k]),
    y: ringed.map((k) => scene.y[k]),
    row: ringed.map((k) => scene.rows[k]),
    color: ringed.map((k) => points.data.color[k]),
    size: ringed.map((k) => (k == hovered ? 1.8 : 1.2) * palette.size),
  }
  tag.data = hovered < 0
    ? {x: [], y: [], text: []}
    : {x: [scene.x[hovered]], y: [scene.y[hovered]], text: [scene.texts[hovered]]}
  by_id("hovered").textContent = hovered < 0
    ? "Point at a dot to see its row and its neighbors."
    : told_neighbors(marked)
}

function told_neighbors(marked) {
  const at = current * n_points + hovered
  const degree = scene.degree[at]
  const most = 12
  const rows = marked.slice(0, most).map((k) => scene.rows[k]).join(", ")
  const more = marked.length > most ? ", …" : ""
  const drawn = marked.length < degree ? `, ${marked.length} of them drawn` : ""
  return `Row ${scene.rows[hovered]}: component ${scene.component[at] + 1}, ` +
    `potential ${scene.potential[at].toPrecision(3)}, ` +
    `${degree} neighbors${drawn}: ${rows}${more}`
}

const SVG = "http://www.w3.org/2000/svg"

function add_shape(kind, name, attributes) {
  const shape = document.createElementNS(SVG, kind)
  shape.classList.add(name)
  for (const [key, value] of Object.entries(attributes)) shape.setAttribute(key, value)
  by_id("curve").append(shape)
  return shape
}

// A line through values at places between 0 and 1, from the bottom to the top of the strip.
function add_curve(name, at, values) {
  const [low, high] = limits(values)
  const height = (value) => high > low ? 95 - 90 * (value - low) / (high - low) : 95
  const points = at.map((place, k) => `${1000 * place},${height(values[k])}`).join(" ")
  add_shape("polyline", name, {points})
}

function add_bar(name, place) {
  return add_shape("line", name, {x1: 1000 * place, x2: 1000 * place, y1: 0, y2: 100})
}

function draw_curves() {
  const {at, scores, best} = scene.curve
  const last = scene.values.length - 1
  if (last < 1) return null
  const places = scene.values.map((_, k) => k / last)
  add_curve("components", places, scene.values.map(({n_connected}) => Math.log(n_connected)))
  if (at) add_curve("error", at, scores)
  if (best != null) add_bar("best", best)
  return add_bar("cursor", 0)
}

const strip_cursor = draw_curves()

function move_strip_cursor(value) {
  if (strip_cursor == null) return
  const place = 1000 * value / (scene.values.length - 1)
  strip_cursor.setAttribute("x1", place)
  strip_cursor.setAttribute("x2", place)
}

const MOST_LISTED = 200 // selected points that are listed; a browser is slow with thousands of lines

function list_selection() {
  const selected = points.selected.indices
  by_id("selection").hidden = selected.length == 0
  if (selected.length == 0) return
  const listed = selected.slice(0, MOST_LISTED)
  const neighbors = new Map(listed.map((k) => [k, []]))
  const strength = strength_at(current)
  for (let e = 0; e < n_edges; e++) {
    if (strength[e] == 0) continue
    neighbors.get(scene.edge_i[e])?.push(scene.edge_j[e])
    neighbors.get(scene.edge_j[e])?.push(scene.edge_i[e])
  }
  const lines = listed.map((k) => {
    const rows = neighbors.get(k).map((other) => scene.rows[other]).sort((a, b) => a - b)
    const degree = scene.degree[current * n_points + k]
    const drawn = rows.length < degree ? `, ${rows.length} of them drawn` : ""
    return `${scene.texts[k]}; ${degree} neighbors${drawn}: ${rows.join(", ")}`
  })
  if (selected.length > listed.length) lines.push(`and ${selected.length - listed.length} more`)
  by_id("selected-count").textContent = `${grouped(selected.length)} selected`
  by_id("selected-list").textContent = lines.join("\n")
}

function recolor() {
  draw_points(current)
  draw_legend(current)
  draw_neighbors()
}

function show(value) {
  if (value == current) return
  current = value
  draw_edges(value)
  draw_readings(value)
  move_strip_cursor(value)
  recolor()
  list_selection()
}

async function copy(event) {
  const text = by_id(event.target.dataset.copy)
  window.getSelection().selectAllChildren(text) // so that the keyboard can copy it too
  try {
    await navigator.clipboard.writeText(text.textContent)
  } catch {
    document.execCommand("copy") // pages within pages may not use the clipboard
  }
  event.target.textContent = "Copied"
  setTimeout(() => { event.target.textContent = "Copy" }, 1500)
}

slider.addEventListener("input", () => show(Number(slider.value)))
select.addEventListener("change", recolor)
by_id("show-code").addEventListener("click", ({currentTarget: button}) => {
  const panel = by_id("code")
  panel.hidden = !panel.hidden
  button.setAttribute("aria-expanded", String(!panel.hidden))
  button.textContent = panel.hidden ? "Show code" : "Hide code"
})
document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", copy))
hover.properties.tags.change.connect(() => {
  const [under, x, y] = hover.tags
  const distance = (k) => Math.hypot(scene.x[k] - x, scene.y[k] - y)
  const nearest = under.length == 0 ? -1 : under.reduce((a, b) => distance(b) < distance(a) ? b : a)
  if (nearest == hovered) return
  hovered = nearest
  draw_neighbors()
})
points.selected.properties.indices.change.connect(list_selection)
by_id("clear-selection").addEventListener("click", () => { points.selected.indices = [] })
select.value = palette.first
show(Number(slider.value))
