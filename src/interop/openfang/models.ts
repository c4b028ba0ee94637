import type { FieldPath } from '../../api/findings.ts';
import type { AgentSpec } from '../../api/v1alpha1/agent.ts';
import { isSameModelName } from '../../api/names.ts';
import { isJsonObject, type JsonObject } from '../../lib/json.ts';
import { decimalText } from './values/decimals.ts';
import type { ImportLog } from './keys/import-log.ts';
import { integerAt, numberAt, textAt, valueAt } from './source/source-values.ts';

const DEFAULT_MODEL = 'default/default';
const MODEL_NAME = /^[a-z0-9][a-z0-9-]*\/[A-Za-z0-9][A-Za-z0-9._:/-]*$/;
const MAX_NAME = 128;
const MAX_FALLBACKS = 8;
const MAX_OUTPUT_TOKENS = 1_000_000;
const MAX_TEMPERATURE = 2;
const NO_NAME = 'not a name of a model that Temper can use';
const ALIAS = 'an alias; define it in the configuration of the model providers';

type Model = AgentSpec['model'];

/** The models of the agent. Keys and addresses of providers belong to the configuration of the gateway, never to a manifest. */
export function importModels(source: JsonObject, log: ImportLog): Model {
  const primary = importPrimary(source, log);
  const fallbacks = importFallbacks(source, primary, log);
  const maxOutputTokens = importMaxTokens(source, log);
  const temperature = importTemperature(source, log);
  return {
    primary,
    ...(fallbacks.length === 0 ? {} : { fallbacks }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }),
  };
}

function importPrimary(source: JsonObject, log: ImportLog): string {
  const modelKey = valueAt(source, ['model', 'model']) === undefined ? 'name' : 'model';
  const named = importModelName(source, ['model'], modelKey, 'spec.model.primary', log);
  const path = ['model', modelKey];
  if (named === 'invalid') log.refuseFile(path, 'Temper cannot use this name of a model; correct it');
  else if (named === undefined && !log.covers(path)) {
    const note = `no model is named; ${DEFAULT_MODEL} is the configured default model`;
    log.add(path, 'Changed', { field: 'spec.model.primary', note });
  }
  return named === undefined || named === 'invalid' ? DEFAULT_MODEL : named;
}

function importFallbacks(source: JsonObject, primary: string, log: ImportLog): string[] {
  const path = ['fallback_models'];
  const entries = valueAt(source, path);
  if (entries === undefined) return [];
  if (!Array.isArray(entries)) log.invalid(path, entries, 'a list of tables');
  const fallbacks: string[] = [];
  for (const [index, entry] of (Array.isArray(entries) ? entries : []).entries()) {
    const at: FieldPath = [...path, index];
    if (!isJsonObject(entry)) log.invalid(at, entry, 'a table');
    else addFallback(source, at, [primary, ...fallbacks], fallbacks, log);
  }
  if (Array.isArray(entries) && entries.length === 0) log.imported(path, [], 'spec.model.fallbacks', 'no fallback');
  return fallbacks;
}

function addFallback(
  source: JsonObject,
  path: FieldPath,
  earlier: readonly string[],
  fallbacks: string[],
  log: ImportLog,
): void {
  const name = modelNameAt(source, path, 'model', log);
  const note = skipNote(name, earlier, fallbacks.length);
  if (name === undefined || note !== undefined) {
    logModel(source, path, 'NotImported', { note: note ?? NO_NAME }, log);
    return;
  }
  fallbacks.push(name);
  const field = `spec.model.fallbacks[${fallbacks.length - 1}]`;
  logModel(source, path, resultOf(name), { field, ...noteOf(name) }, log);
}

/** Why a fallback is not imported. */
function skipNote(name: string | undefined, earlier: readonly string[], count: number): string | undefined {
  if (name === undefined || name === 'invalid') return NO_NAME;
  if (earlier.some((other) => isSameModelName(other, name))) return `${name} is already tried before it`;
  return count >= MAX_FALLBACKS ? `an agent has at most ${MAX_FALLBACKS} fallbacks` : undefined;
}

function importModelName(
  source: JsonObject,
  path: FieldPath,
  modelKey: string,
  field: string,
  log: ImportLog,
): string | undefined {
  const name = modelNameAt(source, path, modelKey, log);
  if (name === undefined || name === 'invalid') return name;
  logModel(source, path, resultOf(name), { field, ...noteOf(name) }, log, modelKey);
  return name;
}

function modelNameAt(source: JsonObject, path: FieldPath, modelKey: string, log: ImportLog): string | undefined {
  const provider = textAt(source, [...path, 'provider'], log)
    ?.trim()
    .toLowerCase()
    .replaceAll('_', '-');
  const model = textAt(source, [...path, modelKey], log)?.trim();
  if (provider === undefined && model === undefined) return undefined;
  // A name such as `openai/gpt-4o` without a provider has both parts.
  const name =
    provider === undefined && model?.includes('/') === true ? model : `${provider ?? 'default'}/${model ?? 'default'}`;
  return modelName(name) ?? 'invalid';
}

/** The name, if manifests can have it. */
export function modelName(name: string): string | undefined {
  return name.length <= MAX_NAME && MODEL_NAME.test(name) ? name : undefined;
}

function isAlias(name: string): boolean {
  return name.startsWith('default/') && name !== DEFAULT_MODEL;
}

function resultOf(name: string): 'Imported' | 'Changed' {
  return isAlias(name) ? 'Changed' : 'Imported';
}

function noteOf(name: string): { note?: string } {
  return isAlias(name) ? { note: `as ${name}, ${ALIAS}` } : {};
}

function logModel(
  source: JsonObject,
  path: FieldPath,
  result: 'Imported' | 'Changed' | 'NotImported',
  outcome: { field?: string; note?: string },
  log: ImportLog,
  modelKey = 'model',
): void {
  for (const key of ['provider', modelKey]) {
    const value = valueAt(source, [...path, key]);
    if (typeof value === 'string') log.add([...path, key], result, { value, ...outcome });
  }
}

function importMaxTokens(source: JsonObject, log: ImportLog): number | undefined {
  const path = ['model', 'max_tokens'];
  const tokens = integerAt(source, path, log);
  if (tokens === undefined) return undefined;
  if (tokens >= 1 && tokens <= MAX_OUTPUT_TOKENS) {
    log.imported(path, tokens, 'spec.model.maxOutputTokens');
    return tokens;
  }
  log.invalid(path, tokens, `a number from 1 to ${MAX_OUTPUT_TOKENS}`);
  return undefined;
}

function importTemperature(source: JsonObject, log: ImportLog): string | undefined {
  const path = ['model', 'temperature'];
  const temperature = numberAt(source, path, log);
  if (temperature === undefined) return undefined;
  if (temperature <= MAX_TEMPERATURE) {
    log.imported(path, temperature, 'spec.model.temperature');
    return decimalText(temperature);
  }
  log.invalid(path, temperature, `a number from 0 to ${MAX_TEMPERATURE}`);
  return undefined;
}
