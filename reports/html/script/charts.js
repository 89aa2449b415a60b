// The charts of the page: Vega specs from ../charts with rows from chart_rows.js. Expressions are interpreted, not
// compiled, so the page needs no unsafe-eval.
import {transforms} from 'vega-dataflow';
import * as basic from 'vega-transforms';
import * as viewing from 'vega-view-transforms';
import * as encoding from 'vega-encode';
import {View} from 'vega-view';
import {parse} from 'vega-parser';
import {expressionInterpreter} from 'vega-interpreter';
import ranking from '../charts/ranking.json';
import meshMap from '../charts/mesh_map.json';
import time from '../charts/time.json';
import memory from '../charts/memory.json';
import live from '../charts/live.json';
import tuning from '../charts/tuning.json';
import timeline from '../charts/timeline.json';
import front from '../charts/front.json';
import measured from '../charts/measured.json';
import tornado from '../charts/tornado.json';
import rejected from '../charts/rejected.json';
import stages from '../charts/stages.json';
import * as rows from './chart_rows.js';
import {controlTimeline} from './timeline.js';

Object.assign(transforms, basic, viewing, encoding);

// A chart: its spec, and the data sets and signals that it is given; null = nothing to draw.
const charts = {
    'ranking': {spec: ranking, fill: rows.ranking},
    'mesh-map': {spec: meshMap, fill: rows.meshMap},
    'time': {spec: time, fill: rows.time},
    'memory': {spec: memory, fill: rows.memory},
    'stages': {spec: stages, fill: rows.stages},
    'stage-memory': {spec: memory, fill: rows.stageMemory},
    'live': {spec: live, fill: rows.live},
    'timeline': {spec: timeline, fill: rows.timeline, renderer: 'canvas', control: controlTimeline},
    'front': {spec: front, fill: rows.front, renderer: 'canvas', click: (point) => point.index !== undefined && page.select(point.index)},
    'measured': {spec: measured, fill: rows.measured},
    'tuning': {spec: tuning, fill: rows.tuning},
    'rejected': {spec: rejected, fill: rows.rejected},
    'tornado': {spec: tornado, fill: rows.tornado}
};

const PAPER = 690;  // CSS pixels between the margins of A4 and of US letter
let before = null;  // the theme to come back to; null = nothing is being printed
const page = window.ndtune, tip = document.getElementById('tip');
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();

function themeConfig() {
    const ink = colour('ink'), muted = colour('muted'), line = colour('line');
    const font = getComputedStyle(document.body).fontFamily;
    return {
        background: null, font: font,
        axis: {labelColor: muted, titleColor: muted, gridColor: line, domainColor: line, tickColor: line, labelFont: font,
            titleFont: font, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 'normal', labelLimit: 260, gridOpacity: 0.7},
        text: {fill: ink, font: font}
    };
}

const palette = () => ({
    ink: colour('ink'), muted: colour('muted'), line: colour('line'), paper: colour('paper'), accent: colour('accent'),
    soft: colour('accent-soft'), warning: colour('warning')
});
const seriesColour = (name) => name.startsWith('#') ? name : colour(name) || colour('muted');

// A legend of the page's own text, which wraps where a drawing would be cut.
function drawLegend(chart, place) {
    const old = chart.figure.querySelector('.legend');
    if (old) { old.remove(); }
    if (!chart.given.series) { return; }
    const list = document.createElement('ul');
    list.className = 'legend';
    chart.given.series.forEach(function (one) {
        const item = document.createElement('li'), swatch = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
        const square = document.createElementNS('http://www.w3.org/2000/svg', 'rect');
        Object.entries({width: 12, height: 12, 'aria-hidden': 'true'}).forEach(([key, value]) => swatch.setAttribute(key, value));
        Object.entries({width: 12, height: 12, fill: seriesColour(one.colour)}).forEach(([key, value]) => square.setAttribute(key, value));
        swatch.appendChild(square);
        item.append(swatch, one.name);
        list.appendChild(item);
    });
    place.before(list);
}

// Rows whose names leave no room beside them have them above; `lift` is how much a row grows by.
const NARROW = 640, LIFT = 18;
function nameAbove(spec, names) {
    spec.axes.find((axis) => axis.orient === 'left').encode = {labels: {update: {text: {value: ''}}}};
    spec.data.push({name: 'row_names', values: names.map((name) => ({name: name}))});
    spec.marks.push({type: 'text', from: {data: 'row_names'}, interactive: false, encode: {update: {
        y: {scale: 'y', field: 'name', offset: 11}, x: {value: 2}, text: {field: 'name'}, fontSize: {value: 12}, fill: {signal: 'palette.muted'},
        limit: {signal: 'width'}}}});
}

