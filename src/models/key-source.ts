import { TemperError } from '../lib/errors.ts';
import { headerSecret, readSecretFile, type SecretFile } from '../net/secret-file.ts';

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
    return keyOf(headerSecret(key), name, `the variable ${keyEnvironment}`);
  };
}

async function keyFromFile(provider: string, path: string): Promise<string> {
  return keyOf(await readSecretFile(path), provider, `the key file ${path}`);
}

function keyOf(found: SecretFile, provider: string, source: string): string {
  if ('secret' in found) return found.secret;
  throw noKey(provider, `${source} ${found.problem}`);
}

function noKey(provider: string, why: string): TemperError {
  return new TemperError('TEMPER_MODEL_UNAUTHORIZED', `provider "${provider}" has no key: ${why}`, {
    details: { provider },
  });
}
