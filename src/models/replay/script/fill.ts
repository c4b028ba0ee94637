import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { isJsonObject, member, type Json } from '../../../lib/json.ts';
import {
  closingToolResults,
  resultValue,
  toolResults,
  userMessages,
  type ReplayConversation,
} from '../conversation.ts';
import { format } from './formatters.ts';
import { parseTemplate, type TemplateReference } from './template.ts';

/** Text with its references replaced. Throws TEMPER_REPLAY_NO_MATCH with the path that does not exist. */
export function fillText(text: string, conversation: ReplayConversation): string {
  return parts(text)
    .map((part) => (typeof part === 'string' ? part : inText(resolve(part, conversation))))
    .join('');
}

/** Any value with the references in its texts replaced. A text that is one reference becomes the value itself. */
export function fillValue(value: Json, conversation: ReplayConversation): Json {
  if (typeof value === 'string') {
    const [only, ...more] = parts(value);
    if (only !== undefined && typeof only !== 'string' && more.length === 0) return resolve(only, conversation);
    return fillText(value, conversation);
  }
  if (Array.isArray(value)) return value.map((item) => fillValue(item, conversation));
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fillValue(item, conversation)]));
}

function parts(text: string): readonly (string | TemplateReference)[] {
  const parsed = parseTemplate(text);
  if ('problem' in parsed) throw new TemperError('TEMPER_REPLAY_SCRIPT_INVALID', `a text ${parsed.problem}`);
  return parsed.parts;
}

function inText(value: Json): string {
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function resolve(reference: TemplateReference, conversation: ReplayConversation): Json {
  const { start, rest } = root(reference, conversation);
  let value = start;
  let resolvedPath = reference.path.slice(0, reference.path.length - rest.length).join('.');
  for (const segment of rest) {
    const next = memberAt(value, segment);
    if (next === undefined)
      throw unresolved(reference, `"${resolvedPath}" has no "${segment}"; it is ${preview(value)}`);
    value = next;
    resolvedPath += `.${segment}`;
  }
  return reference.formatters.reduce<Json>((current, formatter) => {
    const formatted = format(current, formatter.name, formatter.argument);
    if (formatted === undefined)
      throw unresolved(reference, `the formatter "${formatter.name}" cannot be applied to ${preview(current)}`);
    return formatted;
  }, value);
}

function root(reference: TemplateReference, conversation: ReplayConversation): { start: Json; rest: string[] } {
  const [kind = '', name = '', ...deeper] = reference.path;
  const rest = reference.path.slice(1);
  const users = userMessages(conversation);
  switch (kind) {
    case 'model':
      return { start: conversation.model, rest };
    case 'user':
      return { start: users.at(-1)?.text ?? '', rest };
    case 'firstUser':
      return { start: users[0]?.text ?? '', rest };
    case 'lastTool': {
      const result = closingToolResults(conversation).at(-1);
      if (!result) throw unresolved(reference, 'the conversation does not end with a tool result');
      return { start: resultValue(result), rest };
    }
    default: {
      const results = toolResults(conversation);
      const isMatch = (result: (typeof results)[number]): boolean =>
        kind === 'tool' ? result.name === name : result.toolCallId === name;
      const result = results.findLast(isMatch);
      if (!result) throw unresolved(reference, `the conversation has no tool result of "${name}"`);
      return { start: resultValue(result), rest: deeper };
    }
  }
}

function memberAt(value: Json, segment: string): Json | undefined {
  if (!Array.isArray(value)) return member(value, segment);
  if (segment === 'length') return value.length;
  const index = Number(segment);
  return Number.isInteger(index) ? value.at(index) : undefined;
}

function unresolved(reference: TemplateReference, why: string): TemperError {
  return new TemperError('TEMPER_REPLAY_NO_MATCH', `cannot fill {{${reference.source}}}: ${why}`);
}

function preview(value: Json): string {
  return printable(JSON.stringify(value), 200);
}
