import { printable } from '../../lib/printable.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { SchemaCompiler } from '../../tools/json-schema/compiler.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';
import type { TestResult } from '../types.ts';

/** Checks the output of every test case against the declared schema, as each later call does. */
export function checkOutputs(
  open: ParsedArtifact,
  results: readonly TestResult[],
  schemas: SchemaCompiler,
): ForgeViolation[] {
  const check = schemas.check(open.outputSchema);
  return results.flatMap(({ case: number, run, got }) => {
    const problems = got === undefined || run === 2 ? [] : check(got);
    if (problems.length === 0) return [];
    const message = printable(`case ${number}: the output does not match outputSchema: ${problems.join('; ')}`, 600);
    return [{ code: 'TEMPER_FORGE_OUTPUT_SCHEMA', message }];
  });
}

/** Whether an output has a member that its closed schema does not name. Checks only the top level, where models make this mistake. */
export function hasUndeclaredMember(schema: JsonObject, output: Json): boolean {
  const properties = schema['properties'];
  if (schema['additionalProperties'] !== false || !isJsonObject(properties) || !isJsonObject(output)) return false;
  return Object.keys(output).some((key) => !Object.hasOwn(properties, key));
}
