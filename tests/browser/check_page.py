"""The HTML report in a real browser: python3 check_page.py NDTUNE [long]. Exit 77 with a reason where there is no browser.
With "long" every page is looked at on every screen, in both themes and on paper; without, one page is, in bounded time.

Pixels are those of screenshots, counted in the page itself: the browser decodes them. Nothing is asserted on time but that the
page of 5,000 candidates can be used within ten seconds; how long it took is printed.
"""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import traceback

from webdriver import Browser, NoBrowser

SKIPPED = 77
STOPPED = pathlib.Path(__file__).parents[1] / "golden" / "blame" / "stopped"
CHARTS = {"ranking": 4, "mesh-map": 6, "time": 4, "memory": 4, "timeline": 4, "front": 3, "rejected": 2,
          "tornado": 2}  # least colours

# The distinct colours of a PNG that cover more than a trace of it, and the share of pixels unlike the corner.
COUNT_PIXELS = """
const done = arguments[arguments.length - 1], picture = new Image();
picture.onload = function () {
    const canvas = document.createElement('canvas');
    canvas.width = picture.width; canvas.height = picture.height;
    const context = canvas.getContext('2d');
    context.drawImage(picture, 0, 0);
    const bytes = context.getImageData(0, 0, canvas.width, canvas.height).data, counts = new Uint32Array(1 << 12);
    let sum = 0;
    for (let i = 0; i < bytes.length; i += 4) {
        counts[bytes[i] >> 4 << 8 | bytes[i + 1] >> 4 << 4 | bytes[i + 2] >> 4]++;
        sum += bytes[i] + bytes[i + 1] + bytes[i + 2];
    }
    const pixels = bytes.length / 4, most = Math.max(...counts);
    const colours = counts.filter((count) => count > pixels / 5000).length;
    done({colours: colours, drawn: 1 - most / pixels, light: sum / pixels / 765});
};
picture.onerror = () => done(null);
picture.src = 'data:image/png;base64,' + arguments[0];
"""


class Page:
    def __init__(self, browser, folder, ndtune):
        self.browser, self.folder, self.ndtune = browser, pathlib.Path(folder), ndtune

    def make(self, name, *words, command="report", codes=(0,)):
        file = self.folder / (name + ".html")
        words = [self.ndtune, command, *words, "--html", str(file), "--db", str(self.folder / "test.db")]
        made = subprocess.run(words, capture_output=True, text=True, timeout=600)
        assert made.returncode in codes, f"{' '.join(words)}: {made.stderr}"
        return file

    def open(self, file):
        start = time.monotonic()
        self.browser.open(file.as_uri())
        self.browser.wait("the charts", "document.documentElement.dataset.ready === 'charts'")
        return time.monotonic() - start

    def quiet(self):
        complaints = self.browser.complaints()
        assert not complaints, complaints
        asked = self.browser.run("return performance.getEntriesByType('resource').map((e) => e.name)")
        assert not [name for name in asked if not name.startswith(("data:", "blob:"))], asked

    def pixels(self, selector):
        return self.count(self.browser.picture(selector))

    def count(self, picture):
        counted = self.browser.run_until_called(COUNT_PIXELS, picture)
        assert counted, "no picture"
        return counted

    def cells(self, column):
        return self.browser.run("""
            const place = [...document.querySelectorAll('#table-candidates thead th')].findIndex(
                (th) => th.dataset.column === arguments[0]);
            return [...document.querySelectorAll('#table-candidates tbody tr')].map((tr) => tr.children[place].textContent);
        """, column)

    def shown(self, key):
        """A value of the rows that the table shows, as numbers."""
        return self.browser.run("""
            return [...document.querySelectorAll('#table-candidates tbody tr')].map(
                (tr) => window.ndtune.rows[Number(tr.dataset.candidate)][arguments[0]]);
        """, key)


def eight_charts_are_drawn_and_named(page):
    for name, colours in CHARTS.items():
        figure = f"figure[data-chart={name}]"
        assert page.browser.run("return !document.querySelector(arguments[0]).hidden", figure), f"{name} is hidden"
        label = page.browser.run("""
            const drawn = document.querySelector(arguments[0] + ' .drawing').querySelector('svg, canvas');
            return drawn && drawn.getAttribute('role') === 'img' ? drawn.getAttribute('aria-label') : '';
        """, figure)
        assert len(label) > 40, f"{name} has no description: {label}"
        counted = page.pixels(figure + " .drawing")
        assert counted["colours"] >= colours and counted["drawn"] > 0.01, f"{name}: {counted}"
    page.quiet()


