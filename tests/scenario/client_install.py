"""An installed copy is found and used by programs of others: through pkg-config and through CMake, shared and static."""
import os
import pathlib
import re
import shutil
import subprocess
import unittest

import harness
from harness import Scenario

BUILD = pathlib.Path(os.environ.get("GPUTAP_BUILD", harness.BIN.parent))
SOURCE = pathlib.Path(__file__).resolve().parents[2]
CMAKE_PROJECT = """cmake_minimum_required(VERSION 3.22)
project(user C)
find_package(gputap REQUIRED)
add_executable(user_shared %s)
target_link_libraries(user_shared PRIVATE gputap::gputap)
add_executable(user_static %s)
target_link_libraries(user_static PRIVATE gputap::gputap_static)
"""


class Install(Scenario):
    def setUp(self):
        super().setUp()
        self.prefix = self.folder / "prefix"
        cache = (BUILD / "CMakeCache.txt").read_text()
        self.sanitize = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("GPUTAP_SANITIZE:")][0]
        self.compiler = [line.split("=", 1)[1] for line in cache.splitlines() if line.startswith("CMAKE_C_COMPILER:")][0]
        self.call("cmake", "--install", BUILD / "client", "--prefix", self.prefix)

    def call(self, *args, env=None):
        done = subprocess.run([str(a) for a in args], capture_output=True, text=True, env=env, timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def flags(self):
        return ["-fsanitize=" + self.sanitize] if self.sanitize else []

    def expect_no_broker(self, program, env=None):
        done = subprocess.run([str(program)], capture_output=True, text=True, env=dict(self.env, **(env or {})), timeout=20)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("start it with: gputapd", done.stderr)

    def library_folder(self):
        return next(self.prefix.glob("lib*/**/libgputap.so")).parent

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not here")
    def test_pkg_config(self):
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.library_folder() / "pkgconfig"))
        flags = self.call("pkg-config", "--cflags", "--libs", "gputap", env=env).split()
        program = self.folder / "user"
        self.call(self.compiler, *self.flags(), SOURCE / "examples/read_latest.c", *flags, "-o", program)
        self.expect_no_broker(program, {"LD_LIBRARY_PATH": str(self.library_folder())})

    @unittest.skipUnless(shutil.which("pkg-config"), "pkg-config is not here")
    def test_example_of_the_readme_tells_numbers_no_gpu_and_old_numbers(self):
        source, program = self.folder / "example.c", self.folder / "example"
        source.write_text(re.search(r"```c\n(.*?)```", (SOURCE / "README.md").read_text(), re.S).group(1))
        env = dict(os.environ, PKG_CONFIG_PATH=str(self.library_folder() / "pkgconfig"))
        flags = self.call("pkg-config", "--cflags", "--libs", "gputap", env=env).split()
        self.call(self.compiler, "-Wall", "-Wextra", "-Werror", *self.flags(), source, *flags, "-o", program)
        env = dict(self.env, LD_LIBRARY_PATH=str(self.library_folder()))

        def run():
            done = subprocess.run([str(program)], capture_output=True, text=True, env=env, timeout=20)
            return done.returncode, done.stdout, done.stderr
        self.expect_no_broker(program, {"LD_LIBRARY_PATH": str(self.library_folder())})
        none = self.start_broker("--no-provider", "drm", "--no-provider", "amdgpu", "--no-provider", "processes")
        self.assertEqual(run(), (0, "no GPU was found\n", ""))
        none.stop()
        broker = self.start_broker("--no-provider", "drm", "--no-provider", "amdgpu", "--no-provider", "processes", "--simulate", "strix-halo")
        harness.wait_for(lambda: "VRAM used" in run()[1], what="numbers")
        self.assertRegex(run()[1], r"^busy \d+ %, VRAM used \d\.\d GiB\n$")
        self.assertEqual(run()[2], "")
        broker.kill()
        broker.wait()
        code, out, err = run()
        self.assertRegex(out, r"^busy \d+ %, VRAM used \d\.\d GiB\n$")
        self.assertIn("old", err)

    def test_cmake_package(self):
        project = self.folder / "project"
        project.mkdir()
        example = SOURCE / "examples/read_latest.c"
        (project / "CMakeLists.txt").write_text(CMAKE_PROJECT % (example, example))
        self.call("cmake", "-G", "Ninja", "-S", project, "-B", project / "build", "-DCMAKE_PREFIX_PATH=%s" % self.prefix,
                  "-DCMAKE_C_COMPILER=%s" % self.compiler, "-DCMAKE_C_FLAGS=%s" % " ".join(self.flags()))
        self.call("cmake", "--build", project / "build")
        self.expect_no_broker(project / "build/user_shared")
        self.expect_no_broker(project / "build/user_static")

    def test_only_the_documented_names_are_exported(self):
        header = (SOURCE / "client/include/gputap.h").read_text()
        names = self.call("nm", "-D", "--defined-only", self.library_folder() / "libgputap.so")
        exported = {line.split()[-1] for line in names.splitlines() if " T " in line}
        declared = set(re.findall(r"GPUTAP_API [^;]*?\b(gputap_\w+)\(", header))
        self.assertEqual(exported, declared)


if __name__ == "__main__":
    harness.main()
