"""The Python module over a program: $NDTUNE, or the one bundled with an installed package. Needs nothing but Python."""

import dataclasses
import html.parser
import os
import pathlib
import tempfile
import unittest

import ndtune

FILES = pathlib.Path(__file__).resolve().parent.parent / "golden" / "import" / "files"
CONFIG = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 2048, "intermediate_size": 5632,
          "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4, "max_position_embeddings": 2048}


class Tags(html.parser.HTMLParser):
    """Every tag that is opened is closed, and nothing of the page is a script."""

    def __init__(self, text):
        super().__init__()
        self.open, self.text = [], ""
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attrs):
        assert tag in {"p", "b", "table", "tr", "th", "td", "div"}, tag
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


class Plans(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.plan = ndtune.plan(model="7b", world=8, effort="estimate", global_batch=64)

    def test_a_plan_holds_every_shape_ranked_or_with_its_reason(self):
        self.assertEqual(len(self.plan.entries) + len(self.plan.rejected), self.plan.raw["search"]["shapes"])
        self.assertTrue(all(each.reason for each in self.plan.rejected))
        self.assertEqual({each.mesh.world for each in self.plan.entries}, {8})
        self.assertEqual({each.plan.global_batch for each in self.plan.entries}, {64})

    def test_the_terms_of_time_and_memory_sum_to_the_step_and_the_peak(self):
        for each in self.plan.entries:
            time = each.time
            terms = (time.compute_s, *time.exposed_communication_s.values(), time.optimizer_s, time.bubble_s,
                     time.overhead_s)
            self.assertAlmostEqual(sum(terms), each.step_time_s, delta=1e-6 * each.step_time_s)
            memory = dataclasses.asdict(each.memory)
            parts = [value for name, value in memory.items() if not name.endswith("_bytes")]
            self.assertEqual(sum(parts), each.memory.peak_bytes)

    def test_the_options_of_an_entry_ask_for_the_same_plan_again(self):
        piped = ndtune.plan(model="7b", world=8, target="torchtitan", effort="estimate", global_batch=64)
        stages = [each for each in piped.entries if each.mesh.pp > 1]
        for each in (self.plan.best, self.plan.entries[-1], piped.best, stages[0], stages[-1]):
            again = ndtune.predict(**each.options())
            self.assertEqual((again.mesh, again.plan.raw), (each.mesh, each.plan.raw))

    def test_so_do_the_options_of_experts(self):
        one = ndtune.predict("mixtral-8x7b", "dp_shard=8,ep=4", dispatcher="allgather", target="megatron")
        self.assertEqual(ndtune.predict(**one.options()).plan.raw, one.plan.raw)

    def test_a_plan_exports_to_its_framework_and_to_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "accelerate.yaml")
            text = self.plan.export("accelerate", path=path)
            self.assertIn(f"dp_shard_size: {self.plan.best.mesh.dp_shard}", text)
            self.assertEqual(pathlib.Path(path).read_text(encoding="utf-8"), text)
        self.assertIn("data_parallel_shard_degree", ndtune.export("torchtitan-toml", model="7b", mesh={"dp_shard": 16}))

    def test_a_file_that_was_just_exported_passes_its_check(self):
        best = self.plan.best
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "accelerate.yaml")
            self.plan.export("accelerate", path=path)
            check = self.plan.check(path, micro_batch=best.plan.micro_batch, grad_accum=best.plan.grad_accum,
                                    effort="estimate", fused=best.plan.fused, tolerance=25)
        self.assertEqual((check.runs, check.fits, check.passed), (True, True, True), check.verdict)

    def test_a_notebook_shows_tables(self):
        page = Tags(self.plan._repr_html_())
        self.assertIn(str(self.plan.best.mesh), page.text)
        self.assertIn(self.plan.best_reason, page.text)
        self.assertIn("of a step", Tags(self.plan.best._repr_html_()).text)

    def test_times_have_three_digits_on_both_sides_of_a_unit(self):
        for seconds, text in ((0.9999, "1.00 s"), (0.9994, "999 ms"), (9.996, "10.0 s"), (1234.5, "1234 s"),
                              (0.0999, "99.9 ms"), (9.9e-5, "99.0 us"), (1e-9, "0.00 us")):
            self.assertEqual(ndtune._html._seconds(seconds), text)

    def test_print_shows_the_short_table(self):
        lines = str(self.plan).splitlines()
        self.assertLess(len(lines), 17)
        self.assertEqual(lines[2].split()[:2], ["1", str(self.plan.best.mesh)])
        self.assertTrue(lines[-1].endswith(self.plan.best_reason))
        self.assertIn("80 % interval", str(self.plan.best))
        check = ndtune.check(FILES / "accelerate_fsdp2.yaml", model="8b", micro_batch=1, effort="estimate")
        self.assertTrue(str(check).startswith("failed: "))

    def test_a_repr_is_short(self):
        self.assertLess(len(repr(self.plan.best)), 2500)


