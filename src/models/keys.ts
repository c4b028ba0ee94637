import { readFile } from 'node:fs/promises';
import { messageOf, TemperError } from '../lib/errors.ts';
import type { ProviderConfig } from './providers.ts';

/** Sent where a server wants a key and has no use for it. */
const NO_KEY = 'none';

/**
 * Where a provider's key comes from. A file is read at every call, so a renewed secret is used at once.
 * `environment` is the caller's: nothing here looks at the process.
 */
export function keySource(
  config: ProviderConfig,
  environment: Readonly<Record<string, string | undefined>>,
): () => Promise<string> {
  const { keyFile, keyEnvironment, name } = config;
  if (keyFile !== undefined) return () => keyFromFile(name, keyFile);
  if (keyEnvironment === undefined) return async () => NO_KEY;
  return async () => {
    const key = environment[keyEnvironment]?.trim() ?? '';
    if (key === '') throw noKey(name, `the variable ${keyEnvironment} is not set`);
    return key;
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
  return key;
}

function noKey(provider: string, why: string): TemperError {
  return new TemperError('TEMPER_MODEL_UNAUTHORIZED', `provider "${provider}" has no key: ${why}`, {
    details: { provider },
  });
}
