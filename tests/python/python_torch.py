"""Which device torch means by an index, by a torch of the tests' own."""
import sys
import types
import unittest

from support import gputap, main
from gputap._torch import torch_device


class Device:
    def __init__(self, number, id, vendor, uuid=None, compute_units=None, gfx_clock_max=None):
        self.number, self.id, self.vendor, self.uuid = number, id, vendor, uuid
        self.pci = id.split("/")[0] if id[0].isdigit() else None
        self.compute_units, self.gfx_clock_max = compute_units, gfx_clock_max


class Tap:
    def __init__(self, *devices):
        self._devices = list(devices)

    def devices(self):
        return self._devices


AMD = Tap(Device(0, "0000:03:00.0", "amd", "a1b2c3d4e5f60001"), Device(1, "0000:83:00.0", "amd", "a1b2c3d4e5f60002"),
          Device(2, "0000:c3:00.0", "amd", "a1b2c3d4e5f60003"), Device(3, "0000:02:00.0", "other"))
NVIDIA = Tap(Device(0, "0000:65:00.0", "nvidia", "GPU-11111111-2222-3333-4444-555555555555", 20, 1000),
             Device(1, "0000:01:00.0", "nvidia", "GPU-aaaaaaaa-2222-3333-4444-555555555555", 10, 1000),
             Device(2, "0000:b3:00.0", "nvidia", "GPU-bbbbbbbb-2222-3333-4444-555555555555", 40, 1000))
INTEL = Tap(Device(0, "0000:00:02.0", "intel"), Device(1, "0000:03:00.0", "intel"))


def properties(**values):
    return types.SimpleNamespace(**values)


def pci(bus, device=0, domain=0):
    return properties(pci_domain_id=domain, pci_bus_id=bus, pci_device_id=device)


def fake_torch(initialised, answers, name="cuda", **versions):
    """A torch that fails the test where it is made to open its devices."""
    def get(index):
        if not initialised:
            raise AssertionError("this would have opened a device")
        return answers[index]

    def never():
        raise AssertionError("this would have opened a device")
    part = types.SimpleNamespace(is_initialized=lambda: initialised, get_device_properties=get, init=never, current_device=never,
                                 device_count=never, is_available=never)
    return types.SimpleNamespace(version=types.SimpleNamespace(**dict({"hip": None, "cuda": None}, **versions)), **{name: part})


