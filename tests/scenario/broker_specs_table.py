"""The table of cards: of the form that the XPUSYS monitor reads, and no figure that contradicts another one."""
import json
import pathlib
import re

import harness
from harness import Scenario

TABLE = pathlib.Path(__file__).resolve().parents[2] / "data/gpu_specs.json"
FORMATS = ("FP32", "FP16", "BF16", "FP8", "FP4", "INT8", "INT4")
RANGES = {"vram_gb": (1, 512), "bw_gbs": (10, 20000), "fp32_tflops": (0.5, 500), "fp16_tflops": (0.5, 10000),
          "fp8_tflops": (1, 20000), "int8_tops": (1, 20000), "int4_tops": (1, 40000), "tgp_w": (5, 1500)}
COMPUTE = ("fp32_tflops", "fp16_tflops")


def pairs_without_repeats(pairs):
    keys = [key for key, _ in pairs]
    assert len(keys) == len(set(keys)), "a key stands twice: %s" % sorted(key for key in keys if keys.count(key) > 1)
    return dict(pairs)


class SpecsTable(Scenario):
    def setUp(self):
        super().setUp()
        self.table = json.loads(TABLE.read_text("ascii"), object_pairs_hook=pairs_without_repeats)

    def rows(self, *sections):
        for section in sections or ("cards", "names"):
            for id, rows in self.table[section].items():
                for row in rows:
                    self.where = "%s %s" % (id, row.get("name"))
                    yield id, row
        self.where = ""

    where = ""

    def _formatMessage(self, message, standard):
        return "%s: %s" % (self.where, super()._formatMessage(message, standard))

    def test_head_has_the_keys_of_the_format(self):
        for key in ("version", "source", "updated"):
            self.assertIsInstance(self.table[key], str)
        self.assertRegex(self.table["updated"], r"^\d{4}-\d\d-\d\d$")
        self.assertIsInstance(self.table["pending"], list)
        self.assertTrue(any("dense" in line for line in self.table["comment"]))
        for arch, rates in self.table["rates"].items():
            self.assertRegex(rates["source"], r"^https?://\S+$", arch)
        for arch, formats in self.table["formats"].items():
            self.assertRegex(formats, r"^[+-]{%d}$" % len(FORMATS), arch)
            self.assertEqual(formats[0], "+", arch)

    def test_enough_cards_are_known(self):
        self.assertGreaterEqual(len(self.table["cards"]), 120)
        known = {row["name"] for _, row in self.rows()}
        for name in ("AMD Radeon 8060S Graphics", "AMD Instinct MI300X", "AMD Instinct MI325X", "AMD Instinct MI355X",
                     "AMD Radeon RX 9070 XT", "AMD Radeon RX 7900 XTX", "NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 4090",
                     "Intel Arc B580"):
            self.assertIn(name, known)

    def test_ids_are_four_hex_digits_and_hold_cards_of_one_vendor(self):
        for section in ("cards", "names"):
            for id, rows in self.table[section].items():
                self.assertRegex(id, r"^0x[0-9a-f]{4}$")
                self.assertGreater(len(rows), 0, id)
                self.assertEqual(len({row["vendor"] for row in rows}), 1, id)

    def test_rows_say_who_they_are_and_where_from(self):
        for _, row in self.rows():
            self.assertIn(row["vendor"], ("amd", "nvidia", "intel"))
            self.assertRegex(row["name"], r"^(AMD|NVIDIA|Intel) [A-Za-z0-9 /+.-]+$")  # goes into C as it is
            self.assertEqual(row["name"].split()[0].lower(), row["vendor"])
            self.assertRegex(row["name_match"], r"^[A-Za-z0-9][A-Za-z0-9 -]*$")
            for key in ("source", "quoted_at"):
                self.assertRegex(row.get(key, row["source"]), r"^https?://[a-z0-9.-]+\.[a-z]+/\S+$")
            self.assertLess(len(row["name"]), 96)
            self.assertRegex(row.get("memory_type", ""), r"^[A-Z0-9a-zX]{0,15}$")
            for revision in row.get("revision", []):
                self.assertRegex(revision, r"^[0-9a-f]{2}$")
        for _, row in self.rows("cards"):
            self.assertIn(row["arch"], self.table["formats"])

    def test_names_and_revisions_tell_the_cards_of_an_id_apart(self):
        for id in {**self.table["cards"], **self.table["names"]}:
            rows = self.table["cards"].get(id, []) + self.table["names"].get(id, [])
            for values in ([row["name_match"].lower() for row in rows], [row["name"] for row in rows],
                           [revision for row in rows for revision in row.get("revision", [])]):
                self.assertEqual(len(values), len(set(values)), (id, values))
            if len(rows) > 1:
                for row in rows:
                    words = r"(?<![A-Za-z0-9])%s(?![A-Za-z0-9])" % re.escape(row["name_match"])
                    self.assertRegex(row["name"], words, id)

    def test_cards_have_figures_in_range(self):
        for _, row in self.rows():
            for key, value in row.get("specs", {}).items():
                low, high = RANGES[key]
                self.assertTrue(low <= value <= high, (key, value))
        for _, row in self.rows("cards"):
            self.assertTrue(any(key in row["specs"] for key in COMPUTE))  # else that monitor shows NaN
        for _, row in self.rows("names"):
            self.assertFalse(any(key in row.get("specs", {}) for key in COMPUTE))

    def test_bandwidth_is_bus_times_rate(self):
        checked = 0
        for _, row in self.rows():
            if "rate_gbps" in row and "bw_gbs" in row.get("specs", {}):
                wanted = row["bus_bits"] * row["rate_gbps"] / 8
                self.assertAlmostEqual(row["specs"]["bw_gbs"] / wanted, 1, delta=0.002)
                checked += 1
        self.assertGreater(checked, 120)

    def test_narrower_formats_are_not_slower(self):
        for _, row in self.rows("cards"):
            specs = row["specs"]
            chain = [specs[key] for key in ("fp32_tflops", "fp16_tflops", "int8_tops", "int4_tops") if key in specs]
            self.assertEqual(chain, sorted(chain))
            self.assertGreaterEqual(specs.get("fp8_tflops", 1e9), specs.get("fp16_tflops", 0))

    def test_figures_exist_only_for_formats_that_the_architecture_has(self):
        for _, row in self.rows("cards"):
            formats = dict(zip(FORMATS, self.table["formats"][row["arch"]]))
            for key in row["specs"]:
                format = key.split("_")[0].upper()
                self.assertEqual(formats.get(format, "+"), "+", key)

    def test_derived_figures_follow_from_the_rates(self):
        """N CU x M MHz, at the operations a clock that the head gives for that architecture."""
        checked = 0
        for _, row in self.rows("cards"):
            units = re.search(r"compute: rates, ([^,]+), (\d+) (?:CU|Xe-cores) x (\d+) MHz", row.get("derived", ""))
            if not units:
                continue
            rates = self.table["rates"][units[1]]
            self.assertEqual(units[1], row["arch"])
            for key, value in row["specs"].items():
                rate = rates.get(key.split("_")[0])
                if rate:
                    self.assertAlmostEqual(value / (int(units[2]) * int(units[3]) * rate / 1e6), 1, delta=0.002)
                    checked += 1
        self.assertGreater(checked, 150)


if __name__ == "__main__":
    harness.main()
