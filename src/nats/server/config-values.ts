import { TemperError } from '../../lib/errors.ts';
import { printable } from '../../lib/printable.ts';

/** Values of a nats-server configuration. Each function throws TEMPER_USAGE for a value that could change the structure of the text. */

export const PATH = /^\/[A-Za-z0-9._/-]{0,400}$/;

/** Accepts only characters that need no escape in the server's format. */
export function quoted(what: string, text: string, pattern: RegExp): string {
  return `"${checked(what, text, pattern)}"`;
}

export function checked(what: string, text: string, form: RegExp): string {
  if (form.test(text)) return text;
  throw new TemperError(
    'TEMPER_USAGE',
    `${what}, "${printable(text, 100)}", is not valid in the NATS configuration; it must match ${form.source}`,
  );
}

export function integer(what: string, value: number): string {
  if (Number.isSafeInteger(value) && value > 0) return String(value);
  throw new TemperError('TEMPER_USAGE', `${what} must be a positive whole number, not ${value}`);
}
