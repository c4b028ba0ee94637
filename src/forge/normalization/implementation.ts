import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { repairSource } from '../source-repair/repair-source.ts';
import { FLAT_MEMBERS, IMPLEMENTATION_ALIASES, MODES, STEP_ALIASES } from './aliases.ts';
import type { RequestNotes } from './request-notes.ts';

/** Takes the parts of the implementation out of the request, wherever the model put them. */
export function normalizeImplementation(request: JsonObject, notes: RequestNotes): Json {
  const flat = takeFlatMembers(request);
  let input = request['implementation'];
  if (isLines(input) || (typeof input === 'string' && !isJsonText(input))) {
    notes.warn('implementation was text; it was taken as code');
    input = { code: input };
  }
  if (input === undefined && Object.keys(flat).length === 0) return null;
  const parsed = input === undefined ? {} : notes.parsed(input, 'implementation');
  if (!isJsonObject(parsed)) return parsed;
  const implementation = notes.renamed({ ...flat, ...parsed }, IMPLEMENTATION_ALIASES, 'implementation.');
  for (const member of ['steps', 'allowlist', 'domains', 'paths']) {
    const value = implementation[member];
    if (typeof value === 'string') implementation[member] = notes.list(value, `implementation.${member}`);
  }
  if (isLines(implementation['code'])) {
    notes.warn('implementation.code was a list of lines; the lines were joined');
    implementation['code'] = implementation['code'].join('\n');
  }
  if (Array.isArray(implementation['steps'])) implementation['steps'] = normalizeSteps(implementation['steps'], notes);
  normalizeMode(implementation, notes);
  return implementation;
}

/** Repairs the source. Needs the input schema, which distinguishes parameters from the input as a whole. */
export function repairImplementation(request: JsonObject, notes: RequestNotes): string[] {
  const { implementation, inputSchema, name } = request;
  if (!isJsonObject(implementation) || typeof implementation['code'] !== 'string') return [];
  const schema = isJsonObject(inputSchema) ? inputSchema['properties'] : undefined;
  const properties = isJsonObject(schema) ? Object.keys(schema) : [];
  const repaired = repairSource(implementation['code'], typeof name === 'string' ? name : '', properties);
  implementation['code'] = repaired.source;
  for (const repair of repaired.repairs) notes.warn(`code: ${repair}`);
  return repaired.repairs;
}

function takeFlatMembers(request: JsonObject): JsonObject {
  const flat: JsonObject = {};
  for (const member of FLAT_MEMBERS) {
    const value = request[member];
    if (value === undefined) continue;
    flat[member] = value;
    delete request[member];
  }
  if (typeof request['function'] === 'string') {
    flat['function'] = request['function'];
    delete request['function'];
  }
  return flat;
}

function isLines(value: Json | undefined): value is string[] {
  return Array.isArray(value) && value.length > 0 && value.every((line) => typeof line === 'string');
}

/** Text that begins like a JSON object, and not like a destructuring or a block. */
function isJsonText(text: string): boolean {
  return /^\s{0,40}\{\s{0,40}["}]/.test(text);
}

function normalizeMode(implementation: JsonObject, notes: RequestNotes): void {
  const input = implementation['mode'];
  const inferred = implementation['steps'] === undefined ? 'sandbox' : 'compose';
  if (typeof input !== 'string') {
    notes.warn(`mode was missing; ${inferred} was inferred from ${inferred === 'compose' ? 'steps' : 'code'}`);
    implementation['mode'] = inferred;
    return;
  }
  const mode = Object.hasOwn(MODES, input.toLowerCase()) ? MODES[input.toLowerCase()] : undefined;
  if (mode === undefined || mode === input) return;
  if (input !== 'Sandbox' && input !== 'Compose') {
    notes.warn(`mode ${JSON.stringify(input.slice(0, 40))} was taken as ${mode}`);
  }
  implementation['mode'] = mode;
}

/** One reference in place of an object: `$input`, `$prev.rows`. */
function isReference(mapping: Json): mapping is string {
  return typeof mapping === 'string' && /^\s{0,8}\$(?:input|prev|steps)\b/.test(mapping);
}

function exampleOf(reference: string): string {
  const trimmed = reference.trim();
  return trimmed === '$input' ? '$input.text' : trimmed.slice(0, 60);
}

function normalizeSteps(steps: Json[], notes: RequestNotes): Json[] {
  return steps.map((input, index) => {
    const path = `step ${index + 1}`;
    const parsed = notes.parsed(input, path);
    if (!isJsonObject(parsed)) return parsed;
    const step = notes.renamed(parsed, STEP_ALIASES, `${path}: `);
    if (step['name'] === undefined) step['name'] = `step${index + 1}`;
    const mapping = step['inputMapping'] ?? {};
    if (isReference(mapping)) {
      notes.report(
        `${path}: inputMapping is the reference ${JSON.stringify(mapping.slice(0, 60))}, but a tool takes an object of arguments; name them, such as {"text": ${JSON.stringify(exampleOf(mapping))}}`,
      );
      return step;
    }
    const example = 'inputMapping must be an object of arguments, such as {"text": "$input.text"}';
    step['inputMapping'] = notes.parsed(mapping, `${path}: inputMapping`, example);
    return step;
  });
}
