// What the table of cards knows of a device that no driver tells: memory bandwidth and peak arithmetic. The bridge serves the table.

let cards = null;
let asked = null;

/**
 * Fetches the table once; without it there are no specifications.
 * @returns {Promise<void>}
 */
export function askForSpecs() {
  asked ??= fetch(new URL("gpu_specs.json", import.meta.url))
    .then((response) => (response.ok ? response.json() : {}))
    .then((table) => { cards = table.cards ?? null; }, () => {});
  return asked;
}

const hex = (value, digits) => value.toString(16).padStart(digits, "0");
const escaped = (text) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

/**
 * The row of a device, or null where it is not sure which card it is: by its PCI revision, else by its name.
 * @param {?Object} device of hello
 * @param {?Object} [table] cards by id
 * @returns {?{name: string, specs: Object}}
 */
export function specsOf(device, table = cards) {
  if (!table || !device?.device_id) return null;
  const rows = (table[`0x${hex(device.device_id, 4)}`] ?? []).filter((row) => row.vendor === device.vendor);
  const revision = device.revision && rows.find((row) => row.revision?.includes(hex(device.revision, 2)));
  if (revision) return revision;
  if (rows.length === 1 && !rows[0].revision) return rows[0];
  const name = device.name ?? "";
  if (name.includes("/")) return null; // a list of several cards
  const fits = rows.filter((row) => new RegExp(`\\b${escaped(row.name_match)}\\b`, "i").test(name));
  fits.sort((a, b) => b.name_match.length - a.name_match.length);
  return fits.length > 1 && fits[0].name_match.length === fits[1].name_match.length ? null : fits[0] ?? null;
}
