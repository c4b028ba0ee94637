import { fullFormats } from 'ajv-formats/dist/formats.js';
import type { Format } from 'ajv';

/** The formats that validation checks. Any other format is an annotation, as in JSON Schema. */
const CHECKED_FORMATS = [
  'date',
  'time',
  'date-time',
  'duration',
  'email',
  'hostname',
  'ipv4',
  'uuid',
  'json-pointer',
] as const;

/** Longer text matches no format, because some of the format expressions take quadratic time. */
const MAX_LENGTH = 512;

export const SCHEMA_FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ...CHECKED_FORMATS.map((name): [string, (text: string) => boolean] => [name, bounded(fullFormats[name])]),
  [
    'uri',
    (text: string) => text.length <= MAX_LENGTH * 4 && /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) && URL.canParse(text),
  ],
]);

function bounded(format: Format): (text: string) => boolean {
  const test = testOf(format);
  return (text) => text.length <= MAX_LENGTH && test(text);
}

function testOf(format: Format): (text: string) => boolean {
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format === 'function') return (text) => format(text);
  if (typeof format === 'object' && !format.async) {
    const { validate } = format;
    if (validate instanceof RegExp) return (text) => validate.test(text);
    if (typeof validate === 'function') return (text) => (validate as (value: string) => boolean)(text);
  }
  throw new TypeError('the format cannot be tested on text');
}
