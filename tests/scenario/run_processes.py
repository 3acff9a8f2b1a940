"""From the files of a machine that the test made to the command line and the HTTP document: who holds a GPU."""
import json
import os

import harness
from harness import wait_for
from websocket import WebSocket

GPU = "sys/bus/pci/devices/0000:03:00.0"
CARD = {
    "class": "0x030000", "vendor": "0x1002", "device": "0x744c", "revision": "0xc8", "power/runtime_status": "active",
    "uevent": "DRIVER=amdgpu\nPCI_CLASS=30000\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:03:00.0", "mem_info_vram_total": "25753026560",
    "mem_info_vram_used": "3221225472", "drm/renderD128/dev": "226:128", "drm/card1/dev": "226:1",
}


class FromFiles(harness.Scenario):
    def write(self, path, text):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")

    def link(self, path, target):
        path = self.root / path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.symlink_to(target)

    def machine(self):
        self.root = self.folder / "root"
        for name, text in CARD.items():
            self.write("%s/%s" % (GPU, name), text)
        self.link(GPU + "/driver", "../../../../bus/pci/drivers/amdgpu")
        self.write("proc/stat", "cpu 1\nbtime 1700000000")
        self.write("proc/self/stat", "no process")

    def process(self, pid, uid, comm, client, kib):
        self.write("proc/%d/stat" % pid, "%d (%s) S 1 1 1 0 -1 4194304 1 1 1 1 1 1 1 1 20 0 1 0 6000 1 1" % (pid, comm))
        self.write("proc/%d/comm" % pid, comm)
        self.write("proc/%d/status" % pid, "Name:\t%s\nUid:\t%s" % (comm, "\t".join([str(uid)] * 4)))
        self.link("proc/%d/fd/7" % pid, "/dev/dri/renderD128")
        self.write("proc/%d/fdinfo/7" % pid, "drm-driver:\tamdgpu\ndrm-pdev:\t0000:03:00.0\ndrm-client-id:\t%d\ndrm-memory-vram:\t%d KiB\n"
                                             "drm-memory-gtt: \t8192 KiB\ndrm-engine-gfx:\t1000 ns" % (client, kib))

    def ps(self):
        done = self.run_program("gputap", "ps", "--json")
        return json.loads(done.stdout)["gpus"][0] if done.returncode == 0 else {}

    def test_the_same_processes_are_told_everywhere(self):
        self.machine()
        self.process(4711, os.getuid(), "python3", 217, 2 * 2 ** 20)
        self.process(5000, 54321, "secret", 218, 2 ** 19)
        self.start_broker("--root", str(self.root), "--period", "100", "--no-provider", "system")
        gpu = wait_for(lambda: (lambda g: g.get("rows") and g["external"] is not None and g)(self.ps()), 60, 0.2, "the first scan")
        self.assertEqual([(r["pid"], r["comm"], r["vram"], r["gtt"]) for r in gpu["rows"]],
                         [(4711, "python3", 2 * 2 ** 30, 2 ** 23), (5000, "secret", 2 ** 29, 2 ** 23)])
        self.assertEqual((gpu["hidden"], gpu["external"]), (0, 3 * 2 ** 30 - 2 * 2 ** 30 - 2 ** 29))
        self.assertIn("python3", self.run_program("gputap", "ps").stdout)
        self.start_bridge()
        gpu = wait_for(lambda: self.get("/api/v1/processes")["gpus"])[0]
        self.assertEqual(([r["pid"] for r in gpu["rows"]], gpu["hidden"], gpu["hidden_vram"]), ([4711], 1, 2 ** 29))

    def test_a_machine_where_nobody_holds_the_gpu_says_so(self):
        self.machine()
        self.start_broker("--root", str(self.root), "--period", "100", "--no-provider", "system")
        gpu = wait_for(lambda: (lambda g: g.get("rows") is not None and g["external"] is not None and g)(self.ps()), 60, 0.2, "the first scan")
        self.assertEqual((gpu["rows"], gpu["others"]["count"], gpu["external"]), ([], 0, 3 * 2 ** 30))
        self.assertIn("GPU 0: no process holds it", self.run_program("gputap", "ps").stdout)

    def test_simulated_processes_move_on_the_command_line_and_over_the_websocket(self):
        self.start_broker("--period", "100", "--simulate", "rtx4090", "--sim-load", "wave", "--no-provider", "drm", "--no-provider", "amdgpu")
        gpu = wait_for(lambda: (lambda g: g.get("rows") and g)(self.ps()), 60, 0.2, "processes")
        self.assertEqual([r["comm"] for r in gpu["rows"]], ["sim-workflow", "sim-desktop"])
        self.assertGreater(gpu["rows"][0]["vram"], gpu["rows"][1]["vram"])
        self.start_bridge()
        with WebSocket(self.port) as ws:
            ws.until("snap")
            ws.send({"type": "sub", "processes": True})
            ws.until("hello")
            first = ws.until("snap", 20)["processes"][0]["rows"]
            self.assertEqual([r["comm"] for r in first], ["sim-workflow", "sim-desktop"])
            wait_for(lambda: ws.until("processes", 20)["gpus"][0]["rows"][0]["gfx_busy"] != first[0]["gfx_busy"], 60, 0, "its load to move")


if __name__ == "__main__":
    harness.main()
