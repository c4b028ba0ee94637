import { fullFormats } from 'ajv-formats/dist/formats.js';
import type { Format } from 'ajv';

/** Formats that are checked. Any other is an annotation, as JSON Schema has it. */
const CHECKED = ['date', 'time', 'date-time', 'duration', 'email', 'hostname', 'ipv4', 'uuid', 'json-pointer'] as const;

/** Longer text matches none: some of the expressions behind the formats are quadratic. */
const MAXIMUM_LENGTH = 512;

export const SCHEMA_FORMATS: ReadonlyMap<string, (text: string) => boolean> = new Map([
  ...CHECKED.map((name): [string, (text: string) => boolean] => [name, bounded(fullFormats[name])]),
  [
    'uri',
    (text: string) => text.length <= MAXIMUM_LENGTH * 4 && /^[A-Za-z][A-Za-z0-9+.-]*:/.test(text) && URL.canParse(text),
  ],
]);

function bounded(format: Format): (text: string) => boolean {
  const test = testOf(format);
  return (text) => text.length <= MAXIMUM_LENGTH && test(text);
}

function testOf(format: Format): (text: string) => boolean {
  if (format instanceof RegExp) return (text) => format.test(text);
  if (typeof format === 'function') return (text) => format(text);
  if (typeof format === 'object' && !format.async) {
    const { validate } = format;
    if (validate instanceof RegExp) return (text) => validate.test(text);
    if (typeof validate === 'function') return (text) => (validate as (value: string) => boolean)(text);
  }
  throw new TypeError('a format that cannot be tested on text');
}
