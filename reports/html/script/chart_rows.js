// From the data of the page to the rows of each chart.
// The scale of memory: where little of the limit is used the axis ends above the data and the limit is said in words.
function memoryScale(most, limit, format) {
    const far = most < 0.4 * limit, end = far ? 1.25 * most : 1.04 * limit;
    const [unit, bytes] = end < 2 ** 30 ? ['MiB', 2 ** 20] : ['GiB', 2 ** 30];
    return {bytes: bytes, signals: {unit: unit, end: end / bytes, limit: far ? null : limit / bytes,
        limit_text: far ? 'limit ' + format.bytes(limit) + ' →' : 'limit'}};
}
const most = 12;  // shapes in the charts that list them

const ranked = (data) => data.details.slice(0, data.entry_count);
// Two orders of the ranks of one shape have different names; equal ones do not come twice.
const label = (entry) => entry.name;

// Times that ran for real, by place.
const measuredPlaces = (data) => new Map((data.validation || []).filter((run) => run.measured_s).map((run) => [run.place, run]));

// Shapes beside the first, which is the fastest, or the best for other reasons: how much slower each is, and what is a tie.
function distances(shapes, tie, page, words) {
    const best = shapes[0].tokens;
    shapes.forEach(function (shape, at) {
        shape.slower = 1 - shape.tokens / best;
        shape.first = at === 0;
        shape.text = at === 0 ? page.format.count(best) + ' tokens/s' + words : (shape.slower <= -0.0005 ? '−' : shape.slower < 0.0005 ? '' : '+') + page.format.percent(Math.abs(shape.slower));
    });
    const low = Math.min(...shapes.map((shape) => shape.slower)), high = Math.max(...shapes.map((shape) => shape.slower), 1.2 * (tie || 0.01));
    const close = tie === null ? 0 : shapes.filter((shape) => !shape.first && shape.slower < tie).length;
    return {
        data: {shapes: shapes}, rows: true,
        signals: {rows: shapes.length, tie: tie, ends: [Math.min(0, 1.15 * low, -0.03 * high), high]},
        summary: 'Fastest: ' + shapes[0].name + ' with ' + page.format.count(best) + ' tokens per second; ' + close + ' of the others shown are too close to call.'
    };
}

// What ran for real leads: where several did, the chart is of them.
export function ranking(data, page) {
    const ran = measuredPlaces(data), tokens = (entry) => entry.tokens_per_s * entry.step_time_s;
    if (ran.size > 1) {
        const shapes = ranked(data).filter((entry) => ran.has(entry.place)).map(function (entry) {
            const run = ran.get(entry.place);
            return {name: label(entry), place: entry.place, measured: true, tokens: tokens(entry) / run.measured_s,
                tip: label(entry) + '\nmeasured ' + page.format.seconds(run.measured_s) + ', predicted ' + page.format.seconds(entry.step_time_s)};
        }).sort((a, b) => b.tokens - a.tokens).slice(0, most);
        const caption = 'Measured: how much slower than the fastest the other plans ran, in tokens per second.' +
            (data.noise ? ' In the shaded band they differ less than repeats of one plan do.' : '');
        return {...distances(shapes, data.noise || null, page, ', measured'), caption: caption};
    }
    const entries = ranked(data).slice(0, most);
    if (entries.length < 2) { return null; }
    return distances(entries.map((entry) => ({name: label(entry), place: entry.place, measured: false, tokens: entry.tokens_per_s,
        tip: label(entry) + '\n' + page.format.count(entry.tokens_per_s) + ' tokens/s, step ' + page.format.seconds(entry.step_time_s) + ' (' +
            page.format.seconds(entry.step_time_low_s) + ' to ' + page.format.seconds(entry.step_time_high_s) + ')'})),
    data.tie_share > 0 ? data.tie_share : null, page, ran.size > 0 ? ', predicted' : '');
}

