// Units by size, ascending: [size, name].
const prefixed = (unit, prefixes) => Object.entries(prefixes).map(([prefix, power]) => [10 ** power, prefix + unit]);

export const SECONDS = [...prefixed("s", { µ: -6, m: -3, "": 0 }), [60, "min"], [3600, "h"]];
export const JOULES = prefixed("J", { n: -9, µ: -6, m: -3, "": 0, k: 3, M: 6, G: 9 });
export const BITS = prefixed("bit", { "": 0, k: 3, M: 6, G: 9, T: 12, P: 15 });