def the_marks_of_a_chart_are_those_of_its_data(page):
    bars = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'ranking');
        return [chart.given.data, chart.figure.querySelectorAll('svg .mark-rect path, svg .mark-symbol path').length];
    """)
    rows = max(len(rows) for rows in bars[0].values())
    assert rows > 1 and bars[1] >= rows, f"{rows} rows, {bars[1]} marks"


def the_ranks_stand_on_their_nodes(page):
    drawn = page.browser.run("""
        const svg = document.querySelector('#topology svg');
        return [svg.getAttribute('role'), document.getElementById(svg.getAttribute('aria-labelledby')).textContent,
                svg.querySelectorAll('rect.node').length, svg.querySelectorAll('rect:not(.node)').length];
    """)
    assert drawn[0] == "img" and len(drawn[1]) > 40, drawn
    assert drawn[2:] == [2, 16], drawn  # nodes, ranks
    counted = page.pixels("#topology svg")
    assert counted["colours"] >= 3 and counted["drawn"] > 0.01, counted
    page.quiet()


def a_heading_sorts(page):
    heading = "#table-candidates th[data-column={}] button"
    for key, falls in (("tokens_per_s", True), ("tokens_per_s", False), ("reserved_bytes", False)):
        page.browser.click(heading.format(key))
        values = [value for value in page.shown(key) if value is not None]
        assert len(values) > 5 and values == sorted(values, reverse=falls), f"{key}: {values}"
        said = page.browser.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')",
                                f"#table-candidates th[data-column={key}]")
        assert said == ("descending" if falls else "ascending"), said


def a_filter_leaves_what_matches(page):
    page.browser.type("#candidate-filter", "tp=2")
    page.browser.wait("a filtered table", "document.getElementById('candidate-count').textContent.startsWith(" +
                      "window.ndtune.rows.filter((r) => !r.rejected && r.best && /\\btp=2\\b/.test(r.mesh)).length + ' of')")
    meshes = page.cells("mesh")
    assert meshes and all("tp=2" in mesh.split(" ")[0].split(",") for mesh in meshes), meshes
    page.browser.clear("#candidate-filter")
    page.browser.run("document.getElementById('candidate-filter').dispatchEvent(new Event('input', {bubbles: true}))")
    page.browser.run("""
        const state = document.getElementById('candidate-state');
        state.value = 'rejected'; state.dispatchEvent(new Event('change', {bubbles: true}));
        const best = document.getElementById('candidate-best'); if (best.checked) { best.click(); }
    """)
    reasons = page.cells("state")
    assert reasons and all(len(reason) > 10 for reason in reasons), reasons
    page.browser.run("""
        const state = document.getElementById('candidate-state');
        state.value = 'fits'; state.dispatchEvent(new Event('change', {bubbles: true}));
    """)


def a_mesh_opens_its_candidate(page):
    heading = "#table-candidates th[data-column=tokens_per_s]"
    page.browser.click(heading + " button")
    if page.browser.run("return document.querySelector(arguments[0]).getAttribute('aria-sort')", heading) == "ascending":
        page.browser.click(heading + " button")
    mesh = page.cells("mesh")[0]  # the fastest, which the page knows in full
    page.browser.click("#table-candidates tbody tr:first-child th button")
    text = page.browser.run("const box = document.getElementById('candidate-detail'); return box.hidden ? '' : box.innerText")
    assert mesh.split(" ")[0] in text and "ndtune predict --mesh" in text and "Memory at the peak" in text, text
    assert "--memory-limit 70GiB" in text, text  # what the request said of every candidate
    command = re.search("ndtune (predict --mesh .*)", text)[1]
    one = json.loads(subprocess.run([page.ndtune, *shlex.split(command), "--format", "json"], capture_output=True).stdout)
    step = page.browser.run("const tr = document.querySelector('#table-candidates tbody tr:first-child');"
                            "return window.ndtune.rows.find((row) => row.index === Number(tr.dataset.candidate)).detail.step_time_s")
    assert abs(one["step_time_s"] - step) < 1e-9 * step, (command, one["step_time_s"], step)
    meters = page.browser.run("return document.querySelectorAll('#candidate-detail meter').length")
    assert meters > 4, meters


def the_timeline_zooms(page):
    span = "const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'timeline');" \
           "const domain = chart.view.signal('domain'); return domain[1] - domain[0];"
    whole, before = page.browser.run(span), page.browser.picture("figure[data-chart=timeline] .drawing")
    page.browser.click("#timeline-in")
    assert abs(page.browser.run(span) - whole / 2) < 1e-6 * whole
    assert page.browser.picture("figure[data-chart=timeline] .drawing") != before
    page.browser.type("figure[data-chart=timeline] .drawing", "+")
    assert abs(page.browser.run(span) - whole / 4) < 1e-6 * whole
    page.browser.click("#timeline-all")
    assert abs(page.browser.run(span) - whole) < 1e-6 * whole
    page.quiet()


# Texts of drawings that are cut by the screen or lie over each other, and marks without a size.
DRAWN = """
    const found = [];
    document.querySelectorAll('figure[data-chart]:not([hidden])').forEach(function (figure) {
        const name = figure.dataset.chart, place = figure.querySelector('.drawing').getBoundingClientRect();
        const boxes = [...figure.querySelectorAll('.drawing svg text')].filter((text) => text.textContent.trim()).map(
            (text) => [text.textContent, text.getBoundingClientRect()]);
        boxes.forEach(function ([text, box]) {
            if (box.left < place.left - 1 || box.right > place.right + 1) { found.push(name + ': cut: ' + text); }
        });
        figure.querySelectorAll('.legend li').forEach(function (item) {
            if (item.getBoundingClientRect().right > document.documentElement.clientWidth) { found.push(name + ': legend: ' + item.textContent); }
        });
        const names = boxes.filter(([text]) => /^(dp_|pp=|cp=|tp=|stage )/.test(text));
        names.forEach(([text, a], i) => names.slice(i + 1).forEach(function ([other, b]) {
            if (a.left < b.right && b.left < a.right && a.top < b.bottom - 2 && b.top < a.bottom - 2) { found.push(name + ': ' + text + ' over ' + other); }
        }));
    });
    ['time', 'memory'].forEach(function (name) {
        const bars = [...document.querySelectorAll('figure[data-chart=' + name + '] .drawing svg .mark-rect path')];
        const widest = Math.max(0, ...bars.map((bar) => bar.getBoundingClientRect().width));
        if (widest < 0.25 * document.documentElement.clientWidth) { found.push(name + ': widest bar ' + widest); }
    });
    return found;
