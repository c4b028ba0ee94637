import { isJsonObject, type Json } from '../../lib/json.ts';
import type { AgentEvent } from '../../tools/events.ts';
import { FORGE_TOOL_NAME } from '../../tools/forge-test-call.ts';

/** What stands in the place of a withheld source, and of a text that may quote it. */
export const WITHHELD = '[source withheld]';
/** Shorter parts occur in any text. */
const MIN_PART = 8;
/** With more parts than this every text is withheld. */
const MAX_PARTS = 5_000;

/**
 * Knows the sources of an agent whose sources are not stored (`forge.persistSource: false`), and removes them from what is stored. What a
 * forge gets and what its gates say is withheld as a whole; other texts lose the lines and statements of the sources.
 */
export class WithheldSources {
  readonly #parts = new Set<string>();

  /** Remembers a source, or the arguments of a forge that contain one. */
  learn(source: Json): void {
    for (const text of textsIn(source)) {
      for (const part of text.split(/[\n;{}]/)) {
        const trimmed = part.trim();
        if (trimmed.length >= MIN_PART && this.#parts.size <= MAX_PARTS) this.#parts.add(trimmed);
      }
    }
  }

  text(text: string): string {
    if (this.#parts.size === 0 || text.length < MIN_PART) return text;
    if (this.#parts.size > MAX_PARTS) return WITHHELD;
    let clean = text;
    for (const part of this.#parts) if (clean.includes(part)) clean = clean.replaceAll(part, WITHHELD);
    return clean;
  }

  json<T extends Json>(value: T): T {
    if (typeof value === 'string') return this.text(value) as T;
    if (Array.isArray(value)) return value.map((item) => this.json(item)) as unknown as T;
    if (!isJsonObject(value)) return value;
    return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, this.json(item)])) as T;
  }

  event<T extends AgentEvent>(event: T): T {
    return this.#cleanEvent(event) as T;
  }

  #cleanEvent(event: AgentEvent): AgentEvent {
    switch (event.type) {
      case 'tool-call':
        if (event.tool === FORGE_TOOL_NAME) return { ...event, input: { withheld: WITHHELD } };
        break;
      case 'tool-result':
        if (event.tool === FORGE_TOOL_NAME) return { ...event, summary: event.ok ? '' : WITHHELD };
        break;
      case 'forge-gate':
        return {
          ...event,
          result: { ...event.result, note: PLAIN_NOTES.has(event.result.gate) ? event.result.note : '' },
        };
      case 'forge-refused':
        return { ...event, message: WITHHELD };
      case 'promotion':
        return { ...event, note: '' };
      default:
    }
    return this.#textsOf(event);
  }

  /** Only texts that the model or a tool wrote: a source cannot change names, ids and codes. */
  #textsOf(event: AgentEvent): AgentEvent {
    const members = Object.entries(event).map(([name, value]) => [
      name,
      TEXT_MEMBERS.has(name) ? this.json(value as Json) : value,
    ]);
    return Object.fromEntries(members) as AgentEvent;
  }
}

const TEXT_MEMBERS: ReadonlySet<string> = new Set([
  'text',
  'reply',
  'message',
  'summary',
  'reason',
  'description',
  'input',
]);

/** Gates whose notes are figures. */
const PLAIN_NOTES: ReadonlySet<string> = new Set(['tests', 'resources', 'registration', 'build']);

/** All texts of a value: a model may write its source under any name, as one text or as a list of lines. */
function textsIn(value: Json): string[] {
  if (typeof value === 'string') return [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  return isJsonObject(value)
    ? Object.entries(value).flatMap(([name, item]) => (OPEN.has(name) ? [] : textsIn(item)))
    : [];
}

/** Members of a request that are stored with the tool. */
const OPEN: ReadonlySet<string> = new Set(['name', 'description', 'inputSchema', 'outputSchema', 'testCases', 'mode']);
