import type { Digest } from '../../lib/canonical.ts';
import type { StoredText } from '../../nats/sources/tool-sources.ts';
import type { WithheldSourceReader } from '../../tempering/withheld/artifact-with-source.ts';

/** The encrypted store of withheld sources. Methods throw TEMPER_BUS_* while NATS is unreachable, and TEMPER_SOURCE_UNAVAILABLE without a key. */
export interface WithheldStore extends WithheldSourceReader {
  /** Idempotent. */
  put(agentUid: string, digest: Digest, source: string): Promise<void>;
  /** Everything that is stored, by its key; reads no text. */
  texts(): Promise<ReadonlyMap<string, StoredText>>;
  remove(key: string): Promise<void>;
  /** Encrypts a text with the current encryption key. Returns the id of the encryption key that it has; undefined when it is gone. */
  renew(key: string): Promise<string | undefined>;
  /** The digests of the tools that the sessions of the agent have. */
  sessionTools(agentUid: string): Promise<ReadonlySet<Digest>>;
  sessionExists(agentUid: string, session: string): Promise<boolean>;
}
