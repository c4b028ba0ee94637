import { isDeepStrictEqual } from 'node:util';
import { TemperError } from '../../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseUntrustedJson, textAt } from '../../../lib/json.ts';
import { printable } from '../../../lib/printable.ts';

/** A model reads the output. */
const MAX_CHARACTERS = 1_000_000;
const MAX_FAILURE = 2_000;
const NO_REASON = 'its server gave no reason';

/**
 * What a tool gives for the result of a server: the structured content, or else the text. Throws TEMPER_TOOL_FAILED for a result with
 * `isError`, with both of them, and TEMPER_TOOL_OUTPUT_INVALID for one that is too large.
 */
export function outputOf(name: string, result: JsonObject): Json {
  const text = textOf(result['content']);
  const structured = result['structuredContent'];
  const json = isJsonObject(structured) ? JSON.stringify(structured) : undefined;
  if (result['isError'] === true)
    throw new TemperError('TEMPER_TOOL_FAILED', `"${name}" failed: ${failureText(text, json)}`);
  const size = (json ?? text).length;
  if (size > MAX_CHARACTERS) {
    const message = `the output of "${name}" has ${size} characters, and ${MAX_CHARACTERS} are read; ask for less`;
    throw new TemperError('TEMPER_TOOL_OUTPUT_INVALID', message);
  }
  return json === undefined ? text : parseUntrustedJson(json);
}

/** Both parts within one limit. Many servers repeat the structured content as text, which is enough once. */
function failureText(text: string, json: string | undefined): string {
  const parts = [text.trim() === '' ? [] : [text], json === undefined || isJson(text, json) ? [] : [json]].flat();
  return parts.length === 0 ? NO_REASON : printable(parts.join(' '), MAX_FAILURE);
}

/** Whether the text is this JSON, however it is laid out. */
function isJson(text: string, json: string): boolean {
  try {
    return isDeepStrictEqual(JSON.parse(text), JSON.parse(json));
  } catch {
    return false;
  }
}

/** The text of all blocks. Models get no images and sounds: a line says that there is one. */
function textOf(content: Json | undefined): string {
  return Array.isArray(content) ? content.map(blockText).join('\n') : '';
}

function blockText(block: Json): string {
  switch (textAt(block, ['type'])) {
    case 'text':
      return textAt(block, ['text']);
    case 'image':
    case 'audio':
      return `[${textAt(block, ['type'])}: ${printable(textAt(block, ['mimeType'], 'unknown'), 100)}]`;
    case 'resource_link':
      return `[resource: ${printable(textAt(block, ['uri']), 1_000)}]`;
    case 'resource': {
      const line = `[resource: ${printable(textAt(block, ['resource', 'uri']), 1_000)}]`;
      const text = textAt(block, ['resource', 'text']);
      return text === '' ? line : `${line}\n${text}`;
    }
    default:
      return '[unknown content]';
  }
}
