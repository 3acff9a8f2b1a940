"""Reading, waiting and asking from Python, on simulated devices."""
import gc
import json
import os
import threading
import time
import unittest

from support import PythonCase, gputap, main, wait_for


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def maps():
    with open("/proc/self/maps") as f:
        return sum("telemetry" in line or "memfd:" in line for line in f)


class Read(PythonCase):
    def test_a_sample_says_what_the_program_gputap_says(self):
        self.simulate("--simulate", "strix-halo", "--simulate", "rtx4090")
        for device in self.tap.devices():
            def told():
                document = json.loads(self.run_program("gputap", "get", "--json").stdout)
                row = [d for d in document["gpus"] if d["id"] == device.id][0]
                return row.get("metrics", row)
            sample = self.tap.latest(device.number)
            document = told()
            names = [m.name for m in gputap.METRICS]
            self.assertEqual(sorted(sample.asdict()), sorted(names))
            self.assertGreater(sum(v is not None for v in sample.asdict().values()), 15)
            for metric in gputap.METRICS:
                if metric.semantics == "counter":
                    continue
                value = sample[metric.name]
                self.assertEqual(value, getattr(sample, metric.name))
                if value is None:
                    self.assertIsNone(document[metric.name], metric.name)
                    self.assertTrue(sample.reason(metric.name))
                else:
                    self.assertAlmostEqual(value, document[metric.name], delta=0.51 * 10 ** -metric.decimals, msg=metric.name)
                    self.assertIsNone(sample.reason(metric.name))
            with self.assertRaises(AttributeError):
                sample.no_such_metric
            with self.assertRaises(KeyError):
                sample.reason("no_such_metric")

    def test_unknown_is_none_and_never_zero_and_has_its_reason(self):
        self.simulate("--simulate", "broken")
        sample = self.tap.latest(0)
        self.assertEqual(set(sample.asdict().values()), {None})
        reasons = {sample.reason(m.name) for m in gputap.METRICS}
        self.assertGreaterEqual(len(reasons), 6, reasons)
        self.assertNotIn(None, reasons)
        self.assertIsNone(self.tap.memory(0).vram_free)
        self.assertIsNone(self.tap.fits(0, 1))
        usage = self.tap.usage_between(0, self.tap.now() - 10**9)
        self.assertIsNone(usage.energy)

    def test_attributes_tell_their_units(self):
        self.assertGreater(len(gputap.METRICS), 40)
        for cls, table in ((gputap.DeviceSample, gputap.METRICS), (gputap.HostSample, gputap.HOST_METRICS)):
            for metric in table:
                doc = getattr(cls, metric.name).__doc__
                self.assertTrue(doc.startswith(metric.unit), doc)
                self.assertIn(metric.help, doc)
        self.assertTrue(gputap.Usage.energy.__doc__.startswith("J"))

    def test_a_device_is_found_by_number_and_id_and_what_is_not_there_is_none(self):
        self.simulate("--simulate", "strix-halo", "--simulate", "rtx4090")
        for device in self.tap.devices():
            for name in (device.number, device.id, device.id.upper()):
                self.assertEqual(self.tap.latest(name).device, device.number)
                self.assertEqual(self.tap.device(name).id, device.id)
        self.assertEqual(len(self.tap.devices()), 2)
        for name in (2, 99, -1, -2, 2**31, 2**32, 2**40, "", "0000:ff:00.0", "sim:rtx4090:7", "\ud800"):
            self.assertIsNone(self.tap.latest(name), name)
            self.assertIsNone(self.tap.device(name), name)
            self.assertIsNone(self.tap.memory(name), name)
            self.assertIsNone(self.tap.fits(name, 1), name)
            self.assertIsNone(self.tap.history(name, 5), name)
            self.assertIsNone(self.tap.usage_between(name, 1), name)
            self.assertIsNone(self.tap.oom_report(name), name)
        for wrong in (1.5, None):
            with self.assertRaises(TypeError):
                self.tap.latest(wrong)

    def test_samples_keep_what_they_were_and_go_forward(self):
        self.simulate("--simulate", "rtx4090", "--sim-load", "wave", "--period", "20")
        first = self.tap.latest(0)
        text = repr(first.asdict())
        before, sequence = first.sequence, first.sequence
        for _ in range(2000):
            sample = self.tap.latest(0)
            self.assertGreaterEqual(sample.sequence, sequence)
            sequence = sample.sequence
        wait_for(lambda: self.tap.latest(0).sequence > before + 5)
        last = self.tap.latest(0)
        self.assertEqual(repr(first.asdict()), text)
        passed = (last.mono_ns - first.mono_ns) / 1e9
        self.assertAlmostEqual(last.sums.sampled_seconds - first.sums.sampled_seconds, passed, delta=0.05 * passed + 0.05)
        self.assertGreater(last.sums.energy_joules, first.sums.energy_joules)
        self.assertLess(last.age, 5)
        self.assertAlmostEqual(last.time, time.time(), delta=5)
        self.assertEqual(last.state, "ok")

    def test_host(self):
        self.simulate()
        sample = self.tap.host()
        with open("/proc/meminfo") as f:
            total = int(f.readline().split()[1]) * 1024
        self.assertEqual(sample.memory_total, total)
        self.assertIsNone(sample.device)
        self.assertEqual(self.tap.machine().cpu_threads, os.cpu_count())
        self.assertEqual(self.tap.devices(), [])
        self.assertIsNone(self.tap.latest(0))

    def test_history(self):
        self.simulate("--simulate", "rtx4090", "--period", "50")
        wait_for(lambda: self.tap.latest(0).sequence > 30)
        history = self.tap.history(0, 2, ["power_now", "media_busy"], points=8)
        self.assertLessEqual(len(history.times), 8)
        self.assertGreater(len(history.times), 2)
        self.assertEqual(history.times, sorted(history.times))
        power = self.tap.latest(0).power_now
        self.assertTrue(all(abs(value - power) < 1e-6 for value in history["power_now"]), history)
        self.assertTrue(all(value is None for value in history["media_busy"]))
        self.assertEqual([row["power_now"] for row in history.rows()], history["power_now"])
        self.assertEqual(sorted(self.tap.history(0, 1)), sorted(m.name for m in gputap.METRICS if m.history))
        self.assertEqual(sorted(self.tap.history(None, 1)), sorted(m.name for m in gputap.HOST_METRICS if m.history))
        with self.assertRaises(KeyError):
            self.tap.history(0, 1, ["no_such_metric"])
        for seconds, points in ((0, 0), (-5, -5), (10**9, 10**9), (0.001, 1)):
            self.assertIsNotNone(self.tap.history(0, seconds, ["power_now"], points))

    def test_memory_and_what_fits(self):
        self.simulate("--simulate", "strix-halo", "--simulate", "rtx4090")
        for number in (0, 1):
            sample, memory = self.tap.latest(number), self.tap.memory(number)
            self.assertEqual(memory.vram_total, sample.vram_total)
            self.assertEqual(memory.pool, self.tap.device(number).pool)
            free = memory.effective_free
            if memory.pool == "unified":
                self.assertEqual(free, memory.vram_free + min(memory.gtt_free, memory.host_available))
            else:
                self.assertEqual(free, sample.vram_total - sample.vram_used)
            self.assertIs(self.tap.fits(number, 2**20), True)
            self.assertIs(self.tap.fits(number, 2**50), False)
            self.assertIs(self.tap.fits(number, 2**90), False)
            self.assertIn(self.tap.device(number).id, self.tap.oom_report(number))
        self.assertEqual({self.tap.memory(n).pool for n in (0, 1)}, {"discrete", "unified"})

    def test_tuning_by_device_and_by_name(self):
        apu = self.tap.tuning("gfx1103")
        self.assertEqual((apu.family, apu.unified, apu.precision, apu.tile_min, apu.tile_max, apu.batch_cap), ("rdna3", True, "fp16", 768, 2048, 8))
        self.assertEqual(self.tap.tuning("gfx90a:sramecc+:xnack-").precision, "bf16")
        self.assertIs(self.tap.tuning("gfx777").known, False)
        self.assertIsNone(self.tap.tuning("0000:c5:00.0"))
        self.assertIsNone(self.tap.tuning(0))
        self.simulate("--simulate", "strix-halo")
        self.assertEqual(self.tap.tuning(0).asdict(), self.tap.tuning("gfx1151").asdict())
        self.assertEqual(self.tap.tuning("sim:strix-halo:0").arch, "gfx1151")


