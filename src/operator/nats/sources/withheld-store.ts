import type { Clock } from '../../../lib/clock.ts';
import { type Digest, isDigest } from '../../../lib/canonical.ts';
import { BUCKETS, bucketStream, bucketSubject, token } from '../../../nats/jetstream/names.ts';
import { messageCounts } from '../../../nats/jetstream/stream-reader.ts';
import { createEncryptedTexts } from '../../../nats/sources/encrypted-texts.ts';
import { createSourceCipher, type SourceKeyring } from '../../../nats/sources/source-cipher.ts';
import { createToolSources, parseTextKey } from '../../../nats/sources/tool-sources.ts';
import { createSessionStore } from '../../../nats/sessions/session-store.ts';
import type { WithheldStore } from '../../withheld/ports.ts';
import type { NatsLink } from '../nats-link.ts';

/** The port over NATS. While NATS is unreachable, calls fail at once with TEMPER_BUS_UNAVAILABLE. */
export function natsWithheldStore(link: NatsLink, keyring: SourceKeyring, clock: Clock): WithheldStore {
  const cipher = createSourceCipher(keyring, clock);
  const texts = () => createEncryptedTexts(link.current(), cipher);
  return {
    get: async (agentUid, digest) => createToolSources(texts()).get(agentUid, digest),
    put: async (agentUid, digest, source) => createToolSources(texts()).put(agentUid, digest, source),
    async texts() {
      const keys = await texts().keys();
      return new Map(
        keys.flatMap((key) => {
          const text = parseTextKey(key);
          return text === undefined ? [] : [[key, text] as const];
        }),
      );
    },
    remove: async (key) => texts().remove(key),
    renew: async (key) => texts().renew(key),
    async sessionTools(agentUid) {
      const filter = bucketSubject(BUCKETS.sessionTools, `${token(agentUid)}.*.*`);
      const subjects = await messageCounts(link.current(), bucketStream(BUCKETS.sessionTools), filter);
      return new Set(Object.keys(subjects).flatMap(digestAt));
    },
    sessionExists: async (agentUid, session) => createSessionStore(link.current(), agentUid).exists(session),
  };
}

/** Keys end with a digest, or with `list`. */
function digestAt(subject: string): Digest[] {
  const digest = `sha256:${subject.split('.').at(-1) ?? ''}`;
  return isDigest(digest) ? [digest] : [];
}
