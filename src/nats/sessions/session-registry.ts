import { TemperError } from '../../lib/errors.ts';
import { isJsonObject, type Json } from '../../lib/json.ts';
import type { Digest } from '../../lib/canonical.ts';
import type { RegisteredTool } from '../../tempering/types.ts';
import type { JetStreamConnection } from '../connection/connection.ts';
import { createDocumentStore, type DocumentStore } from '../jetstream/document-store.ts';
import { BUCKETS, sessionToken, token } from '../jetstream/names.ts';
import { createSessionToolStore, type SessionToolStore, type SessionToolStoreOptions } from './session-tools.ts';

/** The forged tools of sessions. Several gateways register concurrently: of two tools with the same name one wins. */
export interface SessionRegistry {
  /** Active tools of a session, oldest first. */
  tools(agentUid: string, session: string): Promise<RegisteredTool[]>;
  /** Active tools of all sessions of the agent. */
  allTools(agentUid: string): Promise<RegisteredTool[]>;
  /** The digests of `tools`, with one read instead of two. */
  digests(agentUid: string, session: string): Promise<Digest[]>;
  /**
   * Calls `check` with the active tools, and again after each conflict with another gateway; what `check` throws is thrown, and the tools
   * that it returns are replaced. Returns the replaced tools. Idempotent: a tool whose digest is active already stays as it is, and
   * `check` is not called. Throws TEMPER_FORGE_LIMIT_REACHED after 32 conflicts.
   */
  register(
    agentUid: string,
    tool: RegisteredTool,
    check: (actives: readonly RegisteredTool[]) => readonly RegisteredTool[],
  ): Promise<readonly RegisteredTool[]>;
  /** Removes one tool of the session and returns it; undefined when the session does not have it. */
  drop(agentUid: string, session: string, digest: Digest): Promise<RegisteredTool | undefined>;
  close(agentUid: string, session: string): Promise<void>;
}

const MAX_ATTEMPTS = 32;

/** The new list of a session and what leaves it; undefined when nothing changes. */
type ListChange = (
  tools: readonly RegisteredTool[],
) => { keep: readonly RegisteredTool[]; remove: readonly RegisteredTool[] } | undefined;

/** The active tools of a session, and the revision of their list. */
type ToolReader = (agentUid: string, session: string) => Promise<{ tools: RegisteredTool[]; revision: number }>;

/** Compares and swaps the list, then deletes what it no longer names. Returns the removed tools. */
function listChanges(stored: Pick<SessionToolStore, 'remove'>, lists: DocumentStore, readTools: ToolReader) {
  return async (agentUid: string, session: string, change: ListChange): Promise<RegisteredTool[]> => {
    for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
      const { tools, revision } = await readTools(agentUid, session);
      const changed = change(tools);
      if (changed === undefined) return [];
      const digests = changed.keep.map(({ digest }) => digest);
      if ((await lists.write(listKey(agentUid, session), { digests }, revision)) === undefined) continue;
      for (const { digest } of changed.remove) await stored.remove(agentUid, session, digest);
      return [...changed.remove];
    }
    const message = `the tools of session "${session}" were changed ${MAX_ATTEMPTS} times by other gateways; try again`;
    throw new TemperError('TEMPER_FORGE_LIMIT_REACHED', message, { retry: 'backoff' });
  };
}

/**
 * A tool is first written under its digest, where it is not active yet. It becomes active when the session's list contains its digest;
 * the list is only written over the revision that was read (compare and swap).
 */
function createSessionRegistry(
  stored: Pick<SessionToolStore, 'put' | 'list' | 'remove' | 'removeSession'>,
  lists: DocumentStore,
): SessionRegistry {
  const readTools: ToolReader = async (agentUid, session) => {
    const list = await lists.get(listKey(agentUid, session));
    const digests = parseDigests(list?.value);
    // Most sessions have none.
    const all = digests.length === 0 ? [] : await stored.list(agentUid, session);
    const tools = all.filter((tool) => digests.includes(tool.digest));
    return { tools, revision: list?.revision ?? 0 };
  };
  const readDigests = async (agentUid: string, session: string): Promise<Digest[]> =>
    parseDigests((await lists.get(listKey(agentUid, session)))?.value);
  const changeList = listChanges(stored, lists, readTools);
  return {
    digests: readDigests,
    async allTools(agentUid) {
      const all = await stored.list(agentUid);
      const found: RegisteredTool[] = [];
      for (const session of new Set(all.map(({ owner }) => owner.session))) {
        const digests = await readDigests(agentUid, session);
        found.push(...all.filter((tool) => tool.owner.session === session && digests.includes(tool.digest)));
      }
      return found;
    },
    tools: async (agentUid, session) => (await readTools(agentUid, session)).tools,
    async register(agentUid, tool, check) {
      const { session } = tool.owner;
      const isActive = (tools: readonly RegisteredTool[]) => tools.some(({ digest }) => digest === tool.digest);
      const { tools: before } = await readTools(agentUid, session);
      if (isActive(before)) return [];
      check(before);
      await stored.put(agentUid, tool);
      const replaced = await changeList(agentUid, session, (tools) => {
        // A retry of the same request at another gateway was faster.
        if (isActive(tools)) return undefined;
        const replaces = check(tools);
        return { keep: [...tools.filter((other) => !replaces.includes(other)), tool], remove: replaces };
      });
      // A concurrent drop of the same digest may have removed what was written before the list named it.
      await stored.put(agentUid, tool);
      return replaced;
    },
    async drop(agentUid, session, digest) {
      const removed = await changeList(agentUid, session, (tools) => {
        const remove = tools.filter((tool) => tool.digest === digest);
        return remove.length === 0 ? undefined : { keep: tools.filter((tool) => !remove.includes(tool)), remove };
      });
      return removed[0];
    },
    close: (agentUid, session) => stored.removeSession(agentUid, session),
  };
}

export function openSessionRegistry(
  connection: JetStreamConnection,
  options: SessionToolStoreOptions = {},
): SessionRegistry {
  return createSessionRegistry(
    createSessionToolStore(connection, options),
    createDocumentStore(connection, BUCKETS.sessionTools),
  );
}

/** In the same bucket as the tools, whose keys end with a digest; removed with them. */
function listKey(agentUid: string, session: string): string {
  return `${token(agentUid)}.${sessionToken(session)}.list`;
}

function parseDigests(value: Json | undefined): Digest[] {
  const digests = isJsonObject(value) ? value['digests'] : undefined;
  return Array.isArray(digests) ? (digests as Digest[]) : [];
}
