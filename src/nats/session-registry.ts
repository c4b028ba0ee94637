import { TemperError } from '../lib/errors.ts';
import { isJsonObject, type Json } from '../lib/json.ts';
import type { Digest } from '../lib/canonical.ts';
import type { RegisteredTool } from '../tempering/types.ts';
import type { BusConnection } from './connection.ts';
import { documentsIn, type LedgerStore } from './ledger-store.ts';
import { BUCKETS, sessionToken, token } from './names.ts';
import { createSessionTools, type SessionTools } from './session-tools.ts';

/** The forged tools of sessions, as many gateways register them: of two that come at once under one name, one wins. */
export interface SessionRegistry {
  /** Active tools of a session, oldest first. */
  tools(agentUid: string, session: string): Promise<RegisteredTool[]>;
  /** Those of all its sessions. */
  allTools(agentUid: string): Promise<RegisteredTool[]>;
  /** The digests of `tools`, for less. */
  digests(agentUid: string, session: string): Promise<Digest[]>;
  /** `check` is asked with the tools there are, each time another gateway was there first; what it throws is thrown. */
  register(agentUid: string, tool: RegisteredTool, check: (actives: readonly RegisteredTool[]) => void): Promise<void>;
  close(agentUid: string, session: string): Promise<void>;
}

const MOST_ATTEMPTS = 32;

/**
 * A tool is written first, under its digest, where nobody sees it; it is one of the session's when the session's list names it, and
 * the list is only written over the revision that was read.
 */
function createSessionRegistry(
  stored: Pick<SessionTools, 'put' | 'list' | 'removeSession'>,
  lists: LedgerStore,
): SessionRegistry {
  const named = async (agentUid: string, session: string) => {
    const [list, all] = await Promise.all([lists.get(listKey(agentUid, session)), stored.list(agentUid, session)]);
    const digests = digestsIn(list?.value);
    const tools = all.filter((tool) => digests.includes(tool.digest));
    return { tools, revision: list?.revision ?? 0 };
  };
  const listed = async (agentUid: string, session: string): Promise<Digest[]> =>
    digestsIn((await lists.get(listKey(agentUid, session)))?.value);
  return {
    digests: listed,
    async allTools(agentUid) {
      const all = await stored.list(agentUid);
      const found: RegisteredTool[] = [];
      for (const session of new Set(all.map(({ owner }) => owner.session))) {
        const digests = await listed(agentUid, session);
        found.push(...all.filter((tool) => tool.owner.session === session && digests.includes(tool.digest)));
      }
      return found;
    },
    tools: async (agentUid, session) => (await named(agentUid, session)).tools,
    async register(agentUid, tool, check) {
      const { session } = tool.owner;
      check((await named(agentUid, session)).tools);
      await stored.put(agentUid, tool);
      for (let attempt = 0; attempt < MOST_ATTEMPTS; attempt += 1) {
        const { tools, revision } = await named(agentUid, session);
        check(tools);
        const digests = [...tools.map(({ digest }) => digest), tool.digest];
        if ((await lists.write(listKey(agentUid, session), { digests }, revision)) !== undefined) return;
      }
      const message = `the tools of session "${session}" were changed ${MOST_ATTEMPTS} times meanwhile; forge again`;
      throw new TemperError('TEMPER_FORGE_LIMIT_REACHED', message, { retry: 'backoff' });
    },
    close: (agentUid, session) => stored.removeSession(agentUid, session),
  };
}

export function openSessionRegistry(connection: BusConnection): SessionRegistry {
  return createSessionRegistry(createSessionTools(connection), documentsIn(connection, BUCKETS.sessionTools));
}

/** Beside the tools, which have their digests there; removed with them. */
function listKey(agentUid: string, session: string): string {
  return `${token(agentUid)}.${sessionToken(session)}.list`;
}

function digestsIn(value: Json | undefined): Digest[] {
  const digests = isJsonObject(value) ? value['digests'] : undefined;
  return Array.isArray(digests) ? (digests as Digest[]) : [];
}
