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

export function ranking(data, page) {
    const entries = ranked(data).slice(0, most);
    if (entries.length === 0) { return null; }
    return {
        data: {shapes: entries.map(function (entry) {
            const tokens = entry.tokens_per_s * entry.step_time_s;
            const low = tokens / entry.step_time_high_s, high = tokens / entry.step_time_low_s;
            return {name: label(entry), place: entry.place, tokens: entry.tokens_per_s, low: low, high: high,
                tip: label(entry) + '\n' + page.format.count(entry.tokens_per_s) + ' tokens/s, ' + page.format.count(low) + ' to ' + page.format.count(high)};
        })},
        signals: {rows: entries.length},
        summary: 'Fastest: ' + label(entries[0]) + ' with ' + page.format.count(entries[0].tokens_per_s) + ' tokens per second.'
    };
}

export function meshMap(data, page) {
    const cells = new Map(), axes = page.axes;
    ranked(data).forEach((entry) => cells.set(axes.map((axis) => entry.mesh[axis]).join(), {
        size: (axis) => entry.mesh[axis], tokens: entry.tokens_per_s,
        tip: label(entry) + '\nplace ' + entry.place + ', ' + page.format.count(entry.tokens_per_s) + ' tokens/s, ' + page.format.bytes(entry.memory.reserved_bytes)
    }));
    const shapes = data.shapes;
    (shapes.tp || []).forEach((tp, i) => cells.set(axes.map((axis) => shapes[axis][i]).join(), {
        size: (axis) => shapes[axis][i], tokens: 0, rule: data.rules[shapes.rule[i]],
        tip: axes.filter((axis) => shapes[axis][i] > 1).map((axis) => axis + '=' + shapes[axis][i]).join(',') + '\n' +
            (shapes.reason[i] >= 0 ? data.reasons[shapes.reason[i]] : 'rejected by rule ' + data.rules[shapes.rule[i]])
    }));
    if (cells.size < 2) { return null; }
    const list = Array.from(cells.values()), best = Math.max(...list.map((cell) => cell.tokens));
    list.forEach(function (cell) {
        const cp = cell.size('cp'), tp = cell.size('tp');
        cell.column = cp + '×' + tp;
        cell.order = cp * 1e7 + tp;
        cell.row = cell.size('dp_replicate');
        cell.relative = best > 0 ? cell.tokens / best : 0;
        cell.text = cell.tokens > 0 ? page.format.count(cell.tokens) : {memory: 'no room', legality: 'illegal', batch: 'batch'}[cell.rule] || cell.rule;
        cell.shard = cell.size('dp_shard');
    });
    const columns = new Set(list.map((cell) => cell.column)).size, rows = new Set(list.map((cell) => cell.row)).size;
    return {data: {cells: list}, signals: {columns: columns, rows: rows},
        summary: list.filter((cell) => cell.tokens > 0).length + ' of ' + list.length + ' shapes can run.'};
}

export function time(data, page) {
    const entries = ranked(data).slice(0, most), terms = [];
    if (entries.length === 0) { return null; }
    entries.forEach(function (entry) {
        const million = 1e6 / (entry.tokens_per_s * entry.step_time_s);
        page.timeTerms(entry.time).forEach(function ([term, seconds], at) {
            terms.push({name: label(entry), place: entry.place, term: term, order: at, value: 1e3 * million * seconds,
                tip: label(entry) + '\n' + term + ': ' + page.format.seconds(seconds) + ' of ' + page.format.seconds(entry.step_time_s) + ', ' +
                    page.format.percent(seconds / entry.step_time_s)});
        });
    });
    const first = entries[0];
    return {data: {terms: terms}, signals: {rows: entries.length, names: page.timeTerms(first.time).map((term) => term[0])},
        summary: 'Of the best, compute is ' + page.format.percent(first.time.compute_s / first.step_time_s) + '.'};
}

export function memory(data, page) {
    const entries = ranked(data).slice(0, most), terms = [];
    if (entries.length === 0) { return null; }
    const scale = memoryScale(Math.max(...entries.map((entry) => entry.memory.reserved_bytes)), data.request.memory_limit_bytes, page.format);
    entries.forEach(function (entry) {
        page.memoryTerms(entry.memory).forEach(([term, bytes], at) => terms.push({name: label(entry), place: entry.place, term: term, order: at,
            value: bytes / scale.bytes, tip: label(entry) + '\n' + term + ': ' + page.format.bytes(bytes) + ' of ' + page.format.bytes(entry.memory.reserved_bytes)}));
    });
    return {data: {terms: terms}, signals: {rows: entries.length, names: page.memoryTerms(entries[0].memory).map((term) => term[0]), ...scale.signals},
        summary: 'The best reserves ' + page.format.bytes(entries[0].memory.reserved_bytes) + ' of ' + page.format.bytes(data.request.memory_limit_bytes) + '.'};
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
    signals: {names: curve.roles, ...scale.signals}, summary: 'The ' + where + '.'};
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

export function timeline(data, page) {
    const line = data.timeline.simulated;
    if (!line) { return null; }
    const spans = timelineSpans(data, 'blocks');
    const rows = [];
    ['simulated', 'measured'].forEach((origin) => (data.timeline[origin] ? data.timeline[origin].lanes : []).forEach(function (lane) {
        if (spans.some((span) => span.row === origin + ' · ' + lane)) { rows.push(origin + ' · ' + lane); }
    }));
    const end = 1e3 * Math.max(line.step_s, data.timeline.measured ? data.timeline.measured.step_s : 0);
    return {data: {spans: spans}, signals: {rows: rows, phases: data.timeline.phases, domain: [0, end], whole: [0, end]},
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
    return {data: {groups: list}, signals: {rows: list.length}, summary: list.map((group) => group.name + ' ' + group.count).join(', ') + '.'};
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
    return {data: {moves: bars}, signals: {rows: rows.length, ends: [-1.35 * most, 1.35 * most]},
        summary: 'Most of all on: ' + rows[0].sentence + '.'};
}
