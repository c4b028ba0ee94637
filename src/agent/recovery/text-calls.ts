import { isJsonObject, type JsonObject, member } from '../../lib/json.ts';
import type { ModelMessage, ToolCall, ToolSpec } from '../../models/port.ts';
import { type CallForm, MARKED_FORMS, MARKS, typedValue, UNMARKED_FORMS, type WrittenCall } from './call-forms.ts';
import { isQuotation } from './quotation.ts';
import { TextCursor } from './text-cursor.ts';

/** A longer text is an answer with something at its end, not a call. */
const MAX_CHARACTERS = 200_000;
const MAX_CALLS = 16;
/** Marks in one answer that are tried. */
const MAX_STARTS = 16;

export interface RecoveredAnswer {
  /** The text before the calls. */
  text: string;
  toolCalls: ToolCall[];
}

/**
 * The calls that a model wrote into its text, in the forms of common open models, instead of making them. Undefined when the text is
 * an answer. It is one unless all of this holds:
 *
 *   - the calls are the end of the answer, and the first one starts a line;
 *   - every call names an offered tool and is complete;
 *   - a form without a mark of its own, such as a JSON fence, is the whole answer;
 *   - the text of the calls does not stand in a message or a tool result, so that the model does not quote it.
 *
 * A recovered call gets no permission by it: the invoker checks it like every other one. Pure.
 */
export function recoverTextCalls(
  text: string,
  tools: readonly Pick<ToolSpec, 'name' | 'inputSchema'>[],
  messages: readonly ModelMessage[],
): RecoveredAnswer | undefined {
  if (text.length > MAX_CHARACTERS) return undefined;
  const found = trailingCalls(text);
  if (found === undefined || found.calls.length > MAX_CALLS) return undefined;
  const toolCalls = found.calls.flatMap((call, index) => toolCall(call, index, tools) ?? []);
  if (toolCalls.length !== found.calls.length) return undefined;
  if (found.spans.some((span) => isQuotation(span, messages))) return undefined;
  return { text: text.slice(0, found.start).trimEnd(), toolCalls };
}

interface TrailingCalls {
  start: number;
  calls: WrittenCall[];
  /** The text of each form. */
  spans: string[];
}

function trailingCalls(text: string): TrailingCalls | undefined {
  const first = text.length - text.trimStart().length;
  const whole = callsFrom(text, first, [...MARKED_FORMS, ...UNMARKED_FORMS]);
  if (whole !== undefined) return whole;
  for (const start of markedLines(text)) {
    const trailing = callsFrom(text, start, MARKED_FORMS);
    if (trailing !== undefined) return trailing;
  }
  return undefined;
}

/** The first lines that start with a mark and do not stand in a fence. */
function markedLines(text: string): number[] {
  const starts: number[] = [];
  let isFenced = false;
  for (let start = 0; start < text.length && starts.length < MAX_STARTS; ) {
    if (!isFenced && MARKS.some((mark) => text.startsWith(mark, start))) starts.push(start);
    if (text.startsWith('```', start)) isFenced = !isFenced;
    const next = text.indexOf('\n', start);
    start = next === -1 ? text.length : next + 1;
  }
  return starts;
}

/** The calls from here to the end of the text; undefined when anything else stands there. */
function callsFrom(text: string, start: number, forms: readonly CallForm[]): TrailingCalls | undefined {
  const found: TrailingCalls = { start, calls: [], spans: [] };
  const cursor = new TextCursor(text, start);
  while (!cursor.isAtEnd) {
    const { position } = cursor;
    const read = readForm(cursor, forms);
    if (read === undefined || found.calls.length > MAX_CALLS) return undefined;
    found.calls.push(...read);
    found.spans.push(text.slice(position, cursor.position));
    cursor.skipBlanks();
  }
  return found.calls.length > 0 ? found : undefined;
}

function readForm(cursor: TextCursor, forms: readonly CallForm[]): WrittenCall[] | undefined {
  const { position } = cursor;
  for (const form of forms) {
    const calls = form(cursor);
    if (calls !== undefined && cursor.position > position) return calls;
    cursor.position = position;
  }
  return undefined;
}

/** Undefined for a tool that is not offered. */
function toolCall(
  { name, input }: WrittenCall,
  index: number,
  tools: readonly Pick<ToolSpec, 'name' | 'inputSchema'>[],
): ToolCall | undefined {
  const tool = tools.find((offered) => offered.name === name);
  if (tool === undefined) return undefined;
  const json = 'json' in input ? input.json : typedInput(input.texts, tool.inputSchema);
  return { id: `text-call-${index + 1}`, name, arguments: JSON.stringify(json) };
}

function typedInput(texts: readonly [string, string][], { properties }: JsonObject): JsonObject {
  return Object.fromEntries(
    texts.map(([key, value]) => [
      key,
      typedValue(value, isJsonObject(properties) ? member(properties, key) : undefined),
    ]),
  );
}
