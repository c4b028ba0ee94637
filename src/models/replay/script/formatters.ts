import { isJsonObject, member, type Json } from '../../../lib/json.ts';

/** The formatted value; undefined when the formatter does not accept a value of this type. */
export function format(value: Json, name: string, argument: string): Json | undefined {
  switch (name) {
    case 'json':
      return JSON.stringify(value);
    case 'count':
      if (Array.isArray(value)) return value.length;
      return isJsonObject(value) ? Object.keys(value).length : undefined;
    case 'join':
      return Array.isArray(value) ? value.map(plain).join(argument === '' ? ', ' : argument) : undefined;
    case 'pluck':
      return plucked(value, argument);
    case 'after':
    case 'before':
      return typeof value === 'string' ? cut(value, name, argument) : undefined;
    default:
      return typeof value === 'number' ? formatNumber(value, name, digits(argument)) : undefined;
  }
}

/** The part of a text after, or before, the first occurrence of `mark`. */
function cut(value: string, side: 'after' | 'before', mark: string): string | undefined {
  const at = mark === '' ? -1 : value.indexOf(mark);
  if (at === -1) return undefined;
  return side === 'after' ? value.slice(at + mark.length) : value.slice(0, at);
}

function plain(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function plucked(value: Json, name: string): Json | undefined {
  if (!Array.isArray(value)) return undefined;
  const members = value.map((item) => member(item, name)).filter((item) => item !== undefined);
  return members.length === value.length ? members : undefined;
}

function digits(argument: string): number | undefined {
  const value = argument === '' ? Number.NaN : Number(argument);
  return Number.isInteger(value) && value >= 0 && value <= 20 ? value : undefined;
}

function formatNumber(value: number, name: string, digits: number | undefined): string | undefined {
  switch (name) {
    case 'number':
      return grouped(value, digits);
    case 'fixed':
      return value.toFixed(digits ?? 0);
    case 'signed':
      return `${value < 0 ? '-' : '+'}${grouped(Math.abs(value), digits)}`;
    case 'percent':
      return `${grouped(value * 100, digits ?? 1)}%`;
    case 'currency':
      return `${value < 0 ? '-' : ''}$${grouped(Math.abs(value), digits ?? 2)}`;
    default:
      return undefined;
  }
}

/** With commas between thousands; without `digits`, with all decimals of the number. */
function grouped(value: number, digits: number | undefined): string {
  const options = digits === undefined ? { maximumFractionDigits: 12 } : undefined;
  return value.toLocaleString('en-US', options ?? { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
