import type { Member } from '../team/member.ts';
import type { SharedState } from '../team/shared-state.ts';

/** Deletes everything that an ended agent stored. Can be repeated. */
export async function deleteAgentData(
  { records, registry }: Pick<SharedState, 'records' | 'registry'>,
  { name, namespace, sessions }: Pick<Member, 'name' | 'namespace' | 'sessions'>,
): Promise<void> {
  const owner = { agent: name, namespace };
  for (const { session } of await sessions.list()) {
    await registry.closeSession({ ...owner, session });
    await sessions.close(session);
  }
  for (const tool of registry.all()) {
    const isOwn =
      tool.active && tool.tier === 'Agent' && tool.owner.agent === name && tool.owner.namespace === namespace;
    if (isOwn) await registry.deactivate(tool.digest, owner, 'its agent was ended');
  }
  for (const kind of ['memory', 'tasks', 'ratings', 'rejected'])
    await records.deleteCollection(`${kind}/${namespace}/${name}`);
  await records.delete(`levels/${namespace}`, name);
  await records.delete('agents', name);
}
