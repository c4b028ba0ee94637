import type { FastifySchemaCompiler } from 'fastify';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { Value } from 'typebox/value';
import { firstViolation } from '../../../gateway-api/validation/first-violation.ts';

/**
 * Checks parts of requests. The check ends at the first violation, and so does the message: a large invalid body costs no more than a
 * valid one.
 */
export const compileValidator: FastifySchemaCompiler<TSchema> = ({ schema, httpPart }) => {
  const compiled = Compile(schema);
  return (value: unknown) => {
    const converted = httpPart === 'body' ? value : Value.Convert(schema, value);
    if (compiled.Check(converted)) return { value: converted };
    const { path: instancePath, message } = firstViolation(schema, converted);
    return { error: [{ instancePath, message, keyword: '', schemaPath: '', params: {} }] };
  };
};
