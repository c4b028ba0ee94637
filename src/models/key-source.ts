import { readFile } from 'node:fs/promises';
import { messageOf, TemperError } from '../lib/errors.ts';

/** The part of a provider's configuration that determines its key. */
interface KeyConfig {
  name: string;
  keyFile?: string;
  keyEnvironment?: string;
}

/** Sent to servers without keys: the SDKs require one. */
const NO_KEY = 'none';

/**
 * Returns a function that reads a provider's key. A key file is read at every call, so that a rotated secret is used at once.
 * Uses the given `environment`, never `process.env`. The function throws TEMPER_MODEL_UNAUTHORIZED when there is no key.
 */
export function keySource(
  config: KeyConfig,
  environment: Readonly<Record<string, string | undefined>>,
): () => Promise<string> {
  const { keyFile, keyEnvironment, name } = config;
  if (keyFile !== undefined) return () => keyFromFile(name, keyFile);
  if (keyEnvironment === undefined) return async () => NO_KEY;
  return async () => {
    const key = environment[keyEnvironment]?.trim() ?? '';
    if (key === '') throw noKey(name, `the variable ${keyEnvironment} is not set`);
    return headerSafe(key, name, `the variable ${keyEnvironment}`);
  };
}

async function keyFromFile(provider: string, path: string): Promise<string> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    throw noKey(provider, `the key file ${path} cannot be read: ${messageOf(error)}`);
  }
  const key = text.trim();
  if (key === '') throw noKey(provider, `the key file ${path} is empty`);
  return headerSafe(key, provider, `the key file ${path}`);
}

/** Other characters cannot be sent in a header, and the error of the HTTP client would contain the key. */
function headerSafe(key: string, provider: string, source: string): string {
  if (/^[!-~]+$/.test(key)) return key;
  throw noKey(
    provider,
    `${source} contains a space, a line break or a character outside ASCII, which no key has; set it to the key alone`,
  );
}

function noKey(provider: string, why: string): TemperError {
  return new TemperError('TEMPER_MODEL_UNAUTHORIZED', `provider "${provider}" has no key: ${why}`, {
    details: { provider },
  });
}
