import { type Digest, isDigest } from '../../lib/canonical.ts';
import { isTemperError } from '../../lib/errors.ts';
import type { SourceStore } from '../../tempering/withheld/source-store.ts';
import { sessionFromToken, sessionToken, token } from '../jetstream/names.ts';
import type { EncryptedTexts } from './encrypted-texts.ts';

/** The withheld sources of tools, each once per agent under the digest of its tool. Methods throw as those of `EncryptedTexts`. */
export interface ToolSources {
  put(agentUid: string, digest: Digest, source: string): Promise<void>;
  /** Undefined when it is lost. */
  get(agentUid: string, digest: Digest): Promise<string | undefined>;
}

export function createToolSources(texts: EncryptedTexts): ToolSources {
  return {
    put: (agentUid, digest, source) => texts.put(sourceKey(agentUid, digest), source),
    get: (agentUid, digest) => texts.get(sourceKey(agentUid, digest)),
  };
}

/** What a key of the store names. */
export type StoredText =
  | { readonly kind: 'tool'; readonly agentUid: string; readonly digest: Digest }
  /** The arguments of a forge that has no result yet. */
  | { readonly kind: 'call'; readonly agentUid: string; readonly session: string };

/** Undefined for a key that this release does not write. */
export function parseTextKey(key: string): StoredText | undefined {
  const [agentUid = '', second = '', session, name] = key.split('.');
  if (second === CALLS) {
    return session === undefined || name === undefined
      ? undefined
      : { kind: 'call', agentUid, session: sessionFromToken(session) };
  }
  const digest = `sha256:${second}`;
  return session === undefined && isDigest(digest) ? { kind: 'tool', agentUid, digest } : undefined;
}

const CALLS = 'calls';
const NOT_STORABLE = ['TEMPER_BUS_TOO_LARGE', 'TEMPER_STORAGE_LIMIT_EXCEEDED'] as const;

export function sourceKey(agentUid: string, digest: Digest): string {
  return `${token(agentUid)}.${token(digest.slice('sha256:'.length))}`;
}

function callKey(agentUid: string, session: string, name: string): string {
  return `${token(agentUid)}.${CALLS}.${sessionToken(session)}.${name}`;
}

/** The arguments of forges of one session that have no result yet. */
export function createCallSources(texts: EncryptedTexts, agentUid: string, session: string): SourceStore {
  return {
    async put(_collection, name, text) {
      try {
        await texts.put(callKey(agentUid, session, token(name)), text);
      } catch (error) {
        // Without them an interrupted forge cannot go on: it is refused, and the model forges again.
        if (!NOT_STORABLE.some((code) => isTemperError(error, code))) throw error;
      }
    },
    get: (_collection, name) => texts.get(callKey(agentUid, session, token(name))),
    delete: (_collection, name) => texts.remove(callKey(agentUid, session, token(name))),
  };
}

export function removeCallSources(texts: EncryptedTexts, agentUid: string, session: string): Promise<void> {
  return texts.remove(callKey(agentUid, session, '*'));
}
