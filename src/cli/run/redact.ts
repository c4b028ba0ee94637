import { createSecretRedactor } from '../../telemetry/secret-redactor.ts';
import type { CliIo } from '../io.ts';

const MIN_SECRET = 6;

/** Streams that redact the API keys and tokens of the environment, in all usual encodings. */
export function redactingIo(io: CliIo): CliIo {
  const secretVariables = Object.entries(io.environment).filter(([name]) => /_(API_)?KEY$|_TOKEN$/.test(name));
  const values = secretVariables.map(([, value]) => value ?? '').filter((value) => value.length >= MIN_SECRET);
  const { redact } = createSecretRedactor(values);
  return { ...io, out: (text) => io.out(redact(text)), error: (text) => io.error(redact(text)) };
}
