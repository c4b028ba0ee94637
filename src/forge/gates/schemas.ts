import { vetSchema } from '../../tools/schemas.ts';
import { printable } from '../../lib/escape.ts';
import type { OpenArtifact } from '../open-artifact.ts';
import type { Violation } from '../request.ts';

/** Validates both schemas, which come from an untrusted author. Returns every malformed, dangerous and misspelled part. */
export function checkSchemas({
  inputSchema,
  outputSchema,
}: Pick<OpenArtifact, 'inputSchema' | 'outputSchema'>): Violation[] {
  const found = [...vetSchema(inputSchema, 'inputSchema'), ...vetSchema(outputSchema, 'outputSchema')];
  return found.map(({ problem, path, message }) => ({
    code: problem === 'unknown-keyword' ? 'TEMPER_FORGE_EXTRA_FIELD' : 'TEMPER_FORGE_SCHEMA',
    message: printable(`${path}: ${message}`, 400),
  }));
}