export function meshMap(data, page) {
    const cells = new Map(), axes = page.axes;
    ranked(data).forEach((entry) => cells.set(axes.map((axis) => entry.mesh[axis]).join(), {
        size: (axis) => entry.mesh[axis], tokens: entry.tokens_per_s, best: entry.place === 1,
        tip: label(entry) + '\nplace ' + entry.place + ', ' + page.format.count(entry.tokens_per_s) + ' tokens/s, ' + page.format.bytes(entry.memory.reserved_bytes)
    }));
    const shapes = data.shapes;
    (shapes.tp || []).forEach((tp, i) => cells.set(axes.map((axis) => shapes[axis][i]).join(), {
        size: (axis) => shapes[axis][i], tokens: 0, rule: data.rules[shapes.rule[i]],
        tip: axes.filter((axis) => shapes[axis][i] > 1).map((axis) => axis + '=' + shapes[axis][i]).join(',') + '\n' +
            (shapes.reason[i] >= 0 ? data.reasons[shapes.reason[i]] : 'rejected by rule ' + data.rules[shapes.rule[i]])
    }));
    if (cells.size < 2) { return null; }
    const most = Math.max(...Array.from(cells.values(), (cell) => cell.tokens)), places = new Map();
    cells.forEach(function (cell) {
        const cp = cell.size('cp'), tp = cell.size('tp');
        cell.column = cp + '×' + tp;
        cell.order = cp * 1e7 + tp;
        cell.row = cell.size('dp_replicate');
        cell.relative = most > 0 ? cell.tokens / most : 0;
        cell.text = cell.tokens > 0 ? page.format.count(cell.tokens) : {memory: 'no room', legality: 'illegal', batch: 'batch'}[cell.rule] || cell.rule;
        cell.shard = cell.size('dp_shard');
        // Shapes that differ in other axes share a place: the best or the fastest of them is drawn.
        const at = cell.column + ',' + cell.row, drawn = places.get(at);
        if (!drawn || (!drawn.best && (cell.best || cell.tokens > drawn.tokens))) { places.set(at, cell); }
    });
    const list = Array.from(places.values());
    const columns = new Set(list.map((cell) => cell.column)).size, rows = new Set(list.map((cell) => cell.row)).size;
    return {data: {cells: list}, signals: {columns: columns, rows: rows},
        summary: Array.from(cells.values()).filter((cell) => cell.tokens > 0).length + ' of ' + cells.size + ' shapes can run.'};
}

// What the legend names: terms that are something in some row, each with its colour.
function seriesOf(terms) {
    const found = new Map();
    terms.filter((term) => term.value > 0).forEach((term) => found.set(term.term, [term.order, term.colour]));
    return Array.from(found, ([name, [order, colour]]) => ({name: name, colour: colour, order: order})).sort((a, b) => a.order - b.order);
}

export function time(data, page) {
    const entries = ranked(data).slice(0, most), terms = [];
    if (entries.length === 0) { return null; }
    entries.forEach(function (entry) {
        const million = 1e6 / (entry.tokens_per_s * entry.step_time_s);
        page.timeTerms(entry).forEach(function ([term, seconds, colour], at) {
            terms.push({name: label(entry), place: entry.place, term: term, order: at, colour: colour, value: 1e3 * million * seconds,
                tip: label(entry) + '\n' + term + ': ' + page.format.seconds(seconds) + ' of ' + page.format.seconds(entry.step_time_s) + ', ' +
                    page.format.percent(seconds / entry.step_time_s)});
        });
    });
    const first = entries[0];
    return {data: {terms: terms}, rows: true, series: seriesOf(terms), signals: {rows: entries.length},
        summary: 'Of the best, compute is ' + page.format.percent(first.time.compute_s / first.step_time_s) + '.'};
}

const roleColours = ['#4477aa', '#88ccee', '#aa3377', '#ee6677', '#ccbb44', '#228833', '#66ccaa', '#999933', '#bbbbbb'];

