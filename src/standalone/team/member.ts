import type { AgentProgram } from '../../acp/process/agent-command.ts';
import { createRecordSessionStore, type RecordSessionStore } from '../../agent/session/session-store.ts';
import type { Agent } from '../../api/v1alpha1/agent.ts';
import type { TrustPolicy } from '../../api/v1alpha1/trustpolicy.ts';
import { createWithheldCalls } from '../../tempering/withheld/withheld-calls.ts';
import { createParkedTurns, type ParkedTurnsOfAgent } from '../sessions/parked-turns.ts';
import type { SharedState } from './shared-state.ts';

export const DEFAULT_NAMESPACE = 'default';

/** An agent as its manifests define it. */
export interface AgentDefinition {
  readonly agent: Agent;
  readonly policy: TrustPolicy;
  /** The program of an agent with `spec.model.agent`. */
  readonly program?: AgentProgram | undefined;
}

/** Names one agent of a state folder. */
export interface AgentScope {
  readonly name: string;
  readonly namespace: string;
}

/** An agent of this process, whether it was opened or not. */
export interface Member extends AgentDefinition, AgentScope {
  readonly sessions: RecordSessionStore;
  readonly parked: ParkedTurnsOfAgent;
}

export function scopeOf({ agent: { metadata } }: Pick<AgentDefinition, 'agent'>): AgentScope {
  return { name: metadata.name, namespace: metadata.namespace ?? DEFAULT_NAMESPACE };
}

/** The key of an agent in the maps of this process, and its identity in messages. */
export function memberKey({ name, namespace }: AgentScope): string {
  return `${namespace}/${name}`;
}

export function withholdsSources({ agent }: AgentDefinition): boolean {
  return agent.spec.forge?.persistSource === false;
}

export function createMember(
  definition: AgentDefinition,
  { records, clock, withheld, sources }: Pick<SharedState, 'records' | 'clock' | 'withheld' | 'sources'>,
): Member {
  const scope = scopeOf(definition);
  const form = withholdsSources(definition) ? createWithheldCalls(withheld, sources) : undefined;
  const sessions = createRecordSessionStore(records, clock, { agent: scope.name, namespace: scope.namespace }, form);
  return { ...definition, ...scope, sessions, parked: createParkedTurns({ records, sessions, agent: scope }) };
}
