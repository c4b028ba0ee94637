import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { PublishedEvent } from './event.ts';

const PLACEHOLDER = /\{\{([^{}]*)\}\}/g;
const EVENT_PATH = /^event(?:\.[A-Za-z0-9_-]{1,64}){0,8}$/;
const NAMES: readonly string[] = ['subject', 'source', 'agent', 'time', 'id'];
const MAX_PLACEHOLDERS = 16;
/** What NATS accepts in one message, without its envelope. */
const MAX_TEXT_BYTES = 160 * 1_024;

/** Why the text is no template of a message; undefined for a valid one. */
export function templateError(template: string): string | undefined {
  const names = [...template.matchAll(PLACEHOLDER)].map(([, name = '']) => name.trim());
  if (names.length > MAX_PLACEHOLDERS) return `it has more than ${MAX_PLACEHOLDERS} placeholders`;
  const unknown = names.find((name) => !NAMES.includes(name) && !EVENT_PATH.test(name));
  if (unknown === undefined) return undefined;
  return `it has a placeholder that is none of {{event}}, {{event.MEMBER}}, ${NAMES.map((name) => `{{${name}}}`).join(', ')}`;
}

/**
 * The text of the message that an event causes. The data is inserted as it is and not searched for placeholders. A member that the data
 * does not have is empty. Throws TEMPER_EVENT_REFUSED for a text that is too long.
 */
export function renderTemplate(template: string, event: PublishedEvent): string {
  const text = template.replaceAll(PLACEHOLDER, (whole, name: string) => valueOf(name.trim(), event) ?? whole);
  if (Buffer.byteLength(text) <= MAX_TEXT_BYTES) return text;
  throw new TemperError(
    'TEMPER_EVENT_REFUSED',
    `the message of the event would have more than ${MAX_TEXT_BYTES / 1_024} KiB; publish less data, or insert less of it`,
  );
}

function valueOf(name: string, event: PublishedEvent): string | undefined {
  if (EVENT_PATH.test(name)) return textOf(memberAt(event.data, name.split('.').slice(1)));
  switch (name) {
    case 'subject':
    case 'source':
    case 'agent':
    case 'time':
    case 'id':
      return event[name];
    default:
      return undefined;
  }
}

function memberAt(data: Json, path: readonly string[]): Json | undefined {
  let value: Json | undefined = data;
  for (const name of path) {
    if (!isJsonObject(value) || !Object.hasOwn(value, name)) return undefined;
    value = value[name];
  }
  return value;
}

function textOf(value: Json | undefined): string {
  if (value === undefined) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}
