import type { Digest } from '../../lib/canonical.ts';
import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json, type JsonObject, parseJsonBytes } from '../../lib/json.ts';
import { artifactDigest } from '../../tempering/registry/serialization.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { BUCKETS, bucketStream, bucketSubject, sessionToken, token } from '../jetstream/names.ts';
import { publish } from '../jetstream/publish.ts';
import type { AgentQuota } from '../residents/storage-quota.ts';
import type { ToolSources } from '../sources/tool-sources.ts';
import { lastMessage, purge, readMessages } from '../jetstream/stream-reader.ts';

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

export interface SessionToolStoreOptions {
  quotaOf?: ((agentUid: string) => AgentQuota | undefined) | undefined;
  /** Has the sources of tools that do not contain them. Absent: such tools are not read. */
  sources?: Pick<ToolSources, 'put' | 'get'> | undefined;
}

const STREAM = bucketStream(BUCKETS.sessionTools);

export function createSessionToolStore(
  connection: JetStreamConnection,
  { quotaOf = () => undefined, sources }: SessionToolStoreOptions = {},
): SessionToolStore {
  const keyOfSession = (agentUid: string, session: string, rest: string): string =>
    bucketSubject(BUCKETS.sessionTools, `${token(agentUid)}.${session}.${rest}`);
  const keyOf = (agentUid: string, session: string, digest: Digest): string =>
    keyOfSession(agentUid, sessionToken(session), token(digest.slice('sha256:'.length)));
  const read = async (agentUid: string, { data, subject }: { data: Uint8Array; subject: string }) => {
    const tool = parseTool(parseJsonBytes(data), subject);
    return tool === undefined ? undefined : complete(await withSource(agentUid, tool, sources));
  };
  return {
    async put(agentUid, tool) {
      const key = keyOf(agentUid, tool.owner.session, tool.digest);
      if ((await lastMessage(connection, STREAM, key)) !== undefined) return false;
      const stored = await withoutSource(agentUid, tool, sources);
      const quota = quotaOf(agentUid);
      const bytes = Buffer.byteLength(JSON.stringify(stored));
      await quota?.reserve('sessionTools', bytes);
      let isStored = false;
      try {
        isStored =
          (await publish(connection, key, stored as unknown as Json, { expectedLastSequence: 0 })) !== undefined;
        return isStored;
      } finally {
        if (!isStored) quota?.release('sessionTools', bytes);
      }
    },
    async get(agentUid, session, digest) {
      const found = await lastMessage(connection, STREAM, keyOf(agentUid, session, digest));
      return found === undefined ? undefined : read(agentUid, found);
    },
    async list(agentUid, session) {
      const tools: RegisteredTool[] = [];
      const filter = keyOfSession(agentUid, session === undefined ? '*' : sessionToken(session), '*');
      for await (const message of readMessages(connection, STREAM, filter)) {
        const tool = await read(agentUid, message);
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

/** The stored form of a tool. A withheld source is stored first: without it the tool could not be read. */
async function withoutSource(
  agentUid: string,
  tool: RegisteredTool,
  sources: SessionToolStoreOptions['sources'],
): Promise<RegisteredTool> {
  if (!tool.sourceWithheld) return tool;
  const { source, ...implementation } = tool.artifact.implementation;
  if (source === undefined) return tool;
  if (sources === undefined) {
    const message = 'this gateway has no keys of withheld sources; set sourceKeys in its configuration';
    throw new TemperError('TEMPER_SOURCE_UNAVAILABLE', message, { retry: 'backoff' });
  }
  await sources.put(agentUid, tool.digest, source);
  return { ...tool, artifact: { ...tool.artifact, implementation } };
}

async function withSource(
  agentUid: string,
  tool: RegisteredTool,
  sources: SessionToolStoreOptions['sources'],
): Promise<RegisteredTool> {
  if (!tool.sourceWithheld) return tool;
  const source = await sources?.get(agentUid, tool.digest);
  if (source === undefined) return tool;
  return { ...tool, artifact: { ...tool.artifact, implementation: { ...tool.artifact.implementation, source } } };
}

/** Undefined for a tool that differs from its digest, as one does whose source is lost. */
function complete(tool: RegisteredTool): RegisteredTool | undefined {
  return artifactDigest(tool.artifact) === tool.digest ? tool : undefined;
}

/** Undefined for a value that is not a tool, or whose digest or session differs from its key. */
function parseTool(value: Json | undefined, subject: string): RegisteredTool | undefined {
  if (!isJsonObject(value) || !hasToolMembers(value)) return undefined;
  const tool = value as unknown as RegisteredTool;
  const [session = '', digest = ''] = subject.split('.').slice(-2);
  if (sessionToken(tool.owner.session) !== session) return undefined;
  return tool.digest === `sha256:${digest}` ? tool : undefined;
}

function hasToolMembers({ artifact, owner, contributors, verdicts, object, acceptedAt, tier }: JsonObject): boolean {
  if (!isJsonObject(artifact) || !isJsonObject(owner) || tier !== 'Session') return false;
  const texts = [object, acceptedAt, owner.session, owner.agent, owner.namespace];
  return texts.every((text) => typeof text === 'string') && [contributors, verdicts].every(Array.isArray);
}