// Stacked bars of memory, rows of {name, place, memory}.
function memoryBars(rows, data, page) {
    const scale = memoryScale(Math.max(...rows.map((row) => row.memory.reserved_bytes)), data.request.memory_limit_bytes, page.format), terms = [];
    rows.forEach((row) => page.memoryTerms(row.memory).forEach(([term, bytes], at) => terms.push({name: row.name, place: row.place, term: term, order: at,
        colour: roleColours[at], value: bytes / scale.bytes, tip: row.name + '\n' + term + ': ' + page.format.bytes(bytes) + ' of ' + page.format.bytes(row.memory.reserved_bytes)})));
    return {data: {terms: terms}, rows: true, series: seriesOf(terms), signals: {rows: rows.length, ...scale.signals}};
}

export function memory(data, page) {
    const entries = ranked(data).slice(0, most);
    if (entries.length === 0) { return null; }
    return {...memoryBars(entries.map((entry) => ({name: label(entry), place: entry.place, memory: entry.memory})), data, page),
        summary: 'The best reserves ' + page.format.bytes(entries[0].memory.reserved_bytes) + ' of ' + page.format.bytes(data.request.memory_limit_bytes) + '.'};
}

export function stageMemory(data, page) {
    const stages = data.stages ? data.stages.of : [];
    if (stages.length < 2) { return null; }
    const most = stages.reduce((a, b) => b.memory.reserved_bytes > a.memory.reserved_bytes ? b : a);
    return {...memoryBars(stages.map((one) => ({name: 'stage ' + one.stage, place: one.stage, memory: one.memory})), data, page),
        summary: 'Stage ' + most.stage + ' reserves most, ' + page.format.bytes(most.memory.reserved_bytes) + '.'};
}

export function stages(data, page) {
    if (!data.stages || data.stages.of.length < 2) { return null; }
    const blocks = [], series = [['forward', 'series-gemm'], ['recompute', 'series-optimizer'], ['loss', 'series-head'], ['backward', 'series-tp'],
        ['reduce', 'series-cp'], ['optimizer', 'series-dp_replicate'], ['waits for another stage', 'series-bubble']];
    data.stages.of.forEach((one) => one.blocks.start_ns.forEach(function (start, i) {
        const phase = one.blocks.phase[i], name = phase < 0 ? 'waits for another stage' : data.timeline.phases[phase], micro = one.blocks.micro_batch[i];
        const from = start / 1e6, to = from + one.blocks.length_ns[i] / 1e6;
        blocks.push({row: 'stage ' + one.stage, phase: name, start: from, end: to, label: phase < 0 || phase >= 4 ? '' : String(micro + 1),
            dark: name === 'forward' || name === 'loss' || name === 'backward',
            tip: 'stage ' + one.stage + ', ' + name + (phase < 0 ? '' : ', micro-batch ' + (micro + 1)) + '\n' + page.format.seconds((to - from) / 1e3)});
    }));
    const seen = new Set(blocks.map((block) => block.phase));
    return {data: {blocks: blocks}, series: series.filter(([name]) => seen.has(name)).map(([name, colour]) => ({name: name, colour: colour})),
        signals: {rows: data.stages.of.map((one) => 'stage ' + one.stage), end: 1e3 * data.stages.step_s},
        summary: data.stages.of.map((one) => 'Stage ' + one.stage + ' waits ' + page.format.percent(one.bubble_s / data.stages.step_s) + ' of the step').join(', ') + '.'};
}

export function live(data, page) {
    const curve = data.memory_curve;
    if (!curve || curve.ms.length < 3) { return null; }
    const scale = memoryScale(curve.peak.bytes, data.request.memory_limit_bytes, page.format);
    const points = [];
    curve.roles.forEach((role, at) => curve.ms.forEach((ms, i) => points.push({role: role, order: at, ms: ms, value: curve.bytes[at][i] / scale.bytes,
        tip: role + '\n' + page.format.bytes(curve.bytes[at][i]) + ' at ' + page.format.seconds(ms / 1e3)})));
    const where = 'peak ' + page.format.bytes(curve.peak.bytes) + ': ' + curve.peak.task + (curve.peak.layer > 0 ? ', layer ' + curve.peak.layer : '');
    return {data: {points: points, peak: [{ms: curve.peak.ms, value: curve.peak.bytes / scale.bytes, text: where,
        right: curve.peak.ms > curve.ms[curve.ms.length - 1] / 2}]},
    series: curve.roles.map((role, at) => ({name: role, colour: roleColours[at]})), signals: scale.signals, summary: 'The ' + where + '.'};
}