"""


def at_every_width_nothing_is_cut(page, widths=((390, "dark"), (768, "light"), (1280, "light"))):
    """Waits until the charts are as wide as the screen: they are drawn again a moment after it changes."""
    for width, scheme in widths:
        page.browser.look(width, scheme)
        page.browser.wait(f"charts of a screen of {width}", """
            [...document.querySelectorAll('figure[data-chart]:not([hidden]) .drawing')].every((place) =>
                Math.abs(place.querySelector('svg, canvas').getBoundingClientRect().width - place.clientWidth) < 2)""")
        needed, room = page.browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert needed <= room, f"{needed} pixels wide on a screen of {room}"
        found = page.browser.run(DRAWN)
        assert not found, f"at {width}: {found}"
        light = page.pixels(".cards")["light"]
        assert light < 0.4 if scheme == "dark" else light > 0.8, f"{scheme} at {width}: {light}"
    page.quiet()
    page.browser.look(1280, "light")


def tiles_stand_two_by_two_on_a_phone(page):
    page.browser.look(390, "light")
    left = page.browser.run("return [...document.querySelectorAll('.card')].map((card) => Math.round(card.getBoundingClientRect().left))")
    assert len(left) >= 4 and len(set(left)) == 2 and left[0] != left[1], left
    page.browser.look(1280, "light")


def six_groups_lead_to_every_section(page):
    groups = page.browser.run("""
        return [...document.querySelectorAll('.contents a')].map((a) => [a.hash.slice(1), a.dataset.sections.split(' ')]);
    """)
    sections = page.browser.run("return [...document.querySelectorAll('main section')].map((section) => section.id)")
    assert len(groups) == 6 and all(first == named[0] for first, named in groups), groups
    assert [section for _, named in groups for section in named] == sections, f"{groups} and {sections}"


def the_tie_is_shaded_as_far_as_it_goes(page):
    tie, ends, slower, band, width = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'ranking'), given = chart.given;
        const band = chart.figure.querySelector('svg .tie-band path').getBoundingClientRect();
        const scale = chart.view.scale('x');
        return [given.signals.tie, given.signals.ends, given.data.shapes.map((shape) => shape.slower), band.width,
                scale(given.signals.tie) - scale(Math.max(-given.signals.tie, given.signals.ends[0]))];
    """)
    assert tie == 0.05 and slower[0] == 0 and sum(one < tie for one in slower) > 1, (tie, slower)
    assert abs(band - width) < 2 and ends[1] >= max(slower), (band, width, ends)


