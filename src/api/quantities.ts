import { TemperError } from '../lib/errors.ts';

/** Parsers for durations, sizes and amounts of money in specs. All return safe integers and use no floating-point arithmetic. */

const DURATION_UNITS: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

const BYTE_UNITS: Readonly<Record<string, bigint>> = {
  '': 1n,
  k: 1_000n,
  Ki: 1_024n,
  M: 1_000_000n,
  Mi: 1_024n ** 2n,
  G: 1_000_000_000n,
  Gi: 1_024n ** 3n,
  T: 1_000_000_000_000n,
  Ti: 1_024n ** 4n,
};

/** Parses `250ms`, `30s`, `1h30m` into milliseconds. Throws TEMPER_MANIFEST_INVALID for any other string. */
export function parseDuration(text: string): number {
  if (text.length > 32 || !/^(?:\d+(?:ms|s|m|h))+$/.test(text)) {
    throw invalid(text, 'a duration', 'write it as 250ms, 30s, 1h30m or 720h');
  }
  let milliseconds = 0;
  for (const [, amount = '', unit = ''] of text.matchAll(/(\d+)(ms|s|m|h)/g)) {
    milliseconds += Number(amount) * (DURATION_UNITS[unit] ?? Number.NaN);
  }
  if (!Number.isSafeInteger(milliseconds)) throw invalid(text, 'a duration', 'it is too long');
  return milliseconds;
}

/** Parses `512`, `64k`, `128Mi`, `1.5Gi` into bytes, rounded up. Throws TEMPER_MANIFEST_INVALID for any other string. */
export function parseQuantityBytes(text: string): number {
  const parts = text.length > 32 ? null : /^(\d+)(?:\.(\d{1,6}))?(k|Ki|M|Mi|G|Gi|T|Ti)?$/.exec(text);
  if (parts === null) throw invalid(text, 'a number of bytes', 'write it as 128Mi, 1Gi or 500k');
  const [, whole = '', fraction = '', unit = ''] = parts;
  const scale = 10n ** BigInt(fraction.length);
  const scaled = BigInt(whole + fraction) * (BYTE_UNITS[unit] ?? 0n);
  const bytes = Number((scaled + scale - 1n) / scale);
  if (!Number.isSafeInteger(bytes)) throw invalid(text, 'a number of bytes', 'it is too large');
  return bytes;
}

/** Parses `2`, `0.5`, `500m` into millicores. Throws TEMPER_MANIFEST_INVALID for any other string. */
export function parseMillicores(text: string): number {
  const parts = text.length > 32 ? null : /^(\d{1,9})(?:(m)|\.(\d{1,3}))?$/.exec(text);
  if (parts === null) throw invalid(text, 'a number of CPU cores', 'write it as 2, 0.5 or 500m');
  const [, whole = '', milli, fraction = ''] = parts;
  return milli === undefined ? Number(whole + fraction.padEnd(3, '0')) : Number(whole);
}

/** Parses a decimal string into millionths: `"2.00"` is 2,000,000. Throws TEMPER_MANIFEST_INVALID for any other string. */
export function parseDecimalMicros(text: string): number {
  const parts = /^(\d{1,9})(?:\.(\d{1,6}))?$/.exec(text);
  if (parts === null) throw invalid(text, 'a decimal number', 'write it as "2.00", with at most 6 decimals');
  const [, whole = '', fraction = ''] = parts;
  return Number(whole + fraction.padEnd(6, '0'));
}

function invalid(text: string, what: string, fix: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `${JSON.stringify(text.slice(0, 64))} is not ${what}: ${fix}`);
}
