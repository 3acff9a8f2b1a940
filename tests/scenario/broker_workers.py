"""Workers that hang, crash, are killed or stopped: what they cost, and what they do not."""
import os
import signal
import subprocess
import time
import unittest

import harness
from harness import wait_for
from segment import Segment


def started_at(pid):
    """When a process was started, in clock ticks; None if it is no more."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return int(f.read().rsplit(")", 1)[1].split()[19])
    except OSError:
        return None


def workers_of(broker):
    """[(pid, arguments)] of a broker's workers."""
    out = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/cmdline" % pid, "rb") as f:
                arguments = f.read().decode().split("\0")
            with open("/proc/%s/stat" % pid) as f:
                parent = int(f.read().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
        if parent == broker.pid and "--worker" in arguments:
            out.append((int(pid), arguments))
    return out


class Workers(harness.Scenario):
    def segment(self):
        return Segment(self.run_dir / "t" / "telemetry")

    def values(self, device):
        return self.segment().snapshot(device)

    def assert_ticking(self, devices, seconds=1.0):
        """Every device of the list gets new samples all the time."""
        before = self.segment()
        time.sleep(seconds)
        after = self.segment()
        for device in devices:
            age = (after.snapshot(device)["mono_ns"] - before.snapshot(device)["mono_ns"]) / 1e9
            self.assertGreater(age, seconds / 2, "device %d" % device)

    def test_one_hung_device_of_eight_leaves_the_others_ticking(self):
        self.start_broker("--period", "50", "--simulate", "mi300x:8", env={"GPUTAP_SIM_FAULT": "3:hang"})
        wait_for(lambda: self.segment().device_count == 8 and self.segment().device(3)["state"] == "hung", what="device 3 hung")
        others = [d for d in range(8) if d != 3]
        self.assert_ticking(others)
        for device in others:
            self.assertIsNotNone(self.values(device)["gfx_busy"])
        wait_for(lambda: self.values(3)["gfx_busy"] is None, what="no value of the hung device")
        facts = self.segment().device(3)
        self.assertEqual(facts["state"], "hung")
        self.assertEqual(facts["reasons"]["gfx_busy"], "stale")
        self.assertEqual(facts["id"], "sim:mi300x:3")
        self.assertGreaterEqual(self.segment().stats()["workers_killed"], 1)

    def test_device_that_crashes_its_worker_is_isolated(self):
        self.start_broker("--period", "50", "--simulate", "mi300x:4", env={"GPUTAP_SIM_FAULT": "1:crash"})
        wait_for(lambda: self.segment().device_count == 4 and self.segment().device(1)["state"] == "hung", what="device 1 isolated")
        wait_for(lambda: all(self.values(d) and self.values(d)["gfx_busy"] is not None for d in (0, 2, 3)), what="the others")
        self.assert_ticking([0, 2, 3])

    def test_slow_device_does_not_delay_the_tick(self):
        self.start_broker("--period", "100", "--simulate", "mi300x:2", env={"GPUTAP_SIM_FAULT": "1:slow=150"})
        wait_for(lambda: self.segment().device_count == 2, what="devices")
        before = self.segment().tick
        time.sleep(2)
        self.assertGreater(self.segment().tick - before, 15)
        self.assertEqual(self.segment().device(1)["state"], "ok")

    def test_killed_worker_is_restarted_and_its_values_are_not_lost_meanwhile(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
        for _ in range(4):  # its back-off stays below what makes a value stale
            before = wait_for(lambda: self.values(0), what="sample")["mono_ns"]
            wait_for(lambda: self.values(0)["mono_ns"] > before, what="new sample")
            pid = wait_for(lambda: [p for p, a in workers_of(broker) if "sim" in a], what="worker")[0]
            born = started_at(pid)
            os.kill(pid, signal.SIGKILL)
            # By its birth: a pid may come again at once.
            wait_for(lambda: [p for p, a in workers_of(broker) if "sim" in a and started_at(p) not in (None, born)], what="next worker")
            self.assertIsNotNone(self.values(0)["gfx_busy"])
        self.assert_ticking([0])
        self.assertGreaterEqual(wait_for(self.segment().stats, what="stats")["worker_restarts"], 1)

    def test_stopped_worker_is_given_up(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo:2")
        wait_for(lambda: self.values(0), what="sample")
        pid = [p for p, a in workers_of(broker) if "sim" in a][0]
        os.kill(pid, signal.SIGSTOP)
        wait_for(lambda: pid not in [p for p, _ in workers_of(broker)], what="stopped worker killed")
        wait_for(lambda: all(d["state"] == "ok" for d in self.segment().devices()) and broker.alive(), what="recovery")
        self.assert_ticking([0, 1])

    def test_stopped_broker_blames_no_worker(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
        wait_for(lambda: self.values(0), what="sample")
        for _ in range(3):
            os.kill(broker.pid, signal.SIGSTOP)
            time.sleep(0.6)
            os.kill(broker.pid, signal.SIGCONT)
            time.sleep(0.4)
        time.sleep(1.1)
        self.assertEqual(self.segment().stats()["workers_killed"], 0)

    def test_kill_9_of_the_broker_takes_its_workers_and_frees_the_lock(self):
        broker = self.start_broker("--period", "50", "--simulate", "mi300x:8")
        pids = [p for p, _ in workers_of(broker)]
        self.assertGreaterEqual(len(pids), 1)
        broker.kill()
        broker.wait()
        wait_for(lambda: not any(os.path.exists("/proc/%d" % p) for p in pids), what="workers ended")
        self.assertEqual(self.segment().state, "live")  # nobody was there to say more
        self.start_broker("--period", "50", "--simulate", "mi300x:8")
        wait_for(lambda: self.segment().state == "live" and self.segment().device_count == 8, what="next broker")

    def test_sigterm_ends_everything_in_order(self):
        broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
        wait_for(lambda: self.values(0), what="sample")
        pids = [p for p, _ in workers_of(broker)]
        broker.kill(signal.SIGTERM)
        self.assertEqual(broker.wait(), 0)
        self.assertEqual(self.segment().state, "dead")
        self.assertIsNotNone(self.values(0)["vram_total"])  # the last numbers stay readable
        wait_for(lambda: not any(os.path.exists("/proc/%d" % p) for p in pids), what="workers ended")

    def test_a_signal_to_the_whole_group_is_an_orderly_stop(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            broker = self.start_broker("--period", "50", "--simulate", "strix-halo")
            # Before the broker hears of it, as when its own signal comes last.
            for pid, _ in workers_of(broker):
                os.kill(pid, number)
            time.sleep(0.2)
            os.killpg(broker.pid, number)
            self.assertEqual(broker.wait(), 0)
            self.assertNotIn("worker ended", broker.output())


if __name__ == "__main__":
    harness.main()
