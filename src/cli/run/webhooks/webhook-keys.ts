import { parseWebhookKeys } from '../../../events/webhook/signature.ts';
import type { WebhookPath } from '../../../events/webhook/request.ts';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { readPrivateConfig } from '../../input/private-config.ts';
import type { CliIo } from '../../io.ts';

/** In the configuration folder of the user: `NAMESPACE/AGENT.TRIGGER` to a key, or to a list of up to four of them. */
export const WEBHOOK_KEYS_FILE = 'webhook-keys.yaml';
const MAX_WEBHOOKS = 1_000;

/** The keys of webhooks, by `webhookName`. */
export type LocalWebhookKeys = ReadonlyMap<string, readonly Uint8Array[]>;

/** The name of a webhook in the file of keys. */
export function webhookName({ namespace, agent, trigger }: WebhookPath): string {
  return `${namespace}/${agent}.${trigger}`;
}

/** No keys without the file. Throws TEMPER_MANIFEST_INVALID for a file that others can read, and for an entry that is not a key. */
export async function readWebhookKeys(io: CliIo): Promise<LocalWebhookKeys> {
  const { file, value } = await readPrivateConfig(WEBHOOK_KEYS_FILE, 'the file of webhook keys', io, {
    hasSecrets: true,
  });
  if (value === undefined || value === null) return new Map();
  const entries = typeof value === 'object' && !Array.isArray(value) ? Object.entries(value) : undefined;
  if (entries === undefined || entries.length > MAX_WEBHOOKS)
    throw invalid(file, `it must map NAMESPACE/AGENT.TRIGGER to keys, at most ${MAX_WEBHOOKS}`);
  return new Map(entries.map(([name, keys]) => [name, keysOf(file, name, keys)]));
}

function keysOf(file: string, name: string, value: unknown): readonly Uint8Array[] {
  const texts: readonly unknown[] = Array.isArray(value) ? value : [value];
  const keys = texts.flatMap((text) => (typeof text === 'string' ? parseWebhookKeys(text) : []));
  if (keys.length === texts.length && keys.length > 0) return keys;
  // The value may be a secret with a typing error, so the message does not have it.
  throw invalid(
    file,
    `"${printable(name, 200)}" must have keys that are whsec_ and 24 to 64 bytes in Base64; temper webhook prints how to create one`,
  );
}

function invalid(file: string, reason: string): TemperError {
  return new TemperError('TEMPER_MANIFEST_INVALID', `${file}: ${reason}`);
}
