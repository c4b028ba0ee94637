import { member, parseUntrustedJson, textAt } from '../../lib/json.ts';
import { textSize } from '../../models/charge/request-size.ts';
import type { ModelMessage } from '../../models/port.ts';
import { LOAD_TOOL_NAME } from '../code/list-tools.ts';

/** How long the instructions of skills stay in the requests of an agent. */
export interface SkillBudget {
  bodyTokens: number;
  /** A share of the context window, from 0 to 1. */
  unloadShare: number;
}

interface LoadedText {
  index: number;
  name: string;
  tokens: number;
}

/**
 * The messages with the instructions that the model still has. When all together have more than `bodyTokens`, or the request more than
 * `remaining` tokens, the skill that was loaded first leaves, until the request is below; the last one stays. A skill that was loaded
 * twice counts once, at its last place. Pure.
 */
export function unloadSkills(
  messages: readonly ModelMessage[],
  { bodyTokens, excess }: { bodyTokens: number; excess: number },
): ModelMessage[] {
  const loaded = messages.flatMap((message, index) => loadedAt(message, index));
  const last = new Map(loaded.map(({ name, index }) => [name, index]));
  const leaving = new Map(loaded.filter(({ name, index }) => last.get(name) !== index).map((one) => [one.index, one]));
  const stay = loaded.filter(({ index }) => !leaving.has(index));
  const released = [...leaving.values()].reduce((sum, { tokens }) => sum + tokens, 0);
  const total = stay.reduce((sum, { tokens }) => sum + tokens, 0);
  let tooMany = Math.max(total - bodyTokens, excess - released);
  for (const one of stay.slice(0, -1)) {
    if (tooMany <= 0) break;
    leaving.set(one.index, one);
    tooMany -= one.tokens;
  }
  if (leaving.size === 0) return [...messages];
  return messages.map((message, index) => {
    const left = leaving.get(index);
    return left === undefined || message.role !== 'tool' ? message : { ...message, text: unloadedText(left.name) };
  });
}

function unloadedText(name: string): string {
  return JSON.stringify({ unloaded: name, note: 'its instructions left the request; load_tool returns them again' });
}

function loadedAt(message: ModelMessage, index: number): LoadedText[] {
  if (message.role !== 'tool' || message.name !== LOAD_TOOL_NAME || message.isError) return [];
  if (!message.text.startsWith('{"skill":')) return [];
  const name = nameIn(message.text);
  return name === '' ? [] : [{ index, name, tokens: textSize(message.text).tokens }];
}

/** Stored histories are untrusted, and long results are cut. */
function nameIn(text: string): string {
  try {
    // A notice may follow on further lines.
    const value = parseUntrustedJson(text.split('\n', 1)[0] ?? '');
    return typeof member(value, 'instructions') === 'string' ? textAt(value, ['skill']) : '';
  } catch {
    return '';
  }
}