def the_map_marks_the_first_of_the_ranking(page):
    marked, first, twice = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'mesh-map');
        const cells = chart.given.data.cells, places = new Set(cells.map((cell) => cell.column + ',' + cell.row));
        return [cells.filter((cell) => cell.best).map((cell) => cell.tip), window.ndtune.data.details[0].mesh, cells.length - places.size];
    """)
    assert twice == 0, f"{twice} shapes are drawn over others"
    assert len(marked) == 1 and "place 1," in marked[0] and f"dp_shard={first['dp_shard']}" in marked[0], (marked, first)


def compute_is_drawn_by_kind_and_sums_to_itself(page):
    times, names = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'time');
        return [window.ndtune.data.details.slice(0, 12).map((entry) => [entry.compute_by, entry.time.compute_s]), chart.given.series.map((one) => one.name)];
    """)
    assert names[:4] == ["GEMM", "attention", "memory-bound", "head"], names
    for by, compute_s in times:
        assert abs(sum(by.values()) - compute_s) < 1e-9 * compute_s, (by, compute_s)


def the_lines_that_matter_lead_the_config(page):
    lines, whole, folded = page.browser.run("""
        const file = document.querySelector('details.file');
        return [file.querySelector('.lines').textContent, file.querySelector('pre[id]').textContent, !file.querySelector('details').open];
    """)
    assert "dp_shard_size: " in lines and "machine_rank" not in lines and folded, lines
    assert all(line in whole for line in lines.splitlines() if line != "…"), lines


def one_plan_has_the_lines_that_tell_it_from_plain_fsdp(page):
    lines = page.browser.run("return document.querySelector('details.file .lines').textContent")
    assert "pipeline_parallel_degree = 4" in lines and "tensor_parallel_degree = 2" in lines, lines
    assert "dataset" not in lines, lines


