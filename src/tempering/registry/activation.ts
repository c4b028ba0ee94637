import type { ChainedRecord } from '../../audit/port.ts';
import { type Json, member } from '../../lib/json.ts';
import {
  DEACTIVATED,
  type DeactivationLedger,
  deactivatedReason,
  emptyDeactivations,
  foldDeactivation,
  REACTIVATED,
} from './deactivation.ts';
import { foldVerification, VERIFIED, type VerificationTimes } from '../verification/verification-times.ts';

/** The state of one stored object according to the audit chain. Files define what a tool is; only the chain decides whether it may run. */
export interface Activation {
  object: string;
  digest: string;
  agent: string;
  namespace: string;
  /** For tier Session: the session it lives in. */
  session?: string;
  /** Digest of the accepted tool with its tier, owner, contributors and verdicts. */
  record: string;
  active: boolean;
  reason?: string;
  /** Inactive only because its state folder was adopted without its tools; set while nothing else deactivated it. */
  unproven?: boolean;
}

/** The action of the record that a user adopted the state folder; its fact `tools` is `active` or `inactive`. */
export const ADOPTED = 'state.adopted';

/** The action of the record that an agent dropped a tool of its session; the fact `object` names it. */
export const DROPPED = 'tool.dropped';

const UNPROVEN =
  'nothing proves its acceptance, because the state folder was adopted without its tools; export and import it, or trust them all with temper audit --adopt --with-tools';

export interface ActivationLedger {
  byObject: Map<string, Activation>;
  /** Demoted digests with the reason: in one namespace (`<namespace> <digest>`) or in all (`* <digest>`). */
  demoted: Map<string, string>;
  deactivations: DeactivationLedger;
  verifications: VerificationTimes;
}

export function demotionKey(digest: string, namespace = '*'): string {
  return `${namespace} ${digest}`;
}

export function demotionReason(
  demoted: ReadonlyMap<string, string>,
  digest: string,
  namespace: string,
): string | undefined {
  return demoted.get(demotionKey(digest)) ?? demoted.get(demotionKey(digest, namespace));
}

/** Folds the chain from its first record; a later record overrides an earlier one. */
export function foldActivations(records: readonly ChainedRecord[]): ActivationLedger {
  const ledger: ActivationLedger = {
    byObject: new Map(),
    demoted: new Map(),
    deactivations: emptyDeactivations(),
    verifications: new Map(),
  };
  for (const record of records) apply(ledger, record);
  return ledger;
}

function apply(ledger: ActivationLedger, record: ChainedRecord): void {
  switch (record.action) {
    case 'tool.accepted':
    case 'tool.promoted':
      activate(ledger, record);
      return;
    case 'tool.demoted':
      demote(ledger, record);
      return;
    case DEACTIVATED:
    case REACTIVATED:
      changeObjects(ledger, record);
      return;
    case VERIFIED:
      foldVerification(ledger.verifications, record);
      return;
    case DROPPED:
      ledger.byObject.delete(text(record.facts, 'object'));
      return;
    case 'session.closed':
      for (const item of ledger.byObject.values()) {
        if (item.session === record.subject && isOwner(record.facts, item)) ledger.byObject.delete(item.object);
      }
      return;
    case ADOPTED:
      adopt(ledger, text(record.facts, 'tools') === 'active');
      return;
    default:
  }
}

/** Records before an adoption have no proof of their own: they count as far as the user who adopted the folder said. */
function adopt({ byObject }: ActivationLedger, withTools: boolean): void {
  for (const item of byObject.values()) {
    if (withTools && item.unproven === true) {
      item.active = true;
      delete item.reason;
      delete item.unproven;
    } else if (!withTools && item.active) {
      item.active = false;
      item.reason = UNPROVEN;
      item.unproven = true;
    }
  }
}

/** Whether a closed session belongs to the agent of the tool. A record of an earlier format names no agent and closes the session of each. */
function isOwner(facts: Json, { agent, namespace }: Activation): boolean {
  if (member(facts, 'agent') === undefined) return true;
  return text(facts, 'agent') === agent && text(facts, 'namespace') === namespace;
}

function activate(ledger: ActivationLedger, { subject, facts, action }: ChainedRecord): void {
  const object = text(facts, 'object');
  const supersedes = member(facts, 'supersedes');
  if (Array.isArray(supersedes)) {
    const change = action === 'tool.promoted' ? 'promoted as' : 'replaced by';
    deactivate(ledger, (item) => supersedes.includes(item.object), `${change} ${object}`);
  }
  const namespace = text(facts, 'namespace');
  // A demotion is permanent, even when the record of a concurrent activation follows it on the chain.
  const demoted = demotionReason(ledger.demoted, subject, namespace);
  ledger.byObject.set(object, {
    object,
    digest: subject,
    agent: text(facts, 'agent'),
    namespace,
    ...(member(facts, 'tier') === 'Session' ? { session: text(facts, 'session') } : {}),
    record: text(facts, 'record'),
    active: demoted === undefined,
    ...(demoted === undefined ? {} : { reason: demoted }),
  });
}

function demote(ledger: ActivationLedger, { subject, facts }: ChainedRecord): void {
  const namespace = member(facts, 'namespace');
  const inAllNamespaces = typeof namespace !== 'string';
  const reason = `demoted: ${text(facts, 'reason')}`;
  ledger.demoted.set(demotionKey(subject, inAllNamespaces ? undefined : namespace), reason);
  deactivate(ledger, (item) => item.digest === subject && (inAllNamespaces || item.namespace === namespace), reason);
}

function changeObjects(ledger: ActivationLedger, record: ChainedRecord): void {
  const { objects, reason } = foldDeactivation(ledger.deactivations, record);
  if (record.action === DEACTIVATED) {
    deactivate(ledger, (item) => objects.includes(item.object), deactivatedReason(reason));
    return;
  }
  for (const item of objects.map((object) => ledger.byObject.get(object))) {
    // A demotion is permanent.
    if (item?.digest !== record.subject || demotionReason(ledger.demoted, item.digest, item.namespace) !== undefined)
      continue;
    item.active = true;
    delete item.reason;
  }
}

function deactivate(ledger: ActivationLedger, matches: (item: Activation) => boolean, reason: string): void {
  for (const item of ledger.byObject.values()) {
    if ((!item.active && item.unproven !== true) || !matches(item)) continue;
    item.active = false;
    item.reason = reason;
    delete item.unproven;
  }
}

function text(facts: Json, key: string): string {
  const value = member(facts, key);
  return typeof value === 'string' ? value : '';
}
