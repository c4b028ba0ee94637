import type { ApprovalRecord } from '../../approvals/approval-record.ts';
import { type IgnoredReason, type Verdict, verdictOn } from '../../approvals/verdict.ts';
import { printable } from '../../lib/printable.ts';
import type { DeactivatedTool } from '../../api/v1alpha1/trust/deactivated-tools.ts';
import type { ConditionUpdate } from '../conditions.ts';
import type { AdmissionAge } from './admission-age.ts';
import type { StoredTool } from './stored-tool.ts';

/** Everything that decides whether a tool is in service. */
export interface ObservedTool {
  readonly tool: StoredTool;
  readonly now: Date;
  /** All Approvals of the namespace about the digest. */
  readonly approvals: readonly ApprovalRecord[];
  readonly admission: AdmissionAge;
  /** The user name of the operator, whose revocations are demotions. */
  readonly operator: string;
  /** Of all objects of the namespace with the digest: a copy without its contributors changes nothing. */
  readonly contributors: readonly string[];
  /** A tool in service, or a built-in tool, that has the name. */
  readonly nameHolder: string | undefined;
  /** The first step that calls a tool which is not in service at tier Shared. */
  readonly inactiveStep: string | undefined;
  /** The object in service at tier Shared with the same digest. */
  readonly sharedAs: string | undefined;
  /** Does the agent of a tool of tier Agent exist? */
  readonly ownerExists: boolean;
  /** Why the agent of a tool of tier Agent does not have it any more. */
  readonly deactivation: DeactivatedTool | undefined;
  /** Why the policy of the agent does not allow what the tool requires. */
  readonly policyDenial: string | undefined;
  /** The source that its agent withholds is neither in the object nor in the encrypted store. */
  readonly sourceLost: boolean;
  /** Of a Shared tool: the verified tools of tier Agent with the digest that are not younger than the object, or rest on observed answers. */
  readonly foundations: readonly StoredTool[];
  /** Of a Shared tool that is not in service: its promotion in this namespace rested on reported answers once. */
  readonly wasReported: boolean;
}

export type Activity = ConditionUpdate<'Active'>;

/** A new object of tier Agent gets its first status from the verification that created it. */
const FIRST_STATUS_MS = 60_000;
/** Reasons that end by themselves: the tool was verified, and returns. */
const TEMPORARY_REASONS: ReadonlySet<string> = new Set([
  'PolicyDenied',
  'Promoted',
  'NameTaken',
  'OwnerNotFound',
  'Deactivated',
  'SourceLost',
]);

const SOURCE_LOST =
  'its source, which spec.forge.persistSource of the agent withholds, is lost with the store of NATS or its keys; have the agent forge the tool again, or delete the object';

/** Decides whether the tool is in service. Pure. `wait`: the status of a new object is another component's to write. */
export function planActivity(observed: ObservedTool): Activity | { readonly waitMs: number } {
  return observed.tool.facts.tier === 'Shared' ? sharedActivity(observed) : agentActivity(observed);
}

function sharedActivity(observed: ObservedTool): Activity {
  const { tool, admission, nameHolder, inactiveStep } = observed;
  const { facts, metadata } = tool;
  const verdict = verdictOf(observed);
  if (verdict.decision === 'Revoke') return revoked(observed, verdict.approval);
  if (facts.problem !== undefined)
    return inactive('InvalidSpec', `${facts.problem}; delete the object, and export or share the tool again`);
  if (metadata.ownerReferences !== undefined)
    return inactive(
      'InvalidSpec',
      'a Shared tool has no owner: its owner could delete it for all; remove metadata.ownerReferences',
    );
  if (facts.requestNonce === undefined)
    return inactive('InvalidSpec', 'spec.requestNonce is required at tier Shared; set the nonce of the Approval');
  if (verdict.decision === 'Deny')
    return inactive(
      'ApprovalDenied',
      `${byline(verdict.approval, 'denied')}; create the object again with a new nonce`,
    );
  if (restsOnReports(observed)) return inactive('ReportedAnswers', REPORTED);
  if ('problem' in admission)
    return inactive(
      'AdmissionPolicyMissing',
      `no approval counts: ${admission.problem}; upgrade the chart with clusterPrerequisites.enabled`,
    );
  if (verdict.decision === 'Pending') return inactive('ApprovalMissing', missingApproval(observed, verdict));
  if (nameHolder !== undefined) return inactive('NameTaken', takenName(facts.tool, nameHolder));
  if (inactiveStep !== undefined) return inactive('DependencyInactive', dependency(inactiveStep));
  return {
    type: 'Active',
    status: 'True',
    reason: 'Approved',
    message: `in service; ${byline(verdict.approval, 'approved')}`,
  };
}

const REPORTED =
  'its promotion to tier Agent rests on recorded answers that only the pod of its agent reported, and no approval makes up for them; have an agent use the tool with observed answers';

/**
 * Whether all evidence of this cluster rests on answers that only pods reported. Such a tool of tier Agent that is younger than the object
 * does not count, or an agent could take a Shared tool out of service. The reason outlives the tools of tier Agent, and what is remembered
 * outlives the object too.
 */
function restsOnReports({ tool, foundations, wasReported }: ObservedTool): boolean {
  if (foundations.length === 0) return wasReported || activeCondition(tool)?.reason === 'ReportedAnswers';
  return foundations.every(hasReportedAnswers);
}

export function hasReportedAnswers({ status }: StoredTool): boolean {
  const found = status?.conditions?.find(({ type }) => type === 'Shareable');
  return found?.status === 'False' && found.reason === 'ReportedAnswers';
}