def stages_wait_as_long_as_the_bubble_says(page):
    stages, bubble, colours = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'stages');
        return [window.ndtune.data.stages, window.ndtune.data.details[0].time.bubble_s,
                chart.given.data.blocks.filter((block) => block.phase === 'waits for another stage').length];
    """)
    assert len(stages["of"]) == 4 and colours > 4, stages
    busiest = max(stages["of"], key=lambda stage: stage["busy_s"])
    assert abs(busiest["bubble_s"] - bubble) < 0.02 * stages["step_s"], (busiest["bubble_s"], bubble)
    drawn = page.browser.run("return document.querySelectorAll('figure[data-chart=stage-memory] svg .mark-rect path').length")
    assert drawn >= 4 * 5, drawn
    counted = page.pixels("figure[data-chart=stages] .drawing")
    assert counted["colours"] >= 4 and counted["drawn"] > 0.2, counted
    page.quiet()


def the_theme_switches(page):
    was = page.pixels("body")["light"]
    label = page.browser.run("return document.getElementById('theme-switch').textContent")
    page.browser.click("#theme-switch")
    now = page.pixels("body")["light"]
    assert abs(was - now) > 0.4, f"{was} and {now}"
    assert page.browser.run("return document.getElementById('theme-switch').textContent") != label
    for name in ("time", "front"):  # one is drawn as SVG, one on a canvas
        assert page.pixels(f"figure[data-chart={name}] .drawing")["drawn"] > 0.01, f"{name} is empty"
    page.browser.click("#theme-switch")
    page.quiet()


def the_page_prints(page):
    page.browser.run("""
        window.printed = [];
        window.addEventListener('beforeprint', () => window.printed.push(document.documentElement.dataset.theme));
    """)
    pdf = page.browser.pdf()
    assert pdf.startswith(b"%PDF") and len(pdf) > 20000, len(pdf)
    themes = page.browser.run("return window.printed")  # one for each time that it was tried
    assert themes and set(themes) in ({"light"}, {None}), f"paper is not light: {themes}"
    page.quiet()


def a_model_that_is_markup_stays_text(page):
    page.quiet()
    seen = page.browser.run("return [document.images.length, String(window.ndtuneHacked), document.title, "
                            "document.body.innerText.includes('<img')]")
    assert seen[0] == 0 and seen[1] == "undefined" and seen[3], seen


def measured_steps_stand_next_to_predicted_ones(page):
    counted = page.pixels("figure[data-chart=measured] .drawing")
    assert counted["colours"] >= 3 and counted["drawn"] > 0.005, counted
    page.quiet()


def write_markup_model(folder):
    model = {"model_type": "llama", "hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 2,
             "num_attention_heads": 8, "num_key_value_heads": 8, "vocab_size": 1024, "max_position_embeddings": 2048}
    place = pathlib.Path(folder) / "<"
    place.mkdir()
    file = place / "script><img src=x onerror=window.ndtuneHacked=1>.json"  # "</script><img ..." in the path
    file.write_text(json.dumps(model))
    return str(file)


def use_large(page, file):
    ready_s = page.open(file)
    start = time.monotonic()
    page.browser.click("#table-candidates th[data-column=step_s] button")
    page.browser.type("#candidate-filter", "cp=2")
    page.browser.wait("a filtered table", "document.getElementById('candidate-count').textContent.startsWith(" +
                      "window.ndtune.rows.filter((r) => !r.rejected && r.best && /\\bcp=2\\b/.test(r.mesh)).length + ' of')")
    used_s = time.monotonic() - start
    steps = page.shown("step_s")
    assert len(steps) > 1 and steps == sorted(steps), steps
    return ready_s, used_s


def five_thousand_candidates_can_be_used(page):
    file = page.make("large", "--world", "48", "--model", "70b", "--effort", "estimate")
    ready_s, used_s = use_large(page, file)
    count = page.browser.run("return window.ndtune.rows.length")
    assert count >= 5000, count
    print(f"{count} candidates, {file.stat().st_size / 1e6:.2f} MB: all charts after {ready_s:.2f} s, sorted and filtered "
          f"in {used_s:.2f} s")
    page.quiet()


def make_blame(page):
    """The page of a hung job on two hosts, of which one has markup for a name."""
    dumps = page.folder / "dumps"
    for rank, host in enumerate(("<i onmouseover=window.ndtuneHacked=1>", "<i onmouseover=window.ndtuneHacked=1>", "b", "b")):
        (dumps / host).mkdir(parents=True, exist_ok=True)
        shutil.copy2(STOPPED / f"rank_{rank}", dumps / host / f"rank_{rank}")
    file = page.folder / "blame.html"
    made = subprocess.run([page.ndtune, "blame", str(dumps), "--html", str(file), "--format", "json"],
                          capture_output=True, text=True, timeout=60)
    assert made.returncode == 2, made.stderr
    return file, json.loads(made.stdout)


def the_page_of_blame_says_and_draws_who_stands_where(page):
    file, said = make_blame(page)
    page.browser.open(file.as_uri())
    shown = page.browser.run("""
        const rows = (id) => document.querySelectorAll(id + ' tbody tr').length;
        return [document.getElementById('sentence').textContent, rows('#table-group'),
                document.querySelectorAll('svg.lanes .lane').length, document.querySelectorAll('svg.lanes .open').length,
                document.querySelectorAll('#table-stands tr.blamed').length, Boolean(window.ndtuneHacked),
                document.querySelectorAll('script, main i').length];
    """)
    due = next(group for group in said["groups"] if group["name"] == said["due"]["group"])
    assert shown == [said["sentence"], len(due["ranks"]), said["world"], 3, 1, False, 0], shown
    pictures = []
    for width, scheme in ((390, "dark"), (390, "light"), (1280, "light")):
        page.browser.look(width, scheme)
        needed, room = page.browser.run("return [document.documentElement.scrollWidth, document.documentElement.clientWidth]")
        assert needed <= room, f"{needed} pixels wide on a screen of {room}"
        pictures.append((page.browser.picture("svg.lanes"), page.browser.picture("body")))
    page.quiet()
    page.browser.open("about:blank")  # the page itself allows no pictures
    for lanes, _ in pictures:
        counted = page.count(lanes)
        assert counted["colours"] >= 4 and counted["drawn"] > 0.05, counted
    light = [page.count(body)["light"] for _, body in pictures]
    assert light[0] < 0.4 < 0.8 < min(light[1:]), light


def a_planted_error_is_seen(page):
    page.browser.run("setTimeout(() => { throw new Error('planted'); });")
    page.browser.run_until_called("setTimeout(arguments[0], 100);")
    complaints = page.browser.complaints()
    assert any("planted" in complaint for complaint in complaints), complaints


def measured_steps_lead(page):
    first = page.browser.run("return document.querySelector('.card dt').textContent")
    assert first == "Measured step", first
    chart, runs = page.browser.run("""
        const chart = window.ndtune.charts.find((one) => one.figure.dataset.chart === 'ranking');
        return [chart && chart.given.data.shapes.map((shape) => [shape.measured, shape.slower]),
                window.ndtune.data.validation.filter((run) => run.measured_s).length];
    """)
    if runs > 1:
        assert len(chart) == runs and all(ran for ran, _ in chart), chart
        assert [slower for _, slower in chart] == sorted(slower for _, slower in chart) and chart[0][1] == 0, chart


def make_pipeline(page):
    return page.make("pipeline", "--mesh", "pp=4,dp_shard=8,tp=2", "--model", "70b", "--target", "torchtitan",
                     "--global-batch", "128", "--recompute", "full", command="predict")


def long_checks(page):
    """Every other page on every screen."""
    page.open(make_pipeline(page))
    yield from (stages_wait_as_long_as_the_bubble_says, one_plan_has_the_lines_that_tell_it_from_plain_fsdp, at_every_width_nothing_is_cut, the_page_prints)
    page.open(page.make("search", "--world", "8", "--model", "8b", "--target", "torchtitan"))
    yield from (at_every_width_nothing_is_cut, six_groups_lead_to_every_section)
    page.open(page.make("nothing", "--world", "2", "--model", "70b", codes=(0, 2)))
    yield from (six_groups_lead_to_every_section, the_page_prints)


def all_checks(page, is_long):
    """Pages in turn; each check is of the page that was opened last."""
    if is_long:
        yield from long_checks(page)
        return
    page.open(page.make("plan", "--world", "16", "--model", "7b", "--memory-limit", "70GiB"))
    yield from (at_every_width_nothing_is_cut, tiles_stand_two_by_two_on_a_phone, six_groups_lead_to_every_section,
                the_tie_is_shaded_as_far_as_it_goes, the_map_marks_the_first_of_the_ranking, compute_is_drawn_by_kind_and_sums_to_itself,
                the_lines_that_matter_lead_the_config)
    yield from (eight_charts_are_drawn_and_named, the_marks_of_a_chart_are_those_of_its_data,
                the_ranks_stand_on_their_nodes, a_heading_sorts,
                a_filter_leaves_what_matches, a_mesh_opens_its_candidate, the_timeline_zooms, the_theme_switches,
                the_page_prints)
    page.open(page.make("markup", "--world", "4", "--model", write_markup_model(page.folder)))
    yield a_model_that_is_markup_stays_text
    page.open(page.make("measured", "--world", "2", "--model", "tiny", "--layers", "1", "--top", "2", "--spread", "0",
                        "--steps", "2", "--warm-up", "0", "--repeats", "1", command="validate"))
    yield from (measured_steps_stand_next_to_predicted_ones, measured_steps_lead)
    yield five_thousand_candidates_can_be_used
    yield the_page_of_blame_says_and_draws_who_stands_where
    yield a_planted_error_is_seen


def run(page, is_long):
    failed = tested = 0
    for check in all_checks(page, is_long):
        tested += 1
        start = time.monotonic()
        try:
            check(page)
            print(f"[PASS] browser::{check.__name__}: ({time.monotonic() - start:.2f}s)", flush=True)
        except Exception:
            failed += 1
            traceback.print_exc()
            print(f"[FAIL] browser::{check.__name__}", flush=True)
    print(f"[====] Synthesis: Tested: {tested} | Passing: {tested - failed} | Failing: {failed} | Crashing: 0 ")
    return 1 if failed else 0


def main():
    ndtune = sys.argv[1]
    driver, browser = shutil.which("chromedriver"), shutil.which("chromium") or shutil.which("google-chrome")
    if not driver or not browser:
        print("skipped: no browser to test the page in (packages chromium chromium-driver)")
        return SKIPPED
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HOME"] = folder  # whatever a browser keeps goes with the folder
        about = subprocess.run([ndtune, "report", "--world", "2", "--model", "tiny", "--html", f"{folder}/any.html",
                                "--db", f"{folder}/test.db", "--format", "json"], capture_output=True, text=True)
        if not json.loads(about.stdout)["charts"]:
            print("skipped: this ndtune was built without charts (packages node-vega esbuild)")
            return SKIPPED
        try:
            started = Browser(driver, browser)
        except NoBrowser as error:
            print(f"skipped: the browser does not start here: {error}")
            return SKIPPED
        with started as opened:
            print(f"Chromium {opened.version}")
            return run(Page(opened, folder, ndtune), sys.argv[2:] == ["long"])


if __name__ == "__main__":
    sys.exit(main())
