"""Sessions and spans from Python: what the broker hears, what comes back, and what never reaches the caller."""
import asyncio
import contextvars
import os
import signal
import subprocess
import sys
import threading
import time
import unittest

from support import PythonCase, gputap, main, wait_for
from workflow import VRAM, workflow_joules, workflow_memory

class Sessions(PythonCase):
    def setUp(self):
        super().setUp()
        self.broker = self.simulate("--simulate", "rtx4090", "--simulate", "strix-halo", "--sim-load", "workflow")
        self.session = self.tap.session("a test")
        self.addCleanup(self.session.close)
        wait_for(lambda: self.session.poll() and self.mirror(), what="session")

    def mirror(self, label="a test"):
        found = [s for s in gputap.Tap("t").sessions() if s.label == label]
        self.assertLessEqual(len(found), 1)
        return found[0] if found else None

    def spans(self, label="a test"):
        session = self.mirror(label)
        return session.spans if session else []

    def open_names(self):
        return [span.name for span in self.spans()]

    def see(self, *names):
        try:
            wait_for(lambda: self.open_names() == list(names))
        except AssertionError:
            self.assertEqual(self.open_names(), list(names))

    def test_a_span_is_seen_while_it_runs_and_gone_after(self):
        with self.session.span("KSampler", node="3", job="p1", devices=["sim:strix-halo:0"]) as span:
            self.assertTrue(span.open)
            self.assertTrue(span.step(5, 20))
            self.see("KSampler")
            seen = wait_for(lambda: [s for s in self.mirror().spans if s.value == 5][:1], what="progress")[0]
            self.assertEqual((seen.node, seen.job, seen.max, seen.devices, seen.id), ("3", "p1", 20.0, (1,), span.id))
            self.assertAlmostEqual(seen.start, time.time(), delta=5)
            self.assertEqual(self.mirror().pid, os.getpid())
        self.see()
        self.assertFalse(span.open)
        self.assertFalse(span.step(6, 20))
        self.assertFalse(span.end())
        self.assertEqual(set(span.usage), {1})

    def test_usage_has_every_device_and_comes_near_the_simulators_script(self):
        with self.session.span("work") as span:
            start = time.monotonic()
            time.sleep(1.5)
            end = time.monotonic()
        early = span.usage
        self.assertEqual(set(early), {0, 1})
        self.assertAlmostEqual(early[0].seconds, end - start, delta=0.05)
        final = span.final(5)
        self.assertIsNotNone(final)
        self.assertIs(span.usage, final)
        self.assertEqual(set(final), {0, 1})
        usage = final[0]
        self.assertFalse(usage.estimated or usage.partial or usage.shared)
        self.assertAlmostEqual(usage.energy, workflow_joules(start, end), delta=0.05 * workflow_joules(start, end) + 10)
        peak = max(workflow_memory(start + 1e-3 * i) for i in range(int((end - start) * 1e3))) * VRAM
        self.assertAlmostEqual(usage.vram_peak, peak, delta=0.01 * VRAM)
        self.assertGreater(usage.busy_peak, 0)
        self.assertGreater(usage.temperature_peak, 30)
        self.assertIs(final["sim:rtx4090:0"], usage)
        self.assertIsNone(final[7].energy)
        self.assertIsNone(final["nonsense"].energy)
        self.assertFalse(final[7].known)
        self.assertEqual(final[1].asdict()["seconds"], final[1].seconds)

    def test_exceptions_pass_through_and_end_the_span(self):
        with self.assertRaises(ZeroDivisionError):
            with self.session.span("bad") as span:
                1 / 0
        self.assertFalse(span.open)
        self.see()
        self.assertEqual(set(span.usage), {0, 1})

    def test_spans_nest_by_themselves(self):
        with self.session.span("outer") as outer:
            with self.session.span("inner") as inner:
                with self.session.span("apart", parent=0):
                    with self.session.span("given", parent=outer):
                        self.see("outer", "inner", "apart", "given")
                        parents = {s.name: s.parent for s in self.mirror().spans}
            free = self.session.span("begun")
            self.assertTrue(free.begin())
            self.see("outer", "begun")
            self.assertEqual(self.mirror().spans[1].parent, outer.id)
            self.assertTrue(free.end())
        self.assertEqual(parents, {"outer": None, "inner": outer.id, "apart": None, "given": outer.id})
        self.assertNotEqual(inner.id, outer.id)

    def test_tasks_and_threads_have_their_own_parents(self):
        parents = {}

        async def node(name, gate, turn):
            with self.session.span(name) as span:
                await gate.wait()
                with self.session.span(name + " part") as part:
                    await asyncio.sleep(0.01 * turn)
                    parents[name] = (span._parent_id() and span.id, part._parent_id())
                    self.assertEqual(part._parent_id(), part.id)  # what would begin now is inside of it
                parents[name] = span.id

        async def all_nodes():
            gate = asyncio.Event()
            with self.session.span("workflow") as workflow:
                tasks = [asyncio.ensure_future(node("node %d" % i, gate, 5 - i)) for i in range(5)]
                await asyncio.sleep(0.05)
                seen = self.mirror().spans
                gate.set()
                await asyncio.gather(*tasks)
            return workflow.id, seen
        workflow, seen = asyncio.run(all_nodes())
        self.assertEqual({s.name: s.parent for s in seen}, dict({"node %d" % i: workflow for i in range(5)}, workflow=None))
        self.assertEqual(len(set(parents.values())), 5)
        ends = {}

        def ended():
            ends.update({e.name: e.parent for e in self.tap.events() if e.type == "end"})
            return "workflow" in ends
        wait_for(ended, what="events")
        for i in range(5):
            self.assertEqual(ends["node %d part" % i], parents["node %d" % i])

        found = []
        with self.session.span("main thread") as outer:
            def run():
                with self.session.span("thread") as span:
                    found.append(span._parent_id() == span.id)
                    # by its number: the span of the thread before may be on show for a moment yet
                    seen = wait_for(lambda: [s for s in self.spans() if s.id == span.id], what="the span of this thread")
                    found.append(seen[0].parent)
            for context in (None, contextvars.copy_context()):
                thread = threading.Thread(target=run if context is None else lambda: context.run(run))
                thread.start()
                thread.join()
        self.assertEqual(found, [True, None, True, outer.id])

    def test_a_task_that_outlives_its_enclosing_span_has_the_next_one_out(self):
        async def late(go):
            await go.wait()
            with self.session.span("late"):
                await asyncio.sleep(0)

        async def run():
            go = asyncio.Event()
            with self.session.span("a") as a:
                with self.session.span("b"):
                    task = asyncio.ensure_future(late(go))
                    await asyncio.sleep(0)
                go.set()
                await task
            return a.id
        outer = asyncio.run(run())
        found = wait_for(lambda: [e.parent for e in self.tap.events() if e.type == "begin" and e.name == "late"], what="event")
        self.assertEqual(found, [outer])

    def test_a_generator_that_is_closed_elsewhere_ends_its_span(self):
        def work():
            with self.session.span("generator"):
                yield 1
        generator = work()
        contextvars.copy_context().run(next, generator)
        self.see("generator")
        generator.close()
        self.see()

    def test_a_span_may_be_used_again_and_entered_twice(self):
        span = self.session.span("again")
        ids = set()
        for _ in range(3):
            with span as same:
                self.assertIs(same, span)
                ids.add(span.id)
                self.assertFalse(span.begin())
                with span:
                    self.see("again")
                self.assertTrue(span.open)
            self.see()
            self.assertTrue(span.begin())
            ids.add(span.id)
            self.assertTrue(span.end())
        self.assertEqual(len(ids), 6)

    def test_gauges_give_this_process_its_share(self):
        self.assertTrue(self.session.gauge(0, allocated=2**30, reserved=3 * 2**30))
        with self.session.span("load") as span:
            self.assertTrue(self.session.gauge("sim:rtx4090:0", reserved=5 * 2**30, dynamic=7))
            self.assertTrue(self.session.gauge(0, allocated=1, reserved=2**30))
        wait_for(lambda: self.mirror().gauges and self.mirror().gauges[0].allocated == 1, what="gauge")
        gauge = self.mirror().gauges[0]
        self.assertEqual((gauge.device, gauge.allocated, gauge.reserved, gauge.dynamic), (0, 1, 2**30, None))
        memory = self.tap.memory(0)
        self.assertEqual((memory.own, memory.others), (2**30, memory.vram_used - 2**30))
        self.assertEqual(span.usage[0].own_vram_peak, 5 * 2**30)
        self.assertEqual(span.final(5)[0].own_vram_peak, 5 * 2**30)
        self.assertIsNone(span.usage[1].own_vram_peak)
        self.assertFalse(self.session.gauge(99, reserved=1))

    def test_events_tell_all_of_it(self):
        events = self.tap.events(oldest=False)
        self.assertIsNone(events.next())
        with self.session.span("n", node=7, job="j"):
            pass
        self.session.instant("tick", node="8", job="j")
        got = []

        def enough():
            got.extend(events)
            return len([e for e in got if e.type == "usage"]) == 2
        wait_for(enough, what="events")
        told = [(e.type, e.name, e.node, e.job, e.label) for e in got if e.type != "usage"]
        self.assertEqual(told, [("begin", "n", "7", "j", "a test"), ("end", "n", "7", "j", "a test"), ("instant", "tick", "8", "j", "a test")])
        self.assertEqual({e.device for e in got if e.type == "usage"}, {0, 1})
        self.assertTrue(all(e.usage.seconds is not None for e in got if e.type == "usage"))
        self.assertEqual(events.lost, 0)
        self.session.instant("more")
        self.assertTrue(events.wait(5))

    def test_two_sessions_of_one_process_do_not_end_each_other(self):
        with self.tap.session("other") as other, self.session.span("first") as first:
            wait_for(other.poll)
            with other.span("second", devices=[1]) as second:
                self.see("first")
                seen = wait_for(lambda: self.mirror("other").spans, what="second")
                self.assertEqual((seen[0].parent, seen[0].devices), (None, (1,)))
                time.sleep(0.3)
            self.assertTrue(first.open)
            self.assertEqual(set(second.usage), {1})
            self.assertTrue(second.final(5)[1].shared)
        wait_for(lambda: self.mirror("other") is None)
        again = self.tap.session("other")
        wait_for(lambda: self.mirror("other"))
        again.close()
        self.assertIsNotNone(self.mirror())

    def test_numbers_of_the_caller_hold_where_sessions_number_devices_otherwise(self):
        """A handle numbers devices as it meets them; one that is opened after a restart may number them otherwise."""
        self.broker.stop()
        self.start_broker("--no-provider", "drm", "--no-provider", "processes", "--simulate", "arc-b580", "--simulate", "rtx4090", "--simulate", "strix-halo")
        wait_for(lambda: self.tap.latest("sim:arc-b580:0"))
        self.assertEqual([d.id for d in self.tap.devices()], ["sim:rtx4090:0", "sim:strix-halo:0", "sim:arc-b580:0"])
        with self.tap.session("other") as other:
            wait_for(other.poll)
            self.assertNotEqual([d.id for d in other._tap.devices()], [d.id for d in self.tap.devices()])
            for number, total in ((0, 24 * 2**30), (2, 12 * 2**30)):
                with other.span("x", devices=number) as span:
                    time.sleep(0.2)
                usage = span.final(5)
                self.assertEqual(set(usage), {number})
                self.assertLessEqual(usage[number].vram_peak, total)
                self.assertAlmostEqual(usage[number].vram_peak, self.tap.latest(number).vram_used, delta=2**28)

    def test_what_is_open_is_told_to_the_next_broker(self):
        with self.session.span("survives", node="1") as span:
            self.see("survives")
            self.broker.kill()
            self.broker.wait()
            self.assertTrue(span.step(1, 2))
            with self.session.span("in between"):
                pass
            self.start_broker("--no-provider", "drm", "--no-provider", "processes", "--simulate", "rtx4090")
            wait_for(lambda: self.session.connection().connects == 2, what="session at the next broker")
            self.see("survives")
        self.assertIsNotNone(span.final(5))

    def test_texts_may_be_anything(self):
        for name in ("", "x" * 500, "日本語" * 40, "nul\0nul", "\ud800", 5, None):
            with self.session.span(name, node=name, job=name) as span:
                self.assertTrue(span.open)
                wait_for(self.spans)
        self.assertTrue(self.session.instant("\ud800"))

    def test_bad_numbers_do_no_harm(self):
        with self.session.span("x") as span:
            for value, top in ((float("nan"), 1), (1, float("inf")), (1e308, -5)):
                self.assertIn(span.step(value, top), (True, False))

            class Scalar:  # of another library
                def __float__(self):
                    return 3.0
            self.assertTrue(span.step(Scalar(), 10))
            wait_for(lambda: [s.value for s in self.spans()] == [3.0])
        self.assertFalse(self.session.span("y", devices=[99]).begin())
        self.assertFalse(self.session.span("y", devices=["nonsense"]).begin())
        self.assertFalse(self.session.span("y", devices=[]).begin())
        spans = [self.session.span("many") for _ in range(40)]
        self.assertEqual(sum(s.begin() for s in spans), 32)
        self.assertGreaterEqual(self.session.connection().dropped, 8)
        self.assertEqual(sum(s.end() for s in spans), 32)

    def test_threads_share_a_session(self):
        problems = []

        def work(number):
            for i in range(200):
                with self.session.span("%d/%d" % (number, i)) as span:
                    if not span.step(i, 200):
                        problems.append("step")
                    with self.session.span("in") as inner:
                        pass
                if not (span.id and inner.id):
                    problems.append("id")
        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.see()
        wait_for(lambda: self.mirror().ended + self.mirror().lost >= 3200, what="3200 ends, are %d" % self.mirror().ended)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_has_no_session_until_it_opens_one(self):
        with self.session.span("parent's") as span:
            pid = os.fork()
            if pid == 0:
                try:
                    told = [span.step(9, 9), span.end(), self.session.instant("x"), self.session.gauge(0, 1), self.session.poll(),
                            self.session.span("y").begin()]
                    with self.session.span("z") as child:
                        told.append(child.open)
                    right = told == [False] * 7 and self.session.connection() is None and self.tap.latest(0) is not None
                    mine = self.tap.session("child")
                    right = right and mine._tap is self.tap
                    wait_for(mine.poll)
                    right = right and mine.span("its own").begin() and not self.session.span("y").begin()
                    if not right:
                        sys.stderr.write("child: %r %r %r\n" % (told, self.tap.latest(0), self.tap.message()))
                    os._exit(0 if right else 1)
                except BaseException as error:
                    sys.stderr.write("child: %r\n" % error)
                    os._exit(2)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertTrue(span.step(1, 2))
            wait_for(lambda: self.mirror("child") is None)
            self.see("parent's")

        def kinds():
            return [(e.type, e.name) for e in self.tap.events() if e.pid == pid and e.type in ("begin", "end")]
        wait_for(lambda: len(kinds()) >= 2, what="the child's events")
        self.assertEqual(kinds(), [("begin", "its own"), ("end", "its own")])

    def test_a_closed_session_is_gone_and_its_calls_answer_false(self):
        span = self.session.span("left open")
        span.begin()
        self.see("left open")
        self.session.close()
        wait_for(lambda: self.mirror() is None)
        self.assertFalse(span.step(1, 2))
        self.assertFalse(self.session.instant("x"))
        self.session.close()
        wait_for(lambda: [e for e in self.tap.events() if e.name == "left open" and e.type == "end" and e.abandoned], what="its end")

    def test_a_killed_script_is_gone_within_a_second(self):
        script = "import gputap, time\nwith gputap.session('doomed') as s:\n with s.span('x'):\n  time.sleep(60)\n"
        child = subprocess.Popen([sys.executable, "-B", "-c", script], env=self.python_env())
        try:
            wait_for(lambda: self.mirror("doomed") and self.mirror("doomed").spans, what="script")
            child.send_signal(signal.SIGKILL)
            child.wait()
            wait_for(lambda: self.mirror("doomed") is None, timeout=1.0, what="end of a killed script's session")
        finally:
            child.kill()
            child.wait()

    def test_a_stopped_broker_holds_nobody_up(self):
        self.broker.kill(signal.SIGSTOP)
        try:
            start = time.monotonic()
            for i in range(300):
                with self.session.span("x %d" % i) as span:
                    span.step(i, 300)
            self.assertLess(time.monotonic() - start, 5)
        finally:
            self.broker.kill(signal.SIGCONT)

    def test_a_wish_for_a_period_is_heard(self):
        self.assertAlmostEqual(self.tap.status().period, 1.0)
        with gputap.Tap("t") as other:
            self.assertTrue(other.request_period(0.05))
            wait_for(lambda: other.poll() and abs(self.tap.status().period - 0.05) < 1e-9, what="period of 50 ms")
        wait_for(lambda: self.tap.status().period == 1.0, what="period of before")


class BeforeTheBroker(PythonCase):
    def test_a_session_of_before_is_told_to_the_broker_that_comes(self):
        with self.tap.session("early") as session, session.span("waits", node="1") as span:
            self.assertTrue(span.open)
            self.assertFalse(session.poll())
            self.simulate("--simulate", "rtx4090")
            wait_for(session.poll, what="session")
            found = wait_for(lambda: self.tap.sessions(), what="mirror")
            wait_for(lambda: [s.name for s in self.tap.sessions()[0].spans] == ["waits"])
            self.assertTrue(found[0].mine)
        self.assertIsNotNone(span.usage[0].seconds)


if __name__ == "__main__":
    main()