class Torch(unittest.TestCase):
    def setUp(self):
        self.assertNotIn("torch", sys.modules)
        self.addCleanup(sys.modules.pop, "torch", None)

    def ask(self, tap, index, torch=None, **environment):
        if torch is not None:
            sys.modules["torch"] = torch
        found = torch_device(tap, index, environment)
        return None if found is None else (int(found), found.guess)

    def test_torchs_own_address_wins_over_the_environment(self):
        torch = fake_torch(True, [pci(0xC3), pci(0x03), pci(0x83, 0, 0)], hip="6.2")
        self.assertEqual([self.ask(AMD, i, torch, HIP_VISIBLE_DEVICES="1,0") for i in range(3)], [(2, False), (0, False), (1, False)])

    def test_torchs_uuid_tells_partitions_apart(self):
        tap = Tap(Device(0, "0000:03:00.0/xcp0", "amd", "00000000000000a0"), Device(1, "0000:03:00.0/xcp1", "amd", "00000000000000a1"))
        torch = fake_torch(True, [properties(uuid="000000000000-00a1", **vars(pci(3))), pci(3)], hip="6.2")
        self.assertEqual(self.ask(tap, 0, torch), (1, False))
        self.assertEqual(self.ask(tap, 1, torch), (1, True))  # the address is that of both
        torch = fake_torch(True, [properties(uuid="bbbbbbbb-2222-3333-4444-555555555555")], cuda="12.4")
        self.assertEqual(self.ask(NVIDIA, 0, torch), (2, False))

    def test_a_torch_that_has_opened_nothing_is_never_made_to(self):
        torch = fake_torch(False, [], hip="6.2")
        self.assertEqual([self.ask(AMD, i, torch) for i in range(4)], [(0, True), (1, True), (2, True), None])

    def test_a_torch_that_cannot_tell_leaves_a_guess(self):
        for answer in (properties(name="x"), properties(uuid=None), properties(pci_bus_id="x", pci_device_id=0, pci_domain_id=0), pci(0x77)):
            self.assertEqual(self.ask(AMD, 0, fake_torch(True, [answer], hip="6.2")), (0, True))
        self.assertEqual(self.ask(AMD, 1, fake_torch(True, [], hip="6.2")), (1, True))
        self.assertEqual(self.ask(AMD, 0, types.SimpleNamespace()), (0, True))
        self.assertEqual(self.ask(AMD, 0, 5), (0, True))

    def test_intel_by_xpu(self):
        torch = fake_torch(True, [pci(3), pci(0, 2)], "xpu", xpu="2025.0")
        self.assertEqual([self.ask(INTEL, i, torch) for i in range(2)], [(1, False), (0, False)])

    def test_without_torch_the_variables_of_amd_count(self):
        ask = self.ask
        self.assertEqual([ask(AMD, i) for i in range(4)], [(0, True), (1, True), (2, True), None])
        self.assertEqual([ask(AMD, i, HIP_VISIBLE_DEVICES="2,0") for i in range(3)], [(2, True), (0, True), None])
        self.assertEqual([ask(AMD, i, ROCR_VISIBLE_DEVICES="1,2", HIP_VISIBLE_DEVICES="1") for i in range(2)], [(2, True), None])
        self.assertEqual(ask(AMD, 0, ROCR_VISIBLE_DEVICES="GPU-a1b2c3d4e5f60003"), (2, True))
        self.assertEqual([ask(AMD, i, CUDA_VISIBLE_DEVICES="1") for i in range(2)], [(1, True), None])
        self.assertEqual(ask(AMD, 0, CUDA_VISIBLE_DEVICES="1", HIP_VISIBLE_DEVICES="2"), (2, True))
        for nothing in ("", "-1", "x", "7"):
            self.assertIsNone(ask(AMD, 0, HIP_VISIBLE_DEVICES=nothing), nothing)
        self.assertEqual([ask(AMD, i, HIP_VISIBLE_DEVICES="2,-1,0") for i in range(2)], [(2, True), None])

    def test_without_torch_the_variables_of_nvidia_count(self):
        ask = self.ask
        self.assertEqual([ask(NVIDIA, i) for i in range(3)], [(2, True), (0, True), (1, True)])  # the fastest first
        self.assertEqual([ask(NVIDIA, i, CUDA_DEVICE_ORDER="PCI_BUS_ID") for i in range(3)], [(1, True), (0, True), (2, True)])
        self.assertEqual(ask(NVIDIA, 0, CUDA_DEVICE_ORDER="PCI_BUS_ID", CUDA_VISIBLE_DEVICES="2"), (2, True))
        self.assertEqual(ask(NVIDIA, 0, CUDA_VISIBLE_DEVICES="GPU-aaaaaaaa"), (1, True))
        self.assertEqual(ask(NVIDIA, 0, fake_torch(False, [], cuda="12.4"), HIP_VISIBLE_DEVICES="1"), (2, True))

    def test_without_torch_the_mask_of_level_zero_counts(self):
        ask = self.ask
        self.assertEqual([ask(INTEL, i, ZE_AFFINITY_MASK="1") for i in range(2)], [(1, True), None])
        self.assertEqual([ask(INTEL, i, ZE_AFFINITY_MASK="1.0,1.1,0") for i in range(2)], [(1, True), (0, True)])

    def test_the_variable_chooses_the_vendor_on_a_machine_with_several(self):
        mixed = Tap(Device(0, "0000:01:00.0", "nvidia"), Device(1, "0000:c5:00.0", "amd"))
        self.assertEqual(self.ask(mixed, 0), (0, True))
        self.assertEqual(self.ask(mixed, 0, HIP_VISIBLE_DEVICES="0"), (1, True))
        self.assertEqual(self.ask(mixed, 0, fake_torch(False, [], hip="6.2")), (1, True))

    def test_nothing_there(self):
        self.assertIsNone(self.ask(Tap(), 0))
        self.assertIsNone(self.ask(AMD, -1))
        self.assertIsNone(self.ask(Tap(Device(0, "platform:npu", "other")), 0))

    def test_the_answer_is_a_device_number(self):
        found = torch_device(AMD, 1, {})
        self.assertEqual({0: "a", 1: "b"}[found], "b")
        self.assertEqual(found.id, "0000:83:00.0")
        self.assertIsInstance(found, gputap.TorchDevice)


if __name__ == "__main__":
    main()
