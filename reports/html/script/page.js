// What the page can do without charts: theme, copying, printing, and the table of candidates.
(function () {
    'use strict';
    const byId = (id) => document.getElementById(id);
    const data = JSON.parse(byId('report-data').textContent);
    window.ndtune = {data: data, themeListeners: []};

    // ---- numbers, as ndtune's own tables write them (sim/base/text.c): three significant digits
    const digits = (value) => value.toFixed(Math.abs(value) < 9.995 ? 2 : Math.abs(value) < 99.95 ? 1 : 0);
    function scaled(value, units) {  // the largest unit of which it is at least one
        const unit = units.find((one) => Math.abs(value) >= 0.9995 * one[0]) || units[units.length - 1];
        return digits(value / unit[0]) + ' ' + unit[1];
    }
    const format = {
        count: (n) => Math.abs(n) < 999.5 ? n.toFixed(Number.isInteger(n) ? 0 : 1) : scaled(n, [[1e12, 'T'], [1e9, 'B'], [1e6, 'M'], [1e3, 'k']]),
        seconds: (s) => s === 0 ? '0 s' : scaled(s, [[1, 's'], [1e-3, 'ms'], [1e-6, 'us'], [1e-9, 'ns']]),
        bytes: (b) => Math.abs(b) < 1023.5 ? b.toFixed(0) + ' B' : scaled(b, [[2 ** 50, 'PiB'], [2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB']]),
        percent: (x) => (100 * x).toFixed(1) + ' %'
    };
    window.ndtune.format = format;

    // ---- what a step and its memory are made of: [name, seconds or bytes]
    const axes = data.axes;
    const computeTerms = (time, by) => !by ? [['compute', time.compute_s, 'series-compute']]
        : ['gemm', 'attention', 'memory-bound', 'head'].map((kind) => [{gemm: 'GEMM'}[kind] || kind, by[kind], 'series-' + kind]);
    const timeTerms = ({time, compute_by: by}) => computeTerms(time, by).concat(
        axes.map((axis) => ['exposed ' + axis, time.exposed_communication_s[axis], 'series-' + axis]),
        [['optimizer', time.optimizer_s, 'series-optimizer'], ['bubble', time.bubble_s, 'series-bubble'], ['overhead', time.overhead_s, 'series-overhead']]);
    const memoryTerms = (memory) => ['parameters', 'gradients', 'optimizer', 'activations', 'logits', 'gathered_parameters', 'communication', 'runtime']
        .map((key) => [key.replace('_', ' '), memory[key]]).concat([['allocator, context', memory.reserved_bytes - memory.peak_bytes]]);
    Object.assign(window.ndtune, {axes: axes, timeTerms: timeTerms, memoryTerms: memoryTerms});

    // ---- theme
    const root = document.documentElement, themeSwitch = byId('theme-switch');
    const systemDark = window.matchMedia('(prefers-color-scheme: dark)');
    const isDark = () => (root.dataset.theme || (systemDark.matches ? 'dark' : 'light')) === 'dark';
    function showTheme() {
        themeSwitch.textContent = isDark() ? 'Light' : 'Dark';
        themeSwitch.setAttribute('aria-pressed', String(isDark()));
        themeSwitch.setAttribute('aria-label', 'Switch to the ' + (isDark() ? 'light' : 'dark') + ' theme');
        window.ndtune.themeListeners.forEach((listener) => listener());
    }
    try {
        const kept = localStorage.getItem('ndtune-theme');
        if (kept === 'dark' || kept === 'light') { root.dataset.theme = kept; }
    } catch (e) { /* a page from disk may have no storage: the system decides */ }
    themeSwitch.addEventListener('click', function () {
        root.dataset.theme = isDark() ? 'light' : 'dark';
        try { localStorage.setItem('ndtune-theme', root.dataset.theme); } catch (e) { /* not kept */ }
        showTheme();
    });
    systemDark.addEventListener('change', showTheme);
    byId('print-page').addEventListener('click', () => window.print());
    byId('tools').hidden = false;
    showTheme();

    // ---- copying
    function copyByHand(text) {
        const area = document.createElement('textarea');
        area.value = text;
        document.body.appendChild(area);
        area.select();
        const done = document.execCommand('copy');
        area.remove();
        return done ? Promise.resolve() : Promise.reject(new Error('copying is not allowed'));
    }
    document.querySelectorAll('.copy').forEach(function (button) {
        button.hidden = false;
        button.addEventListener('click', function () {
            const text = byId(button.dataset.copy).textContent;
            const copied = navigator.clipboard ? navigator.clipboard.writeText(text).catch(() => copyByHand(text)) : copyByHand(text);
            copied.then(() => { button.textContent = 'Copied'; }, () => { button.textContent = 'Select it and press Ctrl+C'; })
                .then(() => setTimeout(() => { button.textContent = 'Copy'; }, 2000));
        });
    });

    // ---- where the reader is
    const links = new Map();
    document.querySelectorAll('.contents a').forEach((a) => a.dataset.sections.split(' ').forEach((section) => links.set(section, a)));
    if ('IntersectionObserver' in window) {
        const watcher = new IntersectionObserver(function (entries) {
            entries.forEach(function (entry) {
                if (entry.isIntersecting) {
                    links.forEach((link) => link.removeAttribute('aria-current'));
                    links.get(entry.target.id).setAttribute('aria-current', 'true');
                }
            });
        }, {rootMargin: '-15% 0px -75% 0px'});
        document.querySelectorAll('main section').forEach((section) => watcher.observe(section));
    }

    // ---- candidates
    const all = data.candidates, count = all.tp ? all.tp.length : 0;
    const page = 50, limit = data.request.memory_limit_bytes;
    const rows = [];
    const seen = new Set();
    for (let i = 0; i < count; i++) {
        const mesh = axes.filter((axis) => all[axis][i] > 1).map((axis) => axis + '=' + all[axis][i]).join(',') || 'dp_shard=1';
        const rejected = all.state[i] === 0;
        const row = {
            index: i, mesh: mesh + (all.order[i] ? ' by ' + all.order[i] : ''), rejected: rejected,
            micro_batch: all.micro_batch[i], grad_accum: all.grad_accum[i], recompute: data.recompute_names[all.recompute[i]],
            reshard: all.reshard[i] < 0 ? '–' : data.reshard_names[all.reshard[i]],
            rotate: all.rotate[i] < 0 ? '–' : data.rotate_names[all.rotate[i]], more: all.more[i] || '',
            step_s: all.step_s[i], tokens_per_s: all.tokens_per_s[i], reserved_bytes: all.reserved_bytes[i],
            state: ['rejected', 'estimated', 'simulated'][all.state[i]], best: !seen.has(mesh),
            reason: all.reason[i] >= 0 ? data.reasons[all.reason[i]] : all.reason[i] === -2 ? 'rule ' + data.rules[all.rule[i]] : '',
            detail: all.detail[i] >= 0 ? data.details[all.detail[i]] : null
        };
        seen.add(mesh);
        row.words = [row.mesh, 'micro-batch=' + row.micro_batch, 'accum=' + row.grad_accum, 'recompute=' + row.recompute,
            'reshard=' + row.reshard, 'rotate=' + row.rotate, row.more, row.state, row.reason].join(' ').toLowerCase();
        rows.push(row);
    }
    window.ndtune.rows = rows;
    const columns = [
        {key: 'mesh', name: 'mesh'}, {key: 'micro_batch', name: 'micro-batch', number: true},
        {key: 'grad_accum', name: 'accumulation', number: true}, {key: 'recompute', name: 'recompute'},
        {key: 'reshard', name: 'reshard'}, {key: 'rotate', name: 'rotate'},
        {key: 'step_s', name: 'step', number: true, show: (r) => r.step_s ? format.seconds(r.step_s) : '–'},
        {key: 'tokens_per_s', name: 'tokens/s', number: true, show: (r) => r.tokens_per_s ? format.count(r.tokens_per_s) : '–'},
        {key: 'reserved_bytes', name: 'memory', number: true, show: (r) => r.reserved_bytes ? format.bytes(r.reserved_bytes) : '–'},
        {key: 'state', name: 'state', show: (r) => r.rejected ? r.reason || r.state : r.state}
    ];
    if (rows.some((row) => row.more)) { columns.splice(6, 0, {key: 'more', name: 'besides'}); }
    const state = {sort: null, descending: false, page: 0, selected: -1, shown: []};

    function element(name, attributes, text) {
        const made = document.createElement(name);
        Object.entries(attributes || {}).forEach(([key, value]) => made.setAttribute(key, value));
        if (text !== undefined) { made.textContent = text; }
        return made;
    }

    function compare(a, b) {
        const x = a[state.sort], y = b[state.sort];
        const order = x === y ? 0 : x === null ? 1 : y === null ? -1 : typeof x === 'string' ? x.localeCompare(y, 'en', {numeric: true}) : x - y;
        return (state.descending && x !== null && y !== null ? -order : order) || a.index - b.index;
    }

    function choose() {
        const words = byId('candidate-filter').value.toLowerCase().split(/[\s]+/).filter(Boolean);
        const wanted = byId('candidate-state').value, best = byId('candidate-best').checked;
        state.shown = rows.filter((row) => (wanted === 'all' || row.rejected === (wanted === 'rejected')) &&
            (!best || row.best) && words.every((word) => (' ' + row.words.replace(/,/g, ' ') + ' ').includes(word.includes('=') ? ' ' + word + ' ' : word)));
        if (state.sort) { state.shown.sort(compare); }
        state.page = 0;
        draw();
    }

    function heading(column) {
        const sorted = state.sort === column.key;
        const th = element('th', {scope: 'col', 'data-column': column.key});
        if (column.number) { th.className = 'number'; }
        th.setAttribute('aria-sort', sorted ? (state.descending ? 'descending' : 'ascending') : 'none');
        const button = element('button', {type: 'button'}, column.name);
        button.addEventListener('click', function () {
            state.descending = sorted ? !state.descending : column.key === 'tokens_per_s';
            state.sort = column.key;
            choose();
            byId('candidate-table').querySelector('th[data-column="' + column.key + '"] button').focus();
        });
        th.appendChild(button);
        return th;
    }

    function bodyRow(row) {
        const tr = element('tr', {'data-candidate': row.index, 'aria-selected': String(row.index === state.selected)});
        columns.forEach(function (column, at) {
            const cell = element(at === 0 ? 'th' : 'td', at === 0 ? {scope: 'row'} : {});
            if (column.number) { cell.className = 'number'; }
            const text = column.show ? column.show(row) : String(row[column.key]);
            if (at === 0) {
                const open = element('button', {type: 'button', 'aria-controls': 'candidate-detail'}, text);
                open.addEventListener('click', () => select(row.index));
                cell.appendChild(open);
            } else {
                cell.textContent = text;
            }
            tr.appendChild(cell);
        });
        return tr;
    }

    function draw() {
        const table = element('table', {id: 'table-candidates'}), head = element('tr'), body = element('tbody');
        table.appendChild(element('caption', {}, 'Candidates; a heading sorts, a mesh opens the candidate'));
        columns.forEach((column) => head.appendChild(heading(column)));
        table.appendChild(element('thead')).appendChild(head);
        state.shown.slice(state.page * page, (state.page + 1) * page).forEach((row) => body.appendChild(bodyRow(row)));
        table.appendChild(body);
        const frame = element('div', {'class': 'scroll', tabindex: '0', role: 'group', 'aria-label': 'Candidates'});
        frame.appendChild(table);
        byId('candidate-table').replaceChildren(frame);
        byId('candidate-count').textContent = state.shown.length + ' of ' + count + ' candidates';
        drawPager();
    }

    function drawPager() {
        const pages = Math.max(1, Math.ceil(state.shown.length / page)), pager = byId('candidate-pager');
        pager.hidden = pages === 1;
        const step = (name, by) => {
            const button = element('button', {type: 'button', 'data-page': by < 0 ? 'previous' : 'next'}, name);
            button.disabled = state.page + by < 0 || state.page + by >= pages;
            button.addEventListener('click', () => { state.page += by; draw(); });
            return button;
        };
        pager.replaceChildren(step('Previous', -1), step('Next', 1), element('output', {}, 'page ' + (state.page + 1) + ' of ' + pages));
    }

    function terms(caption, entries, total, show) {
        const table = element('table');
        table.appendChild(element('caption', {}, caption));
        const body = element('tbody');
        entries.filter((entry) => entry[1] > 0).forEach(function (entry) {
            const tr = element('tr'), bar = element('td');
            tr.appendChild(element('th', {scope: 'row'}, entry[0]));
            tr.appendChild(element('td', {'class': 'number'}, show(entry[1])));
            bar.appendChild(element('meter', {min: '0', max: String(total), value: String(entry[1]), 'aria-label': entry[0]}));
            tr.appendChild(bar);
            body.appendChild(tr);
        });
        table.appendChild(body);
        return table;
    }

    // What the request's own command line says, in its own quotes: such words can be pasted into a shell again.
    const asked = data.request.command.match(/(?:'[^']*'|\\'|[^\s'])+/g) || [];
    function said(option) {  // the values of an option, those of a list together
        const values = [];
        asked.forEach(function (word, at) {
            if (word.startsWith(option + '=')) { values.push(word.slice(option.length + 1)); }
            for (let i = at + 1; word === option && i < asked.length && !asked[i].startsWith('--'); i++) { values.push(asked[i]); }
        });
        return values;
    }
    const quoted = (word) => /^[\w@%+=:,./-]+$/.test(word) ? word : "'" + word.replace(/'/g, "'\\''") + "'";

    function command(row) {
        const words = ['ndtune predict --mesh', row.mesh.split(' by ')[0]];
        if (row.mesh.includes(' by ')) { words.push('--rank-order', row.mesh.split(' by ')[1]); }
        words.push('--model', said('--model')[0] || quoted(data.request.model_asked), '--cluster', said('--cluster')[0] || quoted(data.request.cluster),
            '--target', data.request.target + '@' + data.request.target_version, '--seq', data.request.seq, '--precision', data.request.precision,
            '--micro-batch', row.micro_batch, '--grad-accum', row.grad_accum, '--recompute', row.recompute);
        if (row.reshard !== '–') { words.push('--reshard', row.reshard); }
        if (row.rotate !== '–') { words.push('--cp-rotate', row.rotate); }
        if (row.more) { words.push(row.more); }
        const line = words.join(' ') + ' ';
        data.kept.filter((option) => !line.includes(' ' + option + ' '))
            .forEach((option) => said(option).forEach((value) => words.push(option, value)));
        return words.join(' ');
    }

    function select(index) {
        const row = rows[index], box = byId('candidate-detail'), detail = row.detail;
        state.selected = index;
        document.querySelectorAll('#candidate-table tbody tr').forEach((tr) =>
            tr.setAttribute('aria-selected', String(Number(tr.dataset.candidate) === index)));
        const shown = [element('h3', {}, row.mesh + ', micro-batch ' + row.micro_batch + ' × ' + row.grad_accum + ', recompute ' + row.recompute)];
        if (row.rejected) { shown.push(element('p', {'class': 'warning'}, 'Rejected: ' + (row.reason || 'no reason kept'))); }
        if (detail) {
            shown.push(element('p', {}, 'Step ' + format.seconds(detail.step_time_s) + ' (' + format.seconds(detail.step_time_low_s) + ' to ' +
                format.seconds(detail.step_time_high_s) + '), ' + format.count(detail.tokens_per_s) + ' tokens/s, MFU ' + format.percent(detail.mfu) +
                ', global batch ' + detail.plan.global_batch + ' sequences.'));
            const pair = element('div', {'class': 'pair'});
            pair.appendChild(terms('Time of a step', timeTerms(detail), detail.step_time_s, format.seconds));
            pair.appendChild(terms('Memory at the peak', memoryTerms(detail.memory), limit, format.bytes));
            shown.push(pair);
            detail.warnings.forEach((warning) => shown.push(element('p', {'class': 'warning'}, warning)));
        } else if (!row.rejected) {
            shown.push(element('p', {}, 'Estimated: step ' + (row.step_s ? format.seconds(row.step_s) : 'unknown') + ', memory ' +
                (row.reserved_bytes ? format.bytes(row.reserved_bytes) : 'unknown') + '. The command below gives it in full.'));
        }
        const line = element('p');
        line.appendChild(element('code', {}, command(row)));
        shown.push(line);
        box.replaceChildren(...shown);
        box.hidden = false;
        box.scrollIntoView({block: 'nearest'});
    }
    window.ndtune.select = select;

    if (count > 0) {
        ['candidate-tools', 'candidate-table'].forEach((id) => { byId(id).hidden = false; });
        byId('ranking-static').hidden = true;
        if (!rows.some((row) => !row.rejected)) { byId('candidate-state').value = 'all'; }
        byId('candidate-filter').addEventListener('input', choose);
        byId('candidate-state').addEventListener('change', choose);
        byId('candidate-best').addEventListener('change', choose);
        choose();
    }
    root.dataset.ready = 'page';
}());
