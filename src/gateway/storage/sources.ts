import type { Clock } from '../../lib/clock.ts';
import type { JetStreamConnection } from '../../nats/connection/connection.ts';
import type { StorageQuota } from '../../nats/residents/storage-quota.ts';
import { createEncryptedTexts, type EncryptedTexts } from '../../nats/sources/encrypted-texts.ts';
import { createSourceCipher, type SourceCipher, SourceKeyring } from '../../nats/sources/source-cipher.ts';
import { parseSourceKeys } from '../../nats/sources/source-keys.ts';
import { createToolSources, type ToolSources } from '../../nats/sources/tool-sources.ts';
import type { Logger } from '../../telemetry/log.ts';
import { FileWatcher } from '../../kube/file-watcher.ts';

/** The withheld sources of agents. Without keys every method that needs one throws TEMPER_SOURCE_UNAVAILABLE. */
export interface GatewaySources {
  cipher: SourceCipher;
  texts: EncryptedTexts;
  tools: ToolSources;
}

export interface SourceDeps {
  bus: JetStreamConnection;
  storage: Pick<StorageQuota, 'of'>;
  clock: Clock;
}

export function createSources(keyring: SourceKeyring, { bus, storage, clock }: SourceDeps): GatewaySources {
  const cipher = createSourceCipher(keyring, clock);
  const texts = createEncryptedTexts(bus, cipher, (agentUid) => storage.of(agentUid));
  return { cipher, texts, tools: createToolSources(texts) };
}

/** The keys of a mounted Secret, which change while the gateway runs. Throws TEMPER_CONFIGURATION_INVALID. */
export async function watchSourceKeys(
  path: string | undefined,
  deps: { clock: Clock; log: Logger },
  stack: AsyncDisposableStack,
): Promise<SourceKeyring> {
  const keyring = new SourceKeyring();
  if (path === undefined) return keyring;
  const read = ([content]: readonly Buffer[]): void => {
    keyring.keys = parseSourceKeys(content?.toString('utf8') ?? '');
  };
  const file = stack.use(await FileWatcher.open({ ...deps, paths: [path], onChange: read }));
  read(file.contents);
  return keyring;
}
