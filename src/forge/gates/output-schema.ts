import { printable } from '../../lib/escape.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { SchemaCompiler } from '../../tools/schemas.ts';
import type { OpenArtifact } from '../open-artifact.ts';
import type { Violation } from '../request.ts';
import type { TestResult } from '../types.ts';

/** Every output of every run against the declared schema; the same check each later call gets. */
export function checkOutputs(open: OpenArtifact, results: readonly TestResult[], schemas: SchemaCompiler): Violation[] {
  const check = schemas.check(open.outputSchema);
  return results.flatMap(({ case: number, run, got }) => {
    const problems = got === undefined || run === 2 ? [] : check(got);
    if (problems.length === 0) return [];
    const message = printable(`case ${number}: the output breaks outputSchema: ${problems.join('; ')}`, 600);
    return [{ code: 'TEMPER_FORGE_OUTPUT_SCHEMA', message }];
  });
}

/** Did an output hold a member its closed schema does not name? Looked at on the top level, where it happens. */
export function hasUndeclaredMember(schema: JsonObject, output: Json): boolean {
  const properties = schema['properties'];
  if (schema['additionalProperties'] !== false || !isJsonObject(properties) || !isJsonObject(output)) return false;
  return Object.keys(output).some((key) => !Object.hasOwn(properties, key));
}