class Predictions(unittest.TestCase):
    def test_a_mesh_is_a_word_or_a_dict(self):
        word = ndtune.predict("tiny", "dp_shard=2,tp=2")
        self.assertEqual(word.mesh, ndtune.predict("tiny", {"dp_shard": 2, "tp": 2}).mesh)
        self.assertEqual(str(word.mesh), "dp_shard=2,tp=2")

    def test_a_model_is_the_dict_of_its_config_or_what_has_one(self):
        class Config:
            def to_dict(self):
                return CONFIG

        ours = ndtune.predict(CONFIG, "dp_shard=8")
        self.assertEqual(ours.raw["model"]["layers"], 22)
        self.assertEqual(ours.step_time_s, ndtune.predict(Config(), "dp_shard=8").step_time_s)
        self.assertIn("num_processes: 8", ours.export("accelerate"))

    def test_what_does_not_fit_is_answered_with_the_reason(self):
        huge = ndtune.predict("405b", "dp_shard=1")
        self.assertFalse(huge.feasible)
        self.assertIn("does not fit", huge.reasons[0])

    def test_numbers_of_the_cluster_can_be_set(self):
        slow = ndtune.predict("7b", "dp_shard=16", set={"fabric.node_gbps": 1})
        self.assertGreater(slow.step_time_s, ndtune.predict("7b", "dp_shard=16").step_time_s)


class Checks(unittest.TestCase):
    def test_a_check_says_what_is_wrong_by_line(self):
        check = ndtune.check(FILES / "accelerate_fsdp2.yaml", model="8b", micro_batch=1, effort="estimate")
        self.assertFalse(check.passed)
        self.assertGreater(check.slower, check.tolerance)
        self.assertTrue(any(note.line for note in check.notes))
        self.assertIn("failed", Tags(check._repr_html_()).text)


class Errors(unittest.TestCase):
    def test_an_unknown_model_is_a_usage_error_with_the_sentence_and_the_hint(self):
        with self.assertRaises(ndtune.UsageError) as caught:
            ndtune.plan(model="7bb", world=8)
        self.assertRegex(caught.exception.sentence, '^unknown model "7bb"')
        self.assertEqual((caught.exception.hint, caught.exception.exit_code), ("did you mean 7b?", 1))
        self.assertIsInstance(caught.exception, ValueError)

    def test_an_option_that_does_not_exist_is_named(self):
        with self.assertRaisesRegex(ndtune.UsageError, "unknown option --modle"):
            ndtune.plan(model="7b", world=8, modle="7b")

    def test_where_nothing_fits_the_exception_holds_the_answer(self):
        with self.assertRaisesRegex(ndtune.NothingFeasible, "does not fit") as caught:
            ndtune.plan(model="405b", world=1, effort="estimate", global_batch=1)
        self.assertEqual(caught.exception.exit_code, 2)
        self.assertEqual(caught.exception.plan.entries, ())
        self.assertIn("dp_shard=1", Tags(caught.exception.plan._repr_html_()).text)

    def test_what_a_format_cannot_hold_is_refused_in_its_sentence(self):
        with self.assertRaisesRegex(ndtune.UsageError, "zero=3 does not exist for megatron"):
            ndtune.export("megatron", model="8b", mesh="dp_shard=4,cp=2", zero=3)

    def test_the_version_is_the_programs_without_what_follows_it(self):
        self.assertRegex(ndtune.version(), r"\A\d+(\.\d+)+\Z")

    def test_a_program_that_is_not_there_is_a_problem_of_the_environment(self):
        before = os.environ.get("NDTUNE")
        os.environ["NDTUNE"] = "/nowhere/ndtune"
        try:
            with self.assertRaisesRegex(ndtune.EnvironmentProblem, "/nowhere/ndtune cannot be started"):
                ndtune.version()
        finally:
            del os.environ["NDTUNE"]
            if before is not None:
                os.environ["NDTUNE"] = before

    def test_words_of_others_are_escaped_in_a_notebook(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "<script>&.yaml")
            text = (FILES / "accelerate_fsdp2.yaml").read_text(encoding="utf-8")
            pathlib.Path(path).write_text(text, encoding="utf-8")
            check = ndtune.check(path, model="125m", micro_batch=1, effort="estimate")
        self.assertIn("<script>&.yaml", Tags(check._repr_html_()).text)


class Runs(unittest.TestCase):
    def test_two_ranks_train_for_real(self):
        if not os.access(os.path.join(os.path.dirname(ndtune._program.program()), "ndtune-worker"), os.X_OK):
            self.skipTest("no ndtune-worker beside the program")
        run = ndtune.run("tiny", "dp_shard=2", steps=2)
        self.assertEqual((run.state, len(run.loss), run.mesh.dp_shard), ("ok", 2, 2))


if __name__ == "__main__":
    unittest.main()