class Follow(PythonCase):
    def test_wait_answers_every_tick_and_lets_other_threads_run(self):
        self.simulate("--simulate", "rtx4090", "--period", "50")
        stop, turns = threading.Event(), [0]

        def busy():
            while not stop.is_set():
                turns[0] += 1
        thread = threading.Thread(target=busy)
        thread.start()
        try:
            ticks = [self.tap.wait(5)]
            for _ in range(10):
                ticks.append(self.tap.wait(5, ticks[-1]))
        finally:
            stop.set()
            thread.join()
        self.assertEqual(ticks, sorted(set(ticks)))
        self.assertGreater(turns[0], 1000)

    def test_wait_gives_up_after_its_time(self):
        self.simulate("--period", "5000")
        self.tap.wait(0.3)
        start = time.monotonic()
        self.assertIsNone(self.tap.wait(0.3))
        self.assertGreaterEqual(time.monotonic() - start, 0.3)
        self.assertEqual(self.tap.wait(0, tick=0), self.tap.status().tick)

    def test_a_broker_that_comes_goes_and_comes_again_is_followed(self):
        self.assertIsNone(self.tap.latest(0))
        self.assertIsNone(self.tap.status())
        first = self.simulate("--simulate", "rtx4090", "--simulate", "strix-halo")
        status = self.tap.status()
        self.assertTrue(status.running and status.simulated)
        first.kill()
        first.wait()
        wait_for(lambda: self.tap.status().dead)
        self.assertIsNotNone(self.tap.latest(0).power_now)  # the last numbers stay readable
        gone = self.tap.device("sim:rtx4090:0").number
        self.start_broker("--no-provider", "drm", "--no-provider", "processes", "--simulate", "strix-halo", "--simulate", "arc-b580")
        wait_for(lambda: self.tap.status().running and self.tap.latest("sim:arc-b580:0"))
        self.assertEqual(self.tap.latest("sim:strix-halo:0").device, 1)  # bound to the id
        self.assertEqual(self.tap.latest("sim:arc-b580:0").device, 2)
        self.assertIsNone(self.tap.latest(gone))

    def test_a_handle_may_be_closed_while_threads_wait_and_read(self):
        self.simulate("--simulate", "rtx4090", "--period", "10000")
        answers = []

        def wait():
            answers.append(self.tap.wait(60))

        def read():
            while self.tap.latest(0):
                pass
            answers.append(None)
        threads = [threading.Thread(target=f) for f in (wait, wait, read)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        self.tap.close()
        for thread in threads:
            thread.join(10)
            self.assertFalse(thread.is_alive())
        self.assertEqual(answers, [None, None, None])
        self.tap.close()
        for answer in (self.tap.latest(0), self.tap.host(), self.tap.status(), self.tap.now(), self.tap.wait(1)):
            self.assertIsNone(answer)
        self.assertEqual((self.tap.devices(), self.tap.sessions()), ([], []))
        self.assertEqual(maps(), 0)

    def test_ten_thousand_handles_leave_nothing_behind(self):
        self.simulate("--simulate", "rtx4090")
        self.tap.close()
        before = descriptors(), maps()
        for i in range(10000):
            tap = gputap.Tap("t")
            self.assertIsNotNone(tap.latest(0))
            if i % 2:
                tap.close()
            del tap
        gc.collect()
        self.assertEqual((descriptors(), maps()), before)

    def test_ten_thousand_sessions_leave_nothing_behind(self):
        self.simulate("--simulate", "rtx4090")
        before = descriptors(), maps()
        for i in range(10000):
            session = self.tap.session("turn %d" % i)
            with session.span("x"):
                pass
            session.close()
        del session
        gc.collect()
        self.assertEqual((descriptors(), maps()), before)

    def test_threads_read_one_handle_while_brokers_come_and_go(self):
        broker = self.simulate("--simulate", "rtx4090", "--period", "20")
        stop, problems, reads = threading.Event(), [], [0]

        def read():
            last = (0, 0)
            while not stop.is_set():
                sample = self.tap.latest(0)
                if sample is None:
                    continue
                known = [sample.vram_total, sample.vram_used, sample.power_now]
                if sample.sequence < 1 or sample.mono_ns == 0 or (known != [None] * 3 and not 0 < known[1] <= known[0] == 25757220864):
                    problems.append(repr((sample, sample.sequence)))  # a broker's first samples may know nothing yet
                if sample.mono_ns < last[0]:
                    problems.append("back from %r to %r" % (last, sample.mono_ns))
                last = (sample.mono_ns, sample.sequence)
                reads[0] += 1
        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in range(5):
            broker.kill()
            broker.wait()
            broker = self.start_broker("--no-provider", "drm", "--no-provider", "processes", "--simulate", "rtx4090", "--period", "20")
            time.sleep(0.3)
        stop.set()
        for thread in threads:
            thread.join()
        self.assertEqual(problems, [])
        self.assertGreater(reads[0], 1000)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork here")
    def test_a_forked_child_goes_on_reading(self):
        self.simulate("--simulate", "rtx4090", "--period", "50")
        waiter = threading.Thread(target=self.tap.wait, args=(1, 2**60))
        for waiting in (False, True):
            if waiting:
                waiter.start()
                time.sleep(0.1)
            pid = os.fork()
            if pid == 0:
                sample = self.tap.latest(0)
                tick = self.tap.wait(5)
                os._exit(0 if sample and sample.power_now and tick else 1)
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
        waiter.join()


if __name__ == "__main__":
    main()
