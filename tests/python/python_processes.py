"""Who holds a device, as Python tells it."""
import ctypes
import json
import subprocess

from support import BUILD, ROOT, PythonCase, compile_c, gputap, main, wait_for

from process_stage import GIB, ProcessStage


class Processes(PythonCase):
    def stage(self, devices=1):
        stage = ProcessStage(self, devices)
        wait_for(lambda: self.tap.latest(0), what="a sample")
        return stage

    def test_rows_have_what_is_known_and_none_for_the_rest(self):
        stage = self.stage()
        stage.row(4711, 1000, 3 * GIB, 4096, 91, 0, "python3", flags=3, sharers=2, container="3f2a9c0011aa")
        stage.row(7, 0, "-", "-", comm="Xorg")
        stage.table(others=4, hidden=2, partial=1, external=GIB)
        found = self.tap.processes(0)
        self.assertEqual([p.pid for p in found], [4711, 7])
        first, second = found
        self.assertEqual((first.uid, first.comm, first.container, first.vram, first.gtt), (1000, "python3", "3f2a9c0011aa", 3 * GIB, 4096))
        self.assertEqual((first.gfx_busy, first.compute_busy, first.encode_busy, first.sharers), (91, 0, None, 2))
        self.assertEqual((first.kfd, first.partial, first.start), (True, True, None))
        self.assertEqual((second.vram, second.gtt, second.container, second.gfx_busy, second.kfd), (None, None, None, None, False))
        self.assertEqual((found.others, found.others_vram, found.others_gtt), (4, 4 * 2 ** 20, 0))
        self.assertEqual((found.hidden, found.partial, found.external_vram), (2, True, GIB))
        self.assertGreaterEqual(found.age, 0)
        self.assertLess(found.age, 60)
        json.dumps([p.asdict() for p in found])
        self.assertIn("python3", repr(found))

    def test_nobody_looks_is_none_and_nothing_held_is_an_empty_list(self):
        stage = self.stage(2)
        stage.table(0)
        self.assertEqual(self.tap.processes(), [])
        self.assertIsNone(self.tap.processes(0).external_vram)
        self.assertIsNone(self.tap.processes(1))
        self.assertIn("nobody looks", self.tap.message())
        self.assertIsNone(self.tap.processes(9))
        self.assertEqual(self.tap.processes("0000:01:00.0"), [])

    def test_rows_outlive_the_next_call(self):
        stage = self.stage()
        stage.row(1, 0, 5, comm="one")
        stage.table()
        kept = self.tap.processes()[0]
        stage.row(2, 0, 6, comm="two")
        stage.table()
        self.assertEqual((kept.pid, kept.vram, self.tap.processes()[0].pid), (1, 5, 2))

    def test_without_a_broker_it_is_none(self):
        self.assertIsNone(self.tap.processes())
        self.assertIsNone(gputap.processes(0))

    def test_the_structs_are_as_large_as_those_of_the_header(self):
        from gputap import _processes
        source = self.folder / "sizes.c"
        source.write_text('#include <stdio.h>\n#include "gputap.h"\nint main(void) { printf("%zu %zu\\n", sizeof(gputap_process), '
                          'sizeof(gputap_process_table)); return 0; }\n')
        compile_c("-I", ROOT / "client/include", "-I", BUILD / "generated/include", source, "-o", self.folder / "sizes")
        out = subprocess.run([str(self.folder / "sizes")], capture_output=True, text=True, check=True, env={}).stdout
        self.assertEqual(out.split(), [str(ctypes.sizeof(gputap.Process)), str(ctypes.sizeof(_processes._Table))])


if __name__ == "__main__":
    main()
