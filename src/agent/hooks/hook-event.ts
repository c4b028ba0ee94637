import type { HookEventName } from '../../api/v1alpha1/agent/hooks.ts';
import { type Json, type JsonObject, isJsonObject, member } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { ErrorCode } from '../../lib/error-codes.ts';
import { truncate } from '../history/tool-result-text.ts';

/** Of a call that a run of `agent_run` makes. */
interface RunIds {
  contextId?: string;
  ancestorIds?: string[];
}

/** What a provider reports about its loop. JSON only, because the receiver may run in another process. */
export type HookEvent =
  | { type: 'turn-start'; turnNumber: number }
  | { type: 'message'; text: string; delta: boolean }
  | { type: 'reasoning'; text: string }
  | ({ type: 'tool-call'; tool: string; args: Json } & RunIds)
  | ({ type: 'tool-result'; tool: string; args: Json; result: Json } & RunIds)
  | { type: 'turn-end'; turnNumber: number; result: string; trace: Json[] }
  | { type: 'error'; error: { code: ErrorCode; message: string }; attempt: number }
  | { type: 'retry'; attempt: number; delayMs: number };

export type HookEventType = HookEvent['type'];

/** What a hook says about an event; nothing means that the loop goes on as it would without the hook. */
export type HookDirective =
  /** Ends the message; at `error` in place of the error. */
  | { stop: true; result?: Json }
  /** Another turn, with this message of the user; at `error` another attempt. */
  | { continue: true; message?: string }
  /** Refuses the call with this reason. */
  | { deny: string }
  /** No objection. The policy still decides. */
  | { allow: true };

export const EVENT_TYPES: Readonly<Record<HookEventName, HookEventType>> = {
  TurnStart: 'turn-start',
  Message: 'message',
  Reasoning: 'reasoning',
  ToolCall: 'tool-call',
  ToolResult: 'tool-result',
  TurnEnd: 'turn-end',
  Error: 'error',
  Retry: 'retry',
};

/** Characters of the JSON of one event. */
export const MAX_EVENT_CHARACTERS = 262_144;
/** Characters of one text of an event that a hook only observes. */
const MAX_TEXT_CHARACTERS = 65_536;
const MAX_MESSAGE_CHARACTERS = 65_536;
const MAX_RESULT_CHARACTERS = 100_000;
const MAX_REASON_CHARACTERS = 500;

/**
 * The arguments of a hook's tool: the members of the event that its schema accepts, so that a tool with a closed schema gets the members it
 * names. The trace is large, and only for a schema that names it. Undefined for a call whose arguments are too large to be shown: a
 * hook that sees a part of a call must not decide about it.
 */
export function hookArguments(event: HookEvent, schema: JsonObject): JsonObject | undefined {
  const named = member(schema, 'properties');
  const accepts = (name: string): boolean => {
    const isNamed = isJsonObject(named) && Object.hasOwn(named, name);
    return isNamed || (name !== 'trace' && member(schema, 'additionalProperties') !== false);
  };
  const shown = Object.entries(bounded(event)).filter(([name]) => accepts(name));
  const input = Object.fromEntries(shown) as JsonObject;
  return JSON.stringify(input).length > MAX_EVENT_CHARACTERS ? undefined : input;
}

/** Texts that a hook observes are cut; the arguments of a call never. */
function bounded(event: HookEvent): HookEvent {
  switch (event.type) {
    case 'message':
    case 'reasoning':
      return { ...event, text: truncate(event.text, MAX_TEXT_CHARACTERS) };
    case 'turn-end':
      return { ...event, result: truncate(event.result, MAX_TEXT_CHARACTERS) };
    case 'tool-result':
      return { ...event, args: boundedJson(event.args), result: boundedJson(event.result) };
    default:
      return event;
  }
}

function boundedJson(value: Json): Json {
  const text = JSON.stringify(value);
  return text.length <= MAX_TEXT_CHARACTERS ? value : truncate(text, MAX_TEXT_CHARACTERS);
}

/** The directive in the output of a hook's tool, if any; or why the output is none for this event. */
export function parseDirective(
  type: HookEventType,
  output: Json,
): { directive?: HookDirective; problem?: never } | { problem: string } {
  if (output === null) return {};
  if (!isJsonObject(output)) return { problem: 'the output is neither an object nor null' };
  const given = DIRECTIVES.filter((name) => isGiven(name, member(output, name)));
  const [name, second] = given;
  if (name === undefined) return {};
  if (second !== undefined) return { problem: `the output has both "${name}" and "${second}"; give one of them` };
  if (name !== 'allow' && !ALLOWED_AT[name].includes(type))
    return { problem: `"${name}" is not a directive at ${type}` };
  return PARSERS[name](output);
}

const DIRECTIVES = ['stop', 'continue', 'deny', 'allow'] as const;
type DirectiveName = (typeof DIRECTIVES)[number];

const ALLOWED_AT: Readonly<Record<Exclude<DirectiveName, 'allow'>, readonly HookEventType[]>> = {
  stop: ['turn-end', 'error'],
  continue: ['turn-end', 'error'],
  deny: ['tool-call'],
};

/** `stop: false` says nothing. `allow: false` does, and is refused below. */
function isGiven(name: DirectiveName, value: Json | undefined): boolean {
  if (value === undefined || value === null) return false;
  return value !== false || (name !== 'stop' && name !== 'continue');
}

type Parsed = ReturnType<typeof parseDirective>;

const PARSERS: Readonly<Record<DirectiveName, (output: JsonObject) => Parsed>> = {
  stop({ stop, result }) {
    if (stop !== true) return { problem: '"stop" must be true' };
    if (result === undefined) return { directive: { stop } };
    const { length } = JSON.stringify(result);
    if (length > MAX_RESULT_CHARACTERS)
      return { problem: `"result" has ${length} characters, above ${MAX_RESULT_CHARACTERS}` };
    return { directive: { stop, result } };
  },
  continue(output) {
    const { message } = output;
    if (output['continue'] !== true) return { problem: '"continue" must be true' };
    if (message === undefined) return { directive: { continue: true } };
    if (typeof message !== 'string' || message.length > MAX_MESSAGE_CHARACTERS)
      return { problem: `"message" must be a text of at most ${MAX_MESSAGE_CHARACTERS} characters` };
    return { directive: message.trim() === '' ? { continue: true } : { continue: true, message } };
  },
  deny({ deny }) {
    if (typeof deny !== 'string') return { problem: '"deny" must be a text with the reason' };
    return { directive: { deny: printable(deny, MAX_REASON_CHARACTERS) } };
  },
  allow({ allow }) {
    return allow === true ? { directive: { allow } } : { problem: '"allow" must be true; refuse a call with "deny"' };
  },
};
