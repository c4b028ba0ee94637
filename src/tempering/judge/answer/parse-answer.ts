import { isJsonObject, type Json, type JsonObject, jsonExcess, member, parseUntrustedJson } from '../../../lib/json.ts';
import { citationProblem, type Material } from './material-lines.ts';

const MAX_RESPONSE_CHARACTERS = 32_768;
const LIMITS = { values: 400, depth: 6 };

/** The JSON object of a response, or why the response is unusable. */
export type ParsedAnswer = { ok: true; object: JsonObject } | { ok: false; problem: string };

/**
 * Reads the response of a reviewer. The whole text must be one JSON object, alone or in one code fence: an object inside prose may
 * be an example, a quotation of the tool or a draft. It must repeat the nonce and cite lines that exist.
 */
export function parseAnswer(text: string, nonce: string, material: Material): ParsedAnswer {
  if (text.length > MAX_RESPONSE_CHARACTERS) return unusable('the answer is too long');
  const body = withoutFence(text.trim());
  if (!body.startsWith('{') || !body.endsWith('}'))
    return unusable('the answer is not one JSON object and nothing else');
  if (jsonExcess(body, LIMITS) !== undefined)
    return unusable('the answer has too many members or is nested too deeply');
  const value = parseObject(body);
  if (value === undefined) return unusable('the answer is not one JSON object and nothing else');
  if (hasDuplicateMember(body)) return unusable('the answer has a duplicate member');
  if (member(value, 'nonce') !== nonce) return unusable('the answer does not repeat the nonce of the question');
  const problem = citationProblem(member(value, 'lines'), material);
  return problem === undefined ? { ok: true, object: value } : unusable(problem);
}

function unusable(problem: string): ParsedAnswer {
  return { ok: false, problem };
}

function withoutFence(text: string): string {
  const fenced = /^```(?:json)?[ \t]*\n([^`]*)\n```$/i.exec(text);
  return fenced?.[1]?.trim() ?? text;
}

function parseObject(text: string): JsonObject | undefined {
  let value: Json;
  try {
    value = parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
  return isJsonObject(value) ? value : undefined;
}

/**
 * JSON.parse keeps the last of two members of one name, so a duplicate is ambiguous. `text` is valid JSON. Names are compared after
 * their escapes are resolved.
 */
function hasDuplicateMember(text: string): boolean {
  const open: Set<string>[] = [];
  for (const [token, name] of text.matchAll(/("(?:[^"\\]|\\.)*")\s*:|"(?:[^"\\]|\\.)*"|[{}]/g)) {
    if (token === '{') open.push(new Set());
    else if (token === '}') open.pop();
    else if (name !== undefined) {
      const names = open.at(-1) ?? new Set();
      const plain = JSON.parse(name) as string;
      if (names.has(plain)) return true;
      names.add(plain);
    }
  }
  return false;
}
