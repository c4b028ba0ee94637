import type { ToolEvidence } from '../../nats/promotion/evidence.ts';
import type { SessionRegistry } from '../../nats/sessions/session-registry.ts';

/** Removes the tools of a session, and the uses of those that no other session of the agent has. Returns the number of tools. */
export async function closeSessionTools(
  deps: { registry: Pick<SessionRegistry, 'tools' | 'allTools' | 'close'>; evidence: Pick<ToolEvidence, 'remove'> },
  agentUid: string,
  session: string,
): Promise<number> {
  const { registry, evidence } = deps;
  const closed = await registry.tools(agentUid, session);
  await registry.close(agentUid, session);
  if (closed.length === 0) return 0;
  const left = new Set((await registry.allTools(agentUid)).map(({ digest }) => digest));
  for (const { digest } of closed) if (!left.has(digest)) await evidence.remove(agentUid, digest);
  return closed.length;
}
