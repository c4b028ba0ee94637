import { createSecrets } from '../telemetry/secrets.ts';
import type { CliIo } from './io.ts';

const SHORTEST_SECRET = 6;

/** The same streams with the keys of the environment, in any of their usual forms, blotted out of all that is printed. */
export function withoutSecrets(io: CliIo): CliIo {
  const named = Object.entries(io.environment).filter(([name]) => /_(API_)?KEY$|_TOKEN$/.test(name));
  const values = named.map(([, value]) => value ?? '').filter((value) => value.length >= SHORTEST_SECRET);
  const { redact } = createSecrets(values);
  return { ...io, out: (text) => io.out(redact(text)), error: (text) => io.error(redact(text)) };
}
