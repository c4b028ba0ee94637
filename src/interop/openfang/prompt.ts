import type { JsonObject } from '../../lib/json.ts';
import type { ImportContext } from './import-context.ts';
import type { ImportLog } from './keys/import-log.ts';
import { textAt } from './source/source-values.ts';
import { OPENFANG_TOOLS, RENAMED_TOOLS } from './tool-names.ts';

const PATH = ['model', 'system_prompt'];
const FIELD = 'spec.prompt.system';
const MAX_PROMPT = 65_536;
/** What OpenFang sends for an agent without a prompt. */
const DEFAULT_PROMPT = 'You are a helpful AI agent.';

/**
 * The system prompt, with the names that tools have here. The log names the tools that the prompt mentions and the agent does not have:
 * a model calls the tools that its prompt names.
 */
export function importPrompt(
  source: JsonObject,
  granted: readonly string[],
  context: ImportContext,
  log: ImportLog,
): string {
  const text = textAt(source, PATH, log);
  if (text === undefined || text.trim() === '') {
    const note = `the file has no prompt; it is "${DEFAULT_PROMPT}"`;
    if (!log.covers(PATH)) log.add(PATH, 'Changed', { field: FIELD, note });
    return DEFAULT_PROMPT;
  }
  const { prompt, renamed, missing } = withLocalNames(text, granted, context);
  const length = `${text.length} characters`;
  if (prompt.length > MAX_PROMPT) {
    log.refuseFile(PATH, `the prompt has more than ${MAX_PROMPT} characters; shorten it`, length);
    return DEFAULT_PROMPT;
  }
  const notes = [
    ...(renamed.length === 0 ? [] : [`names of tools replaced: ${renamed.join(', ')}`]),
    ...(missing.length === 0 ? [] : [`mentions tools that the agent does not have: ${missing.join(', ')}`]),
  ];
  log.add(PATH, notes.length === 0 ? 'Imported' : 'Changed', {
    value: length,
    field: FIELD,
    ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
  });
  return prompt;
}

function withLocalNames(text: string, granted: readonly string[], { tools, patterns }: ImportContext) {
  const renamed = new Set<string>();
  const missing = new Set<string>();
  const prompt = text.replaceAll(/[A-Za-z0-9_]+/g, (word) => {
    if (!OPENFANG_TOOLS.has(word)) return word;
    const local = RENAMED_TOOLS.get(word) ?? word;
    if (!tools.some(({ name }) => name === local) || !patterns.covers(granted, local, 'tool')) {
      missing.add(word);
      return word;
    }
    if (local !== word) renamed.add(`${word} is ${local}`);
    return local;
  });
  return { prompt, renamed: [...renamed], missing: [...missing] };
}