// Spans of one origin; which is 'blocks' or 'window'.
function spansOf(data, origin, which) {
    const line = data.timeline[origin];
    if (!line) { return []; }
    const from = which === 'window' && line.window ? line.window : line.blocks;
    return (from.lane || []).map(function (lane, i) {
        const phase = data.timeline.phases[from.phase[i]];
        const label = from.task ? line.tasks[from.task[i]] : {layers: phase + ' ' + from.layer[i], 'micro-batches': phase + ' ' + from.micro_batch[i]}[line.level] || phase;
        const what = from.task ? label : phase + ' (' + from.tasks[i] + ' tasks, busy ' + (from.busy_ns[i] / 1e6).toPrecision(3) + ' ms)';
        return {origin: origin, row: origin + ' · ' + line.lanes[lane], lane: line.lanes[lane], phase: phase, label: label, what: what, layer: from.layer[i],
            micro_batch: from.micro_batch[i], start: from.start_ns[i] / 1e6, end: (from.start_ns[i] + from.length_ns[i]) / 1e6};
    });
}

export function timelineSpans(data, which) {
    const spans = spansOf(data, 'simulated', which).concat(spansOf(data, 'measured', which));
    spans.forEach((span) => {
        span.tip = span.what + '\n' + span.row + ', ' + span.phase + ', layer ' + span.layer + ', micro-batch ' + span.micro_batch +
            '\n' + span.start.toFixed(3) + ' to ' + span.end.toFixed(3) + ' ms (' + (span.end - span.start).toPrecision(3) + ' ms)';
    });
    return spans;
}

const phaseColours = ['#4477aa', '#66ccee', '#aa3377', '#ee6677', '#ccbb44', '#228833'];

export function timeline(data, page) {
    const line = data.timeline.simulated;
    if (!line) { return null; }
    const spans = timelineSpans(data, 'blocks');
    const rows = [];
    ['simulated', 'measured'].forEach((origin) => (data.timeline[origin] ? data.timeline[origin].lanes : []).forEach(function (lane) {
        if (spans.some((span) => span.row === origin + ' · ' + lane)) { rows.push(origin + ' · ' + lane); }
    }));
    const end = 1e3 * Math.max(line.step_s, data.timeline.measured ? data.timeline.measured.step_s : 0);
    return {data: {spans: spans}, series: data.timeline.phases.map((phase, at) => ({name: phase, colour: phaseColours[at]})).filter((one) => spans.some((span) => span.phase === one.name)),
        signals: {rows: rows, alone: !data.timeline.measured, domain: [0, end], whole: [0, end]},
        summary: 'A step of ' + page.format.seconds(line.step_s) + ' on ' + rows.length + ' lanes.'};
}

export function front(data, page) {
    const fitting = page.rows.filter((row) => !row.rejected && row.tokens_per_s && row.reserved_bytes);
    if (fitting.length < 2) { return null; }
    const scale = memoryScale(fitting.reduce((most, row) => Math.max(most, row.reserved_bytes), 0), data.request.memory_limit_bytes, page.format);
    const points = fitting.map((row) => ({
        index: row.index, tokens: row.tokens_per_s, memory: row.reserved_bytes / scale.bytes, best: row.best,
        tip: row.mesh + '\nmicro-batch ' + row.micro_batch + ' × ' + row.grad_accum + ', recompute ' + row.recompute + '\n' +
            page.format.count(row.tokens_per_s) + ' tokens/s, ' + page.format.bytes(row.reserved_bytes)
    }));
    const byMemory = points.slice().sort((a, b) => a.memory - b.memory || b.tokens - a.tokens);
    const line = [];
    byMemory.forEach((point) => { if (line.length === 0 || point.tokens > line[line.length - 1].tokens) { line.push(point); } });
    const runs = [];
    (data.validation || []).forEach(function (run) {
        const entry = ranked(data).find((one) => one.place === run.place);
        if (entry && run.measured_s) {
            const tokens = entry.tokens_per_s * entry.step_time_s / run.measured_s;
            runs.push({memory: entry.memory.reserved_bytes / scale.bytes, predicted: entry.tokens_per_s, tokens: tokens,
                tip: run.name + '\nmeasured ' + page.format.count(tokens) + ' tokens/s, predicted ' + page.format.count(entry.tokens_per_s)});
        }
    });
    return {data: {points: points, line: line, runs: runs}, signals: scale.signals,
        summary: points.length + ' choices fit, ' + line.length + ' of them on the front.'};
}

