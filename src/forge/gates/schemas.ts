import { type SchemaCompiler, validateSchema } from '../../tools/json-schema/compiler.ts';
import { printable } from '../../lib/printable.ts';
import type { ParsedArtifact } from '../parse-artifact.ts';
import type { ForgeViolation } from '../request.ts';

/**
 * Validates both schemas, which come from an untrusted author. Returns every malformed, dangerous and misspelled part. `compiler` keeps the
 * compiled schemas for later checks of values.
 */
export function checkSchemas(
  { inputSchema, outputSchema }: Pick<ParsedArtifact, 'inputSchema' | 'outputSchema'>,
  compiler: Pick<SchemaCompiler, 'validate'> = { validate: validateSchema },
): ForgeViolation[] {
  const found = [...compiler.validate(inputSchema, 'inputSchema'), ...compiler.validate(outputSchema, 'outputSchema')];
  return found.map(({ problem, path, message }) => ({
    code: problem === 'unknown-keyword' ? 'TEMPER_FORGE_EXTRA_FIELD' : 'TEMPER_FORGE_SCHEMA',
    message: printable(`${path}: ${message}`, 400),
  }));
}
