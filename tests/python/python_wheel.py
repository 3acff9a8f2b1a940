"""A wheel made of an installed build works in an environment of its own, and so does the installed tree."""
import base64
import csv
import hashlib
import os
import pathlib
import subprocess
import sys
import sysconfig
import venv
import zipfile

from support import BUILD, ROOT, PythonCase, gputap, main

READ = """
import gputap, json, sys
d = gputap.devices()
with gputap.session("wheel") as s:
    with s.span("x") as sp:
        sp.step(1, 1)
print(gputap.library(), len(d), gputap.latest(0).vram_total == 25757220864 and sp.usage[0].known, gputap.__file__, sep="\\n")
"""


class Wheel(PythonCase):
    def environment(self, **more):
        """Of a program that knows nothing of this tree."""
        env = {k: v for k, v in self.python_env(**more).items() if k not in ("GPUTAP_LIBRARY", "PYTHONPATH") or k in more}
        return env

    def build_env(self):
        return {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}

    def check(self, python, folder, **env):
        """Reads a simulated broker with the package found by that interpreter, which must lie in folder."""
        self.simulate("--simulate", "rtx4090")
        done = subprocess.run([str(python), "-c", READ], env=self.environment(**env), capture_output=True, text=True, cwd="/", timeout=60)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        library, devices, right, package = done.stdout.split("\n")[:4]
        self.assertEqual((devices, right), ("1", "True"))
        self.assertTrue(package.startswith(str(folder)), package)
        return library

    def build_wheel(self):
        out = self.folder / "wheels"
        done = subprocess.run([str(ROOT / "scripts/build-wheel.sh"), str(BUILD), str(out)], env=self.build_env(), capture_output=True, text=True,
                              timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = list(out.iterdir())
        self.assertEqual([str(p) for p in found], done.stdout.split())
        return found[0]

    def test_a_wheel_is_whole_and_says_what_it_is(self):
        wheel = self.build_wheel()
        name, version, python, abi, platform = wheel.name[: -len(".whl")].split("-")
        self.assertEqual((name, python, abi), ("gputap", "py3", "none"))
        self.assertEqual(platform, sysconfig.get_platform().replace("-", "_").replace(".", "_"))
        with zipfile.ZipFile(wheel) as archive:
            self.assertIsNone(archive.testzip())
            names = archive.namelist()
            rows = {row[0]: row[1:] for row in csv.reader(archive.read("gputap-%s.dist-info/RECORD" % version).decode().splitlines())}
            self.assertEqual(sorted(rows), sorted(names))
            for entry, (digest, size) in rows.items():
                if not digest:
                    self.assertTrue(entry.endswith("/RECORD"))
                    continue
                content = archive.read(entry)
                self.assertEqual(digest, "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode(), entry)
                self.assertEqual(int(size), len(content))
            self.assertIn("Tag: py3-none-" + platform, archive.read("gputap-%s.dist-info/WHEEL" % version).decode())
            self.assertIn("Version: " + version, archive.read("gputap-%s.dist-info/METADATA" % version).decode())
        self.assertEqual(version, gputap._calls.version().decode())
        sources = {"gputap/" + p.name for p in (ROOT / "client/python/gputap").glob("*.py")}
        self.assertEqual({n for n in names if n.startswith("gputap/")}, sources | {"gputap/py.typed", "gputap/_lib/libgputap.so"})

    def test_a_wheel_unpacked_into_an_environment_reads(self):
        wheel, place = self.build_wheel(), self.folder / "venv"
        venv.create(place, with_pip=False, symlinks=True)
        python = place / "bin/python"
        site = pathlib.Path(subprocess.run([str(python), "-c", "import sysconfig; print(sysconfig.get_path('platlib'))"], check=True,
                                           capture_output=True, text=True, env=self.environment()).stdout.strip())
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(site)
        self.assertEqual(self.check(python, place), str(site / "gputap/_lib/libgputap.so"))

    def test_pip_installs_and_removes_a_wheel(self):
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input"]
        told = subprocess.run([*pip, "--version"], capture_output=True, text=True, env=self.build_env())
        if told.returncode != 0 or int(told.stdout.split()[1].split(".")[0]) < 23:
            self.skipTest("no pip of 23 or later here")
        wheel, place = self.build_wheel(), self.folder / "venv"
        venv.create(place, with_pip=False, symlinks=True)
        for arguments in (["install", "--no-index", "--no-deps", str(wheel)], ["check"]):
            done = subprocess.run([*pip, "--python", str(place / "bin/python"), *arguments], capture_output=True, text=True, env=self.build_env())
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertTrue(self.check(place / "bin/python", place).endswith("gputap/_lib/libgputap.so"))
        done = subprocess.run([*pip, "--python", str(place / "bin/python"), "uninstall", "--yes", "gputap"], capture_output=True, text=True,
                              env=self.build_env())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(place.rglob("libgputap.so")), [])

    def test_the_installed_tree_finds_its_library(self):
        prefix = self.folder / "prefix"
        subprocess.run(["cmake", "--install", str(BUILD / "client"), "--prefix", str(prefix)], check=True, capture_output=True, env=self.build_env())
        library = self.check(sys.executable, prefix, PYTHONPATH=str(prefix / "share/gputap/python"))
        self.assertTrue(library.startswith(str(prefix)), library)


if __name__ == "__main__":
    main()
