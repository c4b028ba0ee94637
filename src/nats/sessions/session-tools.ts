import type { Digest } from '../../lib/canonical.ts';
import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, sessionToken, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import { parseJsonBytes, lastMessage, purge, readMessages } from '../jetstream/stream-reader.ts';

/** Tools at tier Session, each under the digest of its artifact, stored as long as its session. Methods throw TEMPER_BUS_*. */
export interface SessionToolStore {
  /** False when the session already has this digest; the stored tool is kept. Throws TEMPER_BUS_TOO_LARGE above 200 KiB. */
  put(agentUid: string, tool: RegisteredTool): Promise<boolean>;
  get(agentUid: string, session: string, digest: Digest): Promise<RegisteredTool | undefined>;
  /** Tools of one session, or of all sessions of the agent; oldest first. */
  list(agentUid: string, session?: string): Promise<RegisteredTool[]>;
  remove(agentUid: string, session: string, digest: Digest): Promise<void>;
  removeSession(agentUid: string, session: string): Promise<void>;
}

const STREAM = bucketStream(BUCKETS.sessionTools);

export function createSessionToolStore(
  connection: JetStreamConnection,
  quotaOf: (agentUid: string) => AgentQuota | undefined = () => undefined,
): SessionToolStore {
  const keyOfSession = (agentUid: string, session: string, rest: string): string =>
    bucketSubject(BUCKETS.sessionTools, `${token(agentUid)}.${session}.${rest}`);
  const keyOf = (agentUid: string, session: string, digest: Digest): string =>
    keyOfSession(agentUid, sessionToken(session), token(digest.slice('sha256:'.length)));
  return {
    async put(agentUid, tool) {
      const key = keyOf(agentUid, tool.owner.session, tool.digest);
      if ((await lastMessage(connection, STREAM, key)) !== undefined) return false;
      const quota = quotaOf(agentUid);
      const bytes = Buffer.byteLength(JSON.stringify(tool));
      await quota?.reserve('sessionTools', bytes);
      let stored = false;
      try {
        stored = (await publish(connection, key, tool as unknown as Json, { expectedLastSequence: 0 })) !== undefined;
        return stored;
      } finally {
        if (!stored) quota?.release('sessionTools', bytes);
      }
    },
    async get(agentUid, session, digest) {
      const found = await lastMessage(connection, STREAM, keyOf(agentUid, session, digest));
      return found === undefined ? undefined : parseTool(parseJsonBytes(found.data), found.subject);
    },
    async list(agentUid, session) {
      const tools: RegisteredTool[] = [];
      const filter = keyOfSession(agentUid, session === undefined ? '*' : sessionToken(session), '*');
      for await (const { data, subject } of readMessages(connection, STREAM, filter)) {
        const tool = parseTool(parseJsonBytes(data), subject);
        if (tool !== undefined) tools.push(tool);
      }
      return tools;
    },
    async remove(agentUid, session, digest) {
      await purge(connection, STREAM, keyOf(agentUid, session, digest));
      await quotaOf(agentUid)?.recount('sessionTools');
    },
    async removeSession(agentUid, session) {
      await purge(connection, STREAM, keyOfSession(agentUid, sessionToken(session), '>'));
      await quotaOf(agentUid)?.recount('sessionTools');
    },
  };
}

/** Undefined for a value that is not a tool, or whose digest or session differs from its key. */
function parseTool(value: Json | undefined, subject: string): RegisteredTool | undefined {
  if (!isJsonObject(value) || !hasToolMembers(value)) return undefined;
  const tool = value as unknown as RegisteredTool;
  const [session = '', digest = ''] = subject.split('.').slice(-2);
  if (sessionToken(tool.owner.session) !== session) return undefined;
  return tool.digest === `sha256:${digest}` && artifactDigest(tool.artifact) === tool.digest ? tool : undefined;
}

function hasToolMembers({ artifact, owner, contributors, verdicts, object, acceptedAt, tier }: JsonObject): boolean {
  if (!isJsonObject(artifact) || !isJsonObject(owner) || tier !== 'Session') return false;
  const texts = [object, acceptedAt, owner.session, owner.agent, owner.namespace];
  return texts.every((text) => typeof text === 'string') && [contributors, verdicts].every(Array.isArray);
}