/** Never takes a tool into service that no verification did: a lost status stays lost. */
function agentActivity(observed: ObservedTool): Activity | { waitMs: number } {
  const { tool, now } = observed;
  const { metadata, status } = tool;
  const verdict = verdictOf(observed);
  if (verdict.decision === 'Revoke') return revoked(observed, verdict.approval);
  if (!wasVerified(tool)) {
    const age = now.getTime() - Date.parse(metadata.creationTimestamp);
    if (status?.conditions === undefined && age < FIRST_STATUS_MS) return { waitMs: FIRST_STATUS_MS - age };
    return inactive('NotVerified', 'no verification of this object is recorded; have the agent forge the tool again');
  }
  return agentObstacle(observed) ?? verifiedActivity(tool);
}

/** Why a verified tool is out of service. */
function agentObstacle(observed: ObservedTool): Activity | undefined {
  const { tool, sharedAs, ownerExists, sourceLost } = observed;
  const { facts } = tool;
  if (facts.problem !== undefined)
    return inactive('InvalidSpec', `${facts.problem}; delete the object, and forge the tool again`);
  if (!ownerExists)
    return inactive(
      'OwnerNotFound',
      `agent "${facts.agent ?? ''}" does not exist, or is not the owner of the object; delete the object`,
    );
  if (sourceLost) return inactive('SourceLost', SOURCE_LOST);
  if (sharedAs !== undefined) return inactive('Promoted', `in service at tier Shared as EmergentTool "${sharedAs}"`);
  return lostByAgent(observed);
}

function verifiedActivity(tool: StoredTool): Activity {
  const before = activeCondition(tool);
  const message = before?.status === 'True' ? before.message : 'verified, and in service';
  return { type: 'Active', status: 'True', reason: 'Verified', message };
}

/** Why the agent cannot have its verified tool at the moment. */
function lostByAgent({ tool, deactivation, nameHolder, policyDenial }: ObservedTool): Activity | undefined {
  if (deactivation !== undefined) return inactive('Deactivated', describeDeactivation(deactivation));
  if (nameHolder !== undefined) return inactive('NameTaken', takenName(tool.facts.tool, nameHolder));
  if (policyDenial === undefined) return undefined;
  return inactive('PolicyDenied', `${printable(policyDenial, 500)} Extend the policy, or demote the tool`);
}

/** What the Approvals of its digest decide about a tool. */
export function verdictOf({
  tool,
  approvals,
  admission,
  contributors,
}: Pick<ObservedTool, 'tool' | 'approvals' | 'admission' | 'contributors'>): Verdict {
  const { tool: name, digest, tier, requestNonce } = tool.facts;
  const subject = { promotion: { tool: name, digest, tier } };
  const notBefore = 'since' in admission ? { notBefore: admission.since } : {};
  return verdictOn({ subject, nonce: requestNonce, contributors, ...notBefore }, approvals);
}

/** Only the operator writes statuses, so a status that says so is proof. */
export function wasVerified(tool: StoredTool): boolean {
  if (tool.status?.active === true) return true;
  return TEMPORARY_REASONS.has(activeCondition(tool)?.reason ?? '');
}

function activeCondition({ status }: StoredTool) {
  return status?.conditions?.find(({ type }) => type === 'Active');
}

function revoked({ operator }: ObservedTool, approval: ApprovalRecord): Activity {
  const next = 'a new version, or a new request with a new nonce, can replace it';
  if (approval.by !== operator) return inactive('Revoked', `${byline(approval, 'revoked')}; ${next}`);
  const why = approval.reason === undefined ? 'the operator demoted it' : printable(approval.reason, 300);
  return inactive('Demoted', `demoted by Approval "${approval.name}": ${why}; ${next}`);
}

const WHY_IGNORED: Readonly<Record<IgnoredReason, string>> = {
  nonce: 'its nonce is not spec.requestNonce',
  contributor: 'its approver contributed to the tool; another user has to approve it',
  'before-admission-policy':
    'it was created before the admission policies were in force; create it again under another name',
  revoked: 'a later decision revoked it',
};

function missingApproval({ tool }: ObservedTool, verdict: Verdict & { decision: 'Pending' }): string {
  const [ignored] = verdict.ignored;
  const { digest, requestNonce = '' } = tool.facts;
  if (ignored !== undefined)
    return `Approval "${ignored.approval.name}" does not count: ${WHY_IGNORED[ignored.reason]}`;
  return `waits for an Approval of digest ${digest} for tier Shared with nonce ${requestNonce}`;
}

function describeDeactivation({ message, tool }: DeactivatedTool): string {
  return `deactivated for its agent: ${printable(message, 1_024)}; forge a corrected version, or verify this one again with kubectl temper reactivate ${tool}`;
}

function takenName(tool: string, holder: string): string {
  return `"${tool}" is the name of ${holder}; demote that tool, or forge this one under another name`;
}

function dependency(step: string): string {
  return `it calls "${printable(step, 200)}", which is not in service at tier Shared; share that tool first`;
}

/** `Approval "x" of alice revoked it: reason`. */
export function byline({ name, by, reason }: ApprovalRecord, done: string): string {
  const why = reason === undefined ? '' : `: ${printable(reason, 300)}`;
  return `Approval "${name}" of ${printable(by, 120)} ${done} it${why}`;
}

function inactive(reason: string, message: string): Activity {
  return { type: 'Active', status: 'False', reason, message };
}