function showTip(handler, event, item, value) {
    if (value === null || value === undefined || value === '') {
        tip.hidden = true;
        return;
    }
    tip.textContent = String(value);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, window.innerWidth - box.width - 8)) + 'px';
    tip.style.top = Math.max(4, Math.min(event.clientY + 14, window.innerHeight - box.height - 8)) + 'px';
}

// The drawing as a whole has a name and a table beside it; its hundreds of marks say nothing to a screen reader.
function silence(spec) {
    ['marks', 'axes', 'legends'].forEach((kind) => (spec[kind] || []).forEach((part) => {
        part.aria = false;
        silence(part);
    }));
}

function build(chart) {
    const place = chart.figure.querySelector('.drawing');
    if (chart.view) { chart.view.finalize(); }
    place.replaceChildren();
    const spec = structuredClone(chart.spec), given = chart.given, signals = {...given.signals};
    const room = before === null ? Math.max(280, place.clientWidth) : PAPER;
    chart.narrow = room < NARROW;
    if (given.rows && chart.narrow) {
        signals.lift = LIFT;
        nameAbove(spec, [...new Set(Object.values(given.data)[0].map((row) => row.name))]);
    }
    if (given.series) {
        signals.names = given.series.map((one) => one.name);
        signals.colours = given.series.map((one) => seriesColour(one.colour));
    }
    drawLegend(chart, place);
    spec.signals = (spec.signals || []).filter((signal) => !(signal.name in signals) && signal.name !== 'palette').concat(
        [{name: 'palette', value: palette()}], Object.entries(signals).map(([name, value]) => ({name: name, value: value})));
    spec.data.forEach((set) => { if (set.name in given.data) { set.values = given.data[set.name]; } });
    silence(spec);
    spec.padding = {left: 2, right: 14, top: 4, bottom: 10};
    chart.view = new View(parse(spec, themeConfig(), {ast: true}), {
        expr: expressionInterpreter, renderer: chart.renderer || 'svg', container: place, hover: true
    });
    chart.view.tooltip(showTip).width(room);
    chart.view.run();
    if (chart.click) { chart.view.addEventListener('click', (event, item) => item && chart.click(item.datum)); }
    const drawn = place.querySelector('svg, canvas');
    const captioned = chart.figure.querySelector('figcaption');
    if (given.caption) { captioned.textContent = given.caption; }
    const caption = captioned.textContent;
    if (chart.control) {  // what can be focused has a role and a name of its own
        place.setAttribute('role', 'application');
        place.setAttribute('aria-label', caption);
    }
    drawn.setAttribute('role', 'img');
    drawn.setAttribute('aria-label', caption + ' ' + given.summary);
    if (chart.control) { chart.control(chart, place); }
}

const shown = [];
document.querySelectorAll('figure[data-chart]').forEach(function (figure) {
    const chart = Object.assign({figure: figure}, charts[figure.dataset.chart]);
    chart.given = chart.fill(page.data, page);
    if (chart.given) { shown.push(chart); }
});
page.charts = shown;

function mount(at) {
    if (at === shown.length) {
        document.documentElement.dataset.ready = 'charts';
        return;
    }
    shown[at].figure.hidden = false;
    build(shown[at]);
    setTimeout(() => mount(at + 1), 0);
}
mount(0);

const rebuild = () => shown.filter((chart) => chart.view).forEach(build);
page.themeListeners.push(rebuild);

let resizing = 0;
window.addEventListener('resize', function () {
    clearTimeout(resizing);
    resizing = setTimeout(() => shown.filter((chart) => chart.view).forEach(function (chart) {
        const room = Math.max(280, chart.figure.querySelector('.drawing').clientWidth);
        if (chart.narrow !== room < NARROW) { build(chart); } else { chart.view.width(room).runAsync(); }
    }), 150);
});

// Paper is white.
window.addEventListener('beforeprint', function () {
    before = document.documentElement.dataset.theme || '';
    document.documentElement.dataset.theme = 'light';
    rebuild();
});
window.addEventListener('afterprint', function () {
    if (before) { document.documentElement.dataset.theme = before; } else { delete document.documentElement.dataset.theme; }
    before = null;
    rebuild();
});
