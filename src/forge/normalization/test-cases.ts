import { isJsonObject, type Json, type JsonObject, parseUntrustedJson } from '../../lib/json.ts';
import { FIXTURE_ALIASES, TEST_ALIASES } from './aliases.ts';
import type { RequestNotes } from './request-notes.ts';

/** Brings test cases to the documented form: renamed members, JSON text parsed. */
export function normalizeTests(given: Json, outputSchema: Json | undefined, notes: RequestNotes): Json {
  const tests = isJsonObject(given) ? asList(given, notes) : given;
  if (!Array.isArray(tests)) return tests;
  return tests.map((item, index) => normalizeTest(item, `test case ${index + 1}`, outputSchema, notes));
}

/** One case in place of a list, or cases by name. */
function asList(given: JsonObject, notes: RequestNotes): Json {
  const names = Object.keys(notes.renamed(given, TEST_ALIASES, 'testCases: '));
  if (names.includes('input')) {
    notes.warn('testCases was one case; it was taken as a list of one');
    return [given];
  }
  const cases = Object.values(given);
  if (cases.length === 0 || !cases.every(isJsonObject)) return given;
  notes.warn('testCases was an object; its members were taken as the list');
  return cases;
}

function normalizeTest(item: Json, path: string, outputSchema: Json | undefined, notes: RequestNotes): Json {
  const parsed = notes.parsed(item, path);
  if (!isJsonObject(parsed)) return parsed;
  const test = notes.renamed(parsed, TEST_ALIASES, `${path}: `);
  if (typeof test['input'] === 'string') test['input'] = notes.parsed(test['input'], `${path}: input`);
  const expected = test['expectedOutput'];
  if (typeof expected === 'string') test['expectedOutput'] = expectedValue(expected, outputSchema, path, notes);
  if (Array.isArray(test['fixtures'])) {
    test['fixtures'] = test['fixtures'].map((fixture, index) =>
      isJsonObject(fixture) ? notes.renamed(fixture, FIXTURE_ALIASES, `${path}: fixture ${index + 1}: `) : fixture,
    );
  }
  return test;
}

/** An expected output that is JSON text, unless the schema says that the output is text. */
function expectedValue(text: string, outputSchema: Json | undefined, path: string, notes: RequestNotes): Json {
  const type = isJsonObject(outputSchema) ? outputSchema['type'] : undefined;
  const types = type === undefined ? [] : Array.isArray(type) ? type : [type];
  if (types.includes('string')) return text;
  const value = parsedOrUndefined(text);
  if (value === undefined || typeof value === 'string') return text;
  // Without a type, only an object or a list is surely not meant as text.
  if (types.length === 0 && (typeof value !== 'object' || value === null)) return text;
  notes.warn(`${path}: expectedOutput was JSON text; it was parsed`);
  return value;
}

function parsedOrUndefined(text: string): Json | undefined {
  try {
    return parseUntrustedJson(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
