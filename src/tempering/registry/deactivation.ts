import type { ChainedRecord } from '../../audit/port.ts';
import { type Json, member } from '../../lib/json.ts';
import type { ToolOwner } from './visibility.ts';

/** A tool that one agent does not use any more, because of what its tasks showed or because of its limit of tools. */
export interface Deactivation {
  /** The printable reason. */
  readonly reason: string;
  /** The objects of the agent that it made inactive. A Shared tool stays active for other agents. */
  readonly objects: readonly string[];
}

/** Deactivations by agent and digest, as the chain records them. */
export interface DeactivationLedger {
  readonly current: Map<string, Deactivation>;
  /** When a tool was last reactivated, in epoch milliseconds: earlier tasks do not count any more. */
  readonly reactivatedAt: Map<string, number>;
}

export const DEACTIVATED = 'tool.deactivated';
export const REACTIVATED = 'tool.reactivated';

export function emptyDeactivations(): DeactivationLedger {
  return { current: new Map(), reactivatedAt: new Map() };
}

export function deactivationKey({ namespace, agent }: ToolOwner, digest: string): string {
  return `${namespace}/${agent} ${digest}`;
}

/** How users read it in the object of the tool. */
export function deactivatedReason(reason: string): string {
  return `deactivated: ${reason}`;
}

/** Applies a record of one of the two actions; returns the objects that it concerns. */
export function foldDeactivation(ledger: DeactivationLedger, record: ChainedRecord): Deactivation {
  const { action, subject, facts, time } = record;
  const key = deactivationKey({ namespace: text(facts, 'namespace'), agent: text(facts, 'agent') }, subject);
  const objects = member(facts, 'objects');
  const deactivation = {
    reason: text(facts, 'reason'),
    objects: Array.isArray(objects) ? objects.filter((object) => typeof object === 'string') : [],
  };
  if (action === DEACTIVATED) ledger.current.set(key, deactivation);
  else {
    ledger.current.delete(key);
    ledger.reactivatedAt.set(key, Date.parse(time));
  }
  return deactivation;
}

function text(facts: Json, key: string): string {
  const value = member(facts, key);
  return typeof value === 'string' ? value : '';
}
