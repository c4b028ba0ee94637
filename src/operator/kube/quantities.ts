/** Quantities in the canonical form of the API server, so that a written value compares equal with the stored value. */

const BINARY = ['', 'Ki', 'Mi', 'Gi', 'Ti'];
const DECIMAL = ['', 'k', 'M', 'G'];

/** Bytes, rounded up to whole KiB. */
export function bytesQuantity(bytes: number): string {
  let amount = Math.ceil(bytes / 1_024);
  if (amount === 0) return '0';
  let unit = 1;
  while (amount % 1_024 === 0 && unit < BINARY.length - 1) {
    amount /= 1_024;
    unit += 1;
  }
  return `${amount}${BINARY[unit]}`;
}

export function cpuQuantity(millicores: number): string {
  return millicores % 1_000 === 0 ? countQuantity(millicores / 1_000) : `${millicores}m`;
}

export function countQuantity(count: number): string {
  let amount = count;
  let unit = 0;
  while (amount !== 0 && amount % 1_000 === 0 && unit < DECIMAL.length - 1) {
    amount /= 1_000;
    unit += 1;
  }
  return `${amount}${DECIMAL[unit]}`;
}
