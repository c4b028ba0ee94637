import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { CliIo } from '../io.ts';

const MIN_SECRET = 6;

/** Redacts the API keys and tokens of the environment, in all usual encodings. */
export function environmentRedactor(environment: CliIo['environment']): (text: string) => string {
  const secretVariables = Object.entries(environment).filter(([name]) => /_(API_)?KEY$|_TOKEN$/.test(name));
  const values = secretVariables.map(([, value]) => value ?? '').filter((value) => value.length >= MIN_SECRET);
  return createSecretRedactor(values).redact;
}

/** Streams with redacted output. */
export function redactingIo(io: CliIo, redact = environmentRedactor(io.environment)): CliIo {
  return { ...io, out: (text) => io.out(redact(text)), error: (text) => io.error(redact(text)) };
}
