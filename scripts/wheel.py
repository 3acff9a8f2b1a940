"""Packs an installed tree's Python package and library into a wheel, by the standard library alone: wheel.py PREFIX SOURCE OUT [PLATFORM]"""
import base64
import hashlib
import pathlib
import re
import sys
import sysconfig
import zipfile

METADATA = """Metadata-Version: 2.1
Name: gputap
Version: %(version)s
Summary: GPU telemetry in shared memory: read it in-process, and learn what a piece of work cost
License: MIT
Requires-Python: >=3.9
Classifier: License :: OSI Approved :: MIT License
Classifier: Operating System :: POSIX :: Linux
Classifier: Typing :: Typed
Description-Content-Type: text/markdown

%(description)s"""
WHEEL = """Wheel-Version: 1.0
Generator: gputap
Root-Is-Purelib: false
Tag: py3-none-%(platform)s
"""


def section(readme, title):
    found = re.search(r"^## %s\n(.*?)(?=^## |\Z)" % re.escape(title), readme, re.M | re.S)
    return found.group(1).strip() + "\n" if found else ""


class Wheel:
    def __init__(self, path):
        self.zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        self.record = []

    def add(self, name, content, mode=0o644):
        info = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))  # the same content makes the same wheel
        info.external_attr = (0o100000 | mode) << 16
        info.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(info, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record.append("%s,sha256=%s,%d" % (name, digest, len(content)))

    def close(self, record):
        self.record.append(record + ",,")
        content = "\n".join(self.record) + "\n"
        self.record = []
        self.add(record, content.encode())
        self.zip.close()


def main():
    prefix, source, out = map(pathlib.Path, sys.argv[1:4])
    platform = sys.argv[4] if len(sys.argv) > 4 else re.sub(r"[^A-Za-z0-9]", "_", sysconfig.get_platform())
    library = next(prefix.glob("lib*/**/libgputap.so"))
    version = re.search(r"^Version: *(\S+)", next(prefix.glob("lib*/**/gputap.pc")).read_text(), re.M).group(1)
    package = prefix / "share/gputap/python/gputap"
    out.mkdir(parents=True, exist_ok=True)
    path = out / ("gputap-%s-py3-none-%s.whl" % (version, platform))
    wheel = Wheel(path)
    for file in sorted(package.rglob("*")):
        if file.is_file() and file.suffix in (".py", ".typed"):
            wheel.add("gputap/%s" % file.relative_to(package), file.read_bytes())
    wheel.add("gputap/_lib/libgputap.so", library.read_bytes(), 0o755)
    info = "gputap-%s.dist-info" % version
    description = section((source / "README.md").read_text(), "From Python")
    wheel.add(info + "/METADATA", (METADATA % {"version": version, "description": description}).encode())
    wheel.add(info + "/WHEEL", (WHEEL % {"platform": platform}).encode())
    wheel.add(info + "/LICENSE", (source / "LICENSE").read_bytes())
    wheel.close(info + "/RECORD")
    print(path)


if __name__ == "__main__":
    main()