export function measured(data, page) {
    const runs = (data.validation || []).filter((run) => run.measured_s);
    if (runs.length === 0) { return null; }
    const ends = runs.flatMap((run) => [run.predicted_low_s, run.predicted_high_s, run.measured_low_s || run.measured_s, run.measured_high_s || run.measured_s]);
    const low = Math.min(...ends) * 0.9, high = Math.max(...ends) * 1.1;
    return {
        data: {runs: runs.map((run) => ({name: String(run.place), predicted: run.predicted_s, low: run.predicted_low_s, high: run.predicted_high_s,
            measured: run.measured_s, measured_low: run.measured_low_s || run.measured_s, measured_high: run.measured_high_s || run.measured_s,
            tip: run.name + '\npredicted ' + page.format.seconds(run.predicted_s) + ', measured ' + page.format.seconds(run.measured_s) +
                '\n' + page.format.percent(run.predicted_s / run.measured_s - 1) + ' off'})),
        diagonal: [{at: low}, {at: high}]},
        signals: {ends: [low, high]}, summary: runs.length + ' measured plans.'
    };
}

export function tuning(data) {
    const steps = data.tuning || [];
    if (steps.length < 2) { return null; }
    const last = steps[steps.length - 1];
    return {data: {steps: steps.map((step) => ({...step, same: step.winner === last.winner,
        tip: 'after run ' + step.run + '\n' + step.winner + ': ' + step.probability.toFixed(2)}))},
    signals: {}, summary: 'At the end ' + last.winner + ' with ' + last.probability.toFixed(2) + '.'};
}

export function rejected(data) {
    const counts = new Map();
    const all = data.candidates;
    (all.state || []).forEach(function (state, i) {
        const name = state === 0 ? 'rejected: ' + data.rules[all.rule[i]] : ['', 'estimated only', 'simulated'][state];
        counts.set(name, (counts.get(name) || 0) + 1);
    });
    if (counts.size < 2) { return null; }
    const list = Array.from(counts, ([name, count]) => ({name: name, count: count, out: name.startsWith('rejected'), tip: name + ': ' + count}));
    return {data: {groups: list}, rows: true, signals: {rows: list.length, most: Math.max(...list.map((group) => group.count))}, summary: list.map((group) => group.name + ' ' + group.count).join(', ') + '.'};
}

export function tornado(data, page) {
    const rows = data.sensitivities || [], bars = [];
    rows.forEach((row) => ['less', 'more'].forEach(function (side) {
        const end = row[side];
        if (end) {
            const text = (end.change < -0.0005 ? '−' : '+') + page.format.percent(Math.abs(end.change));
            bars.push({name: row.sentence, more: side === 'more', change: end.change, text: '×' + end.factor.toFixed(2) + ': ' + text,
                tip: row.sentence + ' × ' + end.factor.toFixed(2) + '\n' + text + ' time per token' + (end.feasible ? '' : ', does not fit')});
        }
    }));
    if (bars.length === 0) { return null; }
    const most = Math.max(...bars.map((bar) => Math.abs(bar.change)), 0.01);
    return {data: {moves: bars}, rows: true, signals: {rows: rows.length, ends: [-most, most]},
        summary: 'Most of all on: ' + rows[0].sentence + '.'};
}
